//! What people type about credentials, services and the trail, with the real program and a real host.

use crate::services::Service;
use crate::world::{SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use serde_json::Value;
use std::process::Output;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const TOKEN: &str = "ATTA0123456789abcdef0123456789abcdef0123456789abcdef";

/// A host that keeps credentials in files and finds Trello at the stand-in.
fn world(trello: &Service) -> World {
    World::over(
        "auto",
        &format!(
            "secrets: {{backend: file}}\nintegrations: {{trello: {{baseUrl: '{}'}}}}\n",
            trello.url
        ),
    )
}

#[track_caller]
fn ends(output: Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    (out, err)
}

fn secret(world: &World, id: &str) -> Value {
    let all = world.json(&["secrets", "list"])["secrets"].clone();
    all.as_array().unwrap().iter().find(|s| s["id"] == id).unwrap().clone()
}

#[test]
fn a_credential_is_stored_tried_and_removed_for_good() {
    let trello = Service::start(r#"{"id":"5abbe4b7ddc1b351ef961414","username":"ada"}"#);
    let world = world(&trello);
    let (out, _) = ends(world.agentbox(&["secrets", "test", "trello.token"]), 4);
    assert!(
        out.contains("not stored") && out.contains("agentbox secrets set trello.token"),
        "{out}"
    );
    let (_, err) = ends(world.agentbox(&["secrets", "rm", "trello.token", "-y"]), 2);
    assert!(err.contains("trello.token is not stored"), "{err}");

    world.store("trello.key", KEY);
    world.store("trello.token", TOKEN);
    let file = world.home().join("secrets/trello.token");
    assert!(file.exists());
    assert_eq!(secret(&world, "trello.token")["stored"], true);
    assert!(secret(&world, "trello.token")["lastUsed"].is_null());
    let (out, _) = ends(world.agentbox(&["secrets", "test", "trello.token"]), 0);
    assert!(out.contains("Trello API · authed"), "{out}");
    let sent = trello.asked().pop().unwrap();
    assert!(sent.line.starts_with("GET /members/me") && sent.headers.contains(TOKEN), "{sent:?}");
    let tried = world.json(&["secrets", "test", "trello.token"]);
    assert_eq!(tried["result"]["level"], "ok", "{tried}");
    assert!(secret(&world, "trello.token")["lastUsed"].is_u64());

    // A script that did not say so removes nothing.
    let (_, err) = ends(world.agentbox(&["secrets", "rm", "trello.token"]), 2);
    assert!(err.contains("nobody is there to be asked"), "{err}");
    assert!(file.exists());
    let (out, _) = ends(world.agentbox(&["secrets", "rm", "trello.token", "-y"]), 0);
    assert_eq!(out, "removed  trello.token\n");
    assert!(!file.exists());
    assert_eq!(secret(&world, "trello.token")["stored"], false);
    assert_eq!(secret(&world, "trello.key")["stored"], true);
    let (out, _) = ends(world.agentbox(&["secrets", "test", "trello.key"]), 1);
    assert!(out.contains("not logged in"), "{out}");

    let trail = world.json(&["audit", "--kind", "credential-set", "--kind", "credential-removed"]);
    let said: Vec<&str> = trail["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["summary"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        [
            "Credential trello.key stored",
            "Credential trello.token stored",
            "Credential trello.token removed"
        ]
    );
    assert!(!trail.to_string().contains(TOKEN));
}

#[test]
fn a_service_is_switched_for_one_project_and_for_all() {
    let trello = Service::start(r#"{"id":"5abbe4b7ddc1b351ef961414"}"#);
    let world = world(&trello);
    world.store("trello.key", KEY);
    world.store("trello.token", TOKEN);
    world.create("fix-login");
    let in_box = || world.in_box("fix-login", "trello board list").status.code();
    let shown = || world.json(&["integrations", "show", "trello"])["integration"].clone();
    assert_eq!((in_box(), shown()["enabled"].clone()), (Some(65), false.into()));

    let (out, err) = ends(world.agentbox(&["integrations", "enable", "trello", "--project"]), 0);
    assert_eq!(out, "enabled  trello\n");
    assert!(err.contains("agentbox integrations test trello"), "{err}");
    assert_eq!(in_box(), Some(0));
    let view = shown();
    assert_eq!((&view["enabled"], &view["decidedBy"]), (&true.into(), &"project".into()));
    // Nobody else's project is meant.
    let mut elsewhere = world.agentbox_command(&["integrations", "show", "trello", "--json"]);
    let elsewhere = elsewhere.current_dir(world.dir()).output().unwrap();
    let elsewhere: Value = serde_json::from_slice(&elsewhere.stdout).unwrap();
    assert_eq!(elsewhere["integration"]["enabled"], false, "{elsewhere}");
    // Nothing of it is in a file a box could write.
    assert_eq!(world.git(&world.project(), &["status", "--porcelain"]), "");

    // The project's own setting wins, and the person is told.
    let (_, err) = ends(world.agentbox(&["integrations", "disable", "trello"]), 0);
    assert!(err.contains("agentbox integrations disable trello --project"), "{err}");
    assert_eq!(in_box(), Some(0));
    ends(world.agentbox(&["integrations", "disable", "trello", "--project"]), 0);
    assert_eq!((in_box(), shown()["enabled"].clone()), (Some(65), false.into()));
    let (out, _) = ends(world.agentbox(&["integrations", "disable", "trello", "--project"]), 0);
    assert_eq!(out, "disabled  trello\n");

    let (out, _) = ends(world.agentbox(&["integrations", "show", "trello"]), 0);
    for part in ["A BOX CAN", "card.create", "asks", "Credentials: trello.key, trello.token"] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    for args in [["integrations", "show", "tello"], ["integrations", "enable", "tello"]] {
        let (_, err) = ends(world.agentbox(&args), 2);
        assert!(err.contains("no integration named tello") && err.contains("trello"), "{err}");
    }
    let changes = world.json(&["audit", "--kind", "setting-changed"]);
    assert_eq!(changes["records"].as_array().unwrap().len(), 4, "{changes}");
}

#[test]
fn a_service_is_tried_with_the_login_a_box_would_use() {
    let trello = Service::start(r#"{"id":"5abbe4b7ddc1b351ef961414"}"#);
    let mut world = world(&trello);
    let (out, _) = ends(world.agentbox(&["integrations", "test", "trello"]), 1);
    assert!(out.contains("not logged in") && out.contains("trello.com/power-ups"), "{out}");
    world.store("trello.key", KEY);
    world.store("trello.token", TOKEN);
    let (out, _) = ends(world.agentbox(&["integrations", "test", "trello"]), 0);
    assert!(out.contains("✓ trello  Trello API · authed"), "{out}");
    let tried = world.json(&["integrations", "test", "trello"]);
    assert_eq!(tried["result"]["level"], "ok", "{tried}");

    let (out, _) = ends(world.agentbox(&["integrations", "test", "linear"]), 1);
    assert!(out.contains("linear not installed") && out.contains("linear-cli"), "{out}");
    world.host_program("linear", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'linear 2.6.0'\n");
    let (out, _) = ends(world.agentbox(&["integrations", "test", "linear"]), 1);
    assert!(out.contains("not logged in") && out.contains("linear auth login"), "{out}");
    world.host_program(
        "linear",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'linear 2.6.0'\nexit 0\n",
    );
    let (out, _) = ends(world.agentbox(&["integrations", "test", "linear"]), 0);
    assert!(out.contains("linear 2.6.0 · authed"), "{out}");
    let (_, err) = ends(world.agentbox(&["integrations", "test", "tello"]), 2);
    assert!(err.contains("no integration named tello"), "{err}");

    // A service that answers nobody is a failure that says so.
    world.kill_host();
    world.configure(
        "integrations: {trello: {baseUrl: 'http://127.0.0.1:9'}}\nsecrets: {backend: file}\n",
    );
    world.start_serve();
    let tried = world.agentbox(&["integrations", "test", "trello", "--json"]);
    let (out, _) = ends(tried, 1);
    let tried: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(tried["result"]["level"], "warn", "{tried}");
    assert!(!out.contains(TOKEN) && !out.contains(KEY), "{out}");
}

/// The records a command line finds, as `kind summary`.
fn found(world: &World, args: &[&str]) -> Vec<String> {
    let found = world.json(&[&["audit"], args].concat());
    let line =
        |r: &Value| format!("{} {}", r["kind"].as_str().unwrap(), r["summary"].as_str().unwrap());
    found["records"].as_array().unwrap().iter().map(line).collect()
}

fn kinds(lines: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> =
        lines.iter().map(|l| l.split(' ').next().unwrap_or_default()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn the_trail_is_searched_and_exported() {
    let world = World::over("auto", "");
    world.create("fix-login");
    world.create("other");
    world.commit("fix-login", "One");
    let (_, pushed) = world.answered("fix-login", "git push", "approve");
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    let refused = world.in_box("fix-login", "agentbox-ctl rpc git.push '{\"args\":[\":main\"]}'");
    assert_eq!(refused.status.code(), Some(65), "{refused:?}");

    assert_eq!(kinds(&found(&world, &["--kind", "refused"])), ["refused"]);
    let both = found(&world, &["-k", "asked", "--kind", "answered", "fix-login"]);
    assert_eq!(kinds(&both), ["answered", "asked"]);
    assert!(found(&world, &["--kind", "no-such-kind"]).is_empty());
    assert_eq!(found(&world, &["--kind", "box-created"]).len(), 2);
    assert_eq!(found(&world, &["--kind", "box-created", "other"]).len(), 1);
    assert_eq!(
        found(&world, &["--kind", "box-created", "-n", "1"])[0],
        found(&world, &["other", "--kind", "box-created"])[0]
    );

    // In the summary, whatever the case, and nothing in it means more than itself.
    let pushes = found(&world, &["--grep", "pUSH 1 COMMIT"]);
    assert!(!pushes.is_empty() && pushes.iter().all(|l| l.contains("Push 1 commit")), "{pushes:?}");
    for nothing in ["%", "_________", "' OR 1=1 --", "*"] {
        let lines = found(&world, &["--grep", nothing]);
        assert!(lines.iter().all(|l| l.contains(nothing)), "{nothing}: {lines:?}");
    }
    let (out, err) = ends(world.agentbox(&["audit", "--grep", "no such words"]), 0);
    assert_eq!((out.as_str(), err.trim()), ("", "Nothing of that kind has happened."));

    // Time: all of it is younger than an hour, and one day all of it is older than a second.
    let all = found(&world, &["-n", "500"]);
    assert_eq!(found(&world, &["-n", "500", "--since", "1h"]), all);
    assert!(found(&world, &["--before", "1h"]).is_empty());
    eventually_or(SOON, "the boxes' making being a second ago", || {
        let young = found(&world, &["--kind", "box-created", "--since", "1s"]);
        if young.is_empty() { Ok(()) } else { Err(format!("{young:?}")) }
    });
    assert_eq!(found(&world, &["--kind", "box-created", "--before", "1s"]).len(), 2);
    let (_, err) = ends(world.agentbox(&["audit", "--since", "yesterday"]), 2);
    assert!(err.contains("30m, 1h or 2d"), "{err}");

    exported(&world);
}

/// All of the trail, in order and with its hashes, from the beginning or from where one was.
fn exported(world: &World) {
    let lines = |args: &[&str]| -> Vec<Value> {
        let text = world.ok(&[&["audit", "export"], args].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&[]);
    let verdict = world.json(&["audit", "verify"]);
    assert_eq!(verdict["verdict"]["records"], all.len(), "{verdict}");
    for (record, number) in all.iter().zip(1..) {
        assert_eq!(record["seq"], number);
        let hash = record["hash"].as_str().unwrap();
        assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{record}");
        assert!(record["data"].is_object() || record["data"].is_null(), "{record}");
    }
    assert_eq!(lines(&["--after", "2"]), all[2..]);
    assert!(lines(&["--after", &all.len().to_string()]).is_empty());
}
