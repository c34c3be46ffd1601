//! Settings: who decided, what is wrong, and what the host is asked to change.

use crate::launch::Hosted;
use crate::support::{FakeHost, Home};
use serde_json::json;
use sha2::Digest as _;
use std::os::unix::fs::PermissionsExt;

fn world(global: &str, yaml: &str) -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("config.yaml"), global).unwrap();
    std::fs::write(home.project().join("agentbox.yaml"), yaml).unwrap();
    home
}

#[test]
fn the_deciding_file_is_told() {
    let home = world("box: {memory: 8g}\n", "defaults: {box: {memory: 4g, vnc: true}}\n");
    home.run(&["config", "get", "box.memory"])
        .exits(0)
        .prints("box.memory = 4g   (from: workspace)\n");
    home.run(&["config", "get", "box.vnc"]).exits(0).prints("box.vnc = true   (from: default)\n");
    home.run(&["config", "get", "box.image"])
        .exits(0)
        .prints("box.image = <unset>   (from: default)\n");
    home.run(&["config", "get", "integrations.github.enabled"])
        .exits(0)
        .prints("integrations.github.enabled = true   (from: default)\n");
    let all = home.run(&["config", "get", "box.memory", "--all", "-j"]).exits(0).json();
    assert_eq!(all["setting"]["layers"][0]["value"], "4g");
    assert_eq!(all["setting"]["layers"][1]["from"], "global");
    let told = home.run(&["config", "explain", "box.memory"]).exits(0);
    assert!(told.stdout.contains("agentbox.yaml  may set it to what allows less"), "{told:?}");
}

#[test]
fn lists_are_of_everything_or_of_one_file() {
    let home = world("box: {memory: 8g}\n", "defaults: {box: {cpus: 2}}\n");
    let of = |scope: &str| {
        let list = home.run(&["config", "list", "-j", "--scope", scope]).exits(0).json();
        let all = list["settings"].as_array().unwrap().clone();
        all.iter().map(|s| s["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("global"), ["box.memory"]);
    assert_eq!(of("workspace"), ["box.cpus"]);
    assert_eq!(of("project"), [""; 0]);
    assert!(
        of("effective").len() > 30 && !of("effective").contains(&"relay.callsPerMinute".into())
    );
    let all = home.run(&["config", "list", "--include-advanced"]).exits(0);
    assert!(all.stdout.contains("relay.callsPerMinute"), "{all:?}");
    let paths = home.run(&["config", "path", "-j"]).exits(0).json();
    assert_eq!(paths["paths"]["global"], home.path().join("config.yaml").display().to_string());
    let one = home.run(&["config", "path", "--workspace"]).exits(0);
    assert_eq!(one.stdout, format!("{}\n", home.project().join("agentbox.yaml").display()));
}

#[test]
fn yaml_13_55_a_repository_that_wants_more_is_told_so() {
    let home = world("", "defaults: {box: {autoApproveHostActions: true, withEnv: true}}\n");
    let told = home.run(&["config", "get", "box.withEnv"]).exits(0);
    let told = told.prints("box.withEnv = false   (from: default)\n");
    let told = told.says("agentbox.yaml:1:").says("defaults.box.withEnv: has no effect here");
    let _ = told.says("defaults.box.autoApproveHostActions: there is no such setting");
    let _ = home.run(&["validate"]).exits(0).says("(W010)").says("(W011)");
    let _ = home.run(&["validate", "--strict"]).exits(2);
    let home = world("", "defaults: {box: {cpus: banana}}\n");
    let _ = home.run(&["validate"]).exits(2).says("(Y070)");
    let home = world("", "defaults: {box: {cpus: 2}\n");
    let told = home.run(&["config", "get", "box.cpus"]).exits(0);
    let _ = told.prints("box.cpus = <unset>   (from: default)\n").says("(Y001)");
}

#[test]
fn yaml_13_55_an_unknown_setting_and_a_bad_value_are_2() {
    let host = FakeHost::always(());
    for args in [
        &["config", "get", "box.memroy"][..],
        &["config", "set", "box.memroy", "4g"],
        &["config", "unset", "box.memroy"],
        &["config", "explain", "box.memroy"],
    ] {
        let ended = host.run(args).exits(2).says("there is no setting box.memroy");
        let _ = ended.says("did you mean box.memory?");
    }
    let _ = host.run(&["config", "set", "integrations.notoin.enabled", "yes"]).exits(2);
    for (key, value) in [
        ("approvals.timeoutSeconds", "banana"),
        ("box.memory", "lots"),
        ("box.docker", "maybe"),
        ("box.vnc", "-1"),
        ("code.timeoutMs", "banana"),
    ] {
        let _ = host.run(&["config", "set", key, value]).exits(2).says(value);
    }
    let refused = host.run(&["config", "set", "--project", "engine.host", "unix:///x"]).exits(2);
    let _ = refused.says("cannot be set for one project").says("--global");
    let _ = host.run(&["config", "set", "--project", "--global", "box.vnc", "no"]).exits(2);
    host.never_asked("setSetting");
}

#[test]
fn changes_go_through_the_host() {
    let host = FakeHost::always(());
    let _ = host.run(&["config", "set", "box.memory", "4g"]).exits(0);
    let asked = host.asked_once("setSetting");
    assert_eq!((&asked["key"], &asked["value"]), (&json!("box.memory"), &json!("4g")));
    assert_eq!(asked["layer"], "project");
    assert_eq!(asked["cwd"], json!(host.home.project()));
    let host = FakeHost::always(());
    // What concerns the host itself goes to the global file by itself.
    let told = host.run(&["config", "unset", "queue.maxConcurrent"]).exits(0);
    let _ = told.says("it holds when AgentBox starts the next time");
    let asked = host.asked_once("setSetting");
    assert_eq!((&asked["value"], &asked["layer"]), (&json!(null), &json!("global")));
}

/// Somebody whose editor is a script; `$2` is the file.
fn edited(home: &Home, args: &[&str], script: &str) -> crate::support::Ended {
    let editor = home.tmp().join("editor");
    std::fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(args);
    command.env("EDITOR", format!("{} --wait", editor.display()));
    command.env("AGENTBOX", env!("CARGO_BIN_EXE_agentbox"));
    crate::support::Ended::of(command.spawn().unwrap())
}

fn changes(home: &Home) -> Vec<serde_json::Value> {
    let records = home.run(&["audit", "--kind", "setting-changed", "-j"]).exits(0).json();
    records["records"].as_array().unwrap().iter().map(|record| record["data"].clone()).collect()
}

#[test]
fn an_edited_file_is_checked_before_it_counts() {
    let Hosted(home) = &Hosted(world("gh: {checkout: true}\n", ""));
    let edit = |args: &[&str], script: &str| edited(home, args, script);
    let file = home.path().join("config.yaml");
    let global = ["config", "edit", "--global"];
    let ended = edit(&global, "[ \"$1\" = --wait ] && printf 'gh: {chekout: true}\\n' > \"$2\"");
    let ended = ended.exits(2).says("nothing was changed").says("`chekout`");
    let _ = ended.says("what you wrote is in");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "gh: {checkout: true}\n");
    assert!(!home.path().join("run/host.lock").exists(), "a host was started for a mistake");
    let _ = edit(&global, "printf '# \\344\\n' > \"$2\"").exits(1).says("what you wrote is in");
    let _ = edit(&global, "printf '# mine\\n' > \"$2\"").exits(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    let _ = edit(&["config", "edit"], "printf 'box: {vnc: false}\\n' >> \"$2\"").exits(0);
    home.run(&["config", "get", "box.vnc"]).exits(0).prints("box.vnc = false   (from: project)\n");
    let projects = home.run(&["config", "list-projects", "-j"]).exits(0).json();
    assert_eq!(projects["projects"][0]["root"], json!(home.project()));
    assert_eq!(projects["projects"][0]["keys"], json!(["box.vnc"]));
    let host = edit(&["config", "edit"], "printf 'engine: {host: x}\\n' >> \"$2\"");
    let _ = host.exits(2).says("cannot be set for one project");
    let _ = edit(&["config", "edit"], "exit 3").exits(1).says("ended badly");
    let _ = edit(&["config", "edit"], "true").exits(0).says("nothing was changed");
    let workspace = ["config", "edit", "--workspace"];
    let _ = edit(&workspace, "printf 'services: {a: {}}\\n' > \"$2\"").exits(2).says("(Y011)");
    let record = |key: &str, value: serde_json::Value, file: &std::path::Path| json!({ "key": key, "value": value, "file": file });
    let own = std::path::PathBuf::from(projects["projects"][0]["file"].as_str().unwrap());
    assert_eq!(
        changes(home),
        [record("gh.checkout", json!(null), &file), record("box.vnc", json!(false), &own)]
    );
}

#[test]
fn what_is_set_while_a_file_is_edited_is_not_lost() {
    let Hosted(home) = &Hosted(world("# mine\n", ""));
    let file = home.path().join("config.yaml");
    let script =
        "echo 'box: {vnc: false}' >> \"$2\"; \"$AGENTBOX\" config set --global gh.checkout yes";
    let ended = edited(home, &["config", "edit", "--global"], script).exits(1);
    let ended = ended.says("was changed meanwhile").says("hint: open it again");
    let kept = ended.stderr.lines().find_map(|line| line.split_once("what you wrote is in "));
    let kept = std::fs::read_to_string(kept.unwrap().1).unwrap();
    assert_eq!(kept, "# mine\nbox: {vnc: false}\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\ngh:\n  checkout: true\n");
    // A file that was not there counts as well.
    let script = "echo 'box: {vnc: false}' >> \"$2\"; \"$AGENTBOX\" config set box.memory 4g";
    let _ = edited(home, &["config", "edit"], script).exits(1).says("was changed meanwhile");
    home.run(&["config", "get", "box.memory"])
        .exits(0)
        .prints("box.memory = 4g   (from: project)\n");
    let keys: Vec<_> = changes(home).iter().map(|data| data["key"].clone()).collect();
    assert_eq!(keys, ["gh.checkout", "box.memory"]);
    let again = edited(home, &["config", "edit"], "echo 'gh: {checkout: true}' >> \"$2\"");
    let _ = again.exits(0).says("is changed");
    assert_eq!(changes(home).len(), 3);
}

#[test]
fn a_file_no_host_starts_with_can_be_mended() {
    let home = world("gh: [\n", "");
    let _ = home.run(&["list"]).exits(1).says("no AgentBox host could be started");
    let ended = edited(&home, &["config", "edit", "--global"], "echo 'gh: {}' > \"$2\"").exits(0);
    let _ = ended.says("not on record");
    assert_eq!(std::fs::read_to_string(home.path().join("config.yaml")).unwrap(), "gh: {}\n");
}

#[test]
fn schemas_are_printed_for_editors() {
    let home = Home::new();
    let config = home.run(&["config", "schema"]).exits(0).json();
    assert_eq!(config["properties"]["box"]["properties"]["memory"]["minimum"], 0);
    let yaml = home.run(&["validate", "--schema"]).exits(0).json();
    assert!(yaml["$defs"]["service"].is_object());
    let defaults = &yaml["properties"]["defaults"]["properties"];
    assert!(defaults["box"]["properties"]["memory"].is_object());
    assert!(defaults["approvals"].is_null());
}

#[test]
fn yaml_13_54_a_command_line_wins_and_is_told() {
    let home = world("engine: {kind: orbstack}\n", "defaults: {engine: {kind: other}}\n");
    let kind = |args: &[&str]| home.run(&[&["config", "get", "engine.kind"], args].concat());
    let told = kind(&[]).exits(0).prints("engine.kind = orbstack   (from: global)\n");
    let _ = told.says("defaults.engine.kind: has no effect here");
    let _ =
        kind(&["--set", "engine.kind=auto"]).exits(0).prints("engine.kind = auto   (from: cli)\n");
    let all = kind(&["--set", "engine.kind=auto", "--all", "-j"]).exits(0).json();
    let layers = all["setting"]["layers"].as_array().unwrap().clone();
    let from: Vec<&str> = layers.iter().map(|layer| layer["from"].as_str().unwrap()).collect();
    assert_eq!(from, ["cli", "global"]);
    assert!(layers[0].get("file").is_none(), "{layers:?}");
    let _ = kind(&["--set", "engine.kind=banana"]).exits(2).says("\"banana\" is not one of");
    let refused = home.run(&["list", "--set", "approvals.mode=safe"]).exits(2);
    let _ = refused.says("approvals.mode cannot be set for one call");
}

#[test]
fn yaml_13_55_what_nobody_knows_is_told_and_passed_over() {
    let home = world("cloud: {region: x}\nbox: {memory: 8g, hetznerLocation: nbg1}\n", "");
    let told = home.run(&["config", "get", "box.memory"]).exits(0);
    let told = told.prints("box.memory = 8g   (from: global)\n");
    let _ = told.says("cloud is no setting").says("box.hetznerLocation is no setting");
    let home = world("claude: {logn: false}\n", "");
    let _ = home.run(&["config", "get", "claude.login"]).exits(2).says("logn");
}

#[test]
fn settings_of_an_older_version_are_found_again() {
    let home = world("", "");
    let root = home.project();
    // As its folder was named before.
    let hash = sha2::Sha256::digest(root.to_str().unwrap());
    let hash: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let old = home.path().join(format!("projects/{hash}-project"));
    std::fs::create_dir_all(&old).unwrap();
    let text = format!("# project: {}\nbox: {{vnc: false}}\n", root.display());
    std::fs::write(old.join("config.yaml"), text).unwrap();
    let Hosted(home) = &Hosted(home);
    let _ = home.run(&["list"]).exits(0);
    home.run(&["config", "get", "box.vnc"]).exits(0).prints("box.vnc = false   (from: project)\n");
    assert!(!old.exists());
    let log = std::fs::read_to_string(home.path().join("logs/host.log")).unwrap();
    assert!(log.contains("settings for") && log.contains(&hash), "{log}");
}
