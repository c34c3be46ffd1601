//! `agentbox-ctl init`: PID 1 of a box.
//!
//! Gives the box user the host's ids, the workspace its owner and the system the host's
//! certificates, says it is ready and holds until `go`. From then on it keeps the ref watcher and
//! the box's daemons alive. It reaps whatever loses its parent and stops the box in order. It works
//! the same at every start of the container: `/run` is empty then, the rest is already as it should
//! be.

use crate::error::{Doing, Error, Result};
use crate::passwd::{self, Account};
use crate::signals::Signals;
use crate::supervise::{Probe, Runs, Supervisor, Unit};
use crate::{daemon_log, daemons, stop};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use protocol::ctl::{BOX_USER, ENV_GID, ENV_UID, paths};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long PID 1 may wait for somebody's answer.
const ANSWER: Duration = Duration::from_millis(200);

pub fn run() -> Result<i32> {
    // Stopping signals every process it can see; outside a container that is everything.
    if std::process::id() != 1 {
        return Err(Error::Usage("init is only for PID 1 of a box.".into()));
    }
    let mut signals = Signals::listen()?;
    let user = prepare()?;
    log("ready");
    let (mut units, mut released, mut world) = (Supervisor::default(), false, ThisBox);
    loop {
        for ended in reap() {
            units.saw_end_of(ended, Instant::now(), &mut world);
        }
        if signals.must_stop() {
            break;
        }
        // Told again, the daemons find what is new by themselves.
        if signals.take_go() && !released {
            released = true;
            warn("there may be no screen", daemons::make_room_for_displays());
            units.add([watcher(&user)]);
            units.add(daemons::units(&user));
        }
        let next = units.work(Instant::now(), &mut world);
        signals.wait(next);
    }
    stop::stop(&units, &mut signals);
    Ok(protocol::exit::OK)
}

pub fn log(line: &str) {
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
pub fn reap() -> Vec<Pid> {
    let next = || waitpid(None, Some(WaitPidFlag::WNOHANG)).ok()?.pid();
    std::iter::from_fn(next).collect()
}

/// The ref watcher, which tells the host about commits.
fn watcher(user: &Account) -> Unit {
    let user = user.clone();
    let command = move || {
        let mut command = Command::new(paths::CTL);
        command.arg("watch").env_clear();
        command.env("HOME", &user.home).env("USER", BOX_USER).env("PATH", "/usr/bin:/bin");
        command.uid(user.uid).gid(user.gid);
        command
    };
    Unit {
        name: "the ref watcher",
        command: Box::new(command),
        logged: false,
        ready: None,
        stop: Duration::from_secs(1),
    }
}

/// The real world of a supervisor.
struct ThisBox;

impl Runs for ThisBox {
    fn spawn(&mut self, unit: &Unit) -> io::Result<Pid> {
        let mut command = (unit.command)();
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        if unit.logged {
            let log = daemon_log::start(Path::new(paths::LOGS), unit.name)?;
            command.stdout(log.try_clone()?).stderr(log);
        }
        let child = command.spawn()?;
        i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)
    }

    fn is_ready(&mut self, probe: &Probe) -> bool {
        match probe {
            Probe::Socket(path) => UnixStream::connect(path).is_ok(),
            Probe::Answers(path) => answers(path).unwrap_or(false),
        }
    }

    fn say(&mut self, line: &str) {
        log(line);
    }
}

/// Whether a server on a socket answers at once. It may accept long before it does.
fn answers(path: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(b"GET /_ping HTTP/1.0\r\n\r\n")?;
    let mut begin = [0; 5];
    stream.read_exact(&mut begin)?;
    Ok(&begin == b"HTTP/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_refuses_to_be_anything_but_pid_1() {
        assert_eq!(run().unwrap_err().exit_code(), 64);
    }

    #[test]
    fn a_server_is_ready_once_it_answers() {
        use std::os::unix::net::UnixListener;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        assert!(!answers(&path).unwrap_or(false));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(!answers(&path).unwrap_or(false), "it listens and says nothing");
        let server = std::thread::spawn(move || {
            for stream in listener.incoming().flatten().take(2) {
                let _ = (&stream).write_all(b"HTTP/1.0 200 OK\r\n\r\n");
            }
        });
        assert!(answers(&path).unwrap());
        server.join().unwrap();
    }
}
