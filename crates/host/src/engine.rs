//! The container engine, as the host lives with it: it may be late, go away and come back.

use crate::core::Core;
use crate::home;
use crate::store::now as clock;
use boxes::{Boxes, Change, Engine, EngineEvent, Record};
use futures_util::StreamExt;
use protocol::BoxId;
use protocol::boxes::BoxState;
use protocol::control::{ControlError, EngineStatus, ErrorCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The engine has done by then what it was doing when a host was killed.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// A failure of the engine or of git, with its hint.
pub fn control_error(error: boxes::Error) -> ControlError {
    let code = match &error {
        boxes::Error::NameTaken(_) | boxes::Error::NoWorkspace(_) | boxes::Error::Branch { .. } => {
            ErrorCode::Usage
        }
        e if e.is_unreachable() => ErrorCode::Engine,
        boxes::Error::NoBaseImage { .. } => ErrorCode::BaseImage,
        _ => ErrorCode::Failed,
    };
    let reply = ControlError::new(code, error.to_string());
    match error.hint() {
        Some(hint) => reply.hint(hint),
        None => reply,
    }
}

impl Core {
    /// The engine; tries to connect when it has not answered yet.
    pub async fn engine(&self) -> Result<Boxes, ControlError> {
        if let Some(boxes) = self.state().engine.clone() {
            return Ok(boxes);
        }
        let _one = self.connecting.lock().await;
        if let Some(boxes) = self.state().engine.clone() {
            return Ok(boxes);
        }
        match Engine::connect(self.settings.engine.host.as_deref()).await {
            Ok(engine) => {
                let detail = engine.profile().to_string();
                let boxes = Boxes::new(engine, &self.install);
                self.state().engine = Some(boxes.clone());
                self.connected.notify_one();
                self.set_engine(EngineStatus { reachable: true, detail, hint: None });
                Ok(boxes)
            }
            Err(error) => {
                let (detail, hint) = (error.to_string(), error.hint());
                self.set_engine(EngineStatus { reachable: false, detail, hint });
                Err(control_error(error))
            }
        }
    }

    /// The engine and a box's record.
    pub async fn reach(&self, id: &BoxId) -> Result<(Boxes, Record), ControlError> {
        let record = self.record(id);
        let record =
            record.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        let boxes = self.engine().await?;
        if boxes.may_have(&record) {
            return Ok((boxes, record));
        }
        let at = record.engine.unwrap_or_default();
        let text = format!("{} is on the engine at {at}, and another is in use", record.name);
        Err(ControlError::new(ErrorCode::Engine, text)
            .hint(format!("set engine.host to {at} in config.yaml, then restart AgentBox.")))
    }

    fn set_engine(&self, status: EngineStatus) {
        let changed = std::mem::replace(&mut self.state().engine_status, status.clone()) != status;
        if changed {
            self.send_status();
        }
    }

    /// Follows the engine until the host stops.
    pub async fn follow_engine(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        let boxes = loop {
            match self.engine().await {
                Ok(boxes) => break boxes,
                Err(_) => {
                    tokio::select! {
                        () = self.stop.cancelled() => return,
                        () = self.connected.notified() => {}
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    }
                }
            }
        };
        let mut events = boxes.events();
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                Some(EngineEvent::Connected) => self.look(&boxes).await,
                Some(EngineEvent::Lost(why)) => self.lost(why),
                Some(EngineEvent::Changed(id, container, change, at)) => {
                    // That of a container the box no longer has, or does not have yet, is no news.
                    let current = self.record(&id).is_some_and(|r| r.container == container);
                    let past = at.is_some_and(|at| self.is_past(&id, at));
                    match (current, past) {
                        (true, false) => self.changed(&id, change),
                        (true, true) => self.look_at(&boxes, &id).await,
                        (false, _) => {}
                    }
                }
                Some(EngineEvent::Attached(container)) => self.attached(&container),
                None => return,
            }
        }
    }

    /// Lists all boxes again: whatever happened while nobody listened.
    async fn look(self: &Arc<Self>, boxes: &Boxes) {
        if let Err(e) = self.look_now(boxes).await {
            self.lost(e.to_string());
        }
    }

    pub(crate) async fn look_now(self: &Arc<Self>, boxes: &Boxes) -> Result<(), boxes::Error> {
        let seen = boxes.seen().await?;
        let detail = boxes.engine().profile().to_string();
        self.set_engine(EngineStatus { reachable: true, detail, hint: None });
        let here = boxes.address();
        let ids: Vec<BoxId> = self.state().boxes.keys().cloned().collect();
        for id in &ids {
            let Some(record) = self.record(id) else { continue };
            let seen_here = seen.get(&record.container);
            if seen.iter().any(|(at, other)| other.of == *id && *at != record.container) {
                self.tidy_soon(boxes, record.clone());
            }
            // What is on another engine is not gone.
            let elsewhere = !boxes.may_have(&record);
            let state = match seen_here {
                Some(seen) => seen.state,
                None if elsewhere => BoxState::Unknown,
                None => BoxState::Missing,
            };
            self.set_box_state(id, state);
            if let (Some(known), Some(seen)) = (self.state().boxes.get_mut(id), seen_here) {
                known.endpoints = seen.endpoints;
                // One engine may have several addresses.
                known.record.engine = Some(here.clone());
            }
            if state == BoxState::Running {
                self.keep_bridge(id);
                if !self.state().is_released(id) {
                    self.adopt_soon(id);
                }
            }
        }
        self.note_subnets(boxes).await;
        for (id, workspace) in self.store.unfinished().await.unwrap_or_default() {
            self.take_back(boxes, id, workspace);
        }
        Ok(())
    }

    /// Containers' networks are not reached by the proxy. Those made later are private addresses, too, and
    /// known by the next look.
    async fn note_subnets(&self, boxes: &Boxes) {
        match boxes.subnets().await {
            Ok(all) => {
                self.state().subnets = all.iter().filter_map(|net| net.parse().ok()).collect();
                self.surround();
            }
            Err(e) => tracing::debug!("the engine's networks are not known: {e}"),
        }
    }

    /// What the engine says, if it says it soon: the first thing a person asks is right then.
    pub async fn look_once(self: &Arc<Self>) {
        if let Ok(boxes) = self.engine().await {
            self.look(&boxes).await;
        }
    }

    /// Removes what a host that was killed had begun to make. Twice, because the engine finishes what
    /// it was asked for although nobody waits. Boxes this host knows nothing of are left alone.
    pub fn take_back(self: &Arc<Self>, boxes: &Boxes, id: BoxId, workspace: PathBuf) {
        if self.state().reserved.values().any(|r| *r == id) {
            return;
        }
        let (core, boxes) = (self.clone(), boxes.clone());
        self.tasks.spawn(async move {
            tracing::warn!("removing box {id}: it was never finished");
            for pause in [Duration::ZERO, SECOND_LOOK] {
                tokio::select! {
                    () = core.stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                match boxes.sweep(&id).await {
                    Ok(removal) if removal.failed.is_empty() => {}
                    // The next look at the engine finds it again.
                    Ok(removal) => {
                        return tracing::warn!(failed = ?removal.failed, "box {id} is not all gone");
                    }
                    Err(e) => return tracing::warn!("box {id} could not be removed: {e}"),
                }
            }
            if let Err(e) = boxes::unpin_all(&workspace, &id).await {
                tracing::warn!("{e}");
            }
            for dir in home::box_dirs(&core.home, &id) {
                let _ = std::fs::remove_dir_all(dir);
            }
            if let Err(e) = core.store.taken_back(&id).await {
                tracing::warn!("{e}");
            }
        });
    }

    /// A box was getting another container when a host was killed: the one that is written down counts.
    fn tidy_soon(self: &Arc<Self>, boxes: &Boxes, record: Record) {
        let (core, boxes) = (self.clone(), boxes.clone());
        self.tasks.spawn(async move {
            let Ok(_turn) = core.turn(&record.id).await else { return };
            // It may have been given the other one meanwhile.
            let Some(record) = core.record(&record.id) else { return };
            if let Err(e) = boxes.tidy(&record).await {
                tracing::warn!("box {} has a container too many: {e}", record.name);
            }
        });
    }

    /// Somebody has put a container on a network. One of ours may be meant to have none.
    fn attached(self: &Arc<Self>, container: &str) {
        let ours = |known: &&crate::core::Known| {
            known.record.container == container && known.record.egress.is_controlled()
        };
        let Some(id) = self.state().boxes.values().find(ours).map(|known| known.record.id.clone())
        else {
            return;
        };
        let core = self.clone();
        self.tasks.spawn(async move {
            let Ok((boxes, record)) = core.reach(&id).await else { return };
            if let Err(error) = boxes.prove_unattached(&record).await {
                core.note_unsafe(&record, &error).await;
            }
        });
    }

    fn lost(&self, why: String) {
        let hint = Some("start the container engine; boxes come back by themselves.".to_owned());
        self.set_engine(EngineStatus { reachable: false, detail: why, hint });
        let ids: Vec<BoxId> = self.state().boxes.keys().cloned().collect();
        for id in ids {
            // It may be started anew while nobody looks, and then waits for a token.
            self.state().set_released(&id, false);
            self.with_known(&id, |known| {
                let up = matches!(known.state, BoxState::Running | BoxState::Paused);
                known.ending.lost(up, Instant::now());
            });
            self.set_box_state(&id, BoxState::Unknown);
        }
    }

    fn is_past(&self, id: &BoxId, at: SystemTime) -> bool {
        let state = self.state();
        state.boxes.get(id).is_some_and(|known| !known.starting && known.ending.is_past(at))
    }

    /// The engine told of something that seems to be over. Its clock may only be slow, so what it says
    /// now counts; the story of it does not.
    async fn look_at(self: &Arc<Self>, boxes: &Boxes, id: &BoxId) {
        let Some(record) = self.record(id) else { return };
        let Ok(state) = boxes.state_of(&record).await else { return };
        if !self.state().boxes.get(id).is_some_and(|known| known.starting || known.state == state) {
            if state == BoxState::Stopped {
                self.state().set_released(id, false);
            }
            self.set_box_state(id, state);
        }
    }

    fn changed(self: &Arc<Self>, id: &BoxId, change: Change) {
        if change == Change::OutOfMemory {
            self.out_of_memory(id);
            return;
        }
        let before = {
            let state = self.state();
            let Some(known) = state.boxes.get(id) else { return };
            if known.starting {
                return;
            }
            known.state
        };
        let now = match change {
            Change::Started | Change::Unpaused => BoxState::Running,
            Change::Died { .. } => BoxState::Stopped,
            Change::Paused => BoxState::Paused,
            Change::Destroyed => BoxState::Missing,
            Change::Signalled { signal } => {
                self.with_known(id, |known| known.ending.signalled(signal));
                return;
            }
            Change::OutOfMemory => return,
        };
        self.with_known(id, |known| match change {
            Change::Died { code } => known.ending.died(code, Instant::now(), clock()),
            Change::Destroyed => known.ending.removed(Instant::now(), clock()),
            _ => {}
        });
        if now == BoxState::Stopped {
            self.state().set_released(id, false);
        }
        self.set_box_state(id, now);
        if change == Change::Unpaused {
            self.keep_bridge(id);
        }
        // Started by somebody else: it waits for its token.
        if change == Change::Started && before != BoxState::Running {
            self.adopt_soon(id);
        }
    }

    fn adopt_soon(self: &Arc<Self>, id: &BoxId) {
        self.state().set_released(id, true);
        let (core, id) = (self.clone(), id.clone());
        self.tasks.spawn(async move {
            if let Err(e) = core.adopt(&id).await {
                core.state().set_released(&id, false);
                tracing::warn!("box {id} could not be taken over: {e}");
            }
        });
    }
}
