//! Writing what comes out of a box where a person said, entry by entry.
//!
//! Every step from the destination on is taken by handle and through no link. A file is whole or
//! not there; one that was there before is replaced in one moment.

use crate::folder::{Folder, Kind as There, fresh_name, is_detour};
use crate::place::Place;
use crate::rules::{Refused, said};
use crate::stream::{Arrived, Kind, NotTaken};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CHUNK: usize = 256 * 1024;
/// Names that are kept of what was replaced.
const NAMED: usize = 100;

pub struct Landing {
    place: Place,
    /// The folder of the last entry: most lie beside the one before.
    last: Option<(PathBuf, Folder)>,
    buffer: Vec<u8>,
    replaced: Replaced,
}

/// What was there before and is no more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    /// The first of them.
    pub names: Vec<String>,
    pub count: usize,
}

impl Landing {
    pub fn new(place: Place) -> Self {
        Self { place, last: None, buffer: vec![0; CHUNK], replaced: Replaced::default() }
    }

    pub fn replaced(self) -> Replaced {
        self.replaced
    }

    pub fn put(&mut self, arrived: &Arrived, content: &mut dyn Read) -> Result<(), NotTaken> {
        let path = self.place.path_of(&arrived.path);
        self.put_at(&path, &arrived.kind, content).map_err(|error| {
            let name = said(arrived.path.as_os_str().as_bytes());
            if is_detour(&error) {
                let why = format!("'{name}', which would lie behind a link or in a file");
                return NotTaken::Refused(Refused::new(why));
            }
            match error.get_ref().and_then(|e| e.downcast_ref::<InTheWay>()) {
                Some(InTheWay(why)) => {
                    NotTaken::Refused(Refused::new(format!("'{name}', where {why} lies")))
                }
                None => NotTaken::Failed(format!("{}: {error}", crate::place::shown(&path))),
            }
        })
    }

    fn put_at(&mut self, path: &Path, kind: &Kind, content: &mut dyn Read) -> io::Result<()> {
        let no_name = || io::Error::from(io::ErrorKind::InvalidInput);
        let parent = path.parent().ok_or_else(no_name)?;
        let name = Path::new(path.file_name().ok_or_else(no_name)?);
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            self.last = Some((parent.to_owned(), make(parent)?));
        }
        let Some((_, folder)) = &self.last else { return Err(no_name()) };
        if *kind == Kind::Folder {
            return folder.enter_or_make(name).map(drop);
        }
        let there = match folder.look(name)?.map(|seen| seen.kind) {
            Some(There::Folder) => return Err(in_the_way("a folder")),
            Some(There::Other) => return Err(in_the_way("something that is no file")),
            there => there,
        };
        let buffer = &mut self.buffer;
        if there.is_none() {
            return fill(folder, name, kind, content, buffer);
        }
        let fresh = fresh_name()?;
        let replaced =
            fill(folder, &fresh, kind, content, buffer).and_then(|()| folder.rename(&fresh, name));
        replaced.inspect_err(|_| drop(folder.remove(&fresh)))?;
        self.replaced.count += 1;
        if self.replaced.names.len() < NAMED {
            self.replaced.names.push(crate::place::shown(path));
        }
        Ok(())
    }
}

fn fill(
    folder: &Folder,
    name: &Path,
    kind: &Kind,
    content: &mut dyn Read,
    buffer: &mut [u8],
) -> io::Result<()> {
    match kind {
        Kind::Folder => Ok(()),
        Kind::Link { target } => folder.link(name, OsStr::new(target)),
        Kind::File { size, runs } => {
            folder.make_file(name, *runs, |file| copy(content, file, *size, buffer))
        }
    }
}

/// All of it, or an error: a stream may break off.
pub fn copy(
    content: &mut dyn Read,
    file: &mut File,
    size: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match content.read(&mut buffer[..most]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                file.write_all(&buffer[..n])?;
                left -= n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The folder at a path, made as far as it is missing.
pub fn make(path: &Path) -> io::Result<Folder> {
    let mut folder = Folder::root()?;
    for part in path.components().skip(1) {
        folder = folder.enter_or_make(Path::new(part.as_os_str()))?;
    }
    Ok(folder)
}

/// Something on the host that nothing takes the place of.
#[derive(Debug)]
struct InTheWay(&'static str);

impl std::fmt::Display for InTheWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lies there", self.0)
    }
}

impl std::error::Error for InTheWay {}

fn in_the_way(what: &'static str) -> io::Error {
    io::Error::other(InTheWay(what))
}
