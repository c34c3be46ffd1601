//! Services that are never ready, or not yet.

use crate::supervisor::{Supervisor, free_port, server};
use serde_json::json;

/// Of a time of day; two of them are less than a day apart.
fn millis_between(from: &str, to: &str) -> i64 {
    let millis = |time: &str| {
        let part = |at: std::ops::Range<usize>| time[at].parse::<i64>().unwrap();
        ((part(11..13) * 60 + part(14..16)) * 60 + part(17..19)) * 1000 + part(20..23)
    };
    (millis(to) - millis(from)).rem_euclid(24 * 60 * 60 * 1000)
}

/// As with the usual values: it is given as long to become ready as a good run takes.
const HOPELESS: &str = "ready_when: {port: 1, interval_ms: 20, timeout_ms: 300}, \
                        backoff: {initial_ms: 10, max_ms: 10, max_attempts: 2, reset_after_ms: 300}";

#[test]
fn a_service_that_is_never_ready_crashes_at_last() {
    let s = Supervisor::new(&format!(
        "services:\n  killed: {{command: sleep 1000, {HOPELESS}}}\n\
         \x20 polite: {{command: 'trap \"exit 0\" TERM; sleep 1000 & wait', {HOPELESS}}}\n\
         \x20 web: {{command: sleep 1000, needs: [killed]}}\n"
    ));
    for (name, code) in [("killed", 143), ("polite", 0)] {
        let unit = s.until(name, "crashed");
        assert_eq!((&unit["restarts"], &unit["lastExitCode"]), (&json!(2), &json!(code)));
    }
    let waited = s.good(&json!({ "op": "wait-ready", "units": ["web"] }));
    assert_eq!(waited["failed"], json!(["killed"]));
}

#[test]
fn killed_for_not_being_ready_is_a_failure_whatever_the_exit_code() {
    let s = Supervisor::new(
        "services:\n  never: {command: 'trap \"exit 0\" TERM; sleep 1000 & wait', restart: never, \
         ready_when: {port: 1, timeout_ms: 200}}\n\
         \x20 failing: {command: 'trap \"exit 0\" TERM; sleep 1000 & wait', \
         ready_when: {port: 1, timeout_ms: 200}, backoff: {initial_ms: 60000, max_ms: 60000}}\n",
    );
    s.until("never", "crashed");
    assert_eq!(s.until("failing", "backoff")["consecutiveFailures"], 1);
}

#[test]
fn a_good_run_begins_when_the_service_is_ready() {
    let backoff = "backoff: {initial_ms: 10, max_ms: 10, max_attempts: 2, reset_after_ms: 400}";
    let s = Supervisor::new(&format!(
        "services:\n  brief: {{command: sleep 0.6; echo up; exit 1, ready_when: {{log_match: up}}, {backoff}}}\n\
         \x20 lasting: {{command: echo up; sleep 0.6; exit 1, ready_when: {{log_match: up}}, {backoff}}}\n"
    ));
    assert_eq!(s.until("brief", "crashed")["restarts"], 2);
    s.eventually("it goes on", || s.unit("lasting")["restarts"].as_u64() > Some(3));
}

#[test]
fn a_port_is_not_looked_at_before_its_time() {
    let (a, b) = (free_port(), free_port());
    let s = Supervisor::new(&format!(
        "services:\n  later: {{command: {:?}, \
         ready_when: {{port: {a}, interval_ms: 20, initial_delay_ms: 1200}}}}\n\
         \x20 late: {{command: {:?}, ready_when: {{port: {b}, interval_ms: 20, \
         initial_delay_ms: 2000, timeout_ms: 200, on_timeout: mark_unhealthy}}}}\n",
        server(a, "127.0.0.1", "0", "200"),
        server(b, "127.0.0.1", "0", "200"),
    ));
    // The time it has includes the time nobody looks.
    s.until("late", "unhealthy");
    let later = s.until("later", "ready");
    let at = |name: &str| later[name].as_str().unwrap().to_owned();
    let took = millis_between(&at("startedAt"), &at("readyAt"));
    assert!(took >= 1195, "{took} ms: {later}");
    s.until("late", "ready");
}
