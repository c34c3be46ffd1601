//! The person's own settings of an agent, on their way to a box.
//!
//! Only what is listed goes: skills, commands, instructions and settings. Logins, histories and what
//! belongs to other projects stay. What would run a program of this computer is taken out, because the
//! box has no such program. Links are followed as far as they stay in the agents' own folders.

mod claude;
mod codex;
mod filter;
mod opencode;
mod tree;

pub(crate) use claude::encoded;

use crate::core::Core;
use crate::engine::control_error;
use boxes::{Boxes, Record};
use protocol::control::{ControlError, ErrorCode};
use protocol::ctl::BOX_USER;
use protocol::sessions::Agent;
use std::io::{self, Seek};
use std::path::Path;

/// Where the box merges from; below the box user's home.
pub const INCOMING: &str = protocol::ctl::INCOMING;

/// A file for the box user's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Relative, with `/`.
    pub to: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

impl Item {
    fn text(to: &str, text: String) -> Self {
        Self { to: to.to_owned(), bytes: text.into_bytes(), executable: false }
    }
}

/// What a box gets of an agent's settings.
pub fn items(agent: Agent, home: &Path, workspace: &Path) -> Vec<Item> {
    match agent {
        Agent::Claude => claude::items(home, workspace),
        Agent::Codex => codex::items(home),
        Agent::Opencode => opencode::items(home),
    }
}

fn archive(items: &[Item]) -> io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    let mut tar = tar::Builder::new(&mut file);
    for item in items {
        let mut header = tar::Header::new_gnu();
        header.set_mode(if item.executable { 0o755 } else { 0o644 });
        header.set_size(item.bytes.len() as u64);
        tar.append_data(&mut header, &item.to, item.bytes.as_slice())?;
    }
    tar.finish()?;
    drop(tar);
    file.rewind()?;
    Ok(file)
}

impl Core {
    /// Brings the person's settings of an agent to a running box. The box's own stay where the person
    /// has none.
    pub(crate) async fn sync_agent(
        &self,
        boxes: &Boxes,
        record: &Record,
        agent: Agent,
    ) -> Result<(), ControlError> {
        let Some(home) = std::env::home_dir() else { return Ok(()) };
        let workspace = record.workspace.clone();
        let packed = tokio::task::spawn_blocking(move || {
            let items = items(agent, &home, &workspace);
            if items.is_empty() { Ok(None) } else { archive(&items).map(Some) }
        });
        let failed = |why: String| {
            let text = format!("your settings of {} cannot be packed: {why}", agent.title());
            ControlError::new(ErrorCode::Failed, text)
                .hint("start it with --no-sync-config to go without them.")
        };
        let packed = packed.await.map_err(|e| failed(e.to_string()))?;
        let Some(tar) = packed.map_err(|e| failed(e.to_string()))? else { return Ok(()) };
        boxes.unpack(record, tar, &format!("/home/{BOX_USER}/")).await.map_err(control_error)?;
        boxes.take_agent_config(record, agent).await.map_err(control_error)
    }
}
