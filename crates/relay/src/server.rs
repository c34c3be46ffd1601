//! One door per box: HTTP over its own Unix socket, or over streams of its bridge, bounded in every
//! direction. Whichever way a request comes, it meets the same checks.

use crate::call::{Call, Origin, note_refusal, refusal_text};
use crate::decide::{self, Plan, Refusal, decide};
use crate::limits::Bucket;
use crate::patient::{PATIENCE, Patient};
use crate::ports::{BoxPort, Credentials, EventLog, Policies, Policy, Trail};
use crate::process::{Limit, MAX_STREAM, ProcessError, Tool};
use crate::programs::{Readiness, SearchPath};
use crate::registration::{Registration, Worktree};
use crate::token::{Token, TokenHash, bearer};
use crate::transfer::{Transfer, TransferError};
use crate::{bridge, checkpoint, files, gh, git, http, integration, link};
use approvals::{Broker, Times, Together};
use bytes::Bytes;
use connectors::git::BranchName;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::BoxId;
use protocol::bridge::Service;
use protocol::rpc::{Envelope, EventPost, HttpError, MAX_BODY, MAX_EVENT};
use protocol::text::visible;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const MAX_CONNECTIONS: usize = 32;
const MAX_HEADERS: usize = 16 * 1024;
/// Host programs that may run for one box at once, git left aside.
const MAX_PROCESSES: usize = 4;
/// And for all boxes together.
const MAX_PROCESSES_IN_ALL: usize = 16;
/// Copies of one box that may be staged at once.
const MAX_COPIES: usize = 2;
/// How a box is may be told at some length.
const MAX_STATUS: usize = 256 * 1024;
/// Brackets within brackets in a body.
const MAX_DEPTH: usize = 16;
/// What one stream may be in a reply: all that is kept of it, if each sign takes two.
const MAX_ON_WIRE: usize = 2 * MAX_STREAM;
/// For answers under way when a box is closed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the relay is built from.
pub struct Deps {
    pub broker: Broker,
    pub port: Arc<dyn BoxPort>,
    pub trail: Arc<dyn Trail>,
    pub events: Arc<dyn EventLog>,
    pub policies: Arc<dyn Policies>,
    pub credentials: Arc<dyn Credentials>,
    /// Where host programs are looked for.
    pub search_path: OsString,
    /// The environment host programs get; see [`crate::process::base_env`].
    pub env: Vec<(OsString, OsString)>,
    /// The host's own environment, of which a program gets what is in its namespace.
    pub inherited: Vec<(OsString, OsString)>,
    /// AgentBox's own folder: no copy reads or writes there.
    pub home: PathBuf,
    /// A folder for what lives only as long as a call.
    pub scratch: PathBuf,
    /// Only for the text a box reads when nobody answered.
    pub question_timeout: Duration,
    pub rates: Rates,
    pub waits: Waits,
}

/// How often one box may knock: per minute, and at once.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    pub calls: (u32, u32),
    pub events: (u32, u32),
    pub failed_logins: (u32, u32),
    /// Refusals that are written down one by one.
    pub refusals: (u32, u32),
}

impl Default for Rates {
    fn default() -> Self {
        Self { calls: (240, 60), events: (600, 60), failed_logins: (20, 20), refusals: (60, 120) }
    }
}

/// How long others may keep the relay waiting.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// For a request's head, and again for its body.
    pub request: Duration,
    /// For a host program, whatever its own limit allows.
    pub program: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { request: Duration::from_secs(30), program: Limit::NETWORK.total }
    }
}

/// All boxes' listeners.
pub struct Relay {
    pub(crate) shared: Arc<Shared>,
    tasks: TaskTracker,
}

type Boxes = HashMap<BoxId, Arc<BoxState>>;

pub(crate) struct Shared {
    pub deps: Deps,
    pub readiness: Readiness,
    /// Of the host's search path, and of the one its programs get.
    search: SearchPath,
    path: SearchPath,
    pub quota: checkpoint::Quota,
    pub http: http::Client,
    pub processes: Semaphore,
    boxes: Mutex<Boxes>,
    /// Everything under way, so that an orderly end can wait for it.
    pub tasks: TaskTracker,
}

/// Whether a box has something to do with the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    UnderWay,
    /// When it last had; none never.
    Last(Option<Instant>),
}

pub(crate) struct BoxState {
    pub registration: Registration,
    /// One git operation per transfer repository at a time.
    pub locks: Arc<Vec<AsyncMutex<()>>>,
    token: RwLock<Tokens>,
    calls: Bucket,
    events: Bucket,
    strangers: Bucket,
    pub refusals: Bucket,
    pub unwritten: AtomicU64,
    pub processes: Semaphore,
    /// What may ask a person and is under way.
    pub together: Together<Envelope>,
    /// What only one family of methods needs to remember about the box.
    pub links: Bucket,
    pub offer: link::Offer,
    pub copies: Arc<Semaphore>,
    pub closed: CancellationToken,
    places: Arc<Semaphore>,
    /// When a connection of it last ended.
    last: Mutex<Option<Instant>>,
}

/// While a box is given a new token it may still present the old one.
struct Tokens {
    current: TokenHash,
    next: Option<TokenHash>,
}

impl Tokens {
    fn admit(&self, token: &Token) -> bool {
        // Both are looked at, whatever the first says.
        self.current.matches(token) | self.next.is_some_and(|next| next.matches(token))
    }
}

impl Relay {
    pub fn new(deps: Deps) -> Self {
        let tasks = TaskTracker::new();
        let (readiness, boxes) = (Readiness::default(), Mutex::default());
        let shared = Arc::new(Shared {
            deps,
            readiness,
            search: SearchPath::default(),
            path: SearchPath::default(),
            quota: checkpoint::Quota::default(),
            http: http::Client::default(),
            processes: Semaphore::new(MAX_PROCESSES_IN_ALL),
            boxes,
            tasks: tasks.clone(),
        });
        Self { shared, tasks }
    }

    /// Knows a box from now on. It comes in by [`Relay::listen`] or [`Relay::attach`].
    pub fn open(&self, registration: Registration, token: TokenHash) {
        let id = registration.id.clone();
        // An approved push of before may still run: the repositories keep their locks.
        let locks = self.close(&id).filter(|locks| locks.len() == registration.worktrees.len());
        let fresh =
            || Arc::new(registration.worktrees.iter().map(|_| AsyncMutex::default()).collect());
        let rates = self.shared.deps.rates;
        let bucket = |(per_minute, burst)| Bucket::new(per_minute, burst);
        let state = Arc::new(BoxState {
            locks: locks.unwrap_or_else(fresh),
            registration,
            token: RwLock::new(Tokens { current: token, next: None }),
            calls: bucket(rates.calls),
            events: bucket(rates.events),
            strangers: bucket(rates.failed_logins),
            refusals: bucket(rates.refusals),
            unwritten: AtomicU64::new(0),
            processes: Semaphore::new(MAX_PROCESSES),
            together: Together::default(),
            links: Bucket::new(6, 6),
            offer: link::Offer::default(),
            copies: Arc::new(Semaphore::new(MAX_COPIES)),
            closed: CancellationToken::new(),
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            last: Mutex::default(),
        });
        self.shared.lock().insert(id, state);
    }

    /// Listens for a box at `<dir>/relay.sock`. A stale socket of an earlier host is replaced.
    pub fn listen(&self, id: &BoxId, dir: &Path) -> io::Result<()> {
        let state = self.state(id)?;
        let listener = bind(&dir.join("relay.sock"))?;
        self.tasks.spawn(accept(self.shared.clone(), state, listener));
        Ok(())
    }

    /// Serves a box over its bridge until that ends or the box is closed.
    pub async fn attach<S>(&self, id: &BoxId, io: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let state = self.state(id)?;
        let (shared, closed) = (self.shared.clone(), state.closed.clone());
        let serve = move |stream: bridge::BridgeStream| {
            let Ok(place) = state.places.clone().try_acquire_owned() else {
                shared.tasks.spawn(turn_away(stream));
                return;
            };
            let (shared, state) = (shared.clone(), state.clone());
            shared.tasks.clone().spawn(async move {
                let (stream, hung_up) = bridge::watched(stream);
                serve(shared, state, stream, hung_up.cancelled()).await;
                drop(place);
            });
        };
        bridge::run(Service::Relay, io, serve, closed).await
    }

    /// Hands over the streams of a box to the network, from the bridge it has for them, until that ends
    /// or the box is closed.
    pub async fn attach_egress<S>(
        &self,
        id: &BoxId,
        io: S,
        serve: impl Fn(bridge::BridgeStream),
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let closed = self.state(id)?.closed.clone();
        bridge::run(Service::Egress, io, serve, closed).await
    }

    pub(crate) fn state(&self, id: &BoxId) -> io::Result<Arc<BoxState>> {
        let state = self.shared.lock().get(id).cloned();
        state.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such box"))
    }

    /// Does for a box what it could ask for itself. The person typed it, so nobody is asked.
    pub async fn act(
        &self,
        id: &BoxId,
        method: &str,
        params: &RawValue,
    ) -> io::Result<Result<Envelope, String>> {
        let state = self.state(id)?;
        let policy = Arc::new(self.shared.policy(&state));
        let request = decide::Request {
            reg: &state.registration,
            policy: &policy,
            method,
            params: Some(params),
        };
        let plan = match decide(&request) {
            Ok(plan) => plan,
            Err(Refusal::Unknown) => return Ok(Err(format!("there is no method {method}"))),
            Err(Refusal::Bad(text)) => return Ok(Err(text)),
            Err(Refusal::Rule(envelope)) => return Ok(Ok(*envelope)),
        };
        let shared = self.shared.clone();
        let method = method.to_owned();
        let times = Times::default();
        let call = Call { shared, state, method, origin: Origin::Person, policy, times };
        Ok(Ok(execute(call, plan).await))
    }

    /// A box is about to be given a new token; until [`Relay::settle`] the old one is good too.
    pub fn expect(&self, id: &BoxId, token: TokenHash) {
        if let Some(state) = self.shared.lock().get(id) {
            state.tokens().next = Some(token);
        }
    }

    /// The box has its new token: only that one is good from now on.
    pub fn settle(&self, id: &BoxId) {
        if let Some(state) = self.shared.lock().get(id) {
            let mut tokens = state.tokens();
            if let Some(next) = tokens.next.take() {
                tokens.current = next;
            }
        }
    }

    /// Stops listening for a box; what it asked is withdrawn.
    pub fn close(&self, id: &BoxId) -> Option<Arc<Vec<AsyncMutex<()>>>> {
        let state = self.shared.lock().remove(id)?;
        state.closed.cancel();
        Some(state.locks.clone())
    }

    /// What a box has to do with the host just now.
    pub fn activity(&self, id: &BoxId) -> Activity {
        let state = self.shared.lock().get(id).cloned();
        let Some(state) = state else { return Activity::Last(None) };
        if state.places.available_permits() < MAX_CONNECTIONS {
            return Activity::UnderWay;
        }
        Activity::Last(*state.last.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Brings a box's branches to the user's repository. False when nothing could be written there.
    pub async fn land(&self, id: &BoxId) -> Result<bool, String> {
        let state = self.shared.lock().get(id).cloned();
        let Some(state) = state else { return Ok(false) };
        let mut all = true;
        for at in 0..state.registration.worktrees.len() {
            all &= git::land(&self.shared, &state, at).await?;
        }
        Ok(all)
    }

    /// For a box that is about to go: commits that were fetched from it and could not be shown on its
    /// branch, because that is the person's by now, are kept under other names. Those names.
    pub async fn rescue(&self, id: &BoxId) -> Result<Vec<String>, String> {
        let state = self.shared.lock().get(id).cloned();
        let Some(state) = state else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for at in 0..state.registration.worktrees.len() {
            names.extend(git::rescue(&self.shared, &state, at).await?);
        }
        Ok(names)
    }

    /// Ends every listener and waits for what a person has already allowed.
    pub async fn shutdown(&self) {
        for (_, state) in self.shared.lock().drain() {
            state.closed.cancel();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl BoxState {
    fn tokens(&self) -> std::sync::RwLockWriteGuard<'_, Tokens> {
        self.token.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn transfer<'a>(&'a self, worktree: &'a Worktree) -> Result<Transfer<'a>, TransferError> {
        Ok(Transfer { tool: self.tool("git")?, env: self.env(&[]), worktree })
    }

    /// Branches that other boxes have in the same repository.
    pub fn branches_of_others(&self, id: &BoxId, worktree: &Worktree) -> Vec<BranchName> {
        let boxes = self.lock();
        let others = boxes.values().filter(|state| state.registration.id != *id);
        let worktrees = others.flat_map(|state| &state.registration.worktrees);
        let same = worktrees.filter(|other| other.host_objects == worktree.host_objects);
        same.map(|other| other.branch.clone()).collect()
    }

    /// A host program, never one of a box's.
    pub fn tool(&self, name: &str) -> Result<Tool, ProcessError> {
        self.search.find(name, &self.deps.search_path, &self.projects())
    }

    /// Folders a box's files come into.
    fn projects(&self) -> Vec<PathBuf> {
        let folders = |s: &Arc<BoxState>| {
            let reg = &s.registration;
            let repos = reg.worktrees.iter().map(|w| w.host_repo.clone());
            repos.chain([reg.project_root.clone(), reg.workspace.clone()]).collect::<Vec<_>>()
        };
        self.lock().values().flat_map(folders).collect()
    }

    /// The environment of one host program; see [`Call::env`].
    pub fn env(&self, prefixes: &[&str]) -> Vec<(OsString, OsString)> {
        let mut env = self.deps.env.clone();
        // What a program starts by name must not be a project's either.
        let projects = self.projects();
        for (_, value) in env.iter_mut().filter(|(key, _)| key == "PATH") {
            *value = self.path.outside(value, &projects);
        }
        let own = |key: &OsString| {
            key.to_str().is_some_and(|key| prefixes.iter().any(|p| key.starts_with(p)))
        };
        env.extend(self.deps.inherited.iter().filter(|(key, _)| own(key)).cloned());
        env
    }

    /// Branches that boxes have, or push to, in a repository of the user's.
    pub fn branches_at(&self, host_repo: &Path) -> Vec<BranchName> {
        let boxes = self.lock();
        let worktrees = boxes.values().flat_map(|state| &state.registration.worktrees);
        let here = worktrees.filter(|worktree| worktree.host_repo == host_repo);
        here.flat_map(|w| [w.branch.clone(), w.published().clone()]).collect()
    }

    pub fn policy(&self, state: &BoxState) -> Policy {
        self.deps.policies.policy(&state.registration.project_root)
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

const FULL: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

async fn turn_away(mut stream: bridge::BridgeStream) {
    let said = async {
        stream.write_all(FULL).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(LAST_WORDS, said).await;
}

async fn accept(shared: Arc<Shared>, state: Arc<BoxState>, listener: UnixListener) {
    loop {
        let stream = tokio::select! {
            () = state.closed.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    // Out of descriptors, say: wait for some to come back instead of spinning.
                    tracing::warn!("cannot accept for {}: {e}", state.registration.name);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let Ok(place) = state.places.clone().try_acquire_owned() else {
            let _ = stream.try_write(FULL);
            continue;
        };
        let (shared, state) = (shared.clone(), state.clone());
        shared.tasks.clone().spawn(async move {
            if let Ok((stream, caller)) = with_ear(stream) {
                serve(shared, state, stream, hung_up(&caller)).await;
            }
            drop(place);
        });
    }
}

async fn serve<S>(
    shared: Arc<Shared>,
    state: Arc<BoxState>,
    stream: S,
    hung_up: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (closed, served) = (state.closed.clone(), state.clone());
    let wait = shared.deps.waits.request;
    let service = hyper::service::service_fn(move |request| {
        let (shared, state) = (shared.clone(), state.clone());
        async move { Ok::<_, Infallible>(answer(&shared, &state, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(wait)
        .max_buf_size(MAX_HEADERS)
        .max_headers(64)
        .serve_connection(TokioIo::new(Patient::new(stream, PATIENCE)), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that ends early drops the call in it, and with it the question it raised.
    tokio::select! {
        _ = &mut connection => {}
        () = hung_up => {}
        () = closed.cancelled() => {
            // What is being answered now may still get out; nothing new is read.
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(LAST_WORDS, connection).await;
        }
    }
    *served.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// The stream, and a second handle on it that only listens for its end.
fn with_ear(stream: UnixStream) -> io::Result<(UnixStream, UnixStream)> {
    let stream = stream.into_std()?;
    let ear = stream.try_clone()?;
    Ok((UnixStream::from_std(stream)?, UnixStream::from_std(ear)?))
}

/// Resolves when the caller has closed its end. The HTTP server notices that only while it has
/// nothing left to read: one more byte than the request would keep a question alive that nobody
/// waits for.
async fn hung_up(caller: &UnixStream) {
    loop {
        match caller.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        // Something to read, which is not for us: wait for the next change.
        let _ =
            caller.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
}

type Reply = Response<Full<Bytes>>;

/// A request that did not get as far as a decision.
struct TurnedAway(StatusCode, &'static str);

async fn answer(shared: &Arc<Shared>, state: &Arc<BoxState>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    match routed(shared, state, &parts, body).await {
        Ok(reply) => reply,
        Err(TurnedAway(status, why)) => {
            let noted = format!("{why} (HTTP {})", status.as_u16());
            note_refusal(shared, state, "refused", path, &noted).await;
            fail(status, why)
        }
    }
}

async fn routed(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    parts: &hyper::http::request::Parts,
    body: Incoming,
) -> Result<Reply, TurnedAway> {
    admit(state, &parts.headers)?;
    let wait = shared.deps.waits.request;
    match (parts.uri.path(), &parts.method) {
        ("/rpc", &Method::POST) => {
            call(shared, state, &read(&parts.headers, body, wait).await?).await
        }
        ("/events", &Method::POST) => {
            event(shared, state, &read(&parts.headers, body, wait).await?)
        }
        ("/healthz", &Method::GET) => {
            Ok(json_reply(StatusCode::OK, &json!({ "ok": true, "proto": protocol::PROTO })))
        }
        ("/rpc" | "/events" | "/healthz", _) => {
            Err(TurnedAway(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"))
        }
        _ => Err(TurnedAway(StatusCode::NOT_FOUND, "not found")),
    }
}

/// Who is there, and is it a box's client at all?
fn admit(state: &BoxState, headers: &HeaderMap) -> Result<(), TurnedAway> {
    let foreign = headers.get("sec-fetch-site").is_some_and(|v| v != "none");
    if headers.contains_key(ORIGIN) || foreign {
        return Err(TurnedAway(StatusCode::FORBIDDEN, "requests from web pages are refused"));
    }
    if !headers.get(HOST).is_some_and(|v| v == "agentbox" || v == "localhost") {
        return Err(TurnedAway(StatusCode::MISDIRECTED_REQUEST, "wrong host"));
    }
    let given = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(bearer);
    let Some(given) = given else {
        return Err(stranger(state, "missing bearer token"));
    };
    let known = state.token.read().unwrap_or_else(PoisonError::into_inner);
    match Token::parse(given) {
        Some(token) if known.admit(&token) => Ok(()),
        _ => Err(stranger(state, "unknown box token")),
    }
}

fn stranger(state: &BoxState, why: &'static str) -> TurnedAway {
    if state.strangers.take() {
        TurnedAway(StatusCode::UNAUTHORIZED, why)
    } else {
        TurnedAway(StatusCode::TOO_MANY_REQUESTS, "too many failed attempts")
    }
}

async fn read(headers: &HeaderMap, body: Incoming, wait: Duration) -> Result<Bytes, TurnedAway> {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let why = "content type must be application/json";
        return Err(TurnedAway(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    let too_large = || TurnedAway(StatusCode::PAYLOAD_TOO_LARGE, "request body too large");
    if announced.is_some_and(|n| n > MAX_BODY) {
        return Err(too_large());
    }
    match tokio::time::timeout(wait, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(TurnedAway(StatusCode::BAD_REQUEST, "incomplete body")),
        Err(_) => Err(TurnedAway(StatusCode::REQUEST_TIMEOUT, "the body took too long to come")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

async fn call(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    body: &[u8],
) -> Result<Reply, TurnedAway> {
    if !state.calls.take() {
        return Err(TurnedAway(StatusCode::TOO_MANY_REQUESTS, "too many requests from this box"));
    }
    if is_deep(body) {
        return Err(TurnedAway(StatusCode::BAD_REQUEST, "json nested too deeply"));
    }
    let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else {
        return Err(TurnedAway(StatusCode::BAD_REQUEST, "invalid json"));
    };
    let Some(method) = body.method else {
        return Err(TurnedAway(StatusCode::BAD_REQUEST, "missing method"));
    };
    let policy = Arc::new(shared.policy(state));
    let request = decide::Request {
        reg: &state.registration,
        policy: &policy,
        method: &method,
        params: body.params,
    };
    let plan = match decide(&request) {
        Ok(plan) => plan,
        Err(refusal) => {
            if refusal == Refusal::Unknown {
                tell_unknown(shared, state, &method);
            }
            let (reply, why) = refused(&method, refusal);
            note_refusal(shared, state, "refused", &method, &why).await;
            return Ok(reply);
        }
    };
    let key = plan.joins().then(|| same(&method, body.params));
    let (shared, state) = (shared.clone(), state.clone());
    let times = Times::default();
    let call = Call { shared, state, method, origin: Origin::Box, policy, times };
    let envelope = match key {
        // The same request while it is under way is one question and is done once.
        Some(key) => {
            let state = call.state.clone();
            let work = move |times| execute(Call { times, ..call }, plan);
            state.together.run(key, work).await
        }
        None => execute(call, plan).await,
    };
    Ok(json_reply(StatusCode::OK, &fitted(envelope)))
}

/// What a program printed within its bounds can still be several times as long on the wire.
fn fitted(mut envelope: Envelope) -> Envelope {
    for text in [&mut envelope.stdout, &mut envelope.stderr] {
        let mut length = 0;
        let cut = text.char_indices().find_map(|(at, c)| {
            length += match c {
                '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                c if c < ' ' => 6,
                c => c.len_utf8(),
            };
            (length > MAX_ON_WIRE).then_some(at)
        });
        if let Some(at) = cut {
            text.truncate(at);
            text.push_str("\nrelay: output cut, it is too long on the wire\n");
        }
    }
    envelope
}

/// More brackets within brackets than any request has. Those in texts do not count.
fn is_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// What makes two requests the same: spaces and the order of keys do not matter.
fn same(method: &str, params: Option<&RawValue>) -> String {
    let params: serde_json::Value =
        params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or_default();
    format!("{method} {params}")
}

async fn execute(call: Call, plan: Plan) -> Envelope {
    let done = match plan {
        Plan::Git(plan) => git::execute(&call, plan).await,
        Plan::Gh(plan) => gh::execute(&call, plan).await,
        Plan::Integration(plan) => integration::execute(&call, plan).await,
        Plan::Files(plan) => files::execute(&call, plan).await,
        Plan::Link(plan) => link::execute(&call, plan),
        Plan::Checkpoint(plan) => checkpoint::execute(&call, plan).await,
    };
    call.settle(done).await
}

fn refused(method: &str, refusal: Refusal) -> (Reply, String) {
    match refusal {
        Refusal::Unknown => {
            let why = format!("unknown method {}", visible(method));
            (fail(StatusCode::NOT_IMPLEMENTED, &why), why)
        }
        Refusal::Bad(why) => (fail(StatusCode::BAD_REQUEST, &why), why),
        Refusal::Rule(envelope) => {
            let why = refusal_text(&envelope);
            (json_reply(StatusCode::OK, &*envelope), why)
        }
    }
}

/// An unknown method may be a newer box's: whoever looks at the events finds it.
fn tell_unknown(shared: &Shared, state: &BoxState, method: &str) {
    let payload = json!({ "method": method.chars().take(200).collect::<String>() });
    let payload = serde_json::value::to_raw_value(&payload).ok();
    let event = EventPost { kind: "rpc-unknown".into(), ts: None, payload };
    shared.deps.events.keep(&state.registration.id, event);
}

fn event(shared: &Shared, state: &BoxState, body: &[u8]) -> Result<Reply, TurnedAway> {
    if !state.events.take() {
        return Err(TurnedAway(StatusCode::TOO_MANY_REQUESTS, "too many events from this box"));
    }
    if is_deep(body) {
        return Err(TurnedAway(StatusCode::BAD_REQUEST, "json nested too deeply"));
    }
    let Ok(event) = serde_json::from_slice::<EventPost>(body) else {
        return Err(TurnedAway(StatusCode::BAD_REQUEST, "unknown event"));
    };
    let id = &state.registration.id;
    let accepted = |body| Ok(json_reply(StatusCode::ACCEPTED, &body));
    match event.kind.as_str() {
        EventPost::REF_CHANGE => {
            shared.deps.port.ref_changed(id);
            accepted(json!({ "ok": true }))
        }
        EventPost::BOX_STATUS => match event.payload {
            Some(status) if is_status_of(id, &status) && body.len() <= MAX_STATUS => {
                shared.deps.events.status(id, status.into());
                accepted(json!({ "ok": true }))
            }
            _ => Err(TurnedAway(StatusCode::BAD_REQUEST, "not a status of this box")),
        },
        // A box's word about a credential is worth nothing to other boxes.
        "credentials-updated" => {
            Err(TurnedAway(StatusCode::BAD_REQUEST, "credentials are not taken from boxes"))
        }
        kind if OWN_EVENTS.contains(&kind) => {
            Err(TurnedAway(StatusCode::BAD_REQUEST, "only the host tells this"))
        }
        kind if !is_kind(kind) => {
            Err(TurnedAway(StatusCode::BAD_REQUEST, "not the name of an event"))
        }
        _ if body.len() > MAX_EVENT => {
            Err(TurnedAway(StatusCode::PAYLOAD_TOO_LARGE, "the event is larger than 64 KiB"))
        }
        _ => accepted(json!({ "id": shared.deps.events.keep(id, event) })),
    }
}

/// Events the relay makes itself. A box that could post them would look like the host.
const OWN_EVENTS: &[&str] = &["rpc-unknown", link::EVENT];

/// What a status must say; the rest is for whoever shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusHead<'a> {
    schema: u32,
    #[serde(borrow)]
    box_id: std::borrow::Cow<'a, str>,
}

fn is_status_of(id: &BoxId, status: &RawValue) -> bool {
    serde_json::from_str::<StatusHead<'_>>(status.get())
        .is_ok_and(|head| head.schema == 1 && head.box_id == id.as_str())
}

fn is_kind(kind: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let named = kind.starts_with(|c: char| c.is_ascii_lowercase());
    named && kind.len() <= 64 && kind.bytes().all(word)
}

fn fail(status: StatusCode, error: &str) -> Reply {
    json_reply(status, &HttpError { error: error.to_owned() })
}

fn json_reply(status: StatusCode, body: &impl serde::Serialize) -> Reply {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_60_a_reply_is_bounded_as_it_is_on_the_wire() {
        let told = |stdout: String| {
            serde_json::to_vec(&fitted(Envelope { stdout, ..Envelope::default() })).unwrap()
        };
        for sign in ["\u{1}", "\n", "\"", "ü", "x"] {
            let long = told(sign.repeat(MAX_STREAM / sign.len()));
            assert!(long.len() < MAX_ON_WIRE + 1024, "{sign:?}: {}", long.len());
        }
        let short = told("a\u{1}\"b\"\n".into());
        assert_eq!(String::from_utf8(short).unwrap().matches("cut").count(), 0);
    }
}
