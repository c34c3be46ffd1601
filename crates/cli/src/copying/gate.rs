//! The limit of one upload, and what to do about what is too large.
//!
//! Nobody means to send a gigabyte of build output into a box. Who does says so.

use super::shown;
use super::walk::{Source, Walk};
use crate::error::CommandError;
use protocol::text::{quoted, size};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How deep folders are shown, how large one must be, and how many of one.
const DEPTH: usize = 3;
const WORTH_SHOWING: u64 = 10 * 1024 * 1024;
const SIBLINGS: usize = 8;
const SUGGESTIONS: usize = 3;

/// What a source weighs.
#[derive(Debug, Default)]
pub struct Weight {
    pub bytes: u64,
    pub files: usize,
    /// By folder below the source, as deep as they are shown.
    folders: BTreeMap<PathBuf, u64>,
    is_folder: bool,
}

pub fn weigh(walk: &mut Walk, source: &Source) -> Result<Weight, CommandError> {
    let mut weight = Weight::default();
    walk.each(source, |item| {
        if item.below.as_os_str().is_empty() {
            weight.is_folder = item.data.is_dir();
        }
        if item.data.is_file() {
            let bytes = item.data.len();
            weight.bytes += bytes;
            weight.files += 1;
            let above: Vec<&Path> = item.below.ancestors().skip(1).collect();
            let above = above.iter().rev().skip(1).take(DEPTH);
            for folder in above {
                *weight.folders.entry((*folder).to_owned()).or_default() += bytes;
            }
        }
        Ok(())
    })?;
    Ok(weight)
}

/// Refuses a source that is larger than the limit.
pub fn check(source: &Source, weight: &Weight, limit: u64, dest: &str) -> Result<(), CommandError> {
    if weight.bytes <= limit {
        return Ok(());
    }
    let name = shown(&source.typed);
    let mut text = format!(
        "{name} is {}, more than {} (box.cpMaxBytes) for one copy",
        size(weight.bytes),
        size(limit)
    );
    if !weight.is_folder {
        return Err(CommandError::failed(text).hint("--yes copies it all the same"));
    }
    text.push_str(&weight.tree());
    let mut error = CommandError::failed(text);
    let heaviest = weight.children(Path::new(""));
    // Where a part of it would have landed.
    let inner = match dest.strip_suffix('/') {
        Some(folder) => format!("{folder}/{}/", shown(Path::new(&source.name))),
        None => format!("{dest}/"),
    };
    for (folder, bytes) in heaviest.iter().take(SUGGESTIONS) {
        let part = quoted(&shown(&source.typed.join(folder)));
        let command = format!("agentbox cp {part} {}", quoted(&inner));
        error = error.hint(format!("copy a part ({}): {command}", size(*bytes)));
    }
    if let Some((folder, _)) = heaviest.first() {
        error = error.hint(format!("leave a folder out: --exclude {}", quoted(&shown(folder))));
    }
    Err(error.hint("--yes copies it all the same"))
}

impl Weight {
    fn tree(&self) -> String {
        let mut text = String::new();
        self.branch(Path::new(""), 1, &mut text);
        text
    }

    fn branch(&self, of: &Path, depth: usize, text: &mut String) {
        let children = self.children(of);
        let large = children.iter().filter(|(_, bytes)| *bytes >= WORTH_SHOWING);
        for (folder, bytes) in large.take(SIBLINGS) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = protocol::text::visible(&name);
            text.push_str(&format!("\n{:>12}{}  {name}/", size(*bytes), "  ".repeat(depth - 1)));
            if depth < DEPTH {
                self.branch(folder, depth + 1, text);
            }
        }
    }

    /// Heaviest first.
    fn children(&self, of: &Path) -> Vec<(&Path, u64)> {
        let is_child = |folder: &&PathBuf| folder.parent() == Some(of);
        let mut all: Vec<(&Path, u64)> = self
            .folders
            .iter()
            .filter(|(f, _)| is_child(f))
            .map(|(f, b)| (f.as_path(), *b))
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source { typed: "./dir".into(), real: "/p/dir".into(), name: "dir".into() }
    }

    #[test]
    fn a_large_folder_is_shown_by_its_heaviest_parts() {
        let mb = 1024 * 1024;
        let folders = [
            ("data", 90),
            ("data/raw", 80),
            ("data/raw/2024", 70),
            ("data/small", 5),
            ("media", 50),
            ("src", 1),
        ];
        let weight = Weight {
            bytes: 150 * mb,
            files: 9,
            folders: folders.iter().map(|(f, n)| (PathBuf::from(f), n * mb)).collect(),
            is_folder: true,
        };
        assert!(check(&source(), &weight, 200 * mb, "fix:/workspace/").is_ok());
        let error = check(&source(), &weight, 100 * mb, "fix:/workspace/").unwrap_err();
        insta::assert_snapshot!(format!("{}\n{}", error.error, error.hints.join("\n")));
    }

    #[test]
    fn a_large_file_can_only_be_insisted_on() {
        let weight = Weight { bytes: 200, files: 1, ..Weight::default() };
        let error = check(&source(), &weight, 100, "fix:/x").unwrap_err();
        assert_eq!(error.hints, ["--yes copies it all the same"]);
    }
}
