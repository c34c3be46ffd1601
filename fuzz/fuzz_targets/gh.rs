//! A `gh` command line a box wrote: what is rebuilt means the same and stays in one repository.
#![no_main]

use connectors::gh::{Api, Pr, PrOp, RepoSlug, Run, RunOp};
use libfuzzer_sys::fuzz_target;

const OPS: &[&str] = &[
    "view", "list", "diff", "checks", "create", "comment", "review", "close", "reopen", "merge", "checkout",
];
/// No spelling of these may ever reach the host's `gh`.
const NEVER: &[&str] = &[
    "--hostname", "--body-file", "--template", "--recover", "--web", "--editor", "--watch",
    "--interval", "--admin", "--auto", "--cache", "--header", "--field",
];

fn check(argv: &[String]) {
    for word in argv.iter().take_while(|word| *word != "--") {
        let name = word.split('=').next().unwrap_or_default();
        assert!(!NEVER.contains(&name), "{argv:?}");
        assert!(name != "--repo" || word == "--repo=o/r", "{argv:?}");
        assert!(!word.contains('\0'), "{argv:?}");
    }
}

fuzz_target!(|input: (u8, &str)| {
    let (which, text) = input;
    let repo = RepoSlug::from_url("https://github.com/o/r.git").unwrap();
    let mut args: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    if let Some(op) = OPS.get(usize::from(which)).and_then(|name| PrOp::find(name)) {
        if let Ok(pr) = Pr::parse(op, &args, &repo) {
            let mut again = pr.flags();
            check(&again);
            check(&pr.argv(&repo, pr.target()));
            if let Some(target) = pr.target() {
                again.push("--".into());
                again.push(target.to_string());
            }
            assert_eq!(Pr::parse(op, &again, &repo), Ok(pr));
        }
    } else if let Some(op) = ["list", "view", "rerun"].get(usize::from(which % 4)).and_then(|n| RunOp::find(n)) {
        if let Ok(run) = Run::parse(op, &args) {
            check(&run.argv(&repo));
            assert_eq!(Run::parse(op, &run.words()), Ok(run));
        }
    } else {
        let endpoint = args.remove(0);
        if let Ok(api) = Api::parse(&endpoint, &args, &repo) {
            let (argv, _) = api.argv(&repo);
            check(&argv);
            let inside = |word: &String| word.starts_with("repos/o/r/pulls/");
            assert!(argv.iter().any(inside), "{argv:?}");
        }
    }
});
