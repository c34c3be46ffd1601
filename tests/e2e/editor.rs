//! `agentbox code`: terminals for services in the editor, and what of it git gets to see.

use crate::urls::world;
use crate::world::{World, text};

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
