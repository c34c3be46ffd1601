//! Commands of services as an agent types them, and `agentbox-ctl integration`.

use crate::support::{TestBox, TestRelay, respond, run, said};
use connectors::registry::CONNECTORS;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

const FINE: &str = r#"{"exitCode":0,"stdout":"{}\n","stderr":""}"#;
const LIST: &str = "5abbe4b7ddc1b351ef961414";

#[test]
fn a_command_becomes_a_call_from_where_it_was_typed() {
    let at = TestBox::new();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    let path = at.workspace();
    for (name, words, method, args) in [
        (
            "trello",
            &["card", "list", "--list", LIST][..],
            "integration.trello.card.list",
            json!(["--list", LIST]),
        ),
        ("clickup", &["task", "view", "86abc"], "integration.clickup.task.view", json!(["86abc"])),
        ("gh", &["pr", "view", "7"], "gh.pr.view", json!(["7"])),
        ("linear", &["team", "list"], "integration.linear.team.list", json!(null)),
        ("ntn", &["whoami"], "integration.notion.whoami", json!(null)),
        ("notion", &["whoami"], "integration.notion.whoami", json!(null)),
    ] {
        let answer = said(&mut at.called(name, words));
        assert_eq!(
            (answer.code, answer.stdout.as_str(), answer.stderr.as_str()),
            (0, "{}\n", ""),
            "{name}"
        );
        let seen = relay.next().body;
        assert_eq!(seen["method"], method);
        assert_eq!(seen["params"]["path"], path.to_str().unwrap());
        assert_eq!(seen["params"]["args"], args, "{name}");
        // The same by the long way.
        let long: Vec<&str> = [&[name], words].concat();
        assert_eq!(said(&mut at.ctl(&long)).code, 0);
        assert_eq!(relay.next().body, seen, "{name}");
    }
}

#[test]
fn what_the_host_says_is_given_back() {
    let at = TestBox::new();
    let denied = r#"{"exitCode":10,"stdout":"","stderr":"denied by user\n"}"#;
    let _relay = TestRelay::answering(&at, "200 OK", denied);
    let answer = said(&mut at.called("trello", &["card", "comment", LIST, "--text", "x"]));
    assert_eq!((answer.code, answer.stderr.as_str()), (10, "denied by user\n"));
}

#[test]
fn mistakes_and_help_need_no_host() {
    let at = TestBox::new();
    for (name, words) in [
        ("trello", &["card", "delete", LIST][..]),
        ("trello", &["card", "view", "../../tokens"]),
        ("clickup", &["task", "create", "--list", "1", "--name", "x", "--attach", "/etc/passwd"]),
        ("linear", &["auth", "token"]),
        ("gh", &["secret", "list"]),
    ] {
        let answer = said(&mut at.called(name, words));
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{name} {words:?}");
        assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    }
    for name in ["gh", "ntn", "notion", "linear", "trello", "clickup"] {
        let help = said(&mut at.called(name, &["--help"]));
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{name}");
        assert!(help.stdout.len() > 200, "{name}");
    }
}

#[test]
fn files_and_standard_input_are_the_boxes() {
    let at = TestBox::new();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    std::fs::write(at.workspace().join("notes.md"), "# Notes\n").unwrap();
    let file = ["card", "comment", LIST, "--text-file", "notes.md"];
    assert_eq!(said(&mut at.called("trello", &file)).code, 0);
    assert_eq!(relay.next().body["params"]["args"], json!([LIST, "--text=# Notes\n"]));

    let piped = ["card", "comment", LIST, "--text-file", "-"];
    let (answer, _) = run(&mut at.called("trello", &piped), b"from a pipe");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(relay.next().body["params"]["args"], json!([LIST, "--text=from a pipe"]));

    let (answer, _) = run(&mut at.called("trello", &piped), &vec![b'x'; 600 * 1024]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("longer than"), "{}", answer.stderr);
    let (answer, _) = run(&mut at.called("trello", &piped), b"\xff\xfe");
    assert_eq!(answer.code, 2);
    let none = ["card", "comment", LIST, "--text-file", "none.md"];
    assert_eq!(said(&mut at.called("trello", &none)).code, 2);
    assert!(relay.is_quiet_for(Duration::from_millis(50)));
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let at = TestBox::new();
    let word = std::ffi::OsStr::from_bytes(b"a\xffb");
    assert_eq!(said(at.called("trello", &["card", "view"]).arg(word)).code, 2);
    assert_eq!(said(at.ctl(&["integration", "trello"]).arg(word)).code, 64);
}

#[test]
fn integration_lists_and_calls() {
    let at = TestBox::new();
    let all = said(&mut at.ctl(&["integration"]));
    assert_eq!((all.code, all.stderr.as_str()), (0, ""));
    for connector in CONNECTORS {
        for op in connector.ops {
            let line = format!("agentbox-ctl integration {} {}", connector.service, op.info.name);
            assert!(all.stdout.contains(&line), "{line}");
        }
        let one = said(&mut at.ctl(&["integration", connector.service]));
        assert!(one.stdout.starts_with(connector.service) && all.stdout.contains(&one.stdout));
    }
    let unknown = said(&mut at.ctl(&["integration", "asana"]));
    assert_eq!(unknown.code, 64);
    assert!(unknown.stderr.contains("trello, clickup"), "{}", unknown.stderr);

    let relay = TestRelay::answering(&at, "200 OK", FINE);
    // One separator is ours; whatever has the shape of a call is the host's to refuse.
    for (words, method, args) in [
        (
            &["trello", "card.view", "--", "aB3dE6gH"][..],
            "integration.trello.card.view",
            json!(["aB3dE6gH"]),
        ),
        (
            &["trello", "card.view", "--", "--", "-x"],
            "integration.trello.card.view",
            json!(["--", "-x"]),
        ),
        (&["nobody", "knows", "--this"], "integration.nobody.knows", json!(["--this"])),
    ] {
        assert_eq!(said(&mut at.ctl(&[&["integration"], words].concat())).code, 0);
        let seen = relay.next().body;
        assert_eq!((&seen["method"], &seen["params"]["args"]), (&json!(method), &args));
        assert_eq!(seen["params"].get("stdin"), None);
    }
    let mut piped =
        at.ctl(&["integration", "--stdin", "notion", "page.create", "--parent", "page:x"]);
    let (answer, _) = run(&mut piped, "Ünïcode".as_bytes());
    assert_eq!(answer.code, 0);
    assert_eq!(relay.next().body["params"]["stdin"], "Ünïcode");
}

/// The first line of a command whose relay takes longer than two seconds.
fn first_line(at: &TestBox, name: &str, words: &[&str]) -> String {
    let mut command = at.called(name, words);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    line
}

#[test]
fn whoever_waits_is_told_for_what() {
    let at = TestBox::new().with_commit();
    let _relay = TestRelay::raw(&at, |_, stream| {
        // Each in its own time: the commands below run side by side.
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2300));
            respond(stream, "200 OK", FINE);
        });
    });
    let asked = "waiting for approval on the host…\n";
    let read = "waiting for the host…\n";
    std::thread::scope(|scope| {
        let lines = [
            (asked, "trello", &["card", "comment", LIST, "--text", "x"][..]),
            (asked, "git", &["push"]),
            (read, "trello", &["whoami"]),
            (read, "git", &["fetch"]),
        ]
        .map(|(line, name, words)| (line, name, scope.spawn(|| first_line(&at, name, words))));
        for (line, name, said) in lines {
            assert_eq!(said.join().unwrap(), line, "{name}");
        }
    });
}
