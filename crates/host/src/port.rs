//! The relay's way into a box, by the engine.

use crate::core::Core;
use approvals::BoxFuture;
use protocol::BoxId;
use protocol::ctl::Unbundle;
use relay::{BoxPort, PortError};
use std::path::Path;
use std::sync::{Arc, Weak};

/// The most one bundle may bring to this disk.
const MAX_BUNDLE: u64 = 1024 * 1024 * 1024;

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
        branch: &'a str,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, PortError>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(|e| PortError(e.message))?;
            let tip = boxes.export_bundle(&record, branch, haves, dest, MAX_BUNDLE).await;
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

    fn ref_changed(&self, id: &BoxId) {
        if let Some(core) = self.0.upgrade() {
            core.land_soon(id);
        }
    }
}

impl Core {
    /// Brings the box's commits to the user's repository in the background. One landing per box
    /// at a time; a change that comes meanwhile is looked at afterwards.
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
            loop {
                if let Err(e) = core.relay.land(&id).await {
                    // Not louder: a box decides how often, and what it says.
                    tracing::debug!("commits of {id} did not reach the host's repository: {e}");
                }
                let mut state = core.state();
                let Some(known) = state.boxes.get_mut(&id) else { return };
                match known.landing {
                    Some(true) => known.landing = Some(false),
                    _ => {
                        known.landing = None;
                        return;
                    }
                }
            }
        });
    }
}
