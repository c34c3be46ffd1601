//! What the file says, with defaults filled in. Everything stands in the order of the file.

use crate::{Pattern, UnitName};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// Environment variables; the values are the file's own letters, so `3.10` stays `3.10`.
pub type Env = BTreeMap<String, String>;

/// A whole `agentbox.yaml` without mistakes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    pub services: Vec<Service>,
    pub tasks: Vec<Task>,
    pub replacements: Vec<RuleSet>,
    /// What is copied from this computer; empty when read in a box.
    pub carry: Vec<CarryItem>,
    /// The leaves of `defaults:`. They can only tighten what the person's own settings say.
    pub defaults: Vec<Setting>,
    /// `ide.auto_open_terminals`.
    pub auto_open_terminals: Option<bool>,
}

impl Project {
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name.as_str() == name)
    }

    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name.as_str() == name)
    }

    /// The one service people see at the box's web address.
    pub fn exposed(&self) -> Option<(&Service, Expose)> {
        self.services.iter().find_map(|service| Some((service, service.expose?)))
    }

    pub fn rule_set(&self, name: &str) -> Option<&RuleSet> {
        self.replacements.iter().find(|set| set.name == name)
    }
}

/// A program that is to run as long as the box does.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    pub name: UnitName,
    pub run: Run,
    /// As written; a relative one is meant from the workspace, none is the workspace.
    pub cwd: Option<String>,
    pub env: Option<Env>,
    pub autostart: bool,
    pub restart: Restart,
    pub backoff: Backoff,
    /// Each once.
    pub needs: Vec<UnitName>,
    pub ready_when: Option<ReadyWhen>,
    pub expose: Option<Expose>,
    pub stop_grace: Duration,
    /// `ide.tail`: whether an editor shows its log.
    pub tail: Option<bool>,
}

/// A program that runs to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub name: UnitName,
    pub command: Command,
    pub cwd: Option<String>,
    pub env: Option<Env>,
    pub needs: Vec<UnitName>,
    pub run_once: Option<RunOnce>,
    pub timeout: Option<Duration>,
}

/// What a service is.
#[derive(Debug, Clone, PartialEq)]
pub enum Run {
    Command(Command),
    /// A container in the box's own engine.
    Image(Image),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// For `bash -c`.
    Shell(String),
    /// Never empty.
    Argv(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub name: String,
    pub ports: Vec<PortMapping>,
    pub env: Env,
    /// One word each; a string in the file was split as a shell would.
    pub args: Vec<String>,
    pub container_name: String,
}

/// `5437:5432`, or `5432` with no port to reach it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortMapping {
    pub host: Option<u16>,
    pub container: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    Always,
    OnFailure,
    Never,
}

/// How long to wait before a service is started again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    pub initial: Duration,
    pub max: Duration,
    /// At least 1.
    pub factor: f64,
    /// None is no limit.
    pub max_attempts: Option<u32>,
    /// Up so long, and the waiting begins at `initial` again.
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(500),
            max: Duration::from_secs(30),
            factor: 2.0,
            max_attempts: None,
            reset_after: Duration::from_secs(60),
        }
    }
}

/// When a service counts as up.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyWhen {
    pub probe: Probe,
    /// From the start of the process, the initial delay included.
    pub timeout: Duration,
    pub on_timeout: OnTimeout,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// Somebody listens. With no host, both loopback addresses are tried.
    Port { port: u16, host: Option<String>, interval: Duration, initial_delay: Duration },
    /// It wrote such a line.
    LogMatch(Pattern),
    /// It answers with this status, or with any 2xx.
    Http { url: Url, expect_status: Option<u16>, interval: Duration, initial_delay: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    Kill,
    MarkUnhealthy,
}

/// The service at the box's web address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expose {
    /// Where it listens.
    pub port: u16,
}

/// When a task need not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOnce {
    /// It ran before as it is now.
    Marker,
    /// And these files have not changed; globs from its folder. Never empty.
    Inputs(Vec<String>),
    /// This command says so by ending well.
    Check(String),
}

/// Named replacements.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSet {
    pub name: String,
    pub rules: Vec<Rule>,
    /// Keys this version does not know; only when read in a box, where the set is then of no use.
    pub unknown: Vec<String>,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub from: Replaced,
    pub to: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Replaced {
    /// Every occurrence of this text.
    Text(String),
    /// Every match, or only the first.
    Matches { pattern: Pattern, global: bool },
}

/// One file or folder from this computer; see [`crate::carry`].
#[derive(Debug, Clone, PartialEq)]
pub struct CarryItem {
    pub place: Place,
    /// As written: from `/`, `~/` or `./`.
    pub src: String,
    /// As written, or the same as `src`: from `/` or `~/`.
    pub dest: String,
    pub mode: Option<u32>,
    pub user: Option<u32>,
    pub exclude: Vec<String>,
    pub default_excludes: bool,
    pub optional: bool,
    pub replace_envs: bool,
    pub replace: Vec<Rule>,
    /// Names of replacement sets, before `replace`.
    pub rules: Vec<String>,
}

/// One leaf of `defaults:`, such as `box.provider`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub place: Place,
    pub key: String,
    /// Its letters in the file.
    pub value: String,
}

pub use yaml::Place;
