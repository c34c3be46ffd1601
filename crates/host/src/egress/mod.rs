//! What boxes send out, as this host runs it: the proxy, a policy for each box, the questions it raises.
//!
//! Nothing of it is there before the first box without a network is: then an authority is made, and the
//! proxy. Where that fails, such a box does not start; it never gets another way out instead.
//!
//! The policy of a box is rendered from its layers whenever one of them changes. One that is no policy
//! any more leaves the last one in force; a box that never had one gets nothing through.

mod api;
mod change;
mod edit;
mod keep;
mod layers;
mod log;
mod placeholders;
mod repository;
mod rules;
mod watch;

use crate::core::Core;
use crate::home;
use boxes::{Channel, Record};
use egress::authority::Authority;
use egress::dial::{Surroundings, System};
use egress::gate::{Desk, Limits as GateLimits};
use egress::policy::{Inputs, Policy, Rendered};
use egress::proxy::{BoxSetup, Deps, Limits, Proxy};
use protocol::control::{ControlError, ErrorCode};
use protocol::egress::{EgressMode, EgressReloaded, PolicyProblem, TrafficKind};
use protocol::sessions::Agent;
use protocol::{BoxId, BoxName};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch as channel;

#[cfg(test)]
pub(crate) use log::said;

type Reply<T> = Result<T, ControlError>;

/// What the host has of it; cheap until the first box needs it.
pub struct Egress {
    running: OnceLock<Result<Arc<Running>, String>>,
    pub(crate) lines: Arc<log::Lines>,
    inbox: Mutex<Option<tokio::sync::mpsc::Receiver<protocol::egress::Traffic>>>,
    ways: Mutex<HashMap<BoxId, Way>>,
    /// One reload at a time, so that the newest text wins.
    reloading: tokio::sync::Mutex<()>,
    watched: watch::Watched,
}

/// What runs once a box needs it.
pub(crate) struct Running {
    pub proxy: Proxy,
    pub authority: Arc<Authority>,
    pub desk: Desk,
}

/// The way out of one box.
struct Way {
    policy: channel::Sender<Option<Arc<Policy>>>,
    /// Of the files alone, without what people said at questions; and for which mode.
    files: Option<(EgressMode, Arc<Policy>)>,
    revision: u64,
    /// The hash of the token it was opened with.
    token: Option<[u8; 32]>,
    /// Why the last text is not in force.
    problems: Vec<PolicyProblem>,
    warnings: Vec<PolicyProblem>,
}

impl Default for Egress {
    fn default() -> Self {
        let (lines, inbox) = log::Lines::new();
        Self {
            running: OnceLock::new(),
            lines: Arc::new(lines),
            inbox: Mutex::new(Some(inbox)),
            ways: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
            watched: watch::Watched::default(),
        }
    }
}

impl Egress {
    fn ways(&self) -> MutexGuard<'_, HashMap<BoxId, Way>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proxy, when it was needed so far.
    pub(crate) fn running(&self) -> Option<Arc<Running>> {
        self.running.get()?.as_ref().ok().cloned()
    }
}

/// A box as its way out is concerned.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub id: BoxId,
    pub name: BoxName,
    pub root: PathBuf,
    pub mode: EgressMode,
    pub agents: BTreeSet<Agent>,
    /// Its branch in the person's repository.
    pub branch: Option<String>,
}

impl Who {
    pub fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            root: record.project_root.clone(),
            mode: record.egress,
            agents: record.agents().collect(),
            branch: record.branch.clone(),
        }
    }
}

impl Core {
    /// The proxy; made when a box needs it for the first time.
    pub(crate) fn egress_running(self: &Arc<Self>) -> Reply<Arc<Running>> {
        let made = self.egress.running.get_or_init(|| self.make_egress());
        made.clone().map_err(|why| {
            let text = format!("boxes without a network cannot get out: {why}");
            ControlError::new(ErrorCode::Failed, text)
                .hint(format!("look at {}.", self.home.join("ca").display()))
        })
    }

    fn make_egress(self: &Arc<Self>) -> Result<Arc<Running>, String> {
        let folder = self.home.join("ca");
        let authority = Authority::open(&folder, SystemTime::now()).map_err(|e| e.to_string())?;
        let authority = Arc::new(authority);
        let keep = Arc::new(keep::HostKeep(Arc::downgrade(self)));
        let limits = GateLimits {
            timeout: self.settings.approvals.timeout().min(GateLimits::default().timeout),
            ..GateLimits::default()
        };
        let desk = Desk::new(self.broker.clone(), keep, limits);
        let proxy = Proxy::new(Deps {
            secrets: self.resolver.clone(),
            log: self.egress.lines.clone(),
            gate: Arc::new(desk.clone()),
            net: Arc::new(System),
            authority: authority.clone(),
            roots: Box::new(roots),
            limits: Limits::default(),
        });
        let inbox = self.egress.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inbox) = inbox {
            let (lines, store) = (self.egress.lines.clone(), self.store.clone());
            let stop = self.stop.clone();
            self.tasks
                .spawn_on(async move { lines.write(store, inbox, stop).await }, &self.runtime);
        }
        self.watch_policies();
        Ok(Arc::new(Running { proxy, authority, desk }))
    }

    /// What a box without a network is to trust.
    pub(crate) fn authority(self: &Arc<Self>, mode: EgressMode) -> Reply<Vec<String>> {
        if !mode.is_controlled() {
            return Ok(Vec::new());
        }
        Ok(self.egress_running()?.authority.certificates(SystemTime::now()))
    }

    /// Opens the way out of a box; does nothing for one that has a network. Whether it was not open with
    /// this token before: connections of one that was go on.
    pub(crate) fn open_way(self: &Arc<Self>, who: &Who, token: [u8; 32]) -> Reply<bool> {
        if !who.mode.is_controlled() {
            self.close_way(&who.id);
            return Ok(false);
        }
        let running = self.egress_running()?;
        self.surround();
        let policy = {
            let mut ways = self.egress.ways();
            let way = ways.entry(who.id.clone()).or_insert_with(Way::new);
            if way.token.replace(token) == Some(token) {
                return Ok(false);
            }
            way.policy.subscribe()
        };
        running.proxy.open(BoxSetup {
            id: who.id.clone(),
            name: who.name.clone(),
            token,
            policy,
            placeholders: Vec::new(),
        });
        Ok(true)
    }

    /// Listens for a box at a socket in its folder, where its kernel is ours.
    pub(crate) fn listen_for_way(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        let dir = home::box_run_dir(&self.home, id);
        let failed = |e: std::io::Error| {
            let text = format!("cannot listen in {}: {e}", dir.display());
            ControlError::new(ErrorCode::Failed, text)
        };
        home::private_dir(&dir).map_err(failed)?;
        self.egress_running()?.proxy.listen(id, &dir).map_err(failed)?;
        crate::create::give_to_box_user(&[&dir, &dir.join(egress::proxy::SOCKET)]).map_err(failed)
    }

    /// The whole of it for a box that is on record.
    pub(crate) fn open_recorded_way(
        self: &Arc<Self>,
        record: &Record,
        token: [u8; 32],
    ) -> Reply<()> {
        let new = self.open_way(&Who::of(record), token)?;
        if new && record.channel == Channel::Socket {
            self.listen_for_way(&record.id)?;
        }
        Ok(())
    }

    /// The policy of a box that is on record, read anew.
    pub(crate) async fn reload_recorded(self: &Arc<Self>, record: &Record) {
        if record.egress.is_controlled() {
            self.reload_way(&Who::of(record)).await;
            self.egress.watched.again.notify_one();
        }
    }

    /// A box is about to be given a new token.
    pub(crate) fn egress_expect(&self, id: &BoxId, token: &relay::Token) {
        if let Some(running) = self.egress.running() {
            running.proxy.expect(id, *token.hash().as_bytes());
            if let Some(way) = self.egress.ways().get_mut(id) {
                way.token = Some(*token.hash().as_bytes());
            }
        }
    }

    /// It has it: only that one is good from now on.
    pub(crate) fn egress_settle(&self, id: &BoxId) {
        if let Some(running) = self.egress.running() {
            running.proxy.settle(id);
        }
    }

    pub(crate) fn close_way(&self, id: &BoxId) {
        self.egress.ways().remove(id);
        if let Some(running) = self.egress.running() {
            running.proxy.close(id);
            running.desk.forget(id);
        }
    }

    /// What of this computer no box may reach by the proxy.
    pub(crate) fn surround(&self) {
        let Some(running) = self.egress.running() else { return };
        let ports = [self.web_port()].into_iter().flatten().collect();
        let subnets = self.state().subnets.clone();
        running.proxy.surround(Surroundings { subnets, ports });
    }

    /// Reads the layers of a box and puts what they come to in force.
    pub(crate) async fn reload_way(self: &Arc<Self>, who: &Who) -> EgressReloaded {
        let _one = self.egress.reloading.lock().await;
        // As it is by now: whoever waited may have read it before its mode changed.
        let now = self.record(&who.id).filter(|record| record.egress.is_controlled());
        let who = &now.as_ref().map_or_else(|| who.clone(), Who::of);
        let gathered = self.gather(who).await;
        let rendered = gathered
            .and_then(|inputs| egress::policy::render(&inputs).map_err(|problems| problems.0));
        let rules = self.new_rules(who).await;
        let key = self.placeholder_key().await;
        let mut told = self.put_in_force(who, rendered, &rules);
        if let (Some(running), Some(policy)) = (self.egress.running(), self.policy_of(&who.id)) {
            match key {
                Ok(key) => running.proxy.hold(&who.id, placeholders::of(&key, &who.id, &policy)),
                Err(e) => {
                    tracing::error!("box {} has no placeholders: {}", who.name, e.message);
                    told.applied = false;
                }
            }
        }
        self.note_reload(who, &told);
        told
    }

    fn put_in_force(
        &self,
        who: &Who,
        rendered: Result<Rendered, Vec<PolicyProblem>>,
        rules: &[egress::new_rule::NewRule],
    ) -> EgressReloaded {
        let mut ways = self.egress.ways();
        let way = ways.entry(who.id.clone()).or_insert_with(Way::new);
        let mut told = EgressReloaded {
            box_id: who.id.clone(),
            box_name: who.name.clone(),
            applied: false,
            problems: Vec::new(),
            revision: way.revision,
            hosts: 0,
            exact_hosts: 0,
            wildcard_hosts: 0,
        };
        match rendered {
            Err(problems) => {
                way.problems.clone_from(&problems);
                told.problems = problems;
                // What holds on is of the same mode: a policy of another may be a looser one.
                if way.files.as_ref().is_some_and(|(mode, _)| *mode != who.mode) {
                    way.files = None;
                    way.policy.send_replace(None);
                }
            }
            Ok(Rendered { policy, warnings }) => {
                (way.problems, way.warnings) = (Vec::new(), warnings);
                way.files = Some((who.mode, Arc::new(policy)));
                told.applied = true;
            }
        }
        // What people said counts on top of whichever files hold.
        if let Some((_, files)) = &way.files {
            let policy = Arc::new(files.with_rules(rules));
            let changed = way.policy.borrow().as_ref().is_none_or(|now| **now != *policy);
            if changed {
                way.revision += 1;
                way.policy.send_replace(Some(policy.clone()));
            }
            let (exact, wild) = policy.counts();
            let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            told.revision = way.revision;
            told.hosts = number(exact + wild);
            (told.exact_hosts, told.wildcard_hosts) = (number(exact), number(wild));
        }
        told
    }

    fn note_reload(&self, who: &Who, told: &EgressReloaded) {
        let detail = if told.applied {
            format!(
                "applied: revision {}, {} hosts, {} exact, {} wildcards",
                told.revision, told.hosts, told.exact_hosts, told.wildcard_hosts
            )
        } else {
            let first = told.problems.first().map(ToString::to_string).unwrap_or_default();
            tracing::warn!("the policy of box {} is rejected: {first}", who.name);
            format!("rejected: {first}")
        };
        let now = crate::store::now();
        let id = egress::new_line_id();
        egress::ports::Log::note(
            &*self.egress.lines,
            log::said(&who.id, TrafficKind::Reload, id, now, detail),
        );
        self.send_view(&who.id);
    }

    /// All that a box's policy is made of.
    async fn gather(self: &Arc<Self>, who: &Who) -> Result<Inputs, Vec<PolicyProblem>> {
        let agents: Vec<Agent> = who.agents.iter().copied().collect();
        let mut found = layers::read(&layers::places(&self.home, Some(&who.root), &agents));
        if !found.problems.is_empty() {
            return Err(found.problems);
        }
        if let Some(text) = self.repository_layer(who).await {
            found.texts.push(text);
        }
        Ok(Inputs { mode: who.mode, agents, layers: found.texts })
    }

    pub(crate) fn policy_of(&self, id: &BoxId) -> Option<Arc<Policy>> {
        self.egress.ways().get(id).and_then(|way| way.policy.borrow().clone())
    }

    /// A wildcard of somebody's files speaks for the host of a rule; in a file the rule would take its place.
    pub(crate) fn wildcard_in_files(&self, rule: &egress::new_rule::NewRule) -> Option<String> {
        let ways = self.egress.ways();
        let mut files = ways.values().filter_map(|way| way.files.as_ref());
        files.find_map(|(_, policy)| policy.wildcard_for(rule).map(ToString::to_string))
    }

    /// An agent is about to work in a box: its services belong to the box's policy from now on.
    pub(crate) async fn note_agent(self: &Arc<Self>, id: &BoxId, agent: Agent) -> Reply<()> {
        let Some(mut record) = self.record(id) else { return Ok(()) };
        if !record.wishes.agents.insert(agent) {
            return Ok(());
        }
        let summary = format!("{} works in {}", agent.title(), record.name);
        let data = serde_json::json!({ "agent": agent });
        self.change(record.clone(), "box-changed", summary, data).await?;
        self.reload_recorded(&record).await;
        Ok(())
    }

    /// Boxes without a network, as they are on record.
    pub(crate) fn controlled(&self) -> Vec<Who> {
        let state = self.state();
        let all = state.boxes.values().map(|known| &known.record);
        all.filter(|record| record.egress.is_controlled()).map(Who::of).collect()
    }

    pub(crate) async fn reload_ways(
        self: &Arc<Self>,
        wanted: impl Fn(&Who) -> bool,
    ) -> Vec<EgressReloaded> {
        let mut told = Vec::new();
        for who in self.controlled().into_iter().filter(wanted) {
            told.push(self.reload_way(&who).await);
        }
        told
    }

    /// The same, later: from where nobody can wait.
    pub(crate) fn reload_soon(self: &Arc<Self>, id: &BoxId) {
        let (core, id) = (self.clone(), id.clone());
        self.tasks.spawn_on(
            async move {
                let who = core.record(&id).filter(|r| r.egress.is_controlled());
                if let Some(record) = who {
                    core.reload_way(&Who::of(&record)).await;
                }
            },
            &self.runtime,
        );
    }
}

impl Way {
    fn new() -> Self {
        Self {
            policy: channel::channel(None).0,
            files: None,
            revision: 0,
            token: None,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Whom this computer trusts.
fn roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!("certificates of this computer: {error}");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

/// Where a project lies that a folder belongs to.
pub(crate) async fn project_of(cwd: Option<&str>) -> Reply<Option<PathBuf>> {
    match cwd {
        None => Ok(None),
        Some(cwd) => {
            let root = boxes::project::project_root(Path::new(cwd)).await;
            root.map(Some).map_err(crate::engine::control_error)
        }
    }
}
