//! Calls to the relay: what is sent, what comes back, what happens when nothing does.

use crate::support::{LIMIT, Running, TestBox, TestRelay, respond, run, said};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc::channel;

#[test]
fn a_call_is_sent_and_its_answer_given_back() {
    let at = TestBox::new();
    let body = r#"{"exitCode":7,"stdout":"out","stderr":"err\n"}"#;
    let relay = TestRelay::answering(&at, "200 OK", body);
    let said = said(&mut at.ctl(&["rpc", "some.thing", r#"{"a":[1]}"#]));
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (7, "out", "err\n"));
    let seen = relay.next();
    assert_eq!(seen.body, serde_json::json!({"method": "some.thing", "params": {"a": [1]}}));
    assert!(seen.head.starts_with("POST /rpc HTTP/1.1\r\n"));
    let bearer = format!("Authorization: Bearer {}", "ab".repeat(32));
    for line in ["Host: agentbox", "Content-Type: application/json", "Connection: close", &bearer] {
        assert!(seen.head.contains(&format!("\r\n{line}\r\n")), "{line}");
    }
}

#[test]
fn relay_19_58_a_host_that_goes_away_gives_126() {
    let line = "agentbox: the host went away before it answered; nothing was decided. \
                Run the command again.\n";
    let at = TestBox::new();
    let _relay = TestRelay::raw(&at, |_, stream| drop(stream));
    let gone = said(&mut at.ctl(&["rpc", "x"]));
    assert_eq!((gone.code, gone.stderr.as_str()), (126, line));

    let at = TestBox::new();
    let _relay = TestRelay::raw(&at, |_, mut stream| {
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"exitCode\":0";
        std::io::Write::write_all(&mut stream, half).unwrap();
    });
    let half = said(&mut at.shim(&["push"]));
    assert_eq!((half.code, half.stderr.as_str()), (126, line));
}

#[test]
fn no_host_is_126_and_no_token_is_65() {
    let at = TestBox::new();
    let away = said(&mut at.ctl(&["rpc", "x"]));
    assert_eq!(away.code, 126);
    assert!(away.stderr.contains("cannot reach the host"));
    std::fs::write(at.path("token"), "short").unwrap();
    assert_eq!(said(&mut at.ctl(&["rpc", "x"])).code, 65);
    std::fs::remove_file(at.path("token")).unwrap();
    let none = said(&mut at.ctl(&["rpc", "x"]));
    assert_eq!((none.code, none.stderr.lines().count()), (65, 1));
}

#[test]
fn a_relay_that_did_not_decide_is_1() {
    let at = TestBox::new();
    let _relay = TestRelay::answering(&at, "401 Unauthorized", r#"{"error":"unknown box token"}"#);
    let said = said(&mut at.ctl(&["rpc", "x"]));
    assert_eq!(said.code, 1);
    assert_eq!(said.stderr, "relay returned 401: unknown box token\n");
}

#[test]
fn waiting_for_a_person_is_said_once() {
    let at = TestBox::new();
    let (noticed, wait) = channel();
    let _relay = TestRelay::raw(&at, move |_, stream| {
        wait.recv_timeout(LIMIT).unwrap();
        respond(stream, "200 OK", r#"{"exitCode":10,"stderr":"denied by user\n"}"#);
    });
    let mut command = at.ctl(&["rpc", "git.push"]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut child = Running(child);
    let mut stderr = BufReader::new(child.0.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for approval on the host…\n");
    noticed.send(()).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "denied by user\n");
    assert_eq!(child.0.wait().unwrap().code(), Some(10));
}

#[test]
fn a_huge_answer_is_refused() {
    let at = TestBox::new();
    let _relay = TestRelay::raw(&at, |_, mut stream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
        let _ = std::io::Write::write_all(&mut stream, head);
        let block = vec![b'x'; 1024 * 1024];
        while std::io::Write::write_all(&mut stream, &block).is_ok() {}
    });
    let (said, _) = run(&mut at.ctl(&["rpc", "x"]), b"");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("larger than"), "{}", said.stderr);
}
