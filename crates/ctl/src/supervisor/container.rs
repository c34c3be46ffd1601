//! A service that is a container of the box's own engine.
//!
//! The supervisor runs `agentbox-ctl container-unit` for it, which finds or makes the container, shows
//! what it says from this start on, ends as it ends, and stops it when asked to. So to the supervisor
//! it is a process like any other. A container is kept when it stops: its data may be in it. One that
//! was made from other settings than the file has now is used as it is, and that is told.
//!
//! Values of variables are in no argument: the engine's client takes them from its own environment.

use super::unit::Container;
use crate::error::{Error, Result};
use protocol::supervisor::{ENV_SUPERVISOR, ENV_UNIT};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How the supervisor hands over what to run.
pub const ENV_CONTAINER: &str = "AGENTBOX_CONTAINER";
const DOCKER: &str = "docker";
const SPEC_LABEL: &str = "agentbox.spec";
/// The last lines of a container that has ended.
const LAST_LINES: Duration = Duration::from_secs(2);
/// The engine, or the container, could not be used.
const UNUSABLE: i32 = 125;

impl Container {
    /// What the container is made from.
    pub fn spec(&self) -> String {
        let text =
            serde_json::to_vec(&Self { grace_seconds: 0, ..self.clone() }).unwrap_or_default();
        Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn create(&self, service: &str) -> Vec<String> {
        let mut words = vec!["create".to_owned(), "--name".into(), self.called.clone()];
        words.extend(["--label".into(), format!("agentbox.service={service}")]);
        words.extend(["--label".into(), format!("{SPEC_LABEL}={}", self.spec())]);
        for (host, container) in &self.ports {
            let host = host.map(|port| port.to_string()).unwrap_or_default();
            words.extend(["-p".into(), format!("127.0.0.1:{host}:{container}")]);
        }
        for name in self.env.keys() {
            words.extend(["-e".into(), name.clone()]);
        }
        words.push(self.name.clone());
        words.extend(self.args.iter().cloned());
        words
    }
}

/// There when a service's container was made from other settings.
pub fn drift_file(socket: &Path, service: &str) -> PathBuf {
    socket.with_file_name(format!("drift-{service}"))
}

/// `agentbox-ctl container-unit`.
pub fn run() -> Result<i32> {
    let given = std::env::var(ENV_CONTAINER).unwrap_or_default();
    let container: Container = serde_json::from_str(&given)
        .map_err(|_| Error::Usage("container-unit is for the supervisor.".into()))?;
    let service = std::env::var(ENV_UNIT).unwrap_or_default();
    let socket = std::env::var_os(ENV_SUPERVISOR).map(PathBuf::from).unwrap_or_default();
    // From here on being asked to end means stopping the container.
    let mut asked = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])
        .map_err(|e| Error::Failed(format!("listen for signals: {e}")))?;
    let drift = drift_file(&socket, &service);
    let _ = fs::remove_file(&drift);
    let mut running = false;
    match label(&container) {
        Found::None => {
            let mut make = docker(&container.create(&service));
            if !call(make.envs(&container.env).stdout(Stdio::null()))? {
                return Ok(UNUSABLE);
            }
        }
        Found::Label { spec, runs } if spec == container.spec() => running = runs,
        Found::Label { runs, .. } => {
            running = runs;
            let _ = fs::write(&drift, "");
            crate::complain(&format!(
                "container {} was made from other settings and is used as it is; \
                 'agentbox-ctl recreate {service} --yes' makes it anew, without its data",
                container.called
            ));
        }
        Found::Failed(why) => {
            crate::complain(&format!("the box's container engine cannot be used: {why}"));
            crate::complain("a box has one when it is made with --docker or 'box.docker: on'");
            return Ok(UNUSABLE);
        }
    }
    let name = container.called.clone();
    if asked.pending().next().is_some() {
        return Ok(protocol::exit::OK);
    }
    // Its first words may be older than the time the engine notes as its start.
    let before = super::time::now();
    let mut start = docker(&["start", &name]);
    if !call(start.stdout(Stdio::null()))? {
        return Ok(UNUSABLE);
    }
    let since = if running {
        said(&mut docker(&["container", "inspect", "-f", "{{.State.StartedAt}}", &name]))
    } else {
        before
    };
    let mut logs = docker(&["logs", "--follow", "--since", since.trim(), &name])
        .spawn()
        .map_err(|e| Error::Program(DOCKER, e))?;
    let (grace, stopped) = (container.grace_seconds.to_string(), name.clone());
    std::thread::spawn(move || {
        for _ in asked.forever() {
            let _ = docker(&["stop", "--time", &grace, &stopped]).stdout(Stdio::null()).status();
        }
    });
    let code = said(&mut docker(&["wait", &name])).trim().parse().unwrap_or(UNUSABLE);
    let end = Instant::now() + LAST_LINES;
    while Instant::now() < end && matches!(logs.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = logs.kill();
    let _ = logs.wait();
    Ok(code)
}

enum Found {
    None,
    Label { spec: String, runs: bool },
    Failed(String),
}

fn label(container: &Container) -> Found {
    let format = format!("{{{{.State.Running}}}} {{{{index .Config.Labels \"{SPEC_LABEL}\"}}}}");
    let words = ["container", "inspect", "-f", &format, &container.called];
    let output = match docker(&words).stderr(Stdio::piped()).stdout(Stdio::piped()).output() {
        Ok(output) => output,
        Err(e) => return Found::Failed(e.to_string()),
    };
    found(&output)
}

fn found(output: &Output) -> Found {
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let (runs, spec) = text.trim().split_once(' ').unwrap_or_default();
        return Found::Label { spec: spec.to_owned(), runs: runs == "true" };
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let absent = why.to_lowercase().contains("no such container");
    if absent { Found::None } else { Found::Failed(why) }
}

/// In a group of its own and without the unit's name: it is ours to end, not the supervisor's.
fn docker<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Command {
    let mut command = Command::new(DOCKER);
    command.args(words).stdin(Stdio::null()).process_group(0);
    for name in [ENV_UNIT, ENV_SUPERVISOR, ENV_CONTAINER] {
        command.env_remove(name);
    }
    command
}

fn call(command: &mut Command) -> Result<bool> {
    command.status().map(|status| status.success()).map_err(|e| Error::Program(DOCKER, e))
}

fn said(command: &mut Command) -> String {
    let output = command.stdout(Stdio::piped()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn container() -> Container {
        Container {
            name: "redis:7".into(),
            ports: vec![(Some(5437), 5432), (None, 80)],
            env: BTreeMap::from([("PASSWORD".into(), "secret\nline".into())]),
            args: vec!["--save".into(), "60 1".into()],
            called: "db".into(),
            grace_seconds: 5,
        }
    }

    #[test]
    fn yaml_13_36_words_stay_words_and_values_stay_out_of_arguments() {
        let words = container().create("db");
        assert!(words.ends_with(&["redis:7".into(), "--save".into(), "60 1".into()]), "{words:?}");
        assert!(words.windows(2).any(|w| w == ["-e", "PASSWORD"]), "{words:?}");
        assert!(!words.concat().contains("secret"), "{words:?}");
        assert!(words.contains(&"127.0.0.1:5437:5432".into()), "{words:?}");
        assert!(words.contains(&"127.0.0.1::80".into()), "{words:?}");
    }

    #[test]
    fn other_settings_are_another_container() {
        let (one, mut two) = (container(), container());
        assert_eq!(one.spec(), two.spec());
        two.grace_seconds = 9;
        assert_eq!(one.spec(), two.spec(), "how it is stopped is not what it is made from");
        two.env.insert("PASSWORD".into(), "other".into());
        assert_ne!(one.spec(), two.spec());
    }
}
