//! Where on the host something is written, and the writing.
//!
//! What is there now is looked at before the question and bound to it; at the writing it is looked
//! at again, by handle and through no link. A file that has come, gone or changed meanwhile ends
//! the copy: what a person allowed is not what would happen.

use crate::call::Stop;
use connectors::files::shown;
use files::archive::{Entry, Staged, What};
use files::folder::{Folder, Kind, Seen, Way, fresh_name, is_detour};
use files::landing::make;
use files::place::{NoPlace, Place};
use protocol::exit;
use std::ffi::OsStr;
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

/// Where a copy goes, or why it cannot go there.
pub(super) fn find(
    surface: &str,
    dest: &Path,
    is_folder: bool,
    tops: &[(&str, bool)],
) -> Result<Place, Stop> {
    Place::find(dest, is_folder, tops).map_err(|e| {
        let code = match e {
            NoPlace::NoFolder(_) | NoPlace::AFile(_) => exit::FAILURE,
            NoPlace::Several(_) | NoPlace::NoName(_) => exit::UNADDRESSABLE,
        };
        Stop::fail(code, format!("{surface}: {e}"))
    })
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
        let path = place.path_of(Path::new(&entry.path));
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
        What::Link { target } => folder.link(name, OsStr::new(target)),
        What::File { at, size, runs } => {
            folder.make_file(name, *runs, |file| copy(staged.content(*at, *size), file))
        }
    }
}

fn copy(mut from: impl Read, to: &mut File) -> io::Result<()> {
    io::copy(&mut from, to)?;
    to.flush()
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
}
