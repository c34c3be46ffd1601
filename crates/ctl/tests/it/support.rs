//! A box without a container: folders, a token, a socket, and git in a hermetic environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const GIT: &str = "/usr/bin/git";
pub const CTL: &str = env!("CARGO_BIN_EXE_agentbox-ctl");
/// Far longer than anything takes; only a failure waits this long.
pub const LIMIT: Duration = Duration::from_secs(10);

pub struct TestBox {
    dir: TempDir,
}

impl TestBox {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "host", "workspace", "upstream"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("ready"), "").unwrap();
        std::fs::write(dir.path().join("token"), "ab".repeat(32)).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// The host's repository of the project.
    pub fn project(&self) -> PathBuf {
        self.path("upstream")
    }

    pub fn socket(&self) -> PathBuf {
        self.path("host/relay.sock")
    }

    fn hermetic(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("AGENTBOX_WORKSPACE", self.workspace())
            .env("AGENTBOX_RELAY_SOCKET", self.socket())
            .env("AGENTBOX_TOKEN_FILE", self.path("token"))
            .env("AGENTBOX_REPOSITORIES_FILE", self.path("repositories"))
            .env("AGENTBOX_READY_FILE", self.path("ready"));
        command
    }

    pub fn ctl(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic(CTL);
        command.args(args).current_dir(self.workspace());
        command
    }

    /// `git …` the way an agent calls it.
    pub fn shim(&self, args: &[&str]) -> Command {
        self.called("git", args)
    }

    /// The same binary under another name.
    pub fn called(&self, name: &str, args: &[&str]) -> Command {
        let link = self.path(name);
        // It may be there already.
        let _ = std::os::unix::fs::symlink(CTL, &link);
        let mut command = self.hermetic(link.to_str().unwrap());
        command.args(args).current_dir(self.workspace());
        command
    }

    /// Real git; must succeed.
    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        self.git_with(dir, args, &[])
    }

    pub fn git_with(&self, dir: &Path, args: &[&str], env: &[(&str, &Path)]) -> String {
        let mut command = self.hermetic(GIT);
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        command.current_dir(dir).args(identity).args(args).envs(env.iter().copied());
        let out = command.output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// A repository with one commit of `a` in the workspace.
    pub fn with_commit(self) -> Self {
        let workspace = self.workspace();
        self.git(&workspace, &["init", "-q", "-b", "agentbox/t"]);
        self.commit(&workspace, "a", "one");
        self
    }

    pub fn commit(&self, dir: &Path, file: &str, text: &str) -> String {
        std::fs::write(dir.join(file), text).unwrap();
        self.git(dir, &["add", file]);
        self.git(dir, &["commit", "-q", "-m", text]);
        self.git(dir, &["rev-parse", "HEAD"])
    }
}

#[must_use]
#[derive(Debug, PartialEq)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs to the end with this input.
pub fn run(command: &mut Command, input: &[u8]) -> (Said, Vec<u8>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output: Output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    let said = Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (said, output.stdout)
}

pub fn said(command: &mut Command) -> Said {
    run(command, b"").0
}

/// Polls until it holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One request as the relay saw it.
#[derive(Debug)]
pub struct Seen {
    pub head: String,
    pub body: serde_json::Value,
    pub at: Instant,
}

/// A relay that answers every request by one function, and remembers them.
pub struct TestRelay {
    pub seen: Receiver<Seen>,
}

impl TestRelay {
    /// `answer` gets the stream after the request was read.
    pub fn raw(at: &TestBox, mut answer: impl FnMut(&Seen, UnixStream) + Send + 'static) -> Self {
        let listener = UnixListener::bind(at.socket()).unwrap();
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&mut stream) else { continue };
                answer(&request, stream);
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Self { seen }
    }

    pub fn answering(at: &TestBox, status: &'static str, body: impl Into<String>) -> Self {
        let body = body.into();
        Self::raw(at, move |_, stream| respond(stream, status, &body))
    }

    pub fn next(&self) -> Seen {
        self.seen.recv_timeout(LIMIT).expect("no request came")
    }

    pub fn is_quiet_for(&self, time: Duration) -> bool {
        self.seen.recv_timeout(time).is_err()
    }
}

pub fn respond(mut stream: UnixStream, status: &str, body: &str) {
    let length = body.len();
    let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
}

fn read_request(stream: &mut UnixStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Some(Seen { head, body: serde_json::from_slice(&body).unwrap(), at: Instant::now() })
}

/// A child that is gone when the test is.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
