//! What the relay needs from the rest of the host.

use approvals::BoxFuture;
use protocol::BoxId;
use protocol::ctl::Unbundle;
use serde_json::Value;
use std::path::Path;

/// The box could not be asked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// The way into a box's repository: bundles out, bundles in. Never a shared `.git`.
pub trait BoxPort: Send + Sync + 'static {
    /// Writes what the branch has beyond `haves` to `dest`. Gives the tip's object id, as the box
    /// claims it; nothing is written when that is one of the haves; none when there is no branch.
    fn export_bundle<'a>(
        &'a self,
        id: &'a BoxId,
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

    /// A branch moved in the box.
    fn ref_changed(&self, id: &BoxId);
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
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>>;
}
