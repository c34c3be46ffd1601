//! A whole request: method and parameters. Whatever comes, there is a plan or a refusal of one line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (method, params) = input;
    if let Err((code, text)) = relay::fuzzing::decide(method, params) {
        assert!([64, 65, 13, 400, 501].contains(&code), "{code} {text}");
        assert_eq!(text.trim_end_matches('\n').matches('\n').count(), 0, "{text}");
        assert!(!text.trim_end_matches('\n').chars().any(char::is_control), "{text:?}");
    }
});
