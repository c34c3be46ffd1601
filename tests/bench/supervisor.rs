//! The supervisor of a box, run by itself: what it costs to have it start, watch and write down, against
//! a shell that does the least of it.

use crate::measure::{measured, memory, row, timed};
use agentbox_e2e::wait::eventually;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TASKS: usize = 100;
/// Megabytes of log, in lines of a hundred letters.
const LOG: u32 = 200;
const SOON: Duration = Duration::from_secs(120);

pub fn run() {
    chain();
    side_by_side();
    log();
    idle();
}

struct Supervisor {
    dir: tempfile::TempDir,
    daemon: Child,
}

impl Supervisor {
    fn start(yaml: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("agentbox.yaml"), yaml).unwrap();
        let mut command = Command::new(ctl());
        command.arg("daemon").arg("--socket").arg(at("run/ctl.sock"));
        command.arg("--log-dir").arg(at("log")).arg("--state-dir").arg(at("lib"));
        command.arg("--workspace").arg(dir.path()).stdin(Stdio::null());
        // As PID 1 of a box starts it.
        command.env("MALLOC_ARENA_MAX", "1").env("AGENTBOX_WEB_PROXY_PORT", "0");
        let daemon = command.spawn().unwrap();
        let one = Self { dir, daemon };
        eventually(SOON, "the supervisor", || UnixStream::connect(one.socket()).ok());
        one
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("run/ctl.sock")
    }

    /// Until everything is done and up.
    fn ready(&self) {
        let mut ctl = Command::new(ctl());
        ctl.args(["wait-ready", "--timeout", "600000", "--socket"]).arg(self.socket());
        assert!(ctl.stdout(Stdio::null()).status().unwrap().success());
    }

    /// From its own file to the end of everything in it.
    fn runs(&self, yaml: &str) -> Duration {
        fs::write(self.dir.path().join("agentbox.yaml"), yaml).unwrap();
        timed(|| {
            let mut reload = Command::new(ctl());
            reload.args(["reload", "--socket"]).arg(self.socket()).stdout(Stdio::null());
            assert!(reload.status().unwrap().success());
            self.ready();
        })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let pid = self.daemon.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.daemon.wait();
    }
}

fn ctl() -> PathBuf {
    let bin = std::env::var_os("AGENTBOX_BIN").expect("AGENTBOX_BIN");
    Path::new(&bin).join("box/agentbox-ctl")
}

/// Tasks that do nothing, each with a name nobody had before.
fn tasks(run: usize, needs: impl Fn(usize) -> String) -> String {
    let task = |n: usize| format!("  t{run}-{n}: {{command: 'true'{}}}\n", needs(n));
    format!("tasks:\n{}", (0..TASKS).map(task).collect::<String>())
}

fn shell(script: &str) -> Duration {
    timed(|| assert!(Command::new("bash").args(["-c", script]).status().unwrap().success()))
}

fn chain() {
    let s = Supervisor::start("");
    let (mut ours, mut floor) = (vec![], vec![]);
    for run in 0..5 {
        let needs = |n: usize| match n.checked_sub(1) {
            Some(before) => format!(", needs: [t{run}-{before}]"),
            None => String::new(),
        };
        ours.push(s.runs(&tasks(run, needs)));
        floor.push(shell(&format!("for n in {{1..{TASKS}}}; do bash -c true; done")));
    }
    row("100 tasks in a chain vs. a shell's loop", ours, floor, "-");
}

fn side_by_side() {
    let s = Supervisor::start("");
    let (mut ours, mut floor) = (vec![], vec![]);
    for run in 0..5 {
        ours.push(s.runs(&tasks(run, |_| String::new())));
        floor.push(shell(&format!("for n in {{1..{TASKS}}}; do bash -c true & done; wait")));
    }
    row("100 tasks side by side vs. a shell's", ours, floor, "-");
}

/// What a task says, in its log; `cat` writes the same bytes to a file.
fn log() {
    let s = Supervisor::start("");
    let said = s.dir.path().join("said");
    fs::write(&said, format!("{}\n", "x".repeat(99)).repeat(((LOG as usize) << 20) / 100)).unwrap();
    let (mut ours, mut floor) = (vec![], vec![]);
    for run in 0..3 {
        ours.push(s.runs(&format!("tasks:\n  t{run}: {{command: [cat, said]}}\n")));
        let copy = s.dir.path().join("copy");
        floor.push(shell(&format!("cat '{}' > '{}'", said.display(), copy.display())));
    }
    let rate = |times: &[Duration]| {
        let best = times.iter().min().unwrap().as_secs_f64();
        format!("{:.0} MB/s", f64::from(LOG) / best)
    };
    let (fast, faster) = (rate(&ours), rate(&floor));
    row("200 MB of a task's log vs. cat to a file", ours, floor, "-");
    println!("{:<46} {fast:>10} {faster:>10}", "  at best");
}

fn idle() {
    let services: String = (0..10).map(|n| format!("  s{n}: {{command: sleep 1000}}\n")).collect();
    let s = Supervisor::start(&format!("services:\n{services}"));
    s.ready();
    memory("supervisor of ten services, idle", &measured(s.daemon.id().cast_signed()), "6 MB");
}
