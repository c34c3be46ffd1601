//! Boxes nobody uses are frozen when too many run.
//!
//! Nothing is looked at while no more boxes run than may. Above that, the box that has been idle the
//! longest goes first, and never one that somebody uses, that asks something, or that computes.

use crate::core::Core;
use protocol::BoxId;
use protocol::boxes::{BoxState, WhyDown};
use protocol::sessions::AgentState;
use relay::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked while too many boxes run and nothing else tells of a change.
const LOOK: Duration = Duration::from_secs(60);
/// How soon at the earliest, whatever the settings say.
const SOONEST: Duration = Duration::from_secs(5);
/// A box that uses more of one processor than this is at work.
const AT_WORK: f64 = 10.0;
/// How long the engine may take to tell that.
const MEASURE: Duration = Duration::from_secs(10);

impl Core {
    /// Since when nothing has happened in a running box; none when it must not be frozen now.
    pub fn idle_since(&self, id: &BoxId) -> Option<Instant> {
        if self.broker.pending().iter().any(|question| question.box_id == *id) {
            return None;
        }
        let called = match self.relay.activity(id) {
            relay::Activity::UnderWay => return None,
            relay::Activity::Last(at) => at,
        };
        let state = self.state();
        let known = state.boxes.get(id)?;
        let at_it = |state: AgentState| state.is_at_work() || state.needs_input();
        let used = known.sessions > 0
            || known.starting
            || known.landing.is_some()
            || known.busy.is_some()
            || known.agents.values().any(|(state, _)| at_it(*state));
        if known.state != BoxState::Running || !known.ready || used {
            return None;
        }
        Some(called.map_or(known.active, |called| called.max(known.active)))
    }

    /// Keeps the number of running boxes down until the host stops.
    pub async fn keep_few_running(self: Arc<Self>) {
        if !self.settings.autopause.enabled {
            return;
        }
        loop {
            let again = self.rest_some().await;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.nudge.notified() => {}
                () = tokio::time::sleep(again.unwrap_or_default()), if again.is_some() => {}
            }
        }
    }

    /// Freezes as many as may be; when to look again, if there is a reason to.
    async fn rest_some(self: &Arc<Self>) -> Option<Duration> {
        let set = &self.settings.autopause;
        let limit = Duration::from_secs(u64::from(set.idle_minutes) * 60);
        let running = self.running();
        let mut excess = running.len().checked_sub(set.max_running_boxes as usize)?;
        let mut idle = Vec::new();
        for (id, created_at) in running {
            if let Some(since) = self.idle_since(&id) {
                idle.push((since, created_at, id));
            }
        }
        idle.sort();
        let mut next = limit.clamp(SOONEST, LOOK);
        for (since, _, id) in idle {
            if excess == 0 {
                return None;
            }
            match limit.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
                Some(left) => {
                    next = next.min(left);
                    break;
                }
                None if self.rest_one(&id, since).await => excess -= 1,
                None => {}
            }
        }
        (excess > 0).then_some(next)
    }

    fn running(&self) -> Vec<(BoxId, u64)> {
        let state = self.state();
        let running = state.boxes.values().filter(|known| known.state == BoxState::Running);
        running.map(|known| (known.record.id.clone(), known.record.created_at)).collect()
    }

    /// Whether the box was frozen.
    async fn rest_one(self: &Arc<Self>, id: &BoxId, since: Instant) -> bool {
        if self.is_at_work(id).await {
            self.with_known(id, |known| known.active = Instant::now());
            return false;
        }
        let Ok(_turn) = self.turn(id).await else { return false };
        // Somebody may have come meanwhile.
        if self.idle_since(id) != Some(since) {
            return false;
        }
        match self.pause_box(id, WhyDown::Rest).await {
            Ok(_) => {
                self.tell_rest(id, since).await;
                true
            }
            Err(error) => {
                tracing::warn!("box {id} could not be paused: {error}");
                self.with_known(id, |known| known.active = Instant::now());
                false
            }
        }
    }

    /// An engine that does not tell leaves the box as it is.
    async fn is_at_work(&self, id: &BoxId) -> bool {
        let Ok((boxes, record)) = self.reach(id).await else { return true };
        let mut samples = boxes.samples(&record);
        let measured = tokio::time::timeout(MEASURE, async {
            use futures_util::StreamExt;
            while let Some(Ok(sample)) = samples.next().await {
                if let Some(share) = sample.cpu_percent {
                    return Some(share);
                }
            }
            None
        });
        measured.await.ok().flatten().is_none_or(|share| share > AT_WORK)
    }

    async fn tell_rest(&self, id: &BoxId, since: Instant) {
        let Some(view) = self.view(id) else { return };
        let minutes = since.elapsed().as_secs() / 60;
        let state = view.state.as_str();
        let entry = Entry {
            box_id: Some(id.clone()),
            kind: "box-rested",
            summary: format!("Box {} {state}: nobody used it for {minutes} min", view.name),
            data: serde_json::json!({ "state": state, "idleMinutes": minutes }),
        };
        if let Err(error) = self.store.record(entry).await {
            tracing::warn!("{error}");
        }
    }
}
