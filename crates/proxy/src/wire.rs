//! Connections into boxes, and the few that are kept for the next request.

use crate::{BoxFuture, Boxes, MAX_FIELDS, MAX_HEAD};
use hyper::Uri;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Unused connections that are kept for one port of a box, and for how long.
const IDLE: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(20);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to a port in a box.
pub struct Wire(Box<dyn Stream>);

impl Wire {
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self(Box::new(stream))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Makes connections to `http://<box id>:<port>`, an address nobody but us can have written.
#[derive(Clone)]
pub(crate) struct Connector(Arc<dyn Boxes>);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Wire>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let boxes = self.0.clone();
        Box::pin(async move {
            let id = to.host().and_then(|host| host.parse().ok());
            let (Some(id), Some(port)) = (id, to.port_u16()) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            let connecting = tokio::time::timeout(CONNECT, boxes.connect(&id, port));
            Ok(TokioIo::new(connecting.await.map_err(|_| io::ErrorKind::TimedOut)??))
        })
    }
}

pub(crate) type ToBoxes = Client<Connector, Incoming>;

pub(crate) fn client(boxes: Arc<dyn Boxes>) -> ToBoxes {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME)
        .pool_max_idle_per_host(IDLE)
        .http1_max_buf_size(MAX_HEAD)
        .http1_max_headers(MAX_FIELDS)
        .set_host(false)
        .build(Connector(boxes))
}
