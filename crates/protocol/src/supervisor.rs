//! What the supervisor in a box says about the tasks and services of `agentbox.yaml`.
//!
//! In the box these are lines of JSON on `/run/agentbox/ctl.sock`; to the host the same words come
//! as a `box-status` event, or from `agentbox-ctl … --json`. There they are a stranger's words:
//! bounded, and made visible before anybody sees them.

use serde::{Deserialize, Serialize};

/// Where the supervisor listens.
pub const SOCKET: &str = "/run/agentbox/ctl.sock";
/// The box user's own folder on tmpfs: the socket, its lock, and where state is kept.
pub const RUN: &str = "/run/agentbox/supervisor";
pub const STATE: &str = "/var/lib/agentbox";
/// Says which folder state is kept in.
pub const STATE_DIR: &str = "/run/agentbox/state-dir";
/// In the environment of everything a unit starts: the unit's name.
pub const ENV_UNIT: &str = "AGENTBOX_UNIT";
/// And the socket of the supervisor it belongs to.
pub const ENV_SUPERVISOR: &str = "AGENTBOX_SUPERVISOR";
pub const PROTO: u32 = 1;
/// The most of an answer anybody reads.
pub const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// What a unit is doing. Tasks and services share the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum UnitState {
    Pending,
    /// For another unit.
    Waiting,
    Running,
    /// A task's good end.
    Done,
    Failed,
    /// A task that was not run because one it needs failed.
    Skipped,
    Starting,
    Ready,
    /// It runs and was not ready in time.
    Unhealthy,
    /// It ended and is started again soon.
    Backoff,
    Crashed,
    Stopped,
    /// A word of a newer supervisor.
    #[serde(other)]
    Unknown,
}

impl UnitState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unhealthy => "unhealthy",
            Self::Backoff => "backoff",
            Self::Crashed => "crashed",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

/// Times are ISO-8601, UTC, with milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    pub name: String,
    pub state: UnitState,
    pub pid: Option<i32>,
    /// Over its whole life.
    pub restarts: u32,
    /// -1 when it could not be started.
    pub last_exit_code: Option<i32>,
    #[serde(default)]
    pub last_signal: Option<i32>,
    pub started_at: Option<String>,
    pub ready_at: Option<String>,
    pub next_retry_at: Option<String>,
    pub blocked_on: Vec<String>,
    #[serde(default)]
    pub failed_deps: Vec<String>,
    #[serde(default)]
    pub consecutive_failures: u32,
    /// Its container was made from other settings than it has now.
    #[serde(default)]
    pub drift: bool,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    pub name: String,
    pub state: UnitState,
    pub pid: Option<i32>,
    pub last_exit_code: Option<i32>,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub command: String,
    #[serde(default)]
    pub blocked_on: Vec<String>,
    #[serde(default)]
    pub failed_deps: Vec<String>,
    /// Why it is done without having run.
    #[serde(default)]
    pub skip_reason: Option<String>,
    /// Why the next start of the box will run it again.
    #[serde(default)]
    pub marker_error: Option<String>,
}

/// The answer to `status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub services: Vec<ServiceStatus>,
    pub tasks: Vec<TaskStatus>,
    pub ports: Vec<Port>,
    pub web_proxy: Option<WebProxy>,
    /// Why no units are there, or why the file is not the one that runs.
    pub config_error: Option<String>,
    pub warnings: Vec<String>,
}

/// A port somebody in the box listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Port {
    pub port: u16,
    pub service: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebProxy {
    pub listen: u16,
    pub target: u16,
    /// `listening` or `retrying`.
    pub state: String,
    pub error: Option<String>,
}

/// The answer to `wait-ready`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WaitReady {
    pub ready: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timed_out: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

/// One line of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// The unit; tasks too.
    pub service: String,
    pub ts: String,
    pub stream: Stream,
    pub line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// One request on the socket: one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Ask {
    Ping,
    Hello,
    Status,
    TaskStatus,
    WaitReady {
        #[serde(default)]
        timeout_ms: Option<u64>,
        #[serde(default)]
        units: Option<Vec<String>>,
        /// Go on waiting when one of them can no longer become ready.
        #[serde(default)]
        patient: bool,
    },
    RunTask {
        name: String,
        #[serde(default)]
        force: bool,
        /// Answer when it has ended.
        #[serde(default)]
        wait: bool,
    },
    Logs {
        service: String,
        #[serde(default)]
        tail: Option<usize>,
        #[serde(default)]
        follow: bool,
    },
    Start {
        service: String,
        /// Whatever it needs.
        #[serde(default)]
        now: bool,
    },
    Stop {
        service: String,
    },
    Restart {
        service: String,
    },
    Reload,
    Subscribe,
}

/// `{"ok":true,"data":…}` or `{"ok":false,"error":…,"code":…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Codes of failed answers.
pub mod code {
    pub const UNKNOWN_UNIT: &str = "unknown_unit";
    pub const BAD_REQUEST: &str = "bad_request";
    pub const INVALID_CONFIG: &str = "invalid_config";
    pub const STOPPING: &str = "stopping";
}

/// The payload of a `box-status` event, and what the host keeps of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxStatus {
    pub schema: u32,
    pub box_id: String,
    pub timestamp: String,
    pub services: Vec<PushedService>,
    pub tasks: Vec<PushedTask>,
    pub ports: Vec<Port>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct PushedService {
    pub name: String,
    pub state: UnitState,
    #[serde(default)]
    pub port: Option<u16>,
    /// `running` is not up yet.
    #[serde(default)]
    pub probed: bool,
    #[serde(default)]
    pub expose: Option<Expose>,
    #[serde(default)]
    pub blocked_on: Vec<String>,
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub restarts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Expose {
    pub port: u16,
    #[serde(rename = "as")]
    pub as_port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct PushedTask {
    pub name: String,
    pub state: UnitState,
    #[serde(default)]
    pub blocked_on: Vec<String>,
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub last_exit_code: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_form() {
        let read = |text: &str| serde_json::from_str::<Ask>(text).unwrap();
        assert_eq!(read(r#"{"op":"ping"}"#), Ask::Ping);
        assert_eq!(
            read(r#"{"op":"wait-ready","timeoutMs":5}"#),
            Ask::WaitReady { timeout_ms: Some(5), units: None, patient: false }
        );
        assert_eq!(
            read(r#"{"op":"run-task","name":"t","force":true}"#),
            Ask::RunTask { name: "t".into(), force: true, wait: false }
        );
        assert!(serde_json::from_str::<Ask>(r#"{"op":"nosuch"}"#).is_err());
        let state: UnitState = serde_json::from_str("\"someday\"").unwrap();
        assert_eq!(state, UnitState::Unknown);
    }
}
