//! What the host remembers about a box.
//!
//! Written by [`crate::Boxes::create`], stored by the host, handed back with every later call.
//! It holds no token and no password, but a remote's address may contain user information the
//! person put there: a record is never shown to a box.

use protocol::{BoxId, BoxName, Millis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub id: BoxId,
    pub name: BoxName,
    /// Counted per project from 1.
    pub index: u32,
    pub project_root: PathBuf,
    /// The folder name of the project root.
    pub project: String,
    /// What `/workspace` in the box was made from: the work tree's top, or the folder.
    pub workspace: PathBuf,
    /// The engine's id of the container.
    pub container: String,
    /// The engine's id of the box's own network.
    pub network: String,
    pub image: String,
    pub created_at: Millis,
    /// The branch the box commits to; none without a repository.
    pub branch: Option<String>,
    /// The commit the box started from; none in a repository without commits.
    pub base: Option<String>,
    pub repo: Option<RepoRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepoRecord {
    pub toplevel: PathBuf,
    /// The repository shared by all work trees; pins and the box's branch live here.
    pub common_dir: PathBuf,
    pub remotes: BTreeMap<String, Remote>,
    pub default_branch: Option<String>,
    /// `sha1` or `sha256`.
    pub object_format: String,
}

/// A remote as the person configured it, user information included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remote {
    pub fetch_url: String,
    pub push_url: String,
}
