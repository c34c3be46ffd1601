//! Files of this computer that cannot be copied: each fails for itself, and a box that needs one is kept
//! without being started.

use crate::carry::{boxes, configure, run, user_home, write};
use crate::conversations::{claudes, down_and_up, line};
use crate::create_faults::{nothing_is_left, repository};
use crate::queue::{becomes, submit};
use crate::sessions::stand_in;
use crate::world::World;
use serde_json::Value;
use std::fs;
use std::time::Duration;

const SLOW: Duration = Duration::from_secs(120);

/// Three of them have no place in a box: a folder, below a file, and on a disk that is only read.
const LIST: &str = "
carry:
  - ~/first
  - {src: ~/second, dest: /opt}
  - {src: ~/third, dest: /usr/bin/git/x}
  - ~/folder
  - {src: ~/fourth, dest: /agentbox/objects/0/objects/x}
  - {src: ~/fifth, dest: /opt/fifth}
tasks:
  seen: {command: touch /workspace/ran}
";

fn files(world: &World) {
    let home = user_home(world);
    for name in ["first", "second", "third", "folder/a", "fourth", "fifth"] {
        write(home.join(name), name, 0o600);
    }
}

/// What is on record of the copies of a box.
fn carried(world: &World, name: &str) -> Vec<Value> {
    world.json(&["inspect", name])["details"]["carried"].as_array().unwrap().clone()
}

fn failed(carried: &[Value]) -> Vec<&str> {
    let failed = carried.iter().filter(|one| one["failed"].is_string());
    failed.map(|one| one["dest"].as_str().unwrap()).collect()
}

#[test]
fn carry_a_failed_entry_fails_the_create_and_the_box_is_kept_unstarted() {
    let world = World::headless();
    files(&world);
    configure(&world, LIST);
    let before = repository(&world);
    let (code, out, said) = run(&world, &["create", "-n", "cf", "--carry-yes"], &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("3 entries were not copied"), "{said}");
    let home = user_home(&world).canonicalize().unwrap();
    for (src, dest, why) in [
        ("second", "/opt", "it is a folder"),
        ("third", "/usr/bin/git/x", "Not a directory"),
        ("fourth", "/agentbox/objects/0/objects/x", "Read-only file system"),
    ] {
        let start = format!("{}/{src} → {dest}: ", home.display());
        let row = said.lines().find(|row| row.contains(&start));
        assert!(row.is_some_and(|row| row.contains(why)), "no {start}{why} in {said}");
    }
    assert!(said.contains("agentbox destroy") && said.contains("--carry-best-effort"), "{said}");

    // It is there, with the others, and nothing was started in it.
    assert_eq!(boxes(&world), 1);
    assert_eq!(world.box_ok("cf", "cat ~/first ~/folder/a /opt/fifth"), "firstfolder/afifth");
    assert!(!world.in_box("cf", "test -e ran -o -e /run/agentbox/token").status.success());
    let list = carried(&world, "cf");
    assert_eq!(list.len(), 6, "{list:?}");
    assert_eq!(failed(&list), ["/opt", "/usr/bin/git/x", "/agentbox/objects/0/objects/x"]);
    assert!(list.iter().all(|one| one["approvedAt"].as_u64().is_some_and(|at| at > 0)), "{list:?}");
    let records = world.json(&["audit", "cf"])["records"].as_array().unwrap().clone();
    let noted = records.iter().find(|record| record["kind"] == "carried").unwrap();
    let summary = noted["summary"].as_str().unwrap();
    assert!(summary.contains("3 entries") && summary.contains("failed"), "{noted}");

    // Out of the way, it comes once the box is started, and stays on record as copied.
    world.box_ok("cf", "sudo rmdir /opt/* 2>/dev/null; sudo mv /opt /opt.old");
    world.ok(&["stop", "cf"]);
    world.ok(&["start", "cf"]);
    world.box_ok("cf", "for n in $(seq 100); do test -e ran && exit; sleep 0.1; done; exit 1");
    stand_in(&world, "cf", "claude");
    let said = down_and_up(&world, "cf", || (), &[]);
    assert!(said.contains("1 carried entry"), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert_eq!(world.box_ok("cf", "cat /opt"), "second");
    assert_eq!(failed(&carried(&world, "cf")), ["/usr/bin/git/x", "/agentbox/objects/0/objects/x"]);

    world.ok(&["destroy", "-y", "cf"]);
    nothing_is_left(&world, "destroyed");
    assert_eq!(repository(&world), before);
}

#[test]
fn carry_best_effort_makes_the_box_and_says_what_it_lacks() {
    let world = World::headless();
    files(&world);
    configure(&world, LIST);
    let args = ["create", "-n", "cb", "--carry-yes", "--carry-best-effort"];
    let (code, out, said) = run(&world, &args, &[]);
    assert_eq!(code, Some(0), "{said}");
    for dest in ["/opt: ", "/usr/bin/git/x: ", "/agentbox/objects/0/objects/x: "] {
        let warning = |row: &&str| row.starts_with("warning: carry: not copied: ");
        assert!(said.lines().filter(warning).any(|row| row.contains(dest)), "{dest}: {said}");
    }
    assert!(out.contains("copied  /opt/fifth") && !out.contains("copied  /opt,"), "{out}");
    assert_eq!(world.box_ok("cb", "cat ~/first ~/folder/a /opt/fifth"), "firstfolder/afifth");
    world.box_ok("cb", "for n in $(seq 100); do test -e ran && exit; sleep 0.1; done; exit 1");
    assert_eq!(failed(&carried(&world, "cb")).len(), 3);
    world.ok(&["destroy", "-y", "cb"]);

    // What need not be there is no reason to fail.
    configure(&world, "carry: [~/first, {src: ~/second, dest: /opt, optional: true}]\n");
    let (code, _, said) = run(&world, &["create", "-n", "co", "--carry-yes"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning: carry: not copied: ") && said.contains("→ /opt: "), "{said}");
    assert_eq!(world.box_ok("co", "cat ~/first"), "first");
}

#[test]
fn carry_of_a_job_or_a_fork_says_so_and_a_job_that_lacks_a_file_fails() {
    let world = World::headless();
    files(&world);
    configure(&world, "carry: [~/first, '~/second=/opt']\n");
    let job = submit(&world, &["-i", "fix the test", "-n", "cj-bad", "--carry-yes"]);
    let ended = becomes(&world, &job, "failed", SLOW);
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.contains("/second → /opt: ") && reason.contains("it is a folder"), "{ended}");
    assert!(ended["hint"].as_str().unwrap().contains("agentbox destroy"), "{ended}");
    assert_eq!(boxes(&world), 1, "its box is kept");
    assert_eq!(world.box_ok("cj-bad", "cat ~/first"), "first");

    configure(&world, "carry: [~/first]\n");
    // The smallest boxes have no Claude: they are made, with their files, and that is all.
    let job = submit(&world, &["-i", "fix the test", "-n", "cj-good", "--carry-yes"]);
    let ended = becomes(&world, &job, "failed", SLOW);
    let by = |name: &str| {
        let list = carried(&world, name);
        (list[0]["by"].clone(), list[0]["approvedAt"].as_u64().unwrap())
    };
    let (how, at) = by("cj-good");
    assert_eq!(how, "queue");
    assert!(at <= ended["createdAt"].as_u64().unwrap(), "when it was submitted: {at}, {ended}");
    write(
        user_home(&world).join(claudes(&world, "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11")),
        &line(&world, "one"),
        0o600,
    );
    world.agentbox(&["fork", "-d", "-n", "cj-fork", "--carry", "send"]);
    assert_eq!(by("cj-fork").0, "fork");
}

#[test]
fn carry_a_placeholder_without_a_value_is_told() {
    let world = World::headless();
    // A path that no variable can hold.
    let odd = world.dir().join("od\td");
    let (from, to) = (world.project(), odd.to_str().unwrap().to_owned());
    world.git(world.dir(), &["clone", "-q", from.to_str().unwrap(), &to]);
    write(odd.join("agentbox.yaml"), "carry: [{src: ~/app.env, replaceEnvs: true}]\n", 0o644);
    let template = "{{AGENTBOX_BOX_NAME}} {{AGENTBOX_HOST_WORKSPACE}}";
    write(user_home(&world).join("app.env"), template, 0o600);
    let args = ["create", &to, "-n", "cp-unfilled", "--carry-yes"];
    let (code, _, said) = run(&world, &args, &[]);
    assert_eq!(code, Some(0), "{said}");
    let row = said.lines().find(|row| row.contains("{{AGENTBOX_HOST_WORKSPACE}}"));
    let row = row.unwrap_or_else(|| panic!("{said}"));
    assert!(row.starts_with("warning: carry: ") && row.contains("app.env has no value"), "{said}");
    assert!(!said.contains("AGENTBOX_BOX_NAME"), "{said}");
    let inside = world.box_ok("cp-unfilled", "cat ~/app.env");
    assert_eq!(inside, "cp-unfilled {{AGENTBOX_HOST_WORKSPACE}}");
    // By its folder's name nobody would find it any more.
    world.ok(&["destroy", "-y", "cp-unfilled"]);
    fs::remove_dir_all(&odd).unwrap();
}
