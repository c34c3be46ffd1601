//! How often something may happen in a minute.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Fills up evenly; as much as a minute's worth may be taken at once.
pub(crate) struct Bucket {
    most: f64,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub fn new(per_minute: u32) -> Self {
        let most = f64::from(per_minute);
        Self { most, state: Mutex::new((most, Instant::now())) }
    }

    /// Takes one; false when there is none left.
    pub fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(state.1).as_secs_f64();
        let filled = (state.0 + passed * self.most / 60.0).min(self.most);
        let enough = filled >= 1.0;
        *state = (if enough { filled - 1.0 } else { filled }, now);
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_minutes_worth_at_once_and_then_a_trickle() {
        let bucket = Bucket::new(30);
        let start = Instant::now();
        assert_eq!((0..50).filter(|_| bucket.take_at(start)).count(), 30);
        assert!(!bucket.take_at(start + Duration::from_secs(1)));
        assert!(bucket.take_at(start + Duration::from_secs(4)));
    }
}
