//! Bytes of a box for a page: logs, a session's terminal, the screen, and what it sends out as lines of JSON.
//!
//! The page names a box and a thing of it; the command line is written here, from parts that are looked
//! at first. So a page can do in a box what a person at a terminal of the box can, and nothing on the
//! host. What comes is a box's: the page draws it as text, in a terminal that is one, or as a picture.

use crate::flow::Flow;
use crate::permitted::{bounded, parsed, refused};
use crate::{Window, failed, to_control, usage};
use host::client::{Incoming, Next};
use protocol::BoxId;
use protocol::control::{ControlError, Exec, HostEvent, Request, Target};
use protocol::ctl::{FORWARD_READY, paths};
use protocol::links::{Link, LinkTo};
use protocol::sessions::is_session_name;
use protocol::window::{Stream, UnitVerb};
use serde_json::Value;
use std::sync::Arc;

/// Where the screen's server listens in a box.
const SCREEN_PORT: &str = "5901";
/// More lines than a page keeps.
const MOST_LINES: u32 = 100_000;
const MOST_CELLS: u16 = 1000;

impl Window {
    /// Carries a stream until it ends; how its program ended, where there is one. The page numbers its
    /// streams with its calls.
    pub fn stream(
        &self,
        number: u32,
        what: Value,
        mut give: impl FnMut(Vec<u8>),
    ) -> Result<i32, ControlError> {
        let greeted = what["kind"] == "screen";
        let mut conversation = self.client.open(&wanted(what)?).map_err(to_control)?;
        let writer = conversation.writer().map_err(|e| failed(e.to_string()))?;
        let flow = Arc::new(Flow::default());
        self.running.begun(number, writer, Some(flow.clone()))?;
        let mut greeting = greeted;
        let ended = loop {
            match conversation.receive::<Value>().map_err(to_control) {
                Ok(Next::Incoming(Incoming::Stdout(mut bytes) | Incoming::Stderr(mut bytes))) => {
                    if std::mem::take(&mut greeting) && bytes.first() == Some(&FORWARD_READY) {
                        bytes.remove(0);
                    }
                    if bytes.is_empty() {
                        continue;
                    }
                    if !flow.room_for(bytes.len()) {
                        break Err(failed("It was called off."));
                    }
                    give(bytes);
                }
                Ok(Next::Incoming(Incoming::Event(event))) => {
                    let Some(bytes) = line(&event) else { continue };
                    if !flow.room_for(bytes.len()) {
                        break Err(failed("It was called off."));
                    }
                    give(bytes);
                }
                Ok(Next::Result(end)) => break Ok(exit_code(&end)),
                Err(e) => break Err(e),
            }
        };
        self.running.ended(number);
        ended
    }

    /// Keys for a terminal, words for a screen.
    pub fn write(&self, number: u32, bytes: &[u8]) {
        // Nothing would be the end of input.
        if !bytes.is_empty() {
            self.running.write(number, |writer| writer.stdin(bytes));
        }
    }

    pub fn resize(&self, number: u32, cols: u16, rows: u16) {
        let (cols, rows) = (cells(cols), cells(rows));
        self.running.write(number, |writer| writer.resize(cols, rows));
    }

    /// The page has drawn so many bytes.
    pub fn taken(&self, number: u32, bytes: usize) {
        self.running.taken(number, bytes);
    }

    /// What the screen's server wants to hear from whoever looks. The box knows it as well.
    pub fn screen_password(&self, id: &BoxId) -> Result<String, ControlError> {
        let (target, to) = (Target::id(id), LinkTo::Screen);
        let request = Request::Link { target, to, loopback: false, engine: None };
        let link: Link = self.client.call(&request).map_err(to_control)?;
        let password = link.url.rsplit_once("password=").map(|(_, password)| password.to_owned());
        password.ok_or_else(|| failed("The screen has no password."))
    }
}

fn exit_code(end: &Value) -> i32 {
    end["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(0)
}

fn cells(wanted: u16) -> u16 {
    wanted.clamp(2, MOST_CELLS)
}

/// The request behind what a page asked for: one of its streams, or the traffic of a box as the host is
/// asked for it.
fn wanted(what: Value) -> Result<Request, ControlError> {
    if what.get("method").is_some() {
        return match parsed(what)? {
            Request::FollowTraffic(query) => Ok(Request::FollowTraffic(bounded(query))),
            _ => Err(refused()),
        };
    }
    let what: Stream = serde_json::from_value(what)
        .map_err(|e| usage(format!("The window asked for an unknown stream: {e}.")))?;
    request(what)
}

/// A line of traffic as a line of JSON; none for what else a host may tell.
fn line(event: &HostEvent) -> Option<Vec<u8>> {
    let HostEvent::Traffic { line } = event else { return None };
    let mut bytes = serde_json::to_vec(line).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

/// The request behind a stream of a box.
fn request(what: Stream) -> Result<Request, ControlError> {
    let exec = |id: &BoxId, words: &[&str]| {
        let argv = std::iter::once(paths::CTL).chain(words.iter().copied());
        let argv = argv.map(str::to_owned).collect();
        Exec { target: Target::id(id), argv, tty: false, cols: 80, rows: 24, user: None }
    };
    Ok(match what {
        Stream::Log { id, tail } => {
            Request::Logs { target: Target::id(&id), tail: tail.min(MOST_LINES), follow: true }
        }
        Stream::UnitLog { id, unit, tail } => {
            let (unit, tail) = (named(&unit)?, tail.min(MOST_LINES).to_string());
            Request::Exec(exec(&id, &["logs", "-n", &tail, "-f", unit]))
        }
        Stream::Terminal { id, session, cols, rows } => {
            if !is_session_name(&session) {
                return Err(usage("That is no name of a session."));
            }
            let words = ["session", "attach", &session, "--term", "xterm-256color"];
            let (cols, rows) = (cells(cols), cells(rows));
            Request::Exec(Exec { tty: true, cols, rows, ..exec(&id, &words) })
        }
        Stream::Screen { id } => Request::Exec(exec(&id, &["forward", SCREEN_PORT])),
        Stream::Unit { id, unit, verb } => {
            let unit = named(&unit)?;
            Request::Exec(match verb {
                UnitVerb::Start => exec(&id, &["start", unit]),
                UnitVerb::Stop => exec(&id, &["stop", unit]),
                UnitVerb::Restart => exec(&id, &["restart", unit]),
                UnitVerb::Run => exec(&id, &["run-task", unit, "--force"]),
            })
        }
    })
}

/// The name of a task or service: never a flag.
fn named(unit: &str) -> Result<&str, ControlError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_name = (1..=64).contains(&unit.len()) && unit.bytes().all(fits);
    if is_name && !unit.starts_with('-') {
        Ok(unit)
    } else {
        Err(usage("That is no name of a unit."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::frame::{self, Kind};

    fn of(text: &str) -> Result<Request, String> {
        wanted(serde_json::from_str(text).map_err(|e| e.to_string())?).map_err(|e| e.message)
    }

    fn argv(text: &str) -> Vec<String> {
        let Ok(Request::Exec(exec)) = of(text) else { panic!("{text}") };
        exec.argv[1..].to_vec()
    }

    #[test]
    fn a_page_names_things_and_no_commands() {
        let id = r#""id":"b0a1b2c3d""#;
        let log = format!(r#"{{"kind":"unitLog",{id},"unit":"web","tail":4000000000}}"#);
        assert_eq!(argv(&log), ["logs", "-n", "100000", "-f", "web"]);
        let unit = format!(r#"{{"kind":"unit",{id},"unit":"seed","verb":"run"}}"#);
        assert_eq!(argv(&unit), ["run-task", "seed", "--force"]);
        let screen = format!(r#"{{"kind":"screen",{id}}}"#);
        assert_eq!(argv(&screen), ["forward", "5901"]);
        let terminal =
            format!(r#"{{"kind":"terminal",{id},"session":"shell-2","cols":0,"rows":60000}}"#);
        let Ok(Request::Exec(exec)) = of(&terminal) else { panic!() };
        assert!(exec.tty && exec.user.is_none());
        assert_eq!((exec.cols, exec.rows), (2, 1000));
    }

    #[test]
    fn what_is_no_name_runs_nothing() {
        let id = r#""id":"b0a1b2c3d""#;
        for bad in ["", "-f", "--socket=/x", "a b", "a;b", "../x", "$(id)", "a\\n"] {
            for text in [
                format!(r#"{{"kind":"unitLog",{id},"unit":"{bad}","tail":1}}"#),
                format!(r#"{{"kind":"unit",{id},"unit":"{bad}","verb":"restart"}}"#),
                format!(r#"{{"kind":"terminal",{id},"session":"{bad}","cols":1,"rows":1}}"#),
            ] {
                assert!(of(&text).is_err(), "{text}");
            }
        }
        for text in [
            r#"{"kind":"exec","id":"b0a1b2c3d","argv":["sh"]}"#.to_owned(),
            r#"{"kind":"log","id":"fix-login","tail":1}"#.to_owned(),
            format!(r#"{{"kind":"screen",{id},"port":22}}"#),
            format!(r#"{{"kind":"unit",{id},"unit":"web","verb":"recreate"}}"#),
        ] {
            assert!(of(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn traffic_is_the_only_request_that_flows_and_it_is_bounded() {
        let follow = r#"{"method":"followTraffic","params":{"limit":900000,"denied":true}}"#;
        let Ok(Request::FollowTraffic(query)) = of(follow) else { panic!() };
        assert_eq!((query.limit, query.denied), (5000, true));
        for text in [
            r#"{"method":"subscribe"}"#,
            r#"{"method":"followBoxes"}"#,
            r#"{"method":"stop"}"#,
            r#"{"method":"exec","params":{"target":{},"argv":["sh"],"tty":false,"cols":1,"rows":1}}"#,
            r#"{"method":"followTraffic","kind":"screen"}"#,
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    fn told(n: u64) -> Vec<u8> {
        let line = serde_json::json!({"type": "traffic", "line": {"id": n.to_string(), "at": n,
            "boxId": "b00000001", "kind": "request", "action": "blocked",
            "reason": "host_not_allowed", "scheme": "https", "host": "a.example", "port": 443,
            "method": "GET", "path": "/\n", "rule": null, "status": null, "bytesUp": 0,
            "bytesDown": 0, "ms": 1, "proto": null, "remote": null}});
        serde_json::to_vec(&line).unwrap()
    }

    /// A host that tells traffic for as long as somebody listens; how many lines it was rid of.
    fn flood(home: &std::path::Path) -> std::thread::JoinHandle<u64> {
        let socket = host::home::control_socket(home);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            frame::read(&mut stream).unwrap();
            frame::write(&mut stream, Kind::Event, br#"{"type":"boxRemoved","id":"b00000001"}"#)
                .unwrap();
            let mut rid = 0;
            while frame::write(&mut stream, Kind::Event, &told(rid)).is_ok() {
                rid += 1;
            }
            rid
        })
    }

    #[test]
    fn traffic_comes_as_lines_and_waits_for_a_page_that_takes_none() {
        let home = tempfile::tempdir().unwrap();
        let host = flood(home.path());
        let window = Window::new(home.path());
        let (tx, rx) = std::sync::mpsc::channel();
        let there = window.clone();
        let follow = serde_json::json!({"method": "followTraffic", "params": {"limit": 10}});
        let flowing =
            std::thread::spawn(move || there.stream(1, follow, |bytes| tx.send(bytes).unwrap()));
        let first = rx.recv().unwrap();
        assert_eq!(String::from_utf8_lossy(&first).lines().count(), 1, "one line is one line");
        let line: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!((&line["id"], &line["path"]), (&"0".into(), &"/\n".into()));
        // It stops by itself: the page has said nothing of having taken any.
        let mut got = first.len();
        while let Ok(bytes) = rx.recv_timeout(std::time::Duration::from_millis(300)) {
            got += bytes.len();
        }
        assert!(got < 2 * 1024 * 1024, "{got} bytes are on their way to a page that takes none");
        window.taken(1, got);
        rx.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
        window.hang_up(1);
        assert!(flowing.join().unwrap().is_err());
        assert!(host.join().unwrap() > 0);
    }
}
