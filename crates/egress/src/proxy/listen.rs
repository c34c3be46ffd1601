//! Where connections come in: a socket per box, a place for each connection, a task for each place.

use super::{BoxState, Shared};
use futures_util::FutureExt;
use protocol::egress::Reason;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::OwnedSemaphorePermit;

/// The name of a box's socket in its folder.
pub const SOCKET: &str = "egress.sock";
/// For a refusal that nobody may be there to read.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

pub(super) async fn accept(shared: Arc<Shared>, state: Arc<BoxState>, listener: UnixListener) {
    loop {
        let accepted = tokio::select! {
            () = state.closed.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => admit(&shared, &state, stream),
            Err(e) => {
                // Out of descriptors, say: wait for some to come back instead of spinning.
                tracing::warn!("cannot accept for {}: {e}", state.id);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What one connection may hold on to.
struct Place {
    _of_box: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

fn place(shared: &Shared, state: &BoxState) -> Option<Place> {
    let of_box = state.places.clone().try_acquire_owned().ok()?;
    let of_all = shared.places.clone().try_acquire_owned().ok()?;
    Some(Place { _of_box: of_box, _of_all: of_all })
}

pub(super) fn admit<S>(shared: &Arc<Shared>, state: &Arc<BoxState>, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some(place) = place(shared, state) else {
        shared.tasks.spawn(turn_away(stream, Reason::TooManyConnections));
        return;
    };
    let (served, closed) = (turn_away(stream, Reason::PolicyUnavailable), state.closed.clone());
    let id = state.id.clone();
    shared.tasks.spawn(async move {
        let served = AssertUnwindSafe(served).catch_unwind();
        tokio::select! {
            () = closed.cancelled() => {}
            ended = served => if ended.is_err() {
                tracing::error!("egress: a connection of {id} ended in a fault");
            }
        }
        drop(place);
    });
}

async fn turn_away<S>(mut stream: S, reason: Reason)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let code = reason.code();
    let text = format!(
        "HTTP/1.1 {} AgentBox\r\nx-agentbox-egress: blocked\r\nx-agentbox-reason: {code}\r\n\
         retry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        reason.status()
    );
    let said = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(LAST_WORDS, said).await;
}
