//! How often a box may knock.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket: `burst` at once, `per_minute` over time.
pub struct Bucket {
    burst: f64,
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub fn new(per_minute: u32, burst: u32) -> Self {
        let burst = f64::from(burst);
        let state = Mutex::new((burst, Instant::now()));
        Self { burst, per_second: f64::from(per_minute) / 60.0, state }
    }

    /// Takes one; false when there is none left.
    pub fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(state.1).as_secs_f64();
        let filled = (state.0 + passed * self.per_second).min(self.burst);
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
    fn a_burst_then_a_trickle() {
        let bucket = Bucket::new(60, 3);
        let start = Instant::now();
        assert_eq!((0..5).filter(|_| bucket.take_at(start)).count(), 3);
        assert!(!bucket.take_at(start + Duration::from_millis(900)));
        assert!(bucket.take_at(start + Duration::from_millis(2100)));
    }
}
