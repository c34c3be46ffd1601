//! A command line for any service: a write asks, a read never writes, and no word is a flag, file
//! or address of the box's choosing.
#![no_main]

use connectors::connector::{Action, HttpMethod, Input};
use connectors::registry::CONNECTORS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &str, Option<&str>)| {
    let (service, op, text, stdin) = input;
    let connector = CONNECTORS[usize::from(service) % CONNECTORS.len()];
    if connector.ops.is_empty() {
        return;
    }
    let op = &connector.ops[usize::from(op) % connector.ops.len()];
    let args: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    let Ok(prepared) = (op.parse)(&Input { args: &args, stdin }) else { return };
    assert_eq!(prepared.ask.is_some(), op.info.write, "{}.{}", connector.service, op.info.name);
    match prepared.action {
        Action::Run { args, .. } => run(connector.service, op.info.write, &args),
        Action::Call(call) => {
            assert!(call.path.starts_with('/') && !call.path.contains("//") && !call.path.contains(".."));
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_/".contains(&b);
            assert!(call.path.bytes().all(plain), "{}", call.path);
            assert!(op.info.write || call.method == HttpMethod::Get, "{call:?}");
        }
    }
});

/// What a read may never say to a host program.
fn run(service: &str, write: bool, args: &[String]) {
    assert!(args.iter().all(|word| !word.contains('\0')), "{args:?}");
    let flag = |name: &str| args.iter().any(|w| w == name || w.starts_with(&format!("{name}=")));
    for never in ["--file", "--input", "--description-file", "--body-file", "--attach", "--variable", "--workspace"] {
        assert!(!flag(never), "{args:?}");
    }
    if service == "notion" && !write {
        let methods: Vec<_> = args.windows(2).filter(|w| w[0] == "-X").map(|w| w[1].as_str()).collect();
        let method = args.iter().find_map(|w| w.strip_prefix("-X").filter(|m| !m.is_empty()));
        let method = methods.first().copied().or(method);
        assert!(matches!(method, Some("GET" | "POST")) || args.iter().any(|w| w.starts_with("--") || w == "ls"), "{args:?}");
    }
}
