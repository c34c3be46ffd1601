//! Background jobs: a box and an agent with something to do, made when there is room.

use crate::control::{CreateBox, Target};
use crate::integrations::SecretText;
use crate::sessions::{Agent, AgentState};
use crate::{BoxId, JobId, Millis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest prompt: what one argument of a program may hold, with room to spare.
pub const MAX_PROMPT: usize = 100 * 1024;

/// What a person wants done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SubmitJob {
    pub agent: Agent,
    pub prompt: String,
    pub create: CreateBox,
    /// Further arguments for the agent.
    pub args: Vec<String>,
    /// Another name of the session than the agent's own.
    pub session_name: Option<String>,
    /// The person's own settings of the agent are brought to the box first.
    pub sync: bool,
    /// Whether it asks before each step; none is what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(optional))]
    pub skip_permissions: Option<bool>,
    /// Variables of the person's environment. They are never written down.
    pub env: BTreeMap<String, SecretText>,
    /// None is what the settings say.
    pub max_running: Option<u32>,
    pub max_working: Option<u32>,
    /// The first size of the agent's terminal.
    pub cols: u16,
    pub rows: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum JobStatus {
    Queued,
    /// Its box is being made, or its agent started.
    Running,
    /// Its agent is at work.
    Done,
    Failed,
    Cancelled,
}

impl JobStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Queued => "queued",
            JobStatus::Running => "running",
            JobStatus::Done => "done",
            JobStatus::Failed => "failed",
            JobStatus::Cancelled => "cancelled",
        }
    }

    pub fn is_over(self) -> bool {
        !matches!(self, JobStatus::Queued | JobStatus::Running)
    }
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "max", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Gate {
    /// Fewer boxes run or are being made.
    Running(u32),
    /// Fewer agents work.
    Working(u32),
}

impl Gate {
    pub fn max(self) -> u32 {
        match self {
            Gate::Running(max) | Gate::Working(max) => max,
        }
    }

    /// “3/5 running”.
    pub fn in_words(self, busy: u32) -> String {
        let what = match self {
            Gate::Running(_) => "running",
            Gate::Working(_) => "working",
        };
        format!("{busy}/{} {what}", self.max())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct JobView {
    pub id: JobId,
    pub status: JobStatus,
    pub agent: Agent,
    /// None until it has one.
    pub box_name: Option<String>,
    pub box_id: Option<BoxId>,
    pub workspace: String,
    pub prompt: String,
    pub gate: Gate,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub started_at: Option<Millis>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub finished_at: Option<Millis>,
    /// Why it failed.
    pub reason: Option<String>,
    /// What to do about that.
    pub hint: Option<String>,
    /// The file its steps are written to.
    pub log: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct JobCounts {
    pub queued: u32,
    pub running: u32,
}

impl JobCounts {
    /// “2 queued, 1 running”; none when there are none.
    pub fn in_words(self) -> Option<String> {
        let each = [(self.queued, "queued"), (self.running, "running")];
        let some = each.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// A job, and how full it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Submitted {
    #[serde(flatten)]
    pub job: JobView,
    /// How many count against the job's gate now.
    pub busy: u32,
}

/// A job, and the end of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct JobDetails {
    #[serde(flatten)]
    pub job: JobView,
    /// How many count against the job's gate now; none when it waits no more.
    pub busy: Option<u32>,
    pub lines: Vec<String>,
}

/// What can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "until", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Until {
    /// One that is not there yet.
    NewBox,
    /// No job waits or is under way.
    EmptyQueue,
    BoxPaused {
        target: Target,
    },
    BoxRunning {
        target: Target,
    },
    BoxStopped {
        target: Target,
    },
    /// This job, or the next one, is over, however.
    JobOver {
        job: Option<String>,
    },
    /// An agent in a box is in one of these states; none is any agent.
    Agent {
        target: Target,
        agent: Option<Agent>,
        states: Vec<AgentState>,
    },
    /// The box asks something of the host that somebody has to answer.
    Asked {
        target: Target,
    },
}

/// What came of waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Awaited {
    /// Not when the time was up.
    pub met: bool,
    /// The box, where it is about one.
    #[serde(rename = "box")]
    pub view: Option<crate::boxes::BoxView>,
    pub job: Option<JobView>,
}
