//! Whoever leaves a unit's process group ends with the unit all the same, with control groups and
//! without; and a unit that says very much costs little.

use crate::supervisor::Supervisor;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A pause nobody else makes.
fn pause(number: u32) -> String {
    format!("sleep 48{number}{:07}", std::process::id())
}

/// Whether a process is exactly this, whoever started it.
fn runs(line: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let text = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ").trim() == line
    })
}

fn stops_with_all(s: &Supervisor, service: &str, all: &[String]) {
    s.eventually("all run", || all.iter().all(|line| runs(line)));
    let stopped = s.good(&json!({ "op": "stop", "service": service }));
    assert_eq!(stopped["state"], "stopped");
    for line in all {
        assert!(!runs(line), "{line} is left");
    }
}

#[test]
fn a_daemon_of_a_service_ends_with_it() {
    let (daemon, main, left) = (pause(1), pause(2), pause(3));
    let s = Supervisor::new(&format!(
        "services:\n  a: {{command: '(setsid {daemon} &) ; exec {main}'}}\n\
         \x20 b: {{command: '(setsid {left} &) ; sleep 1; exit 0', restart: never}}\n"
    ));
    stops_with_all(&s, "a", &[daemon, main]);
    // One that ends by itself leaves nobody, either.
    s.until("b", "stopped");
    assert!(!runs(&left));
    assert!(s.log("b").contains("processes it started are left"), "{}", s.log("b"));
}

/// A control group of the test's own, as the supervisor of a box has one. None where this computer has
/// no writable ones, as for most people who are not root.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let base = Path::new(line.split(' ').nth(4)?).join(format!("abt{}", std::process::id()));
        fs::create_dir(&base).ok()?;
        fs::create_dir(base.join("supervisor")).unwrap();
        base.join("supervisor/cgroup.kill").exists().then_some(Self(base))
    }

    /// A program that runs the supervisor in the group.
    fn program(&self, dir: &Path) -> PathBuf {
        let path = dir.join("in-group");
        let procs = self.0.join("supervisor/cgroup.procs");
        let ctl = env!("CARGO_BIN_EXE_agentbox-ctl");
        let text = format!("#!/bin/sh\necho 0 > {}\nexec {ctl} \"$@\"\n", procs.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn units(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with("unit-")).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::write(entry.path().join("cgroup.kill"), "1");
            for _ in 0..100 {
                if !entry.path().is_dir() || fs::remove_dir(entry.path()).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn nobody_leaves_a_units_control_group() {
    let Some(group) = Group::new() else {
        assert!(!nix::unistd::getuid().is_root(), "root can make no control group here");
        return;
    };
    let (daemon, main, deaf, left) = (pause(4), pause(5), pause(6), pause(7));
    let dir = tempfile::tempdir().unwrap();
    // Without its name in the environment, in a session of its own, an orphan: nothing else tells.
    let yaml = format!(
        "services:\n  a: {{command: '(env -i setsid {daemon} &) ; exec {main}'}}\n\
         \x20 b: {{command: '(env -i setsid sh -c \"trap : TERM; while :; do {deaf}; done\" &) ; \
         exec sleep 1000', stop_grace_ms: 300}}\n\
         \x20 c: {{command: '(env -i setsid {left} &) ; exec sleep 1000'}}\n"
    );
    fs::write(dir.path().join("agentbox.yaml"), yaml).unwrap();
    let program = group.program(dir.path());
    let mut s = Supervisor::by(&program, dir);
    stops_with_all(&s, "a", &[daemon, main]);
    stops_with_all(&s, "b", &[deaf]);
    assert!(s.log("b").contains("it is killed"), "{}", s.log("b"));
    assert_eq!(group.units(), ["unit-c"]);
    // The next supervisor ends what one that was killed has left.
    s.eventually("it runs", || runs(&left));
    s.signal("-KILL");
    s.daemon.wait().unwrap();
    assert!(runs(&left));
    let pids = || {
        let procs = fs::read_to_string(group.0.join("unit-c/cgroup.procs")).unwrap_or_default();
        procs.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = pids();
    s.again(&program);
    s.until("c", "running");
    s.eventually("others run", || !pids().is_empty() && pids().iter().all(|p| !before.contains(p)));
    assert_eq!(s.stop(), Some(0));
    assert!(!runs(&left) && group.units().is_empty());
}

/// A line is a thousand letters; the newest are kept, the rest costs neither disk nor memory.
#[test]
fn a_gigabyte_of_log_is_kept_short() {
    let s = Supervisor::new(
        "tasks:\n  loud: {command: \"head -c 1G /dev/zero | tr '\\\\0' x | fold -w 1000; echo; echo last\"}\n",
    );
    s.eventually_within(Duration::from_secs(300), "all is said", || s.state("loud") == "done");
    assert!(s.log("loud").contains("\tstdout\tlast\n"));
    let log = fs::read_dir(s.dir.path().join("log")).unwrap().flatten();
    let size: u64 = log.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(size < 45 << 20, "{size} bytes of log");
    let status = fs::read_to_string(format!("/proc/{}/status", s.daemon.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 40 << 10, "{peak} kB of memory");
    let tail = s.ctl(&["logs", "loud", "-n", "3"]);
    assert_eq!(String::from_utf8(tail.stdout).unwrap().lines().count(), 3);
}
