//! Bringing a host up, and down.

use crate::api::{Api, MUTED};
use crate::client::Client;
use crate::core::{Core, Known, Parts};
use crate::credentials::{Kept, Resolver};
use crate::events::Events;
use crate::journal::Written;
use crate::lock::HostLock;
use crate::policies::HostPolicies;
use crate::port::EnginePort;
use crate::prompt_command::PromptCommand;
use crate::quiet::Quiet;
use crate::sink::EventSink;
use crate::store::{Filter, Store, StoreError, now};
use crate::{Kind, control, doctor, home, project_dirs};
use approvals::{Broker, Limits};
use protocol::boxes::BoxState;
use protocol::control::{ControlError, HostStatus, Request};
use protocol::{BoxId, Millis};
use relay::process::{ProcessError, Tool, base_env};
use relay::{Deps, Rates, Relay, TokenHash, Waits};
use secrets::{Backend, Vault};
use settings::Settings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a headless host may take to make room.
const HAND_OVER: Duration = Duration::from_secs(10);
/// How long the first answer of the engine is waited for.
const FIRST_LOOK: Duration = Duration::from_secs(3);
/// How long work a person has allowed may go on after the host was told to stop.
const LAST_WORK: Duration = Duration::from_secs(10);

pub struct Options {
    pub home: PathBuf,
    pub kind: Kind,
    pub settings: Settings,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("a {kind} host is already running (pid {pid})")]
    AlreadyRunning { pid: u32, kind: String },
    #[error("another host holds {} and does not answer; end it and try again", .0.display())]
    Stuck(PathBuf),
    #[error("{} is too long for a socket; set AGENTBOX_HOME to a shorter path", .0.display())]
    HomeTooLong(PathBuf),
    #[error("cannot use {}: {source}", path.display())]
    Home { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Program(#[from] ProcessError),
    #[error(transparent)]
    Random(#[from] ControlError),
}

/// A running host.
pub struct Host {
    api: Api,
    core: Arc<Core>,
    _lock: HostLock,
}

impl Host {
    /// Takes the home, brings back every box, and listens.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let path = options.home.clone();
        if !doctor::socket_fits(&path) {
            return Err(StartError::HomeTooLong(path));
        }
        let unusable = |source| StartError::Home { path: path.clone(), source };
        home::prepare(&path).map_err(unusable)?;
        let lock = take_lock(&path, options.kind).await?;
        let store = Store::open(&home::database(&path))?;
        private_database(&path).map_err(unusable)?;
        project_dirs::bring_over(&path, &store.projects().await?);
        let core = build(options, store).await?;
        core.bring_back().await?;
        core.bring_back_jobs().await?;
        home::clear_leftovers(&path);
        for image in core.store.unfinished_captures().await? {
            core.tasks.spawn(core.clone().take_back_capture(image));
        }
        let _ = tokio::time::timeout(FIRST_LOOK, core.look_once()).await;
        let listener = control::bind(&home::control_socket(&path)).map_err(unusable)?;
        let api = Api::new(core.clone());
        core.tasks.spawn(control::serve(
            listener,
            api.clone(),
            core.stop.clone(),
            core.tasks.clone(),
        ));
        core.tasks.spawn(core.clone().follow_engine());
        core.clone().open_ways().await;
        core.tasks.spawn(core.clone().keep_few_running());
        core.tasks.spawn(core.clone().keep_queue());
        let writing = core.events_log.clone().write(core.store.clone(), core.stop.clone());
        core.tasks.spawn(writing);
        Ok(Self { api, core, _lock: lock })
    }

    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Resolves when somebody asks the host to stop.
    pub async fn stopped(&self) {
        self.core.stop.cancelled().await;
    }

    /// Denies what is open, ends what is under way, lets go of the home. Boxes go on.
    pub async fn shutdown(self) {
        self.core.broker.close();
        self.core.stop.cancel();
        self.core.tasks.close();
        let ended = async {
            self.core.relay.shutdown().await;
            if let Some(running) = self.core.egress.running() {
                running.proxy.shutdown().await;
            }
            self.core.tasks.wait().await;
            let engine = self.core.state().engine.clone();
            if let Some(boxes) = engine {
                boxes.settled().await;
            }
        };
        if tokio::time::timeout(LAST_WORK, ended).await.is_err() {
            tracing::warn!("stopped while work was still under way");
        }
        let _ = std::fs::remove_file(home::control_socket(&self.core.home));
    }
}

/// A desktop can be opened, and shows what waits. Where there is none, somebody has to be there.
pub(crate) fn when_nobody(set: settings::WhenNobody, kind: Kind) -> approvals::WhenNobody {
    match (set, kind) {
        (settings::WhenNobody::Wait, _) | (settings::WhenNobody::Auto, Kind::Desktop) => {
            approvals::WhenNobody::Wait
        }
        (settings::WhenNobody::Deny, _) | (settings::WhenNobody::Auto, Kind::Headless) => {
            approvals::WhenNobody::Deny
        }
    }
}

async fn build(options: Options, store: Store) -> Result<Arc<Core>, StartError> {
    let fresh: [u8; 16] = crate::create::random()?;
    let fresh = fresh.iter().map(|b| format!("{b:02x}")).collect();
    let install = store.install_id(fresh).await?;
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    Tool::find("git", &search_path)?;
    let Options { home, kind, settings } = options;
    let timeout = settings.approvals.timeout();
    let written = Arc::new(Written(store.clone()));
    let limits = Limits { timeout, ..Limits::default() };
    let broker = Broker::new(written.clone(), limits);
    broker.set_policy(when_nobody(settings.approvals.when_nobody_watches, kind));
    let vault = Vault::new(match settings.secrets.backend {
        settings::SecretsBackend::Keychain => Backend::Keychain { home: install.clone() },
        settings::SecretsBackend::File => Backend::File(home.join("secrets")),
    });
    let inherited: Vec<_> = std::env::vars_os().collect();
    let core = Arc::new_cyclic(|core| {
        let events = Arc::new(Events::new(core.clone()));
        let relay = Relay::new(Deps {
            broker: broker.clone(),
            port: Arc::new(EnginePort(core.clone())),
            trail: written,
            events: events.clone(),
            policies: Arc::new(HostPolicies::new(home.clone())),
            credentials: Arc::new(Kept { vault: vault.clone(), store: store.clone() }),
            search_path,
            env: base_env(inherited.iter().cloned()),
            inherited,
            scratch: home.join("relay"),
            home: home.clone(),
            question_timeout: timeout,
            rates: rates(&settings.relay),
            waits: Waits::default(),
        });
        let quiet = Quiet::new(settings.approvals.quiet);
        let resolver = Arc::new(Resolver::new(vault.clone(), store.clone(), root_of(core)));
        Core::new(Parts {
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
        })
    });
    core.broker.add_sink(Arc::new(EventSink(Arc::downgrade(&core))));
    core.tasks.spawn(crate::quiet::keep(core.clone()));
    if let Some(command) = &core.settings.approvals.prompt_command {
        core.broker.add_sink(PromptCommand::start(&core, command));
    }
    Ok(core)
}

/// Where the project of a box lies.
fn root_of(core: &Weak<Core>) -> crate::credentials::RootOf {
    let core = core.clone();
    Arc::new(move |id: &BoxId| Some(core.upgrade()?.record(id)?.project_root))
}

/// A quarter of a minute's calls, and a tenth of its events, may come at once.
fn rates(set: &settings::Relay) -> Rates {
    Rates {
        calls: (set.calls_per_minute, (set.calls_per_minute / 4).max(1)),
        events: (set.events_per_minute, (set.events_per_minute / 10).max(1)),
        ..Rates::default()
    }
}

impl Core {
    /// Rebuilds what a host that ended, however it ended, knew.
    async fn bring_back(self: &Arc<Self>) -> Result<(), StoreError> {
        let lost = self.store.close_lost_questions().await?;
        if lost > 0 {
            tracing::warn!("{lost} questions were open when the last host ended; they count as no");
        }
        self.events_log.bring_back(&self.store).await?;
        for stored in self.store.boxes().await? {
            let record = stored.record;
            if let Err(e) = self.register_hash(&record, TokenHash::from_bytes(stored.token_hash)) {
                tracing::error!("box {} cannot reach this host: {e}", record.name);
            }
            let mut known = Known::new(record, BoxState::Unknown);
            known.muted_until = self.still_muted(&known.record.id).await?;
            self.state().boxes.insert(known.record.id.clone(), known);
        }
        self.recall_agents();
        self.reload_ways(|_| true).await;
        Ok(())
    }
}

impl Core {
    /// A box that was muted stays so: the trail says until when.
    async fn still_muted(&self, id: &BoxId) -> Result<Option<Millis>, StoreError> {
        let kinds = vec![MUTED.to_owned()];
        let last = Filter { box_id: Some(id.clone()), kinds, limit: 1, ..Filter::default() };
        let last = self.store.audit(last).await?;
        let until = last.last().and_then(|record| record.data["until"].as_u64());
        let left = until.and_then(|until| until.checked_sub(now())).filter(|left| *left > 0);
        self.broker.mute(id, left.map(Duration::from_millis));
        Ok(self.broker.muted_until(id))
    }
}

/// Takes the lock; a desktop asks a headless host to make room.
async fn take_lock(home: &Path, kind: Kind) -> Result<HostLock, StartError> {
    let path = home::lock_file(home);
    let take =
        || HostLock::take(&path).map_err(|source| StartError::Home { path: path.clone(), source });
    if let Some(lock) = take()? {
        return Ok(lock);
    }
    let client = Client::new(home);
    let asked = tokio::task::spawn_blocking(move || {
        let status: HostStatus = client.call(&Request::Status)?;
        if kind == Kind::Desktop && status.kind == Kind::Headless.as_str() {
            client.call::<()>(&Request::HandOver)?;
            return Ok(None);
        }
        Ok::<_, crate::client::ClientError>(Some(status))
    });
    // It may be going already, or be too busy starting to answer: then the lock decides.
    if let Ok(Ok(Some(running))) = asked.await {
        return Err(StartError::AlreadyRunning { pid: running.pid, kind: running.kind });
    }
    let until = tokio::time::Instant::now() + HAND_OVER;
    while tokio::time::Instant::now() < until {
        if let Some(lock) = take()? {
            return Ok(lock);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(StartError::Stuck(home.to_owned()))
}

/// SQLite makes its files by the umask; the folder is private already, the files are too.
fn private_database(home: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(home::database(home), mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_52_what_is_set_by_default_is_what_the_parts_have_by_default() {
        let set = Settings::default();
        assert_eq!(set.approvals.timeout(), Limits::default().timeout);
        let (ours, usual) = (rates(&set.relay), Rates::default());
        assert_eq!((ours.calls, ours.events), (usual.calls, usual.events));
    }
}
