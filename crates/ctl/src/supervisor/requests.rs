//! What others ask of the supervisor, and the answers that take time.

use super::engine::{Engine, Live, Then};
use super::schedule::Standing;
use protocol::supervisor::{Answer, Ask, PROTO, UnitState as State, WaitReady, code};
use serde::Serialize;
use serde_json::json;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

pub type Reply = Answer;

const USUAL_WAIT: u64 = 60_000;
/// Nobody waits longer.
const LONGEST_WAIT: u64 = 24 * 60 * 60 * 1000;

/// Somebody who waits for an answer.
pub struct Parked {
    pub until: Option<Instant>,
    what: What,
    to: Sender<Reply>,
}

enum What {
    Ready {
        units: Vec<String>,
        patient: bool,
    },
    /// A task's end.
    Task(String),
    /// A service that was told something has done it.
    Service(String),
}

pub fn good(data: &impl Serialize) -> Reply {
    Answer { ok: true, data: serde_json::to_value(data).ok(), error: None, code: None }
}

pub fn bad(code: &str, error: impl Into<String>) -> Reply {
    Answer { ok: false, data: None, error: Some(error.into()), code: Some(code.to_owned()) }
}

fn unknown(name: &str) -> Reply {
    let shown = protocol::text::shortened(name, 100);
    bad(code::UNKNOWN_UNIT, format!("no task or service '{shown}' in agentbox.yaml"))
}

impl Engine {
    pub fn request(&mut self, ask: Ask, to: Sender<Reply>) {
        let reply = match ask {
            Ask::Ping => good(&"pong"),
            Ask::Hello => good(&json!({
                "proto": PROTO,
                "version": env!("CARGO_PKG_VERSION"),
                "pid": std::process::id(),
                "startedAt": self.started_at,
            })),
            Ask::Status => good(&self.status()),
            Ask::TaskStatus => good(&self.status().tasks),
            // Whoever asked reads the log itself; here it only hears whether there is one.
            Ask::Logs { service, .. } => {
                if self.at(&service).is_some() || self.logs.has(&service) {
                    good(&json!({}))
                } else {
                    unknown(&service)
                }
            }
            Ask::Subscribe => good(&json!({})),
            _ if self.shutdown.is_some() => bad(code::STOPPING, "the box is stopping"),
            Ask::WaitReady { timeout_ms, units, patient } => {
                return self.wait_ready(timeout_ms, units, patient, to);
            }
            Ask::RunTask { name, force, wait } => return self.run_task(&name, force, wait, to),
            Ask::Start { service, now } => return self.start_service(&service, now, to),
            Ask::Stop { service } => return self.stop_service(&service, to),
            Ask::Restart { service } => return self.restart_service(&service, to),
            Ask::Reload => match self.reload() {
                Ok(reloaded) => good(&reloaded),
                Err(why) => bad(code::INVALID_CONFIG, why),
            },
        };
        let _ = to.send(reply);
    }

    fn park(&mut self, what: What, until: Option<Instant>, to: Sender<Reply>) {
        self.parked.push(Parked { until, what, to });
    }

    fn wait_ready(
        &mut self,
        timeout_ms: Option<u64>,
        units: Option<Vec<String>>,
        patient: bool,
        to: Sender<Reply>,
    ) {
        if let Some(why) = &self.config_error
            && self.units.is_empty()
        {
            let _ = to.send(bad(code::INVALID_CONFIG, why.clone()));
            return;
        }
        if let Some(name) = units.iter().flatten().find(|name| self.at(name).is_none()) {
            let _ = to.send(unknown(name));
            return;
        }
        let by_itself = |live: &&Live| live.unit.service().is_none_or(|s| s.autostart);
        let all = || self.units.iter().filter(by_itself).map(|l| l.unit.name.clone()).collect();
        let units = units.unwrap_or_else(all);
        let limit = Duration::from_millis(timeout_ms.unwrap_or(USUAL_WAIT).min(LONGEST_WAIT));
        self.park(What::Ready { units, patient }, Some(Instant::now() + limit), to);
    }

    fn run_task(&mut self, name: &str, force: bool, wait: bool, to: Sender<Reply>) {
        let found = self.at(name).filter(|at| self.units[*at].unit.task().is_some());
        let Some(at) = found else {
            let _ = to.send(match self.at(name) {
                Some(_) => bad(code::UNKNOWN_UNIT, format!("{name} is a service; use 'start'")),
                None => unknown(name),
            });
            return;
        };
        let live = &mut self.units[at];
        let enough = live.state == State::Done && !force;
        if live.state != State::Running && !enough {
            // While somebody looks whether it must run, this is kept until that is known.
            live.force |= force;
            self.set_state(at, State::Pending);
        }
        if wait {
            self.park(What::Task(name.to_owned()), None, to);
        } else {
            self.settle();
            let reply = self.at(name).map(|at| good(&self.task_status(&self.units[at])));
            let _ = to.send(reply.unwrap_or_else(|| unknown(name)));
        }
    }

    fn service(&self, name: &str, to: &Sender<Reply>) -> Option<usize> {
        let at = self.at(name);
        let service = at.filter(|at| self.units[*at].unit.service().is_some());
        if service.is_none() {
            let _ = to.send(match at {
                Some(_) => bad(code::UNKNOWN_UNIT, format!("{name} is a task; use 'run-task'")),
                None => unknown(name),
            });
        }
        service
    }

    fn start_service(&mut self, name: &str, now: bool, to: Sender<Reply>) {
        let Some(at) = self.service(name, &to) else { return };
        self.want(at, now);
        self.park(What::Service(name.to_owned()), None, to);
    }

    /// It is to run, and what it needs with it.
    fn want(&mut self, at: usize, now: bool) {
        let live = &mut self.units[at];
        live.wanted = true;
        live.attempts = super::backoff::Attempts::default();
        match &mut live.running {
            Some(running) if matches!(running.then, Then::Stop) => running.then = Then::Restart,
            Some(_) => return,
            None if live.unit.service().is_none() => {}
            None => {
                live.retry = None;
                live.now = now;
                self.set_state(at, State::Pending);
            }
        }
        if now {
            return;
        }
        let mut seen = vec![at];
        let mut next = 0;
        while let Some(of) = seen.get(next).copied() {
            next += 1;
            let needs: Vec<usize> =
                self.units[of].unit.needs.iter().filter_map(|need| self.at(need)).collect();
            for need in needs.into_iter().filter(|need| !seen.contains(need)).collect::<Vec<_>>() {
                seen.push(need);
                let live = &mut self.units[need];
                let rests =
                    live.unit.service().is_some_and(|s| !s.autostart) && live.running.is_none();
                if rests && matches!(live.state, State::Pending | State::Stopped) {
                    live.wanted = true;
                    self.set_state(need, State::Pending);
                }
            }
        }
    }

    fn stop_service(&mut self, name: &str, to: Sender<Reply>) {
        let Some(at) = self.service(name, &to) else { return };
        let live = &mut self.units[at];
        live.wanted = false;
        live.retry = None;
        live.ended_early = false;
        if live.running.is_some() {
            self.end(at, Then::Stop);
        } else {
            self.set_state(at, State::Stopped);
        }
        self.park(What::Service(name.to_owned()), None, to);
    }

    fn restart_service(&mut self, name: &str, to: Sender<Reply>) {
        let Some(at) = self.service(name, &to) else { return };
        if self.units[at].running.is_some() {
            self.units[at].wanted = true;
            self.units[at].attempts = super::backoff::Attempts::default();
            self.end(at, Then::Restart);
        } else {
            self.want(at, false);
        }
        self.park(What::Service(name.to_owned()), None, to);
    }

    /// Answers those whose answer is there, or whose time is up.
    pub fn answer_parked(&mut self) {
        let now = Instant::now();
        let parked = std::mem::take(&mut self.parked);
        for one in parked {
            let late = one.until.is_some_and(|until| until <= now);
            match self.answer(&one.what, late) {
                Some(reply) => {
                    let _ = one.to.send(reply);
                }
                None => self.parked.push(one),
            }
        }
    }

    fn answer(&self, what: &What, late: bool) -> Option<Reply> {
        if self.shutdown.is_some() {
            return Some(bad(code::STOPPING, "the box is stopping"));
        }
        match what {
            What::Ready { units, patient } => self.readiness(units, *patient, late),
            What::Task(name) => {
                let Some(at) = self.at(name) else { return Some(unknown(name)) };
                let live = &self.units[at];
                let over = matches!(live.state, State::Done | State::Failed | State::Skipped);
                let idle = live.running.is_none() && live.busy.is_none();
                (over && idle).then(|| good(&self.task_status(live)))
            }
            What::Service(name) => {
                let Some(at) = self.at(name) else { return Some(unknown(name)) };
                let live = &self.units[at];
                let ending = live.running.as_ref().is_some_and(|r| r.ending.is_some());
                (!ending).then(|| good(&self.service_status(live)))
            }
        }
    }

    fn readiness(&self, units: &[String], patient: bool, late: bool) -> Option<Reply> {
        let nodes = self.nodes();
        let mut answer = WaitReady { ready: true, ..WaitReady::default() };
        for name in units {
            let Some(at) = self.at(name) else {
                answer.ready = false;
                answer.timed_out.push(name.clone());
                continue;
            };
            match nodes[at].standing() {
                Standing::Satisfied => {}
                Standing::Failed => {
                    answer.ready = false;
                    answer.failed.push(name.clone());
                }
                Standing::Open => {
                    answer.ready = false;
                    let blocked = matches!(self.units[at].state, State::Pending | State::Waiting);
                    let failed = self.failed_below(at).filter(|_| blocked);
                    match failed {
                        Some(need) => answer.failed.push(self.units[need].unit.name.clone()),
                        None => answer.timed_out.push(name.clone()),
                    }
                }
            }
        }
        answer.failed.sort();
        answer.failed.dedup();
        let hopeless = !answer.failed.is_empty() && !patient;
        if answer.ready || late {
            return Some(good(&answer));
        }
        hopeless.then(|| {
            answer.timed_out.clear();
            good(&answer)
        })
    }

    /// A unit that failed and that this one, or one it waits for, needs.
    fn failed_below(&self, at: usize) -> Option<usize> {
        let nodes = self.nodes();
        let mut seen = vec![at];
        let mut next = 0;
        while let Some(of) = seen.get(next).copied() {
            next += 1;
            for need in &nodes[of].needs {
                if nodes[*need].standing() == Standing::Failed {
                    return Some(*need);
                }
                let waits = matches!(self.units[*need].state, State::Pending | State::Waiting);
                if waits && !seen.contains(need) {
                    seen.push(*need);
                }
            }
        }
        None
    }
}
