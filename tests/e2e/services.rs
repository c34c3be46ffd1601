//! What a box asks of services goes through the host, with credentials the box never sees.

use crate::world::{Ended, SOON, World};
use agentbox_e2e::session::Options;
use agentbox_e2e::wait::eventually;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Looks like the real thing, and is searched for everywhere afterwards.
const CANARY: &str = "ntn_canary0123456789abcdefghij";

/// A service on the loopback that answers everything with the same JSON and keeps what it was asked.
pub struct Service {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub headers: String,
    pub body: String,
}

impl Service {
    pub fn start(reply: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(one) = serve(stream, reply) {
                    kept.lock().unwrap().push(one);
                }
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, reply: &str) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = String::new();
    while reader.read_line(&mut headers).ok()? > 2 {}
    let length = headers
        .to_lowercase()
        .lines()
        .find_map(|l| l.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        reply.len()
    );
    stream.write_all((head + reply).as_bytes()).ok()?;
    Some(Asked {
        line: line.trim().to_owned(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

#[track_caller]
fn approved(world: &World, name: &str, script: &str) -> (Value, Ended) {
    let (question, ended) = world.answered(name, script, "approve");
    assert_eq!(ended.code, Some(0), "{}{}", ended.err, world.host_log());
    (question, ended)
}

#[test]
fn a_box_writes_to_notion_with_a_token_it_never_sees() {
    let notion =
        Service::start(r#"{"object":"page","id":"1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d","results":[]}"#);
    let mut world = World::desktop_before(Options::default());
    world.set("NOTION_API_BASE_URL", &notion.url);
    world.start_desktop();
    world.create("docs-bot");
    // Off until somebody switches it on, whatever the project says.
    let refused = world.in_box("docs-bot", "ntn api v1/users/me");
    assert_eq!(refused.status.code(), Some(65), "{}", String::from_utf8_lossy(&refused.stderr));
    world.ok(&["integrations", "enable", "notion"]);
    world.store("notion.token", CANARY);
    let listed = world.json(&["secrets"]);
    assert!(!listed.to_string().contains(CANARY));

    world.box_ok("docs-bot", "ntn api v1/users/me");
    let read = notion.asked().pop().unwrap();
    assert!(read.line.starts_with("GET /v1/users/me"), "{}", read.line);
    assert!(read.headers.contains(CANARY), "the token is for the service: {}", read.headers);

    let page = "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d";
    let script = format!("ntn pages create --parent page:{page} --content '# Roadmap'");
    let before = notion.asked().len();
    let (question, _) = approved(&world, "docs-bot", &script);
    assert!(question["title"].as_str().unwrap().contains("Notion"), "{question}");
    let write =
        notion.asked().into_iter().skip(before).find(|a| a.line.starts_with("POST")).unwrap();
    assert!(write.body.contains("Roadmap"), "{}", write.body);

    let (_, denied) = world.answered("docs-bot", &script, "deny");
    assert_eq!(denied.code, Some(10), "{}", denied.err);

    nowhere(&world, "docs-bot");
}

/// The canary is in no file, environment or command line of the box, and nowhere the host writes.
fn nowhere(world: &World, name: &str) {
    // Built from two halves, so that the search does not find itself.
    let (a, b) = CANARY.split_at(10);
    let search = format!(
        "p={a}; p=${{p}}{b}; grep -rlF \"$p\" / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; \
         for f in /proc/[0-9]*; do [ \"${{f#/proc/}}\" = $$ ] && continue; \
         cat $f/environ $f/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -F \"$p\" | grep -v grep; done; true"
    );
    let found = world.box_ok(name, &search);
    assert!(found.is_empty(), "{}", &found[..found.len().min(2000)]);
    let mut files = vec![world.home()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
        } else if path.is_file() {
            let text = std::fs::read(&path).unwrap_or_default();
            let found = text.windows(CANARY.len()).any(|w| w == CANARY.as_bytes());
            assert!(!found, "{} holds the credential", path.display());
        }
    }
    assert!(!world.json(&["audit", "-n", "500"]).to_string().contains(CANARY));
    assert!(!world.host_log().contains(CANARY));
}

#[test]
fn trello_is_called_directly_and_each_write_asks() {
    let trello = Service::start(r#"{"id":"5abbe4b7ddc1b351ef961414","name":"Fix login"}"#);
    let mut world = World::bare();
    world.configure(&format!(
        "secrets: {{backend: file}}\nintegrations: {{trello: {{enabled: true, baseUrl: '{}'}}}}\n",
        trello.url
    ));
    world.start_serve();
    world.create("fix-login");
    let listed = world.json(&["integrations"]);
    let enabled: Vec<&str> = listed["integrations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|i| i["enabled"] == true)
        .map(|i| i["service"].as_str().unwrap())
        .collect();
    assert_eq!(enabled, ["github", "trello"]);
    // GitHub is on, and this project is not there.
    let elsewhere = world.in_box("fix-login", "gh pr list");
    assert_eq!(elsewhere.status.code(), Some(65));
    assert!(String::from_utf8_lossy(&elsewhere.stderr).contains("GitHub"));
    let missing = world.in_box("fix-login", "trello board list");
    assert_eq!(missing.status.code(), Some(4), "{}", String::from_utf8_lossy(&missing.stderr));
    world.store("trello.key", "0123456789abcdef0123456789abcdef");
    world.store("trello.token", CANARY);
    world.box_ok("fix-login", "trello board list");
    let script = "trello card create --list 5abbe4b7ddc1b351ef961414 --name 'Fix login'";
    let before = trello.asked().len();
    let (question, denied) = world.answered("fix-login", script, "deny");
    assert_eq!(denied.code, Some(10));
    assert!(question.to_string().contains("Fix login"), "{question}");
    assert_eq!(trello.asked().len(), before, "a denied write was sent");
    approved(&world, "fix-login", script);
    let sent = trello.asked().pop().unwrap();
    assert!(sent.line.starts_with("POST /cards") && !sent.line.contains(CANARY), "{}", sent.line);
    assert!(sent.headers.contains(CANARY));
    let kept = std::fs::read(world.home().join("secrets/trello.token")).unwrap();
    assert_eq!(kept, CANARY.as_bytes());
}

#[test]
fn a_keyring_that_is_locked_dead_or_stuck_never_hangs_anybody() {
    let notion = Service::start("{}");
    let mut world = World::desktop_before(Options::default());
    world.set("NOTION_API_BASE_URL", &notion.url);
    world.configure("integrations: {notion: {enabled: true}}\n");
    world.start_desktop();
    world.create("docs-bot");
    world.store("notion.token", CANARY);
    world.box_ok("docs-bot", "ntn api v1/users/me");

    let bus = world.session().bus();
    let pid: u32 = bus
        .call_method(
            Some("org.freedesktop.DBus"),
            "/org/freedesktop/DBus",
            Some("org.freedesktop.DBus"),
            "GetConnectionUnixProcessID",
            &("org.freedesktop.secrets",),
        )
        .unwrap()
        .body()
        .deserialize()
        .unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    let asked = |what: &str| {
        let begun = Instant::now();
        let output = world.in_box("docs-bot", "ntn api v1/users/me");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(begun.elapsed() < Duration::from_secs(25), "{what}: took {:?}", begun.elapsed());
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("notion.token"), "{what}: {said}");
        said
    };
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let said = asked("stopped");
    assert!(said.contains("3 s"), "{said}");
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    eventually(SOON, "the keyring coming back", || {
        world.in_box("docs-bot", "ntn api v1/users/me").status.success().then_some(())
    });
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    asked("killed");
    // Boxes and questions go on without it.
    world.commit("docs-bot", "One");
    let push = world.push("docs-bot");
    world.question_of("docs-bot");
    world.approve("docs-bot", &[]);
    assert_eq!(push.end().code, Some(0));
}

#[test]
fn relay_19_47_a_link_opens_only_after_a_yes() {
    let mut world = World::bare();
    let log = world.dir().join("opened");
    world.host_program(
        "xdg-open",
        &format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" >> {}\n", log.display()),
    );
    world.configure("");
    world.start_serve();
    world.create("fix-login");
    let bad = world.in_box("fix-login", "xdg-open file:///etc/passwd");
    assert_eq!(bad.status.code(), Some(64), "{}", String::from_utf8_lossy(&bad.stderr));
    world.box_ok("fix-login", "xdg-open 'https://example.com/a b'");
    let question = world.question_of("fix-login");
    world.ok(&[
        "approve",
        question["id"].as_str().unwrap(),
        "--digest",
        question["digest"].as_str().unwrap(),
    ]);
    let opened = eventually(SOON, "the link being opened", || {
        std::fs::read_to_string(&log).ok().filter(|opened| opened.lines().count() > 1)
    });
    assert_eq!(opened, "1\nhttps://example.com/a%20b\n");
}

#[test]
fn events_of_a_box_survive_a_restart_and_can_be_followed() {
    let mut world = World::headless();
    world.create("fix-login");
    world.box_ok("fix-login", "agentbox-ctl event agent-done '{\"text\":\"tests pass\"}'");
    let told = |world: &World| world.json(&["events", "fix-login"])["events"].clone();
    let first = told(&world);
    assert_eq!(first[0]["kind"], "agent-done", "{first}");
    // It is killed as soon as that is written down, a moment later.
    let is_in = |name: &str| {
        let bytes = std::fs::read(world.home().join(name)).unwrap_or_default();
        bytes.windows(b"tests pass".len()).any(|w| w == b"tests pass")
    };
    eventually(SOON, "the event in the database", || {
        ["agentbox.db", "agentbox.db-wal"].into_iter().any(is_in).then_some(())
    });
    world.kill_host();
    world.start_serve();
    assert_eq!(told(&world), first);

    let mut follow = world.agentbox_command(&["events", "-f", "--json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("tests pass"));
    world.box_ok("fix-login", "agentbox-ctl event next");
    let next: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(
        (next["event"]["kind"].as_str(), next["event"]["id"].as_u64()),
        (Some("next"), first[0]["id"].as_u64().map(|n| n + 1))
    );
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_person_types_a_push_and_is_not_asked_again() {
    let world = World::headless();
    world.create("fix-login");
    let oid = world.commit("fix-login", "One");
    world.ok(&["git", "push", "fix-login"]);
    assert_eq!(world.at_remote("agentbox/fix-login"), Some(oid));
    assert!(world.audit_kinds("fix-login").contains(&"typed".to_owned()));
    world.ok(&["git", "branch", "fix-login", "login"]);
    let oid = world.commit("fix-login", "Two");
    let (question, _) = approved(&world, "fix-login", "git push");
    assert!(question["title"].as_str().unwrap().ends_with("origin/login"), "{question}");
    assert_eq!(world.at_remote("login"), Some(oid));
}

#[test]
fn relay_19_50_who_comes_later_is_told_what_is_open() {
    let world = World::headless();
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    let question = world.question_of("fix-login");
    let mut watch = world.agentbox_command(&["approvals", "--watch", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(first.to_string().contains(question["digest"].as_str().unwrap()), "{first}");
    // A program's answer names what it was shown.
    let id = question["id"].as_str().unwrap();
    let blind = world.agentbox(&["approve", id]);
    assert_eq!(blind.status.code(), Some(2), "{}", String::from_utf8_lossy(&blind.stderr));
    world.ok(&["approve", id, "--digest", question["digest"].as_str().unwrap()]);
    let next: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(next.to_string().contains("allowed"), "{next}");
    assert_eq!(push.end().code, Some(0));
    watch.kill().unwrap();
    watch.wait().unwrap();
}
