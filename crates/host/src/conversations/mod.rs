//! Conversations people had with agents on this computer, and their way into a box.
//!
//! They are looked for in the agents' own folders of the person who runs the host. A copy goes to the
//! box, with the project's folder named as it is there; what is on this computer is only read.

mod claude;
mod codex;
mod relaunch;
mod rewrite;

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use boxes::{Boxes, Record};
use protocol::Millis;
use protocol::control::{ControlError, ErrorCode};
use protocol::conversations::{
    Begin, ConversationId, ConversationView, FindConversations, MOST_BYTES, MOST_PLAN, MOST_SHOWN,
};
use protocol::ctl::{BOX_USER, INCOMING_CONVERSATION, PLAN};
use protocol::sessions::Agent;
use protocol::text::visible;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

type Reply<T> = Result<T, ControlError>;

/// How much of a conversation's first words is shown.
const TITLE: usize = 80;
/// How many files are opened to find those of one folder.
const MOST_READ: usize = 2000;

/// Which conversations are looked for.
pub struct Wanted<'a> {
    pub folder: &'a str,
    /// How the id begins; these are found wherever they were held.
    pub id: Option<&'a str>,
}

impl Wanted<'_> {
    fn may_be(&self, id: &ConversationId) -> bool {
        self.id.is_none_or(|wanted| id.as_str().starts_with(wanted))
    }
}

/// A conversation and where it lies.
pub struct Found {
    pub view: ConversationView,
    pub path: PathBuf,
}

/// Orders files by when they were last written and reads them until there are enough.
fn newest_first(
    files: impl Iterator<Item = (PathBuf, ConversationId)>,
    wanted: &Wanted<'_>,
    read: impl Fn(&Path) -> Option<(Agent, String, Option<String>)>,
) -> Vec<Found> {
    let dated = files.filter_map(|(path, id)| {
        let data = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let since = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let changed_at = Millis::try_from(since.as_millis()).ok()?;
        Some((changed_at, data.len(), path, id))
    });
    let mut all: Vec<_> = dated.collect();
    all.sort_by(|a, b| (b.0, &b.3).cmp(&(a.0, &a.3)));
    let found = all.into_iter().take(MOST_READ).filter_map(|(changed_at, bytes, path, id)| {
        let (agent, folder, title) = read(&path)?;
        let title = title.map(|text| visible(&text.chars().take(TITLE).collect::<String>()));
        let view = ConversationView { agent, id, folder, changed_at, bytes, title };
        let here = wanted.id.is_some() || view.folder == wanted.folder;
        here.then_some(Found { view, path })
    });
    found.take(MOST_SHOWN).collect()
}

fn find(agent: Agent, home: &Path, wanted: &Wanted<'_>) -> Vec<Found> {
    match agent {
        Agent::Claude => claude::find(home, wanted),
        Agent::Codex => codex::find(home, wanted),
        Agent::Opencode => Vec::new(),
    }
}

impl Api {
    /// Conversations on this computer, newest first.
    pub async fn conversations(&self, query: FindConversations) -> Reply<Vec<ConversationView>> {
        if query.agent == Some(Agent::Opencode) {
            return Err(not_opencode());
        }
        let Some(home) = std::env::home_dir() else { return Ok(Vec::new()) };
        let looked = tokio::task::spawn_blocking(move || {
            let agents = query.agent.map_or_else(|| Agent::ALL.to_vec(), |agent| vec![agent]);
            let wanted = Wanted { folder: &query.folder, id: query.id.as_deref() };
            let found = agents.into_iter().flat_map(|agent| find(agent, &home, &wanted));
            let mut views: Vec<ConversationView> = found.map(|found| found.view).collect();
            views.sort_by_key(|view| std::cmp::Reverse(view.changed_at));
            views.truncate(MOST_SHOWN);
            views
        });
        looked.await.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))
    }
}

fn not_opencode() -> ControlError {
    let text = "OpenCode's conversations cannot be moved to a box";
    ControlError::new(ErrorCode::Usage, text)
        .hint("conversations of Claude and Codex can; start OpenCode afresh.")
}

impl Core {
    /// Brings what a session is to begin with to the box.
    pub(crate) async fn opening(
        &self,
        boxes: &Boxes,
        record: &Record,
        agent: Agent,
        session: &str,
        begin: Begin,
    ) -> Reply<Opening> {
        match begin {
            Begin::Nothing => Ok(Opening::default()),
            Begin::Plan { text } => self.bring_plan(boxes, record, agent, &text).await,
            Begin::Conversation { id, folder, plan } => {
                self.move_in(boxes, record, agent, &id, folder).await?;
                let mut opening = Opening::going_on(agent, id);
                if let Some(text) = plan {
                    let with = self.bring_plan(boxes, record, agent, &text).await?;
                    opening.first.extend(with.first);
                    opening.last = with.last;
                }
                Ok(opening)
            }
            Begin::Last => {
                let before = boxes.sessions_before(record).await.map_err(control_error)?;
                let own = before.into_iter().find(|one| one.agent == agent && one.name == session);
                let id = own.and_then(|own| own.conversation);
                Ok(id.map(|id| Opening::going_on(agent, id)).unwrap_or_default())
            }
        }
    }

    async fn bring_plan(
        &self,
        boxes: &Boxes,
        record: &Record,
        agent: Agent,
        text: &str,
    ) -> Reply<Opening> {
        if agent != Agent::Claude || text.len() > MOST_PLAN {
            let text = "a plan is a text of at most 1 MB, and for Claude";
            return Err(ControlError::new(ErrorCode::Usage, text));
        }
        let tar = archive(PLAN, text.as_bytes(), text.len() as u64).map_err(not_packed)?;
        let home = format!("/home/{BOX_USER}/");
        boxes.unpack(record, tar, &home).await.map_err(control_error)?;
        let first = ["--permission-mode", "plan"].map(str::to_owned).to_vec();
        let prompt = format!(
            "The plan for this work is in {home}{PLAN}. Read it, check it against the workspace as it \
             is now, and go on with it."
        );
        Ok(Opening { first, last: vec![prompt], conversation: None })
    }

    async fn move_in(
        &self,
        boxes: &Boxes,
        record: &Record,
        agent: Agent,
        id: &ConversationId,
        folder: String,
    ) -> Reply<()> {
        let Some(home) = std::env::home_dir() else { return Err(gone(id)) };
        let own = id.clone();
        let packed = tokio::task::spawn_blocking(move || {
            let wanted = Wanted { folder: &folder, id: Some(own.as_str()) };
            let found = find(agent, &home, &wanted);
            let found = found.into_iter().find(|found| found.view.folder == folder);
            found.map(|found| pack(&home, &found))
        });
        let packed =
            packed.await.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?;
        let tar = packed.ok_or_else(|| gone(id))?.map_err(not_packed)?;
        boxes.bring_conversation(record, tar).await.map_err(control_error)
    }
}

/// What a session begins with.
#[derive(Default)]
pub(crate) struct Opening {
    /// Words that go before those of the person.
    pub first: Vec<String>,
    /// And those that go after.
    pub last: Vec<String>,
    pub conversation: Option<ConversationId>,
}

impl Opening {
    fn going_on(agent: Agent, id: ConversationId) -> Opening {
        Opening { first: resume(agent, &id), last: Vec::new(), conversation: Some(id) }
    }
}

/// How an agent is told to go on with a conversation.
fn resume(agent: Agent, id: &ConversationId) -> Vec<String> {
    match agent {
        Agent::Claude => vec!["--resume".to_owned(), id.to_string()],
        Agent::Codex => vec!["resume".to_owned(), id.to_string()],
        Agent::Opencode => Vec::new(),
    }
}

fn gone(id: &ConversationId) -> ControlError {
    ControlError::new(ErrorCode::Usage, format!("the conversation {id} is not there any more"))
}

fn not_packed(error: io::Error) -> ControlError {
    let text = format!("the conversation cannot be taken along: {error}");
    ControlError::new(ErrorCode::Failed, text).hint("start the agent without it.")
}

/// The conversation as it is to be in the box, as an archive.
fn pack(home: &Path, found: &Found) -> io::Result<File> {
    let ConversationView { agent, id, folder, bytes, .. } = &found.view;
    if *bytes > MOST_BYTES {
        return Err(io::Error::other("it is too long"));
    }
    let to = match agent {
        Agent::Claude => format!(".claude/projects/-workspace/{id}.jsonl"),
        // Found below there, by its date.
        _ => found.path.strip_prefix(home).unwrap_or(&found.path).to_string_lossy().into_owned(),
    };
    let mut copy = tempfile::tempfile()?;
    let from = BufReader::new(File::open(&found.path)?);
    let out = BufWriter::new(&mut copy);
    match agent {
        Agent::Claude => rewrite::rewrite(from, out, |line| rewrite::claude(line, folder))?,
        _ => rewrite::rewrite(from, out, |line| rewrite::codex(line, folder))?,
    }
    let size = copy.stream_position()?;
    copy.rewind()?;
    archive(&format!("{INCOMING_CONVERSATION}/{to}"), copy, size)
}

/// One file, for the box user alone.
fn archive(name: &str, from: impl io::Read, size: u64) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let mut tar = tar::Builder::new(BufWriter::new(&mut file));
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    header.set_size(size);
    tar.append_data(&mut header, name, from)?;
    tar.into_inner()?.flush()?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime};

    const A: &str = "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11";
    const B: &str = "1f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a22";
    const C: &str = "1f3c9999-7b1e-4c55-9d0e-2f6f1f0e8a33";

    fn write(home: &Path, name: &str, text: &str, age: u64) {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    fn line(folder: &str) -> String {
        format!(
            "{{\"type\":\"user\",\"cwd\":\"{folder}\",\"message\":{{\"content\":\"hi\\u001b\"}}}}\n"
        )
    }

    fn ids(found: &[Found]) -> Vec<&str> {
        found.iter().map(|found| found.view.id.as_str()).collect()
    }

    #[test]
    fn claudes_conversations_of_a_folder_are_found_newest_first() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        write(home, &format!(".claude/projects/-p-my-shop/{A}.jsonl"), &line("/p/my-shop"), 90);
        write(home, &format!(".claude/projects/-p-my-shop/{B}.jsonl"), &line("/p/my-shop"), 10);
        // Another folder whose name comes out the same.
        write(home, &format!(".claude/projects/-p-my-shop/{C}.jsonl"), &line("/p/my/shop"), 1);
        write(home, ".claude/projects/-p-my-shop/agent-x.jsonl", &line("/p/my-shop"), 0);
        let found = |folder, id| claude::find(home, &Wanted { folder, id });
        let here = found("/p/my-shop", None);
        assert_eq!(ids(&here), [B, A]);
        assert_eq!(here[0].view.title.as_deref(), Some("hi\\x1b"));
        assert_eq!(ids(&found("/p/my/shop", None)), [C]);
        assert!(found("/p/none", None).is_empty());
        assert_eq!(ids(&found("/elsewhere", Some("1f3c"))), [C, B]);
        assert_eq!(ids(&found("/elsewhere", Some(A))), [A]);
    }

    #[test]
    fn codexs_conversations_are_found_by_their_folder() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let meta = |folder: &str| {
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"cwd\":\"{folder}\"}}}}\n")
        };
        let name =
            |day: &str, id: &str| format!(".codex/sessions/2026/11/{day}/rollout-2026-{id}.jsonl");
        write(home, &name("01", A), &meta("/p"), 5);
        write(home, &name("02", B), &meta("/p"), 50);
        write(home, &name("02", C), &meta("/q"), 1);
        let wanted = Wanted { folder: "/p", id: None };
        let found = codex::find(home, &wanted);
        assert_eq!(ids(&found), [A, B]);
        assert_eq!(ids(&codex::find(home, &Wanted { folder: "/p", id: Some(C) })), [C]);

        let mut tar = tar::Archive::new(pack(home, &found[0]).unwrap());
        let mut entries = tar.entries().unwrap();
        let mut entry = entries.next().unwrap().unwrap();
        let wanted = format!("{INCOMING_CONVERSATION}/{}", name("01", A));
        assert_eq!(entry.path().unwrap().to_str().unwrap(), wanted);
        let mut text = String::new();
        io::Read::read_to_string(&mut entry, &mut text).unwrap();
        assert!(text.contains("\"/workspace\"") && !text.contains("\"/p\""), "{text}");
    }
}
