//! tmux: it runs a list of words, so nothing has to be quoted.

use super::{Spot, output};
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The tmux this terminal is in, and what is wanted of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Tmux {
    pub socket: OsString,
    /// The pane that is split, or the session that gets a window.
    pub target: Option<OsString>,
    pub split: bool,
}

impl Tmux {
    pub fn found(spot: Spot, env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let (socket, session) = parts(&env("TMUX")?);
        let split = spot == Spot::Split;
        let target = if split { env("TMUX_PANE") } else { session };
        Some(Self { socket, target, split })
    }

    pub fn show(&self, words: &[OsString]) -> Result<(), String> {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket);
        tmux.args(if self.split { &["split-window", "-h"][..] } else { &["new-window"] });
        if let Some(target) = &self.target {
            tmux.arg("-t").arg(target);
        }
        // It takes over this folder by itself. Given by name, tmux would run what stands in `#(…)` there.
        output(tmux.arg("--").args(words)).map(drop)
    }
}

/// `TMUX` is the socket, the server's process and the session, with commas between.
fn parts(tmux: &OsStr) -> (OsString, Option<OsString>) {
    let text = tmux.to_string_lossy();
    let mut parts = text.rsplitn(3, ',');
    let session = parts.next().map(|number| format!("${number}:").into());
    (parts.last().unwrap_or(&text).into(), session)
}
