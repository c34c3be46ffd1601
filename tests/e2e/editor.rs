//! `agentbox code`: terminals for services in the editor, and what of it git gets to see.

use crate::urls::world;
use crate::world::{SOON, World, text};
use agentbox_e2e::wait::eventually;
use std::process::Stdio;

const SERVICES: &str =
    "services:\n  web:\n    command: sleep 1000\n  db:\n    command: sleep 1000\n";
const TASKS: &str = "/workspace/.vscode/tasks.json";

/// The labels of the tasks in a box's file, without its first line.
#[track_caller]
fn labels(world: &World, name: &str) -> Vec<String> {
    let file = world.box_ok(name, &format!("cat {TASKS}"));
    let (first, body) = file.split_once('\n').unwrap();
    assert!(first.starts_with("// Made by AgentBox"), "{file}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let tasks = body["tasks"].as_array().unwrap().iter();
    let mut labels: Vec<_> = tasks.map(|task| task["label"].as_str().unwrap().to_owned()).collect();
    labels.sort();
    labels
}

#[test]
fn boxes_16_49_services_have_terminals_and_git_status_stays_clean() {
    let (world, _) = world("");
    std::fs::write(world.project().join("agentbox.yaml"), SERVICES).unwrap();
    world.git(&world.project(), &["add", "."]);
    world.git(&world.project(), &["commit", "-qm", "Services"]);
    world.create("desk");
    let clean = || assert_eq!(world.box_ok("desk", "git status --porcelain"), "");
    world.ok(&["code", "desk", "--print", "--no-auto-terminals"]);
    assert!(!world.in_box("desk", &format!("test -e {TASKS}")).status.success());
    let uri = world.ok(&["code", "desk", "--print"]);
    assert!(uri.starts_with("vscode-remote://attached-container+"), "{uri}");
    assert_eq!(labels(&world, "desk"), ["db: log", "web: log"]);
    clean();
    // Neither does the project's own repository know of it, nor its list of what it ignores.
    assert_eq!(world.git(&world.project(), &["status", "--porcelain"]), "");
    let lists = "cat .git/info/exclude .gitignore 2>/dev/null | grep -c vscode";
    assert_eq!(text(&world.in_box("desk", lists).stdout).trim(), "0");

    // Our own file follows the services; without any it is gone.
    world.box_ok("desk", "printf 'services:\\n  api:\\n    command: sleep 9\\n' > agentbox.yaml");
    world.ok(&["code", "desk", "--print"]);
    assert_eq!(labels(&world, "desk"), ["api: log"]);
    world.box_ok("desk", "printf '{}\\n' > agentbox.yaml");
    world.ok(&["code", "desk", "--print"]);
    assert!(!world.in_box("desk", &format!("test -e {TASKS}")).status.success());
    world.box_ok("desk", "git checkout -q agentbox.yaml");
    clean();

    // One of the person's own is left alone, until they say otherwise.
    world
        .box_ok("desk", &format!("mkdir -p .vscode && echo '{{\"version\": \"mine\"}}' > {TASKS}"));
    let kept = world.agentbox(&["code", "desk", "--print"]);
    assert!(kept.status.success() && text(&kept.stderr).contains("--regen-tasks"), "{kept:?}");
    assert_eq!(world.box_ok("desk", &format!("cat {TASKS}")), "{\"version\": \"mine\"}");
    world.ok(&["code", "desk", "--print", "--regen-tasks"]);
    assert_eq!(labels(&world, "desk"), ["db: log", "web: log"]);
    clean();
}

#[test]
fn without_services_and_without_an_editor_the_address_is_all_there_is() {
    let (mut world, _) = world("");
    world.create("bare");
    world.set("PATH", "/usr/bin:/bin");
    let failed = world.agentbox(&["code", "bare", "--yes", "--no-wait"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let (out, err) = (text(&failed.stdout), text(&failed.stderr));
    assert!(out.starts_with("vscode-remote://attached-container+"), "{out}");
    assert!(err.contains("no code and no cursor in PATH") && err.contains("hint: "), "{err}");
    let cursor = world.agentbox(&["code", "bare", "--yes", "--ide", "cursor"]);
    assert!(text(&cursor.stderr).contains("no cursor in PATH"), "{cursor:?}");
    assert!(!world.in_box("bare", &format!("test -e {TASKS}")).status.success());
    let wrong = world.agentbox(&["code", "bare", "--no-wait", "--timeout", "1s"]);
    assert_eq!(wrong.status.code(), Some(2));
    let nobody = world.agentbox(&["code", "nobody"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(!text(&nobody.stderr).contains("lends"), "{nobody:?}");
}

#[test]
fn an_editor_waits_for_tasks_and_services_but_not_for_ever() {
    let (world, _) = world("");
    let yaml = "tasks:
  slow: {command: 'while [ ! -e /tmp/go ]; do sleep 0.1; done'}
services:
  web: {command: sleep 1000, needs: [slow]}
";
    std::fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
    world.create("slow");
    let mut command = world.agentbox_command(&["code", "slow", "--print"]);
    let mut held = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One who has less time goes on meanwhile, and is told why that is too early.
    let early = world.agentbox(&["code", "slow", "--print", "--timeout", "1s"]);
    let (out, err) = (text(&early.stdout), text(&early.stderr));
    assert!(early.status.success() && out.starts_with("vscode-remote://"), "{early:?}");
    assert!(err.contains("at most 1 s"), "{err}");
    assert!(
        err.contains("the box is not ready: not up in time: ") && err.contains("slow"),
        "{err}"
    );
    assert!(held.try_wait().unwrap().is_none(), "it did not wait");
    world.box_ok("slow", "touch /tmp/go");
    eventually(SOON, "the editor's address", || held.try_wait().unwrap());
    let held = held.wait_with_output().unwrap();
    assert!(held.status.success(), "{held:?}");
    assert_eq!(text(&held.stdout), out);
    assert!(!text(&held.stderr).contains("not ready"), "{held:?}");
    let ready = world.agentbox(&["code", "slow", "--print"]);
    assert_eq!(text(&ready.stderr), "", "nobody had to wait");

    // What failed cannot be waited for.
    let broken = "printf 'tasks: {broken: {command: exit 3}, slow: {command: sleep 1000}}\\n' > agentbox.yaml; agentbox-ctl reload";
    world.box_ok("slow", broken);
    let mut command = world.agentbox_command(&["code", "slow", "--print", "--timeout", "30m"]);
    let mut failed = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually(SOON, "the end of the wait", || failed.try_wait().unwrap());
    let failed = failed.wait_with_output().unwrap();
    assert!(failed.status.success() && text(&failed.stdout) == out, "{failed:?}");
    let err = text(&failed.stderr);
    assert!(err.contains("the box is not ready: failed: broken\n"), "{err}");
}
