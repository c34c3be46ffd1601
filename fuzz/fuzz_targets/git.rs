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

const COMMON: [&str; 4] = ["--quiet", "--verbose", "--progress", "--no-progress"];

/// Every word is one of these, and stands there once.
fn check(argv: &[&'static str], own: &[&str]) {
    let known = |word: &&&str| own.contains(*word) || COMMON.contains(*word);
    assert!(argv.iter().all(|word| known(&word)), "{argv:?}");
    assert!(argv.iter().enumerate().all(|(at, word)| !argv[..at].contains(word)), "{argv:?}");
}

fuzz_target!(|text: &str| {
    let args: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    if let Ok(push) = Push::parse(&params(args.clone())) {
        check(&push.to_argv(), &["--force-with-lease", "--tags", "--dry-run"]);
        assert_eq!(Push::parse(&params(words(&push.to_argv()))), Ok(push));
    }
    if let Ok(fetch) = Fetch::parse(&params(args.clone())) {
        check(&fetch.to_argv(), &["--prune", "--prune-tags", "--tags", "--no-tags", "--force", "--dry-run"]);
        assert_eq!(Fetch::parse(&params(words(&fetch.to_argv()))), Ok(fetch));
    }
    if let Ok(pull) = Pull::parse(&args) {
        let fetch = pull.to_fetch().to_argv();
        check(&fetch, &["--prune", "--tags", "--no-tags"]);
        check(&pull.merge_argv(), &["--ff-only"]);
        let again: Vec<&str> = pull.merge_argv().into_iter().filter(|word| !fetch.contains(word)).collect();
        assert_eq!(Pull::parse(&words(&[fetch, again].concat())), Ok(pull));
    }
    // The first word as a name, the others as flags.
    if let Some((name, flags)) = args.split_first() {
        let landing = |name: String| GitParams { host_only: true, name: Some(name), ..params(flags.to_vec()) };
        if let Ok(Outgoing::Host(land)) = Outgoing::parse(&landing(name.clone())) {
            let branch = land.name.as_ref().expect("it was named").as_str().to_owned();
            let bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
            assert!(!branch.starts_with(['-', '/', '.']) && !branch.contains("..") && !branch.contains(bad), "{branch:?}");
            assert_eq!(Outgoing::parse(&landing(branch)), Ok(Outgoing::Host(land)));
        }
        let to = GitParams { remote: Some(name.clone()), ..params(vec![]) };
        if let Ok(push) = Push::parse(&to) {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            assert!(push.remote.as_str().bytes().all(plain) && !push.remote.as_str().starts_with(['-', '.']), "{name:?}");
        }
    }
    if let Ok(cloning) = Cloning::parse(&args) {
        let argv = cloning.argv();
        let end = argv.iter().position(|word| word == "--").expect("flags end");
        let flag = |word: &String| word.starts_with("--branch=") || word.starts_with("--depth=");
        assert!(argv[..end].iter().all(flag) && argv.len() <= end + 3, "{argv:?}");
        let plain = |word: &String| !word.starts_with('-') && !word.chars().any(char::is_control);
        assert!(argv[end + 1..].iter().all(plain), "{argv:?}");
        let from = cloning.address.to_string();
        let known = ["https://", "ssh://git@", "git@"].iter().any(|start| from.starts_with(start));
        assert!(known && !from.contains("::") && !from.contains(".."), "{from}");
        assert_eq!(Cloning::parse(&argv), Ok(cloning));
    }
});
