//! What people say with flags about one box, and what holds in it afterwards.

use crate::github::Site;
use crate::sessions::{pane_shows, stand_in, terminal};
use crate::world::{SOON, World, settings, text};
use agentbox_e2e::wait::eventually_or;

#[test]
fn an_agent_asks_in_a_box_for_as_long_as_the_person_wants() {
    let world = World::headless();
    world.create("flag-asks");
    stand_in(&world, "flag-asks", "claude");
    let asks = "--no-dangerously-skip-permissions";
    world.ok(&["claude", "start", "flag-asks", "-d", asks]);
    pane_shows(&world, "flag-asks", "claude", "claude|up");

    // It comes back as it was, by itself and by hand, whatever becomes of box and host.
    world.ok(&["stop", "flag-asks"]);
    world.ok(&["start", "flag-asks"]);
    pane_shows(&world, "flag-asks", "claude", "claude|up");
    world.ok(&["claude", "stop", "flag-asks"]);
    world.ok(&["claude", "start", "flag-asks", "-d", "--", "go"]);
    pane_shows(&world, "flag-asks", "claude", "claude|go|up");

    world.ok(&["claude", "stop", "flag-asks"]);
    world.ok(&["claude", "start", "flag-asks", "-d", "--dangerously-skip-permissions"]);
    pane_shows(&world, "flag-asks", "claude", "claude|--dangerously-skip-permissions|up");
    let trail = world.json(&["audit", "--grep", "works in flag-asks"]);
    let said = trail["records"].as_array().unwrap().iter();
    let said: Vec<_> =
        said.filter_map(|record| record["data"]["skipPermissions"].as_bool()).collect();
    assert_eq!(said, [false, true], "{trail}");
}

#[test]
fn an_isolated_agent_never_gets_the_persons_settings() {
    let world = World::headless();
    let commands = world.dir().join("home/.claude/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("fix.md"), "Fix it.\n").unwrap();
    world.ok(&["create", "-n", "flag-iso", "--isolate-claude-config"]);
    world.create("flag-own");
    for name in ["flag-iso", "flag-own"] {
        stand_in(&world, name, "claude");
        world.ok(&["claude", "start", name, "-d"]);
        pane_shows(&world, name, "claude", "up");
    }
    let has = |name: &str| world.box_ok(name, "cat ~/.claude/commands/fix.md 2>/dev/null; true");
    assert_eq!((has("flag-iso").as_str(), has("flag-own").as_str()), ("", "Fix it."));
}

#[test]
fn a_shell_is_for_a_user_or_plain() {
    let world = World::headless();
    world.create("flag-shell");
    let run = |args: &[&str]| world.agentbox(&[&["shell", "flag-shell"], args].concat());
    assert_eq!(text(&run(&["--user", "root", "--", "id", "-un"]).stdout), "root\n");
    assert_eq!(text(&run(&["--user", "0:0", "--", "id", "-u"]).stdout), "0\n");
    let bad = run(&["--user", "no such", "--", "true"]);
    assert_eq!(bad.status.code(), Some(2), "{}", text(&bad.stderr));
    let unknown = run(&["--user", "nobody-of-that-name", "--", "true"]);
    assert_ne!(unknown.status.code(), Some(0), "{}", text(&unknown.stdout));
    // The engine itself says so, as the command's output.
    let said = text(&unknown.stdout) + &text(&unknown.stderr);
    assert!(said.contains("nobody-of-that-name"), "{said}");

    // In a session of its own, and at this terminal alone.
    world.box_ok("flag-shell", "echo 'export FROM=profile' >> ~/.bash_profile");
    for (args, from) in [(&[][..], "profile"), (&["--no-login", "-n", "plain"], "nothing")] {
        let mut shell = terminal(&world, &[&["shell", "flag-shell"], args].concat());
        shell.keys("echo from-${FROM:-nothing}-end\r");
        shell.shows(&format!("from-{from}-end"));
        shell.keys("exit\r");
        shell.end();
    }
    // This stage of the image has no ssh server.
    let none = run(&["--ssh-config"]);
    assert_eq!(none.status.code(), Some(1));
    let said = text(&none.stderr);
    assert!(said.contains("flag-shell has no ssh server") && said.contains("hint:"), "{said}");
}

#[test]
fn a_new_box_opens_with_a_shell() {
    let world = World::headless();
    let mut shell = terminal(&world, &["create", "-n", "flag-new", "-v", "--attach"]);
    shell.shows("$");
    shell.keys("echo at-$(pwd)-end\r");
    shell.shows("at-/workspace-end");
    shell.keys("\u{1}d");
    let (status, said) = shell.end();
    assert!(status.success(), "{said}");
    assert!(said.contains("agentbox shell attach"), "{said}");
    let shells = world.json(&["shell", "ls", "flag-new"]);
    assert_eq!(shells["shells"][0]["name"], "shell", "{shells}");
}

#[test]
fn a_boxs_changes_and_pull_requests_from_the_persons_side() {
    let mut world = World::bare();
    let site = Site::start(&world, "remote.git");
    world.git(&world.project(), &["remote", "set-url", "origin", &site.github.url()]);
    site.trusted_by(&mut world);
    let base = format!("https://{}/api/v3", site.github.host());
    world.configure(&settings(
        "socket",
        &format!(
            "secrets: {{backend: file}}\nintegrations: {{github: {{enabled: true, baseUrl: '{base}'}}}}\n"
        ),
    ));
    world.start_serve();
    world.create("flag-pr");
    world.store("github.enterprise-token", crate::github::TOKEN);
    world.commit("flag-pr", "Fix the login");
    world.box_ok("flag-pr", "echo more > more.txt");
    let status = world.ok(&["git", "status", "flag-pr", "--short"]);
    assert!(status.contains("## agentbox/flag-pr"), "{status}");
    assert!(status.contains("?? more.txt"), "{status}");

    world.ok(&["git", "push", "flag-pr"]);
    std::fs::write(world.project().join("body.md"), "It expired.").unwrap();
    let create =
        ["git", "pr", "create", "flag-pr", "--", "--title", "Fix it", "--body-file", "body.md"];
    let created = world.agentbox(&create);
    assert_eq!(created.status.code(), Some(0), "{}", text(&created.stderr));
    let pull = site.github.pull(1);
    assert_eq!(
        (pull.title.as_str(), pull.body.as_str(), pull.head.as_str(), pull.base.as_str()),
        ("Fix it", "It expired.", "agentbox/flag-pr", "main")
    );
    let listed = world.ok(&["git", "pr", "list", "flag-pr"]);
    assert!(listed.contains("Fix it"), "{listed}");
    let seen = world.ok(&["git", "pr", "view", "flag-pr", "--", "--json", "title"]);
    assert!(seen.contains("Fix it"), "{seen}");
    // Nobody was asked: it was typed.
    assert!(!world.audit_kinds("flag-pr").iter().any(|kind| kind == "asked"));
}

#[test]
fn the_host_is_ended_and_started_by_name() {
    let mut world = World::headless();
    world.create("flag-host");
    let before = world.json(&["host", "status"])["host"].clone();
    assert_eq!(before["running"], true);
    let pid = world.host_pid().to_string();
    assert_eq!(before["status"]["pid"].to_string(), pid);
    let said = world.ok(&["host", "restart", "--yes"]);
    assert!(said.starts_with("host "), "{said}");
    world.await_host_end();
    let after = world.json(&["host", "status"])["host"].clone();
    assert_ne!(after["status"]["pid"].to_string(), pid);
    assert_eq!(after["status"]["boxes"], 1);
    assert_eq!(world.box_ok("flag-host", "echo up"), "up");
    let log = std::fs::read_to_string(after["log"].as_str().unwrap()).unwrap();
    assert!(!log.is_empty());

    let stopped = world.ok(&["host", "stop", "--yes"]);
    assert!(stopped.starts_with("host       none runs\n"), "{stopped}");
    let none = world.agentbox(&["host", "status"]);
    assert_eq!(none.status.code(), Some(1));
    // Boxes go on without it.
    let mut docker = world.command("docker");
    let running = docker.args(["inspect", "-f", "{{.State.Running}}", "agentbox-flag-host"]);
    assert_eq!(text(&running.output().unwrap().stdout), "true\n");
    let started = world.json(&["host", "start"])["host"].clone();
    eventually_or(SOON, "the box being known again", || {
        let state = world.json(&["list"])["boxes"][0]["state"].clone();
        if state == "running" { Ok(()) } else { Err(state) }
    });
    assert_eq!(started["running"], true);
    world.ok(&["host", "stop", "-y"]);
    world.start_serve();
}

/// In a real tmux: what `attach.openIn` says, then what the command line says.
#[test]
fn sessions_open_beside_the_pane_or_where_the_person_likes() {
    let world = World::headless();
    world.create("flag-place");
    stand_in(&world, "flag-place", "claude");
    world.ok(&["claude", "start", "flag-place", "-d"]);
    let socket = world.dir().join("tmux.sock").display().to_string();
    let mut tmux = world.command("tmux");
    // The person of the tests has no shell of their own.
    tmux.env("SHELL", "/bin/sh");
    tmux.current_dir(world.project()).args(["-S", &socket, "-f", "/dev/null", "new", "sh"]);
    let mut person = agentbox_e2e::pty::Terminal::start(tmux);
    let panes = |what: &str| {
        let mut list = world.command("tmux");
        list.args(["-S", &socket, "list-panes", "-s", "-F", what]);
        let all = text(&list.output().unwrap().stdout);
        all.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let count = |wanted: usize, windows: usize| {
        eventually_or(SOON, "a place of its own", || {
            let mut all = panes("#{window_id}");
            let found = all.len();
            all.dedup();
            let seen = (found, all.len());
            if seen == (wanted, windows) { Ok(()) } else { Err(format!("{seen:?}")) }
        });
    };
    count(1, 1);
    let agentbox = world.program("agentbox").display().to_string();
    person.keys(&format!("{agentbox} attach flag-place\r"));
    count(2, 1);
    // The new pane is in front; from the first one again, in a window of its own this time.
    let mut back = world.command("tmux");
    back.args(["-S", &socket, "select-pane", "-t", "%0"]);
    assert!(back.status().unwrap().success());
    person.keys(&format!("{agentbox} --set attach.openIn=tab attach flag-place\r"));
    count(3, 2);
    let mut end = world.command("tmux");
    end.args(["-S", &socket, "kill-server"]);
    assert!(end.status().unwrap().success());
    person.end();
}

#[test]
fn a_box_opens_in_what_there_is() {
    let (world, port) = crate::urls::world("");
    world.create("flag-open");
    let told = world.json(&["open", "--targets"]);
    let all = told["targets"].as_array().unwrap();
    let there = |app: &str| {
        let one = all.iter().find(|one| one["app"] == app).unwrap();
        one["available"].as_bool().unwrap()
    };
    assert!(there("files") && there("claude"), "{told}");
    assert!(!there("tmux") && !there("iterm2") && !there("vscode"), "{told}");
    let none = world.agentbox(&["open", "flag-open", "--in", "tmux"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("no tmux is around this terminal"));

    // The narrow lists: all boxes, from anywhere, with links for Herdr alone.
    let list = |flag: &str| text(&world.agentbox(&["list", flag]).stdout);
    assert!(list("--cmux").contains("── shop ─") && list("--cmux").contains("\nflag-open\n"));
    let link = format!("\x1b]8;;http://flag-open.localhost:{port}\x1b\\flag-open\x1b]8;;\x1b\\");
    assert!(list("--herdr").contains(&link), "{:?}", list("--herdr"));

    // What the engine is taken for decides about addresses: by project, then by command line.
    let url = |args: &[&str]| {
        text(&world.agentbox(&[&["url", "flag-open", "--print"], args].concat()).stdout)
    };
    assert_eq!(url(&[]), format!("http://flag-open.localhost:{port}\n"));
    world.ok(&["config", "set", "engine.kind", "orbstack"]);
    assert_eq!(url(&[]), "http://agentbox-flag-open.orb.local\n");
    let other = url(&["--set", "engine.kind=other"]);
    assert_eq!(other, format!("http://flag-open.localhost:{port}\n"));
}
