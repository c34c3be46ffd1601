//! Boxes' web apps and screens by name, on the host's loopback.
//!
//! `http://<box>.localhost:1355` is the box's port 80, `<box>.vnc.localhost` and
//! `vnc-<box>.localhost` its screen, `<port>-<box>.localhost` any other port. The name is taken from
//! the Host header and from nothing else: a page of a foreign site that had its name resolve to this
//! computer (DNS rebinding) names no box and is turned away. Nothing here leads to the host itself.
//!
//! Both sides are distrusted. A page of one box cannot use the person's browser to reach another box,
//! and what a box answers is taken apart and put together anew: bounded heads, no hop-by-hop fields,
//! cookies for its own name only.
//!
//! The surprising thing: a frozen box is woken by a request, a stopped one is not. Any page in the
//! browser may cause a request, and starting a box is a person's decision.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod fields;
mod page;
mod pass;
mod wire;

pub use pass::TICKET;
pub use wire::{Stream, Wire};

use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use pass::Passing;
use protocol::boxes::BoxState;
use protocol::{BoxId, BoxName};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where the proxy listens unless a setting says otherwise.
pub const PORT: u16 = 1355;
/// Connections of browsers, over all boxes.
const MAX_CONNECTIONS: usize = 512;
/// A request's or answer's head, in bytes and in fields.
const MAX_HEAD: usize = 64 * 1024;
const MAX_FIELDS: usize = 128;
/// How long a browser may take for a head, and keep a connection it does not use.
const HEAD: Duration = Duration::from_secs(60);
/// After a connection could not be taken, for want of something.
const PAUSE: Duration = Duration::from_millis(100);

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the proxy must know of boxes, and the ways into them.
pub trait Boxes: Send + Sync + 'static {
    fn find(&self, name: &BoxName) -> Option<(BoxId, BoxState)>;
    /// Thaws a frozen box.
    fn wake<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), String>>;
    /// Where a ticket leads, once. A screen's password travels in the answer's fragment, which
    /// neither a program's arguments nor a server's log gets to see.
    fn redeem(&self, id: &BoxId, ticket: &str) -> Option<String>;
    /// A connection to a port of a running box.
    fn connect<'a>(&'a self, id: &'a BoxId, port: u16) -> BoxFuture<'a, io::Result<Wire>>;
}

/// The listening sockets; connections wait in them until [`Proxy::serve`] is called.
pub struct Listening {
    sockets: Vec<TcpListener>,
    port: u16,
}

impl Listening {
    /// Both loopback addresses, where there are two. Port 0 takes a free one.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let first = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = first.local_addr()?.port();
        let mut sockets = vec![first];
        match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await {
            Ok(second) => sockets.push(second),
            // Somebody else answers there, and browsers may ask them first.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => return Err(e),
            Err(e) => tracing::debug!("no proxy on [::1]:{port}: {e}"),
        }
        Ok(Self { sockets, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Proxy {
    passing: Arc<Passing>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Proxy {
    pub fn new(boxes: Arc<dyn Boxes>, stop: CancellationToken) -> Self {
        let tasks = TaskTracker::new();
        let passing = Arc::new(Passing::new(boxes, stop.clone(), tasks.clone()));
        Self { passing, places: Arc::new(Semaphore::new(MAX_CONNECTIONS)), stop, tasks }
    }

    /// Requests and open sockets that go to a box now.
    pub fn open(&self, id: &BoxId) -> usize {
        self.passing.open(id)
    }

    /// Serves until told to stop; what is under way ends then, too.
    pub async fn serve(&self, listening: Listening) {
        let (first, second) = {
            let mut sockets = listening.sockets.into_iter();
            (sockets.next(), sockets.next())
        };
        tokio::join!(self.accept(first), self.accept(second));
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn accept(&self, socket: Option<TcpListener>) {
        let Some(socket) = socket else { return };
        loop {
            let next = async {
                let place = self.places.clone().acquire_owned().await;
                (place, socket.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = self.stop.cancelled() => return,
                next = next => next,
            };
            let (stream, from) = match accepted {
                Ok(accepted) => accepted,
                Err(e) => {
                    tracing::debug!("proxy: {e}");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let this = self.clone();
            self.tasks.spawn(async move {
                tokio::select! {
                    () = this.stop.cancelled() => {}
                    () = this.converse(stream, from) => {}
                }
                drop(place);
            });
        }
    }

    async fn converse(&self, stream: TcpStream, from: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| {
            let passing = self.passing.clone();
            async move { Ok::<_, Infallible>(passing.answer(request, from).await) }
        });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(MAX_HEAD)
            .max_header_size(MAX_HEAD)
            .max_headers(MAX_FIELDS)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        if let Err(e) = served.await {
            tracing::debug!("proxy: {e}");
        }
    }
}
