//! `agentbox-ctl` in a box, with its input or output as a stream.

use crate::error::{CommandError, Kind};
use crate::progress::Steps;
use crate::ui::Ui;
use host::client::{Client, Conversation, Incoming, Next, Writer};
use protocol::boxes::{Progress, StepState};
use protocol::control::{Exec, Exited, Request, Target};
use protocol::ctl::{Pack, paths::CTL};
use protocol::text::{size, visible};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// What is sent at once.
const CHUNK: usize = 256 * 1024;
/// How much a box may complain.
const SAID: usize = 16 * 1024;
/// What a box may send after the end of its archive: the rest of its last block.
const TRAILING: usize = 1024 * 1024;
/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

fn open(client: &Client, target: &Target, args: &[&str]) -> Result<Conversation, CommandError> {
    let argv = std::iter::once(CTL).chain(args.iter().copied()).map(str::to_owned).collect();
    let exec = Exec { target: target.clone(), argv, tty: false, cols: 0, rows: 0, user: None };
    Ok(client.open(&Request::Exec(exec))?)
}

/// How a command in the box ended. What it said is the box's own word and made visible.
fn ended(exit: i32, said: &[u8]) -> Result<Vec<String>, CommandError> {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<String> =
        text.lines().map(visible).filter(|line| !line.trim().is_empty()).collect();
    if exit == 0 {
        return Ok(lines);
    }
    let line = |line: &String| line.strip_prefix("agentbox: ").unwrap_or(line).to_owned();
    let text: Vec<String> = lines.iter().map(line).collect();
    let text = if text.is_empty() { format!("it ended with {exit}") } else { text.join("\n") };
    let hint = boxes::room::hint(&text).unwrap_or("`agentbox shell` shows what is there");
    Err(CommandError::failed(format!("the box cannot do it: {text}")).hint(hint))
}

fn keep(said: &mut Vec<u8>, bytes: &[u8]) {
    let room = SAID.saturating_sub(said.len());
    said.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// What the box packs, as a reader. Dropping it ends the command.
pub struct Packed {
    conversation: Conversation,
    chunk: Vec<u8>,
    at: usize,
    said: Vec<u8>,
    exit: Option<i32>,
    moving: Moving,
}

impl Packed {
    pub fn open(
        client: &Client,
        target: &Target,
        what: &Pack,
        moving: Moving,
    ) -> Result<Self, CommandError> {
        let conversation = open(client, target, &["pack"])?;
        let mut writer = conversation.writer()?;
        let mut line = serde_json::to_vec(what).map_err(io::Error::from)?;
        line.push(b'\n');
        writer.stdin(&line)?;
        writer.stdin(b"")?;
        let (chunk, said) = (Vec::new(), Vec::new());
        Ok(Self { conversation, chunk, at: 0, said, exit: None, moving })
    }

    /// Waits for the command's end; what it told on the way.
    pub fn end(mut self) -> Result<Vec<String>, CommandError> {
        let (mut rest, mut buffer) = (0, vec![0; 64 * 1024]);
        loop {
            match self.read(&mut buffer)? {
                0 => return ended(self.exit.unwrap_or(1), &self.said),
                n => rest += n,
            }
            if rest > TRAILING {
                return Err(CommandError::failed("the box goes on after the end of its archive")
                    .hint("nothing more of it was taken; copy fewer files, or look into the box"));
            }
        }
    }

    fn fetch(&mut self) -> io::Result<()> {
        match self.conversation.receive::<Exited>() {
            Ok(Next::Incoming(Incoming::Stdout(bytes))) => {
                self.moving.moved(bytes.len());
                (self.chunk, self.at) = (bytes, 0);
            }
            Ok(Next::Incoming(Incoming::Stderr(bytes))) => keep(&mut self.said, &bytes),
            Ok(Next::Incoming(Incoming::Event(_))) => {}
            Ok(Next::Result(exited)) => self.exit = Some(exited.exit_code),
            Err(e) => return Err(io::Error::other(e.to_string())),
        }
        Ok(())
    }
}

impl Read for Packed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            if self.exit.is_some() {
                return Ok(0);
            }
            self.fetch()?;
        }
        let n = into.len().min(self.chunk.len() - self.at);
        into[..n].copy_from_slice(&self.chunk[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Runs a command in the box with what `write` writes as its input; what it told on the way.
pub fn feed(
    client: &Client,
    target: &Target,
    args: &[&str],
    moving: Moving,
    write: impl FnOnce(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<Vec<String>, CommandError> {
    let conversation = open(client, target, args)?;
    let mut input = Input { writer: conversation.writer()?, buffer: Vec::new(), moving };
    let reading = std::thread::spawn(move || {
        let mut said = Vec::new();
        let exited = conversation.finish::<Exited>(|incoming| {
            if let Incoming::Stderr(bytes) = incoming {
                keep(&mut said, &bytes);
            }
        });
        exited.map(|exited| (exited.exit_code, said))
    });
    let written = write(&mut input).and_then(|()| Ok(input.end()?));
    if let Err(error) = written
        && error.kind != Kind::ReaderLeft
    {
        input.writer.hang_up();
        return Err(error);
    }
    // A box that stopped reading has said why.
    let gone = || CommandError::failed("the reader of the box's answer broke off");
    let (exit, said) = reading.join().map_err(|_| gone())??;
    ended(exit, &said)
}

struct Input {
    writer: Writer,
    buffer: Vec<u8>,
    moving: Moving,
}

impl Input {
    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.stdin(b"")
    }
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.writer.stdin(&self.buffer)?;
        self.moving.moved(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }
}

/// A line about what moves, once it takes longer than a moment.
pub struct Moving {
    /// None where somebody else has the terminal.
    ui: Option<Ui>,
    step: String,
    total: Option<u64>,
    bytes: u64,
    begun: Instant,
    shown: Instant,
    steps: Option<Steps>,
}

impl Moving {
    pub fn new(ui: &Ui, step: impl Into<String>, total: Option<u64>) -> Self {
        Self::shown_on(Some(ui.clone()), step.into(), total)
    }

    /// Without a word.
    pub fn unseen() -> Self {
        Self::shown_on(None, String::new(), None)
    }

    fn shown_on(ui: Option<Ui>, step: String, total: Option<u64>) -> Self {
        let now = Instant::now();
        Self { ui, step, total, bytes: 0, begun: now, shown: now, steps: None }
    }

    fn moved(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let Some(ui) = &self.ui else { return };
        if self.begun.elapsed() >= PATIENCE && self.shown.elapsed() >= REDRAW {
            self.shown = Instant::now();
            let progress = self.progress(StepState::Running);
            self.steps.get_or_insert_with(|| Steps::new(ui)).show(progress);
        }
    }

    fn progress(&self, state: StepState) -> Progress {
        let elapsed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let rate = self.bytes.saturating_mul(1000) / elapsed.max(1);
        #[allow(clippy::cast_precision_loss)]
        let share = |total: u64| (self.bytes as f32 / total.max(1) as f32).min(1.0);
        Progress {
            step: self.step.clone(),
            state,
            detail: Some(format!("{}, {}/s", size(self.bytes), size(rate))),
            fraction: self.total.map(share),
            elapsed_ms: elapsed,
        }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        if let Some(steps) = &self.steps {
            steps.show(self.progress(StepState::Done));
        }
    }
}
