//! Settings that reach a box: a person's, and what a repository tightens.

use crate::world::{World, text};
use agentbox_e2e::pty::Terminal;
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

#[test]
fn a_trusted_agentbox_yaml_loosens_until_it_changes() {
    let world = World::headless();
    let yaml = "defaults: {box: {pidsLimit: 9000}, integrations: {notion: {enabled: true}}, approvals: {timeoutSeconds: 5}}\n";
    configure(&world, yaml);
    let get = |key: &str| world.json(&["config", "get", key])["setting"].clone();
    let notion = || {
        let all = world.json(&["integrations", "list"])["integrations"].clone();
        all.as_array().unwrap().iter().find(|i| i["service"] == "notion").unwrap().clone()
    };
    assert_eq!(get("box.pidsLimit")["value"], "8192");
    // Without anybody to ask: what it wants is shown, and nothing is changed.
    let asked = world.agentbox(&["config", "trust-workspace"]);
    assert_eq!(asked.status.code(), Some(2));
    let said = text(&asked.stderr);
    for words in ["box.pidsLimit", "9000", "8192", "integrations.notion.enabled", "A box can write"]
    {
        assert!(said.contains(words), "no {words} in {said}");
    }
    assert!(!said.contains("timeoutSeconds"), "how the host works is not up for it: {said}");
    let trust = world.json(&["config", "trust-workspace"])["trust"].clone();
    assert_eq!(trust["trusted"], false);
    let digest = trust["digest"].as_str().unwrap();
    let wrong = world.agentbox(&["config", "trust-workspace", "--digest", &"0".repeat(64)]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(
        (&notion()["enabled"], &get("box.pidsLimit")["value"]),
        (&false.into(), &"8192".into())
    );

    // A person at a terminal who only presses Enter has not said yes.
    let answer = |keys: &str| {
        let mut terminal = Terminal::start(world.agentbox_command(&["config", "trust-workspace"]));
        terminal.shows("as it is now, set this?");
        terminal.keys(keys);
        terminal.end().1
    };
    assert!(answer("\r").contains("nothing was changed"));
    assert_eq!(get("box.pidsLimit")["value"], "8192");
    assert!(answer("y\r").contains("it is trusted as it is, and no other text"));
    let pids = get("box.pidsLimit");
    assert_eq!((&pids["value"], &pids["from"]), (&"9000".into(), &"workspace".into()));
    let now = notion();
    assert_eq!((&now["enabled"], &now["decidedBy"]), (&true.into(), &"workspace".into()));
    assert_ne!(get("approvals.timeoutSeconds")["value"], "5");
    let explained = world.ok(&["config", "explain", "box.pidsLimit"]);
    assert!(explained.contains("you trust the file as it is"), "{explained}");
    assert_eq!(get("workspace.trusted")["value"], digest);
    created(&world, &["-n", "trusting"]);
    assert_eq!(processes(&world, "trusting"), "9000");
    let records = world.json(&["audit", "--kind", "setting-changed"])["records"].clone();
    assert_eq!(records.as_array().unwrap().last().unwrap()["data"]["value"], digest);

    // One more letter, and it can only tighten again.
    configure(&world, &yaml.replace("9000", "9001"));
    let said = text(&world.agentbox(&["config", "get", "box.pidsLimit"]).stderr);
    assert!(said.contains("has changed since you trusted it"), "{said}");
    assert_eq!(get("box.pidsLimit")["value"], "8192");
    assert_eq!(notion()["enabled"], false);
    configure(&world, yaml);
    assert_eq!(notion()["enabled"], true);
    world.ok(&["config", "trust-workspace", "--revoke"]);
    assert_eq!(
        (&notion()["enabled"], &get("box.pidsLimit")["value"]),
        (&false.into(), &"8192".into())
    );
    world.ok(&["config", "trust-workspace", "--digest", digest]);
    assert_eq!(notion()["enabled"], true);
}
