//! Failures end with the right code, say what to do, and never start or change anything.

use crate::support::{FakeHost, Home, a_box};
use protocol::audit::AuditVerdict;
use protocol::control::{Check, ControlError, ErrorCode, Level, Request};
use protocol::frame::Kind;
use std::process::Stdio;

#[test]
fn boxes_16_27_an_unknown_box_is_2_with_the_hosts_hint() {
    let error =
        ControlError::new(ErrorCode::Usage, "no box matches \"zz\"").hint("did you mean docs?");
    let host = FakeHost::failing(error);
    let output = host.run(&["stop", "zz"]).exits(2).prints("");
    assert_eq!(output.stderr, "error: no box matches \"zz\"\nhint: did you mean docs?\n");
}

#[test]
fn boxes_16_28_several_boxes_are_a_list() {
    let error = ControlError::new(ErrorCode::Usage, "this folder's project has 2 boxes")
        .hint("  1) fix   (id b12300000)")
        .hint("  2) docs   (id b12345678)");
    let output = FakeHost::failing(error).run(&["start"]).exits(2);
    assert_eq!(
        output.stderr,
        "error: this folder's project has 2 boxes\n  1) fix   (id b12300000)\n  2) docs   (id b12345678)\n"
    );
}

#[test]
fn what_was_tried_and_failed_is_1() {
    let error = ControlError::new(ErrorCode::Engine, "no container engine answered");
    FakeHost::failing(error).run(&["create"]).exits(1).says("error: no container engine answered");
}

#[test]
fn a_hostile_message_cannot_draw() {
    let error = ControlError::new(ErrorCode::Failed, "bad \x1b[2J\u{202e}name").hint("x\x07");
    let output = FakeHost::failing(error).run(&["stop"]).exits(1);
    assert!(!output.stderr.contains(['\x1b', '\u{202e}', '\x07']), "{output:?}");
}

#[test]
fn a_host_that_leaves_or_stammers_is_told_apart_from_none() {
    FakeHost::new(|_, _| {}).run(&["list"]).exits(1).says("ended the conversation");
    FakeHost::new(|_, call| call.send(Kind::Result, b"{"))
        .run(&["list"])
        .exits(1)
        .says("bad frame");
    FakeHost::new(|_, call| call.send(Kind::Stdin, b""))
        .run(&["list"])
        .exits(1)
        .says("only clients send");
}

#[test]
fn status_does_not_start_a_host() {
    let home = Home::new();
    home.run(&["status"])
        .exits(1)
        .prints("")
        .says("hint: start one with `agentbox serve`")
        .says("no AgentBox host is running");
    assert!(!home.path().join("logs").exists());
}

#[test]
fn boxes_16_02_a_bad_name_asks_nobody() {
    let host = FakeHost::always(());
    for name in ["3", "My Box", "claude-dash"] {
        host.run(&["create", "-n", name]).exits(2).says("is not a box name");
    }
    assert!(host.asked().is_empty());
    let home = Home::new();
    home.run(&["create", "-n", "3"]).exits(2).says("is not a box name");
    assert!(!home.path().join("logs").exists());
}

#[test]
fn usage_errors_are_2() {
    let home = Home::new();
    home.run(&["list", "--nonsense"]).exits(2).says("--nonsense");
    home.run(&["nonsense"]).exits(2).says("nonsense");
    home.run(&["approve", "3fa9", "--for", "soon"]).exits(2).says("30m, 1h or 2d");
    home.run(&["create", "no-such-folder"]).exits(2).says("no-such-folder cannot be used");
    home.run(&["destroy", "x"]).exits(2).says("add -y");
}

#[test]
fn no_command_and_help_are_help() {
    let home = Home::new();
    for args in [&[][..], &["help"], &["--help"]] {
        let output = home.run(args).exits(0);
        assert!(output.stdout.contains("approvals") && output.stderr.is_empty(), "{output:?}");
    }
    let version = format!("agentbox {}\n", env!("CARGO_PKG_VERSION"));
    home.run(&["--version"]).exits(0).prints(&version);
}

#[test]
fn completions_need_no_host() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Home::new().run(&["completions", shell]).exits(0);
        assert!(output.stdout.contains("approvals"), "{output:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let host = FakeHost::new(|_, call| {
        let view = a_box("/p".as_ref());
        call.result(&vec![view; 2000]);
    });
    let mut command = host.home.command(&["list", "--global", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = crate::support::Ended::of(child).exits(0);
    assert_eq!(output.stderr, "");
}

#[test]
fn only_a_fail_fails_doctor() {
    let checks = |level| {
        let (group, label) = ("engine".to_owned(), "engine".to_owned());
        vec![Check { group, label, level, detail: "permission denied".into(), hint: None }]
    };
    let warned = FakeHost::always(checks(Level::Warn)).run(&["doctor"]).exits(0);
    assert!(
        warned.stdout.contains("  [warn] engine             permission denied\n"),
        "{warned:?}"
    );
    let failed = FakeHost::always(checks(Level::Fail)).run(&["doctor", "--json"]).exits(1);
    assert_eq!(failed.json()["checks"][0]["level"], "fail");
}

#[test]
fn doctor_works_without_a_host_and_changes_nothing() {
    let home = Home::new();
    let output = home.run(&["doctor"]).somehow();
    assert!(output.stdout.contains("not running"), "{output:?}");
    assert!(output.stdout.contains(" git "), "{output:?}");
    assert!(!home.path().join("logs").exists());
}

#[test]
fn a_broken_chain_fails_verify() {
    let whole = AuditVerdict { records: 3, broken: None };
    FakeHost::always(whole)
        .run(&["audit", "verify"])
        .exits(0)
        .prints("✓ 3 records, the chain is whole\n");
    let broken = AuditVerdict { records: 3, broken: Some("record 2 was changed".into()) };
    let host = FakeHost::new(move |request, call| {
        assert!(matches!(request, Request::AuditVerify));
        call.result(&broken);
    });
    let output = host.run(&["audit", "verify", "--json"]).exits(1);
    assert_eq!(output.json()["verdict"]["broken"], "record 2 was changed");
}

#[test]
fn relay_a42_whoever_answers_cannot_name_a_process_to_end() {
    let mut victim = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = victim.id();
    let lying = move |request: Request, call: &mut crate::support::Call| match request {
        Request::Status => {
            call.result(&serde_json::json!({ "version": "0.0.1", "proto": 0, "pid": pid }));
        }
        _ => call.error(&ControlError::new(ErrorCode::Failed, "no")),
    };
    let host = FakeHost::new(lying);
    for args in [&["quit"][..], &["status"], &["list"]] {
        let _ = host.run(args).somehow();
    }
    assert!(victim.try_wait().unwrap().is_none(), "a process was ended by its number");
    victim.kill().unwrap();
    victim.wait().unwrap();
}
