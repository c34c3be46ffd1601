//! Where lines of traffic go: to disk in batches, and to whoever follows them.
//!
//! A line is taken without waiting, from connections that must not wait. When more come than can be
//! written, they are counted, and the count is written.

use crate::store::Store;
use egress::ports::Log;
use protocol::BoxId;
use protocol::egress::{Reason, Traffic, TrafficAction, TrafficKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Lines that wait to be written.
const WAITING: usize = 4096;
/// Written at once.
const BATCH: usize = 256;
/// What a reader waits for lines on their way.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines about what was refused that are taken of one box in [`WHILE`]; further ones are counted. So a box that
/// is refused a lot leaves room for what others have to say.
const REFUSED: u32 = 500;
const WHILE: Duration = Duration::from_secs(10);
/// Lines between two looks at what is old.
const TRIM_EVERY: usize = 2048;

pub struct Lines {
    waiting: mpsc::Sender<Traffic>,
    /// Lines that were not taken, of each box.
    dropped: Mutex<BTreeMap<BoxId, u64>>,
    live: broadcast::Sender<Traffic>,
    /// How many were written, for those who read what they just caused.
    written: watch::Sender<u64>,
    taken: AtomicU64,
    refused: Mutex<HashMap<(BoxId, bool), (Instant, u32)>>,
}

impl Lines {
    pub fn new() -> (Self, mpsc::Receiver<Traffic>) {
        let (waiting, inbox) = mpsc::channel(WAITING);
        let live = broadcast::channel(1024).0;
        let written = watch::channel(0).0;
        let (dropped, taken) = (Mutex::default(), AtomicU64::new(0));
        let lines = Self { waiting, dropped, live, written, taken, refused: Mutex::default() };
        (lines, inbox)
    }

    pub fn follow(&self) -> broadcast::Receiver<Traffic> {
        self.live.subscribe()
    }

    /// Until everything that was noted before is written, or a moment has passed.
    pub async fn settled_within(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.settled()).await;
    }

    /// Until everything that was noted before is written.
    async fn settled(&self) {
        let wanted = self.taken.load(Ordering::Acquire);
        let mut written = self.written.subscribe();
        let _ = written.wait_for(|written| *written >= wanted).await;
    }

    pub async fn write(
        &self,
        store: Store,
        mut inbox: mpsc::Receiver<Traffic>,
        stop: CancellationToken,
    ) {
        let (mut batch, mut since_trim) = (Vec::new(), TRIM_EVERY);
        loop {
            let count = tokio::select! {
                count = inbox.recv_many(&mut batch, BATCH) => count,
                () = stop.cancelled() => {
                    inbox.close();
                    inbox.recv_many(&mut batch, WAITING).await
                }
            };
            if count == 0 {
                return;
            }
            let dropped = std::mem::take(&mut *self.dropped());
            batch.extend(dropped.into_iter().map(|(of, count)| lost(&of, count)));
            if let Err(e) = store.add_traffic(std::mem::take(&mut batch)).await {
                tracing::warn!("lines of traffic are lost: {e}");
            }
            self.written.send_modify(|written| *written += count as u64);
            since_trim += count;
            if since_trim >= TRIM_EVERY {
                since_trim = 0;
                if let Err(e) = store.trim_traffic().await {
                    tracing::warn!("old lines of traffic stay: {e}");
                }
            }
        }
    }
}

impl Lines {
    fn dropped(&self) -> MutexGuard<'_, BTreeMap<BoxId, u64>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_one(&self, of: BoxId) {
        *self.dropped().entry(of).or_default() += 1;
    }

    /// One more about what this box was refused than is taken of it for now.
    fn is_too_much(&self, line: &Traffic) -> bool {
        if line.action != TrafficAction::Blocked {
            return false;
        }
        // What is telling is not hidden behind what is not.
        let grave = matches!(
            line.reason,
            Some(Reason::SecretExfil | Reason::PlaceholderMisuse | Reason::PrivateAddress)
        );
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let (since, count) = refused.entry((line.box_id.clone(), grave)).or_insert((now, 0));
        if now.duration_since(*since) >= WHILE {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count > REFUSED
    }
}

impl Log for Lines {
    fn note(&self, line: Traffic) {
        let of = line.box_id.clone();
        if self.is_too_much(&line) {
            return self.drop_one(of);
        }
        let _ = self.live.send(line.clone());
        match self.waiting.try_send(line) {
            Ok(()) => {
                self.taken.fetch_add(1, Ordering::AcqRel);
            }
            Err(_) => self.drop_one(of),
        }
    }
}

/// A line about lines.
fn lost(of: &BoxId, count: u64) -> Traffic {
    let detail = format!("audit_dropped: {count} lines came too quickly to be written");
    said(of, TrafficKind::Alert, egress::new_line_id(), crate::store::now(), detail)
}

/// What is no request, in the same list.
pub fn said(
    of: &BoxId,
    kind: TrafficKind,
    id: String,
    at: protocol::Millis,
    detail: String,
) -> Traffic {
    Traffic {
        id,
        at,
        box_id: of.clone(),
        kind,
        action: TrafficAction::Noted,
        reason: None,
        detail: Some(detail),
        scheme: None,
        host: None,
        port: None,
        method: None,
        path: None,
        query: Vec::new(),
        rule: None,
        injected: Vec::new(),
        status: None,
        bytes_up: 0,
        bytes_down: 0,
        ms: 0,
        proto: None,
        remote: None,
        approval: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_one_box_is_refused_leaves_room_for_what_others_say() {
        let (lines, mut inbox) = Lines::new();
        let line = |of: &str, n: usize, action| {
            let of = of.parse().unwrap();
            let mut line = said(&of, TrafficKind::Request, n.to_string(), 0, String::new());
            line.action = action;
            line
        };
        for n in 0..100_000 {
            lines.note(line("b00000001", n, TrafficAction::Blocked));
        }
        lines.note(line("b00000001", 1, TrafficAction::Allowed));
        lines.note(line("b00000002", 1, TrafficAction::Blocked));
        let mut all = Vec::new();
        inbox.recv_many(&mut all, usize::MAX).await;
        assert_eq!(all.len(), REFUSED as usize + 2);
        let dropped = [("b00000001".parse().unwrap(), 100_000 - u64::from(REFUSED))];
        assert_eq!(*lines.dropped(), BTreeMap::from(dropped));
        let mut telling = line("b00000001", 2, TrafficAction::Blocked);
        telling.reason = Some(Reason::SecretExfil);
        lines.note(telling);
        assert!(inbox.try_recv().is_ok(), "what is telling is still taken");
    }
}
