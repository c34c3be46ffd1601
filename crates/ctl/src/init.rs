//! `agentbox-ctl init`: PID 1 of a box.
//!
//! Gives the box user the host's ids, the workspace its owner and the system the host's
//! certificates, says it is ready and holds until `go`. From then on it keeps the ref watcher
//! alive. It reaps whatever loses its parent and stops the box in order. It works the same at
//! every start of the container: `/run` is empty then, the rest is already as it should be.
//!
//! The surprising thing: processes the engine started beside us are not our children, so “all
//! gone” is asked of the kernel, not of `wait`.

use crate::error::{Doing, Error, Result};
use crate::passwd::{self, Account};
use crate::signals::Signals;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use protocol::ctl::{BOX_USER, ENV_GID, ENV_UID, paths};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STOP_LIMIT: Duration = Duration::from_secs(10);
const STOP_STEP: Duration = Duration::from_millis(10);
const EVERYONE: Pid = Pid::from_raw(-1);

pub fn run() -> Result<i32> {
    // Stopping signals every process it can see; outside a container that is everything.
    if std::process::id() != 1 {
        return Err(Error::Usage("init is only for PID 1 of a box.".into()));
    }
    let mut signals = Signals::listen()?;
    let user = prepare()?;
    log("ready");
    let mut watcher = Watcher::new(user);
    loop {
        for ended in reap() {
            watcher.saw_end_of(ended);
        }
        if signals.must_stop() {
            break;
        }
        if signals.take_go() {
            watcher.release();
        }
        watcher.start_if_due();
        signals.wait(watcher.due);
    }
    stop(&mut signals);
    Ok(protocol::exit::OK)
}

fn log(line: &str) {
    crate::complain(&format!("agentbox init: {line}"));
}

fn warn(what: &str, result: Result<()>) {
    if let Err(e) = result {
        log(&format!("{what}: {e}"));
    }
}

fn prepare() -> Result<Account> {
    let _ = fs::remove_file(paths::READY);
    let _ = fs::remove_file(paths::TOKEN);
    warn("the box user keeps its ids", renumber());
    let user = Account::of_system(BOX_USER)?;
    warn("the workspace keeps its owner", own_workspace(&user));
    trust_certificates();
    // Without a mount there, the bridge's sockets will be, and the watcher waits for them.
    fs::create_dir_all(paths::HOST).doing(|| format!("make {}", paths::HOST))?;
    warn("no sessions can be started", own_sessions(&user));
    fs::write(paths::READY, "").doing(|| format!("write {}", paths::READY))?;
    Ok(user)
}

fn renumber() -> Result<()> {
    let old = Account::of_system(BOX_USER)?;
    let (uid, gid) = (wanted(ENV_UID).unwrap_or(old.uid), wanted(ENV_GID).unwrap_or(old.gid));
    if (uid, gid) == (old.uid, old.gid) {
        return Ok(());
    }
    let passwd = fs::read_to_string(passwd::PASSWD).doing(|| passwd::PASSWD)?;
    let group = fs::read_to_string(passwd::GROUP).doing(|| passwd::GROUP)?;
    let new = passwd::renumber(&passwd, &group, BOX_USER, uid, gid);
    let new = new.ok_or_else(|| Error::Failed(format!("no user {BOX_USER}")))?;
    // The account's line changes last: a start that is cut short begins anew at the next.
    passwd::hand_over(&old.home, &old, (uid, gid))?;
    passwd::replace(passwd::GROUP, &new.group)?;
    passwd::replace(passwd::PASSWD, &new.passwd)?;
    log(&format!("{BOX_USER} is now {uid}:{gid}"));
    Ok(())
}

/// An id to take over. Root's is not one: the box user must not become root.
fn wanted(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok().filter(|id| *id != 0)
}

fn own_workspace(user: &Account) -> Result<()> {
    fs::create_dir_all(paths::WORKSPACE).doing(|| paths::WORKSPACE)?;
    chown(paths::WORKSPACE, Some(user.uid), Some(user.gid)).doing(|| paths::WORKSPACE)
}

fn own_sessions(user: &Account) -> Result<()> {
    let doing = || format!("make {}", paths::SESSIONS);
    fs::create_dir_all(paths::SESSIONS).doing(doing)?;
    fs::set_permissions(paths::SESSIONS, fs::Permissions::from_mode(0o700)).doing(doing)?;
    chown(paths::SESSIONS, Some(user.uid), Some(user.gid)).doing(doing)
}

fn trust_certificates() {
    let marker = Path::new(paths::CERTIFICATES).join(".new");
    if !marker.exists() {
        return;
    }
    let program = "/usr/sbin/update-ca-certificates";
    match Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => {
            let _ = fs::remove_file(marker);
        }
        Ok(status) => log(&format!("{program} failed: {status}")),
        Err(e) => log(&format!("cannot run {program}: {e}")),
    }
}

/// Takes leave of every child that ended.
fn reap() -> Vec<Pid> {
    let next = || waitpid(None, Some(WaitPidFlag::WNOHANG)).ok()?.pid();
    std::iter::from_fn(next).collect()
}

/// The ref watcher: held until `go`, started again when it dies.
struct Watcher {
    user: Account,
    running: Option<Pid>,
    released: bool,
    started: Instant,
    pause: Duration,
    /// When to start it.
    due: Option<Instant>,
}

impl Watcher {
    const FIRST_PAUSE: Duration = Duration::from_secs(1);
    const LONGEST_PAUSE: Duration = Duration::from_secs(60);

    fn new(user: Account) -> Self {
        let started = Instant::now();
        Self { user, running: None, released: false, started, pause: Self::FIRST_PAUSE, due: None }
    }

    fn release(&mut self) {
        if !self.released {
            self.released = true;
            self.due = Some(Instant::now());
        }
    }

    fn saw_end_of(&mut self, pid: Pid) {
        if self.running == Some(pid) {
            self.running = None;
            self.postpone();
        }
    }

    fn postpone(&mut self) {
        if self.started.elapsed() > Self::LONGEST_PAUSE {
            self.pause = Self::FIRST_PAUSE;
        }
        log(&format!("the ref watcher ended; starting it again in {} s", self.pause.as_secs()));
        self.due = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(Self::LONGEST_PAUSE);
    }

    fn start_if_due(&mut self) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.due = None;
        self.started = Instant::now();
        match self.command().spawn() {
            Ok(child) => self.running = i32::try_from(child.id()).ok().map(Pid::from_raw),
            Err(e) => {
                log(&format!("cannot start the ref watcher: {e}"));
                self.postpone();
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(paths::CTL);
        command.arg("watch").current_dir("/").stdin(Stdio::null()).env_clear();
        command.env("HOME", &self.user.home).env("USER", BOX_USER).env("PATH", "/usr/bin:/bin");
        command.uid(self.user.uid).gid(self.user.gid).process_group(0);
        command
    }
}

/// Asks every process to end, waits, and insists.
fn stop(signals: &mut Signals) {
    let end = Instant::now() + STOP_LIMIT;
    let _ = kill(EVERYONE, Signal::SIGTERM);
    hang_up_terminals();
    // A stopped process cannot end before it runs again.
    let _ = kill(EVERYONE, Signal::SIGCONT);
    loop {
        reap();
        if kill(EVERYONE, None) == Err(Errno::ESRCH) {
            return;
        }
        if Instant::now() >= end {
            log("some processes did not end in time and are killed");
            let _ = kill(EVERYONE, Signal::SIGKILL);
            return;
        }
        signals.wait(Some(Instant::now() + STOP_STEP));
    }
}

/// An interactive shell ignores SIGTERM and ends when its terminal goes, so that is what it is
/// told. Nobody else gets this signal: a server may take it for something different.
fn hang_up_terminals() {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok());
        let Some(pid) = pid.filter(|p| *p > 1) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if leads_terminal(pid, &stat) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGHUP);
        }
    }
}

/// Whether `/proc/<pid>/stat` is that of a session leader with a terminal. The name in brackets
/// may hold anything, so fields are counted after its end.
fn leads_terminal(pid: i32, stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // state, parent, group, session, terminal
    let [_, _, _, session, terminal, ..] = fields.as_slice() else { return false };
    session.parse() == Ok(pid) && *terminal != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_session_leaders_with_a_terminal_are_hung_up() {
        assert!(leads_terminal(7, "7 (bash) S 1 7 7 34816 7 4194304"));
        assert!(leads_terminal(7, "7 (a) b) S 1 7 7 34816 7 4194304"));
        assert!(!leads_terminal(8, "8 (vim) S 7 8 7 34816 8 4194304"));
        assert!(!leads_terminal(7, "7 (node) S 1 7 7 0 -1 4194304"));
        assert!(!leads_terminal(7, ""));
    }

    #[test]
    fn it_refuses_to_be_anything_but_pid_1() {
        assert_eq!(run().unwrap_err().exit_code(), 64);
    }

    #[test]
    fn a_dying_watcher_is_started_ever_more_slowly() {
        let user = Account { uid: 1, gid: 1, home: "/".into() };
        let mut watcher = Watcher::new(user);
        assert!(watcher.due.is_none());
        watcher.release();
        assert!(watcher.due.is_some_and(|due| due <= Instant::now()));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(watcher.pause.as_secs(), seconds);
            watcher.running = Some(Pid::from_raw(5));
            watcher.saw_end_of(Pid::from_raw(4));
            assert!(watcher.running.is_some());
            watcher.saw_end_of(Pid::from_raw(5));
            assert!(watcher.running.is_none());
        }
    }
}
