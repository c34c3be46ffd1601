//! The box stops: tasks at once, services in order, whoever needs another before it.
//!
//! All of it has a time limit, because the engine kills the whole box after its own.

use super::engine::{Engine, Then};
use super::process;
use super::schedule::stop_order;
use std::time::{Duration, Instant};

/// For everything together.
const ALL: Duration = Duration::from_secs(14);
const LAST: Duration = Duration::from_secs(1);

pub struct Shutdown {
    /// Names, those that are to end next first.
    groups: Vec<Vec<String>>,
    until: Instant,
    killed: bool,
    over: bool,
}

impl Shutdown {
    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn due(&self) -> Instant {
        self.until
    }
}

impl Engine {
    pub fn begin_shutdown(&mut self) {
        if self.shutdown.is_some() {
            return;
        }
        let nodes = self.nodes();
        let needs: Vec<Vec<usize>> = nodes.into_iter().map(|node| node.needs).collect();
        let name = |at: usize| self.units[at].unit.name.clone();
        let groups = stop_order(&needs).into_iter().rev();
        // The last group is the first to end; it is taken from the back.
        let groups = groups.map(|group| group.into_iter().map(name).collect()).collect();
        let until = Instant::now() + ALL;
        self.shutdown = Some(Shutdown { groups, until, killed: false, over: false });
        for live in &mut self.units {
            live.retry = None;
            live.wanted = false;
        }
        let tasks: Vec<usize> =
            (0..self.units.len()).filter(|at| self.units[*at].unit.task().is_some()).collect();
        for at in tasks {
            self.end(at, Then::Stop);
        }
        self.answer_parked();
        self.go_on_stopping();
    }

    pub fn tick_shutdown(&mut self, now: Instant) {
        let Some(shutdown) = &mut self.shutdown else { return };
        if now >= shutdown.until {
            if shutdown.killed {
                shutdown.over = true;
                return;
            }
            shutdown.killed = true;
            shutdown.until = now + LAST;
            process::kill_all();
        }
        self.go_on_stopping();
    }

    /// The next group ends when the one before it is gone.
    fn go_on_stopping(&mut self) {
        loop {
            let runs = |name: &String, engine: &Self| {
                engine.at(name).is_some_and(|at| engine.units[at].running.is_some())
            };
            let Some(group) = self.shutdown.as_ref().and_then(|s| s.groups.last()).cloned() else {
                break;
            };
            for name in &group {
                let begun =
                    |r: &super::engine::Running| r.ending.is_some() && matches!(r.then, Then::Stop);
                if let Some(at) = self.at(name)
                    && self.units[at].running.as_ref().is_some_and(|r| !begun(r))
                {
                    self.end(at, Then::Stop);
                }
            }
            if group.iter().any(|name| runs(name, self)) {
                return;
            }
            if let Some(shutdown) = &mut self.shutdown {
                shutdown.groups.pop();
            }
        }
        if self.units.iter().all(|live| live.running.is_none()) {
            process::kill_all();
            if let Some(shutdown) = &mut self.shutdown {
                shutdown.over = true;
            }
        }
    }
}
