//! The real `ntn` does what the connector's tables say it does: each operation's arguments, given
//! to it as they are, make the request that was meant.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod http;

use agentbox_connectors::connector::{Action, Input, Means};
use agentbox_connectors::notion::CONNECTOR;
use http::{Request, Service};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

const PAGE: &str = "1a2b3c4d-0000-4000-8000-00000000abcd";

struct World {
    service: Service,
    home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let service = Service::start(r#"{"object":"user"}"#);
        Self { service, home: tempfile::tempdir().unwrap() }
    }

    fn ntn(&self, args: &[impl AsRef<str>], stdin: Option<&str>, token: Option<&str>) -> Output {
        let mut command = Command::new("ntn");
        command.args(args.iter().map(AsRef::as_ref)).env_clear().current_dir(self.home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home.path());
        // Whatever it would look up elsewhere, it does not find.
        command.env("NOTION_API_DOCS_BASE_URL", "http://127.0.0.1:1");
        command.env("NOTION_API_BASE_URL", &self.service.address).env("NOTION_KEYRING", "0");
        command.envs(token.map(|t| ("NOTION_API_TOKEN", t)));
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("ntn is missing; 'scripts/deps test' installs it");
        if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
            pipe.write_all(text.as_bytes()).unwrap();
        }
        child.wait_with_output().unwrap()
    }

    /// What the service gets when a box asks for an operation.
    fn asked(&self, op: &str, words: &[&str], stdin: Option<&str>) -> Request {
        let args: Vec<String> = words.iter().map(ToString::to_string).collect();
        let prepared = (CONNECTOR.op(op).unwrap().parse)(&Input { args: &args, stdin });
        let prepared = prepared.unwrap_or_else(|e| panic!("{op} {words:?}: {e}"));
        let Action::Run { args, stdin } = prepared.action else { panic!("no program") };
        let output = self.ntn(&args, stdin.as_deref(), Some("ntn_test"));
        assert!(output.status.success(), "{args:?}: {output:?}");
        let request = self.service.request();
        assert_eq!(request.header("authorization"), Some("Bearer ntn_test"));
        request
    }
}

fn check(request: &Request, method: &str, path: &str, body: Option<Json>) {
    assert_eq!((request.method.as_str(), request.path.as_str()), (method, path));
    assert_eq!(request.json(), body);
}

#[test]
fn a_login_is_seen() {
    let world = World::new();
    let Means::Cli(program) = &CONNECTOR.means else { panic!("no program") };
    let version = world.ntn(program.version_args, None, None);
    assert!(version.status.success() && version.stdout.starts_with(b"ntn "), "{version:?}");
    assert!(!world.ntn(program.auth_args, None, None).status.success());
    assert!(world.service.was_left_alone());
    assert!(world.ntn(program.auth_args, None, Some("ntn_test")).status.success());
    check(&world.service.request(), "GET", "/v1/users/me", None);
}

#[test]
fn relay_19_35_reads_make_the_request_that_was_meant() {
    let world = World::new();
    check(&world.asked("whoami", &[], None), "GET", "/v1/users/me", None);
    let request =
        world.asked("api", &["v1/databases/abc", "page_size==50", "a[]==x:y=&z", "q==="], None);
    check(&request, "GET", "/v1/databases/abc?page_size=50&a%5B%5D=x%3Ay%3D%26z&q=%3D", None);
    assert_eq!(request.header("notion-version"), Some("2026-03-11"));
    let request = world.asked("api", &["v1/users/me", "--notion-version=2022-06-28", "-v"], None);
    assert_eq!(request.header("notion-version"), Some("2022-06-28"));
    let request = world.asked("api", &["/v1/search", "-d", r#"{"query":"@/etc/hostname"}"#], None);
    check(&request, "POST", "/v1/search", Some(json!({ "query": "@/etc/hostname" })));
    let request = world.asked("api", &["v1/search", "-X", "POST"], None);
    check(&request, "POST", "/v1/search", Some(json!({})));
    // Without a body, ours is a GET whatever the endpoint; ntn's own guess is never used.
    check(&world.asked("api", &["v1/search"], None), "GET", "/v1/search", None);
}

#[test]
fn inline_inputs_mean_to_us_what_they_mean_to_ntn() {
    let world = World::new();
    for inputs in [
        &["a=b", "a=c"][..],
        &["a[b]=c", "a[d]:=5", "e:=null"],
        &["l[]=x", "l[]=y", "l[1]=z", "l[2][k]=v"],
        &["m[][x]=1", "m[][y]=2"],
        &["q=", "a b=3", "a[ b ]=1", "u[é]=2"],
        &["a[b]=c", "a=5"],
        &["a[0]:={\"x\":1}", "a[0][y]=2", "page==2"],
    ] {
        let mut words = vec!["api", "-X", "POST", "--notion-version=2026-03-11", "v1/search"];
        words.extend(inputs);
        let output = world.ntn(&words, None, Some("ntn_test"));
        assert!(output.status.success(), "{inputs:?}: {output:?}");
        let theirs = world.service.request();
        let mut words = vec!["v1/search"];
        words.extend(inputs);
        check(&world.asked("api", &words, None), "POST", &theirs.path, theirs.json());
    }
}

#[test]
fn relay_19_37_writes_make_the_request_that_was_shown() {
    let world = World::new();
    let parent = format!("page:{PAGE}");
    let content = "# T\n--help @/etc/hostname \u{1f600} \"quoted\"";
    let request = world.asked("page.create", &["--parent", &parent, "--content", content], None);
    let body = json!({ "parent": { "type": "page_id", "page_id": PAGE }, "markdown": content });
    check(&request, "POST", "/v1/pages", Some(body));
    assert_eq!(request.header("notion-version"), Some("2026-03-11"));

    let title = json!({ "title": { "title": [{ "text": { "content": "@T" } }] } });
    let request = world.asked("page.create", &["--parent", &parent, "--title", "@T"], None);
    assert_eq!(request.json().unwrap()["properties"], title);

    let request = world.asked("page.update", &[PAGE, "--content", "x"], None);
    let body = json!({ "type": "replace_content", "replace_content": { "new_str": "x" } });
    check(&request, "PATCH", &format!("/v1/pages/{PAGE}/markdown"), Some(body));
    let request = world.asked("page.update", &[PAGE, "--title", "@T"], None);
    check(&request, "PATCH", &format!("/v1/pages/{PAGE}"), Some(json!({ "properties": title })));
    let request = world.asked("page.update", &[PAGE, "--archive"], None);
    check(&request, "PATCH", &format!("/v1/pages/{PAGE}"), Some(json!({ "in_trash": true })));

    let request = world.asked("comment.add", &["--discussion", PAGE, "--text", "-d"], None);
    let body = json!({ "discussion_id": PAGE, "rich_text": [{ "text": { "content": "-d" } }] });
    check(&request, "POST", "/v1/comments", Some(body));
    let request = world.asked("comment.add", &["--page", PAGE, "--text", "hi"], None);
    assert_eq!(request.json().unwrap()["parent"]["page_id"], PAGE);
}

#[test]
fn a_long_page_arrives_whole() {
    let world = World::new();
    let content = "lorem ipsum \u{e4}\n".repeat(512 * 1024 / 15);
    let parent = format!("data-source:{PAGE}");
    let request = world.asked("page.create", &["--parent", &parent], Some(&content));
    let body = request.json().unwrap();
    assert_eq!(body["markdown"], content.as_str());
    assert_eq!(body["parent"]["data_source_id"], PAGE);
}

#[test]
fn questions_about_the_program_make_no_request() {
    let world = World::new();
    for words in [["--help"], ["--version"]] {
        let args = words.map(String::from);
        let prepared = (CONNECTOR.op("api").unwrap().parse)(&Input { args: &args, stdin: None });
        let Action::Run { args, .. } = prepared.unwrap().action else { panic!("no program") };
        assert!(world.ntn(&args, None, Some("ntn_test")).status.success());
    }
    assert!(world.service.was_left_alone());
}
