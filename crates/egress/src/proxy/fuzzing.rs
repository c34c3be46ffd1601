//! A connection of a box as bytes in, bytes out: what is left of them when hyper gets to read.

use super::strict::{Strict, TAKES_TRAILERS};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// What hyper would read.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    pub bytes: Vec<u8>,
    /// What was wrong with the rest, which hyper never sees.
    pub fault: Option<&'static str>,
}

/// All that comes, in pieces of a size. What is added for hyper is taken away again.
pub fn pass(bytes: &[u8], piece: usize) -> Passed {
    let (mut strict, faults) = Strict::new(Pieces(bytes, piece.max(1)), Duration::MAX);
    let mut context = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        let mut into = [0; 512];
        let mut into = ReadBuf::new(&mut into);
        match Pin::new(&mut strict).poll_read(&mut context, &mut into) {
            Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                // What stands in place of a fault is not the box's.
                if faults.get().is_none() {
                    all.extend_from_slice(into.filled());
                }
            }
            _ => break,
        }
    }
    let field = format!("te: {TAKES_TRAILERS}\r\n\r\n").into_bytes();
    let mut bytes = Vec::new();
    let mut rest = &all[..];
    while let Some(at) = rest.windows(field.len()).position(|part| part == field) {
        bytes.extend_from_slice(&rest[..at]);
        bytes.extend_from_slice(b"\r\n");
        rest = &rest[at + field.len()..];
    }
    bytes.extend_from_slice(rest);
    Passed { bytes, fault: faults.get().map(|fault| fault.detail) }
}

struct Pieces<'a>(&'a [u8], usize);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = self.0.len().min(self.1).min(out.remaining());
        let (now, later) = self.0.split_at(n);
        out.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}
