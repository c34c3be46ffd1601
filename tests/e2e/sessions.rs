//! Agents and shells in boxes: sessions that go on when nobody looks.
//!
//! Where it does not matter which program an agent is, one of the same name stands in its place in the
//! box; the real ones are in `agents.rs`.

use crate::world::{Running, SOON, World};
use agentbox_e2e::pty::Terminal;
use agentbox_e2e::wait::{eventually, eventually_or};
use serde_json::Value;

/// A program in the box that bears an agent's name, says what it was given and waits.
pub fn stand_in(world: &World, name: &str, agent: &str) {
    let script = format!(
        "sudo tee /usr/local/bin/{agent} >/dev/null <<'X'\n#!/bin/sh\n\
         printf '%s|' \"$0\" \"$@\"; env | grep _KEY; echo up; while read -r l; do\n\
         case $l in end*) exit \"${{l#end}}\";; *) echo \"said $l\";; esac; done\nX\n\
         sudo chmod 755 /usr/local/bin/{agent}"
    );
    world.box_ok(name, &script);
}

fn pane(world: &World, name: &str, session: &str) -> String {
    world.box_ok(name, &format!("tmux capture-pane -pJ -t ={session}: | sed '/^$/d'"))
}

#[track_caller]
pub fn pane_shows(world: &World, name: &str, session: &str, text: &str) {
    eventually_or(SOON, &format!("{session} showing {text}"), || {
        let shown = pane(world, name, session);
        if shown.contains(text) { Ok(()) } else { Err(shown) }
    });
}

pub fn terminal(world: &World, args: &[&str]) -> Terminal {
    Terminal::start(world.agentbox_command(args))
}

fn names(list: &Value) -> Vec<String> {
    let name = |s: &Value| s["name"].as_str().unwrap().to_owned();
    list["shells"].as_array().unwrap().iter().map(name).collect()
}

/// Asks the engine itself.
fn engine<T>(work: impl AsyncFnOnce(bollard::Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(crate::world::docker().await.unwrap()).await })
}

#[test]
fn a_shell_goes_on_when_its_terminal_closes_and_comes_back() {
    let world = World::headless();
    world.create("sh");
    let mut first = terminal(&world, &["shell", "sh"]);
    first.shows("$");
    first.keys("echo one-$((20+3)); tty\r");
    first.shows("one-23");
    // The terminal's size is the program's, before and after it changes.
    first.resize(91, 33);
    let wide =
        || world.box_ok("sh", "tmux display -p -t =shell: '#{window_width}x#{window_height}'");
    eventually_or(SOON, "the new size", || match wide() {
        size if size == "91x33" => Ok(()),
        other => Err(other),
    });
    first.keys("\u{1}d");
    let (status, text) = first.end();
    assert!(status.success(), "{text}");
    assert!(text.contains("Session detached. Reattach with: agentbox shell attach 1"), "{text}");
    assert_eq!(names(&world.json(&["shell", "ls", "sh"])), ["shell"]);

    let mut second = terminal(&world, &["shell", "sh"]);
    second.shows("one-23");
    // Engines would keep this key for themselves.
    second.keys("\u{10}\r");
    second.keys("exit 7\r");
    let (status, text) = second.end();
    assert_eq!(status.code(), Some(7), "{text}");
    assert_eq!(names(&world.json(&["shell", "ls", "sh"])), [""; 0]);
}

#[test]
fn boxes_16_34_shells_have_names_and_new_ones_the_lowest_number() {
    let world = World::headless();
    world.create("sh");
    let start = |args: &[&str], end: &str| {
        let mut shell = terminal(&world, args);
        shell.shows("$");
        shell.keys("\u{1}d");
        let (status, text) = shell.end();
        assert!(status.success() && text.contains(end), "{text}");
    };
    start(&["shell", "sh"], "shell attach 1");
    start(&["shell", "sh", "-n", "3"], "shell attach 1 -n 3");
    world.box_ok("sh", "tmux new-session -d -s claude-dash; tmux new-session -d -s shell-x-dash");
    start(&["shell", "sh", "--new"], "shell attach 1 -n 2");
    // Those of one second may stand in any order.
    let mut found = names(&world.json(&["shell", "ls", "sh"]));
    found.sort();
    assert_eq!(found, ["shell", "shell-2", "shell-3"]);
    assert_eq!(world.ok(&["shell", "kill", "sh", "-n", "3"]), "ended shell-3\n");
    assert_eq!(world.agentbox(&["shell", "kill", "sh", "-n", "3"]).status.code(), Some(1));
    world.ok(&["shell", "kill", "sh", "--all"]);
    assert_eq!(names(&world.json(&["shell", "ls", "sh"])), [""; 0]);
    assert_eq!(world.agentbox(&["shell", "attach", "sh"]).status.code(), Some(1), "no terminal");
}

#[test]
fn an_agent_is_started_left_found_again_and_ended() {
    let world = World::headless();
    world.create("ag");
    stand_in(&world, "ag", "claude");
    let mut agent = terminal(&world, &["claude", "start", "ag", "--", "fix it", "--now"]);
    agent.shows("claude|--dangerously-skip-permissions|fix it|--now|");
    agent.keys("hello\r");
    agent.shows("said hello");
    agent.keys("\u{1}d");
    let (status, text) = agent.end();
    assert!(status.success(), "{text}");
    assert!(text.contains("Session detached. Reattach with: agentbox claude attach 1"), "{text}");

    let again = world.agentbox(&["claude", "start", "ag", "-d", "--", "other"]);
    assert_eq!(again.status.code(), Some(1));
    let found: Value = world.json(&["claude", "start", "ag"]);
    assert_eq!(found["session"]["agent"], "claude");

    let mut back = terminal(&world, &["attach", "ag"]);
    back.shows("said hello");
    back.keys("end5\r");
    let (status, text) = back.end();
    assert_eq!(status.code(), Some(5), "{text}");

    let none = world.agentbox(&["attach", "ag"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(1));
    assert!(said.contains("no agent session running in ag"), "{said}");
    // Asked by its name, it is started again.
    let mut started = terminal(&world, &["claude", "attach", "ag"]);
    started.shows("up");
    started.keys("\u{1}d");
    assert!(started.end().0.success());
    assert_eq!(world.ok(&["claude", "stop", "ag"]), "ended claude in ag\n");
    assert_eq!(world.agentbox(&["claude", "stop", "ag"]).status.code(), Some(1));
}

#[test]
fn boxes_16_31_of_two_agents_the_newest_is_shown_without_a_terminal() {
    let world = World::headless();
    world.create("two");
    for agent in ["claude", "codex"] {
        stand_in(&world, "two", agent);
    }
    world.ok(&["codex", "start", "two", "-d"]);
    // tmux counts in seconds.
    let second = || world.box_ok("two", "date +%s");
    let before = second();
    eventually(SOON, "the next second", || (second() != before).then_some(()));
    world.ok(&["claude", "start", "two", "-d"]);
    let attached = Running::start(world.agentbox_command(&["attach", "two"]));
    eventually_or(SOON, "claude being shown", || {
        let clients = world.box_ok("two", "tmux list-clients -F '#{session_name}'");
        if clients == "claude" { Ok(()) } else { Err(clients) }
    });
    attached.kill();
    // Two on a terminal: the person is asked.
    let mut asked = terminal(&world, &["attach", "two"]);
    asked.shows("2) codex");
    asked.keys("\r");
    assert!(asked.end().0.success());
}

#[test]
fn boxes_16_32_a_paused_box_is_thawed_to_show_its_agent() {
    let world = World::headless();
    world.create("cold");
    stand_in(&world, "cold", "codex");
    world.ok(&["codex", "start", "cold", "-d"]);
    world.ok(&["pause", "cold"]);
    let mut agent = terminal(&world, &["attach", "cold"]);
    agent.shows("up");
    agent.keys("end0\r");
    assert!(agent.end().0.success());
}

#[test]
fn boxes_16_35_a_login_reaches_its_agent_although_the_server_runs_already() {
    let mut world = World::headless();
    world.create("key");
    stand_in(&world, "key", "codex");
    world.box_ok("key", "tmux new-session -d -s shell");
    assert_eq!(world.json(&["list"])["boxes"][0]["logins"], serde_json::json!([]));
    world.set("OPENAI_API_KEY", "sk-visible-to-codex");
    world.set("GITHUB_TOKEN", "never");
    world.ok(&["codex", "start", "key", "-d"]);
    pane_shows(&world, "key", "codex", "OPENAI_API_KEY=sk-visible-to-codex");
    // And nothing else does: no other session, no file, no process list, no container setting.
    let found = world.box_ok(
        "key",
        "grep -rsl '[s]k-visible' /run/agentbox /home /workspace /tmp; \
         ps -eo args | grep -c '[s]k-visible'; tmux show-environment -g | grep -c KEY; true",
    );
    assert_eq!(found, "0\n0");
    let inspected = engine(async |docker| {
        let options = None::<bollard::query_parameters::InspectContainerOptions>;
        docker.inspect_container("agentbox-key", options).await.unwrap()
    });
    assert!(!format!("{inspected:?}").contains("sk-visible"));
    let listed = world.json(&["list"])["boxes"][0].clone();
    assert_eq!(listed["logins"], serde_json::json!(["codex"]));
    let said = world.agentbox(&["list"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("key holds a login of Codex"), "{said}");
    let trail = world.ok(&["audit"]);
    assert!(trail.contains("Box key was given the login of Codex"), "{trail}");
    assert!(!trail.contains("sk-visible"));
}

#[test]
fn logins_can_be_switched_off() {
    let mut world = World::bare();
    world.configure("codex: {login: false}\n");
    world.start_serve();
    world.create("key");
    stand_in(&world, "key", "codex");
    world.set("OPENAI_API_KEY", "sk-stays-here");
    world.ok(&["codex", "start", "key", "-d"]);
    pane_shows(&world, "key", "codex", "up");
    assert!(!pane(&world, "key", "codex").contains("sk-stays"));
    let refused = world.agentbox(&["codex", "login", "key"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("boxes hold no login of Codex"), "{said}");
}

#[test]
fn what_an_agent_does_is_seen_on_the_host_and_after_a_restart() {
    let mut world = World::headless();
    world.create("st");
    stand_in(&world, "st", "claude");
    world.ok(&["claude", "start", "st", "-d"]);
    let state = |world: &World| world.json(&["list"])["boxes"][0]["agents"][0]["state"].clone();
    eventually(SOON, "a ready agent", || (state(&world) == "ready").then_some(()));
    world.box_ok("st", "agentbox-ctl agent-state claude working");
    assert_eq!(state(&world), "working");
    world.box_ok("st", "agentbox-ctl agent-state claude waiting");
    assert_eq!(state(&world), "waiting");
    assert!(world.ok(&["list"]).contains("claude waits"), "{}", world.ok(&["list"]));
    // What makes no sense changes nothing.
    world.box_ok(
        "st",
        "agentbox-ctl event agent-state '{\"agent\":\"rm\",\"state\":\"done\"}'; true",
    );
    assert_eq!(
        world.in_box("st", "agentbox-ctl agent-state claude asleep").status.code(),
        Some(64)
    );
    assert_eq!(state(&world), "waiting");
    world.kill_host();
    world.start_serve();
    assert_eq!(state(&world), "waiting");
    world.ok(&["claude", "stop", "st"]);
    eventually(SOON, "no agent", || state(&world).is_null().then_some(()));
}

#[test]
fn boxes_16_36_and_37_the_persons_settings_come_along_without_what_is_only_theirs() {
    let world = World::headless();
    let home = world.dir().join("home");
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let hooks = format!(
        r#"{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{}/bin/done"}}, {{"type": "command", "command": "./done.sh"}}]}}]}}}}"#,
        home.display()
    );
    write(".claude/settings.json", &hooks);
    write(".claude/commands/fix.md", "Fix it.\n");
    write(".claude/.credentials.json", "{\"claudeAiOauth\": {\"refreshToken\": \"never\"}}");
    write(".claude.json", "{\"theme\": \"light\", \"primaryApiKey\": \"never\"}");
    write(
        ".codex/config.toml",
        "[mcp_servers.mac]\ncommand = \"/Applications/X\"\n[mcp_servers.web]\ncommand = \"npx\"\n",
    );
    write(".codex/auth.json", "never");
    world.create("cfg");
    for agent in ["claude", "codex"] {
        stand_in(&world, "cfg", agent);
    }
    world.box_ok(
        "cfg",
        "mkdir -p ~/.codex && printf '[mcp_servers.x]\\ncommand = \"x\"\\n' > ~/.codex/config.toml",
    );
    world.ok(&["claude", "start", "cfg", "-d"]);
    world.ok(&["codex", "start", "cfg", "-d"]);
    let settings = world.box_ok("cfg", "cat ~/.claude/settings.json");
    assert!(settings.contains("./done.sh") && !settings.contains("bin/done"), "{settings}");
    assert_eq!(
        world.box_ok("cfg", "cat ~/.claude/commands/fix.md; stat -c %U ~/.claude/commands"),
        "Fix it.\nvscode"
    );
    // Nobody is asked at the first start whether the box's own workspace may be trusted.
    let state: Value = serde_json::from_str(&world.box_ok("cfg", "cat ~/.claude.json")).unwrap();
    assert_eq!(state["theme"], "light", "{state}");
    assert_eq!(state["hasCompletedOnboarding"], true, "{state}");
    assert_eq!(state["projects"]["/workspace"]["hasTrustDialogAccepted"], true, "{state}");
    let codex = world.box_ok("cfg", "cat ~/.codex/config.toml");
    assert!(codex.contains("npx") && codex.contains("mcp_servers.x"), "{codex}");
    assert!(!codex.contains("Applications"), "{codex}");
    let trust = "[projects.\"/workspace\"]\ntrust_level = \"trusted\"";
    assert!(codex.contains(trust), "{codex}");
    let found =
        world.box_ok("cfg", "grep -rsl 'ne[v]er' ~; ls -d ~/.local/state/agentbox/incoming; true");
    assert_eq!(found, "");

    // Once its own, Claude's state stays the box's; the rest follows the person.
    world.box_ok("cfg", "echo '{\"theme\": \"box\"}' > ~/.claude.json");
    write(".claude/commands/fix.md", "Fix it well.\n");
    world.ok(&["claude", "stop", "cfg"]);
    world.ok(&["claude", "start", "cfg", "-d"]);
    assert_eq!(world.box_ok("cfg", "cat ~/.claude.json"), "{\"theme\": \"box\"}");
    assert_eq!(world.box_ok("cfg", "cat ~/.claude/commands/fix.md"), "Fix it well.");
    write(".claude/commands/fix.md", "Not this.\n");
    world.ok(&["claude", "stop", "cfg"]);
    world.ok(&["claude", "start", "cfg", "-d", "--no-sync-config"]);
    assert_eq!(world.box_ok("cfg", "cat ~/.claude/commands/fix.md"), "Fix it well.");
}
