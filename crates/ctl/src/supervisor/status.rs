//! How everything is, for whoever asks and for the host.

use super::container;
use super::engine::{Engine, Live};
use super::listeners;
use super::process::End;
use super::schedule::Standing;
use super::time;
use nix::unistd::Pid;
use protocol::supervisor::{
    BoxStatus, Expose, Port, PushedService, PushedTask, ServiceStatus, Status, TaskStatus,
    UnitState as State,
};

/// The longest command that is told.
const COMMAND: usize = 500;
/// The most ports that are told.
const PORTS: usize = 200;

/// What is known of a service by which ports are told apart.
#[derive(Debug, Clone)]
pub struct Known {
    pub name: String,
    pub group: Option<Pid>,
    pub port: Option<u16>,
}

/// The service behind the box's web address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    pub service: String,
    pub port: u16,
    pub state: State,
}

impl Engine {
    pub fn status(&self) -> Status {
        Status {
            services: self.services().map(|live| self.service_status(live)).collect(),
            tasks: self.tasks().map(|live| self.task_status(live)).collect(),
            ports: ports(&self.known()),
            web_proxy: self.web.status(),
            config_error: self.config_error.clone(),
            warnings: self.warnings.clone(),
        }
    }

    fn services(&self) -> impl Iterator<Item = &Live> {
        self.units.iter().filter(|live| live.unit.service().is_some())
    }

    fn tasks(&self) -> impl Iterator<Item = &Live> {
        self.units.iter().filter(|live| live.unit.task().is_some())
    }

    pub fn known(&self) -> Vec<Known> {
        let known = |live: &Live| Known {
            name: live.unit.name.clone(),
            group: live.running.as_ref().map(|running| running.pid),
            port: live.unit.port().filter(|_| live.running.is_some()),
        };
        self.services().map(known).collect()
    }

    pub fn service_status(&self, live: &Live) -> ServiceStatus {
        let (blocked_on, failed_deps) = self.blocked(live);
        ServiceStatus {
            name: live.unit.name.clone(),
            state: live.state,
            pid: live.running.as_ref().map(|running| running.pid.as_raw()),
            restarts: live.restarts,
            last_exit_code: live.last_end.map(End::code),
            last_signal: live.last_end.and_then(End::signal),
            started_at: live.started_at.clone(),
            ready_at: live.ready_at.clone(),
            next_retry_at: live.retry.as_ref().map(|(_, at)| at.clone()),
            blocked_on,
            failed_deps,
            consecutive_failures: live.attempts.failures,
            drift: live.unit.is_container() && self.drifts(&live.unit.name),
            command: protocol::text::shortened(&live.unit.shown(), COMMAND),
        }
    }

    pub fn task_status(&self, live: &Live) -> TaskStatus {
        let (blocked_on, failed_deps) = self.blocked(live);
        TaskStatus {
            name: live.unit.name.clone(),
            state: live.state,
            pid: live.running.as_ref().map(|running| running.pid.as_raw()),
            last_exit_code: live.last_end.map(End::code),
            started_at: live.started_at.clone(),
            finished_at: live.finished_at.clone(),
            command: protocol::text::shortened(&live.unit.shown(), COMMAND),
            blocked_on,
            failed_deps,
            skip_reason: live.skip_reason.map(str::to_owned),
            marker_error: live.marker_error.clone(),
        }
    }

    fn drifts(&self, service: &str) -> bool {
        container::drift_file(&self.places.socket, service).exists()
    }

    /// What it waits for, and what of its needs has failed.
    fn blocked(&self, live: &Live) -> (Vec<String>, Vec<String>) {
        let held = matches!(live.state, State::Pending | State::Waiting | State::Skipped);
        if !held {
            return (Vec::new(), Vec::new());
        }
        let nodes = self.nodes();
        let standing = |name: &&String| self.at(name).map(|at| nodes[at].standing());
        let needs = live.unit.needs.iter();
        let open = needs.clone().filter(|need| standing(need) != Some(Standing::Satisfied));
        let failed = needs.filter(|need| standing(need) == Some(Standing::Failed));
        let waits = live.state != State::Skipped;
        (open.filter(|_| waits).cloned().collect(), failed.cloned().collect())
    }

    pub fn exposed_state(&self) -> Option<Exposed> {
        self.services().find_map(|live| {
            let port = live.unit.service()?.expose?;
            Some(Exposed { service: live.unit.name.clone(), port, state: live.state })
        })
    }

    /// For the host; ports are added when it is sent.
    pub fn box_status(&self) -> (BoxStatus, Vec<Known>) {
        let service = |live: &Live| {
            let service = live.unit.service();
            PushedService {
                name: live.unit.name.clone(),
                state: live.state,
                port: live.unit.port(),
                probed: service.is_some_and(|s| s.ready.is_some()),
                expose: service.and_then(|s| s.expose).map(|port| Expose { port, as_port: 80 }),
                blocked_on: self.blocked(live).0,
                needs: live.unit.needs.clone(),
                restarts: live.restarts,
            }
        };
        let task = |live: &Live| PushedTask {
            name: live.unit.name.clone(),
            state: live.state,
            blocked_on: self.blocked(live).0,
            needs: live.unit.needs.clone(),
            last_exit_code: live.last_end.map(End::code),
        };
        let status = BoxStatus {
            schema: 1,
            box_id: std::env::var("AGENTBOX_BOX_ID").unwrap_or_default(),
            timestamp: time::now(),
            services: self.services().map(service).collect(),
            tasks: self.tasks().map(task).collect(),
            ports: Vec::new(),
            config_error: self.config_error.clone(),
        };
        (status, self.known())
    }
}

/// Who listens where in this box.
pub fn ports(known: &[Known]) -> Vec<Port> {
    let listening = listeners::all();
    let inodes: Vec<u64> = listening.iter().map(|listener| listener.inode).collect();
    let owners = listeners::owners(&inodes);
    let mut ports: Vec<Port> = Vec::new();
    for listener in &listening {
        let owner = owners.get(&listener.inode);
        let by_process = known.iter().find(|known| {
            owner.is_some_and(|owner| {
                (known.group.is_some() && owner.group == known.group)
                    || owner.unit.as_deref() == Some(known.name.as_str())
            })
        });
        let by_file = || known.iter().find(|known| known.port == Some(listener.port));
        let service = by_process.or_else(by_file).map(|known| known.name.clone());
        match ports.iter_mut().find(|port| port.port == listener.port) {
            Some(port) => port.service = port.service.take().or(service),
            None => ports.push(Port { port: listener.port, service }),
        }
    }
    ports.sort_by_key(|port| port.port);
    ports.truncate(PORTS);
    ports
}
