//! Where a session is shown: in this terminal, or in another pane, tab or window of the terminal around
//! it, when that is one that can be asked: tmux, Herdr, cmux or iTerm2.
//!
//! The other place runs `agentbox` again, so that it shows, leaves and comes back as here. Whether there
//! is such a place is looked up before anything is made.

mod iterm;
mod line;
mod panes;
mod tmux;

use crate::commands::config::root_of;
use crate::context::{Context, current_dir};
use crate::error::{CommandError, Exit};
use crate::terminal;
use clap::ValueEnum;
use iterm::Iterm;
use line::line;
use panes::{Cmux, Herdr};
use protocol::text::visible;
use settings::OpenIn;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use tmux::Tmux;

/// Flags of everything that shows a session.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Where {
    /// Where to show it; all but same need tmux, Herdr, cmux or iTerm2 around this terminal [default:
    /// what attach.openIn says: split there]
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
    /// In a window of its own; a workspace in Herdr and cmux
    Window,
    /// In a tab of its own; a window in tmux, which shows them as tabs
    Tab,
    /// In this terminal
    Same,
}

/// A place that is not this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    Split,
    Window,
    Tab,
}

impl Where {
    /// Whether anything was said.
    pub fn is_given(self) -> bool {
        self.inline || self.attach_in.is_some()
    }

    /// The place that is wanted; none is this terminal. That is said when another was wanted and the
    /// terminal has none to offer. Without a word `attach.openIn` decides, for a person at a terminal.
    pub fn elsewhere(self, ctx: &Context) -> Result<Option<Elsewhere>, CommandError> {
        if self.inline {
            return Ok(None);
        }
        let Some(place) = self.attach_in else {
            if !terminal::both_ends() || Elsewhere::found(Spot::Split, set).is_none() {
                return Ok(None);
            }
            let root = root_of(&current_dir().unwrap_or_default())?;
            let spot = ctx.settings_of(&root)?.attach.open_in.into();
            return Ok(Spot::of(spot).and_then(|spot| Elsewhere::found(spot, set)));
        };
        let Some(spot) = Spot::of(place) else { return Ok(None) };
        let found = Elsewhere::found(spot, set);
        if found.is_none() {
            ctx.ui.say("No tmux, Herdr, cmux or iTerm2 is around this terminal: it is shown here.");
        }
        Ok(found)
    }
}

/// A variable of this terminal that says something.
fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

impl From<OpenIn> for Place {
    fn from(set: OpenIn) -> Self {
        match set {
            OpenIn::Split => Place::Split,
            OpenIn::Window => Place::Window,
            OpenIn::Tab => Place::Tab,
            OpenIn::Same => Place::Same,
        }
    }
}

impl Spot {
    fn of(place: Place) -> Option<Self> {
        match place {
            Place::Same => None,
            Place::Split => Some(Spot::Split),
            Place::Window => Some(Spot::Window),
            Place::Tab => Some(Spot::Tab),
        }
    }
}

/// A terminal that can be asked for another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    Tmux,
    Herdr,
    Cmux,
    Iterm2,
}

/// A place of the terminal around this one.
#[derive(Debug, PartialEq, Eq)]
pub struct Elsewhere {
    spot: Spot,
    by: By,
}

#[derive(Debug, PartialEq, Eq)]
enum By {
    Tmux(Tmux),
    Herdr(Herdr),
    Cmux(Cmux),
    Iterm(Iterm),
}

impl Elsewhere {
    /// The innermost first: what runs in another inherits its variables.
    fn found(spot: Spot, env: impl Fn(&str) -> Option<OsString> + Copy) -> Option<Self> {
        let by = Tmux::found(spot, env)
            .map(By::Tmux)
            .or_else(|| Herdr::found(spot, env).map(By::Herdr))
            .or_else(|| Cmux::found(spot, env).map(By::Cmux))
            .or_else(|| Iterm::found(spot, env).map(By::Iterm))?;
        Some(Self { spot, by })
    }

    /// A tab of the terminal around this one, if that has tabs.
    pub fn tab() -> Option<Self> {
        Self::found(Spot::Tab, set)
    }

    /// A window of this terminal, if it is around.
    pub fn window_of(terminal: Terminal) -> Option<Self> {
        let spot = Spot::Window;
        let by = match terminal {
            Terminal::Tmux => Tmux::found(spot, set).map(By::Tmux),
            Terminal::Herdr => Herdr::found(spot, set).map(By::Herdr),
            Terminal::Cmux => Cmux::found(spot, set).map(By::Cmux),
            Terminal::Iterm2 => Iterm::found(spot, set).map(By::Iterm),
        };
        Some(Self { spot, by: by? })
    }

    /// Runs these words of `agentbox` there and says so; it is in front then. None when they cannot be
    /// said there without a doubt.
    pub fn show(&self, ctx: &Context, words: &[&str]) -> Result<Option<Exit>, CommandError> {
        let Some(place) = self.open(&ctx.home, words)? else {
            ctx.ui.say(
                "A folder's name has characters the other place could misread: it is shown here.",
            );
            return Ok(None);
        };
        ctx.ui.say(&format!("Shown {place}."));
        Ok(Some(Exit::OK))
    }

    /// The same without a word; where it is.
    pub fn open(&self, home: &Path, words: &[&str]) -> Result<Option<&'static str>, CommandError> {
        let program = std::env::current_exe()?.into_os_string();
        let mut all = vec![program, "--home".into(), home.as_os_str().to_owned()];
        all.extend(words.iter().map(Into::into));
        let typed = match &self.by {
            By::Tmux(_) => String::new(),
            _ => match line(&all) {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let (name, done) = match &self.by {
            By::Tmux(tmux) => ("tmux", tmux.show(&all)),
            By::Herdr(herdr) => ("Herdr", herdr.show(&typed)),
            By::Cmux(cmux) => ("cmux", cmux.show(&typed)),
            By::Iterm(iterm) => ("iTerm2", iterm.show(&typed)),
        };
        done.map_err(|why| {
            CommandError::failed(format!("{name} did not open a place for it: {}", visible(&why)))
                .hint(format!("it runs; agentbox {} shows it here", words.join(" ")))
        })?;
        Ok(Some(self.said()))
    }

    fn said(&self) -> &'static str {
        match (self.spot, &self.by) {
            (Spot::Split, _) => "beside this pane",
            (Spot::Tab, By::Tmux(_)) | (Spot::Window, By::Tmux(_) | By::Iterm(_)) => {
                "in a window of its own"
            }
            (Spot::Tab, _) => "in a tab of its own",
            (Spot::Window, _) => "in a workspace of its own",
        }
    }
}

/// What a program of the terminal said; what went wrong when it did not work.
fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(set: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + Copy {
        move |name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
    }

    #[test]
    fn the_terminal_around_is_known_by_its_variables() {
        let tmux =
            among(&[("TMUX", "/tmp/a,b/default,123,0"), ("TMUX_PANE", "%7"), ("HERDR_ENV", "1")]);
        let By::Tmux(found) = Elsewhere::found(Spot::Split, tmux).unwrap().by else { panic!() };
        assert_eq!(found.socket, "/tmp/a,b/default");
        assert_eq!((found.target, found.split), (Some("%7".into()), true));
        let By::Tmux(tab) = Elsewhere::found(Spot::Tab, tmux).unwrap().by else { panic!() };
        assert_eq!((tab.target, tab.split), (Some("$0:".into()), false));

        let herdr =
            among(&[("HERDR_ENV", "1"), ("HERDR_PANE_ID", "w1:p1"), ("TERM_PROGRAM", "iTerm.app")]);
        assert!(matches!(Elsewhere::found(Spot::Tab, herdr).unwrap().by, By::Herdr(_)));
        let cmux = among(&[("CMUX_SURFACE_ID", "a"), ("CMUX_WORKSPACE_ID", "b")]);
        assert!(matches!(Elsewhere::found(Spot::Tab, cmux).unwrap().by, By::Cmux(_)));
        let far = among(&[("LC_TERMINAL", "iTerm2"), ("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")]);
        for none in [among(&[]), among(&[("HERDR_ENV", "1")]), far] {
            assert_eq!(Elsewhere::found(Spot::Split, none), None);
        }
    }

    #[test]
    fn same_is_no_other_place() {
        assert_eq!(Spot::of(OpenIn::Same.into()), None);
        assert_eq!(Spot::of(OpenIn::Tab.into()), Some(Spot::Tab));
        assert_eq!(Spot::of(OpenIn::default().into()), Some(Spot::Split));
    }
}
