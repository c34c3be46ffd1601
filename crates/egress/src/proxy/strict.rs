//! A stream of HTTP/1 requests, read as an enemy's before hyper gets to read it.
//!
//! Where one request ends and the next begins is said by the box. What is lenient about that in one
//! program and strict in another is how requests are smuggled, so here only one way of saying it passes:
//! lines that end in CRLF, one length or one chunked body and never both, one host, no folded lines. hyper
//! then reads the very same bytes, with one field more.
//!
//! The surprising things: that field says that fields after the body of an answer are welcome, for hyper
//! keeps them from whoever does not say so. And hyper is given a small harmless request in place of a
//! faulty one, so the refusal takes the usual way out, after the answers that are still under way.

mod chunks;

use bytes::{Buf, BytesMut};
use chunks::Chunks;
use hyper::Uri;
use protocol::egress::Reason;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

pub(crate) const MOST_HEADERS: usize = 256;
pub(crate) const MOST_HEAD: usize = 64 * 1024;
/// How much is read at once.
const CHUNK: usize = 8 * 1024;
/// The value of the field that is added to every request of HTTP/1.1; taken away again by
/// [`super::fields::unsay`].
pub(crate) const TAKES_TRAILERS: &str = "x-agentbox, trailers";
const IN_PLACE: &[u8] = b"GET / HTTP/1.1\r\nhost: fault.invalid\r\nconnection: close\r\n\r\n";

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub reason: Reason,
    pub detail: &'static str,
}

/// Why the request that hyper reads is not the one that was sent; empty as long as all is well.
pub(crate) type Faults = Arc<OnceLock<Fault>>;

pub(crate) struct Strict<S> {
    stream: S,
    at: At,
    buffer: BytesMut,
    /// The start of the buffer that was looked at and may be handed on.
    free: usize,
    /// How far an unfinished head was looked through.
    seen: usize,
    faults: Faults,
    limit: Duration,
    /// Runs from the first byte of a head to its last.
    waiting: Option<Pin<Box<Sleep>>>,
}

enum At {
    Head,
    Body(u64),
    Chunks(Chunks),
    /// After a request that makes a tunnel or a WebSocket of the connection.
    Raw,
    /// The last thing handed on stands in place of a fault; nothing follows.
    Over,
}

impl<S> Strict<S> {
    pub fn new(stream: S, limit: Duration) -> (Self, Faults) {
        let faults = Faults::default();
        let strict = Self {
            stream,
            at: At::Head,
            buffer: BytesMut::new(),
            free: 0,
            seen: 0,
            faults: faults.clone(),
            limit,
            waiting: None,
        };
        (strict, faults)
    }

    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Looks at what has been read; true when some of it may be handed on.
    fn advance(&mut self) -> Result<bool, Fault> {
        match &mut self.at {
            At::Over => {}
            At::Raw => self.free = self.buffer.len(),
            At::Body(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(self.buffer.len());
                self.free = take;
                *left -= take as u64;
                if *left == 0 {
                    self.at = At::Head;
                }
            }
            At::Chunks(chunks) => {
                self.free = chunks.advance(&self.buffer)?;
                if chunks.is_over() {
                    self.at = At::Head;
                }
            }
            At::Head => {
                while self.seen == 0 && self.buffer.starts_with(b"\r\n") {
                    self.buffer.advance(2);
                }
                let Some(end) = self.end_of_head()? else { return Ok(false) };
                let (framing, newest) = check_head(&self.buffer[..end])?;
                let added = if newest && framing != Framing::Raw { self.add_field(end) } else { 0 };
                (self.free, self.seen, self.waiting) = (end + added, 0, None);
                self.at = match framing {
                    Framing::Length(0) => At::Head,
                    Framing::Length(n) => At::Body(n),
                    Framing::Chunked => At::Chunks(Chunks::default()),
                    Framing::Raw => At::Raw,
                };
            }
        }
        Ok(self.free > 0)
    }

    /// Before the empty line that ends a head there. How many bytes it is longer.
    fn add_field(&mut self, end: usize) -> usize {
        let field = format!("te: {TAKES_TRAILERS}\r\n");
        let rest = self.buffer.split_off(end - 2);
        self.buffer.extend_from_slice(field.as_bytes());
        self.buffer.unsplit(rest);
        field.len()
    }

    fn end_of_head(&mut self) -> Result<Option<usize>, Fault> {
        let bytes = &self.buffer[..];
        if bytes == b"\r" {
            return Ok(None);
        }
        for at in self.seen..bytes.len() {
            if bytes[at] != b'\n' {
                continue;
            }
            if at == 0 || bytes[at - 1] != b'\r' {
                return Err(bad("a line ends in LF alone"));
            }
            if at >= 3 && bytes[at - 3..at] == *b"\r\n\r" {
                if at >= MOST_HEAD {
                    return Err(bad("the head is too large"));
                }
                return Ok(Some(at + 1));
            }
        }
        self.seen = bytes.len();
        if bytes.len() >= MOST_HEAD {
            return Err(bad("the head is too large"));
        }
        Ok(None)
    }

    fn give_up(&mut self, fault: Fault) -> io::Result<()> {
        let in_head = matches!(self.at, At::Head);
        self.at = At::Over;
        self.waiting = None;
        let _ = self.faults.set(fault);
        if !in_head {
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault.detail));
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(IN_PLACE);
        self.free = IN_PLACE.len();
        Ok(())
    }

    fn hand_on(&mut self, out: &mut ReadBuf<'_>) {
        let n = self.free.min(out.remaining());
        out.put_slice(&self.buffer[..n]);
        self.buffer.advance(n);
        self.free -= n;
    }
}

impl<S: AsyncRead + Unpin> Strict<S> {
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(CHUNK);
        let had = self.buffer.len();
        self.buffer.resize(had + CHUNK, 0);
        let mut into = ReadBuf::new(&mut self.buffer[had..]);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut into);
        let n = into.filled().len();
        self.buffer.truncate(had + n);
        polled.map_ok(|()| n)
    }

    /// Bodies need no second buffer.
    fn poll_straight(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Option<Poll<io::Result<()>>> {
        let most = match &self.at {
            At::Raw => usize::MAX,
            At::Body(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            _ => return None,
        };
        let most = most.min(out.remaining());
        let mut into = ReadBuf::new(out.initialize_unfilled_to(most));
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut into);
        let n = into.filled().len();
        out.advance(n);
        if let At::Body(left) = &mut self.at {
            *left -= n as u64;
            if *left == 0 {
                self.at = At::Head;
            }
        }
        Some(polled)
    }

    /// The clock of an unfinished head.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !matches!(self.at, At::Head) || self.buffer.is_empty() {
            return Poll::Pending;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        waiting.as_mut().poll(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.free > 0 {
                this.hand_on(out);
                return Poll::Ready(Ok(()));
            }
            // Whoever waits for the end of the connection waits for the answer to be sent.
            if matches!(this.at, At::Over) {
                return Poll::Pending;
            }
            match this.advance() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(fault) => {
                    this.give_up(fault)?;
                    continue;
                }
            }
            if this.buffer.is_empty()
                && let Some(polled) = this.poll_straight(cx, out)
            {
                return polled;
            }
            match this.poll_fill(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => {
                    ready!(this.poll_late(cx));
                    this.give_up(bad("the head took too long"))?;
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
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

fn bad(detail: &'static str) -> Fault {
    Fault { reason: Reason::BadRequest, detail }
}

/// How the body of a request is told from the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    Raw,
}

/// What is counted and compared in a head.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    length: Option<&'a [u8]>,
    encoding: Option<&'a [u8]>,
    websocket: bool,
}

/// How the body is told, and whether it is HTTP/1.1.
fn check_head(head: &[u8]) -> Result<(Framing, bool), Fault> {
    let text = head.strip_suffix(b"\r\n\r\n").ok_or(bad("the head has no end"))?;
    let mut lines = split_lines(text);
    let line = lines.next().unwrap_or_default();
    let (method, newest) = check_line(line)?;
    let mut fields = Fields::default();
    let mut count = 0;
    for line in lines {
        count += 1;
        if count > MOST_HEADERS {
            return Err(bad("there are too many header fields"));
        }
        let (name, value) = check_field(line)?;
        fields.take(name, value)?;
    }
    let tunnel = method == b"CONNECT";
    if newest && fields.host.is_none() {
        return Err(bad("there is no Host field"));
    }
    let framing = match (fields.length, fields.encoding) {
        (Some(_), Some(_)) => Err(bad("it has both a Content-Length and a Transfer-Encoding")),
        (Some(_), _) | (_, Some(_)) if tunnel || fields.websocket => {
            Err(bad("a request that changes the protocol has a body"))
        }
        _ if tunnel || fields.websocket => Ok(Framing::Raw),
        (None, None) => Ok(Framing::Length(0)),
        (Some(length), None) => length_of(length).map(Framing::Length),
        (None, Some(encoding)) if newest && encoding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        (None, Some(_)) => Err(bad("its Transfer-Encoding is not just chunked")),
    };
    Ok((framing?, newest))
}

/// The method, and whether it is HTTP/1.1.
fn check_line(line: &[u8]) -> Result<(&[u8], bool), Fault> {
    let mut words = line.split(|b| *b == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        // A blank in a target would be read by some as its end.
        return Err(bad("the request line does not have three words"));
    };
    if method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(bad("the method is not a word"));
    }
    let newest = match version {
        b"HTTP/1.1" => true,
        b"HTTP/1.0" => false,
        _ => return Err(bad("the version is not HTTP/1.0 or HTTP/1.1")),
    };
    if !target.iter().all(u8::is_ascii_graphic) {
        let detail = "the target has characters that need an escape";
        return Err(Fault { reason: Reason::AmbiguousPath, detail });
    }
    if Uri::try_from(target).is_err() {
        let detail = "the target is not one";
        return Err(Fault { reason: Reason::BadRequestTarget, detail });
    }
    Ok((method, newest))
}

pub(super) fn check_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    if line.first().is_some_and(|b| matches!(b, b' ' | b'\t')) {
        return Err(bad("a header field is folded"));
    }
    let at = line.iter().position(|b| *b == b':').ok_or(bad("a header field has no colon"))?;
    let (name, value) = (&line[..at], &line[at + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return Err(bad("the name of a header field is not a word"));
    }
    let plain = |b: &u8| *b == b'\t' || (*b >= b' ' && *b != 0x7f);
    if !value.iter().all(plain) {
        return Err(bad("a header field has control characters"));
    }
    Ok((name, value.trim_ascii()))
}

impl<'a> Fields<'a> {
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Fault> {
        let once = |place: &mut Option<&'a [u8]>, detail| match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(bad(detail)),
        };
        if name.eq_ignore_ascii_case(b"host") {
            once(&mut self.host, "it has several Host fields")?;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            once(&mut self.length, "it has several Content-Length fields")?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            once(&mut self.encoding, "it has several Transfer-Encoding fields")?;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.websocket |= names_websocket(value);
        }
        Ok(())
    }
}

/// Whether an `Upgrade` field speaks of WebSockets at all.
pub(crate) fn names_websocket(value: &[u8]) -> bool {
    value.to_ascii_lowercase().windows(9).any(|part| part == b"websocket")
}

fn length_of(text: &[u8]) -> Result<u64, Fault> {
    let bad = bad("its Content-Length is not a number");
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(bad);
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(bad)
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// At CRLF; other line ends stay in the lines and are control characters there.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = text.windows(2).position(|two| two == b"\r\n");
        let (line, left) = match at {
            Some(at) => (&text[..at], Some(&text[at + 2..])),
            None => (text, None),
        };
        rest = left;
        Some(line)
    })
}

#[cfg(test)]
mod tests;
