//! What a box takes over of the person's newer work, and what it says of it.

use serde::{Deserialize, Serialize};

/// The most names of files one answer tells.
pub const MOST_KEPT: usize = 200;

/// First line of `agentbox-ctl resync`'s standard input (run as the box user). A tar stream with the
/// untracked files, relative to the workspace, follows it up to the end of input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResyncPlan {
    pub repos: Vec<ResyncRepo>,
}

/// What is new in one repository on the host. Its objects are where the box sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResyncRepo {
    /// From the workspace; empty for the workspace's own.
    pub path: String,
    /// The box's branch.
    pub branch: String,
    /// The commit the host is at.
    pub commit: String,
    /// Tree of the host's files as the box knows them, on that commit.
    pub before: String,
    /// Tree of the host's files as they are.
    pub now: String,
}

/// Its answer, one line of JSON, and what people are told. Names come from a box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Resynced {
    /// Commits of the host that the box has now and had not before.
    pub commits: u32,
    /// Files that changed with the host's uncommitted work, and untracked ones that are new.
    pub files: u32,
    /// Files from elsewhere on the host, that a person let `agentbox.yaml` copy when the box was made and
    /// that changed since. The host's own word.
    pub carried: u32,
    /// Files that differ and stay as the box has them, from the workspace.
    pub kept: Vec<String>,
    /// Why something was left as it is.
    pub left: Vec<String>,
}

impl Resynced {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}
