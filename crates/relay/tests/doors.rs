//! Who may speak at a box's door, and what is behind it: nothing but that box's own requests. Over
//! both carriers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use protocol::BoxId;
use relay::{Registration, Token};
use serde_json::{Value, json};
use support::{BRANCH, World, commit};

use agentbox_relay as relay;

async fn event(world: &World, body: &Value) -> u16 {
    world.raw("POST /events", &world.headers(), body.to_string().as_bytes()).await.0
}

over_both_carriers! {
    async fn relay_19_03_and_a29_there_is_no_way_to_the_hosts_own_controls(carrier) {
        let world = World::new(carrier).await;
        for path in [
            "GET /admin/registry", "POST /admin/register-box", "POST /admin/prompts/answer",
            "POST /admin/host-initiated/mint", "GET /admin/events", "GET /bridge/poll", "GET /remote/x",
            "GET /rpc/status/abc", "POST /control", "GET /", "GET /admin/../healthz",
        ] {
            let (status, body) = world.raw(path, &world.headers(), b"{}").await;
            assert_eq!(status, 404, "{path}: {body}");
        }
        let (status, body) = world.raw("GET /healthz", &world.headers(), b"").await;
        assert_eq!((status, body.as_str()), (200, r#"{"ok":true,"proto":1}"#));
        for (path, status) in [("GET /rpc", 405), ("DELETE /events", 405), ("POST /healthz", 405)] {
            assert_eq!(world.raw(path, &world.headers(), b"").await.0, status, "{path}");
        }
    }

    async fn relay_19_07_and_a37_a_status_is_the_boxs_own_or_nothing(carrier) {
        let world = World::new(carrier).await;
        let status = |schema: u32, id: &str| {
            json!({ "type": "box-status", "payload": { "schema": schema, "boxId": id, "tasks": [] } })
        };
        assert_eq!(event(&world, &status(2, "b00000001")).await, 400);
        assert_eq!(event(&world, &status(1, "b00000002")).await, 400);
        assert_eq!(event(&world, &json!({ "type": "box-status" })).await, 400);
        assert!(world.heard.statuses.lock().unwrap().is_empty());
        assert_eq!(event(&world, &status(1, "b00000001")).await, 202);
        assert_eq!(world.heard.statuses.lock().unwrap().len(), 1);
        // Never among the events, and no credential is ever taken from a box.
        let forged = json!({ "type": "credentials-updated", "payload": { "agent": "claude", "blob": "x" } });
        assert_eq!(event(&world, &forged).await, 400);
        assert!(world.heard.events.lock().unwrap().is_empty());
    }

    async fn events_are_named_bounded_and_counted(carrier) {
        let world = World::new(carrier).await;
        let (status, body) =
            world.raw("POST /events", &world.headers(), br#"{"type":"agent-done","ts":5,"payload":{"a":1}}"#).await;
        assert_eq!((status, body.as_str()), (202, r#"{"id":1}"#));
        for bad in [json!({}), json!({ "type": "" }), json!({ "type": "Bad Kind" }), json!({ "type": "x", "extra": 1 }),
            json!({ "type": "\u{1b}[2J" }), json!({ "type": "x".repeat(65) })] {
            assert_eq!(event(&world, &bad).await, 400, "{bad}");
        }
        let large = json!({ "type": "big", "payload": "x".repeat(64 * 1024) });
        assert_eq!(event(&world, &large).await, 413);
        assert_eq!(world.heard.events.lock().unwrap().len(), 1);
    }

    async fn relay_a20_deep_json_is_refused(carrier) {
        let world = World::new(carrier).await;
        let deep = |n: usize| format!(r#"{{"method":"git.fetch","params":{}{}}}"#, "[".repeat(n), "]".repeat(n));
        assert_eq!(world.post(&deep(17)).await.0, 400);
        assert_eq!(world.post(&deep(100_000)).await.0, 400);
        // Brackets in a text are no depth.
        let text = format!(r#"{{"method":"git.fetch","params":{{"args":["{}\"["]}}}}"#, "[".repeat(100));
        assert_eq!(world.post(&text).await.0, 200);
    }

    async fn relay_a27_and_a28_there_is_no_token_to_forge_replay_or_harvest(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        for params in [
            json!({ "hostInitiated": "a".repeat(64) }),
            json!({ "hostInitiated": null }),
            json!({ "path": "/workspace", "args": [], "hostInitiated": "" }),
        ] {
            for method in ["git.push", "git.fetch", "gh.pr.create", "cp.toHost", "checkpoint.create"] {
                let envelope = world.call(method, params.clone()).await;
                assert_eq!(envelope.exit_code, 64, "{method} {params}: {}", envelope.stderr);
            }
        }
        assert!(world.broker.pending().is_empty());
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn relay_a30_and_a31_a_web_page_cannot_knock(carrier) {
        let world = World::new(carrier).await;
        let body = br#"{"method":"git.push"}"#;
        let with = |changes: &[(&str, &str)]| {
            let mut headers = world.headers();
            for (key, value) in changes {
                headers.retain(|(k, _)| k != key);
                headers.push(((*key).to_owned(), (*value).to_owned()));
            }
            headers
        };
        for (changes, status) in [
            (&[("content-type", "text/plain")][..], 415),
            (&[("content-type", "application/x-www-form-urlencoded")], 415),
            (&[("origin", "http://localhost")], 403),
            (&[("origin", "null")], 403),
            (&[("sec-fetch-site", "same-origin")], 403),
            (&[("host", "rebound.example:8787")], 421),
            (&[("host", "127.0.0.1")], 421),
        ] {
            assert_eq!(world.raw("POST /rpc", &with(changes), body).await.0, status, "{changes:?}");
        }
        let (_, reply) = world.raw("OPTIONS /rpc", &world.headers(), b"").await;
        assert!(!reply.to_lowercase().contains("access-control"), "{reply}");
        assert!(world.broker.pending().is_empty());
    }

    async fn relay_a33_a_token_opens_the_door_of_its_own_box_alone(carrier) {
        let world = World::new(carrier).await;
        let id: BoxId = "b00000002".parse().unwrap();
        let other = Token::from_bytes([8; 32]);
        let registration = Registration {
            id: id.clone(),
            name: "other".parse().unwrap(),
            project: "shop".into(),
            project_root: world.host.clone(),
            workspace: world.host.clone(),
            worktrees: Vec::new(),
        };
        world.relay.open(registration, other.hash());
        let door = world.dir.path().join("other/relay.sock");
        std::fs::create_dir(door.parent().unwrap()).unwrap();
        world.door(carrier, id, &door).await;

        let with = |token: &Token| {
            let mut headers = world.headers();
            headers.retain(|(key, _)| key != "authorization");
            headers.push(("authorization".into(), format!("Bearer {}", token.as_str())));
            headers
        };
        let event = br#"{"type":"agent-done"}"#;
        for (door, own, foreign) in [(&world.socket, &world.token, &other), (&door, &other, &world.token)] {
            for (path, body) in [("POST /rpc", &br#"{"method":"git.push"}"#[..]), ("POST /events", event)] {
                let (status, body) = world.raw_at(door, path, &with(foreign), body).await;
                assert_eq!((status, body.as_str()), (401, r#"{"error":"unknown box token"}"#), "{path}");
            }
            assert_eq!(world.raw_at(door, "POST /events", &with(own), event).await.0, 202);
        }
        assert!(world.broker.pending().is_empty() && world.kinds().iter().all(|kind| kind == "refused"));
        assert_eq!(world.heard.events.lock().unwrap().len(), 2);
        // A box that is gone leaves no token behind.
        world.relay.close(&"b00000001".parse().unwrap());
        assert_eq!(world.raw_at(&door, "GET /healthz", &with(&world.token), b"").await.0, 401);
        assert_eq!(world.raw_at(&door, "GET /healthz", &with(&other), b"").await.0, 200);
    }
}
