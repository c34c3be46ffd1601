//! The real git, run in one folder.
//!
//! Always by absolute path: `git` on the search path is this program.

use crate::error::{Error, Result};
use crate::places;
use protocol::ctl::paths::GIT;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What the kernel says of a full disk.
const NO_SPACE: &str = "No space left on device";
/// A disk with less than this was full when a file could not be written: what did not fit goes in large
/// pieces.
const LITTLE: u64 = 8 << 20;

pub struct Git {
    dir: PathBuf,
    /// Keep `GIT_*` of the caller: right for a person's command, wrong for the host's.
    keep_environment: bool,
}

impl Git {
    /// For work the host asked for, in the workspace.
    pub fn for_host() -> Self {
        Self { dir: places::workspace(), keep_environment: false }
    }

    /// For work the host asked for, elsewhere.
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), keep_environment: false }
    }

    /// For a command typed in the box. Outside every repository it means the workspace, as it does
    /// for the relay.
    pub fn for_person(dir: &Path) -> Self {
        let here = Self { dir: dir.to_owned(), keep_environment: true };
        if here.read(&["rev-parse", "--git-dir"]).is_ok() {
            return here;
        }
        Self { dir: places::workspace(), keep_environment: true }
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(GIT);
        command.arg("-C").arg(&self.dir).args(args);
        if !self.keep_environment {
            let ours = |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_");
            for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs to the end; a failure carries what git said.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>> {
        self.feed(args, b"")
    }

    /// The same with standard input.
    pub fn feed<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Result<Vec<u8>> {
        self.feed_with(args, input, &[])
    }

    /// The same with variables.
    pub fn feed_with<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
        env: &[(&str, &OsStr)],
    ) -> Result<Vec<u8>> {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| Error::Program(GIT, e))?;
        let stdin = child.stdin.take();
        // In a thread of its own: git may fill its output before it has read all input.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(input)));
            child.wait_with_output()
        });
        self.check(&describe(args), output.map_err(|e| Error::Program(GIT, e))?)
    }

    fn check(&self, what: &str, output: Output) -> Result<Vec<u8>> {
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let mut said = if said.is_empty() { output.status.to_string() } else { said };
        // Git does not always say why a file could not be written.
        if said.contains("write") && !said.contains(NO_SPACE) && is_full(&self.dir) {
            said = format!("{said}: {NO_SPACE}");
        }
        Err(Error::Git { what: what.to_owned(), said })
    }

    /// Runs to the end and gives the output as one trimmed text.
    pub fn read<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.run(args)?).trim().to_owned())
    }
}

fn describe<S: AsRef<OsStr>>(args: &[S]) -> String {
    let first = args.iter().map(|a| a.as_ref().to_string_lossy());
    let word = first.into_iter().find(|a| !a.starts_with('-') && !a.contains('='));
    format!("git {}", word.unwrap_or_default())
}

/// Whether a folder's disk takes no more files, or little of one.
fn is_full(folder: &Path) -> bool {
    let Ok(seen) = nix::sys::statvfs::statvfs(folder) else { return false };
    // A file system that counts no files has none to give.
    let no_files = seen.files() != 0 && seen.files_available() == 0;
    no_files || seen.blocks_available() * seen.fragment_size() < LITTLE
}
