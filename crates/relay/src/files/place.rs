//! Where on the host something is written, and the writing.
//!
//! What is there now is looked at before the question and bound to it; at the writing it is looked
//! at again, by handle and through no link. A file that has come, gone or changed meanwhile ends
//! the copy: what a person allowed is not what would happen.

use super::archive::{Entry, Staged, What};
use super::folder::{Folder, Kind, Seen, fresh_name, is_detour};
use crate::call::Stop;
use connectors::files::shown;
use protocol::exit;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Folders a copy never reads from or writes to.
#[derive(Debug, Clone)]
pub(super) struct Forbidden(Vec<String>);

impl Forbidden {
    /// The system's own, AgentBox's own, and where keys are kept.
    pub fn new(own: &Path, home: &Path) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let system = ["/proc", "/sys", "/dev", "/run/user", "/run/secrets", "/run/credentials"];
        let keys = [
            ".local/share/keyrings",
            ".local/share/kwalletd",
            ".gnupg/private-keys-v1.d",
            "Library/Keychains",
        ];
        let folders = system.iter().map(PathBuf::from).chain(["/Library/Keychains".into()]);
        let folders = folders.chain(keys.iter().map(|key| home.join(key))).chain([own.to_owned()]);
        Self(folders.flat_map(|f| [folded(&f), folded(&real(f))]).collect())
    }

    /// Some disks do not tell capitals apart, so this does not either.
    pub fn holds(&self, path: &Path) -> bool {
        let path = folded(path);
        self.0.iter().any(|folder| path.starts_with(folder))
    }
}

/// With a slash at its end, so that `/dev` does not begin `/device`.
fn folded(path: &Path) -> String {
    format!("{}/", path.to_string_lossy().to_lowercase().trim_end_matches('/'))
}

/// A destination on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder everything is written below. What of it is there already is its real path.
    pub folder: PathBuf,
    /// What the one source is called there, when not by its own name.
    pub renamed: Option<String>,
}

impl Place {
    /// `dest` as it was written, `tops` with whether each is a folder.
    pub fn find(
        surface: &str,
        dest: &Path,
        is_folder: bool,
        tops: &[(&str, bool)],
    ) -> Result<Self, Stop> {
        let refuse = |code: i32, why: String| Err(Stop::fail(code, format!("{surface}: {why}")));
        let (there, missing) = real_part(dest);
        let is_dir = there.is_dir();
        let exists = missing.as_os_str().is_empty();
        let into = exists && is_dir;
        if into || is_folder {
            if !is_dir {
                return refuse(exit::FAILURE, format!("{} is no folder.", shown(&there)));
            }
            return Ok(Self { folder: below(there, &missing), renamed: None });
        }
        let [(_, folder)] = tops else {
            let why = format!(
                "{} is not there; several sources go into a folder, so end it with '/'.",
                shown(dest)
            );
            return refuse(exit::UNADDRESSABLE, why);
        };
        if exists && *folder {
            return refuse(
                exit::FAILURE,
                format!("{} is a file, the source a folder.", shown(&there)),
            );
        }
        let full = below(there, &missing);
        match (full.parent(), full.file_name().and_then(|n| n.to_str())) {
            (Some(parent), Some(name)) => {
                Ok(Self { folder: parent.to_owned(), renamed: Some(name.to_owned()) })
            }
            _ => refuse(exit::UNADDRESSABLE, format!("{} names no file.", shown(&full))),
        }
    }

    /// Where an entry of the archive is written.
    pub fn path_of(&self, entry: &str) -> PathBuf {
        match (&self.renamed, entry.split_once('/')) {
            (None, _) => self.folder.join(entry),
            (Some(name), None) => self.folder.join(name),
            (Some(name), Some((_, rest))) => self.folder.join(name).join(rest),
        }
    }

    /// The whole of it, for people.
    pub fn shown(&self) -> String {
        let full =
            self.renamed.as_ref().map_or_else(|| self.folder.clone(), |n| self.folder.join(n));
        shown(&full)
    }
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

/// One entry and what it meets on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub entry: Entry,
    pub path: PathBuf,
    /// What was there at the question.
    pub before: Option<Seen>,
}

impl Target {
    pub fn overwrites(&self) -> bool {
        self.before.is_some() && self.entry.what != What::Folder
    }
}

/// Finds out what each entry meets. Nothing is written through a link, over a folder, or into
/// something that is none.
pub(super) fn look(
    surface: &str,
    place: &Place,
    entries: Vec<Entry>,
    forbidden: &Forbidden,
) -> Result<Vec<Target>, Stop> {
    let mut way = Way::default();
    let mut targets = Vec::with_capacity(entries.len());
    for entry in entries {
        let path = place.path_of(&entry.path);
        let fail = |code, why: &str| {
            Err(Stop::fail(code, format!("{surface}: {} {why}; nothing was copied.", shown(&path))))
        };
        if forbidden.holds(&path) {
            return fail(exit::REFUSED, "is where no copy goes");
        }
        let before = match way.look(&path) {
            Ok(before) => before,
            Err(e) if is_detour(&e) => {
                return fail(
                    exit::FAILURE,
                    "lies behind a link or in a file; links are not followed",
                );
            }
            Err(e) => return fail(exit::FAILURE, &format!("cannot be looked at ({e})")),
        };
        let kind = before.as_ref().map(|seen| seen.kind);
        match (&entry.what, kind) {
            (_, None) | (What::Folder, Some(Kind::Folder)) => {}
            (What::Folder, Some(Kind::Link)) => {
                return fail(exit::FAILURE, "is a link; links are not followed");
            }
            (What::Folder, Some(_)) => return fail(exit::FAILURE, "is no folder"),
            (_, Some(Kind::File | Kind::Link)) => {}
            (_, Some(Kind::Folder)) => return fail(exit::FAILURE, "is a folder"),
            (_, Some(Kind::Other)) => return fail(exit::FAILURE, "is no plain file"),
        }
        // A folder that is there stays as it is, whatever happens in it.
        let before = before.filter(|seen| seen.kind != Kind::Folder);
        targets.push(Target { entry, path, before });
    }
    Ok(targets)
}

/// The file there has the very bytes the box sent.
pub(super) fn is_same(staged: &Staged, target: &Target) -> bool {
    let same = || -> io::Result<bool> {
        let (Some(parent), Some(name)) = (target.path.parent(), target.path.file_name()) else {
            return Ok(false);
        };
        let folder = || Folder::at(parent);
        match (&target.entry.what, &target.before) {
            (What::File { at, size, .. }, Some(seen)) if seen.kind == Kind::File => {
                if seen.size != *size {
                    return Ok(false);
                }
                let there = folder()?.read(Path::new(name))?;
                equal(there, staged.content(*at, *size))
            }
            (What::Link { target: to }, Some(seen)) if seen.kind == Kind::Link => {
                Ok(folder()?.target(Path::new(name))?.to_str() == Some(to))
            }
            _ => Ok(false),
        }
    };
    same().unwrap_or(false)
}

fn equal(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let n = other.read(&mut b)?;
        if n == 0 {
            return Ok(one.read(&mut a[..1])? == 0);
        }
        match one.read_exact(&mut a[..n]) {
            Ok(()) if a[..n] == b[..n] => {}
            Ok(()) => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
    }
}

/// Why writing ended early.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The host is not as it was at the question.
    Changed(PathBuf),
    /// So many files were written before.
    Failed { written: usize, path: PathBuf, error: io::Error },
}

/// Writes everything. Whether all is as it was is asked of all of it before the first byte, and of
/// each again in the moment it is opened.
pub(super) fn write(staged: &Staged, targets: &[Target]) -> Result<usize, NotWritten> {
    let mut way = Way::default();
    for target in targets {
        let now = way.look(&target.path).map(|now| now.filter(|seen| seen.kind != Kind::Folder));
        if !now.is_ok_and(|now| now == target.before) {
            return Err(NotWritten::Changed(target.path.clone()));
        }
    }
    let mut written = 0;
    for target in targets {
        match write_one(staged, target) {
            Ok(()) => written += usize::from(target.entry.what != What::Folder),
            Err(error) => {
                let path = target.path.clone();
                let changed = is_detour(&error) || error.kind() == io::ErrorKind::AlreadyExists;
                return Err(if changed && written == 0 {
                    NotWritten::Changed(path)
                } else {
                    NotWritten::Failed { written, path, error }
                });
            }
        }
    }
    Ok(written)
}

fn write_one(staged: &Staged, target: &Target) -> io::Result<()> {
    let no_name = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = Path::new(target.path.file_name().ok_or_else(no_name)?);
    let folder = make(target.path.parent().ok_or_else(no_name)?)?;
    if target.entry.what == What::Folder {
        return folder.enter_or_make(name).map(drop);
    }
    if target.before.is_none() {
        return fill(staged, &folder, name, &target.entry.what);
    }
    // A reader sees the old file or the new one, never half of one.
    let fresh = fresh_name()?;
    let replace = || {
        fill(staged, &folder, &fresh, &target.entry.what)?;
        if folder.look(name)? != target.before {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it has changed meanwhile"));
        }
        folder.rename(&fresh, name)
    };
    replace().inspect_err(|_| drop(folder.remove(&fresh)))
}

/// What was not there is made, whole or not at all.
fn fill(staged: &Staged, folder: &Folder, name: &Path, what: &What) -> io::Result<()> {
    match what {
        What::Folder => Ok(()),
        What::Link { target } => folder.link(name, target),
        What::File { at, size, runs } => {
            folder.make_file(name, *runs, |file| copy(staged.content(*at, *size), file))
        }
    }
}

fn copy(mut from: impl Read, to: &mut File) -> io::Result<()> {
    io::copy(&mut from, to)?;
    to.flush()
}

/// The folder at a path, made as far as it is missing.
fn make(path: &Path) -> io::Result<Folder> {
    let mut folder = Folder::root()?;
    for part in path.components().skip(1) {
        folder = folder.enter_or_make(Path::new(part.as_os_str()))?;
    }
    Ok(folder)
}

/// Looks at many paths, most of which lie in the same folder as the one before.
#[derive(Default)]
struct Way {
    last: Option<(PathBuf, Option<Folder>)>,
}

impl Way {
    fn look(&mut self, path: &Path) -> io::Result<Option<Seen>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            let folder = match Folder::at(parent) {
                Ok(folder) => Some(folder),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            };
            self.last = Some((parent.to_owned(), folder));
        }
        match &self.last {
            Some((_, Some(folder))) => folder.look(Path::new(name)),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_no_other_that_begins_alike() {
        let forbidden = Forbidden::new(Path::new("/home/ada/.agentbox"), Path::new("/home/ada"));
        for inside in [
            "/proc/self/environ",
            "/proc",
            "/dev/null",
            "/home/ada/.agentbox",
            "/home/ada/.AgentBox/config.yaml",
            "/home/ada/.local/share/keyrings/login.keyring",
            "/home/ada/Library/Keychains/x",
        ] {
            assert!(forbidden.holds(Path::new(inside)), "{inside}");
        }
        for outside in
            ["/device", "/home/ada/.agentbox2", "/home/ada", "/home/ada/shop/.agentbox/out"]
        {
            assert!(!forbidden.holds(Path::new(outside)), "{outside}");
        }
    }

    #[test]
    fn a_destination_is_a_folder_or_a_name() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("there")).unwrap();
        std::fs::write(dir.join("file"), "").unwrap();
        std::os::unix::fs::symlink("there", dir.join("link")).unwrap();
        let find = |dest: &str, is_folder, tops: &[(&str, bool)]| {
            Place::find("cp toHost", &dir.join(dest), is_folder, tops)
        };
        let one = &[("a", false)][..];
        let at = |dest: &str, is_folder, entry: &str| {
            find(dest, is_folder, one)
                .unwrap()
                .path_of(entry)
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
        let code = |found: Result<Place, Stop>| found.unwrap_err().envelope.exit_code;
        assert_eq!(code(find("file", true, one)), 1);
        assert_eq!(code(find("file", false, &[("a", true)])), 1);
        assert_eq!(code(find("new", false, &[("a", false), ("b", false)])), 64);
    }
}
