//! The host hears of every branch that moves, and of nothing else.

use crate::support::{Running, TestBox, TestRelay, eventually};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// D1: commits are on the host within 2 s.
const PROMISE: Duration = Duration::from_secs(2);
/// Longer than a change takes to be posted.
const SILENCE: Duration = Duration::from_millis(700);

struct Watched {
    at: TestBox,
    relay: TestRelay,
    watch: Running,
}

fn start(at: &TestBox) -> Running {
    Running(at.ctl(&["watch"]).stdin(Stdio::null()).spawn().unwrap())
}

fn watched(at: TestBox) -> Watched {
    let relay = TestRelay::answering(&at, "202 Accepted", r#"{"id":1}"#);
    let watch = start(&at);
    let first = relay.next();
    assert!(first.head.starts_with("POST /events HTTP/1.1\r\n"));
    assert_eq!(first.body, serde_json::json!({"type": "ref-change"}));
    Watched { at, relay, watch }
}

impl Watched {
    fn hears(&self, what: &str) {
        let start = Instant::now();
        let seen = self.relay.next();
        let took = seen.at.saturating_duration_since(start);
        assert!(took < PROMISE, "{what} was posted after {took:?}");
    }

    fn git(&self, args: &[&str]) {
        self.at.git(&self.at.workspace(), args);
    }
}

#[test]
fn commits_deletes_and_packing_are_heard() {
    let w = watched(TestBox::new().with_commit());
    w.at.commit(&w.at.workspace(), "a", "two");
    w.hears("a commit");
    w.git(&["branch", "x/y/z"]);
    w.hears("a branch in a new folder");
    assert!(w.relay.is_quiet_for(SILENCE));
    w.git(&["branch", "-f", "x/y/z", "HEAD~1"]);
    w.hears("a branch moved in that folder");
    w.git(&["branch", "-D", "x/y/z"]);
    w.hears("a branch delete");
    assert!(w.relay.is_quiet_for(SILENCE));
    w.git(&["pack-refs", "--all"]);
    w.hears("pack-refs");
    assert!(w.relay.is_quiet_for(SILENCE));
    w.git(&["update-ref", "-d", "refs/heads/agentbox/t"]);
    w.hears("a packed branch's delete");
    w.git(&["checkout", "-q", "--orphan", "other"]);
    w.hears("a switch");
}

#[test]
fn work_in_files_is_not_news() {
    let w = watched(TestBox::new().with_commit());
    for n in 0..50 {
        fs::write(w.at.workspace().join(format!("f{n}")), "x").unwrap();
    }
    w.git(&["add", "."]);
    w.git(&["status"]);
    assert!(w.relay.is_quiet_for(SILENCE));
}

#[test]
fn a_repository_may_come_late_and_go_and_come_back() {
    let w = watched(TestBox::new());
    let workspace = w.at.workspace();
    for _ in 0..2 {
        w.git(&["init", "-q", "-b", "b"]);
        w.hears("a new repository");
        assert!(w.relay.is_quiet_for(SILENCE));
        w.at.commit(&workspace, "a", "one");
        w.hears("a commit in it");
        fs::remove_dir_all(workspace.join(".git")).unwrap();
        w.hears("its end");
        assert!(w.relay.is_quiet_for(SILENCE));
    }
    w.git(&["init", "-q"]);
    w.hears("a third repository");
    fs::rename(workspace.join(".git"), workspace.join("moved")).unwrap();
    w.hears("its move");
    assert!(w.relay.is_quiet_for(SILENCE));
    w.git(&["init", "-q"]);
    w.hears("a fourth");
}

#[test]
fn a_storm_is_a_few_posts_a_second() {
    let w = watched(TestBox::new().with_commit());
    let start = Instant::now();
    let mut moves = 0;
    while start.elapsed() < Duration::from_secs(2) {
        w.git(&["update-ref", &format!("refs/heads/s{}", moves % 7), "HEAD"]);
        w.git(&["update-ref", "-d", &format!("refs/heads/s{}", moves % 7)]);
        moves += 1;
    }
    let storm = start.elapsed();
    w.hears("the storm");
    let mut posts = 1;
    while !w.relay.is_quiet_for(SILENCE) {
        posts += 1;
    }
    let most = storm.as_millis() / 400 + 3;
    assert!(posts <= most, "{posts} posts for {} moves in {storm:?}", moves * 2);
}

#[test]
fn a_change_while_the_host_is_away_is_not_lost() {
    let at = TestBox::new().with_commit();
    let _watch = start(&at);
    at.commit(&at.workspace(), "a", "two");
    let relay = TestRelay::answering(&at, "202 Accepted", "{}");
    relay.next();
    assert!(relay.is_quiet_for(SILENCE));
}

#[test]
fn a_refused_post_is_tried_again() {
    let at = TestBox::new().with_commit();
    let mut count = 0;
    let relay = TestRelay::raw(&at, move |_, stream| {
        count += 1;
        let status = if count == 1 { "503 Service Unavailable" } else { "202 Accepted" };
        crate::support::respond(stream, status, "{}");
    });
    let _watch = start(&at);
    relay.next();
    relay.next();
    assert!(relay.is_quiet_for(SILENCE));
}

#[test]
fn an_idle_watch_sleeps() {
    let w = watched(TestBox::new().with_commit());
    let status = format!("/proc/{}/status", w.watch.0.id());
    let switches = || {
        let text = fs::read_to_string(&status).unwrap();
        let line = text.lines().find(|l| l.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    eventually("sleep after the first post", || {
        fs::read_to_string(&status).unwrap().contains("State:\tS")
    });
    assert!(w.relay.is_quiet_for(Duration::from_millis(200)));
    let before = switches();
    assert!(w.relay.is_quiet_for(Duration::from_secs(1)));
    assert_eq!(switches(), before);
}
