//! `agentbox-ctl pack` (box user): files of the box as a tar stream, for the host.
//!
//! The host believes none of it: it reads the stream as an enemy's. So this only has to be right
//! for an honest box. A source that is a link is followed, links below it stay links; what is
//! neither file, folder nor link is left out.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::places;
use crate::real_git::Git;
use connectors::files::{Excludes, LeftOut, is_named, shown};
use protocol::ctl::NO_ENV_FILES;
use protocol::ctl::Pack;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub fn run() -> Result<i32> {
    let what: Pack = input::json_line(&mut io::stdin().lock())?;
    let tar = tar::Builder::new(BufWriter::with_capacity(64 * 1024, io::stdout().lock()));
    let written = pack(what, tar)?.into_inner().and_then(|mut out| out.flush());
    written.doing(|| "write standard output")?;
    Ok(protocol::exit::OK)
}

fn pack<W: Write>(what: Pack, tar: tar::Builder<W>) -> Result<tar::Builder<W>> {
    let excludes = |given: &[String]| {
        Excludes::parse("pack", given, false).map_err(|e| Error::BadInput(e.text))
    };
    let mut packer = Packer { tar, leaves: LeftOut::default(), behind: BTreeSet::new() };
    match what {
        Pack::Files { sources, exclude } => {
            packer.leaves = LeftOut::new(excludes(&exclude)?, false);
            sources.iter().try_for_each(|s| packer.source(s))?;
        }
        Pack::Workspace { exclude, respects_git } => {
            packer.leaves = LeftOut::new(excludes(&exclude)?, false);
            packer.workspace(respects_git, !respects_git)?;
        }
        Pack::Copy { sources, exclude, default_excludes, optional } => {
            packer.leaves = LeftOut::new(excludes(&exclude)?, default_excludes);
            for source in &sources {
                if optional && !Path::new(source).exists() {
                    continue;
                }
                if default_excludes {
                    packer.leaves.tracked(&tracked(Path::new(source)));
                }
                packer.source(source)?;
            }
            packer.tell();
        }
        Pack::Download { respects_git, node_modules, also, only } => {
            let bare = !respects_git || listed_by_git().is_none();
            let stays = [".git", "node_modules"];
            let stays = if bare && !node_modules { &stays[..] } else { &stays[..1] };
            let stays: Vec<String> = stays.iter().map(ToString::to_string).collect();
            packer.leaves = LeftOut::new(excludes(&stays)?, false);
            if !only {
                packer.workspace(respects_git, node_modules)?;
            }
            packer.also(&also, node_modules && respects_git && !only, only)?;
        }
    }
    Ok(packer.tar)
}

struct Packer<W: Write> {
    tar: tar::Builder<W>,
    leaves: LeftOut,
    /// What stayed behind, as far as anybody would read it.
    behind: BTreeSet<String>,
}

/// Names that are told.
const TOLD: usize = 200;

impl<W: Write> Packer<W> {
    fn source(&mut self, source: &str) -> Result<()> {
        let path = Path::new(source);
        let no_name = || Error::BadInput(format!("a source without a name: {}", shown(path)));
        let name = path.file_name().ok_or_else(no_name)?;
        let real = path.canonicalize().doing(|| format!("copy {}", shown(path)))?;
        self.tree(&real, Path::new(name), Path::new(""))
    }

    /// Files that go by their names, and `node_modules` when that is wanted and git ignores it.
    fn also(&mut self, names_like: &[String], node_modules: bool, only: bool) -> Result<()> {
        let root = places::workspace();
        // What went along already goes once.
        let listed = if only { None } else { listed_by_git() }.unwrap_or_default();
        let mut pending = vec![PathBuf::new()];
        while let Some(folder) = pending.pop() {
            for name in names(&root.join(&folder))? {
                let below = folder.join(&name);
                let Ok(data) = root.join(&below).symlink_metadata() else { continue };
                if data.is_dir() {
                    if node_modules && name == "node_modules" {
                        self.tree(&root.join(&below), &below, &below)?;
                    } else if !NO_ENV_FILES.iter().any(|left| name == *left) {
                        pending.push(below);
                    }
                } else if data.is_file()
                    && is_named(name.as_bytes(), names_like)
                    && !listed.contains(&below)
                {
                    self.entry(&root.join(&below), &below)?;
                }
            }
        }
        Ok(())
    }

    fn tell(&self) {
        if !self.behind.is_empty() {
            let names: Vec<&str> = self.behind.iter().map(String::as_str).collect();
            crate::complain(&format!("left out: {}", names.join(", ")));
        }
    }

    fn workspace(&mut self, respects_git: bool, node_modules: bool) -> Result<()> {
        let root = places::workspace();
        if respects_git && let Some(names) = listed_by_git() {
            for name in names {
                let path = root.join(&name);
                // One that is tracked may be gone, or be a repository of its own.
                let plain = path.symlink_metadata().is_ok_and(|data| !data.is_dir());
                if plain && !self.leaves.covers(name.as_os_str().as_bytes()) {
                    self.entry(&path, &name)?;
                }
            }
            return Ok(());
        }
        let stays = |name: &OsStr| name == ".git" || (!node_modules && name == "node_modules");
        for name in names(&root)? {
            if !stays(&name) && !self.leaves.covers(name.as_bytes()) {
                self.tree(&root.join(&name), Path::new(&name), Path::new(&name))?;
            }
        }
        Ok(())
    }

    /// One thing and all that is in it. `below` is its path below what was named.
    fn tree(&mut self, path: &Path, inside: &Path, below: &Path) -> Result<()> {
        let mut pending = vec![(path.to_owned(), inside.to_owned(), below.to_owned())];
        while let Some((path, inside, below)) = pending.pop() {
            if !self.entry(&path, &inside)? {
                continue;
            }
            for name in names(&path)? {
                let below = below.join(&name);
                if !self.leaves.covers(below.as_os_str().as_bytes()) {
                    pending.push((path.join(&name), inside.join(&name), below));
                } else if self.behind.len() < TOLD {
                    self.behind.insert(shown(&inside.join(&name)));
                }
            }
        }
        Ok(())
    }

    /// Adds one thing; true when it is a folder.
    fn entry(&mut self, path: &Path, inside: &Path) -> Result<bool> {
        let doing = || format!("copy {}", shown(path));
        let data = match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            data => data.doing(doing)?,
        };
        let mut header = header(&data);
        if data.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            self.tar.append_data(&mut header, inside, io::empty()).doing(doing)?;
            return Ok(true);
        }
        if data.is_symlink() {
            header.set_entry_type(tar::EntryType::Symlink);
            let target = fs::read_link(path).doing(doing)?;
            self.tar.append_link(&mut header, inside, target).doing(doing)?;
        } else if data.is_file() {
            let file = File::open(path).doing(doing)?;
            header.set_size(data.len());
            // It may grow or shrink meanwhile; the archive needs exactly what its header says.
            let exact = file.take(data.len()).chain(io::repeat(0)).take(data.len());
            self.tar.append_data(&mut header, inside, exact).doing(doing)?;
        }
        Ok(false)
    }
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).doing(|| format!("read {}", shown(folder)))?;
    let mut names: Vec<OsString> = entries.filter_map(|e| Some(e.ok()?.file_name())).collect();
    names.sort();
    Ok(names)
}

/// What git tracks in a folder, of what a copy would leave out.
fn tracked(folder: &Path) -> Vec<u8> {
    if !folder.is_dir() {
        return Vec::new();
    }
    Git::at(folder).run(&LeftOut::question()).unwrap_or_default()
}

/// Tracked files and those that could be; none without a repository.
fn listed_by_git() -> Option<BTreeSet<PathBuf>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Git::for_host().run(&list).ok()?;
    let names = output.split(|b| *b == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

fn header(data: &Metadata) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(data.mode() & 0o777);
    header.set_mtime(u64::try_from(data.mtime()).unwrap_or(0));
    header.set_size(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    fn packed(what: Pack) -> Result<BTreeMap<String, String>> {
        let bytes = pack(what, tar::Builder::new(Vec::new()))?.into_inner().unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read = |mut entry: tar::Entry<'_, &[u8]>| {
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let link = entry.link_name().unwrap().map(|to| format!("→ {}", to.display()));
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            (name.trim_end_matches('/').to_owned(), link.unwrap_or(text))
        };
        Ok(archive.entries().unwrap().map(|entry| read(entry.unwrap())).collect())
    }

    fn files(sources: &[&Path], exclude: &[&str]) -> Result<BTreeMap<String, String>> {
        packed(Pack::Files {
            sources: sources.iter().map(|s| s.to_str().unwrap().to_owned()).collect(),
            exclude: exclude.iter().map(ToString::to_string).collect(),
        })
    }

    #[test]
    fn sources_go_under_their_own_names() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::create_dir_all(dir.join("src/target/deep")).unwrap();
        fs::create_dir_all(dir.join("src/empty")).unwrap();
        fs::write(dir.join("src/a"), "A").unwrap();
        fs::write(dir.join("src/target/deep/b"), "B").unwrap();
        symlink("a", dir.join("src/l")).unwrap();
        symlink("src/a", dir.join("alias")).unwrap();
        let found = files(&[&dir.join("src"), &dir.join("alias")], &["target"]).unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let wanted =
            [("alias", "A"), ("src", ""), ("src/a", "A"), ("src/empty", ""), ("src/l", "→ a")];
        assert_eq!(found, wanted);
        // What is named goes, whatever else of that name stays.
        let found = files(&[&dir.join("src/target")], &["target"]).unwrap();
        assert_eq!(found["target/deep/b"], "B");
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = files(&[Path::new("/no/such/thing")], &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such/thing"), "{error}");
        assert!(files(&[Path::new("/")], &[]).is_err());
    }
}
