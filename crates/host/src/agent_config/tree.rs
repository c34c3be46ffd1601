//! Files of a folder, bounded, with links followed only where they stay.

use super::Item;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// More than settings weigh.
const MOST_BYTES: usize = 32 * 1024 * 1024;
const MOST_FILES: usize = 5000;
const DEEPEST: usize = 16;
/// What other systems' programs and tools leave behind, and logins.
const LEFT_OUT: [&str; 6] =
    ["node_modules", ".git", ".credentials.json", "auth.json", ".DS_Store", "__pycache__"];

/// Collects files below folders of the person.
pub struct Tree {
    /// Links may lead into these and nowhere else.
    roots: Vec<PathBuf>,
    items: Vec<Item>,
    bytes: usize,
}

impl Tree {
    pub fn new(roots: &[PathBuf]) -> Self {
        let roots = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        Self { roots, items: Vec::new(), bytes: 0 }
    }

    /// A file or a folder with all below it, under another name.
    pub fn add(&mut self, from: &Path, to: &str) {
        self.walk(from, to, 0);
    }

    pub fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    pub fn items(self) -> Vec<Item> {
        self.items
    }

    fn walk(&mut self, from: &Path, to: &str, depth: usize) {
        // Where it really is decides: a link out of the agents' folders is not followed.
        let Ok(real) = from.canonicalize() else { return };
        if depth > DEEPEST || !self.roots.iter().any(|root| real.starts_with(root)) {
            return;
        }
        let Ok(meta) = fs::metadata(&real) else { return };
        if meta.is_dir() {
            let mut names: Vec<_> = match fs::read_dir(&real) {
                Ok(entries) => entries.flatten().map(|e| e.file_name()).collect(),
                Err(_) => return,
            };
            names.sort();
            for name in names {
                let Some(name) = name.to_str().filter(|name| !LEFT_OUT.contains(name)) else {
                    continue;
                };
                self.walk(&real.join(name), &format!("{to}/{name}"), depth + 1);
            }
        } else if meta.is_file() {
            self.file(&real, &meta, to);
        }
    }

    fn file(&mut self, real: &Path, meta: &fs::Metadata, to: &str) {
        let size = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        if self.items.len() >= MOST_FILES || self.bytes.saturating_add(size) > MOST_BYTES {
            tracing::warn!("{} does not go to the box: there is too much", real.display());
            return;
        }
        let Ok(bytes) = fs::read(real) else { return };
        self.bytes += bytes.len();
        let executable = meta.permissions().mode() & 0o100 != 0;
        self.items.push(Item { to: to.to_owned(), bytes, executable });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_where_they_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (own, shared) = (dir.path().join("claude"), dir.path().join("agents"));
        for folder in
            [&own.join("skills"), &shared.join("review"), &own.join("skills/node_modules")]
        {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(shared.join("review/SKILL.md"), "r").unwrap();
        fs::write(own.join("skills/node_modules/x.js"), "x").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        symlink("../../agents/review", own.join("skills/review")).unwrap();
        symlink("../../secret", own.join("skills/leak")).unwrap();
        symlink("nowhere", own.join("skills/broken")).unwrap();
        symlink(".", own.join("skills/round")).unwrap();
        let mut tree = Tree::new(&[own.clone(), shared]);
        tree.add(&own.join("skills"), ".claude/skills");
        let names: Vec<String> = tree.items().into_iter().map(|item| item.to).collect();
        assert!(names.contains(&".claude/skills/review/SKILL.md".to_owned()), "{names:?}");
        assert!(names.iter().all(|n| n.ends_with("review/SKILL.md")), "{names:?}");
    }
}
