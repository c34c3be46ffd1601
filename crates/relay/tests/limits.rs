//! How much, how often and how long a box may: every bound of the box plane, over both carriers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_relay::{Rates, Waits};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use support::{Setup, World, is_alive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const LIST: &str = "integration.linear.team.list";

/// A world with a `linear` that does this when it is asked for more than its version.
async fn with_linear(setup: Setup, script: &str) -> World {
    let world = World::with(setup).await;
    world.enable("linear");
    let place = world.dir.path().display();
    let script = format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\ncd {place}\n{script}\n");
    world.program("linear", &script);
    world
}

fn text(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.dir.path().join(file)).unwrap_or_default()
}

/// A request's head up to its length, with the box's token.
fn head(world: &World, line: &str) -> String {
    let mut head = format!("{line} HTTP/1.1\r\n");
    for (key, value) in world.headers() {
        head.push_str(&format!("{key}: {value}\r\n"));
    }
    head
}

async fn statuses(world: &World, path: &str, body: &Value, count: usize) -> Vec<u16> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(world.raw(path, &world.headers(), body.to_string().as_bytes()).await.0);
    }
    all
}

/// Waits of a test: long enough for a slow computer to be in time when it should be.
const SOON: Duration = Duration::from_secs(2);

over_both_carriers! {
    async fn relay_3_calls_beyond_the_burst_are_too_many(carrier) {
        let rates = Rates { calls: (1, 3), ..Rates::default() };
        let world = World::with(Setup { rates, ..Setup::new(carrier) }).await;
        let call = json!({ "method": "git.fetch" });
        assert_eq!(statuses(&world, "POST /rpc", &call, 5).await, [200, 200, 200, 429, 429]);
        // Events have a measure of their own.
        let event = json!({ "type": "agent-done" });
        assert_eq!(statuses(&world, "POST /events", &event, 1).await, [202]);
    }

    async fn relay_3_events_beyond_the_burst_are_too_many(carrier) {
        let rates = Rates { events: (1, 2), ..Rates::default() };
        let world = World::with(Setup { rates, ..Setup::new(carrier) }).await;
        let event = json!({ "type": "agent-done" });
        assert_eq!(statuses(&world, "POST /events", &event, 4).await, [202, 202, 429, 429]);
        assert_eq!(world.heard.events.lock().unwrap().len(), 2);
        let call = json!({ "method": "git.fetch" });
        assert_eq!(statuses(&world, "POST /rpc", &call, 1).await, [200]);
    }

    async fn relay_3_a_thirty_third_connection_is_turned_away(carrier) {
        let world = World::new(carrier).await;
        // The bridge's first try may not have been let go of yet.
        let ask = format!("{}\r\n", head(&world, "GET /healthz"));
        let mut kept = Vec::new();
        let mut refused = 0;
        while kept.len() < 32 {
            let mut stream = UnixStream::connect(&world.socket).await.unwrap();
            stream.write_all(ask.as_bytes()).await.unwrap();
            let mut reply = [0; 12];
            stream.read_exact(&mut reply).await.unwrap();
            if reply == *b"HTTP/1.1 200" {
                kept.push(stream);
            } else {
                assert_eq!(&reply, b"HTTP/1.1 429");
                refused += 1;
                assert!(kept.len() == 31 && refused < 500, "turned away with {} open", kept.len());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        for _ in 0..3 {
            assert_eq!(world.raw("GET /healthz", &world.headers(), b"").await.0, 429);
        }
        // One leaves, and there is a place again.
        kept.pop();
        for _ in 0..500 {
            if world.raw("GET /healthz", &world.headers(), b"").await.0 == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the place was not given back");
    }

    async fn relay_a20_a_body_that_does_not_come_is_not_waited_for(carrier) {
        let waits = Waits { request: SOON, ..Waits::default() };
        let world = World::with(Setup { waits, ..Setup::new(carrier) }).await;
        let head = head(&world, "POST /rpc");
        let stops = async |begun: &str| {
            let mut stream = UnixStream::connect(&world.socket).await.unwrap();
            stream.write_all(format!("{head}{begun}").as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
            assert!(reply.ends_with(r#"{"error":"the body took too long to come"}"#), "{reply}");
        };
        // A byte now and then is not enough either.
        let drips = async {
            let mut stream = UnixStream::connect(&world.socket).await.unwrap();
            let begun = format!("{head}content-length: 100000\r\n\r\n");
            stream.write_all(begun.as_bytes()).await.unwrap();
            let (mut from, mut to) = stream.split();
            let drip = async {
                while to.write_all(b" ").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                std::future::pending::<()>().await;
            };
            let mut reply = [0; 13];
            tokio::select! {
                () = drip => unreachable!(),
                read = from.read_exact(&mut reply) => drop(read.unwrap()),
            }
            assert_eq!(&reply, b"HTTP/1.1 408 ");
        };
        tokio::join!(
            stops("content-length: 40\r\n\r\n{\"method\""),
            stops("transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"),
            drips,
        );
        assert!(world.kinds().iter().all(|kind| kind == "refused"));
    }

    async fn relay_a20_a_head_that_does_not_come_is_not_waited_for(carrier) {
        let waits = Waits { request: SOON, ..Waits::default() };
        let world = World::with(Setup { waits, ..Setup::new(carrier) }).await;
        for begun in [String::new(), head(&world, "POST /rpc")] {
            let mut stream = UnixStream::connect(&world.socket).await.unwrap();
            stream.write_all(begun.as_bytes()).await.unwrap();
            let mut reply = Vec::new();
            let _ = stream.read_to_end(&mut reply).await;
            assert!(!reply.starts_with(b"HTTP/1.1 200"));
        }
    }

    async fn relay_a20_argument_lists_are_bounded(carrier) {
        let world = with_linear(Setup::new(carrier), "touch ran").await;
        world.enable("github");
        let many = vec!["-q"; 257];
        let long = vec!["x".repeat(64 * 1024 + 1)];
        let much = vec!["x".repeat(60 * 1024); 5];
        for method in [
            "git.push", "git.fetch", "git.clone", "gh.pr.comment", LIST, "integration.notion.api",
            "integration.trello.card.create",
        ] {
            for args in [json!(many), json!(long), json!(much)] {
                let envelope = world.call(method, json!({ "args": args })).await;
                assert_eq!(envelope.exit_code, 64, "{method}: {}", envelope.stderr);
                assert!(envelope.stderr.contains("too many"), "{method}: {}", envelope.stderr);
                assert!(envelope.stderr.len() < 300, "{method}");
            }
        }
        assert!(world.kinds().iter().all(|kind| kind == "refused"), "{:?}", world.kinds());
        assert!(!world.dir.path().join("ran").exists());
    }

    /// Refusals beyond the measure are counted, and the count goes with the next that is written.
    async fn relay_a38_no_flood_of_refusals_fills_the_trail_or_goes_unnoticed(carrier) {
        let rates = Rates { refusals: (60, 2), calls: (60_000, 60_000), ..Rates::default() };
        let world = World::with(Setup { rates, ..Setup::new(carrier) }).await;
        let missed = || {
            let data = world.notes.1.lock().unwrap();
            let counts = data.iter().map(|data| data["unwrittenBefore"].as_u64().unwrap());
            (data.len() as u64, counts.sum::<u64>())
        };
        let mut sent = 0;
        loop {
            assert_eq!(world.call("git.push", json!({ "args": [":main"] })).await.exit_code, 65);
            sent += 1;
            let (written, unwritten) = missed();
            if unwritten > 0 {
                // The last one was written, and with it none is missing.
                assert_eq!(written + unwritten, sent);
                assert!(written >= 3);
                break;
            }
            assert!(written <= sent && sent < 3000);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let data = world.notes.1.lock().unwrap().last().unwrap().clone();
        assert_eq!(data["method"], "git.push");
        assert!(world.kinds().iter().all(|kind| kind == "refused"));
    }
}

/// Notes itself among those that run and how many there are, then waits for leave to end.
const TOGETHER: &str = "mkdir -p running; : > running/$$; ls running | wc -l >> seen\n\
    while [ ! -e go ]; do sleep 0.02; done\nrm running/$$";

over_both_carriers! {
    async fn relay_7_at_most_four_programs_of_a_box_run_at_once(carrier) {
        let world = with_linear(Setup::new(carrier), TOGETHER).await;
        let running = || std::fs::read_dir(world.dir.path().join("running")).map_or(0, Iterator::count);
        let calls = async {
            let calls = (0..7).map(|_| world.call(LIST, json!({})));
            for envelope in futures_util::future::join_all(calls).await {
                assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
            }
        };
        let leave = async {
            world.until("four run", || running() == 4).await;
            // Whatever else could start has the time of a few more calls to do so.
            for _ in 0..10 {
                assert_eq!(world.raw("GET /healthz", &world.headers(), b"").await.0, 200);
            }
            std::fs::write(world.dir.path().join("go"), "").unwrap();
        };
        tokio::join!(calls, leave);
        let seen = text(&world, "seen");
        let seen: Vec<u32> = seen.lines().map(|line| line.trim().parse().unwrap()).collect();
        assert_eq!((seen.len(), seen.iter().max()), (7, Some(&4)), "{seen:?}");
    }

    async fn relay_7_one_git_operation_per_repository_at_a_time(carrier) {
        let world = World::new(carrier).await;
        let real = which("git");
        let place = world.dir.path().display();
        // Only the fetch itself is watched, not what git is asked before and after it.
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' fetch '*' origin '*) ;; *) exec {real} \"$@\";; esac\n\
             mkdir {place}/busy || echo overlap >> {place}/log\necho begun >> {place}/log\n\
             while [ ! -e {place}/go ]; do sleep 0.02; done\n\
             {real} \"$@\"; code=$?\necho ended >> {place}/log\nrmdir {place}/busy\nexit $code\n",
            real = real.display(),
        );
        world.program("git", &script);
        let calls = async {
            let calls = (0..3).map(|_| world.call("git.fetch", json!({})));
            for envelope in futures_util::future::join_all(calls).await {
                assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
            }
        };
        let leave = async {
            world.until("one is under way", || text(&world, "log").contains("begun")).await;
            for _ in 0..10 {
                assert_eq!(world.raw("GET /healthz", &world.headers(), b"").await.0, 200);
            }
            std::fs::write(world.dir.path().join("go"), "").unwrap();
        };
        tokio::join!(calls, leave);
        assert_eq!(text(&world, "log"), "begun\nended\n".repeat(3));
    }

    async fn relay_6_without_git_on_the_host_the_box_is_told(carrier) {
        let env = vec![("PATH".to_owned(), "/nonexistent".to_owned())];
        let world = World::with(Setup { env, ..Setup::new(carrier) }).await;
        support::commit(&world.inside, "a.txt", "one");
        for (method, params) in [
            ("git.push", json!({})),
            ("git.push", json!({ "hostOnly": true })),
            ("git.fetch", json!({})),
            ("git.clone", json!({ "args": ["https://git.example.org/a/b.git"] })),
        ] {
            let envelope = world.call(method, params).await;
            assert_eq!(envelope.exit_code, 127, "{method}: {}", envelope.stderr);
            assert!(envelope.stderr.contains("git is not installed on the host"), "{}", envelope.stderr);
            assert_eq!(envelope.stderr.matches('\n').count(), 1);
        }
        assert!(world.broker.pending().is_empty());
        assert!(!world.kinds().contains(&"asked".to_owned()));
    }
}

fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists()).unwrap()
}

over_both_carriers! {
    /// The program and a child of it do not listen to a friendly word.
    async fn relay_19_59_a_program_that_hangs_is_ended_with_all_it_started(carrier) {
        let waits = Waits { program: SOON, ..Waits::default() };
        let script = "trap '' TERM\n(trap '' TERM; echo start; while :; do sleep 1; done) &\necho $! >> pids\n\
                      sleep 300 & echo $! >> pids\necho $$ >> pids\nwhile :; do sleep 1; done";
        let world = with_linear(Setup { waits, ..Setup::new(carrier) }, script).await;
        // Far beyond what it takes: a program that is not ended would hold the test for ever.
        let envelope = tokio::time::timeout(Duration::from_secs(60), world.call(LIST, json!({})));
        let envelope = envelope.await.unwrap();
        assert_eq!(envelope.exit_code, 124, "{}", envelope.stderr);
        assert_eq!(envelope.stdout, "start\n");
        assert_eq!(envelope.stderr, "relay: linear timed out after 2000ms\n");
        let pids = text(&world, "pids");
        assert_eq!(pids.lines().count(), 3);
        world.until("all of them ended", || !pids.lines().any(is_alive)).await;
        assert_eq!(world.kinds(), ["executed"]);
    }

    async fn relay_19_60_and_a21_a_program_that_prints_without_end_is_ended(carrier) {
        for (stream, from) in [("", "out"), (" >&2", "err")] {
            let script = format!("yes{stream} &\necho $! >> pids\necho $$ >> pids\nexec yes{stream}");
            let world = with_linear(Setup::new(carrier), &script).await;
            let envelope = world.call(LIST, json!({})).await;
            assert_ne!(envelope.exit_code, 0);
            let (full, other) = match from {
                "out" => (&envelope.stdout, &envelope.stderr),
                _ => (&envelope.stderr, &envelope.stdout),
            };
            assert_eq!((full.len(), other.as_str()), (8 * 1024 * 1024, ""), "{from}");
            assert!(full.ends_with("\nrelay: output cut after 8388608 bytes\n"));
            let pids = text(&world, "pids");
            assert_eq!(pids.lines().count(), 2);
            world.until("all of them ended", || !pids.lines().any(is_alive)).await;
        }
    }
}
