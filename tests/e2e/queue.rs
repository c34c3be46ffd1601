//! Background jobs: begun when there is room, on disk until they are over, and with nobody's key.

use crate::create_faults::{self, Fault, nothing_is_left};
use crate::sessions::{pane_shows, stand_in};
use crate::world::{Running, SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const KEY: &str = "sk-ant-of-the-person-and-nobody-else";
/// How soon something about jobs is seen.
const FIVE: Duration = Duration::from_secs(5);
/// A job makes a box, on a busy machine.
const AT_LAST: Duration = Duration::from_secs(120);

/// `agentbox …` in a terminal that has a login.
fn with_key(world: &World, args: &[&str]) -> Output {
    world.agentbox_command(args).env("ANTHROPIC_API_KEY", KEY).output().unwrap()
}

/// Submits a job; its id.
#[track_caller]
pub fn submit(world: &World, args: &[&str]) -> String {
    let output = with_key(world, &[&["claude", "--json"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let job: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(job["job"]["status"], "queued");
    job["job"]["id"].as_str().unwrap().to_owned()
}

fn job(world: &World, id: &str) -> Value {
    world.json(&["queue", "show", id])["job"].clone()
}

#[track_caller]
pub fn becomes(world: &World, id: &str, status: &str, within: Duration) -> Value {
    eventually_or(within, &format!("job {id} being {status}"), || {
        let job = job(world, id);
        if job["status"] == status { Ok(job) } else { Err(format!("{job}{}", world.host_log())) }
    })
}

fn jobs(world: &World) -> Vec<Value> {
    world.json(&["queue", "list"])["jobs"].as_array().unwrap().clone()
}

fn stop_host(world: &mut World) {
    kill(world.host_pid(), Signal::SIGTERM).unwrap();
    world.await_host_end();
}

/// New boxes of the project have a program in them that bears Claude's name.
fn agents_stand_in(world: &World) {
    world.create("jobseed");
    stand_in(world, "jobseed", "claude");
    world.ok(&["checkpoint", "create", "jobseed", "--name", "standin", "--set-default"]);
    world.ok(&["destroy", "-y", "jobseed"]);
}

/// Nothing of the home has the key in it, nor has what the host said.
#[track_caller]
fn the_key_is_nowhere(world: &World) {
    let home = world.home().display().to_string();
    let output = world.command("grep").args(["-rlaF", KEY, &home]).output().unwrap();
    assert_eq!(text(&output.stdout), "");
    assert!(!world.host_log().contains(KEY));
}

#[test]
fn boxes_16_51_a_job_needs_a_login_and_one_whose_worker_dies_has_failed() {
    let (mut world, between) = create_faults::world();
    let refused = world.agentbox(&["claude", "-i", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("no login for Claude") && said.contains("ANTHROPIC_API_KEY"), "{said}");
    assert_eq!(jobs(&world), Vec::<Value>::new());

    // Its container is there when the host is killed.
    between.arm(&["POST", "/exec/", "/start"], Fault::Hold);
    let queued = with_key(&world, &["claude", "-i", "fix the test", "-n", "job-dies"]);
    let line = text(&queued.stdout);
    assert!(queued.status.success(), "{}", text(&queued.stderr));
    assert!(line.starts_with("job ") && line.contains(" queued (0/5 running); log: /"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let id = line.split(' ').nth(1).unwrap().to_owned();
    becomes(&world, &id, "running", SOON);
    eventually(SOON, "the box being made", || between.was_hit().then_some(()));
    assert!(world.ok(&["status"]).contains("1 running"), "{}", world.ok(&["status"]));
    world.kill_host();
    between.restore();
    world.start_serve();
    let dead = becomes(&world, &id, "failed", FIVE);
    assert_eq!(dead["reason"], "worker-died");
    nothing_is_left(&world, "after the host was killed");
    assert!(world.ok(&["queue", "show", &id[..6]]).contains("worker-died"));
    // The next one is none the worse for it.
    let next = submit(&world, &["-i", "again", "-n", "job-dies"]);
    let ended = becomes(&world, &next, "failed", AT_LAST);
    // The smallest boxes have no Claude, which is said and not hidden.
    assert_eq!(ended["reason"], "Claude ended as soon as it was started", "{ended}");
    assert!(ended["hint"].as_str().unwrap().contains("agentbox destroy"), "{ended}");
    the_key_is_nowhere(&world);
}

#[test]
fn boxes_16_52_a_job_waits_for_room_and_begins_when_there_is() {
    let world = World::headless();
    world.create("in-the-way");
    let id = submit(&world, &["-i", "first", "-n", "job-waits", "--max-running", "1"]);
    let second = submit(&world, &["-i", "second", "-n", "job-second"]);
    let shown = job(&world, &id);
    assert_eq!((&shown["status"], &shown["busy"]), (&"queued".into(), &1.into()), "{shown}");
    assert!(world.ok(&["queue", "show", &id]).contains("1/1 running"));
    assert!(world.ok(&["status"]).contains("2 queued"));
    let table = world.ok(&["queue"]);
    assert!(table.starts_with("ID") && table.contains("job-waits"), "{table}");
    // What came later waits its turn, although it has more room.
    assert_eq!(job(&world, &second)["status"], "queued");
    let taken = with_key(&world, &["claude", "-i", "x", "-n", "job-waits"]);
    assert_eq!(taken.status.code(), Some(2), "{}", text(&taken.stderr));

    let shown = job(&world, &id);
    assert_eq!((&shown["status"], &shown["busy"]), (&"queued".into(), &1.into()), "{shown}");
    world.ok(&["destroy", "-y", "in-the-way"]);
    eventually_or(FIVE, "the job beginning", || match job(&world, &id)["status"].as_str() {
        Some("queued") => Err(world.host_log()),
        _ => Ok(()),
    });
    let empty = ["queue", "wait-for", "empty-queue", "--timeout", "120000"];
    assert_eq!(world.ok(&empty), "empty\n");
    let ended: Vec<Value> = jobs(&world).iter().map(|job| job["boxName"].clone()).collect();
    assert_eq!(ended, ["job-waits", "job-second"]);
    assert_eq!(world.ok(&["queue", "clear", "--all"]), "cleared 2 jobs\n");
    assert_eq!(jobs(&world), Vec::<Value>::new());
}

#[test]
fn a_job_starts_its_agent_with_the_prompt_and_the_key_reaches_nothing_else() {
    let world = World::headless();
    agents_stand_in(&world);
    let new = Running::start(world.agentbox_command(&["queue", "wait-for", "new-box"]));
    eventually(SOON, "somebody who waits", || new.is_connected().then_some(()));
    let id = submit(&world, &["-i", "fix it - now", "-n", "job-works", "--", "--model", "x"]);
    let done = world.json(&["queue", "wait-for", "job-done", "--job", &id]);
    assert_eq!(done["awaited"]["job"]["status"], "done", "{done}{}", world.host_log());
    let new = new.end();
    assert_eq!((new.code, new.err.as_str()), (Some(0), "job-works\n"));
    let line = "claude|--dangerously-skip-permissions|fix it - now|--model|x|";
    pane_shows(&world, "job-works", "claude", line);
    pane_shows(&world, "job-works", "claude", &format!("ANTHROPIC_API_KEY={KEY}"));
    the_key_is_nowhere(&world);
    let log = std::fs::read_to_string(done["awaited"]["job"]["log"].as_str().unwrap()).unwrap();
    assert!(log.contains("box job-works") && log.contains("session claude started"), "{log}");
    assert!(!world.home().join("logs/queue").read_dir().unwrap().any(|e| {
        use std::os::unix::fs::PermissionsExt;
        e.unwrap().metadata().unwrap().permissions().mode() & 0o077 != 0
    }));

    // What the agent does can be asked and waited for.
    eventually_or(SOON, "a ready agent", || match world.ok(&["agent", "state", "job-works"]) {
        state if state == "claude ready\n" => Ok(()),
        state => Err(state),
    });
    let wait = |state: &str, more: &[&str]| {
        world.agentbox_command(&[&["agent", "wait-for", state, "job-works"], more].concat())
    };
    let code = |mut command: Command| command.output().unwrap().status.code();
    let waiting = Running::start(wait("done", &["--agent", "claude"]));
    world.box_ok("job-works", "agentbox-ctl agent-state claude working");
    assert_eq!(code(wait("working", &[])), Some(0));
    assert_eq!(code(wait("waiting", &["--timeout", "100"])), Some(1));
    assert_eq!(code(wait("asleep", &[])), Some(2));
    world.box_ok("job-works", "agentbox-ctl agent-state claude done");
    assert_eq!(waiting.end().code, Some(0));
    assert_eq!(world.json(&["agent", "state", "job-works"])["agents"][0]["state"], "done");

    // So can boxes. A prompt comes from a pipe as well.
    let paused = ["queue", "wait-for", "box-paused", "--box", "job-works"];
    let paused = Running::start(world.agentbox_command(&paused));
    world.ok(&["pause", "job-works"]);
    assert_eq!(paused.end().code, Some(0));
    let mut command = world.agentbox_command(&["claude", "-i", "-", "-n", "job-piped", "--json"]);
    command.env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"--first\nsecond\n").unwrap();
    let submitted: Value =
        serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    becomes(&world, submitted["job"]["id"].as_str().unwrap(), "done", AT_LAST);
    pane_shows(&world, "job-piped", "claude", "| --first");
    // An image is kept by the boxes made from it.
    for name in ["job-works", "job-piped"] {
        world.ok(&["destroy", "-y", name]);
    }
    world.ok(&["checkpoint", "rm", "-y", "standin"]);
}

#[test]
fn a_job_that_waits_outlives_its_host_if_the_next_one_has_a_login() {
    let mut world = World::headless();
    world.create("in-the-way");
    let only_here = submit(&world, &["-i", "x", "-n", "job-forgotten", "--max-running", "1"]);
    stop_host(&mut world);
    world.start_serve();
    let gone = job(&world, &only_here);
    assert_eq!(gone["status"], "failed", "{gone}");
    assert!(gone["reason"].as_str().unwrap().starts_with("login-gone"), "{gone}");
    assert!(gone["hint"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{gone}");

    world.set("ANTHROPIC_API_KEY", KEY);
    let id = submit(&world, &["-i", "y", "-n", "job-lasts", "--max-running", "1"]);
    stop_host(&mut world);
    the_key_is_nowhere(&world);
    world.start_serve();
    assert_eq!(job(&world, &id)["status"], "queued");
    world.ok(&["stop", "in-the-way"]);
    let ended = becomes(&world, &id, "failed", AT_LAST);
    assert_eq!(ended["reason"], "Claude ended as soon as it was started", "{ended}");
    assert_eq!(world.ok(&["agent", "state", "job-lasts"]), "none\n");
}

#[test]
fn a_job_is_cancelled_before_it_begins_and_ended_after() {
    let (world, between) = create_faults::world();
    between.arm(&["POST", "/exec/", "/start"], Fault::Hold);
    let begun = submit(&world, &["-i", "x", "-n", "job-begun", "--max-running", "1"]);
    eventually(SOON, "the box being made", || between.was_hit().then_some(()));
    let waits = submit(&world, &["-i", "x", "-n", "job-unborn", "--max-running", "1"]);
    assert_eq!(world.ok(&["queue", "cancel", &waits]), format!("cancelled {waits}\n"));
    assert_eq!(job(&world, &waits)["status"], "cancelled");
    let refused = world.agentbox(&["queue", "cancel", &begun]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--kill"), "{}", text(&refused.stderr));
    world.ok(&["queue", "cancel", "--kill", &begun]);
    assert_eq!(job(&world, &begun)["status"], "cancelled");
    between.restore();
    nothing_is_left(&world, "after the job was ended");
    for unknown in [["queue", "show", "ffff"], ["queue", "cancel", "ffff"]] {
        assert_eq!(world.agentbox(&unknown).status.code(), Some(1));
    }
    let wait = ["queue", "wait-for", "job-done", "--job", &begun];
    assert_eq!(world.agentbox(&wait).status.code(), Some(1));
    assert_eq!(world.agentbox(&["queue", "clear"]).status.code(), Some(2));
    assert_eq!(world.agentbox(&["queue", "wait-for", "dinner"]).status.code(), Some(2));
    assert_eq!(world.ok(&["queue", "clear", "--done"]), "cleared 0 jobs\n");
    assert_eq!(world.ok(&["queue", "clear", "--cancelled"]), "cleared 2 jobs\n");
}

#[test]
fn where_agents_at_work_count_a_job_waits_until_one_is_done_and_a_moment_longer() {
    let mut world = World::bare();
    world.configure("queue: {maxWorking: 1, idleGraceSeconds: 2}\n");
    world.start_serve();
    world.create("at-work");
    stand_in(&world, "at-work", "claude");
    world.ok(&["claude", "start", "at-work", "-d"]);
    world.box_ok("at-work", "agentbox-ctl agent-state claude working");
    let id = submit(&world, &["-i", "x", "-n", "job-patient"]);
    let shown = job(&world, &id);
    assert_eq!(shown["gate"], serde_json::json!({"kind": "working", "max": 1}));
    assert_eq!((&shown["status"], &shown["busy"]), (&"queued".into(), &1.into()), "{shown}");
    // One that names a number of boxes does not mind, but it came later.
    let later = submit(&world, &["-i", "x", "-n", "job-later", "--max-running", "9"]);
    assert_eq!(job(&world, &later)["gate"]["kind"], "running");
    world.box_ok("at-work", "agentbox-ctl agent-state claude done");
    for id in [id, later] {
        becomes(&world, &id, "failed", AT_LAST);
    }
}

#[test]
fn a_box_cannot_hold_up_the_queue_by_saying_that_its_agents_work() {
    let mut world = World::bare();
    world.configure("queue: {maxWorking: 1}\n");
    world.start_serve();
    world.create("queue-liar");
    // Nobody has started any of them.
    let lie = "for a in claude codex opencode; do agentbox-ctl agent-state $a working; done";
    world.box_ok("queue-liar", lie);
    let id = submit(&world, &["-i", "x", "-n", "job-not-held"]);
    let shown = job(&world, &id);
    // A new box is given time for its agent to begin, once and whatever it says.
    assert_eq!((&shown["status"], &shown["busy"]), (&"queued".into(), &1.into()), "{shown}");
    world.box_ok("queue-liar", lie);
    becomes(&world, &id, "failed", AT_LAST * 2);
    let agents = &world.json(&["agent", "state", "queue-liar"])["agents"];
    assert_eq!(agents[0]["state"], "working", "it says so still: {agents}");
}
