//! Creating, listing, stopping and destroying, as the host is asked for them.

use crate::support::{Ended, FakeHost, a_box, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::boxes::{Progress, StepState};
use protocol::control::{Destroyed, HostEvent, Loss, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn progress(state: StepState, elapsed_ms: u64) -> HostEvent {
    let step = "Build the box image".to_owned();
    HostEvent::Progress {
        progress: Progress { step, state, detail: None, fraction: None, elapsed_ms },
    }
}

#[test]
fn create_shows_its_steps_and_then_the_box() {
    let host = FakeHost::new(|_, call| {
        call.event(&progress(StepState::Running, 0));
        call.event(&progress(StepState::Done, 1234));
        call.result(&a_box("/p".as_ref()));
    });
    let output = host.run(&["create", "-n", "fix-login", "--image", "x:1"]).exits(0);
    assert_eq!(
        output.stderr,
        "· Build the box image\n✓ Build the box image  1.2 s\n\nhint: agentbox shell fix-login\n"
    );
    assert_eq!(output.stdout, "name    fix-login\nid      b0000000a\nbranch  agentbox/fix-login\n");
    let asked = host.asked_once("createBox");
    assert_eq!(asked["workspace"], host.home.project().to_str().unwrap());
    assert_eq!((&asked["name"], &asked["image"]), (&"fix-login".into(), &"x:1".into()));
}

#[test]
fn ctrl_c_during_create_hangs_up_and_is_130() {
    let gone = Arc::new(AtomicBool::new(false));
    let seen = gone.clone();
    let host = FakeHost::new(move |_, call| {
        call.event(&progress(StepState::Running, 0));
        assert!(call.next().is_none(), "a create has no input");
        seen.store(true, Ordering::SeqCst);
    });
    let child = host.home.command(&["create"]).spawn().unwrap();
    eventually("the create arrives", || !host.asked().is_empty());
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    Ended::of(child).exits(130).says("the host takes back");
    eventually("the host sees the connection closed", || gone.load(Ordering::SeqCst));
}

#[test]
fn list_is_of_this_project_unless_told() {
    let host = FakeHost::new(|_, call| call.result(&vec![a_box("/elsewhere".as_ref())]));
    host.run(&["list"])
        .exits(0)
        .prints("")
        .says("No boxes for this folder")
        .says("list -g shows 1");
    let output = host.run(&["ls", "-g"]).exits(0);
    assert!(
        output.stdout.starts_with("N  NAME       STATE    AGENT  URL  WORKSPACE"),
        "{output:?}"
    );
    let json = host.run(&["list", "--all", "--json"]).exits(0).json();
    assert_eq!((&json["schema"], &json["boxes"][0]["name"]), (&1.into(), &"fix-login".into()));
    FakeHost::always([(); 0]).run(&["list"]).exits(0).prints("").says("No boxes yet");
}

#[test]
fn stop_and_start_name_the_folder_when_no_box_is_given() {
    let host = FakeHost::always(a_box("/p".as_ref()));
    host.run(&["stop"]).exits(0).prints("stopped fix-login\n");
    let target = &host.asked_once("stopBox")["target"];
    assert_eq!(target["query"], serde_json::Value::Null);
    assert_eq!(target["cwd"], host.home.project().to_str().unwrap());
    host.run(&["start", "2"]).exits(0).prints("started fix-login\n");
    assert_eq!(host.asked_once("startBox")["target"]["query"], "2");
}

fn destroyed(failed: &[&str]) -> Destroyed {
    Destroyed {
        view: a_box("/p".as_ref()),
        removed: vec!["container agentbox-fix-login".into()],
        absent: vec![],
        failed: failed.iter().map(|f| (*f).to_owned()).collect(),
        kept_branches: vec!["agentbox/fix-login".into()],
        rescued: Vec::new(),
    }
}

#[test]
fn boxes_16_53_destroy_tells_each_object_and_fails_with_one() {
    let fine = FakeHost::always(destroyed(&[]));
    let output = fine.run(&["destroy", "fix-login", "-y"]).exits(0);
    assert_eq!(
        output.stdout,
        "removed  container agentbox-fix-login\nkept     branch agentbox/fix-login\n"
    );
    let output =
        FakeHost::always(destroyed(&["network agentbox-x: in use"])).run(&["rm", "-y"]).exits(1);
    assert!(output.stdout.contains("failed   network agentbox-x: in use"), "{output:?}");
}

fn destroy_at_a_terminal(answer: &str) -> (FakeHost, Ended) {
    let host = FakeHost::new(|request, call| match request {
        Request::WhatIfDestroyed { .. } => call.result(&Loss {
            view: a_box("/p".as_ref()),
            uncommitted: Some(vec![" M src/lib.rs".into()]),
            unpushed: vec!["9f31c02 Check expiry".into()],
            unpushed_count: Some(1),
            stranded: Some(vec![]),
        }),
        _ => call.result(&destroyed(&[])),
    });
    let terminal = crate::support::Terminal::new();
    let mut command = host.home.command(&["destroy"]);
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    let seen = terminal.see("[y/N]");
    assert!(
        seen.contains("1 uncommitted change will be lost") && seen.contains("M src/lib.rs"),
        "{seen}"
    );
    terminal.type_in(answer);
    (host, Ended::of(child))
}

#[test]
fn destroy_asks_and_destroys_what_it_showed() {
    let (host, output) = destroy_at_a_terminal("y\n");
    output.exits(0);
    assert_eq!(host.asked_once("destroyBox")["target"]["query"], "b0000000a");
}

#[test]
fn enter_destroys_nothing() {
    let (host, output) = destroy_at_a_terminal("\n");
    output.exits(0).prints("");
    host.never_asked("destroyBox");
}
