//! Captured states of boxes: the images are the engine's, what they are is in the store.

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use crate::store::{now, number_in};
use boxes::{Boxes, Capture, Record, Watcher};
use connectors::checkpoint::CheckpointName;
use protocol::BoxId;
use protocol::boxes::{BoxState, Progress, StepState};
use protocol::control::{
    CheckpointKind, CheckpointView, ControlError, CreateCheckpoint, ErrorCode,
};
use relay::{Checkpoints, Entry, NewCheckpoint};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After this an engine that has not made an image makes none any more.
const LONGEST_CAPTURE: Duration = Duration::from_secs(600);
/// What a box says of itself meanwhile.
const BUSY: &str = "checkpoint";

impl Api {
    /// Captures a box for a person. Once begun it is finished, also when nobody waits any more.
    pub async fn create_checkpoint(
        &self,
        request: CreateCheckpoint,
        watcher: Watcher,
    ) -> Result<CheckpointView, ControlError> {
        let (id, core) = (self.find(&request.target)?, self.core().clone());
        let work = async move { core.capture_for_person(&id, request, &watcher).await };
        let done = self.core().tasks.spawn(work).await;
        done.unwrap_or_else(|e| Err(ControlError::new(ErrorCode::Failed, e.to_string())))
    }

    pub async fn set_default_checkpoint(
        &self,
        id: Option<String>,
        cwd: Option<String>,
    ) -> Result<(), ControlError> {
        let core = self.core();
        let Some(id) = id else {
            let cwd = cwd.unwrap_or_default();
            let root =
                boxes::project::project_root(Path::new(&cwd)).await.map_err(control_error)?;
            core.store.set_default_checkpoint(&root.to_string_lossy(), None).await?;
            return Ok(());
        };
        let all = core.store.checkpoints().await?;
        let view = all.iter().find(|view| view.id == id).ok_or_else(|| no_such(&id))?;
        Ok(core.store.set_default_checkpoint(&view.project_root, Some(&id)).await?)
    }
}

fn no_such(id: &str) -> ControlError {
    let text = format!("there is no checkpoint {}", protocol::text::visible(id));
    ControlError::new(ErrorCode::Usage, text).hint("`agentbox checkpoint ls` lists them")
}

impl Core {
    /// What there is of the box's project.
    pub async fn checkpoints_of(&self, id: &BoxId) -> Result<Checkpoints, ControlError> {
        let record = self.record(id);
        let record =
            record.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        let root = record.project_root.to_string_lossy().into_owned();
        let mut all = self.store.checkpoints().await?;
        all.retain(|view| view.project_root == root);
        let name = record.name.as_str();
        let given = self.store.last_checkpoint(&root, name).await?;
        let there = all.iter().filter_map(|view| number_in(name, &view.name)).max();
        let next = given.max(there.unwrap_or(0)).saturating_add(1);
        Ok(Checkpoints { all, next })
    }

    /// It is held still, and goes on by itself.
    pub(crate) fn is_busy(&self, id: &BoxId) -> bool {
        self.state().boxes.get(id).is_some_and(|known| known.busy.is_some())
    }

    async fn capture_for_person(
        self: &Arc<Self>,
        id: &BoxId,
        request: CreateCheckpoint,
        watcher: &Watcher,
    ) -> Result<CheckpointView, ControlError> {
        let name: Option<CheckpointName> =
            request.name.as_deref().map(str::parse).transpose().map_err(
                |e: connectors::refusal::Refusal| ControlError::new(ErrorCode::Usage, e.text),
            )?;
        if matches!(self.box_state(id), BoxState::Stopped | BoxState::Paused) {
            self.start_box(id).await?;
        }
        let there = self.checkpoints_of(id).await?;
        let record = self
            .record(id)
            .ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        let name =
            name.map_or_else(|| format!("{}-{}", record.name, there.next), |n| n.to_string());
        let same = || there.all.iter().filter(|view| view.name == name);
        if let Some(view) = same().next().filter(|_| !request.replace) {
            let made = in_words(view.created_at);
            let text = format!("there is a checkpoint {name} already, made {made}");
            return Err(ControlError::new(ErrorCode::Failed, text)
                .hint("choose another name, or add --replace."));
        }
        let replaces: Vec<(String, bool)> =
            same().map(|view| (view.id.clone(), view.default)).collect();
        let wanted = NewCheckpoint {
            // Whoever takes the place of what new boxes start from is what they start from.
            set_default: request.set_default || replaces.iter().any(|(_, default)| *default),
            name,
            replaces,
            merged: request.merged,
            include_env: request.include_env,
        };
        let view = self.make_checkpoint(id, wanted, watcher).await?;
        let entry = Entry {
            box_id: Some(id.clone()),
            kind: "checkpoint-made",
            summary: format!("Checkpoint {} of {} made", view.name, view.box_name),
            data: serde_json::json!({ "name": view.name, "image": view.id, "default": view.default }),
        };
        self.store.record(entry).await?;
        Ok(view)
    }

    /// Captures a box. The one it replaces goes only when the new one is written down: a capture
    /// that fails loses nothing.
    pub async fn make_checkpoint(
        self: &Arc<Self>,
        id: &BoxId,
        wanted: NewCheckpoint,
        watcher: &Watcher,
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
        let Lineage { chain, base } = self.lineage(&record).await?;
        let most = self.settings_for(&record.project_root)?.checkpoint.max_layers as usize;
        let flatten = wanted.merged || chain.len() >= most;
        let image = boxes::checkpoint_image(&record, &wanted.name);
        let capture =
            Capture { name: &wanted.name, image: &image, flatten, keeps_env: wanted.include_env };
        let bytes = self.captured(&boxes, &record, capture, watcher).await?;
        let view = CheckpointView {
            id: image.clone(),
            name: wanted.name,
            project: record.project.clone(),
            project_root: record.project_root.to_string_lossy().into_owned(),
            box_name: record.name.to_string(),
            created_at: now(),
            default: wanted.set_default,
            kind: if flatten { CheckpointKind::Flattened } else { CheckpointKind::Layered },
            parents: if flatten { Vec::new() } else { chain },
            bytes,
            base,
            includes_env: wanted.include_env,
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

    /// The image, and its size. What may be left on the engine is on record for as long as it may.
    async fn captured(
        self: &Arc<Self>,
        boxes: &Boxes,
        record: &Record,
        capture: Capture<'_>,
        watcher: &Watcher,
    ) -> Result<u64, ControlError> {
        let part = boxes::part_of(capture.image);
        self.store.begin_capture(capture.image).await?;
        if capture.flatten {
            self.store.begin_capture(&part).await?;
        }
        let frozen = {
            let _busy = Busy::mark(self, &record.id);
            boxes.capture(record, capture, watcher).await
        };
        let committed = frozen.is_ok();
        let done = match frozen {
            Ok(()) => boxes.finish_capture(record, capture, watcher).await,
            Err(e) => Err(e),
        };
        let error = match done {
            Ok(bytes) => {
                if capture.flatten {
                    self.store.end_capture(&part).await?;
                }
                return Ok(bytes);
            }
            Err(error) => error,
        };
        for image in [Some(capture.image.to_owned()), capture.flatten.then_some(part)] {
            let Some(image) = image else { continue };
            // An engine that was not heard may have done it all the same.
            if committed || error.leaves_doubt() {
                self.tasks.spawn(self.clone().take_back_capture(image));
            } else {
                self.store.end_capture(&image).await?;
            }
        }
        Err(control_error(error))
    }

    /// What a box was made from.
    async fn lineage(&self, record: &Record) -> Result<Lineage, ControlError> {
        let all = self.store.checkpoints().await?;
        let Some(view) = all.into_iter().find(|view| view.id == record.image) else {
            return Ok(Lineage { chain: Vec::new(), base: Some(record.image.clone()) });
        };
        let chain = std::iter::once(view.name).chain(view.parents).collect();
        Ok(Lineage { chain, base: view.base })
    }

    /// The image a new box starts from, when that is a checkpoint: the one that was named, else the
    /// project's default. A default whose image is gone is none.
    pub async fn starting_point(
        &self,
        boxes: &Boxes,
        project_root: &Path,
        named: Option<&str>,
        current: impl FnOnce() -> Option<String>,
        watcher: &Watcher,
    ) -> Result<Option<String>, ControlError> {
        let root = project_root.to_string_lossy();
        let mut all = self.store.checkpoints().await?;
        all.retain(|view| view.project_root == root || Some(view.id.as_str()) == named);
        let found = match named {
            Some(name) => all.iter().find(|view| view.name == name || view.id == name),
            None => all.iter().find(|view| view.default),
        };
        let Some(view) = found else {
            return match named {
                None => Ok(None),
                Some(name) => Err(not_found(name)),
            };
        };
        if !boxes.has_image(&view.id).await.map_err(control_error)? {
            if let Some(name) = named {
                return Err(not_found(name));
            }
            notice(watcher, format!("The image of checkpoint {} is gone; not using it", view.name));
            return Ok(None);
        }
        if let (Some(then), Some(now)) = (&view.base, current())
            && *then != now
        {
            let text = format!(
                "Checkpoint {} was made on another box image ({}, now {}); make it anew, or agentbox checkpoint rm {}",
                view.name,
                short(then),
                short(&now),
                view.name
            );
            notice(watcher, text);
        }
        Ok(Some(view.id.clone()))
    }

    /// Removes an image that was being made when a host was killed, or when its engine went away. The
    /// engine finishes it although nobody waits, in its own time.
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
            return Err(no_such(id));
        }
        let removed = self.engine().await?.remove_checkpoint(id).await;
        removed.map_err(|e| {
            control_error(e).hint("a box that was made from it keeps it: destroy that box first")
        })?;
        self.store.remove_checkpoint(id).await?;
        Ok(())
    }
}

struct Lineage {
    /// The checkpoint it was made from, and those that builds on.
    chain: Vec<String>,
    base: Option<String>,
}

fn not_found(name: &str) -> ControlError {
    let text = format!("checkpoint not found: {}", protocol::text::visible(name));
    ControlError::new(ErrorCode::Usage, text).hint("`agentbox checkpoint ls` lists them")
}

/// Something a person should know while a box is made.
fn notice(watcher: &Watcher, step: String) {
    let state = StepState::Done;
    watcher.progress(Progress { step, state, detail: None, fraction: None, elapsed_ms: 0 });
}

/// What tells two built images apart.
fn short(image: &str) -> &str {
    image.rsplit(':').next().unwrap_or(image)
}

/// A moment as people write it, in UTC.
fn in_words(at: protocol::Millis) -> String {
    let time = i64::try_from(at).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "earlier".to_owned(), |time| time.strftime("%F %R UTC").to_string())
}

/// While this lives, the box says that it is held still.
struct Busy {
    core: Arc<Core>,
    id: BoxId,
}

impl Busy {
    fn mark(core: &Arc<Core>, id: &BoxId) -> Self {
        let this = Self { core: core.clone(), id: id.clone() };
        this.set(Some(BUSY));
        this
    }

    fn set(&self, busy: Option<&'static str>) {
        if let Some(known) = self.core.state().boxes.get_mut(&self.id) {
            known.busy = busy;
        }
        self.core.send_view(&self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.set(None);
    }
}
