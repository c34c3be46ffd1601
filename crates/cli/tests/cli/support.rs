//! A home of its own, a host that answers by script, and the program run between them.

use nix::pty::{OpenptyResult, Winsize, openpty};
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{ControlError, EngineStatus, HostEvent, HostStatus, Request};
use protocol::frame::{self, Kind};
use protocol::question::{Answers, Commit, Evidence, Question, Remember, Tier};
use serde::Serialize;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until it is so.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !check() {
        assert!(Instant::now() < deadline, "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One call, from the host's side.
pub struct Call(pub UnixStream);

impl Call {
    pub fn result(&mut self, value: &impl Serialize) {
        self.send(Kind::Result, &serde_json::to_vec(value).unwrap());
    }

    pub fn error(&mut self, error: &ControlError) {
        self.send(Kind::Error, &serde_json::to_vec(error).unwrap());
    }

    pub fn event(&mut self, event: &HostEvent) {
        self.send(Kind::Event, &serde_json::to_vec(event).unwrap());
    }

    /// A client that left is the client's business.
    pub fn send(&mut self, kind: Kind, payload: &[u8]) {
        let _ = frame::write(&mut self.0, kind, payload);
    }

    pub fn next(&mut self) -> Option<(Kind, Vec<u8>)> {
        frame::read(&mut self.0).unwrap_or(None)
    }
}

/// A folder for AgentBox's state, and beside it a project to be in.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home/run", "project", "tmp"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project").canonicalize().unwrap()
    }

    pub fn tmp(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// The program, in a bare environment: no desktop, no person's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentbox"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.tmp())
            .env("AGENTBOX_HOME", self.path())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args).spawn().unwrap())
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ended::of(child)
    }
}

/// A host that answers by script and remembers what it was asked.
pub struct FakeHost {
    pub home: Home,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeHost {
    pub fn new(answer: impl Fn(Request, &mut Call) + Send + Sync + 'static) -> Self {
        let home = Home::new();
        let listener = UnixListener::bind(home.path().join("run/control.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (asked.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &log, &*answer));
            }
        });
        Self { home, asked }
    }

    /// One that answers every call with the same.
    pub fn always(value: impl Serialize + Send + Sync + 'static) -> Self {
        Self::new(move |_, call| call.result(&value))
    }

    pub fn failing(error: ControlError) -> Self {
        Self::new(move |_, call| call.error(&error))
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        self.home.run(args)
    }

    /// Requests so far, as JSON.
    pub fn asked(&self) -> Vec<serde_json::Value> {
        self.asked.lock().unwrap().iter().map(|r| serde_json::from_str(r).unwrap()).collect()
    }

    /// The parameters of the only call of a method.
    pub fn asked_once(&self, method: &str) -> serde_json::Value {
        let mut found: Vec<_> =
            self.asked().into_iter().filter(|r| r["method"] == method).collect();
        assert_eq!(found.len(), 1, "{method} in {:?}", self.asked());
        found.remove(0)["params"].take()
    }

    pub fn never_asked(&self, method: &str) {
        assert!(self.asked().iter().all(|r| r["method"] != method), "{:?}", self.asked());
    }
}

fn serve(stream: UnixStream, log: &Mutex<Vec<String>>, answer: &dyn Fn(Request, &mut Call)) {
    let mut call = Call(stream);
    // The program looks whether anybody listens before it asks.
    let Some((Kind::Request, body)) = call.next() else { return };
    let request: Request = serde_json::from_slice(&body).unwrap();
    log.lock().unwrap().push(String::from_utf8(body).unwrap());
    answer(request, &mut call);
}

/// A run that has ended. A test that does not look how is no test.
#[must_use]
pub struct Ended(Output);

impl Ended {
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self(Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        })
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.0.code, Some(code), "{:#?}", self.0);
        self.0
    }

    /// For what depends on the machine.
    pub fn somehow(self) -> Output {
        self.0
    }
}

#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert_eq!(self.stdout, text, "{self:#?}");
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// A terminal of 100 by 30, and the end a program sits at.
pub struct Terminal {
    pub pair: OpenptyResult,
}

impl Terminal {
    pub fn new() -> Self {
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        Self { pair: openpty(&size, None).unwrap() }
    }

    pub fn end(&self) -> Stdio {
        self.pair.slave.try_clone().unwrap().into()
    }

    pub fn type_in(&self, keys: &str) {
        nix::unistd::write(&self.pair.master, keys.as_bytes()).unwrap();
    }

    /// Reads what the program drew until it contains the text.
    pub fn see(&self, text: &str) -> String {
        let mut master = std::fs::File::from(self.pair.master.try_clone().unwrap());
        let mut seen = String::new();
        let mut chunk = [0; 4096];
        while !seen.contains(text) {
            let read = master.read(&mut chunk).unwrap();
            seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        seen
    }
}

pub fn a_box(project: &Path) -> BoxView {
    BoxView {
        id: "b0000000a".parse().unwrap(),
        name: "fix-login".parse().unwrap(),
        display_name: None,
        index: 1,
        project: "project".into(),
        project_root: project.to_string_lossy().into_owned(),
        workspace: project.to_string_lossy().into_owned(),
        state: BoxState::Running,
        branch: Some("agentbox/fix-login".into()),
        publish: None,
        image: "agentbox/box:0123".into(),
        created_at: 0,
        questions: 0,
        muted_until: None,
        channel: "socket".into(),
        busy: None,
        agents: Vec::new(),
        logins: Vec::new(),
        web: None,
        screen: None,
        nested_repos: Vec::new(),
        egress: protocol::egress::EgressMode::Open,
        down: None,
    }
}

pub fn a_question() -> Question {
    Question {
        id: "3fa9c1d2000000000000000000000001".parse().unwrap(),
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        project: "project".into(),
        method: "git.push".into(),
        tier: Tier::Routine,
        title: "Push 1 commit to origin/fix-login".into(),
        target: "github.com/acme/shop-api".into(),
        evidence: Evidence {
            commits: vec![Commit { oid: "9f31c02".into(), subject: "Check expiry".into() }],
            ..Evidence::default()
        },
        warnings: vec![],
        argv: ["git", "push", "origin"].map(Into::into).into(),
        remember: Some(Remember {
            exact: "push to fix-login of github.com/acme/shop-api".into(),
            kind: Some("push to any branch of github.com/acme/shop-api".into()),
            only: None,
        }),
        answers: Answers::default(),
        times: 1,
        created_at: 0,
        expires_at: 0,
        digest: "the-digest".into(),
    }
}

pub fn a_status(home: &Path) -> HostStatus {
    HostStatus {
        version: "0.1.0".into(),
        proto: protocol::PROTO,
        pid: 1,
        kind: "headless".into(),
        home: home.to_string_lossy().into_owned(),
        started_at: 0,
        engine: EngineStatus { reachable: true, detail: "Docker".into(), hint: None },
        notices: vec![],
        boxes: 0,
        questions: 0,
        quiet_until: None,
        jobs: protocol::queue::JobCounts::default(),
    }
}
