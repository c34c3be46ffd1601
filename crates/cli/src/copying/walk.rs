//! The person's files on their way into a box, as one tar stream.
//!
//! Two walks: one that counts, for the limit and the bar, and one that sends. A source that is a
//! link is followed, links below it stay links.

use super::shown;
use crate::error::CommandError;
use connectors::files::LeftOut;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names that are told at most.
const TOLD: usize = 200;

/// One thing that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As it was typed.
    pub typed: PathBuf,
    pub real: PathBuf,
    /// What it is called in the box.
    pub name: OsString,
}

impl Source {
    pub fn find(typed: &Path) -> Result<Self, CommandError> {
        let real = typed.canonicalize().map_err(|e| cannot(typed, &e))?;
        let name = typed.file_name().or_else(|| real.file_name());
        let name = name.map(OsString::from).ok_or_else(|| {
            CommandError::failed(format!("{} has no name to copy it under", shown(typed)))
        })?;
        Ok(Self { typed: typed.to_owned(), real, name })
    }
}

fn cannot(path: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot read {}: {error}", shown(path)))
}

/// One file, folder or link that goes.
pub struct Item<'a> {
    pub path: &'a Path,
    /// Below the source; empty for the source itself.
    pub below: &'a Path,
    pub data: &'a Metadata,
}

/// Which of a source's files go.
pub struct Walk {
    leaves: LeftOut,
    /// What stayed behind.
    pub behind: BTreeSet<String>,
}

impl Walk {
    pub fn new(leaves: LeftOut) -> Self {
        Self { leaves, behind: BTreeSet::new() }
    }

    /// Every item of a source, a folder before what is in it.
    pub fn each(
        &mut self,
        source: &Source,
        mut visit: impl FnMut(&Item<'_>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        self.leaves.tracked(&tracked(&source.real));
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let path = if below.as_os_str().is_empty() {
                source.real.clone()
            } else {
                source.real.join(&below)
            };
            let data = match path.symlink_metadata() {
                Ok(data) => data,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(cannot(&path, &e)),
            };
            if !(data.is_dir() || data.is_file() || data.is_symlink()) {
                self.leave(source, &below);
                continue;
            }
            visit(&Item { path: &path, below: &below, data: &data })?;
            if data.is_dir() {
                for name in names(&path)?.into_iter().rev() {
                    let below = below.join(name);
                    if self.leaves.covers(below.as_os_str().as_bytes()) {
                        self.leave(source, &below);
                    } else {
                        pending.push(below);
                    }
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, source: &Source, below: &Path) {
        if self.behind.len() < TOLD {
            self.behind.insert(shown(&Path::new(&source.name).join(below)));
        }
    }

    /// Sends a source.
    pub fn send(
        &mut self,
        source: &Source,
        tar: &mut tar::Builder<&mut dyn Write>,
    ) -> Result<(), CommandError> {
        self.each(source, |item| {
            let inside = if item.below.as_os_str().is_empty() {
                PathBuf::from(&source.name)
            } else {
                Path::new(&source.name).join(item.below)
            };
            append(tar, item, &inside)
        })
    }
}

fn append(
    tar: &mut tar::Builder<&mut dyn Write>,
    item: &Item<'_>,
    inside: &Path,
) -> Result<(), CommandError> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(item.data.mode() & 0o777);
    header.set_mtime(u64::try_from(item.data.mtime()).unwrap_or(0));
    header.set_size(0);
    if item.data.is_symlink() {
        header.set_entry_type(tar::EntryType::Symlink);
        let target = fs::read_link(item.path).map_err(|e| cannot(item.path, &e))?;
        return Ok(tar.append_link(&mut header, inside, target)?);
    }
    if item.data.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        return Ok(tar.append_data(&mut header, inside, io::empty())?);
    }
    let file = File::open(item.path).map_err(|e| cannot(item.path, &e))?;
    let size = item.data.len();
    header.set_size(size);
    // It may grow or shrink meanwhile; the archive needs exactly what its header says.
    let exact = file.take(size).chain(io::repeat(0)).take(size);
    Ok(tar.append_data(&mut header, inside, exact)?)
}

fn names(folder: &Path) -> Result<Vec<OsString>, CommandError> {
    let entries = fs::read_dir(folder).map_err(|e| cannot(folder, &e))?;
    let mut names: Vec<OsString> = entries.filter_map(|e| Some(e.ok()?.file_name())).collect();
    names.sort();
    Ok(names)
}

/// What git tracks of what a copy would leave out; nothing without git.
fn tracked(folder: &Path) -> Vec<u8> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(LeftOut::question());
    let asked = git.stdin(Stdio::null()).stderr(Stdio::null()).output();
    asked.ok().filter(|out| out.status.success()).map(|out| out.stdout).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use connectors::files::Excludes;

    #[test]
    fn what_is_made_again_stays_unless_git_tracks_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("app");
        for file in
            ["src/a", "packages/x/index.js", "packages/x/node_modules/y", "bin/tool", "x.log"]
        {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let git = |args: &[&str]| {
            let done = Command::new("git").arg("-C").arg(&dir).args(args).status().unwrap();
            assert!(done.success());
        };
        git(&["init", "-q"]);
        git(&["add", "packages/x/index.js"]);
        let source = Source::find(&dir).unwrap();
        let leaves = |patterns: &[String], default| {
            LeftOut::new(Excludes::parse("cp", patterns, false).unwrap(), default)
        };
        let files = |leaves: LeftOut| {
            let mut walk = Walk::new(leaves);
            let mut found = Vec::new();
            let seen = walk.each(&source, |item| {
                if item.data.is_file() {
                    found.push(shown(item.below));
                }
                Ok(())
            });
            seen.unwrap();
            (found, walk.behind.into_iter().collect::<Vec<_>>())
        };
        let (found, behind) = files(leaves(&["*.log".into()], true));
        assert_eq!(found, ["packages/x/index.js", "src/a"]);
        assert_eq!(behind, ["app/.git", "app/bin", "app/packages/x/node_modules", "app/x.log"]);
        let (found, behind) = files(leaves(&[], false));
        assert!(found.contains(&"bin/tool".to_owned()) && behind.is_empty());
        // One that is named goes, whatever it is called.
        let bin = Source::find(&dir.join("bin")).unwrap();
        let mut seen = 0;
        Walk::new(leaves(&[], true))
            .each(&bin, |_| {
                seen += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, 2);
        assert!(Source::find(&dir.join("no")).is_err());
    }
}
