//! The programs a box can be opened in.
//!
//! None of them runs anything of the host in a folder that the box writes: editors attach to the box,
//! agents and shells are the box's own, and only the file manager sees its files from outside.

use crate::commands::code::Ide;
use crate::place::{Elsewhere, Terminal};
use clap::ValueEnum;
use host::opener;
use protocol::sessions::Agent;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum App {
    /// Your file manager
    #[value(alias = "finder")]
    Files,
    Vscode,
    Cursor,
    /// Claude Code in the box
    Claude,
    Codex,
    Opencode,
    /// A shell of the box, in a window of the tmux around this terminal
    Tmux,
    Herdr,
    Cmux,
    Iterm2,
}

/// How an app shows a box.
pub enum How {
    Files,
    Editor(Ide),
    Agent(Agent),
    Shell(Terminal),
}

/// An app, and whether it can be used here.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub app: String,
    pub available: bool,
    pub shows: &'static str,
}

impl App {
    pub fn how(self) -> How {
        match self {
            App::Files => How::Files,
            App::Vscode => How::Editor(Ide::Vscode),
            App::Cursor => How::Editor(Ide::Cursor),
            App::Claude => How::Agent(Agent::Claude),
            App::Codex => How::Agent(Agent::Codex),
            App::Opencode => How::Agent(Agent::Opencode),
            App::Tmux => How::Shell(Terminal::Tmux),
            App::Herdr => How::Shell(Terminal::Herdr),
            App::Cmux => How::Shell(Terminal::Cmux),
            App::Iterm2 => How::Shell(Terminal::Iterm2),
        }
    }

    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn choice(self) -> Choice {
        let (available, shows) = match self.how() {
            How::Files => (opener::find("sshfs").is_some(), "the box's files, mounted by sshfs"),
            How::Editor(ide) => (ide.find().is_some(), "the box, in the editor attached to it"),
            How::Agent(_) => (true, "the agent in the box, started when it does not run"),
            How::Shell(terminal) => {
                (Elsewhere::window_of(terminal).is_some(), "a shell of the box, in its own window")
            }
        };
        Choice { app: self.name(), available, shows }
    }
}

/// Every app there is.
pub fn choices() -> Vec<Choice> {
    App::value_variants().iter().map(|app| app.choice()).collect()
}
