//! How units end: asked to, or by themselves; and what follows.
//!
//! A unit is over when its first process has ended, all of what it said is written down and, but for
//! a task that ended by itself, nobody it started is left.

use super::backoff::Next;
use super::cgroup::groups;
use super::engine::{Ending, Engine, Event, Live, Purpose, Run, Then};
use super::process::{self, End};
use super::unit::Kind;
use super::{marker, time};
use nix::sys::signal::{Signal, killpg};
use protocol::supervisor::UnitState as State;
use std::time::{Duration, Instant};

impl Engine {
    /// Asks a unit's processes to end; `then` follows when they are gone.
    pub fn end(&mut self, at: usize, then: Then) {
        let live = &mut self.units[at];
        let Some(running) = &mut live.running else { return };
        // Stopped by hand is stopped, whatever was to follow.
        running.then = then;
        running.looking = None;
        running.ready_by = None;
        running.times_out = None;
        if running.ending.is_none() {
            let next = Instant::now() + live.unit.grace();
            running.ending = Some(Ending { next, killed: false });
            process::signal(running.pid, &live.unit.name, Signal::SIGTERM);
            // A stopped process cannot end before it runs again.
            let _ = killpg(running.pid, Signal::SIGCONT);
        }
        self.look_at_end(at);
    }

    pub fn timed_out(&mut self, at: usize) {
        let live = &self.units[at];
        if let (Some(timeout), Some(Purpose::Main)) = (
            live.unit.task().and_then(|task| task.timeout),
            live.running.as_ref().map(|running| running.purpose),
        ) {
            live.log.note(&format!("took longer than {} ms", timeout.as_millis()));
        }
        self.end(at, Then::TimedOut);
    }

    /// Whether a unit is over.
    pub fn look_at_end(&mut self, at: usize) {
        let Some(live) = self.units.get_mut(at) else { return };
        let Some(running) = &mut live.running else { return };
        if running.ended.is_none() || !running.drained {
            return;
        }
        // What a task leaves behind of its own will may stay: it may be a server it was to start.
        let may_leave = live.unit.task().is_some() && running.ending.is_none();
        if !may_leave {
            let left = process::any_left(running.pid, &live.unit.name);
            if left && running.ending.is_none() {
                live.log.note("processes it started are left; they are asked to end");
                return self.end_rest(at);
            }
            if left {
                return;
            }
        }
        self.over(at);
    }

    fn end_rest(&mut self, at: usize) {
        let live = &mut self.units[at];
        let Some(running) = &mut live.running else { return };
        let next = Instant::now() + live.unit.grace();
        running.ending = Some(Ending { next, killed: false });
        process::signal(running.pid, &live.unit.name, Signal::SIGTERM);
        self.look_at_end(at);
    }

    /// Nobody is left.
    pub fn over(&mut self, at: usize) {
        let Some(running) = self.units[at].running.take() else { return };
        self.touch();
        if let Some(groups) = groups() {
            groups.remove(&self.units[at].unit.name);
        }
        let end = match running.then {
            Then::TimedOut => End::TimedOut,
            _ => running.ended.unwrap_or(End::NotStarted),
        };
        // Time to get ready is no good run: a service that never does would never use up its attempts.
        let uptime = running.up_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.units[at].say_end(end, running.purpose);
        match (running.then, running.purpose) {
            (Then::Policy | Then::TimedOut, Purpose::Check) => self.check_ended(at, end),
            (Then::Policy | Then::TimedOut, Purpose::Main) => self.main_ended(at, end, uptime),
            (Then::Failed, _) => {
                self.units[at].last_end = Some(end);
                self.service_ended(at, false, uptime);
            }
            (Then::Stop, _) => {
                self.units[at].last_end = Some(end);
                self.units[at].finished_at = Some(time::now());
                let stopped = if self.units[at].unit.task().is_some() {
                    State::Failed
                } else {
                    State::Stopped
                };
                self.set_state(at, stopped);
            }
            (Then::Restart, _) => {
                self.units[at].last_end = Some(end);
                self.set_state(at, State::Pending);
            }
            (Then::Replace(unit), _) => self.replace(at, *unit),
            (Then::Remove, _) => {
                self.units.remove(at);
            }
        }
    }

    /// A unit's own process has ended by itself, or never began.
    pub fn main_ended(&mut self, at: usize, end: End, uptime: Duration) {
        self.units[at].last_end = Some(end);
        match self.units[at].unit.kind {
            Kind::Task(_) => self.task_ended(at, end),
            Kind::Service(_) => self.service_ended(at, end.is_well(), uptime),
        }
    }

    fn service_ended(&mut self, at: usize, well: bool, uptime: Duration) {
        let live = &mut self.units[at];
        let Some(service) = live.unit.service() else { return };
        match live.attempts.ended(well, uptime, service.restart, &service.backoff) {
            Next::Retry(pause) => {
                live.restarts += 1;
                live.log.note(&format!("starting again in {} ms", pause.as_millis()));
                live.retry = Some((Instant::now() + pause, time::in_a_while(pause)));
                self.set_state(at, State::Backoff);
            }
            Next::Stopped => {
                live.ended_early = !live.was_up;
                self.set_state(at, State::Stopped);
            }
            Next::Crashed => self.set_state(at, State::Crashed),
        }
    }

    fn task_ended(&mut self, at: usize, end: End) {
        let live = &mut self.units[at];
        if !end.is_well() {
            live.finished_at = Some(time::now());
            return self.set_state(at, State::Failed);
        }
        match live.mark.take() {
            None => self.task_done(at, None),
            Some(Err(why)) => self.task_done(at, Some(why)),
            Some(Ok(hash)) => self.write_mark(at, hash),
        }
    }

    /// On disk before anybody hears that it is done.
    fn write_mark(&mut self, at: usize, hash: String) {
        let run = self.next_run(at);
        self.units[at].busy = Some(run.generation);
        let (state, tell) = (self.places.state.clone(), self.tell.clone());
        let sent = run.clone();
        let writing = super::thread("mark", move || {
            let written = marker::write(&state, &sent.unit, &hash);
            let _ = tell.send(Event::Marked(sent, written.map_err(|e| e.to_string())));
        });
        if let Err(e) = writing {
            self.marked(&run, Err(e.to_string()));
        }
    }

    pub fn marked(&mut self, run: &Run, result: Result<(), String>) {
        let Some(at) = self.at(&run.unit) else { return };
        if self.units[at].busy == Some(run.generation) {
            self.units[at].busy = None;
            self.task_done(at, result.err());
        }
    }

    fn task_done(&mut self, at: usize, marker_error: Option<String>) {
        let live = &mut self.units[at];
        if let Some(why) = &marker_error {
            live.log.note(&format!("it is done, but the next start will run it again: {why}"));
        }
        live.marker_error = marker_error;
        live.finished_at = Some(time::now());
        self.set_state(at, State::Done);
    }
}

impl Live {
    fn say_end(&self, end: End, purpose: Purpose) {
        let what = if purpose == Purpose::Check { "the check " } else { "" };
        let text = match end {
            End::Code(code) => format!("{what}exited with code {code}"),
            End::Signal(signal) => {
                let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
                format!("{what}exited by {name}")
            }
            End::TimedOut => format!("{what}exited: it took too long"),
            End::NotStarted => return,
        };
        self.log.note(&text);
    }
}
