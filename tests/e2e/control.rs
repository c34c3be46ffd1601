//! The control socket: an answer is one of the known words or none, and no token ever comes out of it.

use crate::world::World;
use protocol::frame::{self, Kind};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One request, as bytes; the frame that answers it.
fn ask(world: &World, body: &str) -> Option<(Kind, String)> {
    let socket = world.home().join("run/control.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    frame::write(&mut stream, Kind::Request, body.as_bytes()).unwrap();
    let (kind, body) = frame::read(&mut stream).unwrap()?;
    Some((kind, String::from_utf8(body).unwrap()))
}

#[test]
fn an_answer_that_is_no_known_word_answers_nothing() {
    let world = World::over("auto", "");
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    let question = world.question_of("fix-login");
    let (id, digest) = (&question["id"], &question["digest"]);
    let answer = |verdict: Value, surface: &str| {
        json!({ "method": "answer",
                "params": { "id": id, "digest": digest, "verdict": verdict, "surface": surface } })
    };
    let mut without_digest = answer(json!({ "kind": "allowOnce" }), "cli");
    without_digest["params"].as_object_mut().unwrap().remove("digest");
    for bad in [
        answer(json!({ "kind": "maybe" }), "cli"),
        answer(json!("maybe"), "cli"),
        answer(json!("allowOnce"), "cli"),
        answer(json!({ "kind": "AllowOnce" }), "cli"),
        answer(json!({ "kind": "allow" }), "cli"),
        answer(json!({ "kind": "" }), "cli"),
        answer(json!({}), "cli"),
        answer(json!(true), "cli"),
        answer(json!(null), "cli"),
        answer(json!(["maybe"]), "cli"),
        answer(json!({ "kind": "remember" }), "cli"),
        answer(
            json!({ "kind": "remember", "reach": "planet", "breadth": "exact", "seconds": 1 }),
            "cli",
        ),
        answer(
            json!({ "kind": "remember", "reach": "box", "breadth": "exact", "seconds": -1 }),
            "cli",
        ),
        answer(json!({ "kind": "allowOnce" }), "box"),
        without_digest,
    ] {
        let (kind, reply) = ask(&world, &bad.to_string()).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!((kind, &reply["code"]), (Kind::Error, &"usage".into()), "{bad}: {reply}");
        assert_eq!(world.questions().len(), 1, "{bad} ended the question");
    }
    // The right words about something else are not believed either.
    let mut other = answer(json!({ "kind": "allowOnce" }), "cli");
    other["params"]["digest"] = "0".repeat(64).into();
    let (kind, reply) = ask(&world, &other.to_string()).unwrap();
    assert_eq!(kind, Kind::Error);
    assert!(reply.contains("digestMismatch"), "{reply}");
    assert_eq!(world.at_remote("agentbox/fix-login"), None);

    let (kind, _) = ask(&world, &answer(json!({ "kind": "deny" }), "cli").to_string()).unwrap();
    assert_eq!(kind, Kind::Result);
    assert_eq!(push.end().code, Some(10));
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
}

#[test]
fn nothing_on_the_control_socket_tells_a_boxs_token() {
    let world = World::over("auto", "");
    let id = world.create("fix-login")["id"].as_str().unwrap().to_owned();
    let token = world.box_ok("fix-login", "cat /run/agentbox/token");
    assert!(token.len() >= 32, "{token}");
    // Something of everything: a question, an event, records, and a box that tells its own token.
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    let question = world.question_of("fix-login");
    world.box_ok("fix-login", "agentbox-ctl event agent-done '{\"text\":\"tests pass\"}'");

    let target = json!({ "query": id, "cwd": null });
    let requests = [
        json!({ "method": "status" }),
        json!({ "method": "doctor" }),
        json!({ "method": "boxes" }),
        json!({ "method": "questions" }),
        json!({ "method": "grants" }),
        json!({ "method": "audit", "params": { "limit": 500 } }),
        json!({ "method": "auditVerify" }),
        json!({ "method": "events", "params": { "target": null, "since": 0, "limit": 100 } }),
        json!({ "method": "whatIfDestroyed", "params": { "target": target } }),
        json!({ "method": "remotes", "params": { "target": target, "apply": false } }),
        json!({ "method": "checkpoints", "params": { "target": null } }),
        json!({ "method": "secrets" }),
        json!({ "method": "integrations", "params": { "cwd": world.project() } }),
        json!({ "method": "testIntegration", "params": { "service": "github", "cwd": null } }),
        json!({ "method": "mute", "params": { "target": target, "seconds": null } }),
        json!({ "method": "quiet", "params": { "seconds": null } }),
        json!({ "method": "setBranch", "params": { "target": target, "branch": null } }),
        // The first event is everything as it is.
        json!({ "method": "subscribe" }),
    ];
    for request in &requests {
        let (kind, reply) = ask(&world, &request.to_string()).unwrap();
        assert!(matches!(kind, Kind::Result | Kind::Event), "{request}: {reply}");
        assert!(!reply.contains(&token), "{request} tells the token");
    }
    // Nor does what people see, nor what stays behind.
    for args in [
        &["list"][..],
        &["status"],
        &["approvals"],
        &["audit"],
        &["events"],
        &["grants"],
        &["doctor"],
        &["git", "remotes", "fix-login"],
    ] {
        let shown = world.agentbox(args);
        assert!(!format!("{shown:?}").contains(&token), "agentbox {args:?}");
    }
    assert!(!world.host_log().contains(&token));
    let database = std::fs::read(world.home().join("agentbox.db")).unwrap();
    let log = std::fs::read(world.home().join("agentbox.db-wal")).unwrap_or_default();
    for bytes in [database, log] {
        assert!(
            !bytes.windows(token.len()).any(|w| w == token.as_bytes()),
            "it is in the database"
        );
    }
    world.ok(&["deny", question["id"].as_str().unwrap()]);
    assert_eq!(push.end().code, Some(10));
}
