//! Boxes as people see them.

use crate::carry::Carried;
use crate::egress::EgressMode;
use crate::sessions::{Agent, AgentView};
use crate::{BoxId, BoxName, Millis};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxView {
    pub id: BoxId,
    pub name: BoxName,
    /// What a person calls it; its name, branch and addresses stay.
    #[serde(default)]
    pub display_name: Option<String>,
    /// Counted per project from 1, never used twice.
    pub index: u32,
    pub project: String,
    pub project_root: String,
    /// The host's folder that `/workspace` was made from.
    pub workspace: String,
    pub state: BoxState,
    /// The branch its commits appear on in the host's repository; none without a repository.
    pub branch: Option<String>,
    /// Where its pushes go at a remote, when a person chose another branch.
    pub publish: Option<String>,
    pub image: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    /// How many questions wait for an answer.
    pub questions: u32,
    /// Its questions are denied until then.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub muted_until: Option<Millis>,
    /// How it reaches the host: `socket` or `exec`.
    pub channel: String,
    /// What it is held still for, such as a checkpoint; none when it is not.
    pub busy: Option<String>,
    /// Agents that run in it.
    pub agents: Vec<AgentView>,
    /// Agents whose own login the box holds, or held since it was made.
    pub logins: Vec<Agent>,
    /// The address of its web app; none when it has none, as without a container.
    #[serde(default)]
    pub web: Option<String>,
    /// The address of its screen, without the password; none when it has none.
    #[serde(default)]
    pub screen: Option<String>,
    /// Repositories below the workspace.
    #[serde(default)]
    pub nested_repos: Vec<NestedView>,
    /// How it gets out to the network.
    #[serde(default)]
    pub egress: EgressMode,
    /// Why it is down, as far as the host saw it happen; none while it is up.
    #[serde(default)]
    pub down: Option<Down>,
}

/// That a box is down, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Down {
    pub why: WhyDown,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub at: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum WhyDown {
    /// A person stopped it, through AgentBox.
    Person,
    /// AgentBox put it to rest, and the engine cannot freeze a box.
    Rest,
    /// Its first process ended.
    #[serde(rename_all = "camelCase")]
    Ended {
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        code: i64,
    },
    /// The kernel ended its first process because the box had used up its memory.
    OutOfMemory,
    /// Somebody killed its first process, not through AgentBox.
    Killed,
    /// Somebody told it to stop, not through AgentBox.
    StoppedOutside,
    /// Somebody removed its container, not through AgentBox.
    Removed,
    /// It was down when its engine came back, and up when that went away.
    EngineGone,
}

impl WhyDown {
    /// “it ran out of memory”. None when it is down because it was meant to be.
    pub fn in_words(self) -> Option<String> {
        Some(match self {
            WhyDown::Person | WhyDown::Rest => return None,
            WhyDown::Ended { code: 0 } => "it ended by itself".to_owned(),
            WhyDown::Ended { code } => format!("it ended by itself with code {code}"),
            WhyDown::OutOfMemory => "it ran out of memory".to_owned(),
            WhyDown::Killed => "it was killed from outside".to_owned(),
            WhyDown::StoppedOutside => "it was stopped outside AgentBox".to_owned(),
            WhyDown::Removed => "its container was removed outside AgentBox".to_owned(),
            WhyDown::EngineGone => "the container engine went away".to_owned(),
        })
    }
}

/// A repository below a box's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct NestedView {
    /// From the workspace.
    pub path: String,
    pub branch: String,
}

/// A box that was just made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Created {
    #[serde(flatten)]
    pub view: BoxView,
    /// Branches of the repositories below the workspace, by their folders.
    #[serde(default)]
    pub nested: Vec<(String, String)>,
    /// Uncommitted files that did not fit on the commit the box starts from.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Files with settings that were taken along.
    #[serde(default)]
    pub with_env: Vec<String>,
    /// Files from this computer that were copied into it.
    #[serde(default)]
    pub carried: Vec<Carried>,
    /// What a person should know.
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum BoxState {
    Creating,
    Running,
    Paused,
    Stopped,
    /// The record is there, the container is not.
    Missing,
    /// The engine cannot be asked.
    Unknown,
}

impl BoxState {
    pub fn as_str(self) -> &'static str {
        match self {
            BoxState::Creating => "creating",
            BoxState::Running => "running",
            BoxState::Paused => "paused",
            BoxState::Stopped => "stopped",
            BoxState::Missing => "missing",
            BoxState::Unknown => "unknown",
        }
    }
}

/// Ports on this computer's own address that lead into a box. They are others after every start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Endpoints {
    /// What the box serves on port 80.
    pub web: Option<u16>,
    /// The screen; none when the box has none.
    pub vnc: Option<u16>,
    /// None when the box has no ssh server.
    pub ssh: Option<u16>,
}

/// A step of something long, as it starts, moves and ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Progress {
    /// “Build the box image”.
    pub step: String,
    pub state: StepState,
    /// What it is at now: “Step 4/9: RUN apt-get …”.
    pub detail: Option<String>,
    /// 0 to 1 where it is known.
    pub fraction: Option<f32>,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub elapsed_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum StepState {
    Running,
    Done,
    Failed,
}
