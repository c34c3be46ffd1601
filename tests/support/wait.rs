//! Waiting in tests: ask again and again until the answer is there or time is up.
//!
//! No test sleeps for a fixed time and hopes. What was seen last is in the panic, because “timed out”
//! alone never tells why. A machine that is busy makes no test fail: a look that began in time but took
//! long decides nothing, and a promise about time may be kept at a later try.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(30);
/// How often something has to be too slow before it is.
const TRIES: usize = 5;

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

/// Like [`eventually_or`], but hands the last sight back instead of panicking. What is seen is as old as
/// the look's beginning, so the last look begins when time is up.
pub fn try_eventually<T, E>(
    deadline: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let end = Instant::now() + deadline;
    loop {
        let begun = Instant::now();
        match look() {
            Ok(found) => return Ok(found),
            Err(last) if begun >= end => return Err(last),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Does something a few times, until it once takes no longer than `limit`. `work` says how long it took.
#[track_caller]
pub fn in_time(limit: Duration, what: &str, mut work: impl FnMut() -> Duration) {
    let mut times = Vec::new();
    for _ in 0..TRIES {
        times.push(work());
        if times.last().is_some_and(|took| *took < limit) {
            return;
        }
    }
    panic!("{what}: never within {limit:?}, but {times:?}");
}
