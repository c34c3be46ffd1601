//! Where connections come in: a socket per box, a place for each connection, a task for each place.

use super::{BoxState, Shared, serve};
use crate::dial::Stream;
use futures_util::FutureExt;
use protocol::egress::{Reason, TrafficKind};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::OwnedSemaphorePermit;

/// The name of a box's socket in its folder.
pub const SOCKET: &str = "egress.sock";
/// For a refusal to be read by whoever is still sending.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

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

/// What one connection holds on to.
struct Place {
    _of_box: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

fn place(shared: &Shared, state: &BoxState) -> Option<Place> {
    let of_box = state.places.clone().try_acquire_owned().ok()?;
    let of_all = shared.places.clone().try_acquire_owned().ok()?;
    Some(Place { _of_box: of_box, _of_all: of_all })
}

pub(super) fn admit<S: Stream>(shared: &Arc<Shared>, state: &Arc<BoxState>, stream: S) {
    let Some(place) = place(shared, state) else {
        // As many again may be told so at once; the rest just ends.
        if let Ok(turned_away) = state.turning_away.clone().try_acquire_owned() {
            shared.tasks.spawn(async move {
                turn_away(stream).await;
                drop(turned_away);
            });
        }
        return;
    };
    let (shared, state) = (shared.clone(), state.clone());
    shared.tasks.clone().spawn(async move {
        let served = AssertUnwindSafe(serve::serve(shared, state.clone(), stream)).catch_unwind();
        tokio::select! {
            () = state.closed.cancelled() => {}
            ended = served => if ended.is_err() {
                tracing::error!("egress: a connection of {} ended in a fault", state.id);
                let detail = "a connection ended in a fault of the proxy's own".to_owned();
                state.notebook.remark(TrafficKind::Alert, None, None, detail);
            }
        }
        drop(place);
    });
}

async fn turn_away<S: Stream>(mut stream: S) {
    let reason = Reason::TooManyConnections;
    let text = format!(
        "HTTP/1.1 {} Too Many Requests\r\nx-agentbox-egress: blocked\r\nx-agentbox-reason: {}\r\n\
         retry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        reason.status(),
        reason.code()
    );
    let said = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Ok(Ok(())) = tokio::time::timeout(LAST_WORDS, said).await {
        linger(stream).await;
    }
}

/// Whoever is still sending learns of a closed connection before it reads the answer; so what comes is
/// taken and thrown away for a moment.
pub(super) async fn linger<S: Stream>(mut stream: S) {
    let mut bytes = vec![0; 16 * 1024];
    let over = async { while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(LAST_WORDS, over).await;
}
