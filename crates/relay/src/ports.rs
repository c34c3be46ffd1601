//! What the relay needs from the rest of the host.

use approvals::BoxFuture;
use protocol::control::CheckpointView;
use protocol::ctl::{CloneIn, KnownTags, Pack, TagsHead, Unbundle};
use protocol::events::JsonText;
use protocol::rpc::EventPost;
use protocol::{BoxId, SecretId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// The box could not be asked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// The way into a box: bundles and files out and in. Never a shared `.git`, never a shared folder.
pub trait BoxPort: Send + Sync + 'static {
    /// Writes what the branch of the repository at `repo` has beyond `haves` to `dest`. Gives the tip's object id, as the box
    /// claims it; nothing is written when that is one of the haves; none when there is no branch.
    fn export_bundle<'a>(
        &'a self,
        id: &'a BoxId,
        repo: &'a str,
        branch: &'a str,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, PortError>>;

    fn import_bundle<'a>(
        &'a self,
        id: &'a BoxId,
        unbundle: Unbundle,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>>;

    /// Writes files of the box to `dest` as a tar stream of at most `limit` bytes. All of it is the
    /// box's word.
    fn pack<'a>(
        &'a self,
        id: &'a BoxId,
        what: Pack,
        dest: File,
        limit: u64,
    ) -> BoxFuture<'a, Result<(), PortError>>;

    /// Lays a tar stream out in the box: in `dest` when that is a folder there or ends with a
    /// slash, else under that name.
    fn unpack<'a>(
        &'a self,
        id: &'a BoxId,
        tar: File,
        dest: &'a str,
    ) -> BoxFuture<'a, Result<(), PortError>>;

    /// What there is of the box's project already.
    fn checkpoints<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<Checkpoints, PortError>>;

    /// Captures the box as an image. It freezes meanwhile.
    fn checkpoint<'a>(
        &'a self,
        id: &'a BoxId,
        wanted: NewCheckpoint,
    ) -> BoxFuture<'a, Result<CheckpointView, PortError>>;

    /// Writes what the box's tags have beyond `haves` to `dest`, those in `known` left aside. Gives
    /// them as the box claims they are; nothing is written when the host has all of it.
    fn export_tags<'a>(
        &'a self,
        id: &'a BoxId,
        repo: &'a str,
        known: &'a KnownTags,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<TagsHead, PortError>>;

    /// Makes a repository in the box of what the host cloned.
    fn import_clone<'a>(
        &'a self,
        id: &'a BoxId,
        clone: CloneIn,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>>;

    /// A branch moved in the box.
    fn ref_changed(&self, id: &BoxId);
}

/// The checkpoints of a project.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    pub all: Vec<CheckpointView>,
    /// The number the box's next one without a name gets; none is ever given twice.
    pub next: u32,
}

/// A checkpoint to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    pub name: String,
    pub set_default: bool,
    /// Those of that name, as they were shown: they go once the new one is there. Each with whether
    /// new boxes start from it.
    pub replaces: Vec<(String, bool)>,
    /// In one layer, however few it builds on.
    pub merged: bool,
    /// Files such as `.env` are captured, too.
    pub include_env: bool,
}

/// The record could not be written; what it was about is then not done.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the audit trail could not be written: {0}")]
pub struct TrailError(pub String);

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Entry {
    pub box_id: Option<BoxId>,
    pub kind: &'static str,
    pub summary: String,
    pub data: Value,
}

/// The audit trail.
pub trait Trail: Send + Sync + 'static {
    /// On disk when this returns.
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>>;
    /// Written when this returns: the host's end does not lose it, a power cut within the next second
    /// may. For what changed nothing: reads and refusals, where waiting for the disk would be most of
    /// the time a call takes.
    fn jot(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>>;
}

/// What boxes tell, kept by the host. Called for every post: must not block.
pub trait EventLog: Send + Sync + 'static {
    /// Keeps an event; its number.
    fn keep(&self, id: &BoxId, event: EventPost) -> u64;
    /// How the box is now.
    fn status(&self, id: &BoxId, status: JsonText);
}

/// Stored credentials.
pub trait Credentials: Send + Sync + 'static {
    /// The value of a credential, if there is one. The text of an error says what to do.
    fn get<'a>(&'a self, id: &'a SecretId)
    -> BoxFuture<'a, Result<Option<secrets::Value>, String>>;
}

/// What the person has set, as it is now.
pub trait Policies: Send + Sync + 'static {
    /// Read anew for every call that needs it, so that a change holds at once. Settings that cannot
    /// be read give the strictest policy.
    fn policy(&self, project_root: &Path) -> Policy;
}

/// The settings that decide what a box may do.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub mode: Mode,
    /// By service; one that is missing is off.
    pub integrations: BTreeMap<String, IntegrationPolicy>,
    /// A pull request may be checked out in the user's own work tree.
    pub checkout: bool,
    /// Copies above this size say so.
    pub copy_max_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every write asks.
    #[default]
    Ask,
    /// What stays with the box's own branch or folder is allowed and written down.
    Safe,
}

#[derive(Debug, Clone, Default)]
pub struct IntegrationPolicy {
    pub enabled: bool,
    pub auto_approve_writes: bool,
    /// Another address than the service's own.
    pub base_url: Option<String>,
}

impl Policy {
    pub fn integration(&self, service: &str) -> IntegrationPolicy {
        self.integrations.get(service).cloned().unwrap_or_default()
    }
}
