//! From the project's file to units.

use super::unit::{Argv, Container, Kind, Once, Pace, Probe, Ready, Service, Task, Unit};
use project::{Command, FILE_NAME, Project, Run, RunOnce, UnitName};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read; more is refused by the reader.
const MAX: u64 = 2 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct Loaded {
    pub units: Vec<Unit>,
    pub warnings: Vec<String>,
}

/// No file is no units. A mistake is an error that names all mistakes, line by line.
pub fn load(path: &Path, workspace: &Path) -> Result<Loaded, String> {
    let Some(text) = read(path)? else { return Ok(Loaded::default()) };
    let parsed = Project::parse_in_box(&text);
    let lines =
        |all: &[project::Problem]| all.iter().map(|p| p.line(FILE_NAME)).collect::<Vec<_>>();
    let Some(project) = parsed.project else { return Err(lines(&parsed.errors).join("\n")) };
    let services = project.services.iter().map(|s| service(s, workspace));
    let units = services.chain(project.tasks.iter().map(|t| task(t, workspace))).collect();
    Ok(Loaded { units, warnings: lines(&parsed.warnings) })
}

/// None when there is none.
pub fn read(path: &Path) -> Result<Option<String>, String> {
    let cannot = |e: io::Error| format!("cannot read {}: {e}", path.display());
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(cannot)?,
    };
    let mut text = String::new();
    file.take(MAX).read_to_string(&mut text).map_err(cannot)?;
    Ok(Some(text))
}

fn service(of: &project::Service, workspace: &Path) -> Unit {
    let command = match &of.run {
        Run::Command(command) => argv(command),
        Run::Image(image) => Argv::Container(Container {
            name: image.name.clone(),
            ports: image.ports.iter().map(|port| (port.host, port.container)).collect(),
            env: image.env.clone(),
            args: image.args.clone(),
            called: image.container_name.clone(),
            grace_seconds: of.stop_grace.as_secs() + u64::from(of.stop_grace.subsec_millis() > 0),
        }),
    };
    let ready = of.ready_when.as_ref().map(|ready| Ready {
        probe: probe(&ready.probe),
        timeout: ready.timeout,
        on_timeout: ready.on_timeout,
    });
    let kind = Kind::Service(Box::new(Service {
        autostart: of.autostart,
        restart: of.restart,
        backoff: of.backoff,
        ready,
        expose: of.expose.map(|expose| expose.port),
        grace: of.stop_grace,
    }));
    unit(&of.name, command, of.cwd.as_deref(), of.env.as_ref(), &of.needs, workspace, kind)
}

fn task(of: &project::Task, workspace: &Path) -> Unit {
    let once = match &of.run_once {
        None => Once::Never,
        Some(RunOnce::Marker) => Once::Marker,
        Some(RunOnce::Inputs(globs)) => Once::Inputs(globs.clone()),
        Some(RunOnce::Check(check)) => Once::Check(check.clone()),
    };
    let kind = Kind::Task(Task { once, timeout: of.timeout });
    unit(
        &of.name,
        argv(&of.command),
        of.cwd.as_deref(),
        of.env.as_ref(),
        &of.needs,
        workspace,
        kind,
    )
}

fn unit(
    name: &UnitName,
    command: Argv,
    cwd: Option<&str>,
    env: Option<&project::Env>,
    needs: &[UnitName],
    workspace: &Path,
    kind: Kind,
) -> Unit {
    let mut needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
    needs.sort();
    needs.dedup();
    // A plain path stays as it is written: marks are made from it.
    let cwd = match cwd {
        None | Some("." | "./") => workspace.to_owned(),
        Some(path) => workspace.join(path.strip_prefix("./").unwrap_or(path)),
    };
    Unit { name: name.to_string(), command, cwd: plain(cwd), env: env.cloned(), needs, kind }
}

fn argv(command: &Command) -> Argv {
    match command {
        Command::Shell(text) => Argv::Shell(text.clone()),
        Command::Argv(words) => Argv::Words(words.clone()),
    }
}

/// Without a slash at its end.
fn plain(path: PathBuf) -> PathBuf {
    path.components().collect()
}

fn probe(of: &project::Probe) -> Probe {
    match of {
        project::Probe::Port { port, host, interval, initial_delay } => Probe::Port {
            host: host.clone(),
            port: *port,
            pace: Pace { interval: *interval, delay: *initial_delay },
        },
        project::Probe::LogMatch(pattern) => Probe::Log { pattern: pattern.clone() },
        project::Probe::Http { url, expect_status, interval, initial_delay } => Probe::Http {
            url: url.to_string(),
            expect: *expect_status,
            pace: Pace { interval: *interval, delay: *initial_delay },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    fn load_text(text: &str) -> Result<Loaded, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("agentbox.yaml"), text).unwrap();
        load(&dir.path().join("agentbox.yaml"), Path::new("/workspace"))
    }

    #[test]
    fn yaml_13_01_no_file_is_no_units() {
        assert!(load(Path::new("/nonexistent"), Path::new("/workspace")).unwrap().units.is_empty());
        assert!(load_text("").unwrap().units.is_empty());
    }

    #[test]
    fn all_of_a_unit_is_taken_over() {
        let loaded = load_text(
            "tasks:\n  t: {command: x, cwd: ./a/, env: {V: 3.10}, run_once: {inputs: [a]}, timeout_ms: 5}\n\
             services:\n  s: {command: [a, b], needs: [t, t], autostart: false, restart: always, \
             backoff: {max_attempts: 2}, ready_when: {port: 80, timeout_ms: 7, on_timeout: mark_unhealthy}, \
             expose: {port: 80}, stop_grace_ms: 9}\n",
        )
        .unwrap();
        let find = |name: &str| loaded.units.iter().find(|unit| unit.name == name).unwrap();
        let task = find("t");
        assert_eq!(task.cwd, Path::new("/workspace/a"));
        assert_eq!(task.env.as_ref().unwrap()["V"], "3.10");
        let wanted =
            Task { once: Once::Inputs(vec!["a".into()]), timeout: Some(Duration::from_millis(5)) };
        assert_eq!(task.task(), Some(&wanted));
        let unit = find("s");
        assert_eq!(
            (unit.needs.as_slice(), unit.cwd.as_path()),
            (&["t".to_owned()][..], Path::new("/workspace"))
        );
        let service = unit.service().unwrap();
        assert_eq!((service.autostart, service.restart), (false, project::Restart::Always));
        assert_eq!((service.backoff.max_attempts, service.expose), (Some(2), Some(80)));
        assert_eq!(service.ready.as_ref().unwrap().on_timeout, project::OnTimeout::MarkUnhealthy);
        assert_eq!(service.grace, Duration::from_millis(9));
    }

    #[test]
    fn mistakes_are_told_with_their_places() {
        let why = load_text("services:\n  web: {}\n  api: {command: [a, 4]}\n").unwrap_err();
        assert!(why.contains("agentbox.yaml:2:") && why.contains("Y011"), "{why}");
        assert!(why.contains("agentbox.yaml:3:") && why.contains("Y013"), "{why}");
    }
}
