//! Bytes carried both ways between a box and a server, counted, until one side ends, nothing moves for
//! long, or the policy no longer allows it.

use super::BoxState;
use crate::dial::Stream;
use crate::line::Meter;
use crate::policy::Policy;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// One of the two said so.
    Closed,
    Silence,
    Revoked,
}

impl End {
    pub fn said(self) -> Option<&'static str> {
        match self {
            Self::Closed => None,
            Self::Silence => Some("closed after a long silence"),
            Self::Revoked => Some("closed because the policy no longer allows it"),
        }
    }
}

pub(crate) struct Terms<F> {
    pub silence: Duration,
    pub grace: Duration,
    /// Whether a policy still allows it.
    pub still: F,
}

pub(crate) async fn pump<A, B, F>(
    state: &BoxState,
    of_box: A,
    of_server: B,
    meter: &Arc<Meter>,
    terms: Terms<F>,
) -> End
where
    A: Stream,
    B: Stream,
    F: Fn(&Policy) -> bool,
{
    let mut up = Counted { stream: of_box, meter: meter.clone(), which: |meter| &meter.up };
    let mut down = Counted { stream: of_server, meter: meter.clone(), which: |meter| &meter.down };
    let carried = tokio::io::copy_bidirectional(&mut up, &mut down);
    tokio::select! {
        _ = carried => End::Closed,
        () = silent(meter, terms.silence) => End::Silence,
        () = revoked(state, terms.grace, terms.still) => End::Revoked,
    }
}

async fn silent(meter: &Meter, limit: Duration) {
    let total = || meter.up.load(Ordering::Relaxed) + meter.down.load(Ordering::Relaxed);
    loop {
        let before = total();
        tokio::time::sleep(limit).await;
        if total() == before {
            return;
        }
    }
}

/// Ends when a policy has not allowed it for as long as it may take to say goodbye.
async fn revoked(state: &BoxState, grace: Duration, still: impl Fn(&Policy) -> bool) {
    let mut policy = state.policy.clone();
    loop {
        let allowed = policy.borrow_and_update().as_ref().is_some_and(|policy| still(policy));
        let changed = policy.changed();
        if allowed {
            if changed.await.is_err() {
                // Nobody will change it any more; the box's end ends this too.
                std::future::pending::<()>().await;
            }
        } else if tokio::time::timeout(grace, changed).await.is_err() {
            return;
        }
    }
}

struct Counted<S> {
    stream: S,
    meter: Arc<Meter>,
    which: fn(&Meter) -> &AtomicU64,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, out);
        let read = out.filled().len() - before;
        (self.which)(&self.meter).fetch_add(read as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
