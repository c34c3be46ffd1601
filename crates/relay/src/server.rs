//! One listener per box: HTTP over a Unix socket, bounded in every direction.

use crate::decide::{Plan, Refusal, decide};
use crate::git;
use crate::limits::Bucket;
use crate::ports::{BoxPort, Entry, Trail};
use crate::process::Tool;
use crate::registration::{Registration, Worktree};
use crate::token::{Token, TokenHash, bearer};
use crate::transfer::Transfer;
use approvals::Broker;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::BoxId;
use protocol::rpc::{Envelope, EventPost, HttpError, MAX_BODY};
use protocol::text::visible;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const MAX_CONNECTIONS: usize = 32;
const MAX_HEADERS: usize = 16 * 1024;
/// Calls of one box that may be under way at once, open questions among them. Git runs for one of
/// them at a time.
const MAX_OPERATIONS: usize = 8;
/// For answers under way when a box is closed.
const LAST_WORDS: Duration = Duration::from_secs(2);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What the relay is built from.
pub struct Deps {
    pub broker: Broker,
    pub port: Arc<dyn BoxPort>,
    pub trail: Arc<dyn Trail>,
    pub git: Tool,
    /// The environment host programs get; see [`crate::process::base_env`].
    pub env: Vec<(OsString, OsString)>,
    /// Only for the text a box reads when nobody answered.
    pub question_timeout: Duration,
}

/// All boxes' listeners.
pub struct Relay {
    shared: Arc<Shared>,
    boxes: Mutex<HashMap<BoxId, Arc<BoxState>>>,
    tasks: TaskTracker,
}

pub(crate) struct Shared {
    pub deps: Deps,
    /// Everything under way, so that an orderly end can wait for it.
    pub tasks: TaskTracker,
}

pub(crate) struct BoxState {
    pub registration: Registration,
    /// One git operation per transfer repository at a time.
    pub locks: Arc<Vec<AsyncMutex<()>>>,
    token: RwLock<Tokens>,
    calls: Bucket,
    events: Bucket,
    strangers: Bucket,
    operations: Semaphore,
    closed: CancellationToken,
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
        let shared = Arc::new(Shared { deps, tasks: tasks.clone() });
        Self { shared, boxes: Mutex::default(), tasks }
    }

    /// Listens for a box at `<dir>/relay.sock`. A stale socket of an earlier host is replaced.
    pub fn open(&self, registration: Registration, token: TokenHash, dir: &Path) -> io::Result<()> {
        let id = registration.id.clone();
        // An approved push of before may still run: the repositories keep their locks.
        let locks = self.close(&id).filter(|locks| locks.len() == registration.worktrees.len());
        let fresh =
            || Arc::new(registration.worktrees.iter().map(|_| AsyncMutex::default()).collect());
        let listener = bind(&dir.join("relay.sock"))?;
        let state = Arc::new(BoxState {
            locks: locks.unwrap_or_else(fresh),
            registration,
            token: RwLock::new(Tokens { current: token, next: None }),
            calls: Bucket::new(240, 60),
            events: Bucket::new(600, 60),
            strangers: Bucket::new(20, 20),
            operations: Semaphore::new(MAX_OPERATIONS),
            closed: CancellationToken::new(),
        });
        self.lock().insert(id, state.clone());
        self.tasks.spawn(accept(self.shared.clone(), state, listener));
        Ok(())
    }

    /// A box is about to be given a new token; until [`Relay::settle`] the old one is good too.
    pub fn expect(&self, id: &BoxId, token: TokenHash) {
        if let Some(state) = self.lock().get(id) {
            state.tokens().next = Some(token);
        }
    }

    /// The box has its new token: only that one is good from now on.
    pub fn settle(&self, id: &BoxId) {
        if let Some(state) = self.lock().get(id) {
            let mut tokens = state.tokens();
            if let Some(next) = tokens.next.take() {
                tokens.current = next;
            }
        }
    }

    /// Stops listening for a box; what it asked is withdrawn.
    pub fn close(&self, id: &BoxId) -> Option<Arc<Vec<AsyncMutex<()>>>> {
        let state = self.lock().remove(id)?;
        state.closed.cancel();
        Some(state.locks.clone())
    }

    /// Brings a box's branches to the user's repository. False when nothing could be written there.
    pub async fn land(&self, id: &BoxId) -> Result<bool, String> {
        let state = self.lock().get(id).cloned();
        let Some(state) = state else { return Ok(false) };
        let mut all = true;
        for at in 0..state.registration.worktrees.len() {
            all &= git::land(&self.shared, &state, at).await?;
        }
        Ok(all)
    }

    /// Ends every listener and waits for what a person has already allowed.
    pub async fn shutdown(&self) {
        for (_, state) in self.lock().drain() {
            state.closed.cancel();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BoxId, Arc<BoxState>>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BoxState {
    fn tokens(&self) -> std::sync::RwLockWriteGuard<'_, Tokens> {
        self.token.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub fn transfer<'a>(&'a self, worktree: &'a Worktree) -> Transfer<'a> {
        Transfer { tool: &self.deps.git, env: &self.deps.env, worktree }
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

async fn accept(shared: Arc<Shared>, state: Arc<BoxState>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
        let Ok(place) = places.clone().try_acquire_owned() else {
            let _ = stream.try_write(
                b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            );
            continue;
        };
        let (shared, state) = (shared.clone(), state.clone());
        shared.tasks.clone().spawn(async move {
            serve(shared, state, stream).await;
            drop(place);
        });
    }
}

async fn serve(shared: Arc<Shared>, state: Arc<BoxState>, stream: UnixStream) {
    let closed = state.closed.clone();
    let Ok((stream, caller)) = with_ear(stream) else { return };
    let service = hyper::service::service_fn(move |request| {
        let (shared, state) = (shared.clone(), state.clone());
        async move { Ok::<_, Infallible>(answer(&shared, &state, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(BODY_TIMEOUT)
        .max_buf_size(MAX_HEADERS)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that ends early drops the call in it, and with it the question it raised.
    tokio::select! {
        _ = &mut connection => {}
        () = hung_up(&caller) => {}
        () = closed.cancelled() => {
            // What is being answered now may still get out; nothing new is read.
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(LAST_WORDS, connection).await;
        }
    }
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

async fn answer(shared: &Arc<Shared>, state: &Arc<BoxState>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    if let Err(reply) = admit(state, &parts.headers) {
        return reply;
    }
    match (parts.uri.path(), &parts.method) {
        ("/rpc", &Method::POST) => match read(&parts.headers, body).await {
            Ok(body) => call(shared, state, &body).await,
            Err(reply) => reply,
        },
        ("/events", &Method::POST) => match read(&parts.headers, body).await {
            Ok(body) => event(shared, state, &body),
            Err(reply) => reply,
        },
        ("/healthz", &Method::GET) => {
            json_reply(StatusCode::OK, &json!({ "ok": true, "proto": protocol::PROTO }))
        }
        ("/rpc" | "/events" | "/healthz", _) => {
            fail(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
        _ => fail(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Who is there, and is it a box's client at all?
fn admit(state: &BoxState, headers: &HeaderMap) -> Result<(), Reply> {
    let foreign = headers.get("sec-fetch-site").is_some_and(|v| v != "none");
    if headers.contains_key(ORIGIN) || foreign {
        return Err(fail(StatusCode::FORBIDDEN, "requests from web pages are refused"));
    }
    if !headers.get(HOST).is_some_and(|v| v == "agentbox" || v == "localhost") {
        return Err(fail(StatusCode::MISDIRECTED_REQUEST, "wrong host"));
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

fn stranger(state: &BoxState, why: &str) -> Reply {
    if state.strangers.take() {
        tracing::warn!("refused on the socket of {}: {why}", state.registration.name);
        fail(StatusCode::UNAUTHORIZED, why)
    } else {
        fail(StatusCode::TOO_MANY_REQUESTS, "too many failed attempts")
    }
}

async fn read(headers: &HeaderMap, body: Incoming) -> Result<Bytes, Reply> {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        return Err(fail(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content type must be application/json",
        ));
    }
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    let too_large = || fail(StatusCode::PAYLOAD_TOO_LARGE, "request body too large");
    if announced.is_some_and(|n| n > MAX_BODY) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(fail(StatusCode::BAD_REQUEST, "incomplete body")),
        Err(_) => Err(fail(StatusCode::REQUEST_TIMEOUT, "body not complete within 30 s")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

async fn call(shared: &Arc<Shared>, state: &Arc<BoxState>, body: &[u8]) -> Reply {
    if !state.calls.take() {
        return fail(StatusCode::TOO_MANY_REQUESTS, "too many requests from this box");
    }
    let Ok(call) = serde_json::from_slice::<Call<'_>>(body) else {
        return fail(StatusCode::BAD_REQUEST, "invalid json");
    };
    let Some(method) = call.method else {
        return fail(StatusCode::BAD_REQUEST, "missing method");
    };
    let envelope = match decide(&state.registration, &method, call.params) {
        Ok(plan) => execute(shared, state, plan).await,
        Err(refusal) => {
            let (reply, why) = refused(&method, refusal);
            note_refusal(shared, state, &method, &why).await;
            return reply;
        }
    };
    json_reply(StatusCode::OK, &envelope)
}

async fn execute(shared: &Arc<Shared>, state: &Arc<BoxState>, plan: Plan) -> Envelope {
    let Ok(_place) = state.operations.try_acquire() else {
        let text = "too many operations of this box are under way; wait and retry";
        return Envelope::fail(protocol::exit::DENIED, text);
    };
    match plan {
        Plan::Push(at, push) => git::push(shared, state, at, push).await,
        Plan::Fetch(at, fetch) => git::fetch(shared, state, at, fetch).await,
    }
}

fn refused(method: &str, refusal: Refusal) -> (Reply, String) {
    match refusal {
        Refusal::Unknown => {
            let why = format!("unknown method {}", visible(method));
            (fail(StatusCode::NOT_IMPLEMENTED, &why), why)
        }
        Refusal::Rule(envelope) => {
            let why = format!("{} (exit {})", envelope.stderr.trim_end(), envelope.exit_code);
            (json_reply(StatusCode::OK, &*envelope), why)
        }
    }
}

async fn note_refusal(shared: &Shared, state: &BoxState, method: &str, why: &str) {
    // A box must not be able to fill the trail with its own text.
    let short = |text: &str| text.chars().take(400).collect::<String>();
    let entry = Entry {
        box_id: Some(state.registration.id.clone()),
        kind: "refused",
        summary: format!("Refused: {}", short(why)),
        data: json!({ "method": short(&visible(method)) }),
    };
    if let Err(e) = shared.deps.trail.record(entry).await {
        tracing::error!("{e}");
    }
}

fn event(shared: &Shared, state: &BoxState, body: &[u8]) -> Reply {
    if !state.events.take() {
        return fail(StatusCode::TOO_MANY_REQUESTS, "too many events from this box");
    }
    match serde_json::from_slice::<EventPost>(body) {
        Ok(EventPost::RefChange {}) => {
            shared.deps.port.ref_changed(&state.registration.id);
            json_reply(StatusCode::ACCEPTED, &json!({ "ok": true }))
        }
        Err(_) => fail(StatusCode::BAD_REQUEST, "unknown event"),
    }
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
