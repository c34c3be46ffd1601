//! Questions: shown whole, answered by id with the digest that was shown, never by accident.

use crate::support::{Ended, FakeHost, Terminal, a_question, a_status};
use protocol::control::{ControlError, ErrorCode, HostEvent, Request};
use protocol::question::{Grant, Question};

fn host_with(open: Vec<Question>) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::Questions => call.result(&open),
        _ => call.result(&()),
    })
}

#[test]
fn approvals_shows_the_whole_question() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["approvals"]).exits(0);
    for part in [
        "■ fix-login · project",
        "Push 1 commit to origin/fix-login",
        "github.com/acme/shop-api",
        "9f31c02 Check expiry",
        "    git push origin\n",
        "agentbox approve 3fa9c1d2",
    ] {
        assert!(output.stdout.contains(part), "no {part:?} in {output:?}");
    }
    let json = host.run(&["approvals", "--json"]).exits(0).json();
    assert_eq!(json["questions"][0]["digest"], "the-digest");
    host_with(vec![]).run(&["approvals"]).exits(0).prints("").says("No questions");
}

#[test]
fn approve_answers_what_was_fetched() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["approve", "3fa9"]).exits(0);
    assert_eq!(
        output.stdout,
        "allowed once  fix-login: Push 1 commit to origin/fix-login (github.com/acme/shop-api)\n"
    );
    let answer = host.asked_once("answer");
    assert_eq!(answer["id"], "3fa9c1d2000000000000000000000001");
    assert_eq!(answer["digest"], "the-digest");
    assert_eq!(answer["verdict"], serde_json::json!({"kind": "allowOnce"}));
    assert_eq!(answer["surface"], "cli");
}

#[test]
fn approve_for_a_while_and_with_a_digest() {
    let host = host_with(vec![a_question()]);
    host.run(&["approve", "fix-login", "--for", "2d", "--digest", "other"]).exits(0);
    let answer = host.asked_once("answer");
    assert_eq!(answer["verdict"], serde_json::json!({"kind": "allowFor", "seconds": 172_800}));
    assert_eq!(answer["digest"], "other");
}

#[test]
fn deny_denies() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["deny", "fix-login"]).exits(0);
    assert!(output.stdout.starts_with("denied  fix-login"), "{output:?}");
    assert_eq!(host.asked_once("answer")["verdict"]["kind"], "deny");
}

#[test]
fn an_answer_that_comes_too_late_says_so() {
    let host = FakeHost::new(|request, call| match request {
        Request::Questions => call.result(&vec![a_question()]),
        _ => call.error(&ControlError::new(ErrorCode::NotPending, "no such question is open")),
    });
    host.run(&["approve", "3fa9c1d2"]).exits(1).says("answered elsewhere");
}

#[test]
fn nothing_is_answered_when_it_is_unclear_what() {
    let host = host_with(vec![a_question(), a_question()]);
    host.run(&["approve", "fix-login"]).exits(2).says("matches 2 open questions");
    host.run(&["approve"]).exits(2).says("2 questions are open");
    host.run(&["approve", "3fa"]).exits(2).says("at least 4 characters");
    host.run(&["approve", "ffff"]).exits(2).says("no open question matches");
    host.never_asked("answer");
    let host = host_with(vec![a_question()]);
    host.run(&["approve"]).exits(2).says("3fa9c1d2  fix-login");
    host.never_asked("answer");
}

fn at_a_terminal(args: &[&str], keys: &str) -> (FakeHost, Ended) {
    let host = host_with(vec![a_question()]);
    let terminal = Terminal::new();
    let mut command = host.home.command(args);
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    let seen = terminal.see("[y/N]");
    assert!(seen.contains("git push origin"), "{seen}");
    terminal.type_in(keys);
    (host, Ended::of(child))
}

#[test]
fn without_an_id_the_only_question_is_shown_and_enter_is_no() {
    let (host, output) = at_a_terminal(&["approve"], "\n");
    output.exits(0).prints("");
    host.never_asked("answer");
    let (host, output) = at_a_terminal(&["approve"], "y\n");
    output.exits(0);
    assert_eq!(host.asked_once("answer")["verdict"]["kind"], "allowOnce");
}

#[test]
fn a_name_is_asked_again_because_a_box_can_swap_its_question() {
    let (host, output) = at_a_terminal(&["approve", "fix-login"], "n\n");
    output.exits(0).prints("");
    host.never_asked("answer");
}

#[test]
fn watching_shows_what_comes() {
    let host = FakeHost::new(|_, call| {
        let status = a_status("/h".as_ref());
        call.event(&HostEvent::Snapshot { status, boxes: vec![], questions: vec![] });
        call.event(&HostEvent::Asked { question: a_question() });
    });
    // The host leaves, which a watcher has to be told.
    let output = host.run(&["approvals", "--watch"]).exits(1).says("ended the conversation");
    assert!(output.stdout.contains("Push 1 commit"), "{output:?}");
}

#[test]
fn a_rule_is_removed_by_the_beginning_of_its_id() {
    let grant = Grant {
        id: "abcdef01000000000000000000000003".parse().unwrap(),
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        method: "git.push".into(),
        scope: "x".into(),
        sentence: "Let fix-login push".into(),
        created_at: 0,
        expires_at: 0,
    };
    let host = FakeHost::new(move |request, call| match request {
        Request::Grants => call.result(&vec![grant.clone()]),
        _ => call.result(&()),
    });
    host.run(&["grants", "rm", "abcd"]).exits(0).prints("removed  Let fix-login push\n");
    assert_eq!(host.asked_once("revokeGrant")["id"], "abcdef01000000000000000000000003");
    host.run(&["grants", "rm", "ffff"]).exits(2).says("no rule matches");
}
