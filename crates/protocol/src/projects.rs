//! Projects as people choose them for a new box.

use crate::control::CheckpointView;
use crate::{Limits, Millis};
use serde::{Deserialize, Serialize};

/// A project boxes were made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct ProjectView {
    pub name: String,
    pub root: String,
    /// Boxes it has now.
    pub boxes: u32,
    /// When the newest of them was made.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub last_used: Option<Millis>,
}

/// A folder somebody may make a box from, and what would come along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct FolderView {
    /// As it is without links.
    pub folder: String,
    pub project: String,
    pub project_root: String,
    /// None outside a repository.
    pub repository: Option<RepositoryView>,
    /// Settings that git ignores, relative to the folder; none when looking took too long.
    pub env_files: Option<Vec<String>>,
    /// They come along unless somebody says otherwise.
    pub with_env: bool,
    /// Those of the project, newest first.
    pub checkpoints: Vec<CheckpointView>,
    /// What a box may use unless somebody says otherwise.
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct RepositoryView {
    /// What is checked out; none between branches.
    pub current: Option<String>,
    /// The person's branches, newest first; at most a few hundred.
    pub branches: Vec<String>,
    /// Branches of remotes: `origin/main`.
    pub remote_branches: Vec<String>,
    /// Files with uncommitted changes; none when looking took too long.
    pub uncommitted: Option<u32>,
}
