//! Running git on the person's own repository.
//!
//! By absolute path, never through a shell, with an environment that is built up: nothing named
//! `GIT_*` is inherited, hooks and the file-system monitor stay off. A box has no hand in what is
//! read here (its repository is its own), so the person's configured filters may run.

use crate::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Hashing a large work tree takes a while; anything longer is stuck.
const LIMIT: Duration = Duration::from_secs(600);

/// One git call, told what it is for so that its failure can be.
pub(super) struct Git<'a> {
    what: &'static str,
    dir: &'a Path,
    command: Command,
    input: Vec<u8>,
}

pub(super) struct Answer {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl<'a> Git<'a> {
    pub fn new(what: &'static str, dir: &'a Path) -> Result<Self, Error> {
        let mut command = Command::new(program()?);
        command.env_clear().current_dir(dir).kill_on_drop(true);
        for name in ["HOME", "PATH", "USER", "XDG_CONFIG_HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs([("LC_ALL", "C"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0")]);
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        Ok(Self { what, dir, command, input: Vec::new() })
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Works on this index file instead of the repository's.
    pub fn index(mut self, file: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", file);
        self
    }

    /// Takes `dir` for the work tree of this repository.
    pub fn of(mut self, git_dir: &Path) -> Self {
        self.command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", self.dir);
        self
    }

    /// Lets it use the person's keys, for a fetch.
    pub fn with_keys(mut self) -> Self {
        if let Some(value) = std::env::var_os("SSH_AUTH_SOCK") {
            self.command.env("SSH_AUTH_SOCK", value);
        }
        self.command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Runs it; a failure to run is an error, a failure of git is an answer.
    pub async fn ask(mut self) -> Result<Answer, Error> {
        let failed =
            |why: String| Error::Git { what: self.what.into(), path: self.dir.into(), why };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|error| failed(error.to_string()))?;
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A git that stops reading says why on its standard error.
                let _ = stdin.write_all(&self.input).await;
            }
        };
        let run = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(LIMIT, run)
            .await
            .map_err(|_| failed(format!("it was not done in {} s", LIMIT.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        Ok(Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Runs it and wants it to succeed.
    pub async fn run(self) -> Result<Vec<u8>, Error> {
        let (what, dir) = (self.what, self.dir);
        let answer = self.ask().await?;
        if answer.code == 0 {
            return Ok(answer.stdout);
        }
        Err(Error::Git { what: what.into(), path: dir.into(), why: answer.stderr })
    }

    /// Runs it and wants one line of text.
    pub async fn line(self) -> Result<String, Error> {
        let stdout = self.run().await?;
        Ok(String::from_utf8_lossy(&stdout).trim_end_matches('\n').to_owned())
    }
}

/// The git program, looked up once.
fn program() -> Result<&'static Path, Error> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let search = || {
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join("git")).find(|file| file.is_file())
    };
    FOUND.get_or_init(search).as_deref().ok_or_else(|| Error::NoGit(path.clone()))
}
