use super::*;
use crate::refusal::Refusal;
use proptest::prelude::*;

fn repo() -> RepoSlug {
    RepoSlug::from_url("git@github.com:o/r.git").unwrap()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn pr(op: PrOp, args: &[&str]) -> Result<Pr, Refusal> {
    Pr::parse(op, &words(args), &repo())
}

fn run(op: RunOp, args: &[&str]) -> Result<Run, Refusal> {
    Run::parse(op, &words(args))
}

fn api(endpoint: &str, args: &[&str]) -> Result<Api, Refusal> {
    Api::parse(endpoint, &words(args), &repo())
}

/// The command line for a pull request the host has found.
fn argv(op: PrOp, args: &[&str]) -> String {
    let parsed = pr(op, args).unwrap();
    parsed.argv(&repo(), parsed.target()).join(" ")
}

#[test]
fn a_slug_comes_from_every_form_of_address() {
    for (url, slug) in [
        ("https://github.com/o/r", "o/r"),
        ("https://github.com/o/r.git", "o/r"),
        ("https://me:pw@github.com/o/r.git/", "o/r"),
        ("https://www.github.com/o/r", "o/r"),
        ("HTTPS://GitHub.com/o/r", ""),
        ("https://GitHub.com/O/.github", "O/.github"),
        ("git@github.com:o/r.git", "o/r"),
        ("github.com:o/r", "o/r"),
        ("git@github.com:/o/r.git", "o/r"),
        ("ssh://git@github.com/o/r", "o/r"),
        ("ssh://git@github.com:22/o/r", "o/r"),
        ("ssh://git@ssh.github.com:443/o/r.git", "o/r"),
        ("https://ghe.corp/o/r", "ghe.corp/o/r"),
        ("https://ghe.corp:8443/o/r", "ghe.corp:8443/o/r"),
        ("ssh://git@ghe.corp:2222/o/r", "ghe.corp/o/r"),
        ("git@ghe.corp:o/r", "ghe.corp/o/r"),
        ("/srv/git/r.git", ""),
        ("../r", ""),
        ("./a:b/c", ""),
        ("file:///srv/o/r", ""),
        ("ext::sh -c x", ""),
        ("https://github.com/o", ""),
        ("https://github.com/o/r/s", ""),
        ("https://github.com/o/r?x=1", ""),
        ("https://github.com/../r", ""),
        ("https://github.com/-o/r", ""),
        ("https://github.com/o/r%20x", ""),
        ("https://git hub.com/o/r", ""),
        ("https://github.com:0/o/r", ""),
        ("https://github.com:99999/o/r", ""),
        ("", ""),
    ] {
        let found = RepoSlug::from_url(url).map(|s| s.to_string()).unwrap_or_default();
        assert_eq!(found, slug, "{url}");
    }
    assert_eq!(repo().shown(), "github.com/o/r");
}

#[test]
fn relay_a09_a_reference_stays_in_the_repository() {
    let parse = |text: &str| PrRef::parse(text, &repo());
    assert_eq!(parse("7"), Ok(PrRef::Number(7)));
    assert_eq!(parse("#7"), Ok(PrRef::Number(7)));
    assert_eq!(parse("https://github.com/O/R/pull/7/"), Ok(PrRef::Number(7)));
    assert_eq!(parse("fix/login").unwrap().to_string(), "fix/login");
    for bad in [
        "https://github.com/o/other/pull/7",
        "https://github.com/p/r/pull/7",
        "https://ghe.corp/o/r/pull/7",
        "https://github.com:444/o/r/pull/7",
        "https://github.com@evil.example/o/r/pull/7",
        "https://github.com/o/r/issues/7",
        "https://github.com/o/r/pull/7/../../../x/y/pull/1",
        "https://github.com/o/r/pull/0",
        "p:branch",
        "o/other#7",
        "-x",
        "",
        "a b",
        "a\0b",
        // Read as numbers by gh.
        "007",
        "+7",
        "#+7",
        "0",
        "12345678901",
    ] {
        assert!(parse(bad).is_err(), "{bad:?} was taken");
    }
    let port = RepoSlug::from_url("https://ghe.corp:8443/o/r").unwrap();
    assert_eq!(PrRef::parse("https://ghe.corp:8443/o/r/pull/9", &port), Ok(PrRef::Number(9)));
    assert!(PrRef::parse("https://ghe.corp/o/r/pull/9", &port).is_err());
}

#[test]
fn every_operation_has_one_command_line() {
    let of = |lines: &[(PrOp, &[&str], &str)]| {
        for (op, args, wanted) in lines {
            assert_eq!(argv(*op, args), *wanted);
        }
    };
    of(&[
        (PrOp::View, &["7", "-c"], "pr view --repo=o/r --comments -- 7"),
        (
            PrOp::View,
            &["--json", "title,body", "-q", ".title", "x"],
            "pr view --repo=o/r --json=title,body --jq=.title -- x",
        ),
        (
            PrOp::List,
            &["-s", "all", "-L", "5", "-l", "a b"],
            "pr list --repo=o/r --state=all --limit=5 --label=a b",
        ),
        (PrOp::Diff, &["--name-only", "--", "7"], "pr diff --repo=o/r --name-only -- 7"),
        (PrOp::Checks, &["7", "--required"], "pr checks --repo=o/r --required -- 7"),
        (PrOp::Comment, &["7", "-b", "--approve"], "pr comment --repo=o/r --body=--approve -- 7"),
        (PrOp::Review, &["7", "--approve"], "pr review --repo=o/r --approve -- 7"),
        (
            PrOp::Review,
            &["--comment", "-b", "hm", "7"],
            "pr review --repo=o/r --comment --body=hm -- 7",
        ),
        (PrOp::Close, &["7", "-d"], "pr close --repo=o/r --delete-branch -- 7"),
        (PrOp::Reopen, &["7"], "pr reopen --repo=o/r -- 7"),
        (
            PrOp::Create,
            &[
                "-t", "T", "-b", "B", "-B", "main", "-d", "-l", "x", "-l", "y", "-r", "o/team",
                "-a", "@me",
            ],
            "pr create --repo=o/r --title=T --body=B --base=main --draft --label=x --label=y --reviewer=o/team --assignee=@me",
        ),
    ]);
    let merge = pr(PrOp::Merge, &["-s", "-d", "7"]).unwrap();
    let oid = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
    assert_eq!(
        merge.pinned_argv(&repo(), &PrRef::Number(7), &oid).join(" "),
        "pr merge --repo=o/r --squash --delete-branch --match-head-commit=0123456789abcdef0123456789abcdef01234567 -- 7"
    );
    let line = |op, args: &[&str]| run(op, args).unwrap().argv(&repo()).join(" ");
    assert_eq!(
        line(RunOp::List, &["-w", "ci.yml", "-L", "3"]),
        "run list --repo=o/r --workflow=ci.yml --limit=3"
    );
    assert_eq!(
        line(RunOp::View, &["123", "--log-failed"]),
        "run view --repo=o/r --log-failed -- 123"
    );
    assert_eq!(line(RunOp::View, &["--job", "9", "--log"]), "run view --repo=o/r --log --job=9");
    assert_eq!(line(RunOp::Rerun, &["123", "--failed"]), "run rerun --repo=o/r --failed -- 123");
}

#[test]
fn operations_are_known_by_their_exact_names() {
    assert_eq!(PrOp::find("merge"), Some(PrOp::Merge));
    for bad in ["bogus", "", "View", "edit", "ready", "view "] {
        assert_eq!(PrOp::find(bad), None);
    }
    assert_eq!(RunOp::find("watch"), None);
    assert_eq!(RunOp::find("rerun"), Some(RunOp::Rerun));
    let known: Vec<&str> = CONNECTOR.own_ops.iter().map(|op| op.name).collect();
    for op in PrOp::ALL {
        assert!(known.contains(&format!("pr.{}", op.name()).as_str()));
    }
}

#[test]
fn relay_a08_no_flag_reads_a_file_of_the_host() {
    for (op, args) in [
        (PrOp::Comment, &["--body-file", "/home/u/.ssh/id_rsa"][..]),
        (PrOp::Comment, &["--body-file=/home/u/.ssh/id_rsa"]),
        (PrOp::Comment, &["-F/etc/passwd"]),
        (PrOp::Comment, &["-F", "/etc/passwd"]),
        (PrOp::Create, &["--template", "x"]),
        (PrOp::Create, &["-Tx"]),
        (PrOp::Create, &["--recover", "x"]),
        (PrOp::Review, &["--comment", "-F", "x"]),
        (PrOp::Merge, &["-s", "--body-file", "x"]),
        (PrOp::View, &["--template", "x"]),
    ] {
        let refusal = pr(op, args).unwrap_err();
        assert_eq!(refusal.exit_code, 65, "{args:?}");
        assert!(refusal.text.contains("reads a file of the host"), "{refusal}");
    }
    for args in [
        &["-F", "body=@/etc/passwd"][..],
        &["--field=body=@/etc/passwd"],
        &["-Fbody=@x"],
        &["--input", "-"],
        &["--input=/x"],
    ] {
        assert_eq!(api("repos/o/r/pulls/5/comments", args).unwrap_err().exit_code, 65, "{args:?}");
    }
    // A raw field is text, whatever it starts with, and it is JSON that gh reads.
    let raw = api("repos/o/r/pulls/5/comments", &["-f", "body=@me look"]).unwrap();
    assert_eq!(raw.argv(&repo()).1.unwrap(), r#"{"body":"@me look"}"#);
}

#[test]
fn relay_a09_no_flag_names_another_repository() {
    for args in [
        &["--body=x", "-R", "o/other"][..],
        &["-Ro/other"],
        &["--repo=o/other"],
        &["--hostname", "h"],
    ] {
        let refusal = pr(PrOp::Comment, args).unwrap_err();
        assert!(refusal.text.contains("another repository"), "{refusal}");
    }
    // gh writes these into a search, where a second `repo:` would widen it.
    for bad in ["x\" repo:o/private \"", "x\\", "a\nb"] {
        assert!(pr(PrOp::List, &["--label", bad]).is_err(), "{bad:?}");
    }
    for bad in ["x repo:o/private", "x\"", "-x", ""] {
        assert!(pr(PrOp::List, &["--author", bad]).is_err(), "{bad:?}");
        assert!(pr(PrOp::List, &["--base", bad]).is_err(), "{bad:?}");
    }
    for bad in ["../../../../o/private/actions/workflows/x.yml", "a/b.yml", "x?y", "%2e%2e"] {
        assert!(run(RunOp::List, &["--workflow", bad]).is_err(), "{bad:?}");
    }
    for endpoint in [
        "repos/o/other/pulls/5/comments",
        "repos/p/r/pulls/5/comments",
        "repos/o/r/issues/5/comments",
        "repos/o/r/pulls/5/comments/../../6/comments",
        "repos/o/r/pulls/5/comments/1/replies/x",
        "repos/o/r/pulls/5%2fcomments",
        "repos/o/r/pulls/05/comments",
        "repos/o/r/pulls/5/comments#x",
        "https://api.github.com/repos/o/r/pulls/5/comments",
        "user",
        "graphql",
        "",
    ] {
        assert_eq!(api(endpoint, &[]).unwrap_err().exit_code, 65, "{endpoint}");
    }
}

#[test]
fn relay_a10_clusters_duplicates_and_abbreviations_are_refused() {
    for (op, args) in [
        (PrOp::Create, &["-dHmain", "--title", "T", "--body", "B"][..]),
        (PrOp::Create, &["--title", "T", "--title", "U", "--body", "B"]),
        (PrOp::Create, &["--titl", "T", "--body", "B"]),
        (PrOp::Merge, &["-sd"]),
        (PrOp::Merge, &["--squash", "--rebase"]),
        (PrOp::Merge, &[]),
        (PrOp::Merge, &["--squash", "--admin"]),
        (PrOp::Merge, &["--squash", "--auto"]),
        (PrOp::Review, &["--approve", "--comment", "-b", "x"]),
        (PrOp::Review, &["--request-changes"]),
        (PrOp::Review, &[]),
        (PrOp::Comment, &["7"]),
        (PrOp::Comment, &["--body", "  "]),
        (PrOp::Checks, &["--watch"]),
        (PrOp::Checks, &["--interval", "1"]),
        (PrOp::View, &["--web"]),
        (PrOp::View, &["7", "8"]),
        (PrOp::Checkout, &[]),
        (PrOp::Create, &["--title", "T"]),
        (PrOp::Create, &["--title", "a\nb", "--body", "B"]),
        (PrOp::Create, &["--fill", "x"]),
        (PrOp::Create, &["--fill", "--head", "a b"]),
    ] {
        assert_eq!(pr(op, args).unwrap_err().exit_code, 65, "{args:?}");
    }
}

#[test]
fn relay_a14_a_filter_cannot_name_the_environment() {
    for bad in [
        "env",
        "env.GH_TOKEN|@base64",
        "$ENV.GH_TOKEN",
        "[.[]|env]",
        "\"\\(env)\"",
        "$ENV",
        "import \"a\" as a; .",
        ".env",
    ] {
        assert!(pr(PrOp::View, &["--json", "id", "--jq", bad]).is_err(), "{bad}");
        assert!(api("repos/o/r/pulls/5/comments", &["-q", bad]).is_err(), "{bad}");
    }
    for good in [
        ".title",
        ".[]|select(.environment==\"x\")|.body",
        "map(.envelope)",
        ".labels[].name|ascii_downcase",
    ] {
        assert!(pr(PrOp::View, &["--json", "id", "--jq", good]).is_ok(), "{good}");
    }
}

#[test]
fn relay_19_30_the_api_reads_and_writes_review_comments_only() {
    const AT: &str = "repos/o/r/pulls/5/comments";
    let line = |endpoint: &str, args: &[&str]| {
        let (argv, stdin) = api(endpoint, args).unwrap().argv(&repo());
        (argv.join(" "), stdin.unwrap_or_default())
    };
    let get = "api --method=GET -- repos/o/r/pulls/5/comments";
    assert_eq!(line(AT, &[]).0, get);
    assert_eq!(line("/repos/{owner}/{repo}/pulls/5/comments", &["-XGET"]).0, get);
    assert_eq!(
        line(
            "repos/O/R/pulls/5/comments?per_page=100",
            &["-X", "get", "-f", "page=2", "--paginate"]
        )
        .0,
        "api --method=GET --paginate -- repos/o/r/pulls/5/comments?per_page=100&page=2"
    );
    let post = "api --method=POST --input=- -- repos/o/r/pulls/5/comments";
    assert_eq!(line(AT, &["-f", "body=hi"]), (post.into(), r#"{"body":"hi"}"#.into()));
    assert_eq!(
        line(AT, &["-fbody=hi", "-F=line=3", "--field", "side=RIGHT", "-X=POST"]),
        (post.into(), r#"{"body":"hi","line":3,"side":"RIGHT"}"#.into())
    );
    // The name of a field says its type: a text stays one.
    assert_eq!(line(AT, &["-F", "body=true"]).1, r#"{"body":"true"}"#);
    assert_eq!(
        line("repos/o/r/pulls/5/comments/77/replies", &["-f", "body=ok"]).0,
        "api --method=POST --input=- -- repos/o/r/pulls/5/comments/77/replies"
    );
    for args in [
        &["-X", "DELETE"][..],
        &["-XDELETE"],
        &["-iXDELETE"],
        &["--method=PATCH"],
        &["-X", "GET", "-X", "POST"],
        &["-X"],
        &["-f", "-X=GET"],
        &["-f", "body"],
        &["-f", "body="],
        &["-f", "body=a", "-F", "body=b"],
        &["-f", "body=a", "-f", "line=x"],
        &["-f", "body=a", "-f", "line=@x"],
        &["-f", "event=APPROVE"],
        &["-f", "body[]=a"],
        &["-X", "POST"],
        &["-X", "GET", "-f", "body=hi"],
        &["-f", "body=hi", "--paginate"],
        &["-H", "Accept: x"],
        &["--hostname", "h"],
        &["--cache", "1h"],
        &["--template", "x"],
        &["--preview", "x"],
        &["-i"],
        &["extra"],
    ] {
        assert_eq!(api(AT, args).unwrap_err().exit_code, 65, "{args:?}");
    }
    assert!(api("repos/o/r/pulls/5/comments?q=x", &[]).is_err());
    assert!(api("repos/o/r/pulls/5/comments?page=1", &["-f", "body=x"]).is_err());
}

#[test]
fn an_endpoint_is_found_among_the_words() {
    let split = |line: &[&str]| split_endpoint(&words(line));
    let (endpoint, rest) = split(&["-X", "POST", "repos/o/r", "-fbody=x", "-f", "a=b"]).unwrap();
    assert_eq!(
        (endpoint.as_str(), rest),
        ("repos/o/r", words(&["-X", "POST", "-f", "body=x", "-f", "a=b"]))
    );
    // A field takes the next word whatever it is, so there is no endpoint left.
    assert!(split(&["-f", "repos/o/r"]).is_err());
    assert!(split(&["a", "b"]).is_err());
    assert_eq!(split(&["--", "a"]).unwrap().0, "a");
}

#[test]
fn relay_19_31_runs_need_an_id() {
    for (op, args) in [
        (RunOp::View, &[][..]),
        (RunOp::View, &["abc"]),
        (RunOp::View, &["1", "--job", "2"]),
        (RunOp::View, &["--job", "x"]),
        (RunOp::View, &["1", "--web"]),
        (RunOp::View, &["1", "--exit-status"]),
        (RunOp::Rerun, &["--failed"]),
        (RunOp::Rerun, &["1", "--debug"]),
        (RunOp::List, &["1"]),
        (RunOp::List, &["--status", "good"]),
    ] {
        assert_eq!(run(op, args).unwrap_err().exit_code, 65, "{args:?}");
    }
    assert!(run(RunOp::View, &[]).unwrap_err().text.contains("run id"));
}

#[test]
fn a_head_is_a_branch_of_somebody() {
    assert_eq!(Head::parse("me:fix").unwrap().to_string(), "me:fix");
    assert_eq!(Head::parse("fix").unwrap().owner, None);
    for bad in ["a:b:c", ":b", "a:", "-x", "a b", "a\"b", "o/p:b"] {
        assert!(Head::parse(bad).is_none(), "{bad}");
    }
}

fn any_word() -> impl Strategy<Value = String> {
    let flag = "--?(title|body|base|head|draft|fill|label|reviewer|assignee|json|jq|state|limit|comments|name-only|color|required|approve|request-changes|comment|delete-branch|squash|merge|rebase|failed|job|log|workflow|branch|status|user|patch|t|b|B|H|d|l|r|a|q|s|m|c|L|R|F|w)(=.{0,6})?";
    prop_oneof![flag, "7|#7|main|open|all|body|x:y|123|--|-", ".{0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_rebuilt_reads_as_the_same(op in 0..11usize, args in prop::collection::vec(any_word(), 0..7)) {
        let op = PrOp::ALL[op];
        if let Ok(parsed) = Pr::parse(op, &args, &repo()) {
            let argv = parsed.argv(&repo(), parsed.target());
            prop_assert_eq!(Pr::parse(op, &argv[3..], &repo()).unwrap(), parsed);
        }
    }

    #[test]
    fn no_token_is_outside_the_grammar(op in 0..11usize, args in prop::collection::vec(any_word(), 0..7)) {
        let op = PrOp::ALL[op];
        if let Ok(parsed) = Pr::parse(op, &args, &repo()) {
            let argv = parsed.argv(&repo(), parsed.target());
            prop_assert_eq!(&argv[..3], &words(&["pr", op.name(), "--repo=o/r"])[..]);
            let mut rest = argv[3..].iter();
            for word in rest.by_ref().take_while(|word| *word != "--") {
                let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
                let flag = op.grammar().flags.iter().find(|flag| flag.long == name);
                prop_assert!(flag.is_some(), "{}", word);
                prop_assert_eq!(word.contains('='), !matches!(flag.unwrap().value, crate::grammar::Value::None));
            }
            for word in rest {
                prop_assert!(PrRef::parse(word, &repo()).is_ok());
                prop_assert!(!word.starts_with('-'));
            }
            prop_assert!(argv.iter().all(|word| !word.contains('\0')));
        }
    }

    #[test]
    fn runs_read_as_the_same(op in 0..3usize, args in prop::collection::vec(any_word(), 0..6)) {
        let op = RunOp::ALL[op];
        if let Ok(parsed) = Run::parse(op, &args) {
            prop_assert_eq!(Run::parse(op, &parsed.argv(&repo())[3..]).unwrap(), parsed);
        }
    }

    #[test]
    fn the_api_has_one_shape(
        endpoint in "(/?repos/(o|x)/(r|y)/pulls/5/comments(/7/replies)?(\\?page=[0-9a&=]{0,4})?|.{0,12})",
        args in prop::collection::vec("(-[XfFqiH]?.{0,5}|--(method|field|input|jq)(=.{0,5})?|-f|-F|(body|path)=.{0,5}|(line|page)=[0-9]{1,3}|GET|post|--silent|--paginate)", 0..5),
    ) {
        if let Ok(parsed) = Api::parse(&endpoint, &args, &repo()) {
            let (argv, stdin) = parsed.argv(&repo());
            let known = |word: &str| ["--method=GET", "--method=POST", "--input=-", "--paginate", "--silent"].contains(&word);
            let end = argv.len() - 2;
            prop_assert_eq!(&argv[0], "api");
            prop_assert!(argv[1..end].iter().all(|word| known(word) || word.starts_with("--jq=")), "{:?}", argv);
            prop_assert_eq!(&argv[end], "--");
            prop_assert!(argv[end + 1].starts_with("repos/o/r/pulls/5/comments"));
            prop_assert_eq!(stdin.is_some(), parsed.method == Method::Post);
            prop_assert_eq!(stdin.is_some(), argv.contains(&"--input=-".to_owned()));
            // The same again: flags from the command line, fields from the body.
            let mut again: Vec<String> = argv[1..end].to_vec();
            again.retain(|word| word != "--input=-");
            for (name, value) in &parsed.body {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                again.push(format!("--raw-field={name}={text}"));
            }
            prop_assert_eq!(Api::parse(&argv[end + 1], &again, &repo()).unwrap(), parsed);
        }
    }

    #[test]
    fn a_refusal_is_one_line(op in 0..11usize, args in prop::collection::vec(".{0,12}", 0..4)) {
        if let Err(refusal) = Pr::parse(PrOp::ALL[op], &args, &repo()) {
            prop_assert!(!refusal.text.chars().any(char::is_control));
        }
    }

    #[test]
    fn a_slug_is_plain(url in "((https|ssh)://)?(git@)?(github\\.com|h:1|.{0,4})[:/].{0,10}/.{0,6}") {
        if let Some(slug) = RepoSlug::from_url(&url) {
            let shown = slug.shown();
            prop_assert!(shown.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:".contains(&b)), "{}", shown);
            prop_assert!(!slug.to_string().starts_with('-'));
        }
    }
}
