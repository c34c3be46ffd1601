//! Settings that reach a box: a person's, and what a repository tightens.

use crate::world::{World, text};
use std::fs;

fn configure(world: &World, yaml: &str) {
    fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
}

/// What is said while a box is made.
fn created(world: &World, args: &[&str]) -> String {
    let output = world.agentbox(&[&["create"], args].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

fn processes(world: &World, name: &str) -> String {
    let either = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null; true";
    world.box_ok(name, either).trim().to_owned()
}

#[test]
fn yaml_13_55_a_repository_tightens_a_box_and_widens_nothing() {
    let world = World::headless();
    configure(
        &world,
        "defaults:\n  box: {pidsLimit: 700, withEnv: true}\n  approvals: {mode: safe}\n",
    );
    let said = created(&world, &["-n", "tightened"]);
    assert!(said.contains("defaults.box.withEnv: has no effect here"), "{said}");
    assert!(said.contains("defaults.approvals.mode: has no effect here"), "{said}");
    assert_eq!(processes(&world, "tightened"), "700");
    let get = |key: &str| world.json(&["config", "get", key])["setting"].clone();
    assert_eq!(
        (&get("box.pidsLimit")["value"], &get("box.pidsLimit")["from"]),
        (&"700".into(), &"workspace".into())
    );
    assert_eq!(get("approvals.mode")["value"], "ask");

    // A person's own limit is kept, and so is what they say for one box.
    let set = world.ok(&["config", "set", "box.pidsLimit", "600"]);
    assert!(set.contains("box.pidsLimit = 600   (from: project)"), "{set}");
    let said = created(&world, &["-n", "tighter-still"]);
    assert!(said.contains("700 has no effect") && said.contains("yours is 600"), "{said}");
    assert_eq!(processes(&world, "tighter-still"), "600");
    created(&world, &["-n", "by-flag", "--pids-limit", "900"]);
    assert_eq!(processes(&world, "by-flag"), "900");

    configure(&world, "defaults: {box: {pidsLimit: plenty}}\n");
    let refused = world.agentbox(&["create", "-n", "no-value"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(said.contains("agentbox.yaml validation failed:") && said.contains("(Y070)"), "{said}");
}

#[test]
fn a_changed_setting_is_on_record_and_the_next_box_has_it() {
    let world = World::headless();
    world.ok(&["config", "set", "--global", "box.pidsLimit", "650"]);
    created(&world, &["-n", "counted"]);
    assert_eq!(processes(&world, "counted"), "650");
    let file = fs::read_to_string(world.home().join("config.yaml")).unwrap();
    assert!(file.contains("pidsLimit: 650") && file.contains("stage: core"), "{file}");
    world.ok(&["config", "unset", "--global", "box.pidsLimit"]);
    let back = world.json(&["config", "get", "box.pidsLimit"])["setting"].clone();
    assert_eq!((&back["value"], &back["from"]), (&"8192".into(), &"default".into()));
    let records = world.json(&["audit", "--kind", "setting-changed"])["records"].clone();
    let keys: Vec<_> = records.as_array().unwrap().iter().map(|r| &r["data"]["key"]).collect();
    assert_eq!(keys, ["box.pidsLimit", "box.pidsLimit"], "{records}");
    // The same as the window's switch for a service.
    world.ok(&["config", "set", "integrations.notion.enabled", "on"]);
    let all = world.json(&["integrations", "list"])["integrations"].clone();
    let notion = all.as_array().unwrap().iter().find(|i| i["service"] == "notion").unwrap();
    assert_eq!((&notion["enabled"], &notion["decidedBy"]), (&true.into(), &"project".into()));
    let projects = world.json(&["config", "list-projects"])["projects"].clone();
    let root = world.project().canonicalize().unwrap();
    assert_eq!(projects[0]["root"], root.to_str().unwrap());
}
