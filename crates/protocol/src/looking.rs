//! What people see when they look at a box, and what they are told when boxes come and go.

use crate::boxes::{BoxView, Endpoints};
use crate::carry::Carried;
use crate::sessions::SessionView;
use crate::{BoxId, Millis};
use serde::{Deserialize, Serialize};

/// Everything about one box that is no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxDetails {
    pub view: BoxView,
    /// It has its token, and its first process was let go.
    pub ready: bool,
    /// The folder it was made from.
    pub workspace: String,
    /// The commit it started from.
    pub base: Option<String>,
    /// The engine's id.
    pub container: String,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub started_at: Option<Millis>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub ended_at: Option<Millis>,
    /// How it ended last, when it does not run.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub exit_code: Option<i64>,
    /// It had used up its memory, and something in it was ended for that.
    pub out_of_memory: bool,
    pub limits: BoxLimits,
    /// None when it does not run.
    pub usage: Option<BoxUsage>,
    /// None when it does not run, or the engine cannot tell.
    pub processes: Option<Vec<BoxProcess>>,
    pub mounts: Vec<BoxMount>,
    /// Files from this computer that were copied into it when it was made.
    #[serde(default)]
    pub carried: Vec<Carried>,
    /// As its supervisor told last.
    #[serde(default)]
    pub units: Option<crate::supervisor::BoxStatus>,
    /// Ports of this computer that lead into it.
    #[serde(default)]
    pub endpoints: Endpoints,
    /// Agents and shells in it; none when it does not run.
    #[serde(default)]
    pub sessions: Option<Vec<SessionView>>,
}

/// None means without a limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxLimits {
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub memory_bytes: Option<u64>,
    pub cpus: Option<f64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub pids: Option<u64>,
}

/// A process in a box. All of it is the box's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxProcess {
    pub pid: String,
    pub user: String,
    pub time: String,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxMount {
    /// On the host; empty for memory.
    pub from: String,
    pub to: String,
    pub writable: bool,
}

/// What a box uses. None is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxUsage {
    pub id: BoxId,
    pub name: String,
    pub project: String,
    #[serde(default)]
    pub project_root: String,
    pub state: crate::boxes::BoxState,
    /// Of one processor.
    pub cpu_percent: Option<f64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub memory_bytes: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub memory_limit: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub pids: Option<u64>,
    #[serde(default)]
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub pids_limit: Option<u64>,
    /// What it has used up, or nearly so.
    #[serde(default)]
    pub at_limit: Vec<AtLimit>,
    /// Its own files, without its image.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub disk_bytes: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub received_bytes: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub sent_bytes: Option<u64>,
}

/// Something of which a box has no more than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum AtLimit {
    Memory,
    Processes,
}

impl AtLimit {
    pub fn as_str(self) -> &'static str {
        match self {
            AtLimit::Memory => "memory",
            AtLimit::Processes => "processes",
        }
    }
}

/// What all boxes use, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Usage {
    pub boxes: Vec<BoxUsage>,
    pub disk: DiskUsage,
}

/// What takes up room on the engine's disk. None is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct DiskUsage {
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub boxes_bytes: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub images_bytes: Option<u64>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub free_bytes: Option<u64>,
}

/// What came of waiting for a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Waited {
    pub view: BoxView,
    pub ready: bool,
    /// Why it is not.
    pub why: Option<String>,
}

/// What `agentbox recover` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Recovery {
    pub boxes: Vec<Recovered>,
    /// Boxes that were never finished and are being removed.
    pub taken_back: Vec<BoxId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Recovered {
    pub view: BoxView,
    pub outcome: RecoverOutcome,
    /// Why, where there is a reason to tell.
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum RecoverOutcome {
    Started,
    Woken,
    /// It ran, and has a new token.
    TakenOver,
    /// It ran and was ready.
    Fine,
    /// A person had stopped it.
    Left,
    Failed,
}

/// What becomes of a box's branch in the person's repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum BranchFate {
    /// It is deleted when it has no commits of its own.
    #[default]
    Auto,
    Keep,
    Delete,
}

/// What was left behind, and what was done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Pruned {
    pub found: Vec<Remnant>,
    /// “container agentbox-x”, …; empty after a look.
    pub removed: Vec<String>,
    pub failed: Vec<String>,
}

/// Something nobody needs any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Remnant {
    /// Names it when it is to be removed.
    pub key: String,
    /// `record`, `container`, `network`, `volume`, `checkpoint`, `image`, `folder` or `pins`.
    pub kind: String,
    pub name: String,
    pub why: String,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub bytes: Option<u64>,
}

/// How much was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Exported {
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
}
