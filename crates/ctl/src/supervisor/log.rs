//! What units say: a file each that does not grow for ever, the newest lines in memory, and
//! whoever follows.
//!
//! A line of a file is `<time>\t<stdout|stderr>\t<text>`. A disk that is full loses lines, not the
//! unit. A follower that does not keep up misses lines and is told how many; it never holds up the
//! unit.

use super::time;
use protocol::supervisor::{LogEvent, Stream};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most one file holds.
const FULL: u64 = 10 * 1024 * 1024;
/// Files that were full and are kept.
const KEPT: u32 = 3;
/// Lines in memory.
const RING: usize = 1000;
/// And what they may weigh together.
const RING_BYTES: usize = 128 * 1024;
/// Lines a follower may be behind.
const BEHIND: usize = 4000;
/// The most that is read of a file, from its end.
const TAIL_BYTES: u64 = 2 * 1024 * 1024;
/// The most lines anybody is given.
pub const MOST: usize = 10_000;

/// What notes of the supervisor begin with.
pub const NOTE: &str = "[ctl] ";

/// The logs of all units.
pub struct Logs {
    dir: PathBuf,
    units: Mutex<HashMap<String, Arc<UnitLog>>>,
}

/// The log of one unit.
pub struct UnitLog {
    name: String,
    path: PathBuf,
    full: u64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    ring: VecDeque<LogEvent>,
    bytes: usize,
    file: Option<File>,
    size: u64,
    followers: Vec<Follower>,
}

struct Follower {
    to: SyncSender<LogEvent>,
    missed: u64,
}

/// Whether this may be the name of a unit, and so of a file.
pub fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !text.is_empty() && text.len() <= 200 && text.bytes().all(fits)
}

impl Logs {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, units: Mutex::default() }
    }

    pub fn of(&self, name: &str) -> Arc<UnitLog> {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(UnitLog::new(&self.dir, name, FULL));
        units.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// What a unit said that may be gone from the project's file.
    pub fn has(&self, name: &str) -> bool {
        is_name(name) && self.dir.join(format!("{name}.log")).is_file()
    }
}

impl UnitLog {
    fn new(dir: &Path, name: &str, full: u64) -> Self {
        let path = dir.join(format!("{name}.log"));
        Self { name: name.to_owned(), path, full, inner: Mutex::default() }
    }

    /// A line of the unit.
    pub fn line(&self, stream: Stream, line: String) {
        self.lines(stream, vec![line]);
    }

    /// What it said at once.
    pub fn lines(&self, stream: Stream, lines: Vec<String>) {
        let ts = time::now();
        let event = |line| LogEvent { service: self.name.clone(), ts: ts.clone(), stream, line };
        let events: Vec<LogEvent> = lines.into_iter().map(event).collect();
        let mut inner = self.inner();
        // Unwritable is no reason to stop: the newest lines are in memory.
        let _ = inner.write(&events, &self.path, self.full);
        for event in events {
            inner.followers.retain_mut(|follower| follower.give(&event));
            inner.keep(event);
        }
    }

    /// A word of the supervisor.
    pub fn note(&self, text: &str) {
        self.line(Stream::Stderr, format!("{NOTE}{text}"));
    }

    /// The newest lines, and with `follow` those to come. None is missed in between.
    pub fn tail(&self, count: usize, follow: bool) -> (Vec<LogEvent>, Option<Receiver<LogEvent>>) {
        let count = count.min(MOST);
        let mut inner = self.inner();
        let mut events: Vec<LogEvent> = Vec::new();
        if inner.ring.len() < count {
            events = from_files(&self.path, &self.name, count);
        }
        if events.len() <= inner.ring.len() {
            let skipped = inner.ring.len().saturating_sub(count);
            events = inner.ring.iter().skip(skipped).cloned().collect();
        }
        let receiver = follow.then(|| {
            let (to, receiver) = sync_channel(BEHIND);
            inner.followers.push(Follower { to, missed: 0 });
            receiver
        });
        (events, receiver)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Whether it is still there.
    fn give(&mut self, event: &LogEvent) -> bool {
        if self.missed > 0 {
            let line = format!("{NOTE}{} lines were left out here", self.missed);
            let note = LogEvent { stream: Stream::Stderr, line, ..event.clone() };
            match self.to.try_send(note) {
                Ok(()) => self.missed = 0,
                Err(TrySendError::Full(_)) => {
                    self.missed += 1;
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        match self.to.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

impl Inner {
    fn keep(&mut self, event: LogEvent) {
        self.bytes += event.line.len();
        self.ring.push_back(event);
        while self.ring.len() > RING || (self.bytes > RING_BYTES && self.ring.len() > 1) {
            if let Some(old) = self.ring.pop_front() {
                self.bytes -= old.line.len();
            }
        }
    }

    /// In few pieces: a call for every line would cost more than all the rest.
    fn write(&mut self, events: &[LogEvent], path: &Path, full: u64) -> io::Result<()> {
        let mut text = String::new();
        for event in events {
            if self.file.is_some() && self.size + text.len() as u64 >= full {
                self.flush(&mut text)?;
                self.file = None;
                rotate(path);
            }
            if self.file.is_none() {
                self.open(path)?;
            }
            let _ = writeln!(text, "{}\t{}\t{}", event.ts, event.stream.as_str(), event.line);
        }
        self.flush(&mut text)
    }

    fn open(&mut self, path: &Path) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let file = File::options().append(true).create(true).open(path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    fn flush(&mut self, text: &mut String) -> io::Result<()> {
        let text = std::mem::take(text);
        if let Some(file) = self.file.as_mut().filter(|_| !text.is_empty()) {
            file.write_all(text.as_bytes())?;
            self.size += text.len() as u64;
        }
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    path.with_extension(format!("log.{number}"))
}

fn rotate(path: &Path) {
    for number in (1..KEPT).rev() {
        let _ = fs::rename(numbered(path, number), numbered(path, number + 1));
    }
    let _ = fs::rename(path, numbered(path, 1));
}

fn from_files(path: &Path, name: &str, count: usize) -> Vec<LogEvent> {
    let mut events = end_of(path, name, count);
    if events.len() < count {
        let mut before = end_of(&numbered(path, 1), name, count - events.len());
        before.append(&mut events);
        events = before;
    }
    events
}

fn end_of(path: &Path, name: &str, count: usize) -> Vec<LogEvent> {
    let bytes = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let start = size.saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        if start > 0 {
            let line = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..line);
        }
        Ok(bytes)
    };
    let bytes = bytes().unwrap_or_default();
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
    let newest = lines.iter().skip(lines.len().saturating_sub(count));
    let event = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        parse(&line, name).unwrap_or_else(|| as_it_is(&line, name))
    };
    newest.map(event).collect()
}

/// A line of the box's own daemons, whose logs are beside those of units.
fn as_it_is(line: &str, name: &str) -> LogEvent {
    let (service, ts) = (name.to_owned(), "-".to_owned());
    LogEvent { service, ts, stream: Stream::Stdout, line: line.to_owned() }
}

fn parse(line: &str, name: &str) -> Option<LogEvent> {
    let mut parts = line.splitn(3, '\t');
    let ts = parts.next()?.to_owned();
    let stream = match parts.next()? {
        "stdout" => Stream::Stdout,
        "stderr" => Stream::Stderr,
        _ => return None,
    };
    Some(LogEvent { service: name.to_owned(), ts, stream, line: parts.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(log: &UnitLog, line: &str) {
        log.line(Stream::Stdout, line.to_owned());
    }

    fn texts(events: &[LogEvent]) -> Vec<&str> {
        events.iter().map(|event| event.line.as_str()).collect()
    }

    #[test]
    fn the_newest_lines_are_in_memory_and_older_ones_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let log = UnitLog::new(dir.path(), "web", FULL);
        for n in 0..1500 {
            say(&log, &format!("line\t{n}"));
        }
        assert_eq!(log.inner().ring.len(), RING);
        let (events, _) = log.tail(1200, false);
        assert_eq!(events.len(), 1200);
        assert_eq!(texts(&events)[0], "line\t300");
        assert_eq!(texts(&log.tail(2, false).0), ["line\t1498", "line\t1499"]);
        let again = UnitLog::new(dir.path(), "web", FULL);
        say(&again, "after");
        let (events, _) = again.tail(2, false);
        assert_eq!(texts(&events), ["line\t1499", "after"]);
        let first = fs::read_to_string(dir.path().join("web.log")).unwrap();
        let first: Vec<&str> = first.lines().next().unwrap().splitn(3, '\t').collect();
        assert_eq!((first[1], first[2], first[0].len()), ("stdout", "line\t0", 24));
    }

    #[test]
    fn memory_and_files_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let log = UnitLog::new(dir.path(), "web", 10_000);
        for n in 0..2000 {
            say(&log, &format!("{n} {}", "x".repeat(500)));
        }
        assert!(log.inner().bytes <= RING_BYTES);
        let sizes: Vec<u64> =
            dir.path().read_dir().unwrap().map(|e| e.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 4, "one that is written and three");
        assert!(sizes.iter().all(|size| *size < 11_000), "{sizes:?}");
        assert!(texts(&log.tail(1, false).0)[0].starts_with("1999 "));
    }

    #[test]
    fn a_follower_hears_all_or_how_much_it_missed() {
        let dir = tempfile::tempdir().unwrap();
        let log = UnitLog::new(dir.path(), "web", FULL);
        say(&log, "before");
        let (events, follow) = log.tail(10, true);
        assert_eq!(texts(&events), ["before"]);
        let follow = follow.unwrap();
        for n in 0..BEHIND + 5 {
            say(&log, &n.to_string());
        }
        for n in 0..BEHIND {
            assert_eq!(follow.recv().unwrap().line, n.to_string());
        }
        say(&log, "later");
        assert_eq!(follow.recv().unwrap().line, "[ctl] 5 lines were left out here");
        assert_eq!(follow.recv().unwrap().line, "later");
        drop(follow);
        say(&log, "nobody");
        assert!(log.inner().followers.is_empty());
    }

    #[test]
    fn only_names_of_units_are_files() {
        for bad in ["", "../x", "a/b", "a.b", "\u{e4}"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_name("web-1_A"));
    }
}
