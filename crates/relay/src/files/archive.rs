//! What a box sent as a tar stream, read as the work of an enemy.
//!
//! The stream is staged in a file without a name: nobody can put another in its place, and it is
//! gone when the host is. One pass over it gives a list of plain entries, each with the place of
//! its bytes in the file. What is later written is read from those places; the archive is never
//! interpreted a second time.
//!
//! Only one dialect is taken, the one `agentbox-ctl` writes: files, folders, links, and GNU's long
//! names of bounded length. Extended headers, sparse files, hard links and devices end it.

use crate::call::Stop;
use protocol::exit;
use protocol::text::shortened;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use tar::EntryType;

/// Entries of one copy, in either direction.
pub(super) const MAX_ENTRIES: usize = 20_000;
/// All their names together.
const MAX_NAMES: usize = 4 * 1024 * 1024;
const MAX_NAME: u64 = 4096;
/// How deep folders may lie in each other. Every part is looked at for every entry.
pub(super) const MAX_DEPTH: usize = 64;
const BLOCK: u64 = 512;

/// A tar stream on disk that does not change any more.
#[derive(Debug)]
pub(super) struct Staged {
    file: File,
    pub digest: String,
}

impl Staged {
    /// A file for a stream: without a name, in a folder of the host's own.
    pub fn file(scratch: &Path) -> io::Result<File> {
        let dir = scratch.join("copies");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        tempfile::tempfile_in(&dir)
    }

    /// Nothing is added from here on.
    pub fn seal(file: File) -> io::Result<Self> {
        let digest = digest(&file)?;
        Ok(Self { file, digest })
    }

    /// It is what it was at the question.
    pub fn is_untouched(&self) -> io::Result<bool> {
        Ok(digest(&self.file)? == self.digest)
    }

    /// From the beginning, for somebody else.
    pub fn stream(&self) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        Ok(file)
    }

    /// The bytes of one file in it.
    pub fn content(&self, at: u64, size: u64) -> Content<'_> {
        Content { file: &self.file, at, left: size }
    }
}

fn digest(file: &File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut content = Content { file, at: 0, left: file.metadata()?.len() };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// A part of a file, read without moving anybody's place in it.
pub(super) struct Content<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let n = self.file.read_at(&mut into[..most], self.at)?;
        if n == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative, of plain names only, joined by slashes.
    pub path: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Folder,
    File { at: u64, size: u64, runs: bool },
    Link { target: String },
}

impl Entry {
    pub fn size(&self) -> u64 {
        match &self.what {
            What::File { size, .. } => *size,
            _ => 0,
        }
    }
}

/// What may be in an archive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tops<'a> {
    /// Only these, and what is below them; a link stays below its own.
    Only(&'a [String]),
    /// Anything: the archive is one folder's content.
    Any,
}

/// Everything in the archive, sorted by path: a folder comes before what is in it.
pub(super) fn list(surface: &str, staged: &Staged, tops: Tops<'_>) -> Result<Vec<Entry>, Stop> {
    let reader = Reader { surface, tops, names: 0, entries: BTreeMap::new() };
    reader.read(&staged.file)
}

struct Reader<'a> {
    surface: &'a str,
    tops: Tops<'a>,
    names: usize,
    entries: BTreeMap<Vec<String>, What>,
}

impl Reader<'_> {
    fn stop(&self, why: impl AsRef<str>) -> Stop {
        let why = why.as_ref();
        Stop::fail(
            exit::FAILURE,
            format!("{}: the box sent {why}; nothing was copied.", self.surface),
        )
    }

    fn broken(&self, error: io::Error) -> Stop {
        self.stop(format!(
            "an archive that cannot be read ({})",
            shortened(&error.to_string(), 200)
        ))
    }

    fn read(mut self, file: &File) -> Result<Vec<Entry>, Stop> {
        let length = file.metadata().map_err(|e| self.broken(e))?.len();
        let mut archive = tar::Archive::new(Whole { file, at: 0, length });
        let entries = archive.entries_with_seek().map_err(|e| self.broken(e))?.raw(true);
        let (mut long_name, mut long_link) = (None, None);
        let mut end = 0;
        let mut seen = 0;
        for entry in entries {
            let mut entry = entry.map_err(|e| self.broken(e))?;
            seen += 1;
            // Long names are entries of their own, one or two before each real one.
            if seen > 3 * MAX_ENTRIES || self.entries.len() >= MAX_ENTRIES {
                let why = format!("more than {MAX_ENTRIES} files; copy fewer at once");
                return Err(self.stop(why));
            }
            let (at, size) = (entry.raw_file_position(), entry.size());
            end = at
                .checked_add(size)
                .and_then(|e| e.checked_next_multiple_of(BLOCK))
                .unwrap_or(u64::MAX);
            if end > length {
                return Err(self.stop("an archive that breaks off"));
            }
            match entry.header().entry_type() {
                EntryType::GNULongName => long_name = Some(self.long(&mut entry)?),
                EntryType::GNULongLink => long_link = Some(self.long(&mut entry)?),
                kind => {
                    let header = entry.header();
                    let name = long_name.take().unwrap_or_else(|| header.path_bytes().into_owned());
                    let link = header.link_name_bytes().unwrap_or_default().into_owned();
                    let link = long_link.take().unwrap_or(link);
                    let runs = header.mode().is_ok_and(|mode| mode & 0o111 != 0);
                    let path = self.path(&name)?;
                    let what = self.what(kind, &path, &link, What::File { at, size, runs })?;
                    self.add(path, what)?;
                }
            }
        }
        let mut mark = [1; 512];
        if file.read_at(&mut mark, end).map_err(|e| self.broken(e))? < 512 || mark != [0; 512] {
            return Err(self.stop("an archive that breaks off"));
        }
        self.check_parents()?;
        let entry = |(path, what): (Vec<String>, What)| Entry { path: path.join("/"), what };
        Ok(self.entries.into_iter().map(entry).collect())
    }

    fn long(&self, entry: &mut impl Read) -> Result<Vec<u8>, Stop> {
        let mut name = Vec::new();
        entry.take(MAX_NAME + 2).read_to_end(&mut name).map_err(|e| self.broken(e))?;
        if name.len() as u64 > MAX_NAME + 1 {
            return Err(self.stop("a name longer than 4096 bytes"));
        }
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    /// The parts of a path that stays below where it starts.
    fn path(&mut self, name: &[u8]) -> Result<Vec<String>, Stop> {
        let shown = || shortened(&String::from_utf8_lossy(name), 200);
        self.names += name.len();
        if self.names > MAX_NAMES {
            return Err(self.stop("more names than anybody reads; copy less at once"));
        }
        let Ok(text) = std::str::from_utf8(name) else {
            return Err(self.stop(format!("'{}', a name that is not UTF-8", shown())));
        };
        if text.starts_with('/') {
            return Err(self.stop(format!("'{}', which is no relative path", shown())));
        }
        if text.chars().any(char::is_control) {
            return Err(self.stop(format!("'{}', a name with a control character", shown())));
        }
        // One more than may be: the rest need not be looked at.
        let parts = text.split('/').filter(|p| !p.is_empty() && *p != ".").map(str::to_owned);
        let parts: Vec<String> = parts.take(MAX_DEPTH + 1).collect();
        if parts.iter().any(|p| p == "..") {
            return Err(self.stop(format!("'{}', which leads out of the destination", shown())));
        }
        if parts.iter().any(|p| p.len() > 255) || text.len() as u64 > MAX_NAME {
            return Err(self.stop(format!("'{}', a name that is too long", shown())));
        }
        if parts.len() > MAX_DEPTH {
            return Err(self.stop(format!("'{}', which lies too deep", shown())));
        }
        if let (Tops::Only(tops), Some(top)) = (self.tops, parts.first())
            && !tops.contains(top)
        {
            return Err(self.stop(format!("'{}', which was not asked for", shown())));
        }
        Ok(parts)
    }

    fn what(
        &mut self,
        kind: EntryType,
        path: &[String],
        link: &[u8],
        file: What,
    ) -> Result<What, Stop> {
        match kind {
            EntryType::Directory => Ok(What::Folder),
            EntryType::Regular | EntryType::Continuous if !path.is_empty() => Ok(file),
            EntryType::Symlink => {
                self.names += link.len();
                self.link(path, link)
            }
            other => {
                let shown = shortened(&path.join("/"), 200);
                Err(self
                    .stop(format!("'{shown}', which is neither file, folder nor link ({other:?})")))
            }
        }
    }

    /// A link may lead up at its beginning only, and never out of what is copied. A link that goes
    /// down and up again could, by way of another link, lead anywhere.
    fn link(&self, path: &[String], target: &[u8]) -> Result<What, Stop> {
        let shown = || {
            let target = String::from_utf8_lossy(target);
            format!("'{}' → '{}'", shortened(&path.join("/"), 200), shortened(&target, 200))
        };
        let leaves = || self.stop(format!("{}, a link that leaves what is copied", shown()));
        let Ok(target) = std::str::from_utf8(target) else { return Err(leaves()) };
        let odd = target.is_empty() || target.len() as u64 > MAX_NAME;
        if odd || target.starts_with('/') || target.chars().any(char::is_control) {
            return Err(leaves());
        }
        let parts: Vec<&str> = target.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
        let up = parts.iter().take_while(|p| **p == "..").count();
        // How far up the top of what is copied is from where the link lies.
        let allowed = match self.tops {
            Tops::Only(_) => path.len().checked_sub(2),
            Tops::Any => path.len().checked_sub(1),
        };
        let within = allowed.is_some_and(|allowed| up <= allowed);
        if !within || parts[up..].contains(&"..") {
            return Err(leaves());
        }
        Ok(What::Link { target: target.to_owned() })
    }

    fn add(&mut self, path: Vec<String>, what: What) -> Result<(), Stop> {
        // The content's own folder, which is there already.
        if path.is_empty() && what == What::Folder {
            return Ok(());
        }
        if let Some(before) = self.entries.get(&path) {
            if *before == What::Folder && what == What::Folder {
                return Ok(());
            }
            let shown = shortened(&path.join("/"), 200);
            return Err(self.stop(format!("'{shown}' twice")));
        }
        self.entries.insert(path, what);
        Ok(())
    }

    /// Whatever something lies in is a folder, in whatever order they came; and on a disk that does
    /// not tell capitals apart no two names are one.
    fn check_parents(&self) -> Result<(), Stop> {
        let mut folded = BTreeSet::new();
        for path in self.entries.keys() {
            for upto in 1..path.len() {
                let above = self.entries.get(&path[..upto]);
                if above.is_some_and(|what| *what != What::Folder) {
                    let shown = shortened(&path.join("/"), 200);
                    return Err(
                        self.stop(format!("'{shown}', which lies in something that is no folder"))
                    );
                }
            }
            if cfg!(target_os = "macos") && !folded.insert(path.join("/").to_lowercase()) {
                let shown = shortened(&path.join("/"), 200);
                return Err(self.stop(format!("'{shown}' twice, in other letters")));
            }
        }
        Ok(())
    }
}

/// A file as a stream of its own, so that nobody's place in it moves.
struct Whole<'a> {
    file: &'a File,
    at: u64,
    length: u64,
}

impl Read for Whole<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Whole<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
            io::SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests;
