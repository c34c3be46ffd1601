//! Pages a box would like a person to see, and checkpoints it asks for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod support;

use agentbox_relay::Mode;
use approvals::WhenNobody;
use protocol::question::{Question, Surface, Tier, Verdict};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Carrier, Setup, World};

/// A world whose opener only writes down what it was asked to open.
struct Desk {
    world: World,
    opened: PathBuf,
}

impl Desk {
    async fn new(carrier: Carrier) -> Self {
        let env = vec![("BROWSER".to_owned(), "firefox".to_owned())];
        let world = World::with(Setup { env, ..Setup::new(carrier) }).await;
        let opened = world.dir.path().join("opened");
        let log = opened.display();
        world.program("xdg-open", &format!("#!/bin/sh\necho \"$# $1 $BROWSER $PWD\" >> {log}\n"));
        Self { world, opened }
    }

    async fn open(&self, url: &str) -> i32 {
        self.world.call("browser.open", json!({ "url": url })).await.exit_code
    }

    fn opened(&self) -> String {
        std::fs::read_to_string(&self.opened).unwrap_or_default()
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        for _ in 0..500 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never happened: {what}");
    }

    fn answer(&self, question: &Question, verdict: Verdict) {
        let (id, digest) = (&question.id, &question.digest);
        self.world.broker.answer(id, digest, verdict, Surface::Cli).unwrap();
    }
}

over_both_carriers! {
    async fn relay_19_47_a_page_is_offered_and_opened_by_a_yes(carrier) {
        let desk = Desk::new(carrier).await;
        let started = Instant::now();
        assert_eq!(desk.open(" HTTPS://Docs.Example.co.uk:443/a b?c='d' ").await, 0);
        assert!(started.elapsed() < Duration::from_secs(5), "the box waited");
        let question = desk.world.question().await;
        let url = "https://docs.example.co.uk/a%20b?c=%27d%27";
        assert_eq!(question.title, "Open a page of example.co.uk in your browser");
        assert_eq!((question.target.as_str(), question.tier), ("example.co.uk", Tier::Sensitive));
        assert_eq!(question.argv, ["xdg-open", url]);
        let facts: Vec<&str> = question.evidence.facts.iter().map(|f| f.value.as_str()).collect();
        assert_eq!(facts, ["example.co.uk", "docs.example.co.uk", url]);
        assert!(question.remember.is_none());
        let stands = question.expires_at - question.created_at;
        assert_eq!(stands, 25_000);
        assert_eq!(desk.opened(), "");
        desk.answer(&question, Verdict::AllowOnce);
        desk.until("the page", || !desk.opened().is_empty()).await;
        desk.until("the trail", || desk.world.kinds().contains(&"executed".to_owned())).await;
        assert_eq!(desk.opened(), format!("1 {url} firefox /\n"));
        let heard = desk.world.heard.events.lock().unwrap();
        assert_eq!(heard[0].kind, "browser-open");
        let told = heard[0].payload.as_ref().unwrap().get();
        assert_eq!(told, json!({ "url": url }).to_string());
    }

    async fn relay_19_47_and_a36_nothing_else_is_offered(carrier) {
        let desk = Desk::new(carrier).await;
        for bad in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "\u{1}https://example.com",
            "https://github.com@evil.example/",
            "http://127.0.0.1:8787/",
            "http://localhost/",
            "http://2130706433/",
            "http://[::1]/",
            "http://192.168.1.1/",
            "http://smoke.localhost:1355/",
            "",
        ] {
            assert_eq!(desk.open(bad).await, 64, "{bad:?}");
        }
        assert_eq!(desk.world.call("browser.open", json!({ "uri": "https://x.org" })).await.exit_code, 64);
        assert!(desk.world.broker.pending().is_empty());
        assert_eq!(desk.opened(), "");
    }
}

over_both_carriers! {
    async fn a_no_or_nobody_opens_nothing(carrier) {
        let desk = Desk::new(carrier).await;
        assert_eq!(desk.open("https://example.com/").await, 0);
        desk.answer(&desk.world.question().await, Verdict::Deny);
        desk.world.broker.set_policy(WhenNobody::Deny);
        assert_eq!(desk.open("https://example.com/").await, 0);
        desk.until("the trail", || desk.world.kinds() == ["asked", "answered", "not-asked"]).await;
        assert!(desk.world.broker.pending().is_empty());
        assert_eq!(desk.opened(), "");
    }

    async fn an_offer_outlives_neither_its_time_nor_its_box(carrier) {
        let desk = Desk::new(carrier).await;
        assert_eq!(desk.open("https://example.com/").await, 0);
        let question = desk.world.question().await;
        desk.world.relay.close(&question.box_id);
        desk.until("the end of the offer", || desk.world.broker.pending().is_empty()).await;
        let late = (&question.id, &question.digest);
        assert!(desk.world.broker.answer(late.0, late.1, Verdict::AllowOnce, Surface::Cli).is_err());
        assert_eq!(desk.opened(), "");
    }

    async fn relay_19_47_an_offer_is_gone_after_25_seconds(carrier) {
        let desk = Desk::new(carrier).await;
        assert_eq!(desk.open("https://example.com/").await, 0);
        desk.world.question().await;
        // Only from here on: sockets and programs live by the real clock.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(24)).await;
        assert_eq!(desk.world.broker.pending().len(), 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        tokio::time::resume();
        desk.until("the end of the offer", || desk.world.broker.pending().is_empty()).await;
        assert_eq!(desk.opened(), "");
        assert!(desk.world.notes.0.lock().unwrap().iter().any(|(_, text)| text == "Expired"));
    }

    async fn relay_a36_one_offer_at_a_time_and_six_a_minute(carrier) {
        let desk = Desk::new(carrier).await;
        for n in 0..6 {
            assert_eq!(desk.open(&format!("https://example.com/{n}")).await, 0);
            let newest = format!("https://example.com/{n}");
            desk.until("the newest alone", || {
                let open = desk.world.broker.pending();
                open.len() == 1 && open[0].argv[1] == newest
            })
            .await;
        }
        let spray = desk.world.call("browser.open", json!({ "url": "https://example.com/7" })).await;
        assert_eq!(spray.exit_code, 10);
        assert!(spray.stderr.contains("too many links"), "{}", spray.stderr);
        assert_eq!(desk.world.broker.pending().len(), 1);
    }

    async fn an_opener_that_becomes_the_browser_is_left_alone(carrier) {
        let desk = Desk::new(carrier).await;
        let alive = desk.world.dir.path().join("alive");
        let script = format!("#!/bin/sh\n(sleep 1; echo yes > {}) &\nexit 0\n", alive.display());
        desk.world.program("xdg-open", &script);
        assert_eq!(desk.open("https://example.com/").await, 0);
        desk.answer(&desk.world.question().await, Verdict::AllowOnce);
        desk.until("the browser", || alive.exists()).await;
    }

    async fn an_opener_that_is_missing_or_fails_is_in_the_trail(carrier) {
        let desk = Desk::new(carrier).await;
        desk.world.program("xdg-open", "#!/bin/sh\nexit 3\n");
        assert_eq!(desk.open("https://example.com/").await, 0);
        desk.answer(&desk.world.question().await, Verdict::AllowOnce);
        let failed = "Open a page of example.com in your browser: failed";
        let told = || desk.world.notes.0.lock().unwrap().iter().any(|(_, text)| text == failed);
        desk.until("the trail", told).await;
    }

    async fn a_name_that_may_look_like_another_is_called_so(carrier) {
        let desk = Desk::new(carrier).await;
        assert_eq!(desk.open("https://аpple.com/").await, 0);
        let question = desk.world.question().await;
        assert_eq!(question.target, "xn--pple-43d.com");
        assert!(question.warnings[0].contains("may look like another"));
    }
}

over_both_carriers! {
    async fn relay_19_46_a_plain_checkpoint_passes_in_safe_mode(carrier) {
        let world = World::new(carrier).await;
        world.policy(|policy| policy.mode = Mode::Safe);
        let done = world.call("checkpoint.create", json!({ "name": "a" })).await;
        assert_eq!((done.exit_code, done.stdout.as_str()), (0, "saved checkpoint a\n"));
        assert_eq!(world.kinds(), ["allowed-by-policy", "executed"]);
        for name in ["--x", "", "a b", "a/b", ".a"] {
            let done = world.call("checkpoint.create", json!({ "name": name })).await;
            assert_eq!(done.exit_code, 64, "{name:?}");
        }
        assert_eq!(world.copies.checkpoints.lock().unwrap().len(), 1);
    }

    async fn relay_19_46_and_a39_what_others_start_from_is_always_asked(carrier) {
        let world = World::new(carrier).await;
        world.policy(|policy| policy.mode = Mode::Safe);
        let deny = Verdict::Deny;
        let (done, question) =
            world.answered("checkpoint.create", json!({ "setDefault": true }), deny).await;
        assert_eq!(done.exit_code, 10);
        assert_eq!(question.tier, Tier::Irreversible);
        assert_eq!(question.title, "Start every new box of shop from checkpoint smoke-1");
        assert!(question.warnings[0].contains("reaches every new box of shop"));
        assert!(question.remember.is_none());
        assert!(world.copies.checkpoints.lock().unwrap().is_empty());

        let yes = Verdict::AllowOnce;
        let wanted = json!({ "name": "base", "setDefault": true });
        let (done, _) = world.answered("checkpoint.create", wanted, yes).await;
        assert_eq!(done.stdout, "saved checkpoint base, where new boxes of the project start\n");
        // Taking its place is asked as what it is, although nobody said default.
        let wanted = json!({ "name": "base", "replace": true });
        let (done, question) = world.answered("checkpoint.create", wanted, deny).await;
        assert_eq!(done.exit_code, 10);
        assert_eq!(question.tier, Tier::Irreversible);
        assert_eq!(question.title, "Start every new box of shop from checkpoint base");
        assert!(question.warnings[1].contains("is lost"), "{:?}", question.warnings);
    }
}

over_both_carriers! {
    async fn without_safe_mode_a_checkpoint_is_asked(carrier) {
        let world = World::new(carrier).await;
        let yes = Verdict::AllowOnce;
        let (done, question) = world.answered("checkpoint.create", json!({}), yes).await;
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        assert_eq!(question.title, "Save a checkpoint of smoke as smoke-1");
        assert_eq!(question.tier, Tier::Routine);
        assert!(question.is_plain());
        let again = world.call("checkpoint.create", json!({ "name": "smoke-1" })).await;
        assert_eq!(again.exit_code, 1);
        assert!(again.stderr.contains("add --replace"), "{}", again.stderr);
    }

    async fn relay_a39_four_checkpoints_an_hour(carrier) {
        let world = World::new(carrier).await;
        world.policy(|policy| policy.mode = Mode::Safe);
        for _ in 0..4 {
            assert_eq!(world.call("checkpoint.create", json!({})).await.exit_code, 0);
        }
        let fifth = world.call("checkpoint.create", json!({})).await;
        assert_eq!(fifth.exit_code, 65);
        assert!(fifth.stderr.contains("in the last hour"), "{}", fifth.stderr);
        assert_eq!(world.copies.checkpoints.lock().unwrap().len(), 4);
    }
}
