//! The box plane as a box meets it, over both carriers: authentication, limits, strictness, and the
//! git methods.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use protocol::BoxId;
use protocol::question::{Breadth, Reach, Surface, Tier, Verdict};
use serde_json::json;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::{BRANCH, World, commit, git};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

over_both_carriers! {
    async fn relay_19_01_who_has_no_token_is_turned_away(carrier) {
        let world = World::new(carrier).await;
        let mut headers = world.headers();
        headers.pop();
        let paths = ["POST /rpc", "POST /events", "GET /healthz"];
        let event = br#"{"type":"agent-done"}"#;
        for path in paths {
            let (status, body) = world.raw(path, &headers, event).await;
            assert_eq!((status, body.as_str()), (401, r#"{"error":"missing bearer token"}"#), "{path}");
        }
        headers.push(("authorization".into(), format!("Bearer {}", "a".repeat(64))));
        for path in paths {
            let (status, body) = world.raw(path, &headers, event).await;
            assert_eq!((status, body.as_str()), (401, r#"{"error":"unknown box token"}"#), "{path}");
        }
        assert_eq!(world.kinds(), ["refused"; 6]);
        assert!(world.heard.events.lock().unwrap().is_empty());
    }

    async fn a_box_cannot_tell_what_only_the_host_tells(carrier) {
        let world = World::new(carrier).await;
        for kind in ["browser-open", "rpc-unknown", "credentials-updated"] {
            let body = format!(r#"{{"type":"{kind}","payload":{{"url":"https://evil.example"}}}}"#);
            let (status, _) = world.raw("POST /events", &world.headers(), body.as_bytes()).await;
            assert_eq!(status, 400, "{kind}");
        }
        assert!(world.heard.events.lock().unwrap().is_empty());
    }

    async fn relay_a32_guessing_tokens_is_slowed_down(carrier) {
        let world = World::new(carrier).await;
        let headers = [("host".to_owned(), "agentbox".to_owned())];
        let mut seen = vec![];
        for _ in 0..25 {
            seen.push(world.raw("POST /rpc", &headers, b"").await.0);
        }
        assert_eq!(seen.iter().filter(|s| **s == 401).count(), 20);
        assert_eq!(seen.last(), Some(&429));
    }

    async fn relay_19_02_bodies_are_bounded_and_strict(carrier) {
        let world = World::new(carrier).await;
        assert_eq!(world.post("{").await.0, 400);
        assert_eq!(world.post("{}").await, (400, r#"{"error":"missing method"}"#.into()));
        assert_eq!(world.post(r#"{"method":"git.push","method":"git.fetch"}"#).await.0, 400);
        assert_eq!(world.post(r#"{"method":"git.push","extra":1}"#).await.0, 400);
        let large = vec![b' '; 1024 * 1024 + 1];
        assert_eq!(world.raw("POST /rpc", &world.headers(), &large).await.0, 413);
        let huge = vec![b' '; 10 * 1024 * 1024];
        assert_eq!(world.raw("POST /rpc", &world.headers(), &huge).await.0, 413);
        assert!(world.broker.pending().is_empty());
    }

    async fn relay_19_02_a_body_that_lies_about_its_length_is_cut(carrier) {
        let world = World::new(carrier).await;
        let mut stream = UnixStream::connect(&world.socket).await.unwrap();
        let head = format!(
            "POST /rpc HTTP/1.1\r\nhost: agentbox\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n",
            world.token.as_str()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        for _ in 0..20 {
            if stream.write_all(chunk.as_bytes()).await.is_err() {
                break;
            }
        }
        let mut reply = vec![0; 64];
        let n = stream.read(&mut reply).await.unwrap();
        assert!(String::from_utf8_lossy(&reply[..n]).contains(" 413 "));
    }

    async fn relay_19_04_web_pages_cannot_speak_for_a_box(carrier) {
        let world = World::new(carrier).await;
        let with = |key: &str, value: &str| {
            let mut headers = world.headers();
            headers.retain(|(k, _)| k != key);
            headers.push((key.into(), value.into()));
            headers
        };
        for (key, value, status) in [
            ("origin", "http://evil.example", 403),
            ("sec-fetch-site", "cross-site", 403),
            ("host", "evil.example:8787", 421),
            ("content-type", "text/plain", 415),
        ] {
            let got = world.raw("POST /rpc", &with(key, value), b"{}").await;
            assert_eq!(got.0, status, "{key}: {value}: {}", got.1);
            assert!(!got.1.to_lowercase().contains("access-control"));
        }
        assert_eq!(world.raw("GET /rpc", &world.headers(), b"").await.0, 405);
        assert_eq!(world.raw("GET /admin/registry", &world.headers(), b"").await.0, 404);
    }

    async fn relay_a20_headers_are_bounded(carrier) {
        let world = World::new(carrier).await;
        let mut headers = world.headers();
        headers.push(("x".into(), "y".repeat(20_000)));
        assert_eq!(world.raw("POST /rpc", &headers, b"{}").await.0, 431);
        let mut headers = world.headers();
        headers.extend((0..200).map(|n| (format!("x-{n}"), "y".into())));
        assert_eq!(world.raw("POST /rpc", &headers, b"{}").await.0, 431);
        headers.extend((200..10_000).map(|n| (format!("x-{n}"), "y".into())));
        assert_eq!(world.raw("POST /rpc", &headers, b"{}").await.0, 431);
    }

    async fn relay_19_05_an_unknown_method_is_noted(carrier) {
        let world = World::new(carrier).await;
        let (status, body) = world.post(r#"{"method":"something.unhandled"}"#).await;
        assert_eq!((status, body.as_str()), (501, r#"{"error":"unknown method something.unhandled"}"#));
        let notes = world.notes.0.lock().unwrap();
        assert_eq!(*notes, [("refused".into(), "Refused: unknown method something.unhandled".into())]);
        let events = world.heard.events.lock().unwrap();
        let kept: Vec<_> =
            events.iter().map(|e| (e.kind.as_str(), e.payload.as_ref().unwrap().get())).collect();
        assert_eq!(kept, [("rpc-unknown", r#"{"method":"something.unhandled"}"#)]);
    }

    async fn relay_19_10_an_allowed_push_reaches_the_remote_and_only_its_branch(carrier) {
        let world = World::new(carrier).await;
        let oid = commit(&world.inside, "a.txt", "Check token expiry");
        let (envelope, question) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(oid.clone()));
        assert_eq!(envelope.pushed.unwrap().oid, oid);
        assert_eq!(question.title, "Push 1 commit to origin/agentbox/smoke");
        assert_eq!(question.evidence.commits[0].subject, "Check token expiry");
        assert_eq!(question.evidence.summary.as_deref(), Some("1 file, +1 −0"));
        let tail = &question.argv[question.argv.len() - 3..];
        assert_eq!(tail, ["--", "origin", "refs/agentbox/agentbox/smoke:refs/heads/agentbox/smoke"]);
        assert_eq!(
            git(&world.remote, &["for-each-ref", "--format=%(refname)"]),
            "refs/heads/agentbox/smoke\nrefs/heads/main"
        );
        assert_eq!(world.kinds(), ["asked", "answered", "executed"]);
        // The same again: nothing to do, nobody asked.
        let again = world.call("git.push", json!({})).await;
        assert_eq!((again.exit_code, again.stderr.as_str()), (0, "Everything up-to-date\n"));
    }

    async fn relay_19_15_a_denied_push_changes_nothing(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let (envelope, _) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!(world.at_remote(BRANCH), None);
        assert_eq!(world.kinds(), ["asked", "answered"]);
    }

    async fn relay_19_12_refusals_spawn_nothing_and_ask_nobody(carrier) {
        let world = World::new(carrier).await;
        let marker = world.host.join("X");
        let evil = format!("--upload-pack=touch {}; git-upload-pack", marker.display());
        for params in
            [json!({ "args": [evil] }), json!({ "remote": "--exec=x" }), json!({ "remote": "ext::sh" })]
        {
            assert_eq!(world.call("git.fetch", params.clone()).await.exit_code, 65, "{params}");
            assert_eq!(world.call("git.push", params.clone()).await.exit_code, 65, "{params}");
        }
        assert!(!marker.exists());
        assert!(!world.socket.parent().unwrap().join("../repos/workspace.git").exists(), "git was run");
        assert!(world.kinds().iter().all(|kind| kind == "refused"));
    }

    async fn relay_19_13_what_a_box_plants_in_its_repository_never_runs(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let marker = world.host.join("marker");
        let script = format!("#!/bin/sh\ntouch {}\n", marker.display());
        let hooks = world.inside.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        for hook in ["pre-push", "post-update", "reference-transaction", "post-checkout"] {
            let file = hooks.join(hook);
            std::fs::write(&file, &script).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        // A bundle carries objects only; the config below is what a shared .git would have run.
        let evil = world.inside.join("evil.sh");
        std::fs::write(&evil, &script).unwrap();
        let run = format!("sh {}", evil.display());
        for key in
            ["core.fsmonitor", "core.sshCommand", "credential.helper", "uploadpack.packObjectsHook"]
        {
            let config = world.inside.join(".git/config");
            let mut text = std::fs::read_to_string(&config).unwrap();
            let (section, name) = key.split_once('.').unwrap();
            text.push_str(&format!("[{section}]\n\t{name} = {run}\n"));
            std::fs::write(config, text).unwrap();
        }
        let _ = std::fs::remove_file(&marker);
        let (envelope, _) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(!marker.exists(), "something the box planted ran on the host");
    }

    async fn relay_19_14_the_address_comes_from_the_registration(carrier) {
        let world = World::new(carrier).await;
        let oid = commit(&world.inside, "a.txt", "one");
        git(&world.inside, &["remote", "add", "origin", "/nowhere"]);
        git(&world.inside, &["config", "url./nowhere.insteadOf", world.remote.to_str().unwrap()]);
        let (envelope, question) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.target, world.remote.to_str().unwrap());
        assert_eq!(world.at_remote(BRANCH), Some(oid));
    }

    async fn relay_a07_switching_branches_in_the_box_pushes_nothing_else(carrier) {
        let world = World::new(carrier).await;
        let own = commit(&world.inside, "a.txt", "own");
        git(&world.inside, &["switch", "-q", "-c", "main"]);
        commit(&world.inside, "b.txt", "sneaky");
        let main = world.at_remote("main");
        let (envelope, _) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0);
        assert_eq!((world.at_remote(BRANCH), world.at_remote("main")), (Some(own), main));
    }

    async fn relay_19_17_a_rewrite_needs_a_lease_and_is_called_one(carrier) {
        let world = World::new(carrier).await;
        let first = commit(&world.inside, "a.txt", "one");
        world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        git(&world.inside, &["commit", "-q", "--amend", "-m", "other"]);
        let refused = world.call("git.push", json!({})).await;
        assert_eq!(refused.exit_code, 1);
        assert!(refused.stderr.contains("--force-with-lease"), "{}", refused.stderr);
        let params = json!({ "args": ["--force-with-lease"] });
        let (envelope, question) = world.answered("git.push", params, Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.tier, Tier::Irreversible);
        assert!(question.warnings[0].starts_with("rewrites history"));
        let lease = format!("--force-with-lease=refs/heads/{BRANCH}:{first}");
        assert!(question.argv.contains(&lease), "{:?}", question.argv);
        assert_ne!(world.at_remote(BRANCH), Some(first));
    }

    async fn relay_19_18_a_changed_workflow_is_pointed_out(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, ".github/workflows/ci.yml", "run things");
        let (_, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!(question.warnings, ["changes CI: .github/workflows/ci.yml"]);
        // Nor can a yes to it be remembered.
        let again = world.call("git.push", json!({}));
        let answer = async {
            let question = world.question().await;
            let hour = Verdict::Remember {
                reach: Reach::Box,
                breadth: Breadth::Exact,
                seconds: 3600,
            };
            let refused = world.broker.answer(&question.id, &question.digest, hour, Surface::Cli);
            assert_eq!(refused, Err(approvals::AnswerError::NotRememberable));
            world.broker.answer(&question.id, &question.digest, Verdict::Deny, Surface::Cli).unwrap();
        };
        tokio::join!(again, answer);
    }

    async fn relay_19_51_a_caller_that_leaves_pushes_nothing(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let question = {
            let call = world.call("git.push", json!({}));
            tokio::select! {
                _ = call => panic!("nobody answered"),
                question = world.question() => question,
            }
        };
        for _ in 0..500 {
            if world.broker.pending().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(
            world
                .broker
                .answer(&question.id, &question.digest, Verdict::AllowOnce, Surface::Cli)
                .is_err()
        );
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn relay_a26_one_byte_too_many_does_not_keep_a_question_alive(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let body = r#"{"method":"git.push"}"#;
        let request = format!(
            "POST /rpc HTTP/1.1\r\nhost: agentbox\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}G",
            world.token.as_str(),
            body.len()
        );
        let mut stream = UnixStream::connect(&world.socket).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let question = world.question().await;
        drop(stream);
        for _ in 0..500 {
            if world.broker.pending().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let late =
            world.broker.answer(&question.id, &question.digest, Verdict::AllowOnce, Surface::Cli);
        assert!(late.is_err(), "a question nobody waited for was answered");
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn a_yes_to_a_dry_run_is_not_remembered(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let answer = async {
            let question = world.question().await;
            assert!(question.title.ends_with("(dry run)"), "{}", question.title);
            let hour = Verdict::Remember {
                reach: Reach::Box,
                breadth: Breadth::Exact,
                seconds: 3600,
            };
            let refused = world.broker.answer(&question.id, &question.digest, hour, Surface::Cli);
            assert_eq!(refused, Err(approvals::AnswerError::NotRememberable));
            world
                .broker
                .answer(&question.id, &question.digest, Verdict::AllowOnce, Surface::Cli)
                .unwrap();
        };
        let params = json!({ "args": ["--dry-run"] });
        let (envelope, ()) = tokio::join!(world.call("git.push", params), answer);
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn relay_a24_an_endless_subject_is_cut_where_one_sees_it(carrier) {
        let world = World::new(carrier).await;
        std::fs::write(world.inside.join("a.txt"), "x").unwrap();
        std::fs::write(world.inside.join("message"), "\u{202e}".repeat(300_000)).unwrap();
        git(&world.inside, &["add", "a.txt"]);
        git(&world.inside, &["commit", "-q", "-F", "message"]);
        let (_, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert!(question.evidence.commits[0].subject.ends_with("… (299800 more characters)"));
    }

    async fn a_fetch_that_breaks_off_leaves_no_litter_and_no_host_path(carrier) {
        let world = World::new(carrier).await;
        let blob = world.inside.join("noise");
        let noise: Vec<u8> =
            (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        std::fs::write(&blob, noise).unwrap();
        git(&world.inside, &["add", "noise"]);
        git(&world.inside, &["commit", "-qm", "noise"]);
        world.spoil.store(true, Ordering::Relaxed);
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 1);
        let place = world.host.parent().unwrap().to_str().unwrap();
        assert!(!envelope.stderr.contains(place), "{}", envelope.stderr);
        let packs = world.socket.parent().unwrap().join("../repos/workspace.git/objects/pack");
        let left: Vec<_> = std::fs::read_dir(packs).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    async fn relay_a40_the_first_push_of_an_empty_repository_shows_its_workflow(carrier) {
        let world = World::empty(carrier).await;
        commit(&world.inside, ".github/workflows/steal.yml", "run things");
        let (_, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!(question.warnings, ["changes CI: .github/workflows/steal.yml"]);
        assert_eq!(question.evidence.summary.as_deref(), Some("1 file, +1 −0"));
    }

    async fn relay_a41_what_was_shown_is_what_is_pushed(carrier) {
        let world = World::new(carrier).await;
        let shown = commit(&world.inside, "a.txt", "shown");
        let swap = async {
            let question = world.question().await;
            commit(&world.inside, "b.txt", "slipped in later");
            world
                .broker
                .answer(&question.id, &question.digest, Verdict::AllowOnce, Surface::Cli)
                .unwrap();
        };
        let (envelope, ()) = tokio::join!(world.call("git.push", json!({})), swap);
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(shown));
    }

    async fn relay_a24_hostile_subjects_are_made_visible(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "\u{202e}fdp.exe \u{1b}[2Jnothing");
        let (_, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!(question.evidence.commits[0].subject, "⟨U+202E⟩fdp.exe \\x1b[2Jnothing");
    }

    async fn relay_a05_objects_that_would_write_outside_are_refused(carrier) {
        let world = World::new(carrier).await;
        let blob = git(&world.inside, &["hash-object", "-w", "README"]);
        let entry = format!("100644 blob {blob}\t.GIT");
        let tree = {
            use std::io::Write;
            let mut child = Command::new("git")
                .current_dir(&world.inside)
                .args(["-c", "core.protectHFS=false", "-c", "core.protectNTFS=false", "mktree"])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            writeln!(child.stdin.take().unwrap(), "{entry}").unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
        };
        let evil = git(&world.inside, &["commit-tree", "-p", "HEAD", "-m", "evil", &tree]);
        git(&world.inside, &["update-ref", &format!("refs/heads/{BRANCH}"), &evil]);
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("hasDotgit"), "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn a_fetch_brings_the_remote_to_the_box_without_asking(carrier) {
        let world = World::new(carrier).await;
        let news = commit(&world.host, "news.txt", "news");
        git(&world.host, &["push", "-q", world.remote.to_str().unwrap(), "main"]);
        let envelope = world.call("git.fetch", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(git(&world.inside, &["rev-parse", "refs/remotes/origin/main"]), news);
        assert_eq!(world.kinds(), ["executed"]);
    }

    async fn commits_land_in_the_users_repository_but_never_over_the_users_work(carrier) {
        let world = World::new(carrier).await;
        let id: BoxId = "b00000001".parse().unwrap();
        let one = commit(&world.inside, "a.txt", "one");
        assert!(world.relay.land(&id).await.unwrap());
        let local = || git(&world.host, &["rev-parse", &format!("refs/heads/{BRANCH}")]);
        assert_eq!(local(), one);
        // The box may rewrite what it put there …
        git(&world.inside, &["commit", "-q", "--amend", "-m", "other"]);
        assert!(world.relay.land(&id).await.unwrap());
        assert_ne!(local(), one);
        // … but not what the user added.
        let work = git(
            &world.host,
            &["commit-tree", "-p", BRANCH, "-m", "mine", &format!("{BRANCH}^{{tree}}")],
        );
        git(&world.host, &["update-ref", &format!("refs/heads/{BRANCH}"), &work]);
        git(&world.inside, &["commit", "-q", "--amend", "-m", "again"]);
        assert!(!world.relay.land(&id).await.unwrap());
        assert_eq!(local(), work);
    }
}
