//! Tasks that are asked for while somebody still looks whether they must run.

use crate::supervisor::{CTL, Supervisor};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

fn ran(s: &Supervisor) -> usize {
    fs::read_to_string(s.dir.path().join("ran")).unwrap_or_default().lines().count()
}

fn ask(s: &Supervisor, force: bool) {
    s.good(&json!({ "op": "run-task", "name": "t", "force": force }));
}

#[test]
fn forced_during_its_check_a_task_runs_once_although_it_passes() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: echo ran >> ran, \
         run_once: {check: 'touch looking; until test -e go; do sleep 0.02; done'}}\n",
    );
    s.eventually("it is looked at", || s.dir.path().join("looking").exists());
    ask(&s, true);
    // Whoever does not mind takes nothing back.
    ask(&s, false);
    assert_eq!(ran(&s), 0);
    fs::write(s.dir.path().join("go"), "").unwrap();
    let done = s.until("t", "done");
    assert_eq!((ran(&s), &done["skipReason"]), (1, &Value::Null));
}

#[test]
fn whoever_forces_a_task_during_its_check_and_waits_sees_it_run() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'echo ran | tee -a ran', \
         run_once: {check: 'touch looking; sleep 1'}}\n",
    );
    s.eventually("it is looked at", || s.dir.path().join("looking").exists());
    let output = s.ctl(&["run-task", "t", "--force", "--wait"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ran\n"[..]), "{output:?}");
    assert_eq!(ran(&s), 1);
}

#[test]
fn forced_during_a_check_that_fails_a_task_runs_once() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: echo ran >> ran, \
         run_once: {check: 'touch looking; until test -e go; do sleep 0.02; done; false'}}\n",
    );
    s.eventually("it is looked at", || s.dir.path().join("looking").exists());
    ask(&s, true);
    fs::write(s.dir.path().join("go"), "").unwrap();
    s.until("t", "done");
    assert_eq!(ran(&s), 1);
}

/// The mark is a pipe here, so it is read for as long as the test likes.
#[test]
fn forced_while_its_mark_is_read_a_task_runs_once_whatever_the_mark_says() {
    let mut s = Supervisor::new("tasks:\n  t: {command: echo ran >> ran, run_once: true}\n");
    s.until("t", "done");
    let path = s.dir.path().join("lib/tasks/t");
    let matching = fs::read_to_string(&path).unwrap();
    for (round, mark) in [(2, "another\n"), (3, &matching)] {
        s.stop();
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        s.again(Path::new(CTL));
        // Opens when the supervisor does.
        let mut pipe = File::options().write(true).open(&path).unwrap();
        ask(&s, true);
        pipe.write_all(mark.as_bytes()).unwrap();
        drop(pipe);
        s.eventually("it is done", || ran(&s) >= round && s.state("t") == "done");
        assert_eq!(ran(&s), round, "{mark}");
    }
}
