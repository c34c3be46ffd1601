//! One connection of a box, from its first byte to what it turns into.

use super::body::Body;
use super::connect::{self, Tunnel};
use super::listen::linger;
use super::strict::{Faults, MOST_HEAD, MOST_HEADERS, Strict};
use super::upstream::Upstreams;
use super::websocket::{self, Socket};
use super::{BoxState, Shared, http};
use crate::dial::Stream;
use crate::host_name::HostName;
use crate::request::Scheme;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Requests under way on one HTTP/2 connection.
const MOST_STREAMS: u32 = 128;
const WINDOW: u32 = 1024 * 1024;
const MOST_BUFFERED: usize = 256 * 1024;
/// Of one answer among many that a box does not read.
const MOST_UNREAD: usize = 32 * 1024;

/// What all requests of one connection have in common.
pub(crate) struct Connection {
    pub shared: Arc<Shared>,
    pub state: Arc<BoxState>,
    pub via: Via,
    pub upstreams: Upstreams,
    /// What was wrong with the bytes; hyper knows nothing of it.
    pub faults: Faults,
    then: Mutex<Option<Then>>,
}

/// Where the requests of a connection go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Via {
    /// Each says it itself.
    Proxy,
    /// All to one host.
    Tunnel { scheme: Scheme, host: HostName, port: u16 },
}

/// What a connection becomes after its last request.
pub(crate) enum Then {
    Tunnel(Tunnel),
    Socket(Socket),
}

impl Connection {
    fn new(shared: &Arc<Shared>, state: &Arc<BoxState>, via: Via, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            shared: shared.clone(),
            state: state.clone(),
            via,
            upstreams: Upstreams::new(shared, state),
            faults,
            then: Mutex::default(),
        })
    }

    pub fn become_after(&self, then: Then) {
        *self.then.lock().unwrap_or_else(PoisonError::into_inner) = Some(then);
    }

    fn becomes(&self) -> Option<Then> {
        self.then.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A connection as it comes from the box.
pub(super) async fn serve<S: Stream>(shared: Arc<Shared>, state: Arc<BoxState>, stream: S) {
    match one(&shared, &state, stream, Via::Proxy).await {
        Some(Then::Tunnel(tunnel)) => connect::run(&shared, &state, tunnel).await,
        Some(Then::Socket(socket)) => websocket::run(&shared, &state, socket).await,
        None => {}
    }
}

/// Requests to one host, in a tunnel.
pub(super) async fn tunnelled<S: Stream>(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    stream: S,
    via: Via,
    many: bool,
) {
    if many {
        return self::many(shared, state, stream, via).await;
    }
    if let Some(Then::Socket(socket)) = one(shared, state, stream, via).await {
        websocket::run(shared, state, socket).await;
    }
}

/// HTTP/1: one request after the other.
async fn one<S: Stream>(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    stream: S,
    via: Via,
) -> Option<Then> {
    let limits = shared.deps.limits;
    let (strict, faults) = Strict::new(stream, limits.head);
    let connection = Connection::new(shared, state, via, faults);
    let served = connection.clone();
    let service = service_fn(move |request| answer(served.clone(), request));
    let mut serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        // One is not the box's.
        .max_headers(MOST_HEADERS + 1)
        .max_buf_size(MOST_BUFFERED)
        .preserve_header_case(true)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(strict), service)
        .with_upgrades();
    if let Err(e) = (&mut serving).await {
        tracing::debug!("egress: a connection of {}: {e}", state.id);
    }
    let then = connection.becomes();
    if then.is_none()
        && let Some(parts) = serving.into_parts()
    {
        linger(parts.io.into_inner().into_inner()).await;
    }
    then
}

/// HTTP/2: many at once, each decided on its own.
async fn many<S: Stream>(shared: &Arc<Shared>, state: &Arc<BoxState>, stream: S, via: Via) {
    let connection = Connection::new(shared, state, via, Faults::default());
    let limits = shared.deps.limits;
    let under_way = UnderWay::default();
    let counted = under_way.clone();
    let service = service_fn(move |request| {
        counted.fetch_add(1, Ordering::Relaxed);
        let (connection, counted) = (connection.clone(), counted.clone());
        async move {
            let response = http::answer(connection, request).await;
            // Until the last of the answer has gone.
            let held = move |frame| {
                let _ = &counted;
                frame
            };
            Ok::<_, Infallible>(response.map(|body| body.map_frame(held)))
        }
    });
    let serving = http2::Builder::new(shared.exec(&state.closed))
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(u32::try_from(MOST_HEAD).unwrap_or(u32::MAX))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW * 2)
        .max_send_buf_size(MOST_UNREAD)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = idle(&under_way, limits.idle) => {
            serving.as_mut().graceful_shutdown();
            // Whoever does not take part in saying goodbye is left.
            tokio::time::timeout(limits.greeting, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(e) = ended {
        tracing::debug!("egress: a connection of {}: {e}", state.id);
    }
}

/// How many requests there have been; each that is under way has its own hold on it.
type UnderWay = Arc<AtomicU64>;

/// Ends when there has been no request for so long.
async fn idle(under_way: &UnderWay, limit: Duration) {
    loop {
        let before = under_way.load(Ordering::Relaxed);
        tokio::time::sleep(limit).await;
        // Two holds are the connection's own.
        if Arc::strong_count(under_way) <= 2 && under_way.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

async fn answer(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    Ok(http::answer(connection, request).await)
}
