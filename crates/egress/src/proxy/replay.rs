//! A stream of which some bytes were read ahead, and which may remember what is read from it.

use bytes::{Buf, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

pub(crate) struct Replay<S> {
    stream: S,
    ahead: BytesMut,
    record: Option<BytesMut>,
}

impl<S> Replay<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, ahead: BytesMut::new(), record: None }
    }

    /// Remembers from now on what is read.
    pub fn record(&mut self) {
        self.record = Some(BytesMut::new());
    }

    /// What was read is read again.
    pub fn rewind(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.extend_from_slice(&self.ahead);
            self.ahead = record;
        }
    }

    pub fn forget(&mut self) {
        self.record = None;
    }
}

impl<S: AsyncRead + Unpin> Replay<S> {
    /// More bytes to look at; none when there are no more.
    pub async fn look(&mut self) -> io::Result<Option<&[u8]>> {
        self.ahead.reserve(1024);
        if self.stream.read_buf(&mut self.ahead).await? == 0 {
            return Ok(None);
        }
        Ok(Some(&self.ahead))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replay<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = out.filled().len();
        let polled = if this.ahead.is_empty() {
            Pin::new(&mut this.stream).poll_read(cx, out)
        } else {
            let n = this.ahead.len().min(out.remaining());
            out.put_slice(&this.ahead[..n]);
            this.ahead.advance(n);
            Poll::Ready(Ok(()))
        };
        if let Some(record) = &mut this.record {
            record.extend_from_slice(&out.filled()[before..]);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replay<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
