//! Reads what a unit says, from its start until nobody holds the other end any more.
//!
//! When the unit's first process has ended, what it said is read to the end before anybody hears of
//! the end; so the last line of a task is in its log when the task is done. Processes it left behind
//! may go on talking.

use super::engine::{Event, Run};
use super::lines::{Lines, without_ansi};
use super::log::UnitLog;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::supervisor::Stream;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A line that goes on after this long of silence is looked at as it is.
const SILENCE: u16 = 250;
/// What is read at once.
const PIECE: usize = 8 * 1024;
/// How long reading the rest may take while somebody goes on writing.
const REST: Duration = Duration::from_millis(500);

/// What makes a service ready.
pub struct Watch(pub project::Pattern);

/// Told by dropping or writing to it that the process has ended.
pub type Ended = PipeWriter;

pub struct Reading {
    pub log: Arc<UnitLog>,
    pub run: Run,
    pub watch: Option<Watch>,
    /// What its lines begin with.
    pub prefix: &'static str,
    pub tell: Sender<Event>,
}

struct Source {
    pipe: std::fs::File,
    stream: Stream,
    lines: Lines,
    open: bool,
}

/// Reads in a thread of its own.
pub fn start(child: &mut Child, reading: Reading) -> io::Result<Ended> {
    let missing = || io::Error::other("no pipe");
    let out = child.stdout.take().ok_or_else(missing)?;
    let err = child.stderr.take().ok_or_else(missing)?;
    let sources = [source(out.into(), Stream::Stdout)?, source(err.into(), Stream::Stderr)?];
    let (control, ended) = io::pipe()?;
    super::thread("reader", move || reading.run(sources, control))?;
    Ok(ended)
}

fn source(pipe: OwnedFd, stream: Stream) -> io::Result<Source> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(Source { pipe: pipe.into(), stream, lines: Lines::default(), open: true })
}

impl Reading {
    fn run(mut self, mut sources: [Source; 2], control: PipeReader) {
        let mut control = Some(control);
        loop {
            let (readable, ended) = self.wait(&sources, control.as_ref());
            if ended {
                control = None;
                let end = Instant::now() + REST;
                while Instant::now() < end && self.read(&mut sources) {}
                self.finish(&mut sources);
                let _ = self.tell.send(Event::Drained(self.run.clone()));
            } else if readable {
                self.read(&mut sources);
            } else {
                self.look_at_unfinished(&sources);
            }
            if control.is_none() && sources.iter().all(|source| !source.open) {
                self.finish(&mut sources);
                return;
            }
        }
    }

    /// Whether there is something to read, and whether the process has ended.
    fn wait(&self, sources: &[Source; 2], control: Option<&PipeReader>) -> (bool, bool) {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(3);
        for source in sources.iter().filter(|source| source.open) {
            fds.push(PollFd::new(source.pipe.as_fd(), PollFlags::POLLIN));
        }
        let pipes = fds.len();
        if let Some(control) = control {
            fds.push(PollFd::new(control.as_fd(), PollFlags::POLLIN));
        }
        let looking =
            self.watch.is_some() && sources.iter().any(|s| s.lines.unfinished().is_some());
        let timeout = if looking { PollTimeout::from(SILENCE) } else { PollTimeout::NONE };
        if poll(&mut fds, timeout).is_err() {
            return (false, false);
        }
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        let (pipes, control) = fds.split_at(pipes);
        (pipes.iter().any(ready), control.iter().any(ready))
    }

    /// One piece of each; whether there was any.
    fn read(&mut self, sources: &mut [Source; 2]) -> bool {
        let mut any = false;
        for source in sources.iter_mut().filter(|source| source.open) {
            let mut buffer = [0; PIECE];
            match source.pipe.read(&mut buffer) {
                Ok(0) => source.open = false,
                Ok(read) => {
                    any = true;
                    let stream = source.stream;
                    let mut lines = Vec::new();
                    source.lines.push(&buffer[..read], |line| lines.push(line));
                    self.say(stream, lines);
                }
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => source.open = false,
            }
        }
        any
    }

    fn say(&mut self, stream: Stream, mut lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        for line in &mut lines {
            self.look_at(line);
            line.insert_str(0, self.prefix);
        }
        self.log.lines(stream, lines);
    }

    fn finish(&mut self, sources: &mut [Source; 2]) {
        for source in sources {
            if let Some(line) = source.lines.end() {
                self.say(source.stream, vec![line]);
            }
        }
    }

    fn look_at_unfinished(&mut self, sources: &[Source; 2]) {
        for line in sources.iter().filter_map(|source| source.lines.unfinished()) {
            self.look_at(&line);
        }
    }

    fn look_at(&mut self, line: &str) {
        let found = self.watch.as_ref().is_some_and(|watch| watch.0.is_match(&without_ansi(line)));
        if found {
            self.watch = None;
            let _ = self.tell.send(Event::ProbeSucceeded(self.run.clone()));
        }
    }
}
