//! Captured states of boxes: the images are the engine's, what they are is in the store.

use crate::core::Core;
use crate::engine::control_error;
use protocol::BoxId;
use protocol::control::{CheckpointView, ControlError, ErrorCode};
use relay::{Checkpoints, NewCheckpoint};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After this an engine that has not made an image makes none any more.
const LONGEST_CAPTURE: Duration = Duration::from_secs(600);

impl Core {
    /// What there is of the box's project.
    pub async fn checkpoints_of(&self, id: &BoxId) -> Result<Checkpoints, ControlError> {
        let record = self.record(id);
        let record =
            record.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        let root = record.project_root.to_string_lossy().into_owned();
        let mut all = self.store.checkpoints().await?;
        all.retain(|view| view.project_root == root);
        let next = next_number(record.name.as_str(), all.iter().map(|view| view.name.as_str()));
        Ok(Checkpoints { all, next })
    }

    /// Captures a box. The one it replaces goes only when the new one is written down: a capture
    /// that fails loses nothing.
    pub async fn make_checkpoint(
        &self,
        id: &BoxId,
        wanted: NewCheckpoint,
    ) -> Result<CheckpointView, ControlError> {
        let (boxes, record) = self.reach(id).await?;
        let _one = self.checkpointing.lock().await;
        let mut old = self.checkpoints_of(id).await?.all;
        old.retain(|view| view.name == wanted.name);
        // What was shown is what is replaced, and nothing else.
        let shown: Vec<(&str, bool)> =
            wanted.replaces.iter().map(|(id, default)| (id.as_str(), *default)).collect();
        let there: Vec<(&str, bool)> =
            old.iter().map(|view| (view.id.as_str(), view.default)).collect();
        if shown != there {
            let text = format!("checkpoints named {} changed since approval", wanted.name);
            return Err(ControlError::new(ErrorCode::Failed, text));
        }
        let image = boxes::checkpoint_image(&record, &wanted.name);
        self.store.begin_capture(&image).await?;
        if let Err(e) = boxes.commit(&record, &wanted.name, &image).await {
            self.store.end_capture(&image).await?;
            return Err(control_error(e));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let view = CheckpointView {
            id: image.clone(),
            name: wanted.name,
            project: record.project.clone(),
            project_root: record.project_root.to_string_lossy().into_owned(),
            box_name: record.name.to_string(),
            created_at: u64::try_from(now.as_millis()).unwrap_or(0),
            default: wanted.set_default,
        };
        if let Err(e) = self.store.put_checkpoint(view.clone()).await {
            if let Err(e) = boxes.remove_checkpoint(&image).await {
                tracing::warn!("{image} is left on the engine: {e}");
            }
            return Err(e.into());
        }
        for view in old {
            if let Err(e) = self.remove_checkpoint(&view.id).await {
                tracing::warn!("the replaced checkpoint {} is still there: {e}", view.id);
            }
        }
        Ok(view)
    }

    /// Removes an image that was being made when a host was killed. The engine finishes it although
    /// nobody waits, in its own time.
    pub async fn take_back_capture(self: Arc<Self>, image: String) {
        let mut pause = FIRST_PAUSE;
        let mut answers_since = None;
        loop {
            if let Ok(boxes) = self.engine().await {
                match boxes.remove_checkpoint(&image).await {
                    Ok(true) => break tracing::warn!("removed {image}: it was never finished"),
                    Ok(false) => {
                        let since = *answers_since.get_or_insert_with(Instant::now);
                        if since.elapsed() > LONGEST_CAPTURE {
                            break;
                        }
                    }
                    Err(e) => tracing::debug!("{image}: {e}"),
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
        if let Err(e) = self.store.end_capture(&image).await {
            tracing::warn!("{e}");
        }
    }

    pub async fn remove_checkpoint(&self, id: &str) -> Result<(), ControlError> {
        let all = self.store.checkpoints().await?;
        if !all.iter().any(|view| view.id == id) {
            let text = format!("there is no checkpoint {}", protocol::text::visible(id));
            return Err(
                ControlError::new(ErrorCode::Usage, text).hint("`agentbox checkpoints` lists them")
            );
        }
        let removed = self.engine().await?.remove_checkpoint(id).await;
        removed.map_err(|e| {
            control_error(e).hint("a box that was made from it keeps it: destroy that box first")
        })?;
        self.store.remove_checkpoint(id).await?;
        Ok(())
    }
}

/// One more than the highest that was given to a checkpoint without a name.
fn next_number<'a>(box_name: &str, names: impl Iterator<Item = &'a str>) -> u32 {
    let number = |name: &str| name.strip_prefix(box_name)?.strip_prefix('-')?.parse::<u32>().ok();
    // A number nobody counts to was chosen by somebody.
    let counted = names.filter_map(number).filter(|n| *n < 1_000_000);
    counted.max().unwrap_or(0).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_up() {
        let next = |names: &[&str]| next_number("fix", names.iter().copied());
        assert_eq!(next(&[]), 1);
        assert_eq!(next(&["fix-1", "fix-7", "other-9", "fix", "fix-x", "fixed-8"]), 8);
        assert_eq!(next(&["fix-4294967295", "fix-3"]), 4);
    }
}
