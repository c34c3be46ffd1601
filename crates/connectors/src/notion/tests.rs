use super::*;
use crate::registry;
use proptest::prelude::*;

const PAGE: &str = "1a2b3c4d-0000-4000-8000-00000000abcd";
const BARE: &str = "1A2B3C4D00004000800000000000ABCD";

fn ask_for(op: &str, words: &[&str], stdin: Option<&str>) -> Result<Prepared, Refusal> {
    let args: Vec<String> = words.iter().map(ToString::to_string).collect();
    (CONNECTOR.op(op).unwrap().parse)(&Input { args: &args, stdin })
}

/// The arguments and the body of a read.
fn read(words: &[&str]) -> (Vec<String>, Option<Json>) {
    let prepared = ask_for("api", words, None).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    assert_eq!(prepared.ask, None);
    run(prepared.action)
}

fn run(action: Action) -> (Vec<String>, Option<Json>) {
    match action {
        Action::Run { args, stdin } => (args, stdin.map(|s| serde_json::from_str(&s).unwrap())),
        Action::Call(_) => panic!("no program"),
    }
}

fn written(op: &str, words: &[&str], stdin: Option<&str>) -> (Vec<String>, Json, Ask) {
    let prepared = ask_for(op, words, stdin).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    let (args, body) = run(prepared.action);
    (args, body.unwrap(), prepared.ask.unwrap())
}

fn refused(op: &str, words: &[&str]) -> String {
    let refusal = ask_for(op, words, None).expect_err(&format!("{words:?}"));
    assert_eq!(refusal.exit_code, 65, "{words:?}");
    assert!(refusal.text.starts_with(&format!("notion {op}: ")), "{refusal}");
    refusal.text
}

#[test]
fn relay_19_32_the_service_has_its_name_and_these_operations() {
    assert!(registry::find("NOTION").is_none());
    let notion = registry::find("notion").unwrap();
    assert!(notion.op("bogus").is_none());
    assert!(notion.op("").is_none());
    let names: Vec<&str> = notion.ops.iter().map(|o| o.info.name).collect();
    assert_eq!(names, ["whoami", "api", "page.create", "page.update", "comment.add"]);
    assert!(!notion.on_by_default);
}

#[test]
fn relay_19_35_reads_pass_with_their_method() {
    let uuid = format!("v1/data_sources/{PAGE}/query");
    for (words, method, endpoint, rest, body) in [
        (&["v1/users/me"][..], "GET", "v1/users/me", &[][..], None),
        (&["-XGET", "v1/users/me"], "GET", "v1/users/me", &[], None),
        (&["v1/users/me", "-X=get"], "GET", "v1/users/me", &[], None),
        (&["--method=", "v1/users/me"], "GET", "v1/users/me", &[], None),
        (
            &["v1/databases/abc", "page_size==50"],
            "GET",
            "v1/databases/abc",
            &["page_size==50"],
            None,
        ),
        (
            &["v1/search", "-d", r#"{"query":"x"}"#],
            "POST",
            "v1/search",
            &[],
            Some(json!({"query":"x"})),
        ),
        (&["/v1/search", "-d", "{}"], "POST", "v1/search", &[], Some(json!({}))),
        (&["v1/search", "-d{}"], "POST", "v1/search", &[], Some(json!({}))),
        (&["v1/search", "--data={}"], "POST", "v1/search", &[], Some(json!({}))),
        (&["v1/search", "-X", "POST"], "POST", "v1/search", &[], Some(json!({}))),
        (&[&uuid, "filter:={}"], "POST", &uuid, &[], Some(json!({"filter":{}}))),
        (
            &[
                "v1/search",
                "query=a:=b==c",
                "sort[direction]=asc",
                "l[]=x",
                "l[1][k]:=5",
                "start==2",
            ],
            "POST",
            "v1/search",
            &["start==2"],
            Some(json!({"query":"a:=b==c","sort":{"direction":"asc"},"l":["x",{"k":5}]})),
        ),
        // A body-less call is our GET, whatever the endpoint.
        (&["v1/search"], "GET", "v1/search", &[], None),
    ] {
        let (args, sent) = read(words);
        let mut wanted = vec!["api", "-X", method, "--notion-version=2026-03-11", "--", endpoint];
        wanted.extend(rest);
        assert_eq!(args, wanted, "{words:?}");
        assert_eq!(sent, body, "{words:?}");
    }
    let (args, _) = read(&["v1/users/me", "--notion-version", "2022-06-28", "-v"]);
    assert_eq!(args[3..5], ["--verbose", "--notion-version=2022-06-28"]);
    assert_eq!(read(&["ls"]).0, ["api", "ls"]);
    assert_eq!(read(&["--help"]).0, ["api", "--help"]);
}

#[test]
fn relay_19_36_everything_else_is_refused() {
    for words in [
        &["v1/pages", "-d", "{}"][..],
        &["v1/pages", "title=x"],
        &["v1/pages", "title=a==b"],
        &["v1/pages/abc", "-X", "PATCH", "-d", "{}"],
        &["-XDELETE", "v1/blocks/a"],
        &["v1/search/../pages", "-d", "{}"],
        &["v1/./search", "-d", "{}"],
        &["-X", "POST"],
        &["--workers-config-file", "v1/search", "v1/pages", "-d", "{}"],
        &["--env", "prod", "v1/pages", "title=x"],
        &["v1/search", "--input", "-"],
        &["v1/search", "--file", "/etc/passwd"],
        &["v1/search", "--file=/etc/passwd"],
        &["v1/search", "-d", "@/etc/passwd"],
        &["v1/search", "-d@/etc/passwd"],
        &["v1/search", "query=@/etc/passwd"],
        &["v1/search", "query:=@/etc/passwd"],
        &["v1/users", "a==@/etc/passwd"],
        &["https://h/v1/x"],
        &["//h/v1/x"],
        &["v1/users?x=y"],
        &["v1/users/%2e%2e/pages"],
        &["v1\\users"],
        &["v1//users"],
        &["v1/users/"],
        &["v1"],
        &["v2/users"],
        &["v1/users/me", "X-HTTP-Method-Override:DELETE"],
        &["v1/users/me", "-X", "GET", "-d", "{}"],
        &["v1/users/me", "-X", "GET", "a=b"],
        &["v1/databases/abc/query", "-d", "{}"],
        &["v1/users", "-X", "GET", "-X", "POST"],
        &["v1/search", "-d", "{}", "--data={}"],
        &["v1/search", "-d", "{}", "a=b"],
        &["v1/search", "-d", "-X"],
        &["v1/search", "-d", "[]"],
        &["v1/search", "-d"],
        &["v1/search", "x"],
        &["v1/users", "a==b:=c"],
        &["v1/search", "a.b=c"],
        &["v1/search", "a[9]=c"],
        &["v1/search", "a=b", "a[c]=d"],
        &["v1/users", "--notion-version", "latest"],
        &["v1/users", "--", "x"],
        &["v1/users", "-"],
        &["ls", "--json"],
        &["ls", "x=y"],
        &["help"],
        &[],
    ] {
        refused("api", words);
    }
    let text = refused("api", &["v1/pages/a", "-X", "patch"]);
    assert!(text.contains("only GET and read-only POST are proxied (use page.create / page.update for writes); detected method 'PATCH'"), "{text}");
    assert!(refused("api", &["v1/x", "\u{1b}[2J:x"]).contains("\\x1b[2J"));
    let long = format!("a{}=x", "[b]".repeat(1000));
    refused("api", &["v1/search", &long]);
    assert_eq!(ask_for("api", &["v1/search"], Some("{}")).unwrap_err().exit_code, 65);
}

#[test]
fn relay_19_37_creating_a_page_asks_and_names_everything() {
    let parent = format!("page:{BARE}");
    let (args, body, ask) = written(
        "page.create",
        &["--parent", &parent, "--content", "intro\n# Plan  \nx", "--json"],
        None,
    );
    assert_eq!(args, ["api", "-X", "POST", "--notion-version=2026-03-11", "--", "v1/pages"]);
    assert_eq!(
        body,
        json!({
            "parent": { "type": "page_id", "page_id": PAGE },
            "markdown": "intro\n# Plan  \nx",
        })
    );
    assert_eq!(ask.title, "Create a Notion page");
    assert_eq!(ask.target, format!("page {PAGE} in Notion"));
    assert_eq!(ask.facts, [fact("Title", "Plan"), fact("Parent", format!("page {PAGE}"))]);
    assert_eq!(ask.body.as_deref(), Some("intro\n# Plan  \nx"));
    assert_eq!(ask.tier, Tier::Routine);
    let remember = ask.remember.unwrap();
    assert_eq!(remember.exact.key, format!("page {PAGE}"));
    assert_eq!(remember.kind.unwrap().what, "create pages in Notion");

    let (_, body, ask) = written(
        "page.create",
        &["--parent", &format!("data-source:{PAGE}"), "--title", "@/etc/passwd"],
        Some("--x"),
    );
    assert_eq!(
        body,
        json!({
            "parent": { "type": "data_source_id", "data_source_id": PAGE },
            "properties": { "title": { "title": [{ "text": { "content": "@/etc/passwd" } }] } },
            "markdown": "--x",
        })
    );
    assert_eq!(ask.facts[0], fact("Title", "@/etc/passwd"));
    assert_eq!(ask.target, format!("data source {PAGE} in Notion"));

    for words in [
        &["--content", "x"][..],
        &["--parent", &parent],
        &["--parent", PAGE, "--content", "x"],
        &["--parent", "workspace:true", "--content", "x"],
        &["--parent", "page:../x", "--content", "x"],
        &["--parent", &parent, "--content", "x", "--file", "/etc/passwd"],
        &["--parent", &parent, "--content", "x", "-X", "DELETE"],
        &["--parent", &parent, "--content", "x", "y"],
        &["--parent", &parent, "--title", ""],
    ] {
        refused("page.create", words);
    }
}

#[test]
fn updating_a_page_is_one_thing_at_a_time() {
    let (args, body, ask) = written("page.update", &[BARE, "--content", "new"], None);
    assert_eq!(args[2], "PATCH");
    assert_eq!(args[5], format!("v1/pages/{PAGE}/markdown"));
    assert_eq!(body, json!({ "type": "replace_content", "replace_content": { "new_str": "new" } }));
    assert_eq!(ask.warnings, ["replaces everything that is on the page now"]);
    assert_eq!(ask.tier, Tier::Routine);

    let (args, body, _) = written("page.update", &["--title=T", PAGE], None);
    assert_eq!(args[5], format!("v1/pages/{PAGE}"));
    assert_eq!(
        body,
        json!({ "properties": { "title": { "title": [{ "text": { "content": "T" } }] } } })
    );

    let (args, body, ask) = written("page.update", &[PAGE, "--archive"], None);
    assert_eq!(args[5], format!("v1/pages/{PAGE}"));
    assert_eq!(body, json!({ "in_trash": true }));
    assert_eq!((ask.tier, ask.remember), (Tier::Sensitive, None));

    for words in [
        &[PAGE][..],
        &["--content", "x"],
        &[PAGE, "--content", "x", "--archive"],
        &[PAGE, "--content", "x", "--title", "y"],
        &["abc", "--content", "x"],
        &["../pages", "--archive"],
        &[PAGE, "--erase"],
    ] {
        refused("page.update", words);
    }
    assert!(ask_for("page.update", &[PAGE, "--content", "x"], Some("y")).is_err());
}

#[test]
fn comments_go_to_a_page_or_a_discussion() {
    let (args, body, ask) =
        written("comment.add", &["--page", BARE, "--text", "@/etc/passwd"], None);
    assert_eq!(args[5], "v1/comments");
    assert_eq!(
        body,
        json!({
            "parent": { "type": "page_id", "page_id": PAGE },
            "rich_text": [{ "text": { "content": "@/etc/passwd" } }],
        })
    );
    assert_eq!(ask.title, "Comment in Notion");
    assert_eq!(ask.body.as_deref(), Some("@/etc/passwd"));

    let long = "ü".repeat(4001);
    let (_, body, ask) = written("comment.add", &["--discussion", PAGE], Some(&long));
    assert_eq!(body["discussion_id"], PAGE);
    let pieces = body["rich_text"].as_array().unwrap();
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[2]["text"]["content"], "ü");
    assert_eq!(ask.target, format!("discussion {PAGE} in Notion"));

    for words in [
        &["--text", "x"][..],
        &["--page", PAGE],
        &["--page", PAGE, "--text", " "],
        &["--page", PAGE, "--discussion", PAGE, "--text", "x"],
        &["--page", "x", "--text", "x"],
        &["--page", PAGE, "--text", "x", "--file", "y"],
    ] {
        refused("comment.add", words);
    }
    assert!(ask_for("comment.add", &["--page", PAGE], Some(&"x".repeat(200_001))).is_err());
}

#[test]
fn who_am_i_is_one_request() {
    let (args, body) = run(ask_for("whoami", &[], None).unwrap().action);
    assert_eq!(args, WHOAMI);
    assert_eq!(body, None);
    assert!(WHOAMI.contains(&format!("--notion-version={VERSION}").as_str()));
    refused("whoami", &["x"]);
}

#[test]
fn a_text_beside_the_arguments_is_held_to_the_same() {
    for (op, words) in [
        ("page.create", &["--parent", &format!("page:{PAGE}")][..]),
        ("page.update", &[PAGE]),
        ("comment.add", &["--page", PAGE]),
    ] {
        assert!(ask_for(op, words, Some("text")).is_ok(), "{op}");
        assert_eq!(ask_for(op, words, Some("a\0b")).unwrap_err().exit_code, 65, "{op}");
    }
}

#[test]
fn ids_have_one_form() {
    assert_eq!(id(BARE).as_deref(), Some(PAGE));
    assert_eq!(id(PAGE).as_deref(), Some(PAGE));
    for bad in [
        "",
        "abc",
        "1a2b3c4d0000400080000000000abcd-",
        &format!("{PAGE}0"),
        "g".repeat(32).as_str(),
        "٣".repeat(32).as_str(),
    ] {
        assert_eq!(id(bad), None, "{bad:?}");
    }
}

/// Words that could confuse: flags in every form, endpoints, inputs, anything.
fn word() -> impl Strategy<Value = String> {
    let known = "(-X|-XGET|-X=POST|--method=PATCH|--method|GET|POST|-d|-d\\{\\}|--data=\\{\\}|\\{\\}|v1/search|v1/pages|/v1/users|--|-v|--input|--env|a=b|a==b|a:=1|A:b|a=b==c|a==b:=c|ls|--notion-version|2022-06-28)";
    prop_oneof![6 => known, 1 => "-{0,2}[a-z=@:]{0,6}", 1 => ".{0,8}"]
}

proptest! {
    #[test]
    fn relay_a13_no_line_makes_a_write_of_a_read(words in prop::collection::vec(word(), 0..7)) {
        match (CONNECTOR.op("api").unwrap().parse)(&Input { args: &words, stdin: None }) {
            Err(refusal) => prop_assert!(!refusal.text.chars().any(char::is_control)),
            Ok(prepared) => {
                let (args, body) = run(prepared.action);
                if args.len() == 2 {
                    let harmless = matches!(args[1].as_str(), "ls" | "--help" | "--version");
                    prop_assert!(harmless);
                    return Ok(());
                }
                let end = args.iter().position(|a| a == "--").unwrap();
                let endpoint = args[end + 1].as_str();
                prop_assert_eq!(&args[..2], ["api", "-X"]);
                match args[2].as_str() {
                    "GET" => prop_assert!(body.is_none()),
                    "POST" => prop_assert_eq!(endpoint, "v1/search"),
                    other => prop_assert!(false, "{}", other),
                }
                prop_assert!(endpoint.starts_with("v1/"));
                for query in &args[end + 2..] {
                    let at = query.find(['=', ':']).unwrap();
                    prop_assert!(query[at..].starts_with("==") && !query.contains(":="));
                }
            }
        }
    }

    #[test]
    fn a_read_the_host_makes_reads_as_the_same(words in prop::collection::vec(word(), 0..7)) {
        let parse = CONNECTOR.op("api").unwrap().parse;
        if let Ok(prepared) = parse(&Input { args: &words, stdin: None }) {
            let Action::Run { args, stdin } = &prepared.action else { panic!() };
            let body = stdin.iter().map(|body| format!("--data={body}"));
            let again = args[1..].iter().filter(|word| *word != "--").cloned().chain(body);
            let again: Vec<String> = again.collect();
            prop_assert_eq!(&parse(&Input { args: &again, stdin: None }).unwrap(), &prepared);
        }
    }

    #[test]
    fn a_number_in_a_body_stays_what_it_is(number in any::<f64>(), inline in any::<bool>()) {
        prop_assume!(number.is_finite());
        let number = Json::from(number);
        let words = if inline {
            vec!["v1/search".to_owned(), format!("n:={number}")]
        } else {
            vec!["v1/search".to_owned(), "-d".to_owned(), json!({ "n": number }).to_string()]
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Action::Run { stdin, .. } = ask_for("api", &words, None).unwrap().action else { panic!() };
        prop_assert_eq!(stdin.unwrap(), json!({ "n": number }).to_string());
    }

    #[test]
    fn a_write_in_its_one_form_is_the_same_write(
        op in 0..3_usize,
        words in prop::collection::vec(write_word(), 0..5),
        beside in prop::option::of(".{0,9}"),
    ) {
        let (name, grammar, text) = [
            ("page.create", &CREATE, "--content"),
            ("page.update", &UPDATE, "--content"),
            ("comment.add", &COMMENT, "--text"),
        ][op];
        let parse = CONNECTOR.op(name).unwrap().parse;
        if let Ok(prepared) = parse(&Input { args: &words, stdin: beside.as_deref() }) {
            let mut line = grammar.parse(&words).unwrap();
            if let Some(beside) = beside {
                line.set(text, Some(beside));
            }
            let again = parse(&Input { args: &line.argv(), stdin: None });
            prop_assert_eq!(&again.unwrap(), &prepared);
            let (args, body) = run(prepared.action);
            prop_assert_eq!(&args[..2], ["api", "-X"]);
            prop_assert_eq!(&args[3..5], ["--notion-version=2026-03-11", "--"]);
            prop_assert!(args.len() == 6 && body.is_some(), "{:?}", args);
            let id = args[5].split('/').find(|part| part.len() > 30);
            prop_assert!(id.is_none_or(|part| id_of(part) == part), "{:?}", args);
        }
    }
}

fn id_of(text: &str) -> String {
    id(text).unwrap()
}

fn write_word() -> impl Strategy<Value = String> {
    let known = format!(
        "(--parent=(page|database|data-source):({PAGE}|{BARE})|--(page|discussion)=({PAGE}|{BARE})|{PAGE}|{BARE}|--title=.{{0,5}}|--title|--content|--content=.{{0,5}}|--text=.{{0,5}}|--archive|--json|--)"
    );
    prop_oneof![8 => proptest::string::string_regex(&known).unwrap(), 1 => ".{0,8}"]
}
