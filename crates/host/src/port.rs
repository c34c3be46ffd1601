//! The relay's way into a box, by the engine.

use crate::core::Core;
use approvals::BoxFuture;
use protocol::BoxId;
use protocol::control::CheckpointView;
use protocol::ctl::{CloneIn, KnownTags, Pack, TagsHead, Unbundle};
use relay::{BoxPort, Checkpoints, NewCheckpoint, PortError};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The most one bundle may bring to this disk.
const MAX_BUNDLE: u64 = 1024 * 1024 * 1024;

/// Between two landings of one box, and when there have been many of late: each leaves a pack in the
/// person's repository.
const LANDING_PAUSE: Duration = Duration::from_millis(300);
const LONG_PAUSE: Duration = Duration::from_secs(3);
/// How often a landing is tried again, and how much longer each time.
const LANDING_RETRIES: u32 = 3;
const LANDING_RETRY: Duration = Duration::from_secs(1);
/// Landings a minute, and at once, that count as usual.
pub const LANDINGS: (u32, u32) = (20, 60);

/// Holds the host weakly: the host owns the relay that owns this.
pub struct EnginePort(pub Weak<Core>);

impl EnginePort {
    fn core(&self) -> Result<Arc<Core>, PortError> {
        self.0.upgrade().ok_or_else(|| PortError("the host is stopping".into()))
    }
}

impl BoxPort for EnginePort {
    fn export_bundle<'a>(
        &'a self,
        id: &'a BoxId,
        repo: &'a str,
        branch: &'a str,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let tip = boxes.export_bundle(&record, repo, branch, haves, dest, MAX_BUNDLE).await;
            tip.map_err(|e| PortError(e.to_string()))
        })
    }

    fn import_bundle<'a>(
        &'a self,
        id: &'a BoxId,
        unbundle: Unbundle,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let done = boxes.import_bundle(&record, &unbundle, bundle).await;
            done.map_err(|e| PortError(e.to_string()))
        })
    }

    fn export_tags<'a>(
        &'a self,
        id: &'a BoxId,
        repo: &'a str,
        known: &'a KnownTags,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<TagsHead, PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let tags = boxes.export_tags(&record, repo, known, haves, dest, MAX_BUNDLE).await;
            tags.map_err(|e| PortError(e.to_string()))
        })
    }

    fn import_clone<'a>(
        &'a self,
        id: &'a BoxId,
        clone: CloneIn,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let done = boxes.clone_in(&record, &clone, bundle).await;
            done.map_err(|e| PortError(e.to_string()))
        })
    }

    fn pack<'a>(
        &'a self,
        id: &'a BoxId,
        what: Pack,
        dest: File,
        limit: u64,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let done = boxes.pack(&record, &what, dest, limit).await;
            done.map_err(|e| PortError(e.to_string()))
        })
    }

    fn unpack<'a>(
        &'a self,
        id: &'a BoxId,
        tar: File,
        dest: &'a str,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let done = boxes.unpack(&record, tar, dest).await;
            done.map_err(|e| PortError(e.to_string()))
        })
    }

    fn checkpoints<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<Checkpoints, PortError>> {
        Box::pin(async move {
            let known = self.core()?.checkpoints_of(id).await;
            known.map_err(|e| PortError(e.message))
        })
    }

    fn checkpoint<'a>(
        &'a self,
        id: &'a BoxId,
        wanted: NewCheckpoint,
    ) -> BoxFuture<'a, Result<CheckpointView, PortError>> {
        Box::pin(async move {
            let made = self.core()?.make_checkpoint(id, wanted, &boxes::progress::silent()).await;
            made.map_err(|e| PortError(e.message))
        })
    }

    fn ref_changed(&self, id: &BoxId) {
        if let Some(core) = self.0.upgrade() {
            core.land_soon(id);
        }
    }
}

impl Core {
    fn landing_pause(&self, id: &BoxId) -> Duration {
        let state = self.state();
        let usual = state.boxes.get(id).is_none_or(|known| known.landings.take());
        if usual { LANDING_PAUSE } else { LONG_PAUSE }
    }

    /// Brings the box's commits to the user's repository in the background. One landing per box
    /// at a time; a change that comes meanwhile is looked at afterwards. One that fails is tried again a
    /// few times: nobody tells of a commit twice.
    pub fn land_soon(self: &Arc<Self>, id: &BoxId) {
        {
            let mut state = self.state();
            let Some(known) = state.boxes.get_mut(id) else { return };
            if let Some(again) = &mut known.landing {
                *again = true;
                return;
            }
            known.landing = Some(false);
        }
        let (core, id) = (self.clone(), id.clone());
        self.tasks.spawn(async move {
            let mut failed = 0;
            loop {
                failed = match core.relay.land(&id).await {
                    Ok(_) => {
                        // What its repository asks for may be another text by now.
                        core.reload_soon(&id);
                        0
                    }
                    Err(e) => {
                        // Not louder: a box decides how often, and what it says.
                        tracing::debug!("commits of {id} did not reach the host's repository: {e}");
                        failed + 1
                    }
                };
                // A box decides how often; the host how often at most.
                tokio::time::sleep(core.landing_pause(&id) + LANDING_RETRY * failed).await;
                let mut state = core.state();
                let Some(known) = state.boxes.get_mut(&id) else { return };
                match known.landing {
                    Some(true) => known.landing = Some(false),
                    _ if (1..=LANDING_RETRIES).contains(&failed) => {}
                    _ => {
                        known.landing = None;
                        return;
                    }
                }
            }
        });
    }
}
