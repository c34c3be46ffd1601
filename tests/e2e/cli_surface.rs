//! What people type to look at boxes, to call, limit and work them: with the real program.

use crate::world::{SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use serde_json::Value;
use std::process::Output;

#[track_caller]
fn ends(output: Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    (out, err)
}

#[test]
fn a_box_is_shown_by_another_name_and_found_by_it() {
    let mut world = World::headless();
    let made = world.create("login-cli");
    let (out, _) = ends(
        world.agentbox(&["status", "login-cli", "--set-name", " The \x1b[1mlogin\u{202e} "]),
        0,
    );
    assert_eq!(out, "login-cli is shown as The [1mlogin\n");
    world.ok(&["status", "login-cli", "--set-name", "The login"]);
    let listed = world.ok(&["list"]);
    assert!(listed.starts_with("Project: shop\n"), "{listed}");
    assert!(listed.contains("login-cli (The login)"), "{listed}");
    // By every reference there is, and nothing else of it has changed.
    for reference in ["The login", "shop/The login", "login-cli", "@shop", "shop/login-cli", "1"] {
        let found = world.json(&["inspect", reference])["details"]["view"].clone();
        assert_eq!(found["id"], made["id"], "{reference}");
        assert_eq!(found["branch"], "agentbox/login-cli");
        assert_eq!(found["displayName"], "The login");
        assert_eq!(found["web"], made["web"]);
    }
    assert_eq!(world.ok(&["git", "branch", "@shop"]), "login-cli pushes agentbox/login-cli\n");
    assert_eq!(
        world.ok(&["git", "branch", "shop/login-cli"]),
        "login-cli pushes agentbox/login-cli\n"
    );
    // It outlives the host.
    world.kill_host();
    world.start_serve();
    assert!(world.ok(&["list", "-g"]).contains("login-cli (The login)"));
    let (_, err) = ends(world.agentbox(&["status", "login-cli", "--set-name", &"x".repeat(61)]), 2);
    assert!(err.contains("at most 60 characters"), "{err}");
    world.ok(&["status", "The login", "--clear-name"]);
    let (_, err) = ends(world.agentbox(&["inspect", "The login"]), 2);
    assert!(err.contains("no box matches"), "{err}");
    let trail = world.json(&["audit", "--grep", "is shown as"]);
    assert_eq!(trail["records"].as_array().unwrap().len(), 2, "{trail}");
}

#[test]
fn limits_change_while_the_box_runs() {
    let world = World::headless();
    world.create("limits-cli");
    let started = world.box_ok("limits-cli", "stat -c %Y /proc/1");
    assert_eq!(world.ok(&["limits", "limits-cli"]), "limits-cli  processes 8192\n");
    let limits = world.json(&[
        "limits",
        "limits-cli",
        "--memory",
        "512m",
        "--cpus",
        "1.5",
        "--pids-limit",
        "500",
    ]);
    assert_eq!(
        limits["limits"],
        serde_json::json!({"memoryBytes": 512 << 20, "cpus": 1.5, "pids": 500})
    );
    // In the box, at once, and nothing was restarted.
    let cgroup = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes \
                  2>/dev/null | head -1";
    assert_eq!(world.box_ok("limits-cli", cgroup), (512 << 20).to_string());
    assert_eq!(world.box_ok("limits-cli", "stat -c %Y /proc/1"), started);
    // More than before, and then all there is.
    world.ok(&["limits", "limits-cli", "--memory", "2g"]);
    let limits = world.json(&["limits", "limits-cli", "--memory", "0", "--pids-limit", "0"]);
    assert!(limits["limits"]["memoryBytes"].as_u64().unwrap() > 1 << 30, "{limits}");
    assert_eq!(limits["limits"]["pids"], 8192, "{limits}");
    world.ok(&["stop", "limits-cli"]);
    world.ok(&["limits", "limits-cli", "--memory", "600m"]);
    world.ok(&["start", "limits-cli"]);
    assert_eq!(world.box_ok("limits-cli", cgroup), (600 << 20).to_string());
    let (_, err) = ends(world.agentbox(&["limits", "limits-cli", "--memory", "much"]), 2);
    assert!(err.contains("not a size such as 512m"), "{err}");
}

#[test]
fn a_box_is_looked_at_in_sections() {
    let world = World::headless();
    world.create("look-cli");
    world.create("other-cli");
    world.ok(&["stop", "other-cli"]);
    world.box_ok("look-cli", "agentbox-ctl session list >/dev/null");
    shell(&world, "look-cli");

    let status = world.ok(&["status", "look-cli"]);
    for part in ["\nENDPOINTS\n", "\nRESOURCES\n", "\nSHELLS\nshell ", "agentbox/look-cli"] {
        assert!(status.contains(part), "no {part:?} in {status}");
    }
    assert!(!status.contains("MOUNTS"), "{status}");
    let inspected = world.ok(&["status", "look-cli", "--inspect"]);
    for part in ["\nMOUNTS\n", "\nPROCESSES\n", "\nORIGIN\n", "/run/agentbox/host"] {
        assert!(inspected.contains(part), "no {part:?} in {inspected}");
    }
    let (_, err) = ends(world.agentbox(&["status", "--inspect"]), 2);
    assert!(err.contains("<BOX>"), "{err}");
    let details = world.json(&["status", "look-cli"]);
    assert_eq!(details["schema"], 1);
    assert_eq!(details["details"]["sessions"][0]["name"], "shell", "{details}");
    // A box that does not run is looked at, and not woken by that.
    let resting = world.json(&["status", "other-cli"]);
    assert_eq!(resting["details"]["sessions"], Value::Null);
    assert_eq!(resting["details"]["view"]["state"], "stopped");

    let live = world.ok(&["list", "--live"]);
    let header = live.lines().nth(1).unwrap();
    let columns: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(columns, ["N", "NAME", "STATE", "AGENT", "SHELLS", "URL", "WORKSPACE"]);
    let boxes = world.json(&["list", "--live"]);
    assert_eq!(boxes["boxes"][0]["sessions"][0]["name"], "shell", "{boxes}");
    assert!(boxes["boxes"][1].get("sessions").is_none(), "{boxes}");
    let (_, err) = ends(world.agentbox(&["list", "--json", "--watch"]), 2);
    assert!(err.contains("--watch"), "{err}");

    // The usage of this project's boxes alone.
    let used = world.json(&["top", "-p", "--once"]);
    assert_eq!(used["usage"]["boxes"].as_array().unwrap().len(), 2, "{used}");
    let mut elsewhere = world.agentbox_command(&["top", "-p", "--once"]);
    let (_, err) = ends(elsewhere.current_dir(world.dir()).output().unwrap(), 2);
    assert!(err.contains("this folder's project has no box"), "{err}");
}

/// A shell in the box, as `agentbox shell` begins one for a person.
#[track_caller]
fn shell(world: &World, name: &str) {
    let plan =
        r#"{"name":"shell","argv":["bash","--norc"],"env":{},"agent":null,"cols":80,"rows":24}"#;
    world.box_ok(name, &format!("echo '{plan}' | agentbox-ctl session start"));
}

#[test]
fn a_terminal_in_a_box_is_seen_and_worked_from_outside() {
    let world = World::headless();
    world.create("drive-cli");
    let (_, err) = ends(world.agentbox(&["drive", "snapshot", "drive-cli"]), 2);
    assert!(err.contains("there is no agent or shell in drive-cli"), "{err}");
    shell(&world, "drive-cli");
    world.ok(&["drive", "keypress", "drive-cli", "PS1='ready> '<Enter>"]);
    let on_screen = |wanted: &str| {
        world.ok(&["drive", "wait", "drive-cli", "--text", wanted, "--timeout", "30000"]);
    };
    on_screen("ready> ");

    // Keys, text without Enter, and a text with it.
    world.ok(&["drive", "keypress", "drive-cli", "echo 1<<2", "<BS>", "3<Enter>"]);
    world.ok(&["drive", "send-text", "drive-cli", "echo $((20+"]);
    world.ok(&["drive", "prompt", "drive-cli", "22)) 'quo\"ted' -t; echo $((6*7*100))"]);
    on_screen("4200");
    let shown = world.ok(&["drive", "snapshot", "drive-cli"]);
    assert!(shown.contains("\n42 quo\"ted -t\n"), "{shown}");
    let seen = world.json(&["drive", "snapshot", "drive-cli"])["screen"].clone();
    assert_eq!((&seen["session"], &seen["cols"]), (&"shell".into(), &80.into()), "{seen}");

    // What was typed was in nobody's process list, and what is shown moves no cursor.
    world.ok(&["drive", "keypress", "drive-cli", r"printf '\033[31mred\033[0m\n'<Enter>"]);
    on_screen("red");
    let colours = world.ok(&["drive", "snapshot", "drive-cli", "--ansi"]);
    assert!(colours.contains("\x1b[31mred"), "{colours:?}");
    assert!(!world.ok(&["drive", "snapshot", "drive-cli"]).contains('\x1b'));

    world.ok(&["drive", "resize", "drive-cli", "100", "30"]);
    let seen = eventually(SOON, "the other size", || {
        let seen = world.json(&["drive", "snapshot", "drive-cli"])["screen"].clone();
        (seen["cols"] == 100).then_some(seen)
    });
    assert_eq!(seen["rows"], 30);
    // Above the screen, too.
    world.ok(&["drive", "prompt", "drive-cli", "seq 100 300; echo e''nd"]);
    on_screen("end");
    let above = world.ok(&["drive", "snapshot", "drive-cli", "--rows", "250"]);
    assert!(above.contains("\n100\n") && above.contains("\n300\n"), "{above}");

    let (_, err) = ends(
        world.agentbox(&["drive", "wait", "drive-cli", "--text", "never", "--timeout", "300"]),
        1,
    );
    assert!(err.contains("was not on the screen within 300 ms"), "{err}");
    let (_, err) =
        ends(world.agentbox(&["drive", "snapshot", "drive-cli", "--session", "claude"]), 2);
    assert!(err.contains("there is shell"), "{err}");
    let (_, err) = ends(world.agentbox(&["drive", "keypress", "drive-cli", "<Entre>"]), 2);
    assert!(err.contains("<Entre> is no key"), "{err}");
    // A box that does not run is not started for a look.
    world.ok(&["stop", "drive-cli"]);
    ends(world.agentbox(&["drive", "snapshot", "drive-cli"]), 2);
    assert_eq!(world.json(&["inspect", "drive-cli"])["details"]["view"]["state"], "stopped");
}

#[test]
fn a_repository_below_the_workspace_is_pushed_by_its_folder() {
    let world = World::headless();
    let api = world.project().join("api");
    std::fs::create_dir(&api).unwrap();
    world.git(world.dir(), &["init", "-q", "--bare", "-b", "main", "api.git"]);
    world.git(&api, &["init", "-q", "-b", "main"]);
    world.git(&api, &["config", "user.name", "Ada Lovelace"]);
    world.git(&api, &["config", "user.email", "ada@example.org"]);
    std::fs::write(api.join("README.md"), "# API\n").unwrap();
    world.git(&api, &["add", "."]);
    world.git(&api, &["commit", "-qm", "First"]);
    let remote = world.dir().join("api.git").display().to_string();
    world.git(&api, &["remote", "add", "origin", &remote]);
    world.git(&api, &["push", "-q", "origin", "main"]);

    let made = world.create("nested-cli");
    let nested = made["nestedRepos"][0].clone();
    assert_eq!(
        (&nested["path"], &nested["branch"]),
        (&"api".into(), &"agentbox/nested-cli--api".into())
    );
    let status = world.ok(&["status", "nested-cli"]);
    assert!(status.contains("agentbox/nested-cli--api in api"), "{status}");
    world.box_ok("nested-cli", "cd api && echo x > x && git add x && git commit -qm X");
    let oid = world.box_ok("nested-cli", "git -C api rev-parse HEAD");
    world.ok(&["git", "push", "@shop", "--repo", "api"]);
    let refs = world
        .git(&world.dir().join("api.git"), &["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert!(refs.contains(&format!("refs/heads/agentbox/nested-cli--api {oid}")), "{refs}");
    assert_eq!(world.at_remote("agentbox/nested-cli"), None, "the workspace's own stayed");
    // What comes from there is merged there.
    world.git(&api, &["checkout", "-q", "-b", "more", "origin/main"]);
    world.git(&api, &["reset", "-q", "--hard", &oid]);
    std::fs::write(api.join("later"), "y\n").unwrap();
    world.git(&api, &["add", "later"]);
    world.git(&api, &["commit", "-qm", "Later"]);
    world.git(&api, &["push", "-q", "origin", "more:agentbox/nested-cli--api"]);
    world.ok(&["git", "pull", "nested-cli", "--repo", "api/"]);
    eventually_or(SOON, "the merged file", || {
        let seen = world.in_box("nested-cli", "cat api/later");
        if seen.status.success() { Ok(()) } else { Err(text(&seen.stderr)) }
    });
    for wrong in ["web", ".", "../api"] {
        let (_, err) = ends(world.agentbox(&["git", "push", "nested-cli", "--repo", wrong]), 2);
        assert!(err.contains("no repository") && err.contains("it has api"), "{err}");
    }
}

#[test]
fn long_commands_write_down_what_they_did() {
    let world = World::headless();
    world.create("logs-cli");
    let log = |name: &str| std::fs::read_to_string(world.home().join("logs").join(name));
    world.ok(&["stop", "logs-cli"]);
    world.ok(&["start", "logs-cli"]);
    let text = log("start.log").unwrap();
    assert!(text.contains(" BEGIN start logs-cli of ") && text.contains(" END "), "{text}");
    assert_eq!(log("latest.log").unwrap(), text);
    std::fs::write(world.dir().join("a.txt"), "a\n").unwrap();
    let file = world.dir().join("a.txt").display().to_string();
    world.ok(&["cp", &file, "logs-cli:b.txt"]);
    world.ok(&["cp", &file, "logs-cli:c.txt"]);
    assert!(log("cp.log").unwrap().contains("logs-cli:c.txt"));
    assert!(log("cp.log.prev").unwrap().contains("logs-cli:b.txt"));
    world.ok(&["checkpoint", "create", "logs-cli", "--name", "logged"]);
    let text = log("checkpoint.log").unwrap();
    assert!(text.lines().count() > 3 && text.contains(" END "), "{text}");
    world.ok(&["checkpoint", "rm", "logged", "-y"]);
    // A box that is not there has no log, and what failed says so.
    let before = log("start.log").unwrap();
    ends(world.agentbox(&["start", "nobody"]), 2);
    assert_eq!(log("start.log").unwrap(), before);
    ends(world.agentbox(&["cp", "logs-cli:/no/such", "."]), 1);
    assert!(log("cp.log").unwrap().contains(" FAIL "));
    world.ok(&["destroy", "logs-cli", "-y"]);
    assert!(log("destroy.log").unwrap().contains(" END "));
    world.ok(&["prepare", "--stage", "core"]);
    assert!(log("prepare.log").unwrap().contains(" BEGIN prepare core"));
}

#[test]
fn what_a_copy_replaces_is_named() {
    let world = World::headless();
    world.create("replace-cli");
    world.box_ok("replace-cli", "mkdir -p out && echo new > out/a && echo new > out/b");
    let here = world.dir().join("here");
    std::fs::create_dir_all(here.join("out")).unwrap();
    std::fs::write(here.join("out/a"), "old").unwrap();
    let to = format!("{}/", here.display());
    let (_, err) = ends(world.agentbox(&["cp", "replace-cli:out", &to]), 0);
    assert!(err.contains("replaced: ") && err.contains("here/out/a"), "{err}");
    assert!(!err.contains("here/out/b"), "{err}");
    let copied = world.json(&["cp", "replace-cli:out", &to])["copied"].clone();
    assert_eq!(copied["replacedCount"], 2, "{copied}");
    assert_eq!(std::fs::read_to_string(here.join("out/a")).unwrap(), "new\n");
}

#[test]
fn whether_there_is_a_newer_version_is_asked_of_the_feed_alone() {
    let mut world = World::headless();
    let (out, err) = ends(world.agentbox(&["self-update"]), 0);
    assert!(out.contains("latest   not known: no feed is set"), "{out}");
    assert!(out.contains("image    ready"), "{out}");
    assert!(err.contains("update.feed"), "{err}");

    let opened = world.dir().join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" >> {}\n", opened.display());
    world.host_program("xdg-open", &script);
    let newer = r#"{"version":"99.0.0","notes":"Quicker.","url":"https://example.org/99"}"#;
    let feed = crate::services::Service::start(newer);
    world.kill_host();
    world.configure(&format!("update: {{feed: '{}/latest.json'}}\n", feed.url));
    world.start_serve();
    let told = world.json(&["self-update", "--check"])["update"].clone();
    assert_eq!((&told["newer"], &told["latest"]["version"]), (&true.into(), &"99.0.0".into()));
    assert!(!opened.exists());
    let sent = feed.asked().pop().unwrap();
    assert!(sent.line.starts_with("GET /latest.json "), "{sent:?}");
    let (out, _) = ends(world.agentbox(&["self-update", "-y"]), 0);
    assert!(out.contains("latest   99.0.0") && out.contains("  Quicker."), "{out}");
    let page = eventually(SOON, "the page being opened", || {
        std::fs::read_to_string(&opened).ok().filter(|page| page.ends_with('\n'))
    });
    assert_eq!(page, "https://example.org/99\n");
    // The image and the box host are as they were.
    assert!(world.json(&["prepare"])["images"][0]["present"].as_bool().unwrap());

    for (reply, said) in [
        ("<html>no</html>", "the feed is no"),
        (r#"{"version":"99.0.0","url":"file:///etc/passwd"}"#, "no https address"),
    ] {
        let feed = crate::services::Service::start(reply);
        world.configure(&format!("update: {{feed: '{}/latest.json'}}\n", feed.url));
        let (_, err) = ends(world.agentbox(&["self-update", "-y"]), 1);
        assert!(err.contains(said) && err.contains("hint:"), "{err}");
    }
    // Nobody is sent elsewhere.
    let url = redirecting("http://127.0.0.1:9/other.json");
    world.configure(&format!("update: {{feed: '{url}/latest.json'}}\n"));
    let (_, err) = ends(world.agentbox(&["self-update"]), 1);
    assert!(err.contains("redirect, and those are not followed"), "{err}");
}

/// A service that sends everybody elsewhere.
fn redirecting(to: &'static str) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
        }
    });
    url
}
