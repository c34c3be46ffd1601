//! A box that was down hears what is new on this computer, before an agent works in it again.

use crate::api::Api;
use crate::core::Known;
use crate::engine::control_error;
use boxes::Record;
use protocol::control::{ControlError, Target};
use protocol::resync::Resynced;

type Reply<T> = Result<T, ControlError>;

impl Api {
    /// Nothing happens where the box was not down, the settings say no, or somebody works in it.
    pub async fn resync(&self, target: Target) -> Reply<Resynced> {
        let id = self.find(&target)?;
        let _used = self.core.session(&id);
        self.core.bring_up(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        let wanted = self.core.settings_for(&record.project_root)?.boxes.resync_on_start;
        let due = self.core.with_known(&id, |known| known.was_down) == Some(true);
        if !wanted || !due || !boxes.sessions(&record).await.map_err(control_error)?.is_empty() {
            return Ok(Resynced::default());
        }
        // Whoever takes it does it; a box that is slow about it can be stopped all the same.
        let take = |known: &mut Known| std::mem::take(&mut known.was_down);
        if self.core.with_known(&id, take) != Some(true) {
            return Ok(Resynced::default());
        }
        let done = boxes.resync(&record).await;
        if done.is_err() {
            self.core.with_known(&id, |known| known.was_down = true);
        }
        let (mut told, mut changed) = done.map_err(control_error)?;
        let (copied, left) = self.core.carry_again(&boxes, &record).await;
        told.carried = u32::try_from(copied.len()).unwrap_or(u32::MAX);
        told.left.extend(left);
        for fresh in copied {
            if let Some(one) = changed.carry.iter_mut().find(|one| one.dest == fresh.dest) {
                *one = fresh;
            }
        }
        // Something else of it may have changed meanwhile.
        if let Some(now) = self.core.record(&id).filter(|_| changed != record) {
            let Record { base, nested, carry, .. } = changed;
            let changed = Record { base, nested, carry, ..now };
            let summary = format!("Box {} took over what is new on the host", record.name);
            let data = serde_json::json!({ "commits": told.commits, "base": changed.base });
            self.core.change(changed, "box-changed", summary, data).await?;
        }
        Ok(told)
    }
}
