//! `agentbox-ctl drive`: what is on a session's terminal, and keys for it.
//!
//! One [`Drive`] on standard input. Text goes to tmux by a buffer, never as an argument.

use crate::error::{Error, Result};
use crate::input;
use protocol::drive::{
    Act, Drive, LONGEST_TEXT, MOST_PRESSES, MOST_ROWS, NOT_IN_TIME, Press, Screen, is_key,
};
use protocol::sessions::is_session_name;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const TMUX: &str = "/usr/bin/tmux";
/// Between two looks at a terminal.
const TICK: Duration = Duration::from_millis(100);
/// A pause between keys is no way to sleep.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Our buffer among those of the box.
const BUFFER: &str = "agentbox-drive";

pub fn run() -> Result<i32> {
    let Drive { session, act } = input::json_line(&mut io::stdin().lock())?;
    if !is_session_name(&session) {
        return Err(Error::Usage("a session's name is letters, digits, '-' and '_'.".into()));
    }
    let pane = Pane { at: format!("={session}:"), session };
    match act {
        Act::Look { ansi, rows } => pane.look(ansi, rows).and_then(|screen| tell(&screen)),
        Act::Press { keys, pause_ms } => pane.press(&keys, pause(pause_ms)),
        Act::Paste { text, then_enter, pause_ms } => {
            pane.paste(&text, true)?;
            if then_enter {
                std::thread::sleep(pause(pause_ms));
                pane.tmux(&["send-keys", "-t", &pane.at, "Enter"])?;
            }
            Ok(protocol::exit::OK)
        }
        Act::Await { text, within_ms } => pane.wait_for(&text, Duration::from_millis(within_ms)),
        Act::Resize { cols, rows } => {
            let (cols, rows) = (cols.clamp(2, 1000).to_string(), rows.clamp(2, 1000).to_string());
            pane.tmux(&["resize-window", "-t", &pane.at, "-x", &cols, "-y", &rows])?;
            Ok(protocol::exit::OK)
        }
    }
}

fn pause(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms)).min(LONGEST_PAUSE)
}

fn tell(screen: &Screen) -> Result<i32> {
    let json = serde_json::to_string(screen).map_err(|e| Error::Failed(e.to_string()))?;
    crate::say(&format!("{json}\n"));
    Ok(protocol::exit::OK)
}

/// The terminal of one session.
struct Pane {
    session: String,
    /// As tmux is told: exactly this session, its current window.
    at: String,
}

impl Pane {
    fn tmux(&self, args: &[&str]) -> Result<Output> {
        self.fed(args, &[])
    }

    /// Runs tmux with this on its standard input.
    fn fed(&self, args: &[&str], input: &[u8]) -> Result<Output> {
        let mut command = Command::new(TMUX);
        command.args(args).env_remove("TMUX").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |e| Error::Program("tmux", e);
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read it says why by its exit code.
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Failed(format!("session {}: {said}", self.session)))
    }

    fn look(&self, ansi: bool, rows: Option<u32>) -> Result<Screen> {
        let format = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y}";
        let told = self.tmux(&["display-message", "-p", "-t", &self.at, format])?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let numbers: Vec<u16> = told.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [cols, height, cursor_x, cursor_y] = numbers[..] else {
            return Err(Error::Failed(format!("tmux said {:?} of its terminal.", told.trim())));
        };
        let above = rows.map(|rows| rows.min(MOST_ROWS).saturating_sub(u32::from(height)));
        let from = format!("-{}", above.unwrap_or(0));
        let mut args = vec!["capture-pane", "-p", "-t", &self.at];
        if above.is_some_and(|above| above > 0) {
            args.extend(["-S", &from]);
        }
        if ansi {
            args.push("-e");
        }
        let shown = self.tmux(&args)?;
        let shown = String::from_utf8_lossy(&shown.stdout);
        let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        if let Some(rows) = rows {
            let too_many = lines.len().saturating_sub(rows as usize);
            lines.drain(..too_many);
        }
        let session = self.session.clone();
        Ok(Screen { session, lines, cols, rows: height, cursor_x, cursor_y })
    }

    fn press(&self, keys: &[Press], pause: Duration) -> Result<i32> {
        let known = |press: &Press| match press {
            Press::Key(name) => is_key(name),
            Press::Text(text) => text.len() <= LONGEST_TEXT,
        };
        if keys.len() > MOST_PRESSES || !keys.iter().all(known) {
            return Err(Error::BadInput("keys that are none, or too many of them".into()));
        }
        for (at, press) in keys.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(pause);
            }
            match press {
                Press::Key(name) => drop(self.tmux(&["send-keys", "-t", &self.at, name])?),
                Press::Text(text) => self.paste(text, false)?,
            }
        }
        Ok(protocol::exit::OK)
    }

    /// Types a text. As one paste where the program can tell, so that a line end in it ends nothing.
    fn paste(&self, text: &str, in_one: bool) -> Result<()> {
        if text.len() > LONGEST_TEXT {
            return Err(Error::BadInput("a text that is too long".into()));
        }
        if text.is_empty() {
            return Ok(());
        }
        self.fed(&["load-buffer", "-b", BUFFER, "-"], text.as_bytes())?;
        let how = if in_one { "-dp" } else { "-dr" };
        self.tmux(&["paste-buffer", how, "-b", BUFFER, "-t", &self.at])?;
        Ok(())
    }

    fn wait_for(&self, text: &str, within: Duration) -> Result<i32> {
        let until = Instant::now() + within;
        loop {
            let screen = self.look(false, None)?;
            if screen.lines.join("\n").contains(text) {
                return tell(&screen);
            }
            if Instant::now() >= until {
                return Ok(NOT_IN_TIME);
            }
            std::thread::sleep(TICK);
        }
    }
}
