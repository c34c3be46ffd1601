//! A box that takes all it can get: processes, memory, logs, names. The host stays well, stays small,
//! and says so.

use crate::world::{Running, SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Stopping one that does not listen takes its whole time of grace.
const GRACE: Duration = Duration::from_secs(90);
/// A command for people, on a machine that a box keeps busy.
const QUICK: Duration = Duration::from_secs(20);
const MB: u64 = 1024 * 1024;

/// What the host has in memory now, and the most it ever had.
fn host_memory(world: &World) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.host_pid())).unwrap();
    let of = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The host never had more than so much above what it has at rest.
#[track_caller]
fn stayed_small(world: &World, before: u64, room: u64) {
    let (now, most) = host_memory(world);
    eprintln!("host: {} MB at rest, {} MB at most, {} MB now", before / MB, most / MB, now / MB);
    assert!(most < before + room, "{} MB at rest, {} MB at most", before / MB, most / MB);
}

/// A command for people, which must not take long.
#[track_caller]
fn promptly(world: &World, args: &[&str]) -> String {
    let since = Instant::now();
    let out = world.ok(args);
    assert!(since.elapsed() < QUICK, "agentbox {args:?} took {:?}", since.elapsed());
    out
}

fn make(world: &World, name: &str, limits: &[&str]) {
    world.ok(&[&["create", "-n", name], limits].concat());
}

/// In the background of the box, whatever becomes of it.
fn let_loose(world: &World, name: &str, script: &str) {
    world.box_ok(name, &format!("nohup bash -c '{script}' > /dev/null 2>&1 &"));
}

fn row(world: &World, label: &str) -> Option<Value> {
    let checks = world.json(&["doctor"])["checks"].as_array().unwrap().clone();
    checks.into_iter().find(|c| c["group"] == "boxes" && c["label"] == label)
}

#[test]
fn a_fork_bomb_ends_at_its_limit() {
    let world = World::headless();
    make(&world, "bomb", &["--pids-limit", "64", "--cpus", "0.5"]);
    make(&world, "calm", &[]);
    assert!(row(&world, "limits").is_some());
    let (before, _) = host_memory(&world);
    // A shell's bomb ends by itself when no fork works any more; the other one tries again for ever.
    let forever = r#"perl -e "fork // select undef, undef, undef, .01 while 1""#;
    let_loose(&world, "bomb", &format!("{forever} & f() {{ f | f & }}; f; wait"));
    let at_limit =
        |world: &World| world.json(&["status", "bomb"])["details"]["usage"]["atLimit"].clone();
    eventually_or(SOON, "the box at its limit", || match at_limit(&world) {
        seen if seen == serde_json::json!(["processes"]) => Ok(()),
        seen => Err(seen),
    });
    // It is said wherever somebody looks.
    let check = eventually_or(SOON, "a row of the box", || row(&world, "bomb").ok_or("none"));
    assert_eq!(check["level"], "warn", "{check}");
    assert!(check["detail"].as_str().unwrap().contains("processes ("), "{check}");
    assert!(row(&world, "calm").is_none() && row(&world, "limits").is_none());
    // One of its processes may have ended the moment somebody looks.
    for (args, said) in [
        (&["status", "bomb"][..], &["at limit", "agentbox stop bomb"][..]),
        (&["top", "--once"], &["bomb is at its limit: processes"]),
    ] {
        eventually_or(SOON, &format!("agentbox {args:?} saying so"), || {
            let shown = promptly(&world, args);
            if said.iter().all(|word| shown.contains(word)) { Ok(()) } else { Err(shown) }
        });
    }
    // A command in it fails, and says why, or its own shell does; its neighbour notices nothing.
    let refused = eventually_or(SOON, "a command that finds no room", || {
        let output = world.in_box("bomb", "/bin/true; /bin/true");
        if output.status.success() { Err("it worked") } else { Ok(text(&output.stderr)) }
    });
    let explained = refused.contains("hint: ") && refused.contains("agentbox stop");
    assert!(explained || refused.contains("fork"), "{refused}");
    promptly(&world, &["list"]);
    assert_eq!(world.box_ok("calm", "echo fine"), "fine");
    // It can be stopped, comes back, and can be destroyed.
    let stop = Running::start(world.agentbox_command(&["stop", "bomb"])).end_within(GRACE);
    assert_eq!(stop.code, Some(0), "{}", stop.err);
    world.ok(&["start", "bomb"]);
    assert_eq!(world.box_ok("bomb", "echo again"), "again");
    assert_eq!(at_limit(&world), serde_json::json!([]));
    let_loose(&world, "bomb", "f() { f | f & }; f; wait");
    let gone = Running::start(world.agentbox_command(&["destroy", "-y", "bomb"])).end_within(GRACE);
    assert_eq!(gone.code, Some(0), "{}", gone.err);
    stayed_small(&world, before, 30 * MB);
}

#[test]
fn every_box_has_a_limit_of_processes() {
    let world = World::headless();
    make(&world, "plain", &[]);
    let details = world.json(&["status", "plain"])["details"].clone();
    assert_eq!(details["limits"]["pids"], 8192, "{details}");
    assert_eq!(
        world.box_ok(
            "plain",
            "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null; true"
        ),
        "8192"
    );
}

#[test]
fn a_box_that_wants_all_memory_gets_its_own() {
    let world = World::headless();
    make(&world, "hungry", &["--memory", "128m"]);
    let (before, _) = host_memory(&world);
    let hog = world.in_box("hungry", "head -c 2000m /dev/zero | tail -n 1 > /dev/null");
    assert!(!hog.status.success());
    assert_eq!(world.box_ok("hungry", "echo still here"), "still here");
    let details = eventually_or(SOON, "the engine telling of it", || {
        let details = world.json(&["status", "hungry"])["details"].clone();
        if details["outOfMemory"] == true { Ok(details) } else { Err(details) }
    });
    assert_eq!(details["limits"]["memoryBytes"], 128 * MB);
    assert!(promptly(&world, &["status", "hungry"]).contains("had used up its memory"));
    let check = eventually_or(SOON, "a row of the box", || row(&world, "hungry").ok_or("none"));
    assert!(check["detail"].as_str().unwrap().contains("had used up its memory"), "{check}");
    stayed_small(&world, before, 30 * MB);
    world.ok(&["stop", "hungry"]);
    world.ok(&["start", "hungry"]);
    assert!(row(&world, "hungry").is_none(), "it has all its memory again");
}

/// What a box's log may weigh in all: two files of four megabytes.
const LOG: usize = 9 * 1024 * 1024;

#[test]
fn a_log_without_an_end_is_kept_short() {
    let world = World::headless();
    make(&world, "loud", &[]);
    let (before, _) = host_memory(&world);
    // As fast as it goes, with long lines, short ones and none at all.
    let flood = "sudo bash -c 'head -c 7000m /dev/zero | tr \"\\0\" x > /proc/1/fd/1; \
                 yes \"$(head -c 300 /dev/zero | tr \"\\0\" y)\" | head -c 3000m > /proc/1/fd/2; \
                 yes | head -c 2m > /proc/1/fd/1'";
    let since = Instant::now();
    let flooding = world.begin("loud", flood);
    // Somebody who reads slowly holds nothing up and nothing in memory.
    let slow = Running::start(world.agentbox_command(&["logs", "-f", "loud"]));
    let flooded = flooding.end_within(Duration::from_secs(900));
    assert_eq!(flooded.code, Some(0), "{}", flooded.err);
    eprintln!("10 GB of log in {:?}", since.elapsed());
    slow.kill();
    // All there is of it, once the engine has read it all.
    eventually_or(SOON, "the end of the log", || {
        let output = world.agentbox(&["logs", "-n", "4000000000", "loud"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stdout.len() < LOG, "{} bytes of log are kept", output.stdout.len());
        let end = text(&output.stdout[output.stdout.len().saturating_sub(100)..]);
        if end.contains("y\ny") { Ok(()) } else { Err(end) }
    });
    // Files are its own business.
    world.box_ok(
        "loud",
        "head -c 300m /dev/zero > big.log && git add -A && rm big.log && git reset -q",
    );
    promptly(&world, &["status", "loud"]);
    stayed_small(&world, before, 40 * MB);
}

/// Characters that move a cursor or turn a line around, in all the ways they are written.
const EVIL: &str = "\u{9b}2J\u{202e}\u{2066}\u{200b}\u{1b}[31m";

#[test]
fn names_of_processes_can_do_no_harm() {
    let world = World::headless();
    make(&world, "many", &[]);
    let (before, _) = host_memory(&world);
    let script = format!(
        "long=$(head -c 100000 /dev/zero | tr \"\\0\" z); \
         for n in $(seq 400); do (exec -a \"$(printf \"{}\")$long\" sleep 10000) & done; wait",
        EVIL.bytes().map(|b| format!("\\\\x{b:02x}")).collect::<String>()
    );
    let_loose(&world, "many", &script);
    let processes = |world: &World| {
        let details = world.json(&["status", "many"])["details"].clone();
        details["processes"].as_array().unwrap().clone()
    };
    let listed = eventually_or(SOON, "all of them", || match processes(&world) {
        all if all.len() > 400 => Ok(all),
        all => Err(all.len()),
    });
    let evil: Vec<&str> = listed.iter().filter_map(|p| p["command"].as_str()).collect();
    let evil: Vec<&str> = evil.into_iter().filter(|command| command.contains("zzz")).collect();
    assert!(evil.len() > 300, "{}", evil.len());
    assert!(evil.iter().all(|command| command.chars().count() < 500), "{:?}", evil[0]);
    for args in [&["status", "many"][..], &["status", "many", "--json"], &["inspect", "many"]] {
        let shown = promptly(&world, args);
        let bad = shown
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || EVIL.contains(*c) && !c.is_ascii());
        assert_eq!(bad, None, "agentbox {args:?}");
        assert!(shown.len() < 2_000_000, "{} bytes", shown.len());
    }
    stayed_small(&world, before, 40 * MB);
    let gone = Running::start(world.agentbox_command(&["destroy", "-y", "many"])).end_within(GRACE);
    assert_eq!(gone.code, Some(0), "{}", gone.err);
}

#[test]
fn a_list_of_sessions_without_an_end_is_cut_off() {
    let world = World::headless();
    make(&world, "chatty", &[]);
    let (before, _) = host_memory(&world);
    // Many real ones first: each is listed.
    let made =
        "for n in $(seq 150); do tmux new-session -d -s shell-$n sleep 1000; done; tmux ls | wc -l";
    assert_eq!(world.box_ok("chatty", made), "150");
    let listed = world.json(&["shell", "ls", "chatty"]);
    assert_eq!(listed["shells"].as_array().map(Vec::len), Some(150));
    world.box_ok(
        "chatty",
        "printf '#!/bin/sh\\nexec yes \"[{\\\\\"name\\\\\":\\\\\"shell\\\\\"},\"\\n' > /tmp/fake && chmod +x /tmp/fake && \
         sudo cp /usr/local/bin/agentbox-ctl /tmp/real && sudo install /tmp/fake /usr/local/bin/agentbox-ctl",
    );
    let output = world.agentbox(&["shell", "ls", "chatty"]);
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    assert!(err.contains("too long"), "{err}");
    stayed_small(&world, before, 30 * MB);
}

#[test]
fn a_full_memory_folder_is_told_and_mended_by_a_new_start() {
    let mut world = World::headless();
    make(&world, "stuffed", &[]);
    world.box_ok("stuffed", "sudo sh -c 'head -c 100m /dev/zero > /run/agentbox/x; true'");
    let full = world.box_ok("stuffed", "df --output=avail /run/agentbox | tail -n 1");
    assert_eq!(full.trim(), "0");
    // Commands need nothing of it; a new host does, and says what is wrong.
    assert_eq!(world.box_ok("stuffed", "echo fine"), "fine");
    world.kill_host();
    world.start_serve();
    let output = world.agentbox(&["recover", "stuffed"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!((out.clone() + &err).contains("o space left on device"), "{out}{err}");
    assert!((out.clone() + &err).contains("agentbox stop"), "{out}{err}");
    world.ok(&["stop", "stuffed"]);
    world.ok(&["start", "stuffed"]);
    world.box_ok("stuffed", "agentbox-ctl event back");
    world.ok(&["destroy", "-y", "stuffed"]);
}
