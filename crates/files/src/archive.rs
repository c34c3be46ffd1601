//! What a box sent as a tar stream, read as the work of an enemy.
//!
//! The stream is staged in a file without a name: nobody can put another in its place, and it is
//! gone when the host is. One pass over it gives a list of plain entries, each with the place of
//! its bytes in the file. What is later written is read from those places; the archive is never
//! interpreted a second time.
//!
//! Only one dialect is taken, the one `agentbox-ctl` writes: files, folders, links, and GNU's long
//! names of bounded length. Extended headers, sparse files, hard links and devices end it.

use crate::rules::{self, Refused, Tops, said};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use tar::EntryType;

/// Entries of one copy, in either direction.
pub const MAX_ENTRIES: usize = 20_000;
/// All their names together.
const MAX_NAMES: usize = 4 * 1024 * 1024;
const BLOCK: u64 = 512;

/// A tar stream on disk that does not change any more.
#[derive(Debug)]
pub struct Staged {
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
pub struct Content<'a> {
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
pub struct Entry {
    /// Relative, of plain names only, joined by slashes.
    pub path: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
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

/// Everything in the archive, sorted by path: a folder comes before what is in it. One entry that
/// may not be ends it all.
pub fn list(staged: &Staged, tops: Tops<'_>) -> Result<Vec<Entry>, Refused> {
    let reader = Reader { tops, names: 0, entries: BTreeMap::new() };
    reader.read(&staged.file)
}

struct Reader<'a> {
    tops: Tops<'a>,
    names: usize,
    entries: BTreeMap<Vec<String>, What>,
}

impl Reader<'_> {
    fn read(mut self, file: &File) -> Result<Vec<Entry>, Refused> {
        let length = file.metadata().map_err(|e| rules::broken(&e))?.len();
        let mut archive = tar::Archive::new(Whole { file, at: 0, length });
        let entries = archive.entries_with_seek().map_err(|e| rules::broken(&e))?.raw(true);
        let (mut long_name, mut long_link) = (None, None);
        let mut end = 0;
        let mut seen = 0;
        for entry in entries {
            let mut entry = entry.map_err(|e| rules::broken(&e))?;
            seen += 1;
            // Long names are entries of their own, one or two before each real one.
            if seen > 3 * MAX_ENTRIES || self.entries.len() >= MAX_ENTRIES {
                let why = format!("more than {MAX_ENTRIES} files; copy fewer at once");
                return Err(Refused::new(why));
            }
            let (at, size) = (entry.raw_file_position(), entry.size());
            end = at
                .checked_add(size)
                .and_then(|e| e.checked_next_multiple_of(BLOCK))
                .unwrap_or(u64::MAX);
            if end > length {
                return Err(Refused::new("an archive that breaks off"));
            }
            match entry.header().entry_type() {
                EntryType::GNULongName => long_name = Some(rules::long_name(&mut entry)?),
                EntryType::GNULongLink => long_link = Some(rules::long_name(&mut entry)?),
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
        if file.read_at(&mut mark, end).map_err(|e| rules::broken(&e))? < 512 || mark != [0; 512] {
            return Err(Refused::new("an archive that breaks off"));
        }
        self.check_parents()?;
        let entry = |(path, what): (Vec<String>, What)| Entry { path: path.join("/"), what };
        Ok(self.entries.into_iter().map(entry).collect())
    }

    fn path(&mut self, name: &[u8]) -> Result<Vec<String>, Refused> {
        self.names += name.len();
        if self.names > MAX_NAMES {
            return Err(Refused::new("more names than anybody reads; copy less at once"));
        }
        if std::str::from_utf8(name).is_err() {
            return Err(Refused::new(format!("'{}', a name that is not UTF-8", said(name))));
        }
        let parts = rules::parts(name, self.tops)?;
        Ok(parts.into_iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect())
    }

    fn what(
        &mut self,
        kind: EntryType,
        path: &[String],
        link: &[u8],
        file: What,
    ) -> Result<What, Refused> {
        match kind {
            EntryType::Directory => Ok(What::Folder),
            EntryType::Regular | EntryType::Continuous if !path.is_empty() => Ok(file),
            EntryType::Symlink => {
                self.names += link.len();
                let parts: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
                rules::check_link(&parts, link, self.tops)?;
                let target = String::from_utf8(link.to_vec());
                let target = target.map_err(|_| {
                    Refused::new(format!("'{}', a name that is not UTF-8", said(link)))
                })?;
                Ok(What::Link { target })
            }
            other => Err(Refused::new(format!(
                "'{}', which is neither file, folder nor link ({other:?})",
                joined(path)
            ))),
        }
    }

    fn add(&mut self, path: Vec<String>, what: What) -> Result<(), Refused> {
        // The content's own folder, which is there already.
        if path.is_empty() && what == What::Folder {
            return Ok(());
        }
        if let Some(before) = self.entries.get(&path) {
            if *before == What::Folder && what == What::Folder {
                return Ok(());
            }
            return Err(Refused::new(format!("'{}' twice", joined(&path))));
        }
        self.entries.insert(path, what);
        Ok(())
    }

    /// Whatever something lies in is a folder, in whatever order they came; and on a disk that does
    /// not tell capitals apart no two names are one.
    fn check_parents(&self) -> Result<(), Refused> {
        let mut folded = BTreeSet::new();
        for path in self.entries.keys() {
            for upto in 1..path.len() {
                let above = self.entries.get(&path[..upto]);
                if above.is_some_and(|what| *what != What::Folder) {
                    let shown = joined(path);
                    return Err(Refused::new(format!(
                        "'{shown}', which lies in something that is no folder"
                    )));
                }
            }
            if cfg!(target_os = "macos") && !folded.insert(path.join("/").to_lowercase()) {
                let shown = joined(path);
                return Err(Refused::new(format!("'{shown}' twice, in other letters")));
            }
        }
        Ok(())
    }
}

fn joined(path: &[String]) -> String {
    said(path.join("/").as_bytes())
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
