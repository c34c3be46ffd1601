//! Starting a unit: whether a task must run at all, its process, its probe.

use super::engine::{Engine, Event, Gate, Purpose, Run, Running, Then};
use super::log::NOTE;
use super::process::{self, End};
use super::reader::{self, Reading, Watch};
use super::unit::{Argv, OnTimeout, Once, Probe, Ready};
use super::{listeners, marker, probe, time};
use nix::unistd::Pid;
use protocol::supervisor::{Stream, UnitState as State};
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a check may take; then the task runs.
const CHECK: Duration = Duration::from_secs(60);
const MARKED: &str = "marker matches";
const CHECKED: &str = "check passed";

impl Engine {
    /// All a unit needs is there.
    pub fn launch(&mut self, at: usize) {
        let live = &mut self.units[at];
        live.now = false;
        live.skip_reason = None;
        live.marker_error = None;
        live.mark = None;
        let force = std::mem::take(&mut live.force);
        let Some(task) = live.unit.task() else { return self.start(at) };
        match task.once.clone() {
            Once::Never => self.start(at),
            Once::Marker | Once::Inputs(_) => self.look_for_mark(at, force),
            Once::Check(_) if force => self.start(at),
            Once::Check(check) => self.check(at, check),
        }
    }

    /// Files may be large and disks slow, so another thread reads them.
    fn look_for_mark(&mut self, at: usize, force: bool) {
        let run = self.next_run(at);
        self.units[at].busy = Some(run.generation);
        let (unit, state, tell) =
            (self.units[at].unit.clone(), self.places.state.clone(), self.tell.clone());
        let name = run.clone();
        let looking = super::thread("mark", move || {
            let gate = match marker::hash(&unit) {
                Ok(hash) if !force && marker::matches(&state, &unit.name, &hash) => {
                    Gate::Skip(MARKED)
                }
                Ok(hash) => Gate::Run(Ok(hash)),
                Err(e) => Gate::Run(Err(e.to_string())),
            };
            let _ = tell.send(Event::Gate(name, gate));
        });
        if let Err(e) = looking {
            self.gate_answered(&run, Gate::Run(Err(e.to_string())));
        }
    }

    pub fn gate_answered(&mut self, run: &Run, gate: Gate) {
        let Some(at) = self.at(&run.unit) else { return };
        if self.units[at].busy != Some(run.generation) {
            return;
        }
        self.units[at].busy = None;
        match gate {
            Gate::Skip(why) => self.need_not_run(at, why),
            Gate::Run(mark) => {
                // Gone before it runs: cut short, it runs again.
                marker::remove(&self.places.state, &self.units[at].unit.name);
                self.units[at].mark = Some(mark);
                self.start(at);
            }
        }
    }

    fn need_not_run(&mut self, at: usize, why: &'static str) {
        let live = &mut self.units[at];
        if live.force {
            // Asked for while it was looked at; it is still to be scheduled, and is launched again.
            return;
        }
        let line = format!("{NOTE}not run: {why}");
        live.log.line(Stream::Stdout, line);
        live.skip_reason = Some(why);
        live.last_end = Some(End::Code(0));
        live.started_at = Some(time::now());
        live.finished_at.clone_from(&live.started_at);
        self.set_state(at, State::Done);
    }

    fn check(&mut self, at: usize, check: String) {
        let command = Argv::Shell(check);
        match process::spawn(&self.units[at].unit, &command, &self.env) {
            Ok(child) => {
                let run = self.next_run(at);
                if let Some(running) = self.watched(at, child, &run, Purpose::Check) {
                    let by = running.since + CHECK;
                    self.units[at].running = Some(Running { times_out: Some(by), ..running });
                }
            }
            Err(why) => {
                self.units[at].log.note(&why);
                self.start(at);
            }
        }
    }

    pub fn check_ended(&mut self, at: usize, end: End) {
        if end.is_well() {
            return self.need_not_run(at, CHECKED);
        }
        if end == End::TimedOut {
            self.units[at].log.note("the check took too long; the task is run");
        }
        self.start(at);
    }

    /// Starts a unit's own process.
    pub fn start(&mut self, at: usize) {
        let live = &mut self.units[at];
        let task = live.unit.task().is_some();
        live.retry = None;
        // It runs, so whoever wanted that in any case has it.
        live.force = false;
        live.ended_early = false;
        live.ready_at = None;
        live.finished_at = None;
        if !task {
            self.set_state(at, State::Starting);
        }
        let before = self.sockets_before(at);
        let live = &self.units[at];
        let child = match process::spawn(&live.unit, &live.unit.command, &self.env) {
            Ok(child) => child,
            Err(why) => {
                live.log.note(&why);
                self.units[at].started_at = Some(time::now());
                return self.main_ended(at, End::NotStarted, Duration::ZERO);
            }
        };
        let run = self.next_run(at);
        let Some(mut running) = self.watched(at, child, &run, Purpose::Main) else {
            return self.main_ended(at, End::NotStarted, Duration::ZERO);
        };
        self.begin_probe(at, &run, &mut running, before);
        running.up_since = self.ready(at).is_none().then_some(running.since);
        let live = &mut self.units[at];
        if let Some(task) = live.unit.task() {
            running.times_out = task.timeout.map(|timeout| running.since + timeout);
        }
        live.started_at = Some(time::now());
        live.running = Some(running);
        self.set_state(at, State::Running);
        let live = &mut self.units[at];
        if live.unit.service().is_some_and(|service| service.ready.is_none()) {
            live.was_up = true;
            live.ready_at.clone_from(&live.started_at);
        }
    }

    /// Its words are read; None when that cannot be.
    fn watched(
        &mut self,
        at: usize,
        mut child: Child,
        run: &Run,
        purpose: Purpose,
    ) -> Option<Running> {
        let live = &self.units[at];
        let pid = Pid::from_raw(i32::try_from(child.id()).ok()?);
        let watch = match live.unit.service().and_then(|s| s.ready.as_ref()).map(|r| &r.probe) {
            Some(Probe::Log { pattern }) => Some(Watch(pattern.clone())),
            _ => None,
        };
        let reading = Reading {
            log: live.log.clone(),
            run: run.clone(),
            watch,
            prefix: if purpose == Purpose::Check { "[check] " } else { "" },
            tell: self.tell.clone(),
        };
        let reader = match reader::start(&mut child, reading) {
            Ok(reader) => reader,
            Err(e) => {
                live.log.note(&format!("cannot be watched: {e}"));
                process::signal(pid, &live.unit.name, nix::sys::signal::Signal::SIGKILL);
                return None;
            }
        };
        Some(Running {
            generation: run.generation,
            pid,
            purpose,
            since: Instant::now(),
            up_since: None,
            ended: None,
            drained: false,
            reader: Some(reader),
            looking: None,
            ready_by: None,
            times_out: None,
            ending: None,
            then: Then::Policy,
        })
    }

    fn ready(&self, at: usize) -> Option<&Ready> {
        self.units[at].unit.service()?.ready.as_ref()
    }

    /// Sockets that listen where the unit is going to.
    fn sockets_before(&self, at: usize) -> Vec<u64> {
        let port = match self.ready(at).map(|ready| &ready.probe) {
            Some(Probe::Port { port, .. }) => Some(*port),
            Some(Probe::Http { url, .. }) => probe::Url::parse(url).map(|url| url.port),
            _ => None,
        };
        port.map(listeners::on).unwrap_or_default()
    }

    fn begin_probe(&self, at: usize, run: &Run, running: &mut Running, before: Vec<u64>) {
        let Some(ready) = self.ready(at) else { return };
        running.ready_by = Some(running.since + ready.timeout);
        let (target, pace) = match &ready.probe {
            Probe::Log { .. } => return,
            Probe::Port { host, port, pace } => {
                (probe::Target::Port { host: host.clone(), port: *port }, *pace)
            }
            Probe::Http { url, expect, pace } => match probe::Url::parse(url) {
                Some(url) => (probe::Target::Http { url, expect: *expect }, *pace),
                None => return,
            },
        };
        let live = &self.units[at];
        let look = probe::Look {
            run: run.clone(),
            group: running.pid,
            target,
            pace,
            before,
            by_engine: live.unit.is_container(),
            log: live.log.clone(),
            tell: self.tell.clone(),
        };
        match probe::start(look) {
            Ok(looking) => running.looking = Some(looking),
            Err(e) => live.log.note(&format!("cannot be probed: {e}")),
        }
    }

    pub fn became_ready(&mut self, at: usize) {
        let live = &mut self.units[at];
        let Some(running) = &mut live.running else { return };
        if running.ending.is_some() || running.ended.is_some() {
            return;
        }
        running.ready_by = None;
        running.looking = None;
        running.up_since = Some(Instant::now());
        live.was_up = true;
        live.ready_at = Some(time::now());
        self.set_state(at, State::Ready);
    }

    pub fn not_ready_in_time(&mut self, at: usize) {
        let Some(ready) = self.ready(at) else { return };
        let (timeout, then) = (ready.timeout.as_millis(), ready.on_timeout);
        let live = &self.units[at];
        live.log.note(&format!("not ready after {timeout} ms"));
        match then {
            OnTimeout::Kill => self.end(at, Then::Failed),
            OnTimeout::MarkUnhealthy => {
                if let Some(looking) = live.running.as_ref().and_then(|r| r.looking.as_ref()) {
                    looking.slow_down();
                }
                self.set_state(at, State::Unhealthy);
            }
        }
    }
}
