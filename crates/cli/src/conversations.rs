//! Which conversation an agent goes on with: found before anything is made, so that a wrong word costs
//! nothing.

use crate::error::CommandError;
use crate::time::ago;
use host::client::Client;
use jiff::Timestamp;
use protocol::control::Request;
use protocol::conversations::{Begin, ConversationView, FindConversations, MOST_BYTES, MOST_PLAN};
use protocol::sessions::Agent;
use protocol::text::visible;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How a session begins, as everything that starts an agent takes it.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(multiple = false)]
pub struct BeginArgs {
    /// Go on with the newest conversation you had with the agent in this folder
    #[arg(short = 'c', long = "continue")]
    latest: bool,

    /// Go on with this conversation of this folder; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    resume: Option<String>,

    /// Give Claude a plan to work from, and start it in plan mode
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

impl BeginArgs {
    pub fn is_nothing(&self) -> bool {
        !self.latest && self.resume.is_none() && self.plan.is_none()
    }

    /// What that means for an agent in a folder.
    pub fn find(&self, client: &Client, agent: Agent, folder: &str) -> Result<Begin, CommandError> {
        if let Some(file) = &self.plan {
            return Ok(Begin::Plan { text: plan(agent, file)? });
        }
        if !self.latest && self.resume.is_none() {
            return Ok(Begin::Nothing);
        }
        let id = self.resume.clone();
        let found = find(client, Some(agent), folder, id.clone())?;
        let one = match id {
            None => found.into_iter().next().ok_or_else(|| none_in(Some(agent), folder))?,
            Some(id) => the_one(found, &id, folder)?,
        };
        begin(one, None)
    }
}

/// To begin with this conversation.
pub fn begin(view: ConversationView, plan: Option<String>) -> Result<Begin, CommandError> {
    if view.bytes > MOST_BYTES {
        let text = format!("the conversation {} is too long to go to a box", view.id);
        return Err(CommandError::usage(text).hint("have the agent compact it, or start afresh"));
    }
    Ok(Begin::Conversation { id: view.id, folder: view.folder, plan })
}

/// Conversations of a folder, newest first; with an id, those wherever they were held.
pub fn find(
    client: &Client,
    agent: Option<Agent>,
    folder: &str,
    id: Option<String>,
) -> Result<Vec<ConversationView>, CommandError> {
    let id = id.map(|id| id.to_ascii_lowercase());
    let query = FindConversations { agent, folder: folder.to_owned(), id };
    Ok(client.call(&Request::Conversations(query))?)
}

/// The one of these that an id means.
pub fn the_one(
    found: Vec<ConversationView>,
    id: &str,
    folder: &str,
) -> Result<ConversationView, CommandError> {
    let (mut here, elsewhere): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|view| view.folder == folder);
    match (here.len(), elsewhere.first()) {
        (1, _) => Ok(here.remove(0)),
        (0, None) => Err(CommandError::usage(format!("there is no conversation {}", visible(id)))
            .hint("leave the id away to go on with the newest: --continue")),
        (0, Some(other)) => {
            let place = visible(&other.folder);
            let text = format!("the conversation {} was held in {place}", other.id);
            Err(CommandError::usage(text).hint(format!("make the box for that folder: {place}")))
        }
        _ => Err(ambiguous(&format!("{} could be several conversations", visible(id)), &here)),
    }
}

/// Says which there are.
pub fn ambiguous(text: &str, views: &[ConversationView]) -> CommandError {
    let now = Timestamp::now();
    let line = |view: &ConversationView| {
        let title = view.title.as_deref().map(|t| format!("  {}", visible(t))).unwrap_or_default();
        format!("\n  {}  {}  {}{title}", view.id, view.agent.as_str(), ago(now, view.changed_at))
    };
    let lines: String = views.iter().map(line).collect();
    CommandError::usage(format!("{text}{lines}")).hint("name one of them by its id")
}

pub fn none_in(agent: Option<Agent>, folder: &str) -> CommandError {
    let whose = agent.map(|agent| format!(" with {}", agent.title())).unwrap_or_default();
    CommandError::usage(format!("you had no conversation{whose} in {}", visible(folder)))
        .hint("it counts where the agent was started; name that folder")
}

/// Reads a plan for Claude.
pub fn plan(agent: Agent, file: &Path) -> Result<String, CommandError> {
    if agent != Agent::Claude {
        let text = format!("{} takes no plan; only Claude has a plan mode", agent.title());
        return Err(CommandError::usage(text));
    }
    let cannot = |why: &str| CommandError::usage(format!("{} {why}", file.display()));
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|e| cannot(&format!("cannot be read: {e}")))?;
    let mut bytes = Vec::new();
    let most = MOST_PLAN as u64 + 1;
    opened
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| cannot(&format!("cannot be read: {e}")))?;
    if bytes.len() > MOST_PLAN {
        return Err(cannot("is too long for a plan"));
    }
    let text = String::from_utf8(bytes).map_err(|_| cannot("is no text"))?;
    if text.trim().is_empty() {
        return Err(cannot("is empty"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn view(id: u8, folder: &str) -> ConversationView {
        ConversationView {
            agent: Agent::Claude,
            id: format!("0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a{id:02}").parse().unwrap(),
            folder: folder.to_owned(),
            changed_at: 0,
            bytes: 1,
            title: Some("fix\u{1b}[2J it".into()),
        }
    }

    #[test]
    fn an_id_means_one_conversation_of_the_folder() {
        let found = || vec![view(1, "/p"), view(2, "/q")];
        assert_eq!(the_one(found(), "0f", "/p").unwrap(), view(1, "/p"));
        let elsewhere = the_one(found(), "0f", "/x").unwrap_err();
        assert!(elsewhere.error.contains("/p"), "{}", elsewhere.error);
        let several = the_one(vec![view(1, "/p"), view(2, "/p")], "0f", "/p").unwrap_err();
        assert!(several.error.contains("8a01") && several.error.contains("8a02"));
        assert!(!several.error.contains('\u{1b}'));
        let none = the_one(vec![], "0f", "/p").unwrap_err();
        assert!(begin(view(1, "/p"), None).is_ok());
        let long = ConversationView { bytes: MOST_BYTES + 1, ..view(1, "/p") };
        let long = begin(long, None).unwrap_err();
        for error in [elsewhere, several, none, long] {
            assert_eq!(error.kind, Kind::Usage);
            assert!(!error.hints.is_empty());
        }
    }

    #[test]
    fn a_plan_is_a_text_for_claude() {
        let dir = tempfile::tempdir().unwrap();
        let file = |text: &[u8]| {
            let path = dir.path().join("plan.md");
            std::fs::write(&path, text).unwrap();
            path
        };
        assert_eq!(plan(Agent::Claude, &file(b"1. go")).unwrap(), "1. go");
        assert!(plan(Agent::Codex, &file(b"1. go")).is_err());
        for bad in [&b" \n"[..], b"\xff\xfe", &vec![b'a'; MOST_PLAN + 1]] {
            assert_eq!(plan(Agent::Claude, &file(bad)).unwrap_err().kind, Kind::Usage);
        }
        assert!(plan(Agent::Claude, &dir.path().join("none")).is_err());
    }
}
