//! What a box may put into its yamux connection, frame by frame.
//!
//! yamux limits the bytes of each stream, not the memory they take: a window full of frames of one
//! byte weighs fifty times as much, and frames about windows are free. So every frame is looked at
//! before yamux sees it. Unread bytes are counted with what they cost, over all streams; frames come
//! in at a measured pace; what is for a stream nobody has any more is thrown away; what no honest
//! peer would send ends the connection. Writing has a limit too: a box that does not read is gone.

use futures_util::{AsyncRead as FuturesRead, AsyncWrite as FuturesWrite};
use protocol::bridge::Service;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// What a frame takes in memory besides its bytes.
const FRAME_COST: usize = 128;
/// An honest peer sends frames half as large.
const MAX_FRAME: usize = 32 * 1024;
const WINDOW: Duration = Duration::from_millis(100);
/// What a frame costs in processor time, in bytes.
const FRAME_TIME: usize = 1024;
/// How long the box may not read.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

const HEADER: usize = 12;

/// How much one bridge may be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub streams: usize,
    /// What may wait to be read on this side, over all streams of a box.
    pub unread: usize,
    /// How long the box's unread bytes may keep more from coming in; none is as long as it takes.
    pub unread_limit: Option<Duration>,
    /// What may come in per [`WINDOW`].
    pub pace: usize,
    /// The largest frame to the box. A dozen a stream may wait for a box that does not read.
    pub frame: usize,
}

impl Limits {
    pub fn of(service: Service) -> Self {
        let streams = service.max_streams();
        match service {
            // 40 MB, or 40 000 empty frames, in a second.
            Service::Relay => Self {
                streams,
                unread: 4 << 20,
                unread_limit: Some(Duration::from_secs(10)),
                pace: 4 << 20,
                frame: 4 * 1024,
            },
            // An upload may wait for a person, or for a slow server, and 64 of them have room here. More
            // of them hold up this box alone, until somebody reads.
            Service::Egress => Self {
                streams,
                unread: 17 << 20,
                unread_limit: None,
                pace: 20 << 20,
                frame: 16 * 1024,
            },
        }
    }

    /// A stream the box is done with may not have been let go of here.
    pub fn open(self) -> usize {
        self.streams + self.streams / 2
    }
}

/// Who has which stream, and what they have not read.
#[derive(Clone)]
pub(super) struct Ledger(Arc<Mutex<Books>>);

struct Books {
    limits: Limits,
    streams: HashMap<u32, Entry>,
    /// Over all streams.
    unread: usize,
    /// The newest stream; ids only go up.
    last: u32,
    /// The gate, when it waits for somebody to read.
    waiting: Option<Waker>,
}

#[derive(Default)]
struct Entry {
    unread: usize,
    hung_up: CancellationToken,
}

impl Ledger {
    pub fn new(limits: Limits) -> Self {
        let (streams, unread, last) = (HashMap::new(), 0, 0);
        Self(Arc::new(Mutex::new(Books { limits, streams, unread, last, waiting: None })))
    }

    /// Fires when the box has closed its end of the stream.
    pub fn hung_up(&self, id: u32) -> CancellationToken {
        let books = self.books();
        books.streams.get(&id).map_or_else(CancellationToken::new, |entry| entry.hung_up.clone())
    }

    /// How many streams somebody on this side has.
    pub fn open(&self) -> usize {
        self.books().streams.len()
    }

    /// A whole frame of this many bytes was read.
    pub fn was_read(&self, id: u32, bytes: usize) {
        let mut books = self.books();
        let cost = bytes + FRAME_COST;
        if let Some(entry) = books.streams.get_mut(&id) {
            entry.unread = entry.unread.saturating_sub(cost);
            books.unread = books.unread.saturating_sub(cost);
            books.go_on();
        }
    }

    /// Nobody has the stream any more.
    pub fn close(&self, id: u32) {
        let mut books = self.books();
        if let Some(entry) = books.streams.remove(&id) {
            books.unread = books.unread.saturating_sub(entry.unread);
            books.go_on();
        }
    }

    /// The box is gone, and with it all its streams.
    pub fn hang_up(&self) {
        for entry in self.books().streams.values() {
            entry.hung_up.cancel();
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn go_on(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

/// A frame's first bytes, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    kind: Kind,
    flags: u16,
    id: u32,
    /// Bytes that follow.
    body: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Window,
    /// Pings and farewells.
    Session,
}

const SYN: u16 = 1;
const FIN: u16 = 4;
const RST: u16 = 8;

impl Header {
    fn parse(bytes: [u8; HEADER]) -> io::Result<Self> {
        let [version, kind, f0, f1, i0, i1, i2, i3, l0, l1, l2, l3] = bytes;
        let kind = match (version, kind) {
            (0, 0) => Kind::Data,
            (0, 1) => Kind::Window,
            (0, 2 | 3) => Kind::Session,
            _ => return Err(bad("something that is no frame")),
        };
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let body = if kind == Kind::Data { length } else { 0 };
        if body > MAX_FRAME {
            return Err(bad("a frame that is too large"));
        }
        let (flags, id) = (u16::from_be_bytes([f0, f1]), u32::from_be_bytes([i0, i1, i2, i3]));
        Ok(Self { kind, flags, id, body })
    }

    fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn opens(self) -> bool {
        self.kind != Kind::Session && self.has(SYN)
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the box sent {what}"))
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    ThrowAway,
    Wait,
}

impl Books {
    fn judge(&mut self, frame: Header) -> Fate {
        if frame.kind == Kind::Session {
            return Fate::Pass;
        }
        let Some(entry) = self.streams.get_mut(&frame.id) else { return Fate::ThrowAway };
        if frame.body > 0 {
            let cost = frame.body + FRAME_COST;
            if self.unread + cost > self.limits.unread {
                return Fate::Wait;
            }
            entry.unread += cost;
            self.unread += cost;
        }
        if frame.has(FIN | RST) {
            entry.hung_up.cancel();
        }
        Fate::Pass
    }

    /// The box opens a stream.
    fn begin(&mut self, id: u32) -> io::Result<()> {
        // The box is yamux's server: its ids are even.
        if id <= self.last || !id.is_multiple_of(2) {
            return Err(bad("a stream id out of order"));
        }
        if self.streams.len() >= 2 * self.limits.streams {
            return Err(bad("far more streams than it may"));
        }
        self.last = id;
        self.streams.insert(id, Entry::default());
        Ok(())
    }
}

/// Between a box and yamux.
pub(super) struct Gate<S> {
    io: S,
    ledger: Ledger,
    at: At,
    pace: Pace,
    unread: Option<Deadline>,
    unwritten: Deadline,
}

/// Where in the incoming bytes we are.
enum At {
    Header {
        bytes: [u8; HEADER],
        have: usize,
    },
    /// Judged again after a wait.
    Judge {
        bytes: [u8; HEADER],
        frame: Header,
    },
    /// The header on its way to yamux.
    Give {
        bytes: [u8; HEADER],
        given: usize,
        body: usize,
    },
    Body {
        left: usize,
    },
    ThrowAway {
        left: usize,
    },
}

impl At {
    const START: At = At::Header { bytes: [0; HEADER], have: 0 };

    fn body(left: usize) -> Self {
        if left == 0 { Self::START } else { At::Body { left } }
    }
}

impl<S> Gate<S> {
    pub fn new(io: S, ledger: Ledger) -> Self {
        let limits = ledger.books().limits;
        let unread = |limit| Deadline::new(limit, "nobody reads what the box sends");
        let unread = limits.unread_limit.map(unread);
        let unwritten = Deadline::new(WRITE_LIMIT, "the box does not read");
        Self { io, ledger, at: At::START, pace: Pace::new(limits.pace), unread, unwritten }
    }

    fn poll_judge(&mut self, cx: &mut Context<'_>, frame: Header) -> Poll<io::Result<Fate>> {
        let fate = {
            let mut books = self.ledger.books();
            let fate = books.judge(frame);
            if fate == Fate::Wait {
                books.waiting = Some(cx.waker().clone());
            }
            fate
        };
        match &mut self.unread {
            Some(unread) if fate == Fate::Wait => return unread.poll_missed(cx).map(Err),
            None if fate == Fate::Wait => return Poll::Pending,
            Some(unread) => unread.met(),
            None => {}
        }
        Poll::Ready(Ok(fate))
    }
}

impl<S: AsyncRead + Unpin> Gate<S> {
    fn poll_io(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<S: AsyncRead + Unpin> FuturesRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            match this.at {
                At::Header { bytes, have: HEADER } => {
                    ready!(this.pace.poll(cx));
                    let frame = Header::parse(bytes)?;
                    this.pace.take(frame.body + FRAME_TIME);
                    if frame.opens() {
                        this.ledger.books().begin(frame.id)?;
                    }
                    this.at = At::Judge { bytes, frame };
                }
                At::Header { mut bytes, have } => {
                    let count = ready!(this.poll_io(cx, &mut bytes[have..]))?;
                    if count == 0 && have == 0 {
                        return Poll::Ready(Ok(0));
                    }
                    if count == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                    this.at = At::Header { bytes, have: have + count };
                }
                At::Judge { bytes, frame } => {
                    this.at = match ready!(this.poll_judge(cx, frame))? {
                        Fate::ThrowAway if frame.body > 0 => At::ThrowAway { left: frame.body },
                        Fate::ThrowAway => At::START,
                        _ => At::Give { bytes, given: 0, body: frame.body },
                    };
                }
                At::Give { bytes, given, body } => {
                    let count = out.len().min(HEADER - given);
                    out[..count].copy_from_slice(&bytes[given..given + count]);
                    let given = given + count;
                    this.at = if given == HEADER {
                        At::body(body)
                    } else {
                        At::Give { bytes, given, body }
                    };
                    return Poll::Ready(Ok(count));
                }
                At::Body { left } => {
                    let most = out.len().min(left);
                    let count = ready!(this.poll_io(cx, &mut out[..most]))?;
                    this.at = At::body(left - count);
                    return Poll::Ready(Ok(count));
                }
                At::ThrowAway { left } => {
                    let mut nowhere = [0; 4096];
                    let most = nowhere.len().min(left);
                    let count = ready!(this.poll_io(cx, &mut nowhere[..most]))?;
                    if count == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                    let left = left - count;
                    this.at = if left == 0 { At::START } else { At::ThrowAway { left } };
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> FuturesWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.io).poll_write(cx, bytes) {
            Poll::Pending => this.unwritten.poll_missed(cx).map(Err),
            written @ Poll::Ready(_) => {
                this.unwritten.met();
                written
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

/// How quickly frames may come.
struct Pace {
    /// Per [`WINDOW`].
    most: usize,
    left: usize,
    until: Instant,
    nap: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    fn new(most: usize) -> Self {
        Self { most, left: most, until: Instant::now() + WINDOW, nap: None }
    }

    /// Ready when another frame may come.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left == 0 {
            let until = self.until;
            let nap = self.nap.get_or_insert_with(|| Box::pin(sleep_until(until)));
            ready!(nap.as_mut().poll(cx));
            *self = Self::new(self.most);
        }
        Poll::Ready(())
    }

    fn take(&mut self, cost: usize) {
        let now = Instant::now();
        if now >= self.until {
            (self.left, self.until) = (self.most, now + WINDOW);
        }
        self.left = self.left.saturating_sub(cost);
    }
}

/// For something that must happen within a time once it is waited for.
struct Deadline {
    limit: Duration,
    why: &'static str,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    fn new(limit: Duration, why: &'static str) -> Self {
        Self { limit, why, timer: None }
    }

    /// It has not happened yet. Ready when it is too late.
    fn poll_missed(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        timer.as_mut().poll(cx).map(|()| io::Error::new(io::ErrorKind::TimedOut, self.why))
    }

    fn met(&mut self) {
        self.timer = None;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub mod flags {
        pub const SYN: u16 = super::super::SYN;
        pub const RST: u16 = super::super::RST;
    }

    pub fn frame(kind: u8, flags: u16, id: u32, length: u32) -> Vec<u8> {
        let mut bytes = vec![0, kind];
        bytes.extend(flags.to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes
    }

    pub fn data(flags: u16, id: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = frame(0, flags, id, u32::try_from(body.len()).unwrap());
        bytes.extend(body);
        bytes
    }

    pub fn window(flags: u16, id: u32, credit: u32) -> Vec<u8> {
        frame(1, flags, id, credit)
    }

    fn header(kind: u8, flags: u16, id: u32, length: u32) -> io::Result<Header> {
        Header::parse(frame(kind, flags, id, length).try_into().unwrap())
    }

    #[test]
    fn headers_are_read_or_refused() {
        let syn = header(0, SYN, 2, 5).unwrap();
        assert_eq!(syn, Header { kind: Kind::Data, flags: 1, id: 2, body: 5 });
        // Only data has a body; elsewhere the number means something else.
        assert_eq!(header(1, 0, 2, u32::MAX).unwrap().body, 0);
        assert_eq!(header(3, 0, 0, 1).unwrap().kind, Kind::Session);
        assert!(header(4, 0, 0, 0).is_err());
        assert!(header(0, 0, 2, 32 * 1024 + 1).is_err());
        assert!(Header::parse([1; HEADER]).is_err());
    }

    #[test]
    fn what_was_read_or_let_go_makes_room() {
        let limits = Limits::of(Service::Relay);
        let ledger = Ledger::new(limits);
        let judge = |kind, flags, id, length| {
            ledger.books().judge(header(kind, flags, id, length).unwrap())
        };
        assert_eq!(judge(0, 0, 2, 10), Fate::ThrowAway);
        ledger.books().begin(2).unwrap();
        ledger.books().begin(4).unwrap();
        let size = u32::try_from(MAX_FRAME).unwrap();
        let mut held = 0;
        while judge(0, 0, 2 + 2 * (held % 2), size) == Fate::Pass {
            held += 1;
        }
        assert_eq!(held as usize, limits.unread / (MAX_FRAME + FRAME_COST));
        ledger.was_read(2, MAX_FRAME);
        assert_eq!(judge(0, 0, 4, size), Fate::Pass);
        assert_eq!(judge(0, 0, 4, size), Fate::Wait);
        assert_eq!(judge(1, FIN, 4, 0), Fate::Pass);
        assert!(ledger.hung_up(4).is_cancelled());
        assert!(!ledger.hung_up(2).is_cancelled());
        ledger.close(2);
        ledger.close(4);
        assert_eq!((ledger.open(), ledger.books().unread), (0, 0));
        assert_eq!(judge(0, 0, 4, size), Fate::ThrowAway);
    }

    #[test]
    fn ids_go_up_are_even_and_few() {
        let limits = Limits::of(Service::Relay);
        let ledger = Ledger::new(limits);
        let begin = |id| ledger.books().begin(id);
        assert!(begin(0).is_err());
        assert!(begin(3).is_err());
        for n in 1..=2 * u32::try_from(limits.streams).unwrap() {
            begin(2 * n).unwrap();
        }
        assert!(begin(2).is_err());
        assert!(begin(1000).is_err());
        ledger.close(2);
        begin(1000).unwrap();
        ledger.close(4);
        assert!(begin(4).is_err());
    }
}
