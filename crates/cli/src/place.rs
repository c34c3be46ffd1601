//! Where a session is shown: in this terminal, or in another pane or window of the tmux around it.
//!
//! The other pane runs `agentbox` again, so that it shows, leaves and comes back as here. Whether there
//! is such a place is looked up before anything is made: a wrong word costs nothing.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use clap::ValueEnum;
use protocol::text::visible;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Flags of everything that shows a session.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Where {
    /// Where to show it; all but same need tmux around this terminal
    #[arg(long, value_name = "WHERE")]
    attach_in: Option<Place>,

    /// Show it in this terminal: --attach-in same
    #[arg(long, conflicts_with = "attach_in")]
    inline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Beside this, in a pane of its own
    Split,
    /// In a window of its own
    Window,
    /// The same: tmux shows its windows as tabs
    Tab,
    /// In this terminal
    Same,
}

impl Where {
    /// Whether anything was said.
    pub fn is_given(self) -> bool {
        self.inline || self.attach_in.is_some()
    }

    /// The place beside this one that is wanted; none is this terminal. Outside of tmux that is an error.
    pub fn elsewhere(self) -> Result<Option<Tmux>, CommandError> {
        self.within(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn within(self, env: impl Fn(&str) -> Option<OsString>) -> Result<Option<Tmux>, CommandError> {
        let split = match self.attach_in {
            None | Some(Place::Same) => return Ok(None),
            Some(Place::Split) => true,
            Some(Place::Window | Place::Tab) => false,
        };
        let word = if split { "split" } else { "window" };
        let Some(tmux) = env("TMUX") else {
            return Err(CommandError::usage(format!(
                "--attach-in {word} needs a tmux around this terminal, and there is none"
            ))
            .hint("start tmux first, or show it here with --attach-in same"));
        };
        let (socket, session) = parts(&tmux);
        let target = if split { env("TMUX_PANE") } else { session };
        Ok(Some(Tmux { socket, target, split }))
    }
}

/// `TMUX` is the socket, the server's process and the session, with commas between.
fn parts(tmux: &OsStr) -> (OsString, Option<OsString>) {
    let text = tmux.to_string_lossy();
    let mut parts = text.rsplitn(3, ',');
    let session = parts.next().map(|number| format!("${number}:").into());
    (parts.last().unwrap_or(&text).into(), session)
}

/// The tmux this terminal is in, and what is wanted of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Tmux {
    socket: OsString,
    /// The pane that is split, or the session that gets a window.
    target: Option<OsString>,
    split: bool,
}

impl Tmux {
    /// Runs these words of `agentbox` there; it is in front then.
    pub fn show(&self, ctx: &Context, words: &[&str]) -> Outcome {
        let program = std::env::current_exe()?;
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket);
        tmux.args(if self.split { &["split-window", "-h"][..] } else { &["new-window"] });
        if let Some(target) = &self.target {
            tmux.arg("-t").arg(target);
        }
        // It takes over this folder by itself. Given by name, tmux would run what stands in `#(…)` there.
        tmux.arg("--").arg(program).arg("--home").arg(&ctx.home).args(words);
        let cannot = |why: String| {
            CommandError::failed(format!("tmux did not open a place for it: {why}"))
                .hint(format!("it runs; agentbox {} shows it here", words.join(" ")))
        };
        let done = tmux.output().map_err(|e| cannot(e.to_string()))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(cannot(visible(said.trim())));
        }
        let place = if self.split { "beside this pane" } else { "in a window of its own" };
        ctx.ui.say(&format!("Shown {place}."));
        Ok(Exit::OK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn env(name: &str) -> Option<OsString> {
        match name {
            "TMUX" => Some("/tmp/a,b/default,123,0".into()),
            "TMUX_PANE" => Some("%7".into()),
            _ => None,
        }
    }

    fn at(place: Place) -> Where {
        Where { attach_in: Some(place), inline: false }
    }

    #[test]
    fn only_tmux_has_other_places() {
        let found = at(Place::Split).within(env).unwrap().unwrap();
        assert_eq!(found.socket, "/tmp/a,b/default");
        assert_eq!((found.target, found.split), (Some("%7".into()), true));
        let tab = at(Place::Tab).within(env).unwrap().unwrap();
        assert_eq!((tab.target, tab.split), (Some("$0:".into()), false));
        for here in [at(Place::Same), Where::default(), Where { attach_in: None, inline: true }] {
            assert_eq!(here.within(env).unwrap(), None);
            assert_eq!(here.within(|_| None).unwrap(), None);
        }
        let error = at(Place::Window).within(|_| None).unwrap_err();
        assert_eq!((error.kind, error.hints.len()), (Kind::Usage, 1));
    }
}
