//! Holds a stream back while its page has not taken what it got: a box may say more than a page can draw.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What may be on its way to a page.
const MOST: usize = 1024 * 1024;

#[derive(Default)]
pub struct Flow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    on_the_way: usize,
    closed: bool,
}

impl Flow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, then counts these bytes. False when nobody wants them any more.
    pub fn room_for(&self, bytes: usize) -> bool {
        let full = |state: &mut State| !state.closed && state.on_the_way >= MOST;
        let waited = self.changed.wait_while(self.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.on_the_way += bytes;
        !state.closed
    }

    pub fn taken(&self, bytes: usize) {
        let mut state = self.lock();
        state.on_the_way = state.on_the_way.saturating_sub(bytes);
        self.changed.notify_all();
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_flood_waits_for_the_page() {
        let flow = Arc::new(Flow::default());
        let (tx, rx) = mpsc::channel();
        let there = flow.clone();
        let flood = std::thread::spawn(move || {
            while there.room_for(MOST / 2) {
                tx.send(()).unwrap();
            }
        });
        let wait = Duration::from_millis(300);
        for _ in 0..2 {
            rx.recv_timeout(Duration::from_secs(10)).unwrap();
        }
        assert!(rx.recv_timeout(wait).is_err(), "a page that takes nothing gets no more");
        flow.taken(MOST / 2);
        rx.recv_timeout(Duration::from_secs(10)).unwrap();
        flow.close();
        flood.join().unwrap();
    }
}
