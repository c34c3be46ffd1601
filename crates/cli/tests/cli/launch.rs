//! A command that needs a host starts one, and says so; a host that cannot start says why.

use crate::support::{Home, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::BufRead;

/// A home whose host was started by a command, and goes with it.
pub struct Hosted(pub Home);

impl Drop for Hosted {
    fn drop(&mut self) {
        let lock = self.0.path().join("run/host.lock");
        let pid = std::fs::read_to_string(lock).ok().and_then(|pid| pid.trim().parse().ok());
        let Some(pid) = pid.map(Pid::from_raw) else { return };
        let _ = kill(pid, Signal::SIGTERM);
        eventually("the host is gone", || kill(pid, None).is_err() || is_zombie(pid));
    }
}

/// Nobody may be there to collect it.
fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn list_starts_a_host_once() {
    let Hosted(home) = &Hosted(Home::new());
    let output = home.run(&["list"]).exits(0).prints("").says("No boxes yet");
    assert!(
        output.stderr.starts_with("Starting the AgentBox host in the background…\n"),
        "{output:?}"
    );
    let again = home.run(&["list"]).exits(0);
    assert!(!again.stderr.contains("Starting"), "{again:?}");
    let status = home.run(&["status", "--json"]).exits(0).json();
    assert_eq!(status["status"]["kind"], "headless");
    home.run(&["serve"]).exits(1).says("already").says("hint:");
}

#[test]
fn two_commands_at_once_find_the_same_host() {
    let Hosted(home) = &Hosted(Home::new());
    let children: Vec<_> = (0..4).map(|_| home.command(&["list"]).spawn().unwrap()).collect();
    for child in children {
        crate::support::Ended::of(child).exits(0);
    }
}

#[test]
fn a_host_that_cannot_start_shows_its_log() {
    let home = Home::new();
    std::fs::write(home.path().join("config.yaml"), "approvals: {timeout: 5}\n").unwrap();
    home.run(&["list"]).exits(1).says("no AgentBox host could be started").says("timeoutSeconds");
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    home.run(&["--home", file.to_str().unwrap(), "list"])
        .exits(1)
        .says("hint: choose another folder");
}

#[test]
fn serve_greets_and_ends_with_sigterm() {
    let home = Home::new();
    let mut child = home.command(&["serve"]).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let greeting = lines.find(|l| l.as_ref().unwrap().contains("host is ready")).unwrap().unwrap();
    assert!(greeting.contains(home.path().to_str().unwrap()), "{greeting}");
    assert!(greeting.contains("agentbox approvals --answer"), "{greeting}");
    home.run(&["status"]).exits(0);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
}
