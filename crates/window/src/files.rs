//! A box's files: what is in a folder, and copies in and out by `agentbox cp`, with its checks.

use crate::{Window, failed, to_control, usage};
use host::client::Incoming;
use protocol::BoxId;
use protocol::control::{ControlError, Exec, Exited, Request, Target};
use protocol::ctl::paths;
use protocol::window::{BoxFile, BoxFolder};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// What a folder's list may be; a box that says more is not believed.
const MOST_BYTES: usize = 4 * 1024 * 1024;
const MOST_ENTRIES: usize = 5000;
const MOST_PATH: usize = 4096;
/// A box that is being started may need a moment first.
const PATIENCE: Duration = Duration::from_secs(60);

impl Window {
    /// What is in a folder of a box.
    pub fn files(&self, id: &BoxId, path: &str) -> Result<BoxFolder, ControlError> {
        let argv = [paths::CTL, "ls", "--", plain(path)?].map(str::to_owned).to_vec();
        let target = Target::id(id);
        let exec = Exec { target, argv, tty: false, cols: 80, rows: 24, user: None };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let conversation = self.client.open(&Request::Exec(exec)).map_err(to_control)?;
        let writer = conversation.writer().map_err(|e| failed(e.to_string()))?;
        let (over, patience) = mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if patience.recv_timeout(PATIENCE).is_err_and(|e| e == RecvTimeoutError::Timeout) {
                writer.hang_up();
            }
        });
        let end: Result<Exited, _> = conversation.finish(|incoming| match incoming {
            Incoming::Stdout(bytes) if out.len() < MOST_BYTES => out.extend(bytes),
            Incoming::Stderr(bytes) if err.len() < 4096 => err.extend(bytes),
            _ => {}
        });
        drop(over);
        let _ = watch.join();
        let end = end.map_err(|e| {
            to_control(e).hint("The box did not list the folder in time; try again.")
        })?;
        if end.exit_code != 0 {
            let why = String::from_utf8_lossy(&err);
            let line = why.lines().next().unwrap_or_default();
            return Err(failed(protocol::text::visible(line)));
        }
        listed(&out)
    }

    /// Copies files of this computer into a folder of a box.
    pub fn copy_in(
        &self,
        agentbox: &Path,
        home: &Path,
        id: &BoxId,
        from: &[PathBuf],
        to: &str,
    ) -> Result<(), ControlError> {
        let to = format!("{id}:{}/", plain(to)?.trim_end_matches('/'));
        let mut command = cp(agentbox, home, &[]);
        // A path of one name and a colon would be a box's; these are absolute.
        command.args(from).arg(to);
        run(command)
    }

    /// Copies a file or folder of a box into a folder of this computer, where nothing has its name: nobody
    /// is there to be asked whether to replace it.
    pub fn copy_out(
        &self,
        agentbox: &Path,
        home: &Path,
        id: &BoxId,
        from: &str,
        to: &Path,
    ) -> Result<(), ControlError> {
        let mut command = cp(agentbox, home, &["--no-replace"]);
        command.arg(format!("{id}:{}", plain(from)?)).arg(to.join(""));
        run(command)
    }
}

fn cp(agentbox: &Path, home: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(agentbox);
    command.arg("--home").arg(home).args(["--color", "never", "cp", "--no-default-excludes"]);
    command.args(flags).arg("--");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// What went wrong is what `agentbox cp` says of it.
fn run(mut command: Command) -> Result<(), ControlError> {
    let done = command.output().map_err(|e| failed(format!("agentbox cannot be started: {e}.")))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let is_error = |line: &&str| line.starts_with("error: ");
    let text = lines.clone().find(is_error).or(lines.next_back()).unwrap_or("It did not work.");
    let mut error = failed(protocol::text::visible(text.trim_start_matches("error: ")));
    for hint in said.lines().filter_map(|line| line.strip_prefix("hint: ")).take(3) {
        error = error.hint(protocol::text::visible(hint));
    }
    Err(error)
}

/// A path in a box: whole, and without a way up.
fn plain(path: &str) -> Result<&str, ControlError> {
    let parts_fit = path.split('/').all(|part| part != "..");
    let fits =
        path.starts_with('/') && path.len() <= MOST_PATH && !path.contains('\0') && parts_fit;
    if fits { Ok(path) } else { Err(usage("That is no path in a box.")) }
}

/// Lines of JSON, one for each entry.
fn listed(out: &[u8]) -> Result<BoxFolder, ControlError> {
    let text = String::from_utf8_lossy(out);
    let mut entries: Vec<BoxFile> = Vec::new();
    let mut more = false;
    for line in text.lines() {
        if entries.len() >= MOST_ENTRIES {
            more = true;
            break;
        }
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            // The last line may be cut off.
            Err(_) if out.len() >= MOST_BYTES => more = true,
            Err(_) => return Err(failed("The box's answer cannot be read.")),
        }
    }
    entries.retain(|entry| !entry.name.is_empty() && !entry.name.contains('/'));
    entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(BoxFolder { entries, more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_as_a_strangers() {
        let text = br#"{"name":"b.txt","kind":"file","size":3,"modified":1}
{"name":"src","kind":"folder","size":0,"modified":1}
{"name":"../../etc","kind":"file","size":0,"modified":1}
"#;
        let folder = listed(text).unwrap();
        let names: Vec<&str> = folder.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!((names, folder.more), (vec!["src", "b.txt"], false));
        assert!(listed(b"oops\n").is_err());
        let line = "{\"name\":\"a\",\"kind\":\"file\",\"size\":1,\"modified\":1}\n";
        let folder = listed(line.repeat(MOST_ENTRIES + 1).as_bytes()).unwrap();
        assert_eq!((folder.entries.len(), folder.more), (MOST_ENTRIES, true));
    }

    #[test]
    fn paths_stay_in_the_box() {
        assert!(plain("/workspace/src").is_ok() && plain("/").is_ok());
        for bad in ["", "src", "-x", "/a/../b", "/..", "/a\0b"] {
            assert!(plain(bad).is_err(), "{bad}");
        }
        assert!(plain(&format!("/{}", "a".repeat(MOST_PATH))).is_err());
    }
}
