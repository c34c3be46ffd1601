//! What every part of the host shares.

use crate::Kind;
use crate::down::Ending;
use crate::events::Events;
use crate::port::LANDINGS;
use crate::quiet::Quiet;
use crate::resolve::Candidate;
use crate::store::{Store, StoreError, StoredBox, now};
use crate::urls::Names;
use approvals::Broker;
use boxes::{Boxes, Record};
use protocol::asks::Asks;
use protocol::boxes::{BoxState, BoxView, Endpoints, NestedView};
use protocol::bridge::Service;
use protocol::control::{ControlError, EngineStatus, ErrorCode, HostEvent, HostStatus, Notice};
use protocol::links::LinkTo;
use protocol::sessions::{Agent, AgentState, AgentView};
use protocol::text::visible;
use protocol::{BoxId, BoxName, Millis};
use relay::{Bucket, Entry, Relay, Token};
use secrets::Vault;
use settings::Settings;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct Core {
    pub home: PathBuf,
    pub kind: Kind,
    pub settings: Settings,
    pub install: String,
    pub store: Store,
    pub broker: Broker,
    pub relay: Relay,
    pub vault: Vault,
    pub events_log: Arc<Events>,
    pub quiet: Quiet,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    pub runtime: tokio::runtime::Handle,
    pub started_at: Millis,
    events: broadcast::Sender<HostEvent>,
    /// Boxes whose page a person has before them.
    pub front: crate::front::Front,
    /// Those who follow what happens and could answer.
    watchers: AtomicUsize,
    state: Mutex<State>,
    /// One connection attempt at a time.
    pub connecting: tokio::sync::Mutex<()>,
    /// One checkpoint is made at a time.
    pub checkpointing: tokio::sync::Mutex<()>,
    /// Somebody has just reached the engine.
    pub connected: tokio::sync::Notify,
    /// The addresses of boxes.
    pub web: crate::urls::Web,
    /// Boxes came, went or fell idle; see [`crate::autopause`].
    pub nudge: tokio::sync::Notify,
    /// What takes up room, and when that was added up; one adds up at a time.
    pub sizes: Mutex<Option<(Instant, boxes::Disk)>>,
    pub adding_up: tokio::sync::Mutex<()>,
    /// Background jobs.
    pub queue: crate::queue::Queue,
    /// What boxes send out.
    pub egress: crate::egress::Egress,
    /// One record is changed at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Credentials for that.
    pub resolver: Arc<crate::credentials::Resolver>,
}

/// Somebody who could answer a question.
pub struct Watching(Arc<Core>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::AcqRel);
    }
}

pub struct State {
    pub boxes: BTreeMap<BoxId, Known>,
    /// The engine, once it has answered.
    pub engine: Option<Boxes>,
    pub engine_status: EngineStatus,
    pub notices: BTreeMap<String, Notice>,
    /// Boxes that are being made.
    pub reserved: HashMap<BoxName, BoxId>,
    /// Bridges that are kept up; see [`crate::bridge`].
    pub bridges: HashMap<(BoxId, Service), Arc<tokio::sync::Notify>>,
    /// Networks of the engine's containers, which no box reaches by the proxy.
    pub subnets: Vec<ipnet::IpNet>,
}

/// A box the host knows.
pub struct Known {
    pub record: Record,
    pub state: BoxState,
    /// This host is starting it itself; the engine's event about it is no news.
    pub starting: bool,
    /// It has had its token from this host, or is about to.
    pub released: bool,
    /// It has its token and was let go.
    pub ready: bool,
    /// How many commands of people run in it; see [`crate::rest`].
    pub sessions: usize,
    /// When it was last used, as far as people and its own life go.
    pub active: Instant,
    /// One thing at a time is done to it.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    /// A landing is under way, and whether another ref change came meanwhile.
    pub landing: Option<bool>,
    /// How often commits have been brought here of late.
    pub landings: Bucket,
    /// Its questions are denied until then.
    pub muted_until: Option<Millis>,
    /// Where it is reached; see [`crate::daemons`].
    pub endpoints: Endpoints,
    /// Of its screen. Nowhere but here.
    pub vnc_password: Option<String>,
    /// Something in it was ended because it had used up its memory.
    pub starved: bool,
    /// How it goes down, and why it is down.
    pub ending: Ending,
    /// What it is held still for.
    pub busy: Option<&'static str>,
    /// When a person or this host last did something in it; nothing it does itself counts.
    pub used_at: Millis,
    /// What its agents said last, and when.
    pub agents: BTreeMap<Agent, (AgentState, Millis)>,
    /// What those ask that ask. Nowhere but here.
    pub asks: BTreeMap<Agent, Asks>,
    /// Agents the host has started in it since it was started itself.
    pub started: BTreeSet<Agent>,
    /// It was down, and has not taken over since what is new here.
    pub was_down: bool,
}

impl Known {
    pub fn new(record: Record, state: BoxState) -> Self {
        let landings = Bucket::new(LANDINGS.0, LANDINGS.1);
        Self {
            record,
            state,
            starting: false,
            released: false,
            ready: false,
            sessions: 0,
            active: Instant::now(),
            turn: Arc::default(),
            landing: None,
            landings,
            muted_until: None,
            endpoints: Endpoints::default(),
            vnc_password: None,
            starved: false,
            ending: Ending::default(),
            busy: None,
            used_at: now(),
            agents: BTreeMap::new(),
            asks: BTreeMap::new(),
            started: BTreeSet::new(),
            was_down: false,
        }
    }

    /// What the agents do that the host knows of, by the box's word for it.
    pub fn agents_started_here(&self) -> Vec<(AgentState, Millis)> {
        let known = self.agents.iter().filter(|(agent, _)| self.started.contains(agent));
        known.map(|(_, at)| *at).collect()
    }
}

impl State {
    pub fn is_released(&self, id: &BoxId) -> bool {
        self.boxes.get(id).is_some_and(|k| k.released)
    }

    pub fn set_released(&mut self, id: &BoxId, released: bool) {
        if let Some(known) = self.boxes.get_mut(id) {
            known.released = released;
        }
    }
}

/// What a host is put together from.
pub struct Parts {
    pub home: PathBuf,
    pub kind: Kind,
    pub settings: Settings,
    pub install: String,
    pub store: Store,
    pub broker: Broker,
    pub relay: Relay,
    pub vault: Vault,
    pub events: Arc<Events>,
    pub quiet: Quiet,
    pub resolver: Arc<crate::credentials::Resolver>,
}

impl Core {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            home,
            kind,
            settings,
            install,
            store,
            broker,
            relay,
            vault,
            events,
            quiet,
            resolver,
        } = parts;
        let engine_status = EngineStatus {
            reachable: false,
            detail: "looking for a container engine".into(),
            hint: None,
        };
        Self {
            home,
            kind,
            settings,
            install,
            store,
            broker,
            relay,
            vault,
            events_log: events,
            quiet,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: tokio::runtime::Handle::current(),
            started_at: now(),
            events: broadcast::channel(512).0,
            front: crate::front::Front::default(),
            watchers: AtomicUsize::new(0),
            state: Mutex::new(State {
                boxes: BTreeMap::new(),
                engine: None,
                engine_status,
                notices: BTreeMap::new(),
                reserved: HashMap::new(),
                bridges: HashMap::new(),
                subnets: Vec::new(),
            }),
            connecting: tokio::sync::Mutex::default(),
            checkpointing: tokio::sync::Mutex::default(),
            connected: tokio::sync::Notify::new(),
            web: crate::urls::Web::default(),
            nudge: tokio::sync::Notify::new(),
            sizes: Mutex::default(),
            adding_up: tokio::sync::Mutex::default(),
            queue: crate::queue::Queue::default(),
            egress: crate::egress::Egress::default(),
            changing: tokio::sync::Mutex::default(),
            resolver,
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    /// Nobody listening is fine.
    pub fn send(&self, event: HostEvent) {
        let _ = self.events.send(event);
    }

    pub fn record(&self, id: &BoxId) -> Option<Record> {
        self.state().boxes.get(id).map(|k| k.record.clone())
    }

    pub fn box_state(&self, id: &BoxId) -> BoxState {
        self.state().boxes.get(id).map_or(BoxState::Missing, |k| k.state)
    }

    pub fn candidates(&self) -> Vec<Candidate> {
        let candidate = |known: &Known| Candidate {
            id: known.record.id.clone(),
            name: known.record.name.clone(),
            display_name: known.record.display_name.clone(),
            index: known.record.index,
            project: known.record.project.clone(),
            project_root: known.record.project_root.clone(),
            workspace: known.record.workspace.clone(),
        };
        self.state().boxes.values().map(candidate).collect()
    }

    /// All boxes, by project and index.
    pub fn views(&self) -> Vec<BoxView> {
        let roots: BTreeSet<PathBuf> =
            self.state().boxes.values().map(|known| known.record.project_root.clone()).collect();
        let (asking, names) = (self.asking(), self.names(roots));
        let state = self.state();
        let view = |known| view_of(known, &asking, &names);
        let mut views: Vec<BoxView> = state.boxes.values().map(view).collect();
        drop(state);
        views.sort_by(|a, b| (&a.project_root, a.index).cmp(&(&b.project_root, b.index)));
        views
    }

    pub fn view(&self, id: &BoxId) -> Option<BoxView> {
        let root = self.state().boxes.get(id)?.record.project_root.clone();
        let (asking, names) = (self.asking(), self.names([root]));
        self.state().boxes.get(id).map(|k| view_of(k, &asking, &names))
    }

    /// The boxes that have open questions, once per question. Taken before the state's lock: the
    /// broker calls sinks under its own.
    fn asking(&self) -> Vec<BoxId> {
        self.broker.pending().into_iter().map(|q| q.box_id).collect()
    }

    pub fn send_view(&self, id: &BoxId) {
        if let Some(view) = self.view(id) {
            self.send(HostEvent::BoxChanged { view });
        }
    }

    /// For callers that hold the broker's lock.
    pub fn send_view_later(self: &Arc<Self>, id: &BoxId) {
        let (core, id) = (self.clone(), id.clone());
        self.runtime.spawn(async move {
            core.send_view(&id);
            core.send_status();
        });
    }

    /// For what ends by itself.
    pub fn send_view_after(self: &Arc<Self>, id: &BoxId, time: Duration) {
        let (core, id) = (self.clone(), id.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = core.stop.cancelled() => {}
                () = tokio::time::sleep(time) => core.send_view(&id),
            }
        });
    }

    /// Whether somebody follows what happens, and so could answer.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0
    }

    /// Somebody could answer, for as long as this is kept.
    pub fn watching(self: &Arc<Self>) -> Watching {
        self.watchers.fetch_add(1, Ordering::AcqRel);
        Watching(self.clone())
    }

    /// Notes a new state and tells everybody, when it is one.
    pub fn set_box_state(&self, id: &BoxId, new: BoxState) {
        let changed = match self.state().boxes.get_mut(id) {
            Some(known) if known.state != new => {
                known.state = new;
                known.close(new);
                match new {
                    BoxState::Running | BoxState::Paused => known.ending.came_up(),
                    BoxState::Stopped | BoxState::Missing => {
                        known.ending.found(new, Instant::now(), now());
                    }
                    BoxState::Creating | BoxState::Unknown => {}
                }
                if matches!(new, BoxState::Stopped | BoxState::Missing) {
                    known.agents.clear();
                    known.asks.clear();
                    known.started.clear();
                    known.was_down = true;
                }
                // Whoever starts it, or finds it running, lets it go.
                known.ready &= matches!(new, BoxState::Running | BoxState::Paused);
                true
            }
            _ => false,
        };
        if changed {
            self.nudge.notify_one();
            self.send_view(id);
            self.send_status();
        }
    }

    /// The box has its token and was let go.
    pub fn set_ready(&self, id: &BoxId) {
        let news = self.with_known(id, |known| {
            known.active = Instant::now();
            !std::mem::replace(&mut known.ready, true)
        });
        if news == Some(true) {
            self.nudge.notify_one();
            self.send_view(id);
        }
    }

    pub fn status(&self) -> HostStatus {
        let (questions, jobs) = (self.broker.pending().len(), self.queue.counts());
        let state = self.state();
        HostStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            proto: protocol::PROTO,
            pid: std::process::id(),
            kind: self.kind.as_str().into(),
            home: self.home.display().to_string(),
            started_at: self.started_at,
            engine: state.engine_status.clone(),
            notices: state.notices.values().cloned().collect(),
            boxes: u32::try_from(state.boxes.len()).unwrap_or(u32::MAX),
            questions: u32::try_from(questions).unwrap_or(u32::MAX),
            quiet_until: self.quiet.until(now()),
            jobs,
        }
    }

    pub fn send_status(&self) {
        self.send(HostEvent::Status { status: self.status() });
    }

    /// Puts a new box on disk and in memory.
    pub async fn keep(
        &self,
        record: Record,
        token: &Token,
        state: BoxState,
        made: Entry,
    ) -> Result<(), StoreError> {
        let token_hash = *token.hash().as_bytes();
        self.store.put_new_box(StoredBox { record: record.clone(), token_hash }, made).await?;
        let mut known = Known { released: true, ready: true, ..Known::new(record, state) };
        known.ending.settle(SystemTime::now());
        self.state().boxes.insert(known.record.id.clone(), known);
        self.nudge.notify_one();
        Ok(())
    }
}

fn view_of(known: &Known, asking: &[BoxId], names: &Names) -> BoxView {
    let record = &known.record;
    let questions = asking.iter().filter(|id| **id == record.id).count();
    BoxView {
        id: record.id.clone(),
        name: record.name.clone(),
        display_name: record.display_name.clone(),
        index: record.index,
        // A repository may choose the names of folders in it.
        project: visible(&record.project),
        project_root: record.project_root.display().to_string(),
        workspace: record.workspace.display().to_string(),
        state: known.state,
        branch: record.branch.clone(),
        publish: record.publish.clone(),
        image: record.image.clone(),
        created_at: record.created_at,
        questions: u32::try_from(questions).unwrap_or(u32::MAX),
        muted_until: known.muted_until.filter(|until| *until > now()),
        channel: record.channel.as_str().to_owned(),
        busy: known.busy.map(str::to_owned),
        agents: known.agents.iter().map(|(agent, at)| agent_view(record, *agent, *at)).collect(),
        logins: record.logins.iter().copied().collect(),
        web: names.shown(known, LinkTo::Web),
        screen: names.shown(known, LinkTo::Screen),
        nested_repos: record.nested.iter().map(nested_view).collect(),
        egress: record.egress,
        down: matches!(known.state, BoxState::Stopped | BoxState::Missing)
            .then(|| known.ending.down())
            .flatten(),
    }
}

fn nested_view(nested: &boxes::NestedRepo) -> NestedView {
    NestedView { path: nested.path.clone(), branch: nested.branch.clone() }
}

fn agent_view(record: &Record, agent: Agent, at: (AgentState, Millis)) -> AgentView {
    let (state, since) = at;
    AgentView { agent, state, since, has_login: record.logins.contains(&agent) }
}

/// A token no one has had before.
pub fn fresh_token() -> Result<Token, ControlError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| {
        ControlError::new(ErrorCode::Failed, format!("no randomness for a token: {e}"))
    })?;
    Ok(Token::from_bytes(bytes))
}

impl From<StoreError> for ControlError {
    fn from(e: StoreError) -> Self {
        ControlError::new(ErrorCode::Failed, e.to_string())
    }
}
