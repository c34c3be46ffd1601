//! A task or a service, as it is to be run.
//!
//! Two units are equal when a reload may leave the running one alone.

pub use project::{Backoff, OnTimeout, Restart};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    pub name: String,
    pub command: Argv,
    /// Absolute.
    pub cwd: PathBuf,
    pub env: Option<BTreeMap<String, String>>,
    /// Names, sorted, each once.
    pub needs: Vec<String>,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Task(Task),
    Service(Box<Service>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argv {
    /// For `bash -c`.
    Shell(String),
    Words(Vec<String>),
    Container(Container),
}

/// A container of the box's own engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The image.
    pub name: String,
    /// Where it is reached on the box's loopback, and its own.
    pub ports: Vec<(Option<u16>, u16)>,
    pub env: BTreeMap<String, String>,
    pub args: Vec<String>,
    /// Its own name.
    pub called: String,
    pub grace_seconds: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    pub once: Once,
    pub timeout: Option<Duration>,
}

/// When a task need not run again.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Once {
    #[default]
    Never,
    /// Its marker is there, made from the same command.
    Marker,
    /// And from the same content of these files.
    Inputs(Vec<String>),
    /// This command succeeds.
    Check(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    pub autostart: bool,
    pub restart: Restart,
    pub backoff: Backoff,
    pub ready: Option<Ready>,
    /// Where it listens for the box's web address.
    pub expose: Option<u16>,
    pub grace: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    pub probe: Probe,
    /// From its start on.
    pub timeout: Duration,
    pub on_timeout: OnTimeout,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    Port { host: Option<String>, port: u16, pace: Pace },
    Http { url: String, expect: Option<u16>, pace: Pace },
    Log { pattern: project::Pattern },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub interval: Duration,
    pub delay: Duration,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            autostart: true,
            restart: Restart::OnFailure,
            backoff: Backoff::default(),
            ready: None,
            expose: None,
            grace: Duration::from_secs(5),
        }
    }
}

impl Unit {
    pub fn service(&self) -> Option<&Service> {
        match &self.kind {
            Kind::Service(service) => Some(service),
            Kind::Task(_) => None,
        }
    }

    pub fn task(&self) -> Option<&Task> {
        match &self.kind {
            Kind::Task(task) => Some(task),
            Kind::Service(_) => None,
        }
    }

    /// How long it may take to end.
    pub fn grace(&self) -> Duration {
        let grace = self.service().map_or(Duration::from_secs(5), |service| service.grace);
        // The engine is the one that insists.
        if self.is_container() { grace + Duration::from_secs(5) } else { grace }
    }

    pub fn is_container(&self) -> bool {
        matches!(self.command, Argv::Container(_))
    }

    /// The port it is known by.
    pub fn port(&self) -> Option<u16> {
        let service = self.service()?;
        match service.ready.as_ref().map(|ready| &ready.probe) {
            Some(Probe::Port { port, .. }) => Some(*port),
            _ => service.expose,
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match &self.command {
            Argv::Shell(text) => text.clone(),
            Argv::Words(words) => protocol::text::command_line(words),
            Argv::Container(container) => format!("docker:{}", container.name),
        }
    }
}
