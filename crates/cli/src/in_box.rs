//! `agentbox-ctl` in a box, run for this command line. What it says is the box's own word: bounded, and
//! made visible before it is shown.

use crate::error::CommandError;
use crate::interrupt::Interrupt;
use host::client::{Client, Incoming};
use protocol::control::{Exec, Exited, Request, Target};
use protocol::ctl::paths;
use protocol::rpc::Envelope;
use protocol::supervisor::MAX_ANSWER;
use protocol::text::shortened;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const COMPLAINT: usize = 4000;
/// More than anybody reads; a box that says more is cut off.
const MOST: usize = 4 * 1024 * 1024;

/// What a command said and how it ended.
pub struct Said {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Said {
    /// What went wrong, for a person.
    pub fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let text =
            text.trim().trim_start_matches("agentbox-ctl: ").trim_start_matches("agentbox: ");
        let lines: Vec<String> = text.lines().take(50).map(|line| shortened(line, 500)).collect();
        match lines.as_slice() {
            [] => format!("the box's supervisor ended with {}", self.exit_code),
            lines => lines.join("\n"),
        }
    }
}

pub fn ctl(target: Target, words: &[&str]) -> Exec {
    let words = std::iter::once(paths::CTL).chain(words.iter().copied());
    Exec {
        target,
        argv: words.map(str::to_owned).collect(),
        tty: false,
        cols: 0,
        rows: 0,
        user: None,
    }
}

/// Runs it to its end. What is more than anybody could want is left out.
pub fn run(
    interrupt: &Interrupt,
    client: &Client,
    target: Target,
    words: &[&str],
) -> Result<Said, CommandError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let request = Request::Exec(ctl(target, words));
    let ended: Exited = interrupt.call(client, &request, |incoming| match incoming {
        Incoming::Stdout(bytes) => take(&mut stdout, &bytes, MAX_ANSWER),
        Incoming::Stderr(bytes) => take(&mut stderr, &bytes, COMPLAINT),
        Incoming::Event(_) => {}
    })?;
    Ok(Said { exit_code: ended.exit_code, stdout, stderr })
}

fn take(into: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let room = most.saturating_sub(into.len());
    into.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// Runs a command in a box to its end, with this input. What it says is the box's own word.
pub fn in_box(
    client: &Client,
    target: Target,
    argv: Vec<String>,
    input: &[u8],
) -> Result<Envelope, CommandError> {
    talk(client, target, argv, input, None)
}

/// The same, given up when it takes longer than this.
pub fn in_box_within(
    client: &Client,
    target: Target,
    argv: Vec<String>,
    input: &[u8],
    limit: Duration,
) -> Result<Envelope, CommandError> {
    talk(client, target, argv, input, Some(limit))
}

fn talk(
    client: &Client,
    target: Target,
    argv: Vec<String>,
    input: &[u8],
    limit: Option<Duration>,
) -> Result<Envelope, CommandError> {
    let conversation = client.open(&Request::Exec(Exec {
        target,
        argv,
        tty: false,
        cols: 0,
        rows: 0,
        user: None,
    }))?;
    let mut writer = conversation.writer()?;
    // Dropped when this returns: nobody waits any more then.
    let (_waits, left) = mpsc::channel::<()>();
    let late = Arc::new(AtomicBool::new(false));
    if let Some(limit) = limit {
        let (hang_up, late) = (conversation.writer()?, late.clone());
        std::thread::spawn(move || {
            if left.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                late.store(true, Ordering::SeqCst);
                hang_up.hang_up();
            }
        });
    }
    // A command that ended without reading its input has an answer all the same.
    let chunks = input.chunks(protocol::frame::MAX_PAYLOAD).filter(|c| !c.is_empty());
    let _ = chunks.chain([&[][..]]).try_for_each(|chunk| writer.stdin(chunk));
    let (mut stdout, mut stderr, mut too_much) = (Vec::new(), Vec::new(), false);
    let ended = conversation.finish::<Exited>(|incoming| {
        let (to, bytes) = match incoming {
            Incoming::Stdout(bytes) => (&mut stdout, bytes),
            Incoming::Stderr(bytes) => (&mut stderr, bytes),
            Incoming::Event(_) => return,
        };
        if to.len() + bytes.len() > MOST {
            too_much = true;
            writer.hang_up();
        } else {
            to.extend(bytes);
        }
    });
    if too_much {
        return Err(CommandError::failed("the box said more than 4 MB and was cut off")
            .hint("`agentbox shell` shows what goes on in it"));
    }
    if late.load(Ordering::SeqCst) {
        return Err(CommandError::failed("the box did not answer in time")
            .hint("`agentbox shell` shows what goes on in it"));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    Ok(Envelope { exit_code: ended?.exit_code, stdout, stderr, pushed: None })
}
