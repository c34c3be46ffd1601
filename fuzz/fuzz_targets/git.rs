//! A git command line a box wrote: what is rebuilt means the same, and holds no word of the box's.
#![no_main]

use connectors::clone::Cloning;
use connectors::git::{Fetch, Outgoing, Pull, Push};
use libfuzzer_sys::fuzz_target;
use protocol::rpc::GitParams;

fn params(args: Vec<String>) -> GitParams {
    GitParams { args, ..GitParams::default() }
}

fn words(argv: &[&'static str]) -> Vec<String> {
    argv.iter().map(ToString::to_string).collect()
}

fuzz_target!(|text: &str| {
    let args: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    if let Ok(push) = Push::parse(&params(args.clone())) {
        assert!(push.to_argv().iter().all(|word| word.starts_with("--")));
        assert_eq!(Push::parse(&params(words(&push.to_argv()))), Ok(push));
    }
    if let Ok(fetch) = Fetch::parse(&params(args.clone())) {
        assert!(fetch.to_argv().iter().all(|word| word.starts_with("--")));
        assert_eq!(Fetch::parse(&params(words(&fetch.to_argv()))), Ok(fetch));
    }
    let _ = Pull::parse(&args);
    let _ = Outgoing::parse(&GitParams { host_only: true, name: args.first().cloned(), ..params(vec![]) });
    if let Ok(cloning) = Cloning::parse(&args) {
        let argv = cloning.argv();
        assert!(argv.iter().all(|word| !word.contains('\0')), "{argv:?}");
        let from = cloning.address.to_string();
        let known = ["https://", "ssh://git@", "git@"].iter().any(|start| from.starts_with(start));
        assert!(known && !from.contains("::") && !from.contains(".."), "{from}");
        assert_eq!(Cloning::parse(&argv), Ok(cloning));
    }
});
