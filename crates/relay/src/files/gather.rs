//! Files of the host on their way into a box.
//!
//! Everything is read and staged before anybody is asked: what a person is shown is what is sent,
//! whatever happens to the files meanwhile. Each file is opened by handle from the root, through no
//! link, so the path it is judged by is where it really lies. Links in a folder stay links; only
//! one that was named is followed.

use super::place::Forbidden;
use crate::call::Stop;
use connectors::files::{Excludes, looks_secret, shown};
use files::archive::{MAX_ENTRIES, Staged};
use files::folder::{Folder, Kind, Seen};
use files::rules::MAX_DEPTH;
use protocol::exit;
use protocol::text::visible;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub surface: &'a str,
    /// Full paths as they were meant; not yet looked at.
    pub sources: Vec<PathBuf>,
    pub excludes: &'a Excludes,
    /// The real path of the folder the box was made from.
    pub workspace: &'a Path,
    pub forbidden: &'a Forbidden,
    /// All bytes together.
    pub most: u64,
}

/// One file or link that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it really lies.
    pub path: PathBuf,
    pub bytes: u64,
    /// Where it leads, for a link.
    pub link: Option<PathBuf>,
    pub secret: bool,
    /// It lies, or leads, outside the folder the box was made from.
    pub outside: bool,
}

#[derive(Debug)]
pub(super) struct Gathered {
    pub staged: Staged,
    pub files: Vec<Found>,
    /// The real paths of what was named.
    pub sources: Vec<PathBuf>,
    /// What stayed behind: names that were to be left out, and what is no file.
    pub left_out: BTreeSet<String>,
}

pub(super) fn gather(wanted: &Wanted<'_>, into: File) -> Result<Gathered, Stop> {
    let tar = tar::Builder::new(BufWriter::new(into));
    let mut work =
        Work { wanted, tar, files: Vec::new(), entries: 0, bytes: 0, left_out: BTreeSet::new() };
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    for source in &wanted.sources {
        let real = work.real(source)?;
        if real.parent().is_none() {
            return Err(work.stop(exit::REFUSED, &real, "is the whole computer"));
        }
        let name = source.file_name().or_else(|| real.file_name()).map(OsStr::to_os_string);
        let Some(name) = name.and_then(|name| name.into_string().ok()) else {
            return Err(work.stop(exit::UNADDRESSABLE, &real, "has no name to copy it under"));
        };
        if !names.insert(name.clone()) {
            return Err(work.stop(
                exit::UNADDRESSABLE,
                &real,
                "is one of two sources of that name",
            ));
        }
        work.source(&real, &name)?;
        sources.push(real);
    }
    let surface = wanted.surface;
    let failed =
        |e: io::Error| Stop::fail(exit::FAILURE, format!("{surface}: cannot stage the copy: {e}"));
    let writer = work.tar.into_inner().map_err(failed)?;
    let file = writer.into_inner().map_err(|e| failed(e.into_error()))?;
    let staged = Staged::seal(file).map_err(failed)?;
    Ok(Gathered { staged, files: work.files, sources, left_out: work.left_out })
}

struct Work<'a> {
    wanted: &'a Wanted<'a>,
    tar: tar::Builder<BufWriter<File>>,
    files: Vec<Found>,
    entries: usize,
    bytes: u64,
    left_out: BTreeSet<String>,
}

/// One thing of the host, with the name it goes by in the archive.
struct Thing<'a> {
    folder: &'a Folder,
    name: &'a OsStr,
    real: &'a Path,
    inside: &'a str,
    seen: &'a Seen,
}

impl Work<'_> {
    fn stop(&self, code: i32, path: &Path, why: &str) -> Stop {
        Stop::fail(
            code,
            format!("{}: {} {why}; nothing was copied.", self.wanted.surface, shown(path)),
        )
    }

    fn failed(&self, path: &Path, error: &io::Error) -> Stop {
        self.stop(exit::FAILURE, path, &format!("cannot be read ({error})"))
    }

    fn real(&self, source: &Path) -> Result<PathBuf, Stop> {
        // Said before it is known whether such a thing is there.
        if self.wanted.forbidden.holds(source) {
            return Err(self.stop(exit::REFUSED, source, "is never copied into a box"));
        }
        source
            .canonicalize()
            .map_err(|_| self.stop(exit::FAILURE, source, "is not there or cannot be read"))
    }

    fn source(&mut self, real: &Path, name: &str) -> Result<(), Stop> {
        let (Some(parent), Some(own)) = (real.parent(), real.file_name()) else {
            return Err(self.stop(exit::UNADDRESSABLE, real, "has no name to copy it under"));
        };
        let folder = Folder::at(parent).map_err(|e| self.failed(real, &e))?;
        let seen = folder.look(Path::new(own)).map_err(|e| self.failed(real, &e))?;
        let Some(seen) = seen else {
            return Err(self.stop(exit::FAILURE, real, "is not there or cannot be read"));
        };
        let thing = Thing { folder: &folder, name: own, real, inside: name, seen: &seen };
        match seen.kind {
            Kind::File => self.file(&thing),
            Kind::Folder => self.folder(&thing, "", 0),
            Kind::Link | Kind::Other => {
                Err(self.stop(exit::REFUSED, real, "is neither a file nor a folder"))
            }
        }
    }

    /// `below` is where it lies under the source that was named.
    fn folder(&mut self, thing: &Thing<'_>, below: &str, depth: usize) -> Result<(), Stop> {
        self.allowed(thing.real)?;
        if depth > MAX_DEPTH {
            return Err(self.stop(exit::REFUSED, thing.real, "lies too deep"));
        }
        self.count(thing.real)?;
        let mut header = header(thing.seen, tar::EntryType::Directory, 0);
        let added = self.tar.append_data(&mut header, format!("{}/", thing.inside), io::empty());
        added.map_err(|e| self.failed(thing.real, &e))?;

        let folder = thing.folder.enter(Path::new(thing.name));
        let folder = folder.map_err(|e| self.failed(thing.real, &e))?;
        let names = folder.names(MAX_ENTRIES).map_err(|e| self.failed(thing.real, &e))?;
        for name in names {
            let real = thing.real.join(&name);
            let Some(text) = name.to_str() else {
                self.left_out.insert(shown(&real));
                continue;
            };
            let below = if below.is_empty() { text.to_owned() } else { format!("{below}/{text}") };
            if self.wanted.excludes.cover(below.as_bytes()) {
                self.left_out.insert(visible(text));
                continue;
            }
            let seen = folder.look(Path::new(&name)).map_err(|e| self.failed(&real, &e))?;
            let Some(seen) = seen else { continue };
            let inside = format!("{}/{text}", thing.inside);
            let thing =
                Thing { folder: &folder, name: &name, real: &real, inside: &inside, seen: &seen };
            match seen.kind {
                Kind::File => self.file(&thing)?,
                Kind::Folder => self.folder(&thing, &below, depth + 1)?,
                Kind::Link => self.link(&thing)?,
                Kind::Other => drop(self.left_out.insert(shown(&real))),
            }
        }
        Ok(())
    }

    fn file(&mut self, thing: &Thing<'_>) -> Result<(), Stop> {
        self.allowed(thing.real)?;
        self.count(thing.real)?;
        let file = thing.folder.read(Path::new(thing.name));
        let file = file.map_err(|e| self.failed(thing.real, &e))?;
        let size = file.metadata().map_err(|e| self.failed(thing.real, &e))?.len();
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.wanted.most {
            let why = format!(
                "makes it more than {}; copy less at once",
                protocol::text::size(self.wanted.most)
            );
            return Err(self.stop(exit::REFUSED, thing.real, &why));
        }
        let mut header = header(thing.seen, tar::EntryType::Regular, size);
        // It may grow or shrink meanwhile; the archive needs exactly what its header says.
        let exact = file.take(size).chain(io::repeat(0)).take(size);
        let added = self.tar.append_data(&mut header, thing.inside, exact);
        added.map_err(|e| self.failed(thing.real, &e))?;
        let found = Found {
            path: thing.real.to_owned(),
            bytes: size,
            link: None,
            secret: is_secret(thing.real),
            outside: !thing.real.starts_with(self.wanted.workspace),
        };
        self.files.push(found);
        Ok(())
    }

    fn link(&mut self, thing: &Thing<'_>) -> Result<(), Stop> {
        self.count(thing.real)?;
        let target = thing.folder.target(Path::new(thing.name));
        let target = target.map_err(|e| self.failed(thing.real, &e))?;
        let target = PathBuf::from(target);
        let mut header = header(thing.seen, tar::EntryType::Symlink, 0);
        let added = self.tar.append_link(&mut header, thing.inside, &target);
        added.map_err(|e| self.failed(thing.real, &e))?;
        let leads = thing.real.canonicalize().ok();
        let leads = leads.as_deref();
        let found = Found {
            path: thing.real.to_owned(),
            bytes: 0,
            secret: is_secret(thing.real) || leads.is_some_and(is_secret),
            outside: leads.is_none_or(|to| !to.starts_with(self.wanted.workspace)),
            link: Some(target),
        };
        self.files.push(found);
        Ok(())
    }

    fn allowed(&self, real: &Path) -> Result<(), Stop> {
        if self.wanted.forbidden.holds(real) {
            return Err(self.stop(exit::REFUSED, real, "is never copied into a box"));
        }
        Ok(())
    }

    fn count(&mut self, real: &Path) -> Result<(), Stop> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            let why = format!("makes it more than {MAX_ENTRIES} files; copy fewer at once");
            return Err(self.stop(exit::REFUSED, real, &why));
        }
        Ok(())
    }
}

fn is_secret(path: &Path) -> bool {
    looks_secret(&path.to_string_lossy())
}

fn header(seen: &Seen, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    let runs = seen.runs || kind == tar::EntryType::Directory;
    header.set_mode(if runs { 0o755 } else { 0o644 });
    header.set_entry_type(kind);
    header.set_size(size);
    header
}
