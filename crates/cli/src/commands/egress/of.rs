//! Whose policy is looked at: a box's, or the one a new box of the project would have.

use super::{agents, in_words, modes};
use crate::commands::list::of_project;
use crate::context::{current_dir, target};
use crate::error::CommandError;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::egress::{EgressMode, PolicyOf};
use protocol::sessions::Agent;

#[derive(Debug, clap::Args)]
pub struct Of {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box;
    /// where there is none, or several, a new one]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Of a new box of this project in which this agent works
    #[arg(long, value_name = "AGENT", conflicts_with = "which", value_parser = agents())]
    agent: Option<Agent>,

    /// Of a new box of this project with this mode
    #[arg(long, value_name = "MODE", conflicts_with = "which", value_parser = modes())]
    mode: Option<EgressMode>,
}

/// Said beside the answer, because one command can mean the one or the other.
pub struct Whose {
    name: String,
    /// As far as it is known before the host answers.
    mode: Option<EgressMode>,
}

impl Whose {
    /// “fix-login (balanced: what no rule allows asks you)”.
    pub fn in_words(&self, mode: Option<EgressMode>) -> String {
        match mode.or(self.mode) {
            Some(mode) => format!("{} ({}: {})", self.name, mode.as_str(), in_words(mode)),
            None => self.name.clone(),
        }
    }
}

impl Of {
    pub fn find(self, client: &Client) -> Result<(PolicyOf, Whose), CommandError> {
        let here = current_dir();
        let found = match self.which {
            Some(which) => Some(client.call(&Request::FindBox { target: target(Some(which)) })?),
            None if self.agent.is_some() || self.mode.is_some() => None,
            None => only(of_project(client.call(&Request::Boxes)?, here.as_deref())),
        };
        let of = match &found {
            Some(view) => PolicyOf { target: Some(Target::id(&view.id)), ..PolicyOf::default() },
            None => PolicyOf {
                target: None,
                cwd: here.map(|dir| dir.to_string_lossy().into_owned()),
                agent: self.agent,
                mode: self.mode,
            },
        };
        let whose = match found {
            Some(view) => Whose { name: view.name.to_string(), mode: Some(view.egress) },
            None => Whose { name: "a new box of this project".to_owned(), mode: of.mode },
        };
        Ok((of, whose))
    }
}

fn only(mut boxes: Vec<BoxView>) -> Option<BoxView> {
    if boxes.len() == 1 { boxes.pop() } else { None }
}

/// The name of a box that is still there, else its id.
pub fn name_of(boxes: &[BoxView], id: &protocol::BoxId) -> String {
    let found = boxes.iter().find(|view| view.id == *id);
    found.map_or_else(|| id.to_string(), |view| view.name.to_string())
}
