//! Bodies on their way through: counted, bounded and looked at while they pass, never gathered.

use super::answer::Refusal;
use super::fields;
use super::upstream::Lease;
use crate::line::{Line, Meter};
use crate::redact::{Found, Masker, Patterns};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderName};
use protocol::SecretId;
use protocol::egress::Reason;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// What a box gets.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Why a body was broken off half-way.
pub(crate) type Stop = Arc<OnceLock<Refusal>>;

/// So much of a body is looked through.
pub(crate) const LOOKED_AT: usize = 1024 * 1024;

pub(crate) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

/// What a box sends, on its way to the server.
pub(crate) struct Outgoing {
    /// What was read before the server was asked.
    ahead: VecDeque<Bytes>,
    rest: Option<Incoming>,
    /// Fields after the body, until all of it has gone.
    trailer: Option<HeaderMap>,
    seen: u64,
    most: Option<u64>,
    scan: Option<Scan>,
    meter: Arc<Meter>,
    put_in: Vec<HeaderName>,
    stop: Stop,
}

/// How a body is to be treated.
#[derive(Default)]
pub(crate) struct Terms {
    pub most: Option<u64>,
    pub patterns: Arc<Patterns>,
    /// Credentials that the host has rules for.
    pub at_home: Vec<SecretId>,
    pub put_in: Vec<HeaderName>,
}

impl Outgoing {
    pub fn new(ahead: VecDeque<Bytes>, rest: Incoming, meter: Arc<Meter>, terms: Terms) -> Self {
        let scan = (!terms.patterns.is_empty()).then(|| Scan::new(terms.patterns, terms.at_home));
        let rest = Some(rest).filter(|rest| !rest.is_end_stream());
        let (put_in, most, stop) = (terms.put_in, terms.most, Stop::default());
        Self { ahead, rest, trailer: None, seen: 0, most, scan, meter, put_in, stop }
    }

    /// For a request without a body that is sent once more.
    pub fn nothing() -> Self {
        let terms = Terms::default();
        Self {
            ahead: VecDeque::new(),
            rest: None,
            trailer: None,
            seen: 0,
            most: terms.most,
            scan: None,
            meter: Arc::default(),
            put_in: terms.put_in,
            stop: Stop::default(),
        }
    }

    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    fn broken(&self, refusal: Refusal) -> BoxError {
        let text = refusal.reason.code();
        let _ = self.stop.set(refusal);
        text.into()
    }

    fn pass(&mut self, data: Bytes) -> Result<Bytes, BoxError> {
        self.seen += data.len() as u64;
        self.meter.up.fetch_add(data.len() as u64, Ordering::Relaxed);
        if self.most.is_some_and(|most| self.seen > most) {
            return Err(self.broken(Refusal::new(Reason::BodyTooLarge)));
        }
        let Some(scan) = &mut self.scan else { return Ok(data) };
        scan.pass(data).map_err(|found| self.broken(found.into()))
    }

    fn take_trailer(&mut self, mut trailer: HeaderMap) -> Result<(), BoxError> {
        fields::trailer(&mut trailer, &self.put_in);
        if let Some(found) = self.scan.as_ref().and_then(|scan| scan.misplaced_in(&trailer)) {
            return Err(self.broken(found.into()));
        }
        self.trailer = Some(trailer).filter(|trailer| !trailer.is_empty());
        Ok(())
    }

    /// The last of the data, then the trailer, then nothing.
    fn end(&mut self) -> Option<Frame<Bytes>> {
        let held = self.scan.as_mut().map(Scan::finish).filter(|held| !held.is_empty());
        held.map(Frame::data).or_else(|| self.trailer.take().map(Frame::trailers))
    }
}

impl From<Found> for Refusal {
    fn from(found: Found) -> Self {
        match found {
            Found::Secret(id) => Self::with(Reason::SecretExfil, id.as_str()),
            Found::Placeholder(id) => Self::with(Reason::PlaceholderMisuse, id.as_str()),
        }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            let data = if let Some(data) = this.ahead.pop_front() {
                data
            } else {
                let Some(rest) = &mut this.rest else { return Poll::Ready(this.end().map(Ok)) };
                let frame = match ready!(Pin::new(rest).poll_frame(cx)) {
                    Some(Ok(frame)) => frame,
                    Some(Err(e)) => return Poll::Ready(Some(Err(e.into()))),
                    None => {
                        this.rest = None;
                        continue;
                    }
                };
                match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => {
                        this.rest = None;
                        if let Ok(trailer) = frame.into_trailers()
                            && let Err(e) = this.take_trailer(trailer)
                        {
                            return Poll::Ready(Some(Err(e)));
                        }
                        continue;
                    }
                }
            };
            match this.pass(data) {
                Ok(data) if data.is_empty() => {}
                passed => return Poll::Ready(Some(passed.map(Frame::data))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty()
            && self.trailer.is_none()
            && self.scan.as_ref().is_none_or(|scan| scan.waiting() == 0)
            && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let here = self.ahead.iter().map(Bytes::len).sum::<usize>()
            + self.scan.as_ref().map_or(0, Scan::waiting);
        let hint = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        plus(&hint, here as u64)
    }
}

fn plus(hint: &SizeHint, more: u64) -> SizeHint {
    let mut sum = SizeHint::new();
    sum.set_lower(hint.lower() + more);
    if let Some(upper) = hint.upper() {
        sum.set_upper(upper + more);
    }
    sum
}

/// Looks for what must not leave in the first part of a body.
struct Scan {
    patterns: Arc<Patterns>,
    at_home: Vec<SecretId>,
    left: usize,
    /// What may be the beginning of something, and how much of it has gone already.
    window: Vec<u8>,
    gone: usize,
}

impl Scan {
    fn new(patterns: Arc<Patterns>, at_home: Vec<SecretId>) -> Self {
        Self { patterns, at_home, left: LOOKED_AT, window: Vec::new(), gone: 0 }
    }

    fn pass(&mut self, data: Bytes) -> Result<Bytes, Found> {
        if self.left == 0 {
            return Ok(data);
        }
        let looked_at = &data[..data.len().min(self.left)];
        self.left -= looked_at.len();
        if self.window.is_empty() && self.unfinished(looked_at) == 0 {
            return match self.patterns.misplaced(looked_at, &self.at_home) {
                Some(found) => Err(found),
                None => Ok(data),
            };
        }
        self.window.extend_from_slice(looked_at);
        if let Some(found) = self.patterns.misplaced(&self.window, &self.at_home) {
            return Err(found);
        }
        let (len, unfinished) = (self.window.len(), self.unfinished(&self.window));
        // A program may wait for an answer to what it sent before it sends more, so a few bytes that could
        // begin anything are let go.
        let held = if unfinished >= CERTAIN { unfinished } else { 0 };
        // What has gone stays gone, even if it turns out to have begun something.
        let until = self.gone.max(len - held);
        let out = [&self.window[self.gone..until], &data[looked_at.len()..]].concat();
        self.window.drain(..len - unfinished);
        self.gone = until - (len - unfinished);
        Ok(out.into())
    }

    fn misplaced_in(&self, fields: &HeaderMap) -> Option<Found> {
        let mut values = fields.values();
        values.find_map(|value| self.patterns.misplaced(value.as_bytes(), &self.at_home))
    }

    /// Where nothing more is looked at, nothing begins.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        if self.left == 0 { 0 } else { self.patterns.unfinished(bytes) }
    }

    fn waiting(&self) -> usize {
        self.window.len() - self.gone
    }

    fn finish(&mut self) -> Bytes {
        let out = Bytes::copy_from_slice(&self.window[self.gone..]);
        self.window.clear();
        self.gone = 0;
        out
    }
}

const CERTAIN: usize = 4;

/// Told once, of what was found first and where.
type Echoed = Box<dyn FnOnce(&[SecretId], &str) + Send>;

/// What a server sends, on its way to the box.
pub(crate) struct Downward {
    rest: Incoming,
    masker: Option<Masker>,
    /// For what comes after a body, whatever that is.
    patterns: Option<Arc<Patterns>>,
    trailer: Option<HeaderMap>,
    over: bool,
    echoed: Option<Echoed>,
    lease: Option<Lease>,
    line: Line,
}

impl Downward {
    pub fn new(rest: Incoming, lease: Option<Lease>, line: Line) -> Self {
        // Nobody asks for the frames of a body that has none.
        let over = rest.is_end_stream();
        let lease = if over { lease.and_then(Lease::give_back) } else { lease };
        let (masker, patterns, trailer, echoed) = (None, None, None, None);
        Self { rest, masker, patterns, trailer, over, echoed, lease, line }
    }

    /// Credentials in it are overwritten, and somebody is told. In a body that is no text they are not
    /// looked for, in what comes after it they are.
    pub fn mask(
        &mut self,
        patterns: Arc<Patterns>,
        textual: bool,
        echoed: impl FnOnce(&[SecretId], &str) + Send + 'static,
    ) {
        self.masker = textual.then(|| Masker::new(patterns.clone()));
        self.patterns = Some(patterns);
        self.echoed = Some(Box::new(echoed));
    }

    fn take_trailer(&mut self, mut trailer: HeaderMap) {
        if !fields::trailer_towards_box(&mut trailer) {
            self.line.traffic().detail = Some("there were too many fields after the body".into());
        }
        let found = self.patterns.as_ref().map(|patterns| patterns.mask_headers(&mut trailer));
        let found = found.filter(|found| !found.is_empty());
        if let (Some(found), Some(echoed)) = (found, self.echoed.take()) {
            echoed(&found, "trailer");
        }
        self.trailer = Some(trailer).filter(|trailer| !trailer.is_empty());
    }

    fn pass(&mut self, data: Bytes) -> Bytes {
        self.line.meter.down.fetch_add(data.len() as u64, Ordering::Relaxed);
        let Some(masker) = &mut self.masker else { return data };
        let passed = masker.pass(data);
        if !masker.found.is_empty()
            && let Some(echoed) = self.echoed.take()
        {
            echoed(&masker.found, "body");
        }
        passed
    }

    fn end(&mut self) -> Option<Frame<Bytes>> {
        self.over = true;
        let held = self.masker.as_mut().map(Masker::finish).filter(|held| !held.is_empty());
        let frame = held.map(Frame::data).or_else(|| self.trailer.take().map(Frame::trailers));
        if frame.is_none()
            && let Some(lease) = self.lease.take()
        {
            lease.give_back();
        }
        frame
    }
}

impl Drop for Downward {
    fn drop(&mut self) {
        // Who knows the length does not ask whether there is more.
        if self.over || self.rest.is_end_stream() {
            self.lease.take().and_then(Lease::give_back);
        }
    }
}

impl HttpBody for Downward {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if this.over {
                return Poll::Ready(this.end().map(Ok));
            }
            let frame = match ready!(Pin::new(&mut this.rest).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(e)) => {
                    this.line.traffic().detail = Some("the server broke off".into());
                    return Poll::Ready(Some(Err(e.into())));
                }
                None => {
                    this.over = true;
                    continue;
                }
            };
            match frame.into_data() {
                Ok(data) => {
                    let data = this.pass(data);
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(frame) => {
                    this.over = true;
                    if let Ok(trailer) = frame.into_trailers() {
                        this.take_trailer(trailer);
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // While there is a lease, `poll_frame` has yet to give it back.
        self.over && self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.masker.as_ref().map_or(0, Masker::waiting);
        plus(&self.rest.size_hint(), held as u64)
    }
}

#[cfg(test)]
mod tests;
