//! The proxy that stands between boxes and the network.
//!
//! It is known by the carrier which box speaks: its Unix socket, or its bridge. Each connection is one
//! task, bounded in everything, and a fault in one ends that one. What a request may do is the policy's
//! to say; here it is taken apart, put together anew and carried, in constant memory.
//!
//! The surprising thing: a host that may not be reached is answered all the same, with a certificate of
//! its name and a refusal inside. Programs show what a server says and hide what a proxy says.

mod answer;
mod body;
mod bucket;
mod connect;
mod echoes;
mod fields;
mod forward;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod internal;
mod listen;
mod passthrough;
mod pump;
mod push;
mod replay;
mod serve;
mod strict;
mod tls;
mod upstream;
mod websocket;

pub(crate) use http::authority_of;
pub(crate) use internal::is_ours as is_own_name;
pub use listen::SOCKET;

use crate::authority::Authority;
use crate::dial::{Dialer, Net, Stream, Surroundings};
use crate::host_name::HostName;
use crate::line::Notebook;
use crate::policy::Policy;
use crate::ports::{Gate, Log, Secrets};
use crate::redact::Known;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bucket::Bucket;
use echoes::Echoes;
use protocol::egress::Traffic;
use protocol::{BoxId, BoxName, SecretId};
use rustls::RootCertStore;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use upstream::ClientTls;

/// What can be done about a line that was stopped, as the box is told it.
pub(crate) fn hint_for(line: &Traffic) -> Option<String> {
    answer::hint(line.reason?, &answer::Asked::of_line(line))
}

/// Lines for a person's eye that one box can cause in a minute.
const ALARMS: u32 = 12;
/// Connections too many that are told so at once.
const TURNED_AWAY: usize = 16;

/// What the proxy is built from.
pub struct Deps {
    pub secrets: Arc<dyn Secrets>,
    pub log: Arc<dyn Log>,
    pub gate: Arc<dyn Gate>,
    pub net: Arc<dyn Net>,
    pub authority: Arc<Authority>,
    /// Whom servers are vouched for by; read when the first server is met.
    pub roots: Box<dyn Fn() -> RootCertStore + Send + Sync>,
    pub limits: Limits,
}

/// How much, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connections_per_box: usize,
    pub connections: usize,
    /// Under way at once, on all connections together: each holds a little memory on both sides.
    pub requests_per_box: usize,
    /// For the head of a request, from its first byte.
    pub head: Duration,
    /// For the first bytes of a tunnel, and again for its handshake.
    pub greeting: Duration,
    /// Between requests.
    pub idle: Duration,
    /// For a server to take a connection and shake hands.
    pub dial: Duration,
    /// For the head of an answer; agents think long.
    pub answer: Duration,
    /// For a credential.
    pub secret: Duration,
    /// A WebSocket or a tunnel in which nothing moves.
    pub silence: Duration,
    /// What the policy no longer allows may say goodbye.
    pub grace: Duration,
    /// Names that no policy speaks of and that get a certificate, per minute and box.
    pub unlisted: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_per_box: 200,
            connections: 1000,
            requests_per_box: 1024,
            head: Duration::from_secs(15),
            greeting: Duration::from_secs(10),
            idle: Duration::from_secs(10 * 60),
            dial: Duration::from_secs(30),
            answer: Duration::from_secs(10 * 60),
            secret: Duration::from_secs(5),
            silence: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
            unlisted: 30,
        }
    }
}

/// A box, for as long as it runs.
pub struct BoxSetup {
    pub id: BoxId,
    pub name: BoxName,
    /// SHA-256 of the token's text. A program that presents one must present this one.
    pub token: [u8; 32],
    /// None while there is no policy: then nothing passes.
    pub policy: watch::Receiver<Option<Arc<Policy>>>,
    pub placeholders: Vec<Placeholder>,
}

/// What a box holds in place of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    pub secret: SecretId,
    pub value: String,
}

/// All boxes' ways out.
pub struct Proxy {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub deps: Deps,
    pub dialer: Dialer,
    pub echoes: Echoes,
    boxes: Mutex<HashMap<BoxId, Arc<BoxState>>>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    client_tls: OnceLock<Result<ClientTls, rustls::Error>>,
}

pub(crate) struct BoxState {
    pub id: BoxId,
    pub policy: watch::Receiver<Option<Arc<Policy>>>,
    placeholders: RwLock<Arc<[Placeholder]>>,
    pub notebook: Arc<Notebook>,
    pub known: Arc<Known>,
    tokens: RwLock<Tokens>,
    pub closed: CancellationToken,
    places: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    turning_away: Arc<Semaphore>,
    unlisted: Bucket,
    /// Names that nobody listed and that it was given a certificate for.
    certified: Mutex<HashSet<HostName>>,
    alarms: Bucket,
}

/// While a box is given a new token it may still present the old one.
struct Tokens {
    current: [u8; 32],
    next: Option<[u8; 32]>,
}

impl Proxy {
    pub fn new(deps: Deps) -> Self {
        let dialer = Dialer::new(deps.net.clone(), deps.limits.dial);
        let places = Arc::new(Semaphore::new(deps.limits.connections));
        Self {
            shared: Arc::new(Shared {
                deps,
                dialer,
                echoes: Echoes::default(),
                boxes: Mutex::default(),
                places,
                tasks: TaskTracker::new(),
                client_tls: OnceLock::new(),
            }),
        }
    }

    /// Knows a box from now on. It comes in by [`Proxy::listen`] or [`Proxy::serve`].
    pub fn open(&self, setup: BoxSetup) {
        self.close(&setup.id);
        // A box that starts is given what it is to trust.
        if let Err(e) = self.shared.deps.authority.tend(SystemTime::now()) {
            tracing::error!("egress: the certificate authority: {e}");
        }
        let fakes = setup.placeholders.iter().map(|fake| (fake.secret.clone(), fake.value.clone()));
        let known = Arc::new(Known::new(fakes));
        let limits = self.shared.deps.limits;
        let log = self.shared.deps.log.clone();
        let state = Arc::new(BoxState {
            id: setup.id.clone(),
            policy: setup.policy,
            placeholders: RwLock::new(setup.placeholders.into()),
            notebook: Notebook::new(setup.id.clone(), log, known.clone()),
            known,
            tokens: RwLock::new(Tokens { current: setup.token, next: None }),
            closed: CancellationToken::new(),
            places: Arc::new(Semaphore::new(limits.connections_per_box)),
            requests: Arc::new(Semaphore::new(limits.requests_per_box)),
            turning_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            unlisted: Bucket::new(limits.unlisted),
            certified: Mutex::default(),
            alarms: Bucket::new(ALARMS),
        });
        self.shared.boxes().insert(setup.id, state);
    }

    /// Listens for a box at [`SOCKET`] in its folder. A stale socket of an earlier host is replaced.
    pub fn listen(&self, id: &BoxId, dir: &Path) -> io::Result<()> {
        let state = self.shared.state(id)?;
        let listener = listen::bind(&dir.join(SOCKET))?;
        let accepting = listen::accept(self.shared.clone(), state, listener);
        self.shared.tasks.spawn(accepting);
        Ok(())
    }

    /// Serves one connection that came by the box's bridge, until it ends or the box is closed.
    pub fn serve(&self, id: &BoxId, stream: impl Stream) -> io::Result<()> {
        let state = self.shared.state(id)?;
        listen::admit(&self.shared, &state, stream);
        Ok(())
    }

    /// A box is about to be given a new token; until [`Proxy::settle`] the old one is good too.
    pub fn expect(&self, id: &BoxId, token: [u8; 32]) {
        if let Ok(state) = self.shared.state(id) {
            state.tokens.write().unwrap_or_else(PoisonError::into_inner).next = Some(token);
        }
    }

    /// The box has its new token: only that one is good from now on.
    pub fn settle(&self, id: &BoxId) {
        if let Ok(state) = self.shared.state(id) {
            let mut tokens = state.tokens.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(next) = tokens.next.take() {
                tokens.current = next;
            }
        }
    }

    /// What a box holds in place of credentials is this from now on.
    pub fn hold(&self, id: &BoxId, placeholders: Vec<Placeholder>) {
        if let Ok(state) = self.shared.state(id) {
            let fakes = placeholders.iter().map(|fake| (fake.secret.clone(), fake.value.clone()));
            state.known.hold(fakes);
            let mut held = state.placeholders.write().unwrap_or_else(PoisonError::into_inner);
            *held = placeholders.into();
        }
    }

    /// Ends everything of a box.
    pub fn close(&self, id: &BoxId) {
        if let Some(state) = self.shared.boxes().remove(id) {
            state.closed.cancel();
        }
    }

    /// What of this computer no box may reach, as far as the operating system does not say it.
    pub fn surround(&self, around: Surroundings) {
        self.shared.dialer.surround(around);
    }

    /// Hosts that sent credentials back too often; none is put into requests to them.
    pub fn suspended(&self) -> Vec<HostName> {
        self.shared.echoes.suspended()
    }

    /// A person knows what a host does and wants credentials put in again. False when they were not held
    /// back.
    pub fn acknowledge(&self, host: &HostName) -> bool {
        self.shared.echoes.acknowledge(host)
    }

    /// Ends every box and waits for the last connection.
    pub async fn shutdown(&self) {
        for (_, state) in self.shared.boxes().drain() {
            state.closed.cancel();
        }
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    fn boxes(&self) -> MutexGuard<'_, HashMap<BoxId, Arc<BoxState>>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, id: &BoxId) -> io::Result<Arc<BoxState>> {
        let state = self.boxes().get(id).cloned();
        state.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such box"))
    }

    fn client_tls(&self) -> Result<&ClientTls, rustls::Error> {
        let made = self.client_tls.get_or_init(|| ClientTls::new((self.deps.roots)()));
        made.as_ref().map_err(Clone::clone)
    }
}

/// Names a box is remembered to have a certificate for.
const MOST_CERTIFIED: usize = 1024;

impl BoxState {
    /// Names that nobody listed get only so many certificates. By what this box has had alone: that another
    /// one has been there is not for it to find out.
    fn may_certify(&self, host: &HostName) -> bool {
        let mut certified = self.certified.lock().unwrap_or_else(PoisonError::into_inner);
        if certified.contains(host) {
            return true;
        }
        let may = self.unlisted.take();
        if may {
            if certified.len() >= MOST_CERTIFIED {
                certified.clear();
            }
            certified.insert(host.clone());
        }
        may
    }

    pub fn placeholders(&self) -> Arc<[Placeholder]> {
        self.placeholders.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `Basic <box id>:<token>`, as programs send the user information of a proxy's address.
    fn is_own_token(&self, header: &[u8]) -> bool {
        let Some(given) = token_of(header, self.id.as_str()) else { return false };
        let given: [u8; 32] = Sha256::digest(&given).into();
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        // Both are looked at, whatever the first says.
        same(&tokens.current, &given) | tokens.next.is_some_and(|next| same(&next, &given))
    }
}

fn token_of(header: &[u8], id: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(header).ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let pair =
        scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok())??;
    Some(pair.strip_prefix(id.as_bytes())?.strip_prefix(b":")?.to_vec())
}

/// Looks at every byte whatever the first ones say.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differing = a.iter().zip(b).fold(0, |acc, (a, b)| acc | (a ^ b));
    std::hint::black_box(differing) == 0
}
