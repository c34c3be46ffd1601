//! Questions: shown whole, answered by id with the digest that was shown, never by accident.

use crate::support::{Ended, FakeHost, Terminal, a_box, a_question, a_status, eventually};
use protocol::boxes::BoxView;
use protocol::control::{ControlError, ErrorCode, HostEvent, HostStatus, Request};
use protocol::question::{Grant, Outcome, Question, Reach, Surface};

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
fn approve_answers_what_was_read() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["approve", "3fa9", "--digest", "the-digest"]).exits(0);
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
fn a_programs_yes_needs_the_digest() {
    let host = host_with(vec![a_question()]);
    for args in [&["approve", "3fa9"][..], &["approve", "fix-login", "--for", "1h"]] {
        let output = host.run(args).exits(2).prints("").says("needs --digest");
        let output = output.says("agentbox approvals --json");
        // Handing the digest out here would let a script allow what it never read.
        assert!(!output.stderr.contains("the-digest"), "{output:?}");
    }
    host.never_asked("answer");
}

#[test]
fn at_a_terminal_an_id_is_answered_at_once() {
    let host = host_with(vec![a_question()]);
    let terminal = Terminal::new();
    let mut command = host.home.command(&["approve", "3fa9"]);
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    Ended::of(child).exits(0);
    assert_eq!(host.asked_once("answer")["digest"], "the-digest");
}

#[test]
fn approve_for_a_while_and_with_a_digest() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["approve", "fix-login", "--for", "2d", "--digest", "other"]).exits(0);
    assert!(
        output
            .stdout
            .contains("rule  Let fix-login push to fix-login of github.com/acme/shop-api until "),
        "{output:?}"
    );
    let answer = host.asked_once("answer");
    let verdict = serde_json::json!({
        "kind": "remember", "reach": "box", "breadth": "exact", "seconds": 172_800
    });
    assert_eq!(answer["verdict"], verdict);
    assert_eq!(answer["digest"], "other");
}

#[test]
fn a_wider_rule_is_asked_for_and_said() {
    let host = host_with(vec![a_question()]);
    let args =
        ["approve", "3fa9", "--digest", "d", "--for", "always", "--reach", "project", "--kind"];
    let output = host.run(&args).exits(0);
    let rule = "rule  Let every box of project push to any branch of github.com/acme/shop-api until \
                you remove it\n";
    assert!(output.stdout.ends_with(rule), "{output:?}");
    let verdict = &host.asked_once("answer")["verdict"];
    assert_eq!((&verdict["reach"], &verdict["breadth"]), (&"project".into(), &"kind".into()));
    host.run(&["approve", "3fa9", "--kind"]).exits(2).says("--for");
}

#[test]
fn what_is_asked_every_time_is_not_remembered() {
    let host = host_with(vec![Question { remember: None, ..a_question() }]);
    let output = host.run(&["approve", "3fa9", "--digest", "d", "--for", "1h"]);
    let _ = output.exits(2).says("asked every time");
    host.never_asked("answer");
}

#[test]
fn a_box_is_made_without_the_files_where_a_question_lists_some() {
    let host = host_with(vec![a_question()]);
    let output = host.run(&["approve", "3fa9", "--digest", "d", "--without"]);
    output.exits(2).says("lists no files");
    host.never_asked("answer");

    let mut files = a_question();
    files.answers.without = Some("Without these files".into());
    let host = host_with(vec![files]);
    // The box is made: a program must say what it has read, as for a yes.
    host.run(&["approve", "3fa9", "--without"]).exits(2).says("--digest");
    host.run(&["approve", "3fa9", "--without", "--for", "1h"]).exits(2).says("cannot be used with");
    host.never_asked("answer");
    let output = host.run(&["approve", "3fa9", "--digest", "d", "--without"]).exits(0);
    assert!(output.stdout.starts_with("without these files  fix-login"), "{output:?}");
    let answer = host.asked_once("answer");
    assert_eq!((&answer["verdict"]["kind"], &answer["digest"]), (&"without".into(), &"d".into()));
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
    let output = host.run(&["approve", "3fa9c1d2", "--digest", "the-digest"]);
    output.exits(1).says("answered elsewhere");
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
fn a_program_that_watches_gets_one_object_per_line() {
    let host = FakeHost::new(|_, call| {
        let status = a_status("/h".as_ref());
        call.event(&HostEvent::Snapshot { status, boxes: vec![], questions: vec![a_question()] });
        call.event(&HostEvent::Asked { question: a_question() });
        call.event(&HostEvent::Resolved {
            id: a_question().id,
            box_name: "fix-login".into(),
            outcome: Outcome::Denied { by: Surface::Dialog },
        });
    });
    let output = host.run(&["approvals", "--watch", "--json"]).exits(1);
    let lines: Vec<serde_json::Value> =
        output.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert_eq!((&lines[0]["schema"], &lines[0]["event"]), (&1.into(), &"asked".into()));
    assert_eq!(lines[0]["question"]["digest"], "the-digest");
    assert_eq!(
        (&lines[1]["event"], &lines[1]["outcome"]["by"]),
        (&"resolved".into(), &"dialog".into())
    );
}

/// A host that stays, with one question open, and `approvals --answer` at a terminal.
fn answering(keys: &[(&str, &str)]) -> FakeHost {
    let host = FakeHost::new(|request, call| match request {
        Request::Subscribe => {
            let status = a_status("/h".as_ref());
            call.event(&HostEvent::Snapshot {
                status,
                boxes: vec![],
                questions: vec![a_question()],
            });
            while call.next().is_some() {}
        }
        _ => call.result(&()),
    });
    let terminal = Terminal::new();
    let mut command = host.home.command(&["approvals", "--answer"]);
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    let seen = terminal.see("deny 3fa9");
    assert!(seen.contains("git push origin"), "{seen}");
    for (line, then) in keys {
        terminal.type_in(line);
        terminal.see(then);
    }
    terminal.type_in("quit\n");
    Ended::of(child).exits(0).prints("");
    host
}

#[test]
fn relay_19_56_in_the_terminal_enter_and_a_stray_key_answer_nothing() {
    let host =
        answering(&[("\n", "Type `allow CODE`"), ("y\n", "no answer"), ("allow\n", "Open: 3fa9")]);
    host.never_asked("answer");
}

#[test]
fn the_word_and_the_code_answer_with_the_digest_that_was_shown() {
    let host = answering(&[("allow 3fa9\n", "> ")]);
    eventually("the answer", || host.asked().iter().any(|r| r["method"] == "answer"));
    let answer = host.asked_once("answer");
    assert_eq!(answer["surface"], "terminal");
    assert_eq!(answer["digest"], "the-digest");
    assert_eq!(answer["verdict"]["kind"], "allowOnce");
}

#[test]
fn a_rule_is_made_in_the_terminal() {
    let host = answering(&[
        ("remember 3fa9\n", "every box of every project"),
        ("1\n", "more than that"),
        ("1\n", "you remove it"),
        ("4\n", "keep the rule"),
        ("allow 3fa9\n", "> "),
    ]);
    eventually("the answer", || host.asked().iter().any(|r| r["method"] == "answer"));
    assert_eq!(host.asked_once("answer")["verdict"]["kind"], "remember");
}

#[test]
fn answering_needs_a_terminal() {
    let host = host_with(vec![a_question()]);
    host.run(&["approvals", "--answer"]).exits(2).says("needs a terminal");
}

#[test]
fn quiet_and_mute_say_what_holds_then() {
    let until = 4_080_000_000_000; // in 2099
    let host = FakeHost::new(move |request, call| match request {
        Request::Quiet { seconds } => {
            let quiet_until = seconds.map(|_| until);
            call.result(&HostStatus { quiet_until, ..a_status("/h".as_ref()) });
        }
        Request::Mute { seconds, .. } => {
            let muted_until = seconds.map(|_| until);
            call.result(&BoxView { muted_until, ..a_box("/p".as_ref()) });
        }
        _ => call.result(&a_status("/h".as_ref())),
    });
    let said = host.run(&["quiet", "1h"]).exits(0).stdout;
    assert!(said.starts_with("Quiet until 2099-"), "{said}");
    assert!(host.run(&["quiet", "off"]).exits(0).stdout.starts_with("Not quiet"));
    assert!(host.run(&["quiet"]).exits(0).stdout.starts_with("Not quiet"));
    host.run(&["quiet", "soon"]).exits(2).says("30m, 1h or 2d");
    let said = host.run(&["mute", "fix-login"]).exits(0).stdout;
    assert!(said.starts_with("fix-login is muted until 2099-"), "{said}");
    host.run(&["mute", "fix-login", "--off"]).exits(0).prints("fix-login is heard.\n");
    host.run(&["mute", "fix-login", "--off", "--for", "1h"]).exits(2).says("cannot be used with");
    let asked: Vec<_> = host.asked().iter().map(|r| r["params"]["seconds"].clone()).collect();
    let hour = serde_json::json!(3600);
    let none = serde_json::Value::Null;
    assert_eq!(asked, [hour.clone(), none.clone(), none.clone(), hour, none]);
}

#[test]
fn a_rule_is_removed_by_the_beginning_of_its_id() {
    let grant = Grant {
        id: "abcdef01000000000000000000000003".parse().unwrap(),
        reach: Reach::Project,
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        project: "shop-api".into(),
        project_root: "/home/ada/shop-api".into(),
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
    let listed = host.run(&["grants"]).exits(0).stdout;
    assert!(listed.contains("for every box of shop-api, ends now"), "{listed}");
    host.run(&["grants", "rm", "abcd"]).exits(0).prints("removed  Let fix-login push\n");
    assert_eq!(host.asked_once("revokeGrant")["id"], "abcdef01000000000000000000000003");
    host.run(&["grants", "rm", "ffff"]).exits(2).says("no rule matches");
}
