//! Codex's conversations: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, all
//! projects together. The first line says which folder one was held in.

use super::{Found, Wanted, newest_first};
use protocol::conversations::ConversationId;
use protocol::sessions::Agent;
use serde::Deserialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The first line holds instructions, too.
const HEAD: u64 = 1024 * 1024;
const MOST: usize = 50_000;
const ID: usize = 36;

pub fn find(home: &Path, wanted: &Wanted<'_>) -> Vec<Found> {
    let years = below(&home.join(".codex/sessions"));
    let months = years.iter().flat_map(|year| below(year));
    let days: Vec<PathBuf> = months.flat_map(|month| below(&month)).take(MOST).collect();
    let files = days.iter().flat_map(|day| below(day)).take(MOST).filter_map(|path| {
        let id = id_of(&path)?;
        wanted.may_be(&id).then_some((path, id))
    });
    newest_first(files, wanted, |path| {
        let folder = folder(File::open(path).ok()?)?;
        Some((Agent::Codex, folder, None))
    })
}

fn below(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).take(MOST).collect()
}

fn id_of(path: &Path) -> Option<ConversationId> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(ID)?..)?.parse().ok()
}

/// None for what a person did not begin: an agent's own helper.
fn folder(file: impl Read) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        kind: String,
        payload: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        cwd: String,
        source: Option<Value>,
    }
    let mut line = Vec::new();
    BufReader::new(file.take(HEAD)).read_until(b'\n', &mut line).ok()?;
    let Line { kind, payload } = serde_json::from_slice(&line).ok()?;
    let by_person = !payload.source.is_some_and(|source| source.is_object());
    (kind == "session_meta" && by_person).then_some(payload.cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_at_the_end_of_the_name() {
        let id = "01a1e95c-b020-7ae1-b5f6-810d4a18f898";
        let named = |name: &str| id_of(Path::new(name)).map(|id| id.to_string());
        assert_eq!(named(&format!("/d/rollout-2026-11-17T11-55-28-{id}.jsonl")).unwrap(), id);
        for bad in ["/d/rollout-x.jsonl", "/d/é.jsonl", "/d/rollout-é01a1e95c.jsonl", "/d/x"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_first_line_says_whose_it_is() {
        let said = |text: &str| folder(text.as_bytes());
        let line = r#"{"type":"session_meta","payload":{"cwd":"/p","source":"cli"}}"#;
        assert_eq!(said(line).as_deref(), Some("/p"));
        for none in [
            r#"{"type":"session_meta","payload":{"cwd":"/p","source":{"subagent":"review"}}}"#,
            r#"{"type":"turn_context","payload":{"cwd":"/p"}}"#,
            "{",
            "",
        ] {
            assert_eq!(said(none), None, "{none}");
        }
    }
}
