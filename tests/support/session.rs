//! A desktop of its own for one test: display, bus, window manager, keyring, notifications, tray.
//!
//! The work is done by `scripts/desktop-session`, which is compiled in, so that the tests run from
//! anywhere. The session lives as long as a pipe from here stays open: it ends when the [`Session`] is
//! dropped, and also when the test process is killed.

use crate::wait::eventually;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use zbus::blocking::{Connection, connection};

const SCRIPT: &str = include_str!("../../scripts/desktop-session");
/// Runs inside: tells the environment, then waits for the pipe to close.
const INSIDE: &str =
    r#"env -0 >"$SESSION_DIR/env.new" && mv "$SESSION_DIR/env.new" "$SESSION_DIR/env"; cat"#;
/// Generous: a session is up in a second, but a machine that builds images at the same time may stall.
const UP: Duration = Duration::from_secs(120);
const DOWN: Duration = Duration::from_secs(60);
/// How long a part of the desktop may take for one answer.
const CALL: Duration = Duration::from_secs(30);

/// Which parts the desktop has. What is left out is really absent: nothing starts it on demand.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub dunst: bool,
    pub keyring: bool,
    pub panel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { dunst: true, keyring: true, panel: true }
    }
}

pub struct Session {
    // Short on purpose: a Unix socket's path has 108 bytes at most.
    dir: TempDir,
    env: BTreeMap<String, String>,
    script: Child,
}

impl Session {
    /// Brings the desktop up, or panics with the logs of its parts.
    #[track_caller]
    pub fn start(options: Options) -> Self {
        let dir =
            tempfile::Builder::new().prefix("abx.").tempdir_in("/tmp").expect("a session folder");
        let script_path = dir.path().join("desktop-session");
        std::fs::write(&script_path, SCRIPT).expect("the session script");
        let script = Command::new("bash")
            .arg(&script_path)
            .args(["sh", "-c", INSIDE])
            .env("SESSION_DIR", dir.path())
            .envs(left_out(options))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("stderr")).expect("a log file"))
            .spawn()
            .expect("bash");
        let mut session = Self { dir, env: BTreeMap::new(), script };
        session.env = session.await_env();
        session
    }

    /// The environment programs of this desktop need: DISPLAY, HOME, the bus, …
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// A program in this desktop.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env);
        command
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn home(&self) -> PathBuf {
        self.dir().join("home")
    }

    /// A connection to the session bus whose calls cannot hang.
    pub fn bus(&self) -> Connection {
        connect(&self.env["DBUS_SESSION_BUS_ADDRESS"])
    }

    /// Everything the parts of the desktop wrote.
    pub fn logs(&self) -> String {
        let mut files = vec![self.dir().join("stderr")];
        files.extend(
            std::fs::read_dir(self.dir().join("logs"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|f| f.path()),
        );
        let mut text = String::new();
        for file in files {
            let content = std::fs::read(&file).unwrap_or_default();
            if !content.is_empty() {
                let _ =
                    writeln!(text, "--- {}\n{}", file.display(), String::from_utf8_lossy(&content));
            }
        }
        text
    }

    #[track_caller]
    fn await_env(&mut self) -> BTreeMap<String, String> {
        let file = self.dir().join("env");
        eventually(UP, "a desktop session", || {
            if let Ok(Some(status)) = self.script.try_wait() {
                panic!("the desktop session ended with {status}\n{}", self.logs());
            }
            std::fs::read_to_string(&file).ok()
        })
        .split_terminator('\0')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
    }

    /// For a failed test: what the desktop looked like and said, beside the other artifacts.
    fn keep_evidence(&self) {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("test").replace("::", "-");
        let folder = crate::screen::artifacts();
        let _ = std::fs::write(folder.join(format!("{name}.session.txt")), self.logs());
        if self.env.contains_key("DISPLAY") {
            let _ = crate::screen::try_shoot(self, &folder.join(format!("{name}.failed.png")));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_evidence();
        }
        drop(self.script.stdin.take());
        let ended = crate::wait::try_eventually(DOWN, || match self.script.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err(()),
        });
        if ended.is_err() {
            eprintln!("the desktop session in {} did not end; killing it", self.dir().display());
            let _ = self.script.kill();
            let _ = self.script.wait();
        }
    }
}

/// A connection to the bus at an address.
pub(crate) fn connect(address: &str) -> Connection {
    connection::Builder::address(address)
        .and_then(|builder| builder.method_timeout(CALL).build())
        .unwrap_or_else(|error| panic!("no bus at {address}: {error}"))
}

fn left_out(options: Options) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = [
        (options.dunst, "SESSION_NO_DUNST"),
        (options.keyring, "SESSION_NO_KEYRING"),
        (options.panel, "SESSION_NO_PANEL"),
    ];
    parts.into_iter().filter(|(wanted, _)| !wanted).map(|(_, switch)| (switch, "1"))
}
