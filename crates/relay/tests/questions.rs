//! Questions as the relay raises them, over both carriers: who may answer, who waits, when they end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use approvals::{AnswerError, Limits};
use protocol::question::{Breadth, Reach, Surface, Verdict};
use serde_json::json;
use std::time::Duration;
use support::{BRANCH, Setup, World, commit};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

fn linear(world: &World) -> std::path::PathBuf {
    world.enable("linear");
    let log = world.dir.path().join("log");
    let script = format!("#!/bin/sh\n[ \"$1\" = --version ] || echo \"$*\" >> {}\n", log.display());
    world.program("linear", &script);
    log
}

fn comment(text: &str) -> serde_json::Value {
    json!({ "args": ["ENG-1", "--body", text] })
}

const COMMENT: &str = "integration.linear.issue.comment";
const TOO_MANY: &str = "too many approval requests from this box; wait and retry\n";

/// So much time goes by at once, for everybody.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

over_both_carriers! {
    async fn relay_19_48_the_first_answer_counts(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        let answers = async {
            let q = world.question().await;
            let answer = |surface| world.broker.answer(&q.id, &q.digest, Verdict::AllowOnce, surface);
            (answer(Surface::Window), answer(Surface::Tray))
        };
        let (envelope, (first, second)) = tokio::join!(world.call("git.push", json!({})), answers);
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!((first, second), (Ok(()), Err(AnswerError::NotPending)));
        assert!(world.at_remote(BRANCH).is_some());
    }

    async fn relay_19_49_an_answer_names_what_was_shown(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        let answers = async {
            let q = world.question().await;
            let other = "0".repeat(64);
            let wrong = world.broker.answer(&q.id, &other, Verdict::AllowOnce, Surface::Cli);
            let unknown = protocol::QuestionId::from_bytes([9; 16]);
            let nobody = world.broker.answer(&unknown, &q.digest, Verdict::AllowOnce, Surface::Cli);
            world.broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
            (wrong, nobody)
        };
        let (envelope, (wrong, nobody)) = tokio::join!(world.call("git.push", json!({})), answers);
        assert_eq!(envelope.exit_code, 10);
        assert_eq!(wrong, Err(AnswerError::DigestMismatch));
        assert_eq!(nobody, Err(AnswerError::NotPending));
    }

    async fn going_on_without_files_pushes_nothing(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        let answers = async {
            let q = world.question().await;
            let surfaces = [Surface::Window, Surface::Cli, Surface::Dialog];
            let refused = surfaces.map(|by| world.broker.answer(&q.id, &q.digest, Verdict::Without, by));
            world.broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
            refused
        };
        let (envelope, refused) = tokio::join!(world.call("git.push", json!({})), answers);
        assert_eq!(refused, [Err(AnswerError::NotOffered); 3]);
        assert_eq!(envelope.exit_code, 10);
        assert!(world.at_remote(BRANCH).is_none());
    }

    async fn relay_19_51_a_caller_that_leaves_takes_its_question_with_it(carrier) {
        let world = World::new(carrier).await;
        let log = linear(&world);
        let body = json!({ "method": COMMENT, "params": comment("hi") }).to_string();
        let mut stream = UnixStream::connect(&world.socket).await.unwrap();
        let mut head = format!("POST /rpc HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (key, value) in world.headers() {
            head.push_str(&format!("{key}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let q = world.question().await;
        drop(stream);
        for _ in 0..250 {
            if world.broker.pending().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let late = world.broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Window);
        assert_eq!(late, Err(AnswerError::NotPending));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!log.exists());
    }

    async fn relay_19_52_no_answer_in_time_is_a_no(carrier) {
        let limits = Limits { timeout: Duration::from_secs(1), ..Limits::default() };
        let world = World::with(Setup { limits, ..Setup::new(carrier) }).await;
        let log = linear(&world);
        let envelope = world.call(COMMENT, comment("hi")).await;
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, "no answer within 1s — denied\n"));
        assert!(!log.exists());
    }

    async fn relay_19_52_by_default_a_question_waits_for_fifteen_minutes(carrier) {
        let limits = Limits { grace: Duration::ZERO, ..Limits::default() };
        let world = World::with(Setup { limits, ..Setup::new(carrier) }).await;
        let log = linear(&world);
        let later = async {
            let q = world.question().await;
            pass(Duration::from_secs(15 * 60 - 5)).await;
            // Still open, and the box's call still waits.
            let open: Vec<_> = world.broker.pending().into_iter().map(|q| q.id).collect();
            assert_eq!(open, [q.id]);
            pass(Duration::from_secs(5)).await;
        };
        let (envelope, ()) = tokio::join!(world.call(COMMENT, comment("hi")), later);
        let text = "no answer within 15m — denied\n";
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, text));
        assert!(!log.exists());
    }

    async fn relay_a22_after_three_denials_a_method_is_not_heard_for_a_while(carrier) {
        let world = World::new(carrier).await;
        let log = linear(&world);
        for n in 0..3 {
            let (envelope, _) = world.answered(COMMENT, comment(&n.to_string()), Verdict::Deny).await;
            assert_eq!(envelope.stderr, "denied by user\n");
        }
        let asked = || world.kinds().iter().filter(|kind| *kind == "asked").count();
        let envelope = world.call(COMMENT, comment("again")).await;
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, TOO_MANY));
        assert_eq!((asked(), world.kinds().last().unwrap().as_str()), (3, "not-asked"));
        // Another method is not meant.
        commit(&world.inside, "a", "one");
        let (envelope, _) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(!log.exists());
        pass(Duration::from_secs(5 * 60)).await;
        let (envelope, _) = world.answered(COMMENT, comment("later"), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
    }

    async fn relay_a22_a_box_raises_twenty_questions_in_ten_minutes(carrier) {
        let world = World::new(carrier).await;
        let log = linear(&world);
        for n in 0..20 {
            let (envelope, _) =
                world.answered(COMMENT, comment(&n.to_string()), Verdict::AllowOnce).await;
            assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        }
        commit(&world.inside, "a", "one");
        for (method, params) in [(COMMENT, comment("more")), ("git.push", json!({}))] {
            let envelope = world.call(method, params).await;
            assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, TOO_MANY), "{method}");
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 20);
        assert_eq!(world.at_remote(BRANCH), None);
        pass(Duration::from_secs(10 * 60)).await;
        let (envelope, _) = world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
    }

    async fn relay_19_53_a_sixth_question_is_too_many_and_equal_ones_are_one(carrier) {
        let world = World::new(carrier).await;
        let log = linear(&world);
        let calls = async {
            let same = tokio::join!(world.call(COMMENT, comment("same")), world.call(COMMENT, comment("same")));
            assert_eq!((same.0.exit_code, same.1.exit_code), (0, 0));
        };
        let answer = async {
            let q = world.question().await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(world.broker.pending().len(), 1);
            world.broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli).unwrap();
        };
        tokio::join!(calls, answer);
        // Both callers got the result of one run.
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);

        let five = async {
            let five = [1, 2, 3, 4, 5].map(|n| world.call(COMMENT, comment(&n.to_string())));
            for envelope in futures_util::future::join_all(five).await {
                assert_eq!(envelope.exit_code, 10);
            }
        };
        let sixth = async {
            while world.broker.pending().len() < 5 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let envelope = world.call(COMMENT, comment("6")).await;
            assert_eq!(envelope.exit_code, 10);
            assert!(envelope.stderr.starts_with("too many approval requests"), "{}", envelope.stderr);
            world.broker.close();
        };
        tokio::join!(five, sixth);
    }

    async fn one_of_two_equal_callers_may_leave(carrier) {
        let world = World::new(carrier).await;
        let log = linear(&world);
        let leaves = tokio::time::timeout(Duration::from_millis(400), world.call(COMMENT, comment("x")));
        let stays = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            world.call(COMMENT, comment("x")).await
        };
        let answer = async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            let q = world.question().await;
            world.broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli).unwrap();
        };
        let (left, stayed, ()) = tokio::join!(leaves, stays, answer);
        assert!(left.is_err());
        assert_eq!(stayed.exit_code, 0);
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);
    }

    async fn relay_19_54_hostile_text_is_shown_harmlessly(carrier) {
        let world = World::new(carrier).await;
        linear(&world);
        let (_, q) = world
            .answered(COMMENT, comment("\u{1b}[2J\u{202e}evil\nnext"), Verdict::Deny)
            .await;
        let shown = serde_json::to_string(&q).unwrap();
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}') && !shown.contains("\\u001b"));
        assert!(shown.contains("⟨U+202E⟩"), "{shown}");
        assert!(q.argv.iter().all(|word| !word.contains('\n')));
    }

    async fn relay_19_55_the_end_of_a_long_argument_can_be_read(carrier) {
        let world = World::new(carrier).await;
        linear(&world);
        let text = format!("{}--distinctive", "x".repeat(5000));
        let (_, q) = world.answered(COMMENT, comment(&text), Verdict::Deny).await;
        assert!(q.argv.iter().any(|word| word.ends_with("--distinctive")), "{:?}", q.argv);
    }

    async fn relay_19_57_no_token_makes_a_box_look_like_the_host(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        let forged = json!({ "hostInitiated": "a".repeat(64) });
        let envelope = world.call("git.push", forged).await;
        assert_eq!(envelope.exit_code, 64);
        assert!(world.broker.pending().is_empty());
        // The person's own command does not pass through the box at all.
        let params = serde_json::value::to_raw_value(&json!({})).unwrap();
        let id = "b00000001".parse().unwrap();
        let envelope = world.relay.act(&id, "git.push", &params).await.unwrap().unwrap();
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(world.at_remote(BRANCH).is_some());
        assert_eq!(world.kinds(), ["refused", "typed", "executed"]);
    }

    async fn a_rewrite_is_never_remembered_whatever_the_answer_says(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        support::git(&world.inside, &["commit", "-q", "--amend", "-m", "other"]);
        let forever = Verdict::Remember { reach: Reach::Everywhere, breadth: Breadth::Kind, seconds: 9 };
        let answers = async {
            let q = world.question().await;
            assert!(q.remember.is_none());
            let refused = world.broker.answer(&q.id, &q.digest, forever, Surface::Cli);
            world.broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
            refused
        };
        let push = world.call("git.push", json!({ "args": ["--force-with-lease"] }));
        let (envelope, refused) = tokio::join!(push, answers);
        assert_eq!(envelope.exit_code, 10);
        assert_eq!(refused, Err(AnswerError::NotRememberable));
    }
}

over_both_carriers! {
    async fn relay_19_53_the_same_push_is_one_question_and_newer_commits_are_another(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a", "one");
        let first = async { tokio::join!(world.call("git.push", json!({})), world.call("git.push", json!({}))) };
        let later = async {
            let q = world.question().await;
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert_eq!(world.broker.pending().len(), 1);
            let newer = commit(&world.inside, "b", "two");
            let answers = async {
                while world.broker.pending().len() < 2 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                world.broker.answer(&q.id, &q.digest, Verdict::Deny, Surface::Cli).unwrap();
                let q = world.question().await;
                world.broker.answer(&q.id, &q.digest, Verdict::AllowOnce, Surface::Cli).unwrap();
            };
            let (envelope, ()) = tokio::join!(world.call("git.push", json!({})), answers);
            (envelope, newer)
        };
        let ((a, b), (third, newer)) = tokio::join!(first, later);
        assert_eq!((a.exit_code, b.exit_code, third.exit_code), (10, 10, 0), "{}", third.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(newer));
    }
}
