//! A box's streams, when its socket cannot be mounted: yamux over the engine's exec stream.
//!
//! The box opens a stream for every connection to a socket in it (see [`protocol::bridge`]).
//! [`run`] drives the connection and hands each stream over; it knows nothing of what is said on
//! them, and takes streams of one service alone, because each has a bridge with limits of its own. Everything that comes in passes a [`gate`] first, so a hostile box costs the host a few
//! megabytes and a slice of one processor at most, and spoils nothing but its own connection.
//!
//! The surprising thing: that a box has hung up is seen at the gate, in the frame that says so.
//! Nobody has to read what it sent before, so a question is withdrawn at once.

mod gate;

use futures_util::stream::FuturesUnordered;
use futures_util::{AsyncWrite as _, Stream as _, StreamExt as _};
use gate::{Gate, Ledger, Limits};
use protocol::bridge::{READY, Service};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use yamux::{Config, Connection, ConnectionError, FrameDecodeError, Mode};

/// How long the box may take to say that it is there, and what a stream is for.
const GREETING: Duration = Duration::from_secs(10);
/// For answers under way when the box is closed; whoever gives them has a shorter limit.
const LAST_WORDS: Duration = Duration::from_secs(3);
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves the streams of one box that are for this service, until the box leaves, misbehaves or is
/// `closed`. Whoever got a stream finds it ended when this future ends, however it ends.
pub(crate) async fn run<S>(
    service: Service,
    mut io: S,
    serve: impl Fn(BridgeStream),
    closed: CancellationToken,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    tokio::select! {
        greeted = tokio::time::timeout(GREETING, greeting(&mut io)) => {
            greeted.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the box did not say it is ready"))??;
        }
        () = closed.cancelled() => return Ok(()),
    }
    let limits = Limits::of(service);
    let ledger = Ledger::new(limits);
    let _told = HangUp(ledger.clone());
    let gate = Gate::new(io, ledger.clone());
    let mut connection = Connection::new(gate, config(limits), Mode::Client);
    let mut unnamed = FuturesUnordered::new();
    loop {
        tokio::select! {
            next = poll_fn(|cx| connection.poll_next_inbound(cx)) => match next {
                Some(Ok(stream)) => {
                    let stream = BridgeStream::new(stream, ledger.clone());
                    // One too many is dropped, which resets it.
                    if ledger.open() <= limits.open() {
                        unnamed.push(named(service, stream));
                    }
                }
                Some(Err(error)) => return Err(reason(error)),
                None => return Ok(()),
            },
            Some(named) = unnamed.next() => {
                if let Some(stream) = named {
                    serve(stream);
                }
            }
            () = closed.cancelled() => break,
        }
    }
    drop(unnamed);
    let _ = tokio::time::timeout(LAST_WORDS, drained(&mut connection, &ledger)).await;
    let _ = tokio::time::timeout(FAREWELL, poll_fn(|cx| connection.poll_close(cx))).await;
    Ok(())
}

async fn greeting(io: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut said = [0; READY.len()];
    io.read_exact(&mut said).await?;
    if said == READY {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the box did not greet as a bridge does"))
}

/// yamux's own limits, as tight as it lets them be; what counts is the gate.
fn config(limits: Limits) -> Config {
    let most = 2 * limits.streams;
    let mut config = Config::default();
    config.set_max_num_streams(most);
    // No window ever grows beyond the one a stream begins with.
    config.set_max_connection_receive_window(Some(most * yamux::DEFAULT_CREDIT as usize));
    config.set_split_send_size(limits.frame);
    config
}

/// What the gate said, when it was the gate.
fn reason(error: ConnectionError) -> io::Error {
    match error {
        ConnectionError::Io(error) | ConnectionError::Decode(FrameDecodeError::Io(error)) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

/// The stream, once it said what it is for; none when it does not, or is for something else.
async fn named(service: Service, mut stream: BridgeStream) -> Option<BridgeStream> {
    let tag = tokio::time::timeout(GREETING, stream.read_u8()).await.ok()?.ok()?;
    (tag == service.tag()).then_some(stream)
}

/// Goes on until every stream was let go of. New ones are refused.
async fn drained<S>(connection: &mut Connection<Gate<S>>, ledger: &Ledger)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        while let Poll::Ready(next) = connection.poll_next_inbound(cx) {
            match next {
                Some(Ok(stream)) => drop(BridgeStream::new(stream, ledger.clone())),
                _ => return Poll::Ready(()),
            }
        }
        if ledger.open() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Tells whoever still has a stream that the box is gone.
struct HangUp(Ledger);

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.hang_up();
    }
}

/// The stream, and a token that fires when the box has closed its end, whether or not anybody is
/// reading. Sending all and waiting for an answer with one end closed counts as closed: as on the
/// socket.
pub fn watched(stream: BridgeStream) -> (BridgeStream, CancellationToken) {
    let hung_up = stream.hung_up.clone();
    (stream, hung_up)
}

/// One connection from inside a box.
pub struct BridgeStream {
    stream: yamux::Stream,
    id: u32,
    ledger: Ledger,
    hung_up: CancellationToken,
    /// A frame's bytes, and how many of them were read.
    rest: Option<(yamux::Packet, usize)>,
}

impl BridgeStream {
    fn new(stream: yamux::Stream, ledger: Ledger) -> Self {
        let id = stream.id().val();
        let hung_up = ledger.hung_up(id);
        Self { stream, id, ledger, hung_up, rest: None }
    }
}

impl AsyncRead for BridgeStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rest.is_none() {
            match ready!(Pin::new(&mut this.stream).poll_next(cx)) {
                Some(packet) => this.rest = Some((packet?, 0)),
                None => return Poll::Ready(Ok(())),
            }
        }
        if let Some((packet, at)) = &mut this.rest {
            let bytes = packet.as_ref();
            let count = buffer.remaining().min(bytes.len() - *at);
            buffer.put_slice(&bytes[*at..*at + count]);
            *at += count;
            if *at == bytes.len() {
                this.ledger.was_read(this.id, bytes.len());
                this.rest = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BridgeStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_close(cx)
    }
}

impl Drop for BridgeStream {
    fn drop(&mut self) {
        self.ledger.close(self.id);
        // yamux lets go of a stream only when it can write. What it holds is freed now.
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut self.stream).poll_next(&mut cx) {}
    }
}

#[cfg(test)]
mod tests;
