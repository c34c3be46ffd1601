//! What boxes told: the newest thousand events, in memory and on disk.
//!
//! A box posts as often as it likes within its rate, so keeping one must cost nothing: it goes into
//! a ring, and a task writes what is new to the store a moment later. A noisy box only ever pushes
//! out its own events: when the ring is full, the box that holds the most loses its oldest.

use crate::asks::without_asks;
use crate::core::Core;
use crate::store::{Store, StoreError, now};
use protocol::BoxId;
use protocol::control::HostEvent;
use protocol::events::{BoxEvent, JsonText};
use protocol::rpc::EventPost;
use protocol::sessions::AGENT_EVENT;
use relay::EventLog;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Events kept, of all boxes together.
const KEPT: usize = 1000;
/// What one box's events may weigh.
const WEIGHT: usize = 1024 * 1024;
/// What the events of one answer may weigh.
const MAX_ANSWER: usize = 3 * 1024 * 1024;
/// New events are written together when nothing has come for this long.
const PAUSE: Duration = Duration::from_millis(50);

/// Events of all boxes.
pub struct Events {
    core: Weak<Core>,
    ring: Mutex<Ring>,
    news: Notify,
}

#[derive(Default)]
struct Ring {
    kept: VecDeque<BoxEvent>,
    held: HashMap<BoxId, Held>,
    /// The highest number given, and the highest on disk.
    last: u64,
    saved: u64,
    /// On disk, and no longer kept.
    dropped: Vec<u64>,
    statuses: HashMap<BoxId, JsonText>,
}

/// What a box has in the ring.
#[derive(Debug, Default)]
struct Held {
    count: usize,
    weight: usize,
}

fn weight(event: &BoxEvent) -> usize {
    event.kind.len() + event.payload.as_ref().map_or(0, |p| p.as_str().len())
}

impl Ring {
    fn push(&mut self, event: BoxEvent) {
        let id = event.box_id.clone();
        let held = self.held.entry(id.clone()).or_default();
        held.count += 1;
        held.weight += weight(&event);
        self.kept.push_back(event);
        while self.held.get(&id).is_some_and(|held| held.weight > WEIGHT) {
            self.drop_oldest_of(&id);
        }
        if self.kept.len() > KEPT {
            let most = self.held.iter().max_by_key(|(_, held)| held.count);
            if let Some(most) = most.map(|(id, _)| id.clone()) {
                self.drop_oldest_of(&most);
            }
        }
    }

    fn drop_oldest_of(&mut self, id: &BoxId) {
        let at = self.kept.iter().position(|e| e.box_id == *id);
        let Some(event) = at.and_then(|at| self.kept.remove(at)) else {
            self.held.remove(id);
            return;
        };
        if event.id <= self.saved {
            self.dropped.push(event.id);
        }
        if let Some(held) = self.held.get_mut(id) {
            held.count -= 1;
            held.weight -= weight(&event);
            if held.count == 0 {
                self.held.remove(id);
            }
        }
    }
}

impl Events {
    pub fn new(core: Weak<Core>) -> Self {
        Self { core, ring: Mutex::default(), news: Notify::new() }
    }

    /// What an earlier host kept.
    pub async fn bring_back(&self, store: &Store) -> Result<(), StoreError> {
        let (events, last) = store.events().await?;
        let mut ring = self.ring();
        ring.last = last.max(events.last().map_or(0, |e| e.id));
        ring.saved = ring.last;
        for event in events {
            ring.push(event);
        }
        Ok(())
    }

    /// The newest events above `since`, oldest first.
    pub fn since(&self, id: Option<&BoxId>, since: u64, limit: usize) -> Vec<BoxEvent> {
        let ring = self.ring();
        let wanted = |e: &&BoxEvent| e.id > since && id.is_none_or(|id| e.box_id == *id);
        let mut room = MAX_ANSWER;
        let fits = |e: &&BoxEvent| {
            let fits = weight(e) <= room;
            room = room.saturating_sub(weight(e));
            fits
        };
        let newest = ring.kept.iter().rev().filter(wanted).take(limit).take_while(fits);
        let mut events: Vec<BoxEvent> = newest.cloned().collect();
        events.reverse();
        events
    }

    /// What a box's agents said, oldest first.
    pub fn of_agents(&self) -> Vec<BoxEvent> {
        self.ring().kept.iter().filter(|e| e.kind == AGENT_EVENT).cloned().collect()
    }

    /// A box is gone, and what it told with it.
    pub fn forget(&self, id: &BoxId) {
        let mut ring = self.ring();
        ring.kept.retain(|e| e.box_id != *id);
        ring.held.remove(id);
        ring.statuses.remove(id);
    }

    /// Writes down what comes, until the host stops; then what is left.
    pub async fn write(self: Arc<Self>, store: Store, stop: CancellationToken) {
        loop {
            let stopping = tokio::select! {
                () = stop.cancelled() => true,
                () = self.news.notified() => {
                    tokio::time::sleep(PAUSE).await;
                    false
                }
            };
            if let Err(e) = self.save(&store).await {
                tracing::warn!("events of boxes could not be written: {e}");
            }
            if stopping {
                return;
            }
        }
    }

    async fn save(&self, store: &Store) -> Result<(), StoreError> {
        let (events, dropped, statuses) = {
            let mut ring = self.ring();
            let new = ring.kept.iter().filter(|e| e.id > ring.saved).cloned().collect::<Vec<_>>();
            ring.saved = ring.last;
            (new, std::mem::take(&mut ring.dropped), std::mem::take(&mut ring.statuses))
        };
        for (id, status) in &statuses {
            store.put_status(id, status.as_str()).await?;
            if let Some(core) = self.core.upgrade() {
                core.send(HostEvent::UnitsChanged { id: id.clone() });
            }
        }
        store.put_events(events, dropped).await
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventLog for Events {
    fn keep(&self, id: &BoxId, post: EventPost) -> u64 {
        let EventPost { kind, ts, payload } = post;
        let (payload, asks) = match kind.as_str() {
            AGENT_EVENT => without_asks(payload),
            _ => (payload, None),
        };
        let event = {
            let mut ring = self.ring();
            ring.last += 1;
            let payload = payload.map(JsonText::from);
            let (box_id, received_at) = (id.clone(), now());
            let event = BoxEvent { id: ring.last, box_id, kind, received_at, ts, payload };
            ring.push(event.clone());
            event
        };
        self.news.notify_one();
        let number = event.id;
        if let Some(core) = self.core.upgrade() {
            core.heard(&event, asks);
            core.send(HostEvent::Told { event });
        }
        number
    }

    fn status(&self, id: &BoxId, status: JsonText) {
        self.ring().statuses.insert(id.clone(), status);
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(events: &Events, id: &str, kind: &str) -> u64 {
        let post = EventPost { kind: kind.into(), ts: None, payload: None };
        events.keep(&id.parse().unwrap(), post)
    }

    #[test]
    fn relay_19_06_the_ring_is_bounded_and_shared() {
        let events = Events::new(Weak::new());
        for n in 0..1001 {
            post(&events, if n % 2 == 0 { "b00000001" } else { "b00000002" }, "tick");
        }
        let kept = events.since(None, 0, usize::MAX);
        assert_eq!(kept.len(), 1000);
        assert_eq!((kept[0].id, kept[999].id), (2, 1001));
        let ring = events.ring();
        assert!(ring.held.values().all(|held| held.count == 500), "{:?}", ring.held);
    }

    #[test]
    fn relay_a38_a_noisy_box_pushes_out_its_own_events_only() {
        let events = Events::new(Weak::new());
        post(&events, "b00000002", "precious");
        for _ in 0..5000 {
            post(&events, "b00000001", "noise");
        }
        let quiet: BoxId = "b00000002".parse().unwrap();
        assert_eq!(events.since(Some(&quiet), 0, 10).len(), 1);
        assert_eq!(events.since(None, 0, usize::MAX).len(), 1000);
    }

    #[test]
    fn relay_a38_a_box_cannot_fill_the_memory() {
        let events = Events::new(Weak::new());
        let id: BoxId = "b00000001".parse().unwrap();
        let text = format!("[{}0]", "{\"\":0},".repeat(8000));
        for _ in 0..200 {
            let payload = serde_json::value::RawValue::from_string(text.clone()).ok();
            events.keep(&id, EventPost { kind: "x".into(), ts: None, payload });
        }
        let kept = events.since(None, 0, usize::MAX);
        let bytes: usize = kept.iter().map(weight).sum();
        assert!(bytes <= WEIGHT && kept.len() >= 10, "{bytes} bytes in {}", kept.len());
    }

    #[tokio::test]
    async fn events_survive_a_restart_and_numbers_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("agentbox.db")).unwrap();
        let events = Events::new(Weak::new());
        for _ in 0..1500 {
            post(&events, "b00000001", "tick");
        }
        events.save(&store).await.unwrap();
        post(&events, "b00000001", "last");
        events.save(&store).await.unwrap();

        let again = Events::new(Weak::new());
        again.bring_back(&store).await.unwrap();
        assert_eq!(again.since(None, 0, usize::MAX), events.since(None, 0, usize::MAX));
        assert_eq!(post(&again, "b00000001", "next"), 1502);
    }
}
