use super::*;
use crate::registry;
use proptest::prelude::*;

const COMMENT_ID: &str = "00000000-0000-4000-8000-00000000abcd";

fn ask_for(op: &str, words: &[&str], stdin: Option<&str>) -> Result<Prepared, Refusal> {
    let args: Vec<String> = words.iter().map(ToString::to_string).collect();
    (CONNECTOR.op(op).unwrap().parse)(&Input { args: &args, stdin })
}

fn args_of(op: &str, words: &[&str]) -> Vec<String> {
    let prepared = ask_for(op, words, None).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    let Action::Run { args, stdin: None } = prepared.action else { panic!("{words:?}") };
    args
}

fn refused(op: &str, words: &[&str]) -> String {
    let refusal = ask_for(op, words, None).expect_err(&format!("{words:?}"));
    assert_eq!(refusal.exit_code, 65, "{words:?}");
    assert!(refusal.text.starts_with(&format!("linear {op}: ")), "{refusal}");
    refusal.text
}

#[test]
fn relay_19_39_queries_are_printed_anew() {
    for (words, wanted) in [
        (&["{ viewer { id } }"][..], &["{viewer{id}}"][..]),
        (&["# c\nquery Q { teams { id } }"], &["query Q{teams{id}}"]),
        (&["\u{feff}query { x }"], &["{x}"]),
        (&["{ issue(id:\"mutation\") { id } }"], &["{issue(id:\"mutation\"){id}}"]),
        (&["{ mutation: viewer { id } }"], &["{mutation:viewer{id}}"]),
        (
            &["fragment F on Issue { id } query { issues { nodes { ...F } } }"],
            &["fragment F on Issue{id} {issues{nodes{...F}}}"],
        ),
        (
            &["--variables-json", r#"{"a":"@x"}"#, "{ x }"],
            &["{x}", r#"--variables-json={"a":"@x"}"#],
        ),
        (&["--silent", "{ x }", "--paginate"], &["{x}", "--silent", "--paginate"]),
    ] {
        let args = args_of("api", words);
        assert_eq!(args[0], "api");
        assert_eq!(args[1..], *wanted, "{words:?}");
    }
}

#[test]
fn relay_19_40_whatever_is_no_query_is_refused() {
    for words in [
        &["mutation { x }"][..],
        &["MUTATION { x }"],
        &["# c\n mutation { x }"],
        &["# c\rmutation { x }"],
        &["fragment F on Issue {id} mutation M { x }"],
        &["query A { x } mutation B { y }"],
        &["query A { x } query B { y }"],
        &["subscription { x }"],
        &["\u{a0}mutation { x }"],
        &["-mutation { x }"],
        &["\"d\" query { x }"],
        &["/* c */ { x }"],
        &["-"],
        &["--workspace", "o", "{ x }"],
        &["--input", "x"],
        &["--input=/etc/passwd", "{ x }"],
        &["--variable", "--input=/x"],
        &["--variable", "--input=/x", "{ x }"],
        &["{ x }", "{ y }"],
        &["{ x }", "--operation-name", "B"],
        &["{ webhooks { nodes { secret } } }"],
        &[""],
        &[],
    ] {
        refused("api", words);
    }
    assert!(refused("api", &["mutation { x }"]).ends_with(
        "only GraphQL queries are proxied (use issue.create / issue.update / issue.comment for \
         writes); detected operation 'mutation'"
    ));
    assert!(ask_for("api", &["{ x }"], Some("mutation { x }")).is_err());
}

#[test]
fn relay_19_41_variables_reach_the_program_as_one_object() {
    for words in [
        &["--variable", "k=@/etc/passwd", "{ x }"][..],
        &["--variable=k=@/etc/passwd", "{ x }"],
        &["--variable", "@/etc/passwd", "{ x }"],
        &["--variable", "@-", "{ x }"],
        &["--variable", "k=n=@p", "{ x }"],
    ] {
        assert!(refused("api", words).contains("names a file of the host"), "{words:?}");
    }
    for words in [
        &["--variable", "k", "{ x }"][..],
        &["--variable", "1k=a", "{ x }"],
        &["--variable", "a-b=a", "{ x }"],
        &["--variable", "=a", "{ x }"],
        &["--variable", "a=1", "--variable", "a=2", "{ x }"],
        &["--variables-json", "[]", "{ x }"],
        &["--variables-json", "{", "{ x }"],
        &["--variables-json", r#"{"a b":1}"#, "{ x }"],
        &["--variables-json", "{}", "--variables-json", "{}", "{ x }"],
    ] {
        refused("api", words);
    }
    let line = ["--variable", "k=5", "{ x }"];
    assert_eq!(args_of("api", &line), ["api", "{x}", r#"--variables-json={"k":5}"#]);
    let line = ["--variables-json", r#"{"a":1,"b":2}"#, "--variable=b=x=y", "{ x }"];
    assert_eq!(args_of("api", &line), ["api", "{x}", r#"--variables-json={"a":1,"b":"x=y"}"#]);
}

#[test]
fn values_get_the_types_the_program_gives_them() {
    for (text, wanted) in [
        ("true", "true"),
        ("null", "null"),
        ("5", "5"),
        ("-7", "-7"),
        ("0.5", "0.5"),
        ("9007199254740991", "9007199254740991"),
        ("05", "\"05\""),
        ("-0", "\"-0\""),
        ("1e3", "\"1e3\""),
        ("1.0", "\"1.0\""),
        ("+1", "\"+1\""),
        ("0.0000001", "\"0.0000001\""),
        ("12345678901234567890", "\"12345678901234567890\""),
        ("inf", "\"inf\""),
        ("NaN", "\"NaN\""),
        ("", "\"\""),
        ("True", "\"True\""),
    ] {
        assert_eq!(typed(text).to_string(), wanted, "{text:?}");
    }
}

#[test]
fn relay_19_42_nothing_prints_a_key_or_deletes() {
    let linear = registry::find("linear").unwrap();
    for op in
        ["auth.token", "auth.login", "auth.logout", "issue.delete", "team.create", "team.delete"]
    {
        assert!(linear.op(op).is_none(), "{op}");
    }
    let names: Vec<&str> = linear.ops.iter().map(|o| o.info.name).collect();
    assert_eq!(
        names.join(" "),
        "whoami issue.list issue.mine issue.view issue.query team.list api issue.create issue.update issue.comment"
    );
}

#[test]
fn relay_19_43_comments_and_what_reads_files() {
    let args = args_of("issue.comment", &["ABC-1", "--body", "hi"]);
    assert_eq!(args, ["issue", "comment", "add", "ABC-1", "--body=hi"]);
    let args = args_of("issue.comment", &["-b", "-x", "abc-12", "-p", COMMENT_ID]);
    assert_eq!(
        args,
        ["issue", "comment", "add", "ABC-12", "--body=-x", &format!("--parent={COMMENT_ID}")]
    );
    for words in [
        &["ABC-1", "--body-file", "x"][..],
        &["ABC-1", "--body", "x", "--attach", "/etc/passwd"],
        &["ABC-1", "--body", "x", "-a", "/etc/passwd"],
        &["ABC-1", "--body", "x", "--start"],
        &["ABC-1", "--body", "x", "-w"],
        &["ABC-1", "--body", "x", "-w=other"],
        &["ABC-1", "--body", "x", "--workspace=other"],
        &["ABC-1"],
        &["ABC-1", "--body", ""],
        &["ABC-1", "--body="],
        &["--body", "x"],
        &["12", "--body", "x"],
        &["ABC-1", "ABC-2", "--body", "x"],
        &["--", "--body", "x"],
        &["ABC-1", "--body", "x", "-p", "--start"],
    ] {
        refused("issue.comment", words);
    }
}

#[test]
fn relay_a15_no_operation_has_a_flag_that_reads_a_file() {
    for op in CONNECTOR.ops {
        for flag in [
            "--description-file",
            "--body-file",
            "--attach",
            "--input",
            "--web",
            "--app",
            "--start",
            "--workspace",
            "-w",
        ] {
            for words in [&["ENG-1", flag, "/etc/passwd"][..], &[&format!("{flag}=/etc/passwd")]] {
                let args: Vec<String> = words.iter().map(ToString::to_string).collect();
                let refusal = (op.parse)(&Input { args: &args, stdin: None }).unwrap_err();
                assert_eq!(refusal.exit_code, 65);
                assert!(refusal.text.contains("is refused: it"), "{refusal}");
            }
        }
    }
}

#[test]
fn reads_are_rebuilt_and_get_what_keeps_them_quiet() {
    for (op, words, wanted) in [
        ("whoami", &[][..], &["auth", "whoami"][..]),
        ("team.list", &[], &["team", "list"]),
        (
            "issue.list",
            &["-s", "started", "--state=backlog", "-A", "--limit", "5"],
            &[
                "issue",
                "list",
                "--state=started",
                "--state=backlog",
                "--all-assignees",
                "--limit=5",
                "--no-pager",
            ],
        ),
        (
            "issue.mine",
            &["--team", "ENG", "-j"],
            &["issue", "mine", "--team=ENG", "--json", "--no-pager"],
        ),
        (
            "issue.query",
            &[
                "--search",
                "-x",
                "--all-teams",
                "-l",
                "a",
                "-l",
                "b",
                "--created-after",
                "2026-01-31",
            ],
            &[
                "issue",
                "query",
                "--search=-x",
                "--all-teams",
                "--label=a",
                "--label=b",
                "--created-after=2026-01-31",
                "--no-pager",
            ],
        ),
        (
            "issue.view",
            &["--no-comments", "-j", "eng-7"],
            &["issue", "view", "ENG-7", "--json", "--no-comments", "--no-pager", "--no-download"],
        ),
    ] {
        assert_eq!(args_of(op, words), wanted);
        assert_eq!(ask_for(op, words, None).unwrap().ask, None);
    }
    for (op, words) in [
        ("issue.view", &[][..]),
        ("issue.view", &["7"]),
        ("issue.view", &["ENG-12345678"]),
        ("issue.view", &["TOOLONGTEAM-1"]),
        ("issue.view", &["ENG-1", "-a"]),
        ("issue.list", &["--limit", "0"]),
        ("issue.list", &["--state", "done"]),
        ("issue.list", &["--team", ""]),
        ("issue.list", &["--team", "A", "--team", "B"]),
        ("issue.list", &["--created-after", "yesterday"]),
        ("issue.mine", &["--search", "x"]),
        ("issue.query", &["x"]),
        ("team.list", &["--web"]),
        ("whoami", &["--json"]),
    ] {
        refused(op, words);
    }
}

#[test]
fn writes_ask_with_all_that_matters() {
    let prepared = ask_for(
        "issue.create",
        &[
            "-t",
            "Fix it",
            "--no-use-default-template",
            "--team",
            "eng",
            "-d",
            "why\nhow",
            "-l",
            "bug",
            "-l",
            "ui",
            "-p",
            "1",
            "-a",
            "self",
        ],
        None,
    )
    .unwrap();
    let Action::Run { args, .. } = &prepared.action else { panic!() };
    assert_eq!(
        *args,
        [
            "issue",
            "create",
            "--title=Fix it",
            "--team=eng",
            "--description=why\nhow",
            "--label=bug",
            "--label=ui",
            "--priority=1",
            "--assignee=self",
            "--no-use-default-template",
            "--no-interactive"
        ]
    );
    let ask = prepared.ask.unwrap();
    assert_eq!(
        (ask.title.as_str(), ask.target.as_str()),
        ("Create a Linear issue", "team ENG in Linear")
    );
    assert_eq!(ask.body.as_deref(), Some("why\nhow"));
    let facts: Vec<String> = ask.facts.iter().map(|f| format!("{}={}", f.label, f.value)).collect();
    assert_eq!(
        facts,
        ["Title=Fix it", "Team=eng", "Assignee=self", "Priority=1", "Label=bug", "Label=ui"]
    );
    let remember = ask.remember.unwrap();
    assert_eq!(remember.exact, scope("team:ENG", "create issues in team ENG of Linear"));
    assert_eq!(remember.kind.unwrap().what, "create issues in Linear");

    let ask = ask_for("issue.create", &["-t", "x"], Some("long text")).unwrap().ask.unwrap();
    assert_eq!(ask.target, "the default team in Linear");
    assert_eq!(ask.body.as_deref(), Some("long text"));

    let prepared = ask_for("issue.update", &["eng-1", "--state", "Done"], None).unwrap();
    assert_eq!(
        prepared.action,
        Action::Run {
            args: ["issue", "update", "ENG-1", "--state=Done"].map(String::from).to_vec(),
            stdin: None
        }
    );
    let ask = prepared.ask.unwrap();
    assert_eq!(ask.title, "Update Linear issue ENG-1");
    assert_eq!(ask.tier, Tier::Routine);
    assert_eq!(ask.remember.unwrap().exact.key, "issue:ENG-1");
    let ask = ask_for("issue.update", &["ENG-1", "-d", "x"], None).unwrap().ask.unwrap();
    assert_eq!(ask.warnings, ["replaces the issue's description"]);

    let ask = ask_for("issue.comment", &["ENG-1", "-b", "hi"], None).unwrap().ask.unwrap();
    assert_eq!(ask.title, "Comment on Linear issue ENG-1");
    assert_eq!(ask.body.as_deref(), Some("hi"));

    for (op, words) in [
        ("issue.create", &["--team", "ENG"][..]),
        ("issue.create", &["-t", ""]),
        ("issue.create", &["-t", "x", "ENG-1"]),
        ("issue.create", &["-t", "x", "--parent", "12"]),
        ("issue.create", &["-t", "x", "--priority", "5"]),
        ("issue.create", &["-t", "x", "--due-date", "soon"]),
        ("issue.create", &["-t", "x", "--json"]),
        ("issue.update", &["ENG-1"]),
        ("issue.update", &["-t", "x"]),
        ("issue.update", &["ENG-1", "--no-use-default-template"]),
    ] {
        refused(op, words);
    }
}

#[test]
fn texts_beside_the_arguments_have_their_limits() {
    let fits = "x".repeat(100 * 1024);
    assert!(ask_for("issue.comment", &["ENG-1"], Some(&fits)).is_ok());
    let long = "x".repeat(MAX_WORD);
    let text = ask_for("issue.comment", &["ENG-1"], Some(&long)).unwrap_err().text;
    assert!(text.contains("too many for one argument"), "{text}");
    for text in ["", " \n", "a\0b"] {
        assert!(ask_for("issue.comment", &["ENG-1"], Some(text)).is_err());
    }
    assert!(ask_for("issue.comment", &["ENG-1", "-b", "x"], Some("y")).is_err());
    assert!(ask_for("issue.view", &["ENG-1"], Some("y")).is_err());
}

fn word() -> impl Strategy<Value = String> {
    let known = "(--title|--title=x|-t|--body|-b|--team=ENG|--state|started|ENG-1|eng-2|--no-comments|--json|-j|--|-w|--start|--parent|--limit=5|\\{ x \\}|mutation \\{ x \\}|--variable|a=1|--paginate|--no-use-default-template)";
    prop_oneof![6 => known, 1 => "-{0,2}[a-z=@]{0,6}", 1 => ".{0,6}"]
}

proptest! {
    #[test]
    fn relay_a10_nothing_a_box_writes_becomes_another_flag(
        op in proptest::sample::select(CONNECTOR.ops.iter().map(|o| o.info.name).collect::<Vec<_>>()),
        words in prop::collection::vec(word(), 0..6),
    ) {
        let op = CONNECTOR.op(op).unwrap();
        match (op.parse)(&Input { args: &words, stdin: None }) {
            Err(refusal) => prop_assert!(!refusal.text.chars().any(char::is_control)),
            Ok(prepared) => {
                prop_assert_eq!(prepared.ask.is_some(), op.info.write);
                let Action::Run { args, .. } = prepared.action else { panic!() };
                let mut no = false;
                for word in &args {
                    let empty = word.split_once('=').is_some_and(|(_, v)| v.is_empty());
                    prop_assert!(word != "--" && !(word.starts_with("--") && empty), "{:?}", args);
                    prop_assert!(!no || word.starts_with("--no-"), "{:?}", args);
                    no |= word.starts_with("--no-");
                    if word.starts_with('-') {
                        let name = word.split('=').next().unwrap();
                        let never = ["--input", "--body-file", "--attach", "--start", "--web"];
                        let never = never.contains(&name) || name == "--variable";
                        prop_assert!(word.starts_with("--") && !never, "{:?}", args);
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_host_runs_reads_as_the_same(
        op in proptest::sample::select(CONNECTOR.ops.iter().map(|o| o.info.name).collect::<Vec<_>>()),
        words in prop::collection::vec(word(), 0..6),
        beside in prop::option::of(".{0,6}"),
    ) {
        let parse = CONNECTOR.op(op).unwrap().parse;
        if let Ok(prepared) = parse(&Input { args: &words, stdin: beside.as_deref() }) {
            let Action::Run { args, stdin: None } = &prepared.action else { panic!() };
            let commands = match op {
                "api" => 1,
                "issue.comment" => 3,
                _ => 2,
            };
            let added = ["--no-pager", "--no-download", "--no-interactive"];
            let own = |word: &&String| !added.contains(&word.as_str());
            let again: Vec<String> = args[commands..].iter().filter(own).cloned().collect();
            prop_assert_eq!(&parse(&Input { args: &again, stdin: None }).unwrap(), &prepared);
        }
    }

    #[test]
    fn a_number_among_variables_stays_what_it_is(number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let json = format!("{{\"n\":{}}}", Json::from(number));
        let args = args_of("api", &["{ x }", "--variables-json", &json]);
        prop_assert_eq!(args.last().unwrap(), &format!("--variables-json={json}"));
    }
}
