//! Why a box is down: who stopped it, or what became of it.
//!
//! Pieced together from what this host does itself and from what the engine tells: signals sent through
//! it, how the first process ended, what the kernel did for want of memory. An exit code alone says
//! little: a box that was told to stop and one that gave up may end with the same. The surprising things:
//! engines may tell of used-up memory after the end it brought about, so a reason can still change for a
//! moment; and one that was away tells the last moments again, so what is older than what this host has
//! done itself since is no story any more.

use crate::core::Core;
use protocol::boxes::{BoxState, Down, WhyDown};
use protocol::{BoxId, Millis};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The signals that end a box's first process; it does nothing about others.
const ENDING: [i64; 3] = [2, 15, SIGKILL];
const SIGKILL: i64 = 9;
/// How an engine tells that a process was killed: 128 and the signal.
const KILLED: i64 = 137;
/// Used-up memory, or our own stop, and the end it brought about are told so close together.
const TOGETHER: Duration = Duration::from_secs(5);
/// An engine that goes down in order takes its boxes along, and is gone so soon after.
const GOING_DOWN: Duration = Duration::from_secs(20);

/// What is known about how one box goes down.
#[derive(Debug, Default)]
pub struct Ending {
    /// This host is taking it down, for this reason.
    planned: Option<WhyDown>,
    /// This host took it down, and when it was done with that: the engine's word for it may come after.
    taken: Option<(WhyDown, Instant)>,
    /// The last signal that somebody sent through the engine, of those that end it.
    signal: Option<i64>,
    /// When something in it was last ended for its memory.
    starved: Option<Instant>,
    /// It was up when the engine went away.
    up_when_lost: bool,
    down: Option<(Down, Instant)>,
    /// When this host last had it up or down itself.
    settled: Option<SystemTime>,
}

impl Ending {
    pub fn down(&self) -> Option<Down> {
        self.down.map(|(down, _)| down)
    }

    /// It runs, or stands still: all that is over.
    pub fn came_up(&mut self) {
        *self = Self { planned: self.planned, settled: self.settled, ..Self::default() };
    }

    /// This host has just brought it up, or is done with taking it down.
    pub fn settle(&mut self, now: SystemTime) {
        self.settled = Some(now);
    }

    /// What happened then was over when this host did something to the box itself.
    pub fn is_past(&self, at: SystemTime) -> bool {
        self.settled.is_some_and(|settled| at < settled)
    }

    pub fn signalled(&mut self, signal: i64) {
        if ENDING.contains(&signal) {
            self.signal = Some(signal);
        }
    }

    /// Something in it was ended for its memory. Whether that is why it is down.
    pub fn out_of_memory(&mut self, now: Instant) -> bool {
        self.starved = Some(now);
        let unsigned = self.signal.is_none();
        match &mut self.down {
            Some((Down { why: why @ WhyDown::Killed, .. }, at))
                if unsigned && now.duration_since(*at) < TOGETHER =>
            {
                *why = WhyDown::OutOfMemory;
                true
            }
            _ => false,
        }
    }

    /// Its first process has ended. Told once more, it says nothing new.
    pub fn died(&mut self, code: Option<i64>, now: Instant, clock: Millis) {
        if self.down.is_some() {
            return;
        }
        let starved = self.starved.is_some_and(|at| now.duration_since(at) < TOGETHER);
        let taken = self.taken.filter(|(_, at)| now.duration_since(*at) < TOGETHER);
        let planned = self.planned.or(taken.map(|(why, _)| why));
        let why = match (planned, self.signal, code) {
            (Some(planned), ..) => planned,
            (None, Some(SIGKILL), _) => WhyDown::Killed,
            (None, Some(_), _) => WhyDown::StoppedOutside,
            (None, None, Some(KILLED)) if starved => WhyDown::OutOfMemory,
            (None, None, Some(KILLED)) => WhyDown::Killed,
            (None, None, Some(code)) => WhyDown::Ended { code },
            (None, None, None) => return,
        };
        self.down = Some((Down { why, at: clock }, now));
    }

    /// Its container was removed.
    pub fn removed(&mut self, now: Instant, clock: Millis) {
        let why = self.planned.unwrap_or(WhyDown::Removed);
        self.down = Some((Down { why, at: clock }, now));
    }

    /// This host is done with taking it down.
    fn taken_down(&mut self, now: Instant) {
        self.taken = self.planned.take().map(|why| (why, now));
    }

    /// It was found down; nobody saw how, unless this host did it itself.
    pub fn found(&mut self, state: BoxState, now: Instant, clock: Millis) {
        let why = match (self.planned, state) {
            _ if self.down.is_some() => return,
            (Some(planned), _) => planned,
            (None, _) if !self.up_when_lost => return,
            (None, BoxState::Missing) => WhyDown::Removed,
            (None, _) => WhyDown::EngineGone,
        };
        self.down = Some((Down { why, at: clock }, now));
    }

    /// The engine went away.
    pub fn lost(&mut self, up: bool, now: Instant) {
        self.up_when_lost |= up;
        if let Some((Down { why, .. }, at)) = &mut self.down
            && matches!(why, WhyDown::Killed | WhyDown::StoppedOutside)
            && self.signal.is_some()
            && now.duration_since(*at) < GOING_DOWN
        {
            *why = WhyDown::EngineGone;
        }
    }
}

/// This host takes a box down until this is dropped.
pub struct TakingDown {
    core: Arc<Core>,
    id: BoxId,
}

impl TakingDown {
    pub fn mark(core: &Arc<Core>, id: &BoxId, why: WhyDown) -> Self {
        core.with_known(id, |known| known.ending.planned = Some(why));
        Self { core: core.clone(), id: id.clone() }
    }
}

impl Drop for TakingDown {
    fn drop(&mut self) {
        self.core.with_known(&self.id, |known| {
            known.ending.taken_down(Instant::now());
            known.ending.settle(SystemTime::now());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Millis = 7;

    fn died(prepare: impl FnOnce(&mut Ending, Instant), code: i64) -> Option<WhyDown> {
        let (mut ending, now) = (Ending::default(), Instant::now());
        prepare(&mut ending, now);
        ending.died(Some(code), now, AT);
        ending.down().map(|down| down.why)
    }

    #[test]
    fn what_this_host_does_is_told_as_such_whatever_the_engine_says() {
        for code in [0, 1, 137, 143] {
            let mut ending = Ending { planned: Some(WhyDown::Person), ..Ending::default() };
            ending.signalled(15);
            ending.signalled(9);
            ending.out_of_memory(Instant::now());
            ending.died(Some(code), Instant::now(), AT);
            assert_eq!(ending.down().unwrap().why, WhyDown::Person, "{code}");
            // The engine tells it again after this host is through with it.
            ending.planned = None;
            ending.died(Some(code), Instant::now(), AT + 1);
            assert_eq!(ending.down(), Some(Down { why: WhyDown::Person, at: AT }));
        }
    }

    #[test]
    fn who_ended_a_box_is_no_guess_from_its_exit_code() {
        let nothing = |_: &mut Ending, _: Instant| {};
        // The engine tells of an end after it has answered the stop that brought it about.
        let stopped = |e: &mut Ending, now| {
            e.planned = Some(WhyDown::Person);
            e.signalled(15);
            e.taken_down(now);
        };
        assert_eq!(died(stopped, 143), Some(WhyDown::Person));
        assert_eq!(died(nothing, 0), Some(WhyDown::Ended { code: 0 }));
        assert_eq!(died(nothing, 143), Some(WhyDown::Ended { code: 143 }));
        assert_eq!(died(nothing, 137), Some(WhyDown::Killed));
        assert_eq!(died(|e, _| e.signalled(9), 137), Some(WhyDown::Killed));
        assert_eq!(died(|e, _| e.signalled(9), 0), Some(WhyDown::Killed));
        assert_eq!(died(|e, _| e.signalled(15), 0), Some(WhyDown::StoppedOutside));
        assert_eq!(died(|e, _| e.signalled(15), 143), Some(WhyDown::StoppedOutside));
        // A signal that ends nothing is no reason.
        assert_eq!(died(|e, _| e.signalled(10), 1), Some(WhyDown::Ended { code: 1 }));
    }

    #[test]
    fn what_is_told_again_after_this_host_took_a_box_down_is_the_past() {
        let (mut ending, now) = (Ending::default(), SystemTime::now());
        assert!(!ending.is_past(now), "nothing was done yet");
        ending.planned = Some(WhyDown::Person);
        ending.found(BoxState::Stopped, Instant::now(), AT);
        ending.taken_down(Instant::now());
        ending.settle(now);
        assert!(ending.is_past(now - Duration::from_millis(1)));
        assert!(!ending.is_past(now) && !ending.is_past(now + Duration::from_secs(1)));
        ending.came_up();
        assert!(ending.is_past(now - Duration::from_millis(1)), "starts are told again, too");
    }

    #[test]
    fn used_up_memory_is_the_reason_only_where_it_ended_the_box() {
        let starved = |e: &mut Ending, now| assert!(!e.out_of_memory(now), "it is still up");
        assert_eq!(died(starved, 137), Some(WhyDown::OutOfMemory));
        assert_eq!(died(starved, 1), Some(WhyDown::Ended { code: 1 }));
        let killed = |e: &mut Ending, now| {
            e.out_of_memory(now);
            e.signalled(9);
        };
        assert_eq!(died(killed, 137), Some(WhyDown::Killed));
        // Long ago, something else in it was ended.
        let (mut ending, then) = (Ending::default(), Instant::now());
        ending.out_of_memory(then);
        ending.died(Some(137), then + TOGETHER, AT);
        assert_eq!(ending.down().unwrap().why, WhyDown::Killed);
        // The engine may tell the cause after the effect.
        assert!(!ending.out_of_memory(then + TOGETHER * 2), "that has nothing to do with it");
        assert!(ending.out_of_memory(then + TOGETHER + TOGETHER / 2));
        assert_eq!(ending.down().unwrap().why, WhyDown::OutOfMemory);
    }

    #[test]
    fn a_box_that_went_with_its_engine_says_so_and_one_that_was_down_before_does_not() {
        let now = Instant::now();
        let found = |up: bool, state: BoxState| {
            let mut ending = Ending::default();
            ending.lost(up, now);
            ending.lost(false, now); // nobody knows by now
            ending.found(state, now, AT);
            ending.down().map(|down| down.why)
        };
        assert_eq!(found(true, BoxState::Stopped), Some(WhyDown::EngineGone));
        assert_eq!(found(true, BoxState::Missing), Some(WhyDown::Removed));
        assert_eq!(found(false, BoxState::Stopped), None);
        // One that goes down in order tells its boxes to end first.
        let before = |signal: Option<i64>, later: Duration| {
            let mut ending = Ending::default();
            if let Some(signal) = signal {
                ending.signalled(signal);
            }
            ending.died(Some(0), now, AT);
            ending.lost(false, now + later);
            ending.down().unwrap().why
        };
        assert_eq!(before(Some(15), Duration::from_secs(1)), WhyDown::EngineGone);
        assert_eq!(before(Some(15), GOING_DOWN), WhyDown::StoppedOutside);
        assert_eq!(before(None, Duration::from_secs(1)), WhyDown::Ended { code: 0 });
    }

    #[test]
    fn a_container_that_was_removed_says_so_and_a_box_that_comes_up_has_no_past() {
        let now = Instant::now();
        let mut ending = Ending::default();
        ending.signalled(9);
        ending.died(Some(137), now, AT);
        ending.removed(now, AT);
        assert_eq!(ending.down().unwrap().why, WhyDown::Removed);
        ending.came_up();
        assert_eq!(ending.down(), None);
        ending.died(Some(0), now, AT);
        assert_eq!(ending.down().unwrap().why, WhyDown::Ended { code: 0 });
    }
}
