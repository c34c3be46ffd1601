//! The demo against a scripted host: it ends well with either answer and always sweeps up.

use crate::support::{Ended, FakeHost, a_box, a_question, a_status, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::control::{Destroyed, Exited, HostEvent, Request};
use protocol::frame::Kind;
use protocol::question::{Outcome, Surface};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

/// How far the push is: 0 not begun, 1 begun, 2 answered.
#[derive(Default)]
struct Stage(Mutex<u8>, Condvar);

impl Stage {
    fn reach(&self, at: u8) {
        *self.0.lock().unwrap() = at;
        self.1.notify_all();
    }

    fn wait(&self, at: u8) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |now| *now < at).unwrap());
    }
}

fn host(outcome: Option<Outcome>, exit_code: i32) -> FakeHost {
    let stage = Arc::new(Stage::default());
    FakeHost::new(move |request, call| match request {
        Request::Status => call.result(&a_status(Path::new("/h"))),
        Request::CreateBox(_) => call.result(&a_box(Path::new("/p"))),
        Request::Subscribe => {
            let status = a_status(Path::new("/h"));
            call.event(&HostEvent::Snapshot { status, boxes: vec![], questions: vec![] });
            stage.wait(1);
            call.event(&HostEvent::Asked { question: a_question() });
            if let Some(outcome) = &outcome {
                let id = a_question().id;
                call.event(&HostEvent::Resolved {
                    id,
                    box_name: "demo".into(),
                    outcome: outcome.clone(),
                });
                stage.reach(2);
            }
            while call.next().is_some() {}
        }
        Request::Exec(_) => {
            stage.reach(1);
            if outcome.is_none() {
                while call.next().is_some() {}
                return;
            }
            stage.wait(2);
            call.send(Kind::Stderr, b"remote said\n");
            call.result(&Exited { exit_code });
        }
        Request::Audit { .. } => call.result(&[(); 0]),
        Request::DestroyBox { .. } => call.result(&Destroyed {
            absent: vec![],
            view: a_box(Path::new("/p")),
            removed: vec!["container agentbox-demo".into()],
            failed: vec![],
            kept_branches: Vec::new(),
            rescued: Vec::new(),
        }),
        other => panic!("the demo asked {other:?}"),
    })
}

fn swept(host: &FakeHost) {
    assert_eq!(host.asked_once("destroyBox")["target"]["query"], "b0000000a");
    let left: Vec<_> = std::fs::read_dir(host.home.tmp()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_yes_ends_well() {
    let host = host(Some(Outcome::Allowed { by: Surface::Dialog }), 0);
    let output =
        host.run(&["demo"]).exits(0).says("Now answer it").says("agentbox approve fix-login");
    let output = output.says("│ remote said").says("allowed in the dialog");
    assert!(output.stdout.contains("exit code 0, the push went through"), "{output:?}");
    assert!(output.stdout.contains("First commit"), "{output:?}");
    let asked = host.asked_once("createBox");
    assert!(asked["name"].as_str().unwrap().starts_with("demo-"), "{asked}");
    swept(&host);
}

#[test]
fn a_no_ends_well_too() {
    let host = host(Some(Outcome::Denied { by: Surface::Cli }), 10);
    let output = host.run(&["demo"]).exits(0);
    assert!(output.stdout.contains("exit code 10, the push was denied"), "{output:?}");
    swept(&host);
}

#[test]
fn a_failed_push_fails_and_is_swept_up() {
    let host = host(Some(Outcome::Allowed { by: Surface::Cli }), 1);
    host.run(&["demo"]).exits(1).says("does not fit the answer").says("removed  container");
    swept(&host);
}

#[test]
fn ctrl_c_sweeps_up() {
    let host = host(None, 0);
    let child = host.home.command(&["demo"]).spawn().unwrap();
    eventually("the push runs", || host.asked().iter().any(|r| r["method"] == "exec"));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    Ended::of(child).exits(130).says("interrupted");
    swept(&host);
}

#[test]
fn keep_leaves_box_and_folder() {
    let host = host(Some(Outcome::Denied { by: Surface::Cli }), 10);
    host.run(&["demo", "--keep"]).exits(0).says("agentbox destroy fix-login");
    host.never_asked("destroyBox");
    assert_eq!(std::fs::read_dir(host.home.tmp()).unwrap().count(), 1);
}
