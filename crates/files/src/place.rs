//! Where on the host something is written: into a folder, or under a name.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// A destination on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder everything is written below. What of it is there already is its real path.
    pub folder: PathBuf,
    /// What the one source is called there, when not by its own name.
    pub renamed: Option<OsString>,
}

impl Place {
    /// `dest` as it was written, `tops` with whether each is a folder.
    pub fn find(dest: &Path, is_folder: bool, tops: &[(&str, bool)]) -> Result<Self, NoPlace> {
        let (there, missing) = real_part(dest);
        let is_dir = there.is_dir();
        let exists = missing.as_os_str().is_empty();
        if (exists && is_dir) || is_folder {
            if !is_dir {
                return Err(NoPlace::NoFolder(there));
            }
            return Ok(Self { folder: below(there, &missing), renamed: None });
        }
        let [(_, folder)] = tops else { return Err(NoPlace::Several(dest.to_owned())) };
        if exists && *folder {
            return Err(NoPlace::AFile(there));
        }
        let full = below(there, &missing);
        match (full.parent(), full.file_name()) {
            (Some(parent), Some(name)) => {
                Ok(Self { folder: parent.to_owned(), renamed: Some(name.to_owned()) })
            }
            _ => Err(NoPlace::NoName(full)),
        }
    }

    /// Where an entry of the archive is written.
    pub fn path_of(&self, entry: &Path) -> PathBuf {
        let Some(name) = &self.renamed else { return self.folder.join(entry) };
        let mut rest = entry.components();
        rest.next();
        let full = self.folder.join(name);
        if rest.as_path().as_os_str().is_empty() { full } else { full.join(rest.as_path()) }
    }

    /// The whole of it.
    pub fn path(&self) -> PathBuf {
        self.renamed.as_ref().map_or_else(|| self.folder.clone(), |name| self.folder.join(name))
    }

    /// The whole of it, for people.
    pub fn shown(&self) -> String {
        shown(&self.path())
    }
}

/// Why nothing can be written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlace {
    NoFolder(PathBuf),
    Several(PathBuf),
    AFile(PathBuf),
    NoName(PathBuf),
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPlace::NoFolder(path) => write!(f, "{} is no folder.", shown(path)),
            NoPlace::Several(path) => write!(
                f,
                "{} is not there; several sources go into a folder, so end it with '/'.",
                shown(path)
            ),
            NoPlace::AFile(path) => write!(f, "{} is a file, the source a folder.", shown(path)),
            NoPlace::NoName(path) => write!(f, "{} names no file.", shown(path)),
        }
    }
}

impl std::error::Error for NoPlace {}

/// A path for people: nothing in it moves a cursor.
pub(crate) fn shown(path: &Path) -> String {
    protocol::text::visible(&path.to_string_lossy())
}

fn below(there: PathBuf, missing: &Path) -> PathBuf {
    if missing.as_os_str().is_empty() { there } else { there.join(missing) }
}

/// The real path of as much of it as is there, and the rest.
fn real_part(path: &Path) -> (PathBuf, PathBuf) {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        match (at.canonicalize(), at.parent(), at.file_name()) {
            (Ok(real), _, _) => return (real, rest.iter().rev().collect()),
            (Err(_), Some(parent), Some(name)) => {
                rest.push(name);
                at = parent;
            }
            _ => return (at.to_owned(), rest.iter().rev().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_folder_or_a_name() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("there")).unwrap();
        std::fs::write(dir.join("file"), "").unwrap();
        std::os::unix::fs::symlink("there", dir.join("link")).unwrap();
        let find = |dest: &str, is_folder, tops: &[(&str, bool)]| {
            Place::find(&dir.join(dest), is_folder, tops)
        };
        let one = &[("a", false)][..];
        let at = |dest: &str, is_folder, entry: &str| {
            find(dest, is_folder, one)
                .unwrap()
                .path_of(Path::new(entry))
                .strip_prefix(&dir)
                .unwrap()
                .to_owned()
        };
        assert_eq!(at("there", false, "a"), Path::new("there/a"));
        assert_eq!(at("link", false, "a"), Path::new("there/a"));
        assert_eq!(at("new", false, "a"), Path::new("new"));
        assert_eq!(at("new", false, "a/b/c"), Path::new("new/b/c"));
        assert_eq!(at("new", true, "a"), Path::new("new/a"));
        assert_eq!(at("x/y/new", false, "a"), Path::new("x/y/new"));
        assert_eq!(at("link/new", false, "a"), Path::new("there/new"));
        assert_eq!(at("file", false, "a"), Path::new("file"));
        let refused = |found: Result<Place, NoPlace>| found.unwrap_err();
        assert!(matches!(refused(find("file", true, one)), NoPlace::NoFolder(_)));
        assert!(matches!(refused(find("file", false, &[("a", true)])), NoPlace::AFile(_)));
        let two = [("a", false), ("b", false)];
        assert!(matches!(refused(find("new", false, &two)), NoPlace::Several(_)));
    }
}
