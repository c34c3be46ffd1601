//! The one thread that owns all units: hears what happened, says what happens next.
//!
//! Every start of a process has a number. What is heard about an earlier one is old news and is
//! forgotten.

use super::backoff::Attempts;
use super::log::{Logs, UnitLog};
use super::probe::Looking;
use super::process::{End, Environment};
use super::push::Push;
use super::reader::Ended;
use super::requests::{Parked, Reply};
use super::schedule::{Action, Node, schedule};
use super::shutdown::Shutdown;
use super::unit::Unit;
use super::web::Web;
use super::{process, time};
use nix::unistd::Pid;
use protocol::supervisor::{Ask, UnitState as State};
use serde::Serialize;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

/// How long a process that cannot be killed is waited for.
const UNKILLABLE: Duration = Duration::from_secs(3);

/// One start of a unit's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub unit: Arc<str>,
    pub generation: u64,
}

pub enum Event {
    /// Some process ended.
    Child,
    /// The box stops.
    Stop,
    /// All of what a process said is in its log.
    Drained(Run),
    ProbeSucceeded(Run),
    Gate(Run, Gate),
    /// The mark of a task that succeeded was written, or why not.
    Marked(Run, Result<(), String>),
    /// A program somebody else wants run.
    Helper(Box<Command>),
    Request(Ask, Sender<Reply>),
    Subscribe(SyncSender<Change>),
}

/// What came of looking whether a task must run.
pub enum Gate {
    Skip(&'static str),
    /// And the mark it gets, or why none.
    Run(Result<String, String>),
}

/// A unit's change, for whoever follows.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    pub unit: String,
    pub kind: &'static str,
    pub state: State,
    pub ts: String,
}

/// Where the supervisor finds and keeps things.
#[derive(Debug, Clone)]
pub struct Places {
    pub socket: PathBuf,
    pub config: PathBuf,
    pub workspace: PathBuf,
    pub state: PathBuf,
}

pub struct Engine {
    pub units: Vec<Live>,
    pub places: Places,
    pub env: Environment,
    pub logs: Arc<Logs>,
    pub tell: Sender<Event>,
    pub parked: Vec<Parked>,
    pub web: Web,
    pub push: Push,
    pub config_error: Option<String>,
    pub warnings: Vec<String>,
    pub shutdown: Option<Shutdown>,
    pub subscribers: Vec<SyncSender<Change>>,
    pub started_at: String,
    generation: u64,
    dirty: bool,
}

/// A unit and how it is.
pub struct Live {
    pub unit: Unit,
    pub name: Arc<str>,
    pub state: State,
    pub log: Arc<UnitLog>,
    pub running: Option<Running>,
    /// It is to run: by itself, or because somebody said so.
    pub wanted: bool,
    /// Whatever it needs.
    pub now: bool,
    pub attempts: Attempts,
    pub restarts: u32,
    pub retry: Option<(Instant, String)>,
    pub last_end: Option<End>,
    pub started_at: Option<String>,
    pub ready_at: Option<String>,
    pub finished_at: Option<String>,
    pub was_up: bool,
    pub ended_early: bool,
    /// Run it although its mark or check says it is done.
    pub force: bool,
    /// Somebody looks whether it must run, or writes its mark.
    pub busy: Option<u64>,
    /// The mark it gets when it succeeds.
    pub mark: Option<Result<String, String>>,
    pub skip_reason: Option<&'static str>,
    pub marker_error: Option<String>,
}

pub struct Running {
    pub generation: u64,
    /// Of the first process, and of its group.
    pub pid: Pid,
    pub purpose: Purpose,
    pub since: Instant,
    /// From here on others could rely on it.
    pub up_since: Option<Instant>,
    pub ended: Option<End>,
    pub drained: bool,
    pub reader: Option<Ended>,
    pub looking: Option<Looking>,
    pub ready_by: Option<Instant>,
    pub times_out: Option<Instant>,
    pub ending: Option<Ending>,
    pub then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Main,
    /// Looks whether a task must run.
    Check,
}

/// It was asked to end.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// When it is killed, or given up.
    pub next: Instant,
    pub killed: bool,
}

/// What follows when a process and all it started are gone.
pub enum Then {
    /// As the file says.
    Policy,
    /// As the file says for a service that failed, whatever its exit code.
    Failed,
    TimedOut,
    Stop,
    Restart,
    Replace(Box<Unit>),
    Remove,
}

impl Live {
    pub fn new(unit: Unit, logs: &Logs) -> Self {
        let wanted = unit.service().is_none_or(|service| service.autostart);
        Self {
            name: unit.name.as_str().into(),
            log: logs.of(&unit.name),
            wanted,
            unit,
            state: State::Pending,
            running: None,
            now: false,
            attempts: Attempts::default(),
            restarts: 0,
            retry: None,
            last_end: None,
            started_at: None,
            ready_at: None,
            finished_at: None,
            was_up: false,
            ended_early: false,
            force: false,
            busy: None,
            mark: None,
            skip_reason: None,
            marker_error: None,
        }
    }

    fn is_ending(&self) -> bool {
        self.running.as_ref().is_some_and(|r| r.ending.is_some() || r.ended.is_some())
    }

    /// When it wants to be looked at.
    fn due(&self) -> Option<Instant> {
        let running = self.running.as_ref();
        let times = [
            self.retry.as_ref().map(|(at, _)| *at),
            running.and_then(|r| r.ready_by),
            running.and_then(|r| r.times_out),
            running.and_then(|r| r.ending.as_ref().map(|ending| ending.next)),
        ];
        times.into_iter().flatten().min()
    }
}

impl Engine {
    pub fn new(
        places: Places,
        env: Environment,
        logs: Arc<Logs>,
        tell: Sender<Event>,
        web: Web,
        push: Push,
    ) -> Self {
        Self {
            units: Vec::new(),
            places,
            env,
            logs,
            tell,
            parked: Vec::new(),
            web,
            push,
            config_error: None,
            warnings: Vec::new(),
            shutdown: None,
            subscribers: Vec::new(),
            started_at: time::now(),
            generation: 0,
            dirty: true,
        }
    }

    /// Until the box stops.
    pub fn run(&mut self, events: &Receiver<Event>) {
        loop {
            self.settle();
            if self.shutdown.as_ref().is_some_and(Shutdown::is_over) {
                return;
            }
            let event = match self.due() {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => {
                    self.hear(event);
                    // What came meanwhile is settled together; a flood does not hold up the clock.
                    for event in events.try_iter().take(100) {
                        self.hear(event);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tick(Instant::now());
        }
    }

    fn due(&self) -> Option<Instant> {
        let units = self.units.iter().filter_map(Live::due);
        let parked = self.parked.iter().filter_map(|parked| parked.until);
        let shutdown = self.shutdown.as_ref().map(Shutdown::due);
        units.chain(parked).chain(shutdown).min()
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Child => self.reap(),
            Event::Stop => self.begin_shutdown(),
            Event::Drained(run) => {
                if let Some(at) = self.find(&run) {
                    if let Some(running) = &mut self.units[at].running {
                        running.drained = true;
                    }
                    self.look_at_end(at);
                }
            }
            Event::ProbeSucceeded(run) => {
                if let Some(at) = self.find(&run) {
                    self.became_ready(at);
                }
            }
            Event::Gate(run, gate) => self.gate_answered(&run, gate),
            Event::Marked(run, result) => self.marked(&run, result),
            Event::Helper(mut command) => {
                // Whoever wants it reads its output; its end is reaped like any other.
                let _ = command.spawn();
            }
            Event::Request(ask, reply) => self.request(ask, reply),
            Event::Subscribe(to) => self.subscribers.push(to),
        }
    }

    /// The unit whose current process this is.
    fn find(&self, run: &Run) -> Option<usize> {
        let at = self.at(&run.unit)?;
        let running = self.units[at].running.as_ref()?;
        (running.generation == run.generation).then_some(at)
    }

    pub fn at(&self, name: &str) -> Option<usize> {
        self.units.iter().position(|live| &*live.name == name)
    }

    pub fn next_run(&mut self, at: usize) -> Run {
        self.generation += 1;
        Run { unit: self.units[at].name.clone(), generation: self.generation }
    }

    fn reap(&mut self) {
        for (pid, end) in process::reap() {
            let led = |live: &Live| live.running.as_ref().is_some_and(|running| running.pid == pid);
            if let Some(running) =
                self.units.iter().position(led).and_then(|at| self.units[at].running.as_mut())
            {
                running.ended = Some(end);
                // Its reader reads what is left, and says so.
                running.reader = None;
                running.looking = None;
                running.ready_by = None;
                running.times_out = None;
            }
        }
        // One of those that ended may have been the last of a unit.
        for at in (0..self.units.len()).rev() {
            self.look_at_end(at);
        }
    }

    /// Does what is due.
    fn tick(&mut self, now: Instant) {
        for at in (0..self.units.len()).rev() {
            let live = &mut self.units[at];
            if live.retry.as_ref().is_some_and(|(due, _)| *due <= now) {
                live.retry = None;
                self.start(at);
                continue;
            }
            let Some(running) = &mut live.running else { continue };
            if let Some(ending) = running.ending.filter(|ending| ending.next <= now) {
                self.insist(at, ending, now);
            } else if running.ready_by.is_some_and(|by| by <= now) {
                running.ready_by = None;
                self.not_ready_in_time(at);
            } else if running.times_out.is_some_and(|by| by <= now) {
                running.times_out = None;
                self.timed_out(at);
            }
        }
        self.tick_shutdown(now);
    }

    fn insist(&mut self, at: usize, ending: Ending, now: Instant) {
        let live = &mut self.units[at];
        let Some(running) = &mut live.running else { return };
        if ending.killed {
            live.log.note("something of it cannot be killed; going on without");
            running.ended.get_or_insert(End::Signal(9));
            running.drained = true;
            running.ending = None;
            self.over(at);
            return;
        }
        let grace = live.unit.grace().as_millis();
        live.log.note(&format!("still there after {grace} ms; it is killed"));
        process::signal(running.pid, &live.unit.name, nix::sys::signal::Signal::SIGKILL);
        running.ending = Some(Ending { next: now + UNKILLABLE, killed: true });
        self.look_at_end(at);
    }

    /// Applies what the scheduler says until it has nothing more to say.
    pub fn settle(&mut self) {
        if self.shutdown.is_none() {
            // Every action changes a state, so this ends; the bound is for what nobody thought of.
            for _ in 0..1000 {
                let actions = schedule(&self.nodes());
                if actions.is_empty() {
                    break;
                }
                for action in actions {
                    match action {
                        Action::Launch(at) => self.launch(at),
                        Action::Wait(at) => self.set_state(at, State::Waiting),
                        Action::Skip(at) => self.skip(at),
                        Action::Revive(at) => self.set_state(at, State::Pending),
                    }
                }
            }
        }
        self.answer_parked();
        if std::mem::take(&mut self.dirty) {
            self.web.say(self.exposed_state());
            let status = self.box_status();
            self.push.status(status);
        }
    }

    pub fn nodes(&self) -> Vec<Node> {
        let needs = |live: &Live| live.unit.needs.iter().filter_map(|n| self.at(n)).collect();
        let node = |live: &Live| Node {
            is_task: live.unit.task().is_some(),
            needs: needs(live),
            // What is on its way out satisfies nobody.
            state: if live.is_ending() { State::Starting } else { live.state },
            wanted: live.wanted && live.busy.is_none() && live.running.is_none(),
            now: live.now,
            probed: live.unit.service().is_some_and(|service| service.ready.is_some()),
            ended_early: live.ended_early,
        };
        self.units.iter().map(node).collect()
    }

    fn skip(&mut self, at: usize) {
        let live = &mut self.units[at];
        live.last_end = None;
        live.started_at = None;
        live.finished_at = None;
        self.set_state(at, State::Skipped);
    }

    pub fn set_state(&mut self, at: usize, state: State) {
        let live = &mut self.units[at];
        if live.state == state {
            return;
        }
        live.state = state;
        self.dirty = true;
        let kind = if live.unit.task().is_some() { "task" } else { "service" };
        let change = Change { unit: live.unit.name.clone(), kind, state, ts: time::now() };
        self.push.change(&change);
        self.subscribers.retain(|to| to.try_send(change.clone()).is_ok());
    }

    /// Something but a state changed that others are to hear of.
    pub fn touch(&mut self) {
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::waitpid;
    use std::fs;
    use std::path::Path;
    use std::sync::mpsc::channel;

    /// Nobody reaps here, since all tests share their children.
    fn engine(dir: &Path, yaml: &str) -> (Engine, Receiver<Event>) {
        let at = |name: &str| dir.join(name);
        fs::write(at("agentbox.yaml"), yaml).unwrap();
        let places = Places {
            socket: at("ctl.sock"),
            config: at("agentbox.yaml"),
            workspace: dir.to_owned(),
            state: at("state"),
        };
        let (tell, events) = channel();
        let logs = Arc::new(Logs::new(at("log")));
        let env = std::env::vars_os().collect();
        let mut engine = Engine::new(places, env, logs, tell, Web::new(0), Push::default());
        engine.load();
        engine.settle();
        (engine, events)
    }

    fn running(engine: &mut Engine) -> &mut Running {
        engine.units[0].running.as_mut().unwrap()
    }

    /// What follows when the process of the one unit has ended.
    fn end(engine: &mut Engine, events: &Receiver<Event>, how: End) {
        let running = running(engine);
        waitpid(running.pid, None).unwrap();
        running.ended = Some(how);
        running.reader = None;
        engine.hear(events.recv_timeout(Duration::from_secs(60)).unwrap());
    }

    #[test]
    fn yaml_13_41_a_check_that_takes_longer_than_a_minute_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        let yaml = "tasks:\n  t: {command: echo ran > ran, run_once: {check: exec sleep 1000}}\n";
        let (mut engine, events) = engine(dir.path(), yaml);
        let check = running(&mut engine);
        assert_eq!(check.purpose, Purpose::Check);
        let began = check.since;
        engine.tick(began + Duration::from_millis(59_999));
        assert!(running(&mut engine).ending.is_none());
        engine.tick(began + Duration::from_secs(60));
        // Even one that ends well when it is told to.
        end(&mut engine, &events, End::Code(0));
        assert_eq!(running(&mut engine).purpose, Purpose::Main);
        assert_eq!(engine.units[0].state, State::Running);
        end(&mut engine, &events, End::Code(0));
        assert_eq!((engine.units[0].state, engine.units[0].skip_reason), (State::Done, None));
        assert_eq!(fs::read_to_string(dir.path().join("ran")).unwrap(), "ran\n");
        let log = fs::read_to_string(dir.path().join("log/t.log")).unwrap();
        assert!(log.contains("[ctl] the check took too long; the task is run"), "{log}");
    }
}
