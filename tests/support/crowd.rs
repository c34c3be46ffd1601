//! A host with far more on its hands than a test could make for real: two hundred boxes, a thousand open
//! questions, a log of a hundred thousand lines. It speaks the control socket's words and decides
//! nothing; what it was told to answer is written down.

use protocol::control::{HostEvent, Request};
use protocol::frame::{self, Kind};
use serde_json::{Value, json};
use std::io::BufReader;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

pub struct Crowd {
    answers: Arc<Mutex<Vec<Value>>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub boxes: usize,
    /// For each box.
    pub questions: usize,
    pub lines: usize,
}

impl Crowd {
    /// Listens where the host of this home would.
    #[track_caller]
    pub fn gather(home: &Path, size: Size) -> Self {
        let socket = host::home::control_socket(home);
        std::fs::create_dir_all(socket.parent().expect("a folder")).expect("a folder");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let crowd = Self { answers: Arc::default() };
        let answers = crowd.answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = answers.clone();
                std::thread::spawn(move || serve(stream, size, &answers));
            }
        });
        crowd
    }

    /// Every answer to a question that came.
    pub fn answers(&self) -> Vec<Value> {
        self.answers.lock().expect("no panic").clone()
    }
}

fn serve(mut stream: UnixStream, size: Size, answers: &Mutex<Vec<Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (_, body) = frame::read(&mut reader).ok()??;
    let request: Request = serde_json::from_slice(&body).ok()?;
    let mut send = |kind: Kind, value: &Value| {
        frame::write(&mut stream, kind, value.to_string().as_bytes()).ok()
    };
    let reply = match request {
        Request::Subscribe => {
            send(Kind::Event, &snapshot(size))?;
            // Until the window leaves.
            return frame::read(&mut reader).ok().flatten().map(drop);
        }
        Request::FollowUsage { .. } => return frame::read(&mut reader).ok().flatten().map(drop),
        Request::Logs { .. } => {
            for piece in 0..size.lines.div_ceil(1000) {
                let line = |n: usize| format!("line {} of a very long log\n", piece * 1000 + n);
                let text: String = (0..1000).map(line).collect();
                frame::write(&mut stream, Kind::Stdout, text.as_bytes()).ok()?;
            }
            return frame::read(&mut reader).ok().flatten().map(drop);
        }
        Request::Answer { .. } => {
            let said = serde_json::from_slice(&body).ok()?;
            answers.lock().ok()?.push(said);
            Value::Null
        }
        Request::Boxes => json!(boxes(size)),
        Request::Questions => json!(questions(size)),
        Request::Audit(_) | Request::Grants | Request::Secrets | Request::Sessions { .. } => {
            json!([])
        }
        _ => {
            let error = json!({ "code": "failed", "message": "It is busy.", "hints": [] });
            send(Kind::Error, &error)?;
            return None;
        }
    };
    send(Kind::Result, &reply)
}

fn snapshot(size: Size) -> Value {
    let event = json!({
        "type": "snapshot",
        "status": {
            "version": "0.1.0", "proto": 1, "pid": 1, "kind": "headless", "home": "/home/ada/.agentbox",
            "startedAt": 0, "engine": { "reachable": true, "detail": "Docker 20.10", "hint": null },
            "notices": [], "boxes": size.boxes, "questions": size.boxes * size.questions,
            "quietUntil": null,
        },
        "boxes": boxes(size),
        "questions": questions(size),
    });
    // Drift would show here and not as an empty page.
    let _: HostEvent = serde_json::from_value(event.clone()).expect("a snapshot");
    event
}

fn id(n: usize) -> String {
    format!("b{n:08x}")
}

fn boxes(size: Size) -> Vec<Value> {
    let one = |n: usize| {
        json!({
            "id": id(n), "name": format!("box-{n}"), "index": n + 1, "project": format!("p{}", n % 10),
            "projectRoot": format!("/p{}", n % 10), "workspace": format!("/p{}", n % 10),
            "state": "running", "branch": format!("agentbox/box-{n}"), "publish": null,
            "image": "agentbox/box:0123", "createdAt": 1_700_000_000_000u64, "questions": size.questions,
            "mutedUntil": null, "channel": "socket", "busy": null, "agents": [], "logins": [],
            "web": null, "screen": null, "nestedRepos": [], "egress": "open",
        })
    };
    (0..size.boxes).map(one).collect()
}

fn questions(size: Size) -> Vec<Value> {
    let one = |n: usize| {
        let of = n % size.boxes.max(1);
        json!({
            "id": format!("{n:032x}"), "boxId": id(of), "boxName": format!("box-{of}"),
            "project": format!("p{}", of % 10), "method": "git.push", "tier": "routine",
            "title": format!("Push {n} commits to origin/box-{of}"), "target": "example.org/shop",
            "evidence": protocol::question::Evidence::default(), "warnings": [],
            "argv": ["git", "push", "origin", "x"], "remember": null,
            "createdAt": 1_700_000_000_000u64 + n as u64, "expiresAt": 4_000_000_000_000u64,
            "digest": format!("d{n}"),
        })
    };
    (0..size.boxes * size.questions).map(one).collect()
}
