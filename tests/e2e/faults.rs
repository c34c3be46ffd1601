//! The host killed at every step of a write: nothing is lost, nothing is done twice, and whoever
//! waits in a box is told.

use crate::world::{SOON, World};
use agentbox_e2e::wait::{eventually, eventually_or};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A `linear` that says what it is at, and waits where a test wants it to.
fn linear(world: &World, pause_at: &str) -> PathBuf {
    let log = world.dir().join("linear.log");
    world.host_program(
        "linear",
        &format!(
            "#!/bin/sh\nstep() {{ echo \"$1\" >> {log}; [ \"$1\" = {pause_at} ] && sleep 4; return 0; }}\n\
             if [ \"$1\" = --version ]; then step probe; echo 'linear 2'; exit 0; fi\n\
             step begun\nstep ended\n",
            log = log.display()
        ),
    );
    log
}

fn steps(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

const COMMENT: &str = "linear issue comment add ENG-1 --body hi";

fn world(pause_at: &str) -> (World, PathBuf) {
    let mut world = World::bare();
    world.configure("integrations: {linear: {enabled: true}}\n");
    let log = linear(&world, pause_at);
    world.start_serve();
    world.create("fix-login");
    (world, log)
}

/// In the background of the box, with its end kept there.
fn begin(world: &World) {
    let script =
        format!("nohup sh -c '{COMMENT} > /tmp/out 2>&1; echo $? > /tmp/code' > /dev/null 2>&1 &");
    world.box_ok("fix-login", &script);
}

fn killed_and_back(world: &mut World) -> String {
    world.kill_host();
    world.start_serve();
    let code = eventually_or(SOON, "the command in the box ending", || {
        let output = world.in_box("fix-login", "cat /tmp/code");
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err("no code")
        }
    });
    assert!(world.questions().is_empty());
    world.ok(&["audit", "verify"]);
    code.trim().to_owned()
}

fn works_again(world: &World) {
    let (_, ended) = world.answered("fix-login", COMMENT, "approve");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn killed_while_a_program_is_looked_at() {
    let (mut world, log) = world("probe");
    begin(&world);
    eventually(SOON, "the probe", || (!steps(&log).is_empty()).then_some(()));
    assert_eq!(killed_and_back(&mut world), "126");
    assert!(!steps(&log).contains(&"begun".to_owned()));
    assert!(!world.audit_kinds("fix-login").contains(&"asked".to_owned()));
    linear(&world, "never");
    works_again(&world);
}

#[test]
fn killed_while_the_question_is_open() {
    let (mut world, log) = world("never");
    begin(&world);
    world.question_of("fix-login");
    assert_eq!(killed_and_back(&mut world), "126");
    assert!(!steps(&log).contains(&"begun".to_owned()));
    assert!(world.json(&["audit", "fix-login"]).to_string().contains("the host stopped, denied"));
    works_again(&world);
}

#[test]
fn killed_while_the_program_runs() {
    let (mut world, log) = world("begun");
    begin(&world);
    let question = world.question_of("fix-login");
    world.ok(&[
        "approve",
        question["id"].as_str().unwrap(),
        "--digest",
        question["digest"].as_str().unwrap(),
    ]);
    eventually(SOON, "the program", || steps(&log).contains(&"begun".to_owned()).then_some(()));
    assert_eq!(killed_and_back(&mut world), "126");
    // The yes is on record; the program was begun once and is not begun again.
    let kinds = world.audit_kinds("fix-login");
    assert!(kinds.contains(&"answered".to_owned()), "{kinds:?}");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(steps(&log).iter().filter(|step| *step == "begun").count(), 1);
    linear(&world, "never");
    works_again(&world);
}

#[test]
fn killed_right_after_the_answer_was_given_to_the_box() {
    let (mut world, _) = world("never");
    let (_, ended) = world.answered("fix-login", COMMENT, "approve");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    world.kill_host();
    world.start_serve();
    // What the box was told has happened is on record.
    let kinds = world.audit_kinds("fix-login");
    assert_eq!(kinds.last().map(String::as_str), Some("executed"), "{kinds:?}");
    world.ok(&["audit", "verify"]);
}
