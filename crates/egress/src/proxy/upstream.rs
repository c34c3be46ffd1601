//! Connections to servers, and whom they may be used for again.
//!
//! They belong to one connection of a box: requests that come in by it may share what was dialled for it,
//! and when it ends, they end. Nothing is shared between boxes, and nothing is dialled but by the dialer.

use super::body::Outgoing;
use super::{BoxState, Shared};
use crate::dial::{Destination, Dialled, Stream};
use crate::host_name::HostName;
use crate::proxy::answer::Refusal;
use crate::request::Scheme;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::egress::Reason;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that wait for another request, of one connection of a box.
const MOST_IDLE: usize = 16;
/// For the last byte of an answer to be noticed by both halves of a connection.
const SETTLE: Duration = Duration::from_secs(1);
/// So much is under way between a box and a server, each way.
const WINDOW: u32 = 1024 * 1024;
const MOST_BUFFERED: usize = 256 * 1024;

/// Whom a connection is to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub scheme: Scheme,
    pub host: HostName,
    pub port: u16,
}

pub(crate) struct Upstreams {
    shared: Arc<Shared>,
    closed: CancellationToken,
    known: Arc<Mutex<Known>>,
    /// Many requests may come at once before it is known whether one connection carries them all.
    first: AsyncMutex<()>,
}

#[derive(Default)]
struct Known {
    idle: Vec<Idle>,
    shared: Vec<Multiplexed>,
}

struct Idle {
    server: Server,
    private: bool,
    remote: SocketAddr,
    sender: http1::SendRequest<Outgoing>,
}

struct Multiplexed {
    server: Server,
    private: bool,
    remote: SocketAddr,
    sender: http2::SendRequest<Outgoing>,
}

/// One request's use of a connection.
pub(crate) struct Lease {
    server: Server,
    pub remote: SocketAddr,
    private: bool,
    sender: Sender,
    /// It has carried a request before, and its server may have closed it since.
    pub reused: bool,
    known: Arc<Mutex<Known>>,
}

enum Sender {
    One(http1::SendRequest<Outgoing>),
    Many(http2::SendRequest<Outgoing>),
}

impl Upstreams {
    pub fn new(shared: &Arc<Shared>, state: &BoxState) -> Self {
        Self {
            shared: shared.clone(),
            closed: state.closed.clone(),
            known: Arc::default(),
            first: AsyncMutex::default(),
        }
    }

    /// A connection to this server; only records that allow it get one to a private address.
    pub async fn get(&self, server: &Server, allow_private: bool) -> Result<Lease, Refusal> {
        if let Some(lease) = self.again(server, allow_private).await {
            return Ok(lease);
        }
        if server.scheme == Scheme::Http || self.speaks_one(server) {
            return self.dial(server, allow_private).await;
        }
        let _alone = self.first.lock().await;
        match self.again(server, allow_private).await {
            Some(lease) => Ok(lease),
            None => self.dial(server, allow_private).await,
        }
    }

    /// A new connection for one request that may have met a dead one.
    pub async fn dial(&self, server: &Server, allow_private: bool) -> Result<Lease, Refusal> {
        let (host, port) = (server.host.clone(), server.port);
        let to = Destination { host, port, allow_private };
        let Dialled { stream, remote, private } = self.shared.dialer.dial(&to).await?;
        let (sender, known) = match server.scheme {
            Scheme::Http => (self.greet_one(TokioIo::new(stream)).await?, self.known.clone()),
            Scheme::Https => {
                let tls = self.shared.secure(stream, &server.host, Wanted::Any).await?;
                let many = tls.get_ref().1.alpn_protocol() == Some(b"h2");
                let io = TokioIo::new(tls);
                let sender =
                    if many { self.greet_many(io).await } else { self.greet_one(io).await };
                (sender?, self.known.clone())
            }
        };
        if let Sender::Many(sender) = &sender {
            let (server, sender) = (server.clone(), sender.clone());
            self.known().shared.push(Multiplexed { server, private, remote, sender });
        }
        Ok(Lease { server: server.clone(), remote, private, sender, reused: false, known })
    }

    async fn again(&self, server: &Server, allow_private: bool) -> Option<Lease> {
        let known = self.known.clone();
        let lease = |remote, private, sender| {
            let (server, known) = (server.clone(), known.clone());
            Lease { server, remote, private, sender, reused: true, known }
        };
        let may = |private: bool| allow_private || !private;
        {
            let mut known = self.known();
            known.shared.retain(|other| !other.sender.is_closed());
            let fits = |other: &&Multiplexed| other.server == *server && may(other.private);
            if let Some(found) = known.shared.iter().find(fits) {
                let sender = Sender::Many(found.sender.clone());
                return Some(lease(found.remote, found.private, sender));
            }
        }
        loop {
            let mut idle = {
                let mut known = self.known();
                known.idle.retain(|idle| !idle.sender.is_closed());
                let fits = |idle: &Idle| idle.server == *server && may(idle.private);
                let at = known.idle.iter().position(fits)?;
                known.idle.swap_remove(at)
            };
            if let Ok(Ok(())) = tokio::time::timeout(SETTLE, idle.sender.ready()).await {
                return Some(lease(idle.remote, idle.private, Sender::One(idle.sender)));
            }
        }
    }

    /// It is known to carry one request at a time.
    fn speaks_one(&self, server: &Server) -> bool {
        self.known().idle.iter().any(|idle| idle.server == *server)
    }

    async fn greet_one<S>(&self, io: TokioIo<S>) -> Result<Sender, Refusal>
    where
        S: Stream,
    {
        let greeting = http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(super::strict::MOST_HEADERS)
            .max_buf_size(MOST_BUFFERED)
            .handshake(io);
        let (sender, connection) = greeting.await.map_err(|e| broken(&e))?;
        self.drive(connection);
        Ok(Sender::One(sender))
    }

    async fn greet_many<S>(&self, io: TokioIo<S>) -> Result<Sender, Refusal>
    where
        S: Stream,
    {
        let greeting = http2::Builder::new(self.shared.exec(&self.closed))
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW * 2)
            .max_send_buf_size(MOST_BUFFERED)
            .max_header_list_size(256 * 1024)
            .keep_alive_interval(Duration::from_secs(60))
            .handshake(io);
        let (sender, connection) = greeting.await.map_err(|e| broken(&e))?;
        self.drive(connection);
        Ok(Sender::Many(sender))
    }

    fn drive<F>(&self, connection: F)
    where
        F: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        let closed = self.closed.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = closed.cancelled() => {}
                ended = connection => if let Err(e) = ended {
                    tracing::debug!("egress: a server's connection: {e}");
                }
            }
        });
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// What is spoken: `h1` or `h2`.
    pub fn proto(&self) -> &'static str {
        match self.sender {
            Sender::One(_) => "h1",
            Sender::Many(_) => "h2",
        }
    }

    pub fn is_many(&self) -> bool {
        matches!(self.sender, Sender::Many(_))
    }

    /// The answer's head; or the request back, when nothing of it was sent.
    pub async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Outgoing>>> {
        match &mut self.sender {
            Sender::One(sender) => sender.try_send_request(request).await,
            Sender::Many(sender) => sender.try_send_request(request).await,
        }
    }

    /// The answer has been read to its end. Gives nothing, for whoever kept it.
    pub fn give_back(self) -> Option<Self> {
        if let Sender::One(sender) = self.sender {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.idle.len() < MOST_IDLE && !sender.is_closed() {
                let (server, private, remote) = (self.server, self.private, self.remote);
                known.idle.push(Idle { server, private, remote, sender });
            }
        }
        None
    }
}

/// What a server is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    /// A connection that can become a WebSocket.
    One,
}

/// How servers are spoken to.
pub(crate) struct ClientTls {
    any: Arc<ClientConfig>,
    one: Arc<ClientConfig>,
}

impl ClientTls {
    pub fn new(roots: rustls::RootCertStore) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut any = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut one = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        one.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { any: Arc::new(any), one: Arc::new(one) })
    }
}

impl Shared {
    /// TLS with a server that must be the one the policy speaks of, whatever the box called it.
    pub async fn secure(
        &self,
        stream: Box<dyn Stream>,
        host: &HostName,
        wanted: Wanted,
    ) -> Result<TlsStream<Box<dyn Stream>>, Refusal> {
        let failed = |detail: String| Refusal::with(Reason::UpstreamTlsFailed, detail);
        let tls = self.client_tls().map_err(|e| failed(e.to_string()))?;
        let config = match wanted {
            Wanted::Any => tls.any.clone(),
            Wanted::One => tls.one.clone(),
        };
        let name = match host.address() {
            Some(address) => ServerName::from(address),
            None => ServerName::try_from(host.to_string()).map_err(|e| failed(e.to_string()))?,
        };
        let shaking = TlsConnector::from(config).connect(name, stream);
        match tokio::time::timeout(self.deps.limits.dial, shaking).await {
            Ok(Ok(tls)) => Ok(tls),
            Ok(Err(e)) => Err(failed(format!("{host}: {e}"))),
            Err(_) => {
                let detail = format!("{host} did not finish its handshake in time");
                Err(Refusal::with(Reason::UpstreamTimeout, detail))
            }
        }
    }

    pub fn exec(&self, closed: &CancellationToken) -> Exec {
        Exec { tasks: self.tasks.clone(), closed: closed.clone() }
    }
}

/// Runs the parts of an HTTP/2 connection, until the box is closed.
#[derive(Clone)]
pub(crate) struct Exec {
    tasks: TaskTracker,
    closed: CancellationToken,
}

impl<F> Executor<F> for Exec
where
    F: Future + Send + 'static,
{
    fn execute(&self, part: F) {
        let closed = self.closed.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = closed.cancelled() => {}
                _ = part => {}
            }
        });
    }
}

pub(crate) fn broken(e: &hyper::Error) -> Refusal {
    let mut detail = e.to_string();
    let mut cause = std::error::Error::source(e);
    while let Some(inner) = cause {
        detail = format!("{detail}: {inner}");
        cause = inner.source();
    }
    Refusal::with(Reason::UpstreamUnreachable, detail)
}
