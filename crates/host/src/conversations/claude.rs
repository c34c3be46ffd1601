//! Claude Code's conversations: `~/.claude/projects/<folder>/<id>.jsonl`.
//!
//! The name of the folder is the project's with everything but letters and digits as `-`, so two
//! projects can share one: what stands in a conversation decides whose it is.

use super::{Found, Wanted, newest_first};
use crate::agent_config::encoded;
use protocol::conversations::ConversationId;
use protocol::sessions::Agent;
use serde::Deserialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// How far in a conversation its folder and first words are looked for.
const HEAD: u64 = 1024 * 1024;
/// Claude cuts longer names and ends them with something of its own.
const LONGEST_NAME: usize = 200;
/// More projects and conversations than anybody has.
const MOST: usize = 20_000;

pub fn find(home: &Path, wanted: &Wanted<'_>) -> Vec<Found> {
    let projects = home.join(".claude/projects");
    let name = encoded(Path::new(wanted.folder));
    let folders: Vec<PathBuf> = match wanted.id {
        None if name.len() <= LONGEST_NAME => vec![projects.join(name)],
        None => below(&projects).filter(|path| is_cut(path, &name)).collect(),
        Some(_) => below(&projects).collect(),
    };
    let files = folders.iter().flat_map(|folder| below(folder)).take(MOST);
    let files = files.filter_map(|path| {
        let id: ConversationId =
            path.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
        wanted.may_be(&id).then_some((path, id))
    });
    newest_first(files, wanted, |path| {
        let Head { folder, title } = head(File::open(path).ok()?)?;
        Some((Agent::Claude, folder, title))
    })
}

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).take(MOST)
}

fn is_cut(path: &Path, name: &str) -> bool {
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    own.strip_prefix(&name[..LONGEST_NAME]).is_some_and(|rest| rest.starts_with('-'))
}

struct Head {
    folder: String,
    title: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type", default)]
    kind: String,
    cwd: Option<String>,
    message: Option<Message>,
    #[serde(rename = "isMeta", default)]
    meta: bool,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Value>,
}

/// None: there is no word in it yet.
fn head(file: impl Read) -> Option<Head> {
    let (mut folder, mut title) = (None, None);
    for line in BufReader::new(file.take(HEAD)).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(&line.ok()?) else { continue };
        folder = folder.or(line.cwd);
        if line.kind == "user" && !line.meta && title.is_none() {
            let content = line.message.and_then(|message| message.content);
            title = content.and_then(|content| content.as_str().map(str::to_owned));
        }
        if folder.is_some() && title.is_some() {
            break;
        }
    }
    Some(Head { folder: folder?, title })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_tells_the_folder_and_the_first_words() {
        let text = "{\"type\":\"queue-operation\"}\nbroken\n\
            {\"type\":\"user\",\"isMeta\":true,\"cwd\":\"/p\",\"message\":{\"content\":\"meta\"}}\n\
            {\"type\":\"user\",\"cwd\":\"/q\",\"message\":{\"content\":[{\"type\":\"text\"}]}}\n\
            {\"type\":\"user\",\"cwd\":\"/q\",\"message\":{\"content\":\"fix it\"}}\n";
        let head = head(text.as_bytes()).unwrap();
        assert_eq!((head.folder.as_str(), head.title.as_deref()), ("/p", Some("fix it")));
        assert!(super::head(&b"{\"type\":\"summary\"}\n"[..]).is_none());
        assert!(super::head(&b"\xff\0"[..]).is_none());
    }

    #[test]
    fn a_cut_name_is_known_by_its_beginning() {
        let name = "-a".repeat(150);
        let cut = format!("/x/{}-1k2j3", &name[..LONGEST_NAME]);
        assert!(is_cut(Path::new(&cut), &name));
        assert!(!is_cut(Path::new("/x/-a-a"), &name));
    }
}
