//! A `gh` command line a box wrote: what is rebuilt means the same, stays in one repository, and
//! holds no word its table has no place for.
//!
//! The first word is the command, `pr create`; an endpoint comes before the words of `api`.
#![no_main]

use connectors::gh::{Api, Method, Pr, PrOp, PrRef, RepoSlug, Run, RunOp, split_endpoint};
use connectors::grammar::{Flag, Value};
use libfuzzer_sys::fuzz_target;

/// No spelling of these may ever reach the host's `gh`, whatever a table says.
const NEVER: &[&str] = &[
    "--hostname", "--body-file", "--template", "--recover", "--web", "--editor", "--watch", "--interval", "--admin",
    "--auto", "--cache", "--header", "--field", "--raw-field",
];

/// The beginning, flags of the table in their one form, then the positionals that are given.
fn check(argv: &[String], start: &[&str], flags: &[Flag], positional: Option<&str>) {
    assert!(argv.iter().all(|word| !word.contains('\0')), "{argv:?}");
    let (begin, rest) = argv.split_at(start.len());
    assert_eq!(begin, start);
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    for word in &rest[..end] {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let flag = flags.iter().find(|flag| flag.long == name);
        let flag = flag.unwrap_or_else(|| panic!("{word} in {argv:?}"));
        assert_eq!(value.is_none(), matches!(flag.value, Value::None), "{argv:?}");
        assert!(!NEVER.contains(&name), "{argv:?}");
    }
    let wanted: Vec<&str> = positional.map_or_else(Vec::new, |word| vec!["--", word]);
    assert_eq!(rest[end..], wanted, "{argv:?}");
    assert!(positional.is_none_or(|word| !word.starts_with('-')), "{argv:?}");
}

fn pr(op: PrOp, args: &[String], repo: &RepoSlug) {
    let Ok(pr) = Pr::parse(op, args, repo) else { return };
    let target = pr.target().map(ToString::to_string);
    if let Some(target) = &target {
        assert!(PrRef::parse(target, repo).is_ok(), "{target}");
    }
    let argv = pr.argv(repo, pr.target());
    check(&argv, &["pr", op.name(), "--repo=o/r"], op.grammar().flags, target.as_deref());
    assert_eq!(Pr::parse(op, &argv[3..], repo), Ok(pr));
}

fn run(op: RunOp, args: &[String], repo: &RepoSlug) {
    let Ok(run) = Run::parse(op, args) else { return };
    let argv = run.argv(repo);
    let id = argv.last().filter(|_| argv.len() > 4 && argv[argv.len() - 2] == "--");
    assert!(id.is_none_or(|id| id.bytes().all(|b| b.is_ascii_digit())), "{argv:?}");
    check(&argv, &["run", op.name(), "--repo=o/r"], op.grammar().flags, id.map(String::as_str));
    assert_eq!(Run::parse(op, &argv[3..]), Ok(run));
}

/// `repos/o/r/pulls/<n>/comments[/<n>/replies][?name=value&…]`, spelled out once more.
fn is_endpoint(text: &str) -> bool {
    let (path, query) = text.split_once('?').unwrap_or((text, "page=1"));
    let number = |part: &str| part.starts_with(|c: char| ('1'..='9').contains(&c)) && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = path.split('/').collect();
    let place = match parts[..] {
        ["repos", "o", "r", "pulls", pr, "comments"] => number(pr),
        ["repos", "o", "r", "pulls", pr, "comments", to, "replies"] => number(pr) && number(to),
        _ => false,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
    let pair = |pair: &str| {
        pair.split_once('=').is_some_and(|(name, value)| {
            ["per_page", "page", "sort", "direction", "since"].contains(&name) && !value.is_empty() && value.bytes().all(plain)
        })
    };
    place && query.split('&').all(pair)
}

fn api(endpoint: &str, args: &[String], repo: &RepoSlug) {
    let Ok(api) = Api::parse(endpoint, args, repo) else { return };
    let (argv, body) = api.argv(repo);
    let [start @ .., end, place] = &argv[..] else { panic!("{argv:?}") };
    assert!(end == "--" && is_endpoint(place), "{argv:?}");
    let post = api.method == Method::Post;
    assert_eq!(start[..2], ["api", if post { "--method=POST" } else { "--method=GET" }]);
    assert_eq!((body.is_some(), start.iter().any(|word| word == "--input=-")), (post, post), "{argv:?}");
    let known = |word: &String| ["--input=-", "--paginate", "--silent"].contains(&word.as_str()) || word.starts_with("--jq=");
    assert!(start[2..].iter().all(known), "{argv:?}");
    // The same again: flags from the command line, fields from the body.
    let mut again: Vec<String> = start[1..].iter().filter(|word| *word != "--input=-").cloned().collect();
    for (name, value) in &api.body {
        assert!(value.is_string() || value.is_u64(), "{value}");
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        again.push(format!("--raw-field={name}={text}"));
    }
    assert_eq!(Api::parse(place, &again, repo), Ok(api));
}

fuzz_target!(|text: &str| {
    let repo = RepoSlug::from_url("https://github.com/o/r.git").unwrap();
    let args: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    let (command, args) = args.split_first().unwrap();
    match command.split_once(' ') {
        Some(("pr", op)) => {
            if let Some(op) = PrOp::find(op) {
                pr(op, args, &repo);
            }
        }
        Some(("run", op)) => {
            if let Some(op) = RunOp::find(op) {
                run(op, args, &repo);
            }
        }
        _ if command == "api" => {
            if let Ok((endpoint, rest)) = split_endpoint(args) {
                api(&endpoint, &rest, &repo);
            }
        }
        _ => {
            // Glued flags as they come in a request.
            if let Some((endpoint, rest)) = args.split_first() {
                api(endpoint, rest, &repo);
            }
        }
    }
});
