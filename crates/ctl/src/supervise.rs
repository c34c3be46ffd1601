//! Keeps programs running: starts them in order, starts them again when they die, stops them.
//!
//! A unit that others wait for says how it is known to be ready; those after it are started then,
//! or when its time is up. A unit that dies is started again, ever more slowly, and quickly once it
//! has held. Nothing here sleeps or spawns by itself: the caller says what time it is and does the
//! spawning ([`Runs`]), so what happens when is tested without a clock. Idle units cost no time at
//! all.

use nix::unistd::Pid;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A program to keep running.
pub struct Unit {
    /// For people, and the name of its log.
    pub name: &'static str,
    /// Made anew for every start.
    pub command: Box<dyn Fn() -> Command>,
    /// Its log is a file of its own; else its words go where PID 1's go.
    pub logged: bool,
    /// What later units wait for, and for how long.
    pub ready: Option<(Probe, Duration)>,
    /// How long it may take to end; no time at all for what has nothing to put in order.
    pub stop: Duration,
}

/// How a unit is known to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// Somebody accepts connections on this socket.
    Socket(PathBuf),
    /// An HTTP server on this socket answers.
    Answers(PathBuf),
}

/// Does what a supervisor decides.
pub trait Runs {
    fn spawn(&mut self, unit: &Unit) -> io::Result<Pid>;
    fn is_ready(&mut self, probe: &Probe) -> bool;
    fn say(&mut self, line: &str);
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A unit that has run this long was a good one.
const STEADY: Duration = Duration::from_secs(60);
/// How often a unit that is awaited is looked at.
const POLL: Duration = Duration::from_millis(50);

#[derive(Default)]
pub struct Supervisor {
    kept: Vec<Kept>,
}

struct Kept {
    unit: Unit,
    running: Option<Pid>,
    started: Option<Instant>,
    pause: Duration,
    /// When to start it; none while it runs, or waits for others.
    due: Option<Instant>,
    /// Until when others wait for it; none before its first start.
    awaited: Option<Instant>,
    settled: bool,
}

impl Supervisor {
    /// Adds units, to be started in this order.
    pub fn add(&mut self, units: impl IntoIterator<Item = Unit>) {
        self.kept.extend(units.into_iter().map(|unit| Kept {
            settled: unit.ready.is_none(),
            unit,
            running: None,
            started: None,
            pause: FIRST_PAUSE,
            due: None,
            awaited: None,
        }));
    }

    /// The units that run, those that were started last first.
    pub fn running(&self) -> impl Iterator<Item = (&Unit, Pid)> {
        self.kept.iter().rev().filter_map(|kept| Some((&kept.unit, kept.running?)))
    }

    /// Some process has ended.
    pub fn saw_end_of(&mut self, pid: Pid, now: Instant, runs: &mut impl Runs) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.running == Some(pid)) {
            kept.running = None;
            kept.postpone(now, "ended", runs);
        }
    }

    /// Does what is due; when to come back, unless something happens earlier.
    pub fn work(&mut self, now: Instant, runs: &mut impl Runs) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |next| next.min(at)));
        for kept in &mut self.kept {
            if kept.awaited.is_none() {
                let patience = kept.unit.ready.as_ref().map_or(Duration::ZERO, |(_, time)| *time);
                kept.awaited = Some(now + patience);
                kept.due = Some(now);
            }
            if kept.due.is_some_and(|due| due <= now) {
                kept.start(now, runs);
            }
            if let Some(due) = kept.due {
                sooner(due);
            }
            if !kept.settle(now, runs) {
                sooner(now + POLL);
                break;
            }
        }
        next
    }
}

impl Kept {
    fn start(&mut self, now: Instant, runs: &mut impl Runs) {
        self.due = None;
        self.started = Some(now);
        match runs.spawn(&self.unit) {
            Ok(pid) => self.running = Some(pid),
            Err(e) => self.postpone(now, &format!("cannot be started ({e})"), runs),
        }
    }

    fn postpone(&mut self, now: Instant, why: &str, runs: &mut impl Runs) {
        if self.started.is_some_and(|started| now.duration_since(started) > STEADY) {
            self.pause = FIRST_PAUSE;
        }
        let (name, seconds) = (self.unit.name, self.pause.as_secs());
        runs.say(&format!("{name} {why}; starting it again in {seconds} s"));
        self.due = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether those after it may go on.
    fn settle(&mut self, now: Instant, runs: &mut impl Runs) -> bool {
        let Some((probe, _)) = self.unit.ready.as_ref().filter(|_| !self.settled) else {
            return true;
        };
        if self.running.is_some() && runs.is_ready(probe) {
            self.settled = true;
        } else if self.awaited.is_some_and(|until| until <= now) {
            runs.say(&format!("{} is not ready in time; going on without it", self.unit.name));
            self.settled = true;
        }
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Fake {
        spawned: Vec<&'static str>,
        ready: bool,
        broken: bool,
        said: Vec<String>,
    }

    impl Runs for Fake {
        fn spawn(&mut self, unit: &Unit) -> io::Result<Pid> {
            if self.broken {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            self.spawned.push(unit.name);
            Ok(Pid::from_raw(100 + i32::try_from(self.spawned.len()).unwrap()))
        }

        fn is_ready(&mut self, _: &Probe) -> bool {
            self.ready
        }

        fn say(&mut self, line: &str) {
            self.said.push(line.to_owned());
        }
    }

    fn unit(name: &'static str, ready: Option<u64>) -> Unit {
        let probe = Probe::Socket("/x".into());
        Unit {
            name,
            command: Box::new(|| Command::new("true")),
            logged: false,
            ready: ready.map(|seconds| (probe, Duration::from_secs(seconds))),
            stop: Duration::from_secs(1),
        }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn units_start_in_order_and_the_next_waits_for_an_awaited_one() {
        let (mut fake, mut all, now) = (Fake::default(), Supervisor::default(), Instant::now());
        all.add([unit("one", None), unit("engine", Some(30)), unit("two", None)]);
        assert_eq!(all.work(now, &mut fake), Some(now + POLL));
        assert_eq!(fake.spawned, ["one", "engine"]);
        assert_eq!(all.work(now + seconds(5), &mut fake), Some(now + seconds(5) + POLL));
        fake.ready = true;
        assert_eq!(all.work(now + seconds(6), &mut fake), None, "nothing is left to do");
        assert_eq!(fake.spawned, ["one", "engine", "two"]);
        let order: Vec<_> = all.running().map(|(unit, _)| unit.name).collect();
        assert_eq!(order, ["two", "engine", "one"]);
    }

    #[test]
    fn a_unit_that_is_never_ready_holds_nobody_up_for_ever() {
        let (mut fake, mut all, now) = (Fake::default(), Supervisor::default(), Instant::now());
        all.add([unit("engine", Some(30)), unit("two", None)]);
        all.work(now, &mut fake);
        all.work(now + seconds(31), &mut fake);
        assert_eq!(fake.spawned, ["engine", "two"]);
        assert!(fake.said[0].contains("engine is not ready in time"), "{:?}", fake.said);
        assert_eq!(all.work(now + seconds(32), &mut fake), None);
    }

    #[test]
    fn a_dying_unit_is_started_ever_more_slowly_and_quickly_after_it_held() {
        let (mut fake, mut all, mut now) = (Fake::default(), Supervisor::default(), Instant::now());
        all.add([unit("one", None)]);
        all.work(now, &mut fake);
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (_, pid) = all.running().next().unwrap();
            all.saw_end_of(Pid::from_raw(4), now, &mut fake);
            assert!(all.running().next().is_some(), "a stranger's end is no news");
            all.saw_end_of(pid, now, &mut fake);
            assert_eq!(all.work(now, &mut fake), Some(now + seconds(pause)));
            now += seconds(pause);
            assert_eq!(all.work(now, &mut fake), None);
        }
        let (_, pid) = all.running().next().unwrap();
        now += STEADY + seconds(1);
        all.saw_end_of(pid, now, &mut fake);
        assert_eq!(all.work(now, &mut fake), Some(now + FIRST_PAUSE));
    }

    #[test]
    fn what_cannot_be_started_is_tried_again_and_others_go_on() {
        let (mut fake, mut all, now) = (Fake::default(), Supervisor::default(), Instant::now());
        fake.broken = true;
        all.add([unit("one", None), unit("two", None)]);
        assert_eq!(all.work(now, &mut fake), Some(now + FIRST_PAUSE));
        fake.broken = false;
        assert_eq!(all.work(now + FIRST_PAUSE, &mut fake), None);
        assert_eq!(fake.spawned, ["one", "two"]);
    }
}
