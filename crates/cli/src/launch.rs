//! Starts a host when a command needs one and none runs.
//!
//! The desktop app where there is a desktop, else `agentbox serve`, detached, with its output in
//! the log. Two commands may do this at once: the host's own lock decides, and the loser's child
//! leaves without a fuss (`serve --detached`), so both find the one host that answers.

use crate::context::own_folder;
use crate::error::CommandError;
use crate::ui::Ui;
use host::client::Client;
use protocol::control::{HostStatus, Request};
use protocol::text::visible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(25);
/// How much of the log an error shows.
const TAIL_LINES: usize = 8;
const TAIL_BYTES: usize = 16 * 1024;

/// Whether something listens on the control socket.
pub fn is_running(home: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(host::home::control_socket(home)).is_ok()
}

/// Starts a host and waits until it answers.
pub fn start(home: &Path, client: &Client, ui: &Ui) -> Result<(), CommandError> {
    let log = home.join("logs/host.log");
    host::home::private_dir(home)
        .and_then(|()| host::home::private_dir(&home.join("logs")))
        .map_err(|e| no_home(home, &e))?;
    if let Some(app) = desktop_app() {
        ui.say("Starting AgentBox…");
        match launch(desktop(&app, home), home, client, &log, |_| true) {
            Ok(()) => return Ok(()),
            Err(why) => ui.warn(&format!(
                "the desktop app did not start ({}); going on without it",
                why.first_line()
            )),
        }
    }
    ui.say("Starting the AgentBox host in the background…");
    launch(headless(home)?, home, client, &log, |_| true).map_err(|why| why.into_error(&log))
}

fn no_home(home: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot use {}: {error}", home.display()))
        .hint("choose another folder with --home or AGENTBOX_HOME")
}

/// Starts the desktop app, which takes over from a host without a desktop, or shows the window of the one
/// that runs; waits until it is the host.
pub fn start_app(home: &Path, client: &Client) -> Result<(), CommandError> {
    let app = installed_app().ok_or_else(|| {
        CommandError::failed("the desktop app is not installed beside agentbox")
            .hint("install the package with the desktop app, or use agentbox host start")
    })?;
    if !has_desktop() {
        return Err(CommandError::failed("there is no desktop to show the app on")
            .hint("agentbox host start starts a host without one"));
    }
    let log = home.join("logs/host.log");
    host::home::private_dir(home)
        .and_then(|()| host::home::private_dir(&home.join("logs")))
        .map_err(|e| no_home(home, &e))?;
    let is_app = |status: &HostStatus| status.kind == "desktop";
    launch(desktop(&app, home), home, client, &log, is_app).map_err(|why| why.into_error(&log))
}

fn has_desktop() -> bool {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    cfg!(target_os = "macos") || ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(set)
}

fn installed_app() -> Option<PathBuf> {
    own_folder().map(|folder| folder.join("agentbox-desktop")).filter(|app| app.is_file())
}

/// The desktop app, when it was installed beside us and there is a desktop to show it on.
fn desktop_app() -> Option<PathBuf> {
    installed_app().filter(|_| has_desktop())
}

fn desktop(app: &Path, home: &Path) -> Command {
    let mut command = Command::new(app);
    // Its own group, so that Ctrl-C here does not end it.
    command.env("AGENTBOX_HOME", home).process_group(0);
    command
}

fn headless(home: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--home").arg(home).args(["serve", "--detached"]);
    Ok(command)
}

/// Why no host answered.
#[derive(Debug)]
enum Silence {
    NotStarted(io::Error),
    Ended { status: ExitStatus, log: String },
    TimedOut { log: String },
}

impl Silence {
    fn first_line(&self) -> String {
        match self {
            Silence::NotStarted(error) => error.to_string(),
            Silence::Ended { status, log } => {
                log.lines().last().map_or_else(|| status.to_string(), str::to_owned)
            }
            Silence::TimedOut { .. } => format!("no answer in {} s", PATIENCE.as_secs()),
        }
    }

    fn into_error(self, log_file: &Path) -> CommandError {
        let (what, log) = match self {
            Silence::NotStarted(error) => (format!("it cannot be started: {error}"), String::new()),
            Silence::Ended { status, log } => (format!("it ended at once ({status})"), log),
            Silence::TimedOut { log } => {
                (format!("it did not answer in {} s", PATIENCE.as_secs()), log)
            }
        };
        let mut text = format!("no AgentBox host could be started: {what}");
        for line in log.lines() {
            text.push_str("\n  ");
            text.push_str(line);
        }
        CommandError::failed(text)
            .hint(format!("its log is {}", log_file.display()))
            .hint("`agentbox doctor` checks what a host needs")
    }
}

/// Until a host answers that is `wanted`.
fn launch(
    mut command: Command,
    home: &Path,
    client: &Client,
    log: &Path,
    wanted: impl Fn(&HostStatus) -> bool,
) -> Result<(), Silence> {
    let (mut child, before) = spawn(&mut command, home, log).map_err(Silence::NotStarted)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if client.call::<HostStatus>(&Request::Status).is_ok_and(|status| wanted(&status)) {
            return Ok(());
        }
        // Success means that another host was quicker, so its answer is still to come.
        if let Ok(Some(status)) = child.try_wait()
            && !status.success()
        {
            return Err(Silence::Ended { status, log: tail(log, before) });
        }
        if Instant::now() >= deadline {
            return Err(Silence::TimedOut { log: tail(log, before) });
        }
        std::thread::sleep(POLL);
    }
}

/// The child, and how long the log was before it wrote to it.
fn spawn(command: &mut Command, home: &Path, log: &Path) -> io::Result<(Child, u64)> {
    let file = File::options().create(true).append(true).open(log)?;
    let before = file.metadata()?.len();
    let child = command
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    Ok((child, before))
}

/// The last lines written after `from`.
fn tail(log: &Path, from: u64) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(end.saturating_sub(TAIL_BYTES as u64))))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_of_this_start_only() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("host.log");
        std::fs::write(&log, "old\nnew 1\nnew 2\n").unwrap();
        assert_eq!(tail(&log, 4), "new 1\nnew 2");
        assert_eq!(tail(&dir.path().join("none"), 0), "");
    }
}
