//! The check-up names what is there, where it is, and what to do about what is not.

use crate::services::Service;
use crate::world::{World, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn rows(world: &World, group: &str) -> Vec<Value> {
    let checks = world.json(&["doctor"])["checks"].clone();
    checks.as_array().unwrap().iter().filter(|c| c["group"] == group).cloned().collect()
}

#[track_caller]
fn row(world: &World, group: &str, label: &str) -> Value {
    let all = rows(world, group);
    let found = all.iter().find(|c| c["label"] == label).cloned();
    found.unwrap_or_else(|| panic!("no {label} in {all:?}"))
}

/// Level, detail and hint.
#[track_caller]
fn says(world: &World, service: &str) -> (String, String, String) {
    let row = row(world, "integrations", service);
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    (text("level"), text("detail"), text("hint"))
}

#[test]
fn every_host_program_is_named_with_the_path_it_would_be_run_by() {
    let world = World::headless();
    let own = world.dir().join("bin");
    let at = |name: &str| row(&world, "programs", name)["detail"].as_str().unwrap().to_owned();
    let named: Vec<String> =
        rows(&world, "programs").iter().map(|c| c["label"].as_str().unwrap().to_owned()).collect();
    assert_eq!(named, ["git", "gh", "ntn", "linear", "xdg-open"]);
    assert_eq!(at("gh"), "/usr/bin/gh");
    assert_eq!(row(&world, "programs", "linear")["level"], "info");
    assert_eq!(at("linear"), "not installed");
    // The first in the search path is the one that is run, and a link is followed to its end.
    world.host_program("linear", "#!/bin/sh\n");
    world.host_program("gh-real", "#!/bin/sh\n");
    std::os::unix::fs::symlink("gh-real", own.join("gh")).unwrap();
    assert_eq!(at("linear"), own.join("linear").display().to_string());
    let gh = at("gh");
    assert!(gh.starts_with(own.to_str().unwrap()), "{gh}");
    let shown = world.ok(&["doctor"]);
    assert!(shown.contains(&own.join("linear").display().to_string()), "{shown}");
    // What others can write is not run, so it is not named either.
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(at("linear"), "not installed");
    assert_eq!(at("gh"), "/usr/bin/gh");
}

#[test]
fn boxes_16_50_a_closed_engine_is_a_warning_and_a_closed_home_a_failure() {
    let mut world = World::bare();
    let (socket, home) = (world.dir().join("closed.sock"), world.home());
    let _engine = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let allow = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&socket, 0o000);
    allow(&home, 0o700);
    world.set("DOCKER_HOST", &format!("unix://{}", socket.display()));
    let output = world.agentbox(&["doctor"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let line = shown.lines().find(|line| line.contains("permission denied")).expect(&shown);
    assert!(line.contains("[warn] engine"), "{line}");
    assert!(line.contains("usermod -aG docker"), "{line}");

    allow(&home, 0o500);
    let output = world.agentbox(&["doctor"]);
    allow(&home, 0o700);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    let line = shown.lines().find(|line| line.contains("is not writable")).expect(&shown);
    assert!(line.contains("[FAIL] home"), "{line}");
}

#[test]
fn each_service_is_off_without_its_program_without_a_login_or_ready() {
    let trello = Service::start(r#"{"id":"5abbe4b7ddc1b351ef961414"}"#);
    let world = World::over(
        "auto",
        &format!(
            "secrets: {{backend: file}}\n\
             integrations: {{linear: {{enabled: true}}, trello: {{enabled: true, baseUrl: '{}'}}}}\n",
            trello.url
        ),
    );
    let labels: Vec<String> = rows(&world, "integrations")
        .iter()
        .map(|c| c["label"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(labels, ["github", "notion", "linear", "trello", "clickup"]);
    let strings = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());

    let off = strings("info", "disabled", "agentbox integrations enable notion");
    assert_eq!(says(&world, "notion"), off);
    let (level, detail, hint) = says(&world, "linear");
    assert_eq!((level.as_str(), detail.as_str()), ("warn", "linear not installed"));
    assert!(hint.contains("linear-cli"), "{hint}");
    // On by default, and nobody has logged in here.
    assert_eq!(says(&world, "github"), strings("warn", "not logged in", "run `gh auth login`"));
    let (level, detail, hint) = says(&world, "trello");
    assert_eq!((level.as_str(), detail.as_str()), ("warn", "not logged in"));
    assert!(hint.contains("agentbox secrets set trello.token"), "{hint}");

    world.store("trello.key", "0123456789abcdef0123456789abcdef");
    world.store("trello.token", "ATTA0123456789abcdef0123456789abcdef");
    assert_eq!(says(&world, "trello"), strings("ok", "Trello API · authed", ""));
    world.host_program("linear", "#!/bin/sh\necho 'no libc' >&2; exit 1\n");
    let (level, detail, _) = says(&world, "linear");
    assert_eq!((level.as_str(), detail.as_str()), ("warn", "linear --version failed: no libc"));
    world.host_program("linear", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'linear 2.6.0'\n");
    assert_eq!(says(&world, "linear").1, "not logged in");
    world.host_program(
        "linear",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'linear 2.6.0'\nexit 0\n",
    );
    assert_eq!(says(&world, "linear"), strings("ok", "linear 2.6.0 · authed", ""));
    world.ok(&["integrations", "disable", "linear"]);
    assert_eq!(says(&world, "linear").1, "disabled");
    // None of it is a reason to fail.
    assert!(world.agentbox(&["doctor"]).status.success());
}
