//! `agentbox-ctl` in a box, run for this command line. What it says is the box's own word: bounded, and
//! made visible before it is shown.

use crate::error::CommandError;
use crate::interrupt::Interrupt;
use host::client::{Client, Incoming};
use protocol::control::{Exec, Exited, Request, Target};
use protocol::ctl::paths;
use protocol::supervisor::MAX_ANSWER;
use protocol::text::shortened;

const COMPLAINT: usize = 4000;

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
    Exec { target, argv: words.map(str::to_owned).collect(), tty: false, cols: 0, rows: 0 }
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
