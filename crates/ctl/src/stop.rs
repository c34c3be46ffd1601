//! The end of a box, in order: its sessions and commands, its tasks and services, then the daemons,
//! last started first.
//!
//! The surprising thing: processes the engine started beside us are not our children, so “all gone”
//! is asked of the kernel, not of `wait`. The inner engine's containers are left to it: it asks them
//! itself, and knows how.

use crate::daemons::SUPERVISOR;
use crate::init::{log, reap};
use crate::signals::Signals;
use crate::supervise::{Supervisor, Unit};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// For everything that is no daemon.
const COMMANDS: Duration = Duration::from_secs(10);
/// What is left is killed by then, whatever it is.
const ALL: Duration = Duration::from_secs(27);
/// For tasks and services; the supervisor has its own, shorter limit.
const UNITS: Duration = Duration::from_secs(17);
const STEP: Duration = Duration::from_millis(10);
const EVERYONE: Pid = Pid::from_raw(-1);
/// Programs that belong to the inner engine.
const ENGINE: [&str; 7] = [
    "dockerd",
    "containerd",
    "containerd-shim",
    "containerd-shim-runc-v2",
    "docker-proxy",
    "runc",
    "fuse-overlayfs",
];

/// Asks every process to end, waits, and insists.
pub fn stop(units: &Supervisor, signals: &mut Signals) {
    let began = Instant::now();
    let daemons: Vec<Pid> = units.running().map(|(_, pid)| pid).collect();
    // The supervisor ends what it started, in its own order.
    let supervisor = units.running().find(|(unit, _)| unit.name == SUPERVISOR).map(|(_, pid)| pid);
    let commands = || {
        let all = processes();
        let supervised = supervisor.map(|pid| below(pid, &all)).unwrap_or_default();
        let other = |p: &Process| !p.belongs_to(&daemons) && !supervised.contains(&p.pid);
        all.into_iter().filter(other).collect::<Vec<_>>()
    };
    if let Some(pid) = supervisor {
        let _ = kill(pid, Signal::SIGTERM);
    }
    for process in commands() {
        let _ = kill(process.pid, Signal::SIGTERM);
        // An interactive shell ignores SIGTERM and ends when its terminal goes, so that is what it
        // is told. Nobody else gets this signal: a server may take it for something different.
        if process.leads_terminal {
            let _ = kill(process.pid, Signal::SIGHUP);
        }
        // A stopped process cannot end before it runs again.
        let _ = kill(process.pid, Signal::SIGCONT);
    }
    if !wait(signals, began + COMMANDS, || commands().is_empty()) {
        log("some processes did not end in time and are killed");
        for process in commands() {
            let _ = kill(process.pid, Signal::SIGKILL);
        }
    }
    if let Some(pid) = supervisor
        && !wait(signals, began + UNITS, || kill(pid, None) == Err(Errno::ESRCH))
    {
        log("tasks and services did not end in time and are killed");
    }
    for layer in layers(units.running()) {
        stop_layer(&layer, began + ALL, signals);
    }
    let _ = kill(EVERYONE, Signal::SIGKILL);
    let last = Instant::now() + Duration::from_secs(1);
    wait(signals, last, || kill(EVERYONE, None) == Err(Errno::ESRCH));
}

/// Units that nobody waits for end together; one that others waited for ends after them.
fn layers<'a>(last_first: impl Iterator<Item = (&'a Unit, Pid)>) -> Vec<Vec<(&'a Unit, Pid)>> {
    let mut layers = vec![Vec::new()];
    for (unit, pid) in last_first {
        if unit.ready.is_some() {
            layers.push(Vec::new());
        }
        if let Some(layer) = layers.last_mut() {
            layer.push((unit, pid));
        }
    }
    layers
}

fn stop_layer(layer: &[(&Unit, Pid)], latest: Instant, signals: &mut Signals) {
    for (unit, pid) in layer {
        let signal = if unit.stop.is_zero() { Signal::SIGKILL } else { Signal::SIGTERM };
        let _ = kill(*pid, signal);
        let _ = kill(*pid, Signal::SIGCONT);
    }
    let patience = layer.iter().map(|(unit, _)| unit.stop).max().unwrap_or_default();
    let gone = |pid: Pid| kill(pid, None) == Err(Errno::ESRCH);
    let end = (Instant::now() + patience).min(latest);
    if wait(signals, end, || layer.iter().all(|(_, pid)| gone(*pid))) {
        return;
    }
    for (unit, pid) in layer.iter().filter(|(_, pid)| !gone(*pid)) {
        log(&format!("{} did not end in time and is killed", unit.name));
        let _ = kill(*pid, Signal::SIGKILL);
    }
}

/// Whether it is so before the time is up.
fn wait(signals: &mut Signals, end: Instant, so: impl Fn() -> bool) -> bool {
    loop {
        reap();
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        signals.wait(Some(Instant::now() + STEP));
    }
}

struct Process {
    pid: Pid,
    parent: Pid,
    group: Pid,
    leads_terminal: bool,
    /// A container's, or the inner engine's own.
    of_engine: bool,
}

impl Process {
    fn belongs_to(&self, daemons: &[Pid]) -> bool {
        self.of_engine || daemons.contains(&self.pid) || daemons.contains(&self.group)
    }
}

/// Everybody a process started, and whom those started.
fn below(root: Pid, all: &[Process]) -> Vec<Pid> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = all.iter().filter(|p| p.parent == parent && !found.contains(&p.pid));
        let children: Vec<Pid> = children.map(|p| p.pid).collect();
        found.extend(children);
    }
    found
}

/// Everybody but us, and those that are only waiting to be reaped.
fn processes() -> Vec<Process> {
    let own = fs::read_link("/proc/self/ns/pid").ok();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let process = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok().filter(|pid| *pid > 1)?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let stat = Stat::parse(&stat).filter(|stat| !stat.dead)?;
        // Unreadable for a moment while it ends.
        let space = fs::read_link(entry.path().join("ns/pid")).ok();
        let inner = space.is_some() && space != own;
        Some(Process {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(stat.parent),
            group: Pid::from_raw(stat.group),
            leads_terminal: stat.session == pid && stat.has_terminal,
            of_engine: inner || is_engine(&entry.path()),
        })
    };
    entries.flatten().filter_map(process).collect()
}

fn is_engine(dir: &Path) -> bool {
    let Ok(program) = fs::read_link(dir.join("exe")) else { return false };
    let in_place = program.starts_with("/usr/bin") || program.starts_with("/usr/sbin");
    in_place && program.file_name().is_some_and(|name| ENGINE.iter().any(|e| name == *e))
}

/// What `/proc/<pid>/stat` says.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    dead: bool,
    parent: i32,
    group: i32,
    session: i32,
    has_terminal: bool,
}

impl Stat {
    /// The name in brackets may hold anything, so fields are counted after its end.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [state, parent, group, session, terminal, ..] = fields.as_slice() else { return None };
        Some(Self {
            dead: matches!(*state, "Z" | "X"),
            parent: parent.parse().ok()?,
            group: group.parse().ok()?,
            session: session.parse().ok()?,
            has_terminal: *terminal != "0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_word_about_a_process_is_read() {
        let stat = |text: &str| Stat::parse(text).unwrap();
        let shell = Stat { dead: false, parent: 1, group: 7, session: 7, has_terminal: true };
        assert_eq!(stat("7 (bash) S 1 7 7 34816 7 4194304"), shell);
        assert_eq!(stat("7 (a) b) S 1 7 7 34816 7 4194304"), shell);
        assert!(!stat("7 (node) S 1 7 7 0 -1 4194304").has_terminal);
        assert_eq!(stat("8 (vim) S 7 8 7 34816 8 4194304").session, 7);
        assert!(stat("9 (gone) Z 1 9 9 0 -1 4194304").dead);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn an_awaited_unit_ends_after_those_that_waited_for_it() {
        let unit = |name, awaited: bool| Unit {
            name,
            command: Box::new(|| std::process::Command::new("true")),
            logged: false,
            ready: awaited.then(|| (crate::supervise::Probe::Socket("/x".into()), STEP)),
            stop: STEP,
        };
        let all = [
            unit("sshd", false),
            unit("page", false),
            unit("screen", true),
            unit("dockerd", true),
            unit("watch", false),
        ];
        let layers = layers(all.iter().map(|unit| (unit, Pid::from_raw(5))));
        let names: Vec<Vec<_>> =
            layers.iter().map(|layer| layer.iter().map(|(unit, _)| unit.name).collect()).collect();
        assert_eq!(names, [vec!["sshd", "page"], vec!["screen"], vec!["dockerd", "watch"]]);
    }

    #[test]
    fn daemons_and_the_inner_engine_are_told_apart_from_commands() {
        let process = |pid, group, of_engine| Process {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(1),
            group: Pid::from_raw(group),
            leads_terminal: false,
            of_engine,
        };
        let daemons = [Pid::from_raw(20)];
        assert!(process(20, 20, false).belongs_to(&daemons));
        assert!(process(21, 20, false).belongs_to(&daemons));
        assert!(process(22, 22, true).belongs_to(&daemons));
        assert!(!process(23, 23, false).belongs_to(&daemons));
    }
}
