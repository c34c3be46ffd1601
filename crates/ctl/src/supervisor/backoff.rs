//! How long to wait before a service is started again. Pure: times come in from outside.

use super::unit::{Backoff, Restart};
use std::time::Duration;

/// Where a service is in its row of attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Attempts {
    /// The pause before the last start.
    last: Option<Duration>,
    /// Ends in a row.
    pub failures: u32,
}

/// What follows an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Retry(Duration),
    /// It ended well and is not to run again.
    Stopped,
    Crashed,
}

impl Attempts {
    /// A service ended: `well` means with code 0, of itself; `uptime` is how long others could rely
    /// on it.
    pub fn ended(
        &mut self,
        well: bool,
        uptime: Duration,
        restart: Restart,
        backoff: &Backoff,
    ) -> Next {
        if uptime >= backoff.reset_after {
            *self = Self::default();
        }
        let again = match restart {
            Restart::Always => true,
            Restart::OnFailure => !well,
            Restart::Never => false,
        };
        if !again {
            return if well { Next::Stopped } else { Next::Crashed };
        }
        // However well it ended: it was to run for good.
        if backoff.max_attempts.is_some_and(|most| self.failures >= most) {
            return Next::Crashed;
        }
        self.failures += 1;
        let pause = match self.last {
            None => backoff.initial,
            Some(last) => last
                .max(Duration::from_millis(1))
                .mul_f64(backoff.factor.clamp(1.0, 1000.0))
                .min(backoff.max),
        };
        self.last = Some(pause);
        Next::Retry(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TIME: Duration = Duration::ZERO;

    fn delays(attempts: &mut Attempts, count: usize) -> Vec<u128> {
        let next = |attempts: &mut Attempts| match attempts.ended(
            false,
            NO_TIME,
            Restart::OnFailure,
            &Backoff::default(),
        ) {
            Next::Retry(pause) => pause.as_millis(),
            other => panic!("{other:?}"),
        };
        (0..count).map(|_| next(attempts)).collect()
    }

    #[test]
    fn yaml_13_17_pauses_grow_to_a_limit() {
        let wanted = [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(delays(&mut Attempts::default(), 8), wanted);
    }

    #[test]
    fn yaml_13_18_a_good_run_begins_anew() {
        let mut attempts = Attempts::default();
        delays(&mut attempts, 5);
        let next =
            attempts.ended(false, Duration::from_secs(61), Restart::OnFailure, &Backoff::default());
        assert_eq!(next, Next::Retry(Duration::from_millis(500)));
        assert_eq!(attempts.failures, 1);
    }

    #[test]
    fn yaml_13_19_never_means_never() {
        let mut attempts = Attempts::default();
        let mut end = |well| attempts.ended(well, NO_TIME, Restart::Never, &Backoff::default());
        assert_eq!((end(true), end(false)), (Next::Stopped, Next::Crashed));
        assert_eq!(attempts.failures, 0);
    }

    #[test]
    fn yaml_13_22_attempts_may_have_an_end() {
        let backoff = Backoff { max_attempts: Some(3), initial: NO_TIME, ..Backoff::default() };
        for (well, restart) in
            [(false, Restart::OnFailure), (false, Restart::Always), (true, Restart::Always)]
        {
            let mut attempts = Attempts::default();
            let mut end = || attempts.ended(well, NO_TIME, restart, &backoff);
            assert!((0..3).all(|_| matches!(end(), Next::Retry(_))));
            assert_eq!(end(), Next::Crashed, "{well} {restart:?}");
        }
    }
}
