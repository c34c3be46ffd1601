//! What agents were at, for when the box comes up again.
//!
//! Two notes for each session, in the box user's state folder: that it runs, which goes when its agent
//! ends by itself or is ended, and which conversation it is at, by the agent's own hooks. A box that goes
//! down takes the agents with it and leaves both. The host asks for them with `session before` and
//! believes nothing of them but their shape.

use crate::error::{Doing, Result};
use protocol::conversations::ConversationId;
use protocol::ctl::SessionBefore;
use protocol::sessions::{Agent, is_session_name};
use serde::Deserialize;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

const STATE: &str = ".local/state/agentbox";
const RUNNING: &str = "running";
/// More agents than a box runs.
const MOST: usize = 16;
/// Of one folder.
const MOST_FILES: usize = 10_000;

fn state() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(STATE))
}

/// The agent of a session begins to run.
pub fn began(agent: Agent, session: &str, at: Option<&ConversationId>) {
    if let Some(state) = state() {
        began_in(&state, agent, session, at);
    }
}

fn began_in(state: &Path, agent: Agent, session: &str, at: Option<&ConversationId>) {
    let _ = note(&state.join(RUNNING).join(session), agent.as_str());
    let pointer = pointer(state, agent, session);
    let _ = match at {
        Some(id) => note(&pointer, id.as_str()),
        // What an earlier one of that name was at is not what this one is at.
        None => fs::remove_file(&pointer).doing(|| format!("remove {}", pointer.display())),
    };
}

/// It ended, and not with the box.
pub fn ended(session: &str) {
    if let Some(state) = state() {
        let _ = fs::remove_file(state.join(RUNNING).join(session));
    }
}

/// Forgets everything: the notes are another box's.
pub fn forget() {
    if let Some(state) = state() {
        let _ = fs::remove_dir_all(state.join(RUNNING));
    }
}

/// Where a session's conversation is noted; that of the usual session has the plain name.
fn pointer(state: &Path, agent: Agent, session: &str) -> PathBuf {
    let plain = match agent {
        Agent::Claude => "claude-session",
        Agent::Codex => "codex-active",
        Agent::Opencode => "opencode-session",
    };
    if session == agent.as_str() {
        return state.join(plain);
    }
    state.join(format!("{plain}.{session}"))
}

fn note(path: &Path, text: &str) -> Result<()> {
    let doing = || format!("write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&fresh, text).doing(doing)?;
    fs::rename(&fresh, path).doing(doing)
}

/// What an agent tells its hooks.
#[derive(Deserialize)]
struct Hook {
    session_id: ConversationId,
}

/// Notes the conversation an agent's hook speaks of, as its input says.
pub fn from_hook(agent: Agent, input: &[u8]) {
    let session = std::env::var("AGENTBOX_SESSION").unwrap_or_else(|_| agent.as_str().to_owned());
    let (Some(state), true) = (state(), is_session_name(&session)) else { return };
    if let Ok(hook) = serde_json::from_slice::<Hook>(input) {
        let _ = note(&pointer(&state, agent, &session), hook.session_id.as_str());
    }
}

/// What ran when the box went down, without those that `runs` now.
pub fn before(runs: impl Fn(&str) -> bool) -> Vec<SessionBefore> {
    let Some(home) = std::env::home_dir() else { return Vec::new() };
    let mut all = before_in(&home);
    all.retain(|one| !runs(&one.name));
    all
}

fn before_in(home: &Path) -> Vec<SessionBefore> {
    let state = home.join(STATE);
    let entries = fs::read_dir(state.join(RUNNING)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_session_name(name))
        .collect();
    names.sort();
    names.truncate(MOST);
    let one = |name: String| {
        let agent = Agent::named(short(&state.join(RUNNING).join(&name))?.trim())?;
        let noted = short(&pointer(&state, agent, &name));
        let noted: Option<ConversationId> = noted.and_then(|text| text.trim().parse().ok());
        let conversation = noted.filter(|id| is_kept(home, agent, id));
        Some(SessionBefore { name, agent, conversation })
    };
    names.into_iter().filter_map(one).collect()
}

/// An agent writes a conversation down with its first prompt, and knows none before that.
fn is_kept(home: &Path, agent: Agent, id: &ConversationId) -> bool {
    match agent {
        Agent::Claude => {
            home.join(".claude/projects/-workspace").join(format!("{id}.jsonl")).is_file()
        }
        Agent::Codex => {
            let end = format!("-{id}.jsonl");
            let below = |folder: &PathBuf| {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries.map(|entry| entry.path()).take(MOST_FILES).collect::<Vec<_>>()
            };
            let days =
                below(&home.join(".codex/sessions")).iter().flat_map(below).collect::<Vec<_>>();
            let mut files = days.iter().flat_map(below).flat_map(|day| below(&day));
            files.any(|path| path.to_string_lossy().ends_with(&end))
        }
        Agent::Opencode => false,
    }
}

/// The beginning of a file, as much as a note has.
fn short(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(64).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11";

    #[test]
    fn only_notes_that_make_sense_are_told() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| note(&home.path().join(name), text).unwrap();
        let state = |name: &str| format!("{STATE}/{name}");
        write(&state("running/claude"), "claude");
        write(&state("claude-session"), ID);
        write(&state("running/codex"), "codex\n");
        write(&state("codex-active"), "--yolo");
        write(&state("running/other"), "codex");
        write(&state("codex-active.other"), ID);
        write(&state("running/second"), "claude");
        write(&state("claude-session.second"), ID);
        write(&state("running/a.b"), "claude");
        write(&state("running/odd"), "rm -rf");
        let told = || {
            let all = before_in(home.path()).into_iter();
            all.map(|b| (b.name, b.conversation.is_some())).collect::<Vec<_>>()
        };
        let wanted = |kept: bool| {
            [("claude", kept), ("codex", false), ("other", kept), ("second", kept)]
                .map(|(name, kept)| (name.to_owned(), kept))
                .to_vec()
        };
        assert_eq!(told(), wanted(false));
        write(&format!(".claude/projects/-workspace/{ID}.jsonl"), "{}\n");
        write(&format!(".codex/sessions/2026/01/02/rollout-2026-{ID}.jsonl"), "{}\n");
        assert_eq!(told(), wanted(true));
    }

    /// A box can go down before an agent that goes on has said with what.
    #[test]
    fn what_a_session_goes_on_with_is_noted_before_its_agent_says_so() {
        let home = tempfile::tempdir().unwrap();
        let id: ConversationId = ID.parse().unwrap();
        note(&home.path().join(format!(".claude/projects/-workspace/{ID}.jsonl")), "{}").unwrap();
        let told = |at: Option<&ConversationId>| {
            began_in(&home.path().join(STATE), Agent::Claude, "claude", at);
            before_in(home.path()).remove(0).conversation
        };
        assert_eq!(told(Some(&id)), Some(id.clone()));
        assert_eq!(told(None), None);
    }

    #[test]
    fn there_may_be_no_notes() {
        let home = tempfile::tempdir().unwrap();
        assert!(before_in(home.path()).is_empty());
    }
}
