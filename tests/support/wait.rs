//! Waiting in tests: ask again and again until the answer is there or time is up.
//!
//! No test sleeps for a fixed time and hopes. What was seen last is in the panic, because “timed out”
//! alone never tells why.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(30);

/// Polls until `look` finds something; panics after `deadline`, naming `what` was awaited.
#[track_caller]
pub fn eventually<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    match try_eventually(deadline, || look().ok_or(())) {
        Ok(found) => found,
        Err(()) => panic!("{what}: not within {deadline:?}"),
    }
}

/// Like [`eventually`], but `look` says what it saw instead, and the panic repeats the last of it.
#[track_caller]
pub fn eventually_or<T, E: std::fmt::Display>(
    deadline: Duration,
    what: &str,
    look: impl FnMut() -> Result<T, E>,
) -> T {
    match try_eventually(deadline, look) {
        Ok(found) => found,
        Err(last) => panic!("{what}: not within {deadline:?}; last seen: {last}"),
    }
}

/// Like [`eventually_or`], but hands the last sight back instead of panicking.
pub fn try_eventually<T, E>(
    deadline: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let end = Instant::now() + deadline;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(last) if Instant::now() >= end => return Err(last),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
