//! Boxes put to rest and brought back: pause, wake, recover, and being there for whoever comes.
//!
//! One thing at a time happens to a box: whoever puts it to rest or wakes it holds its turn. Whoever
//! uses a box first says so ([`Core::session`]) and then wakes it ([`Core::awake`]), so that it is
//! not frozen in between.

use crate::api::Api;
use crate::core::{Core, Known};
use crate::down::TakingDown;
use crate::engine::control_error;
use boxes::Rest;
use futures_util::StreamExt;
use protocol::BoxId;
use protocol::boxes::{BoxState, BoxView, WhyDown};
use protocol::control::{ControlError, ErrorCode, HostEvent, Target};
use protocol::looking::{RecoverOutcome, Recovered, Recovery, Waited};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// Boxes that are brought back at once.
const AT_ONCE: usize = 4;

type Reply<T> = Result<T, ControlError>;

/// Somebody uses a box: it is not frozen for being idle.
pub struct Session {
    core: Arc<Core>,
    id: BoxId,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.core.with_known(&self.id, |known| {
            known.sessions = known.sessions.saturating_sub(1);
            known.active = Instant::now();
            known.used_at = crate::store::now();
        });
        self.core.nudge.notify_one();
    }
}

impl Core {
    pub(crate) fn with_known<T>(
        &self,
        id: &BoxId,
        work: impl FnOnce(&mut Known) -> T,
    ) -> Option<T> {
        self.state().boxes.get_mut(id).map(work)
    }

    /// Somebody uses the box for as long as this is kept.
    pub fn session(self: &Arc<Self>, id: &BoxId) -> Session {
        self.with_known(id, |known| known.sessions += 1);
        Session { core: self.clone(), id: id.clone() }
    }

    /// Waits until nothing else happens to the box.
    pub(crate) async fn turn(&self, id: &BoxId) -> Reply<OwnedMutexGuard<()>> {
        let turn = self.with_known(id, |known| known.turn.clone());
        let turn = turn.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        Ok(turn.lock_owned().await)
    }

    /// Brings a box up for somebody who wants something of it: a paused one goes on, a stopped one is
    /// started.
    pub async fn awake(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        let _turn = self.turn(id).await?;
        if self.box_state(id) == BoxState::Unknown {
            let (boxes, record) = self.reach(id).await?;
            let state = boxes.state_of(&record).await.map_err(control_error)?;
            self.set_box_state(id, state);
        }
        match self.box_state(id) {
            BoxState::Paused => self.wake_box(id).await,
            BoxState::Stopped => self.start_box(id).await,
            BoxState::Missing => Err(missing()),
            BoxState::Creating | BoxState::Running | BoxState::Unknown => Ok(()),
        }
    }

    /// Lets a paused box go on, and starts none that was stopped meanwhile. A page asks for many
    /// things at once; the box is woken by the first.
    pub(crate) async fn thaw(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        let _turn = self.turn(id).await?;
        match self.box_state(id) {
            BoxState::Paused => self.wake_box(id).await,
            _ => Ok(()),
        }
    }

    async fn wake_box(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        // Held still for a capture: it goes on by itself, and whoever comes waits for that.
        if self.is_busy(id) {
            return Ok(());
        }
        let (boxes, record) = self.reach(id).await?;
        boxes.wake(&record).await.map_err(control_error)?;
        self.with_known(id, |known| known.active = Instant::now());
        self.set_box_state(id, BoxState::Running);
        self.keep_bridge(id);
        self.store.put_rest(id, false).await?;
        Ok(())
    }

    /// Freezes a box; where the engine cannot do that, it is stopped for that reason. The caller holds
    /// its turn.
    pub(crate) async fn pause_box(self: &Arc<Self>, id: &BoxId, why: WhyDown) -> Reply<BoxState> {
        let (boxes, record) = self.reach(id).await?;
        let _down = TakingDown::mark(self, id, why);
        let rest = boxes.pause(&record).await.map_err(|error| match error {
            boxes::Error::NoContainer => missing(),
            error => control_error(error),
        })?;
        let state = match rest {
            Rest::Paused => BoxState::Paused,
            Rest::Stopped => BoxState::Stopped,
        };
        self.set_box_state(id, state);
        Ok(state)
    }

    async fn recover_box(self: &Arc<Self>, id: &BoxId) -> Reply<RecoverOutcome> {
        let before = self.box_state(id);
        if before != BoxState::Running {
            self.awake(id).await?;
            let woken = before == BoxState::Paused;
            return Ok(if woken { RecoverOutcome::Woken } else { RecoverOutcome::Started });
        }
        if self.with_known(id, |known| known.ready) == Some(true) {
            return Ok(RecoverOutcome::Fine);
        }
        let _turn = self.turn(id).await?;
        self.adopt(id).await?;
        self.state().set_released(id, true);
        Ok(RecoverOutcome::TakenOver)
    }
}

pub(crate) fn missing() -> ControlError {
    ControlError::new(ErrorCode::Failed, "the box has no container any more; was it removed?")
        .hint("agentbox destroy forgets it, agentbox create makes a new one.")
}

impl Api {
    /// Freezes a box; where the engine cannot do that, it is stopped.
    pub async fn pause_box(&self, target: Target) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        self.core.pause_box(&id, WhyDown::Person).await?;
        self.core.store.put_rest(&id, true).await?;
        self.view(&id)
    }

    /// Lets a paused box go on. One that runs is as wanted; a stopped one has to be started.
    pub async fn unpause_box(&self, target: Target) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        self.core.wake_box(&id).await?;
        self.view(&id)
    }

    /// Brings back one box, or all that nobody has put to rest: after a restart of the engine or of
    /// the computer.
    pub async fn recover(&self, target: Option<Target>) -> Reply<Recovery> {
        let one = target.map(|target| self.find(&target)).transpose()?;
        let boxes = self.core.engine().await?;
        let unfinished = self.core.store.unfinished().await?;
        // What the engine has now, and half-made boxes taken back.
        self.core.look_now(&boxes).await.map_err(control_error)?;
        let resting = match one {
            Some(_) => std::collections::HashSet::new(),
            None => self.core.store.resting().await?,
        };
        let ids: Vec<BoxId> = match one {
            Some(id) => vec![id],
            None => self.core.views().into_iter().map(|view| view.id).collect(),
        };
        let bring = |id: BoxId| {
            let (core, rests) = (self.core.clone(), resting.contains(&id));
            async move {
                let rests = rests && core.box_state(&id) != BoxState::Running;
                let done =
                    if rests { Ok(RecoverOutcome::Left) } else { core.recover_box(&id).await };
                let (outcome, detail) = match done {
                    Ok(outcome) => (outcome, None),
                    Err(error) => {
                        let why = std::iter::once(error.message).chain(error.hints);
                        (RecoverOutcome::Failed, Some(why.collect::<Vec<_>>().join("; ")))
                    }
                };
                Some(Recovered { view: core.view(&id)?, outcome, detail })
            }
        };
        let brought = futures_util::stream::iter(ids.into_iter().map(bring)).buffered(AT_ONCE);
        let brought: Vec<Option<Recovered>> = brought.collect().await;
        let making: Vec<BoxId> = self.core.state().reserved.values().cloned().collect();
        let half = unfinished.into_iter().map(|(id, _)| id).filter(|id| !making.contains(id));
        Ok(Recovery { boxes: brought.into_iter().flatten().collect(), taken_back: half.collect() })
    }

    /// Waits until a box runs and was let go. A paused one is woken for it.
    pub async fn wait_for(&self, target: Target, seconds: u32) -> Reply<Waited> {
        let id = self.find(&target)?;
        let mut events = self.core.subscribe();
        let end = tokio::time::Instant::now() + Duration::from_secs(u64::from(seconds));
        if self.core.box_state(&id) == BoxState::Paused {
            self.core.awake(&id).await?;
        }
        loop {
            let view = self.view(&id)?;
            let ready = self.core.with_known(&id, |known| known.ready) == Some(true);
            if ready && view.state == BoxState::Running {
                return Ok(Waited { view, ready: true, why: None });
            }
            if view.state == BoxState::Missing {
                let why = Some("it has no container any more".to_owned());
                return Ok(Waited { view, ready: false, why });
            }
            let news = tokio::time::timeout_at(end, async {
                // Falling behind is news as well.
                while let Ok(event) = events.recv().await {
                    if matches!(&event, HostEvent::BoxChanged { view } if view.id == id)
                        || matches!(&event, HostEvent::BoxRemoved { id: gone } if *gone == id)
                    {
                        return;
                    }
                }
            });
            if news.await.is_err() {
                let why = match view.state {
                    BoxState::Running => "it runs, but was not let go yet".to_owned(),
                    state => format!("it is {}", state.as_str()),
                };
                return Ok(Waited { view, ready: false, why: Some(why) });
            }
        }
    }
}
