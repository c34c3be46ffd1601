//! A box that tries everything: refused with the specified codes, nothing runs on the host, nobody
//! is asked.

use crate::world::World;

/// A raw request from inside a box; the HTTP status and the body.
fn raw(world: &World, name: &str, token: &str, body: &str) -> (String, String) {
    let auth = if token.is_empty() {
        String::new()
    } else {
        format!("-H \"authorization: Bearer {token}\"")
    };
    let script = format!(
        "curl -s -o /tmp/body -w '%{{http_code}}' --unix-socket /run/agentbox/host/relay.sock {auth} \
         -H 'content-type: application/json' -H 'host: agentbox' --data-binary '{body}' http://agentbox/rpc; \
         echo; cat /tmp/body"
    );
    let reply = world.box_ok(name, &script);
    let (status, body) = reply.split_once('\n').unwrap_or((&reply, ""));
    (status.to_owned(), body.to_owned())
}

fn token(world: &World, name: &str) -> String {
    world.box_ok(name, "cat /run/agentbox/token")
}

#[test]
fn a_box_can_speak_only_for_itself_and_only_in_words_that_are_allowed() {
    let world = World::headless();
    world.create("evil");
    world.create("victim");
    world.commit("evil", "One");
    let (own, other) = (token(&world, "evil"), token(&world, "victim"));
    assert_ne!(own, other);

    let push = r#"{"method":"git.push"}"#;
    assert_eq!(
        raw(&world, "evil", "", push),
        ("401".into(), r#"{"error":"missing bearer token"}"#.into())
    );
    assert_eq!(
        raw(&world, "evil", &other, push),
        ("401".into(), r#"{"error":"unknown box token"}"#.into())
    );

    let marker = world.dir().join("marker");
    let run = format!("touch {}", marker.display());
    for params in [
        format!(r#"{{"args":["--upload-pack={run}"]}}"#),
        format!(r#"{{"args":["--receive-pack={run}"]}}"#),
        r#"{"remote":"--exec=x"}"#.to_owned(),
        r#"{"remote":"ext::sh -c x"}"#.to_owned(),
        r#"{"args":[":main"]}"#.to_owned(),
        r#"{"args":["HEAD:main"]}"#.to_owned(),
    ] {
        for method in ["git.push", "git.fetch"] {
            let body = format!(r#"{{"method":"{method}","params":{params}}}"#);
            let (status, reply) = raw(&world, "evil", &own, &body);
            assert_eq!(status, "200", "{body}: {reply}");
            assert!(reply.contains(r#""exitCode":65"#), "{body}: {reply}");
        }
    }
    let (_, reply) =
        raw(&world, "evil", &own, r#"{"method":"git.push","params":{"path":"/workspace/../etc"}}"#);
    assert!(reply.contains(r#""exitCode":64"#), "{reply}");

    let large = "head -c 10485760 /dev/zero | curl -s -o /dev/null -w '%{http_code}' --unix-socket \
        /run/agentbox/host/relay.sock -H \"authorization: Bearer $(cat /run/agentbox/token)\" \
        -H 'content-type: application/json' -H 'host: agentbox' --data-binary @- http://agentbox/rpc";
    assert_eq!(world.box_ok("evil", large), "413");

    assert!(!marker.exists(), "something ran on the host");
    assert!(world.questions().is_empty(), "somebody was asked");
    assert!(
        world.audit_kinds("evil").iter().all(|kind| kind == "refused" || kind == "box-created")
    );
    assert_eq!(
        world.git(&world.remote(), &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main"
    );
}

#[test]
fn what_a_box_plants_in_its_repository_never_runs_on_the_host() {
    let world = World::headless();
    world.create("evil");
    let marker = world.dir().join("marker");
    let plant = format!(
        "for h in pre-push post-update reference-transaction post-commit; do \
           printf '#!/bin/sh\\ntouch {m} 2>/dev/null || true\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done; \
         git config core.fsmonitor 'touch {m}'; git config core.sshCommand 'touch {m}'; \
         git config uploadpack.packObjectsHook 'touch {m}'; git config remote.origin.url /nowhere; \
         mkdir -p sub && printf 'gitdir: /etc' > sub/.git; \
         printf '[core]\\n\\tfsmonitor = touch {m}\\n' > .gitconfig",
        m = marker.display()
    );
    world.box_ok("evil", &format!("mkdir -p .git/hooks; {plant}"));
    let oid = world.commit("evil", "One");
    let push = world.push("evil");
    let question = world.question_of("evil");
    assert_eq!(question["target"], world.remote().display().to_string());
    world.approve("evil", &[]);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote("agentbox/evil"), Some(oid));
    // The person's own next commands in the project meet nothing of it either.
    world.git(&world.project(), &["status"]);
    world.git(&world.project(), &["log", "--all", "--oneline"]);
    assert!(!marker.exists(), "something the box planted ran on the host");
}

#[test]
fn a_box_cannot_write_to_what_is_mounted_from_the_host() {
    let world = World::headless();
    world.create("evil");
    for script in [
        "touch /run/agentbox/host/x",
        "sudo touch /run/agentbox/host/x",
        "rm /run/agentbox/host/relay.sock",
        "sudo rm /run/agentbox/host/relay.sock",
        "sudo touch /agentbox/objects/0/objects/x",
        "sudo sh -c 'echo evil > /agentbox/objects/0/objects/info/alternates'",
    ] {
        assert!(!world.in_box("evil", script).status.success(), "{script} worked");
    }
    // The engine itself, the host's control socket and other boxes' sockets are nowhere in sight.
    let found = world.box_ok("evil", "sudo find / -xdev \\( -name docker.sock -o -name control.sock \\) 2>/dev/null; ls /run/agentbox/host");
    assert_eq!(found, "relay.sock");
}

#[test]
fn boxes_16_17_no_secret_is_in_the_environment_of_a_box() {
    let world = World::headless();
    let made = world.create("plain");
    let token = token(&world, "plain");
    let env = world.box_ok("plain", "sudo cat /proc/1/environ | tr '\\0' '\\n'; env");
    for line in env.lines() {
        let key = line.split('=').next().unwrap_or_default();
        assert!(
            !key.ends_with("_TOKEN") && !key.ends_with("_PASSWORD") && !key.ends_with("_API_KEY"),
            "{line}"
        );
        assert!(!line.contains(&token), "{line}");
    }
    assert_eq!(world.box_ok("plain", "stat -c '%a %U' /run/agentbox/token"), "400 vscode");
    // A new start, a new token.
    let id = made["id"].as_str().unwrap();
    world.ok(&["stop", id]);
    world.ok(&["start", id]);
    let fresh = world.box_ok("plain", "cat /run/agentbox/token");
    assert_ne!(fresh, token);
}

#[test]
fn a_box_cannot_keep_itself_from_being_destroyed() {
    let world = World::headless();
    world.create("evil");
    world.commit("evil", "One");
    // Both ways the host asks a box before it goes: its status, and its last commits.
    world.box_ok(
        "evil",
        "printf '#!/bin/sh\\nsleep 600\\n' > /tmp/stall && chmod +x /tmp/stall && \
         git config core.fsmonitor /tmp/stall && \
         sudo mv /usr/local/bin/agentbox-ctl /tmp/real-ctl && sudo cp /tmp/stall /usr/local/bin/agentbox-ctl",
    );
    let destroy = crate::world::Running::start(world.agentbox_command(&["destroy", "-y", "evil"]));
    let ended = destroy.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.json(&["list"])["boxes"].as_array().unwrap().len(), 0);
}
