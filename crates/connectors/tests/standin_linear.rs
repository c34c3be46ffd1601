//! The connector's arguments against a program that takes them apart as strictly as `linear` does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod http;

use agentbox_connectors::connector::{Action, Input, Means};
use agentbox_connectors::linear::CONNECTOR;
use http::Service;
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

const STANDIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/standins/linear");

struct World {
    service: Service,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let service = Service::start(r#"{"data":{}}"#);
        Self { service, folder: tempfile::tempdir().unwrap() }
    }

    fn linear(&self, args: &[impl AsRef<str>]) -> Output {
        let mut command = Command::new(STANDIN);
        command.args(args.iter().map(AsRef::as_ref)).env_clear().current_dir(self.folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("LINEAR_API_KEY", "lin_test");
        command.env("LINEAR_GRAPHQL_ENDPOINT", &self.service.address);
        command.env("LINEAR_STANDIN_LOG", self.folder.path().join("log"));
        command.output().expect("python3 is missing")
    }

    /// The GraphQL document and the variables an operation sends.
    fn asked(&self, op: &str, words: &[&str], stdin: Option<&str>) -> (String, Json) {
        let args: Vec<String> = words.iter().map(ToString::to_string).collect();
        let prepared = (CONNECTOR.op(op).unwrap().parse)(&Input { args: &args, stdin });
        let prepared = prepared.unwrap_or_else(|e| panic!("{op} {words:?}: {e}"));
        let Action::Run { args, stdin: None } = prepared.action else { panic!("{op}") };
        let output = self.linear(&args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        let request = self.service.request();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/"));
        assert_eq!(request.header("authorization"), Some("lin_test"));
        let body = request.json().unwrap();
        (body["query"].as_str().unwrap().to_owned(), body["variables"].clone())
    }
}

#[test]
fn every_operation_is_understood() {
    let world = World::new();
    let Means::Cli(program) = &CONNECTOR.means else { panic!("no program") };
    assert!(world.linear(program.version_args).status.success());
    assert!(world.linear(program.auth_args).status.success());
    assert!(world.service.request().json().is_some());

    assert!(world.asked("whoami", &[], None).0.contains("viewer"));
    assert!(world.asked("team.list", &[], None).0.contains("teams"));
    let (_, sent) =
        world.asked("issue.list", &["-s", "started", "-l", "-x", "-A", "--team", "ENG"], None);
    assert_eq!(sent["filter"]["label"], json!(["-x"]));
    let (_, sent) = world.asked("issue.mine", &["--limit", "5", "--cycle", "active"], None);
    assert_eq!(sent["filter"]["limit"], "5");
    let (_, sent) = world.asked("issue.query", &["--search", "--web", "--all-teams", "-j"], None);
    assert_eq!(sent["filter"]["search"], "--web");
    let (_, sent) = world.asked("issue.view", &["--no-comments", "eng-1", "-j"], None);
    assert_eq!(sent["id"], "ENG-1");

    let line = [
        "-t",
        "--start",
        "-d",
        "@/etc/hostname\n=x",
        "--team",
        "ENG",
        "-l",
        "a",
        "-l",
        "b",
        "--no-use-default-template",
    ];
    let (query, sent) = world.asked("issue.create", &line, None);
    assert!(query.starts_with("mutation"));
    let input = json!({ "title": "--start", "description": "@/etc/hostname\n=x", "team": "ENG", "label": ["a", "b"] });
    assert_eq!(sent["input"], input);
    let (_, sent) = world.asked("issue.update", &["ENG-1", "--state", "Done"], Some("text"));
    assert_eq!(sent, json!({ "id": "ENG-1", "input": { "state": "Done", "description": "text" } }));
    let (_, sent) = world.asked("issue.comment", &["ENG-1", "-b", "--body-file=/etc/passwd"], None);
    assert_eq!(sent["input"], json!({ "issueId": "ENG-1", "body": "--body-file=/etc/passwd" }));
    let long = "x".repeat(100 * 1024);
    let (_, sent) = world.asked("issue.comment", &["ENG-1"], Some(&long));
    assert_eq!(sent["input"]["body"], long.as_str());
}

#[test]
fn relay_19_41_queries_arrive_with_their_variables() {
    let world = World::new();
    let line = [
        "# c\nquery Q($k: Int) { issue(id: \"-x\", n: $k) { id } }",
        "--variable",
        "k=5",
        "--variable=t=a b",
    ];
    let (query, sent) = world.asked("api", &line, None);
    assert_eq!(query, "query Q($k:Int){issue(id:\"-x\" n:$k){id}}");
    assert_eq!(sent, json!({ "k": 5, "t": "a b" }));
    let (_, sent) =
        world.asked("api", &["--variables-json", r#"{"a":"@/etc/hostname"}"#, "{ x }"], None);
    assert_eq!(sent, json!({ "a": "@/etc/hostname" }));
}

#[test]
fn the_traps_are_real() {
    let world = World::new();
    for words in [
        &["issue", "view", "--", "ENG-1"][..],
        &["issue", "update", "ENG-1", "--title=", "--state=x", "--title=y"],
        &["issue", "view", "ENG-1", "--nonsense"],
        &["issue", "mine", "--json"],
        &["issue", "delete", "ENG-1"],
    ] {
        assert!(!world.linear(words).status.success(), "{words:?}");
    }
    // These do work there, which is why no operation can spell them.
    let output = world.linear(&["auth", "token"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "lin_test");
    let log = std::fs::read_to_string(world.folder.path().join("log")).unwrap();
    let last: Json = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["argv"], json!(["auth", "token"]));
    assert!(world.service.was_left_alone());
}
