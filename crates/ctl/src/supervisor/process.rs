//! Processes of units: each leads a group of its own, and everything it starts carries its name.
//!
//! A signal goes to the whole group and to whoever left it: the unit's name is in the environment,
//! which children inherit. Where there are control groups, nobody leaves those, and they count, too.
//! The supervisor is their reaper, so it hears of every end.

use super::cgroup::groups;
use super::container::ENV_CONTAINER;
use super::unit::{Argv, Unit};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use protocol::supervisor::{ENV_SUPERVISOR, ENV_UNIT};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// What a unit's processes get of the supervisor's environment.
pub type Environment = BTreeMap<OsString, OsString>;

/// Whose processes are whose, should there ever be two supervisors.
static OWN: OnceLock<OsString> = OnceLock::new();

/// Said once, before anything is started: which supervisor this is.
pub fn be(socket: &Path) {
    let _ = OWN.set(socket.as_os_str().to_owned());
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Code(i32),
    Signal(i32),
    /// It never began.
    NotStarted,
    /// It took longer than it may.
    TimedOut,
}

impl End {
    pub fn is_well(self) -> bool {
        self == Self::Code(0)
    }

    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::NotStarted => -1,
            Self::TimedOut => protocol::exit::TIMED_OUT,
        }
    }

    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(signal),
            _ => None,
        }
    }
}

/// Starts a unit's command, or another one in its place. A program or folder that is not there is an
/// error at once, and says which.
pub fn spawn(unit: &Unit, given: &Argv, base: &Environment) -> Result<Child, String> {
    if !unit.cwd.is_dir() {
        return Err(format!("cannot start: no folder {}", unit.cwd.display()));
    }
    let own = "/proc/self/exe";
    let (program, args): (&str, Vec<&str>) = match given {
        Argv::Container(_) => (own, vec!["container-unit"]),
        Argv::Shell(text) => ("bash", vec!["-c", text]),
        Argv::Words(words) => match words.split_first() {
            Some((program, args)) => (program, args.iter().map(String::as_str).collect()),
            None => return Err("cannot start: it has no command".into()),
        },
    };
    let mut command = Command::new(program);
    command.args(args).current_dir(&unit.cwd).env_clear().envs(base);
    if let Argv::Container(container) = given {
        let text = serde_json::to_string(container).map_err(|e| e.to_string())?;
        command.arg0("agentbox-ctl").env(ENV_CONTAINER, text);
    }
    if let Some(env) = &unit.env {
        command.envs(env);
    }
    command.env("PWD", &unit.cwd).env(ENV_UNIT, &unit.name);
    command.env(ENV_SUPERVISOR, OWN.get().cloned().unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    let started = match groups() {
        Some(groups) => groups.spawn(&unit.name, || command.spawn()),
        None => command.spawn(),
    };
    started.map_err(|e| {
        let why = match e.kind() {
            io::ErrorKind::NotFound => "no such program".to_owned(),
            io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
            _ => e.to_string(),
        };
        format!("cannot start {program}: {why}")
    })
}

/// Everybody who ended since the last call.
pub fn reap() -> Vec<(Pid, End)> {
    let next = || loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => return Some((pid, End::Code(code))),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                return Some((pid, End::Signal(signal as i32)));
            }
            Ok(WaitStatus::StillAlive) => return None,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    };
    std::iter::from_fn(next).collect()
}

/// Signals a unit's group and whoever left it.
pub fn signal(group: Pid, name: &str, signal: Signal) {
    let _ = killpg(group, signal);
    for stray in strays(Some(name)) {
        if stray.group != group {
            let _ = kill(stray.pid, signal);
        }
    }
    let Some(groups) = groups() else { return };
    if signal == Signal::SIGKILL {
        return groups.kill(name);
    }
    for member in groups.members(name) {
        let process = Path::new("/proc").join(member.to_string());
        // The others have had it.
        if group_of(&process) != Some(group) && unit_of(&process).is_none() {
            let _ = kill(member, signal);
        }
    }
}

/// Kills whoever is left of any unit.
pub fn kill_all() {
    for stray in strays(None) {
        let _ = kill(stray.pid, Signal::SIGKILL);
    }
    if let Some(groups) = groups() {
        groups.kill_all();
    }
}

/// Whether anybody of a unit is left.
pub fn any_left(group: Pid, name: &str) -> bool {
    killpg(group, None) != Err(Errno::ESRCH)
        || groups().is_some_and(|groups| groups.any_left(name))
        || !strays(Some(name)).is_empty()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    pub pid: Pid,
    pub group: Pid,
    pub unit: String,
}

/// Living processes that a unit started, of one unit or of all.
pub fn strays(name: Option<&str>) -> Vec<Stray> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    let stray = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let unit = unit_of(&entry.path()).filter(|_| u32::try_from(pid) != Ok(own))?;
        if name.is_some_and(|name| unit != name) {
            return None;
        }
        let group = group_of(&entry.path())?;
        Some(Stray { pid: Pid::from_raw(pid), group, unit })
    };
    entries.flatten().filter_map(stray).collect()
}

/// The unit a process belongs to, by its environment. None for others' processes.
pub fn unit_of(process: &Path) -> Option<String> {
    let environ = fs::read(process.join("environ")).ok()?;
    let value = |name: &str| {
        let prefix = format!("{name}=");
        environ.split(|b| *b == 0).find_map(|v| v.strip_prefix(prefix.as_bytes()))
    };
    let found = value(ENV_UNIT)?;
    if value(ENV_SUPERVISOR) != OWN.get().map(|own| own.as_bytes()) {
        return None;
    }
    Some(String::from_utf8_lossy(found).into_owned())
}

/// None when it is only waiting to be reaped.
pub fn group_of(process: &Path) -> Option<Pid> {
    let stat = fs::read(process.join("stat")).ok()?;
    // The name in brackets may hold anything.
    let end = stat.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then(|| Pid::from_raw(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_have_numbers() {
        assert_eq!(End::Code(7).code(), 7);
        assert_eq!((End::Signal(9).code(), End::Signal(9).signal()), (137, Some(9)));
        assert_eq!((End::NotStarted.code(), End::TimedOut.code()), (-1, 124));
    }

    #[test]
    fn ones_own_group_is_known() {
        let own = group_of(Path::new("/proc/self")).unwrap();
        assert_eq!(own, nix::unistd::getpgrp());
    }
}
