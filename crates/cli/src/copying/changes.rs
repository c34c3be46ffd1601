//! What a box has that differs from this computer, found while it comes.
//!
//! Each file is compared by its content as it arrives. Only what differs is kept, in a file without
//! a name, until the person has seen the list and said yes; then it is written from there. Nothing
//! is ever deleted.

use super::stream::{Moving, Packed};
use crate::context::Context;
use crate::error::CommandError;
use files::folder::{Folder, Kind as There, Seen, Way, is_detour};
use files::landing::Landing;
use files::place::Place;
use files::rules::{Refused, Tops, said};
use files::stream::{Arrived, Bounds, Ended, Kind, NotTaken, Taken, read};
use host::client::Client;
use protocol::control::Target;
use protocol::ctl::Pack;
use protocol::text::size;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a box may send without the person's word for it.
pub const MOST_BYTES: u64 = 4 * 1024 * 1024 * 1024;
pub const MOST_ENTRIES: usize = 500_000;
const CHUNK: usize = 256 * 1024;

/// What a box may send. With `all` only the disk is a limit.
pub fn bounds(tops: Tops<'_>, git: bool, all: bool) -> Bounds<'_> {
    let (bytes, entries) = if all { (u64::MAX, 50_000_000) } else { (MOST_BYTES, MOST_ENTRIES) };
    Bounds { tops, git, bytes, entries }
}

/// Why an archive was not read to its end, for people.
pub fn cut_short(ended: Ended) -> CommandError {
    match ended {
        Ended::Broken(what) => CommandError::failed(format!("the box sent {what}")),
        Ended::TooMuch { bytes, entries } => {
            let text = format!("the box sends more than {} or {entries} files", size(bytes));
            CommandError::failed(text).hint("--yes takes it all the same")
        }
        Ended::Failed(why) => CommandError::failed(format!("cannot write {why}")),
    }
}

/// Which files are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All that differ.
    Different,
    /// Only those that are not there at all.
    Missing,
}

/// One file or link that would be written.
#[derive(Debug)]
pub struct Change {
    pub arrived: Arrived,
    path: PathBuf,
    /// What was there when it was compared.
    before: Option<Seen>,
    /// Where its content lies in the spool.
    at: u64,
}

impl Change {
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    pub fn bytes(&self) -> u64 {
        match self.arrived.kind {
            Kind::File { size, .. } => size,
            _ => 0,
        }
    }
}

pub struct Changes {
    place: Place,
    spool: File,
    pub list: Vec<Change>,
    pub taken: Taken,
}

/// How a file becomes harmless; [`None`] of the outer is for files that come as they are.
pub type Tame = fn(&Path) -> Option<fn(&str) -> Option<String>>;

/// The largest file that is read to be written anew.
const MOST_TAMED: u64 = 1024 * 1024;

/// What to ask for, and where it would go.
pub struct Ask<'a> {
    pub what: Pack,
    pub tops: Tops<'a>,
    pub into: PathBuf,
    pub wanted: Wanted,
    /// Of these nothing is taken.
    pub skip: fn(&Path) -> bool,
    /// Files that are read and written anew, and how; none where nothing of one may be taken.
    pub tame: Tame,
    /// However much it is.
    pub all: bool,
}

impl Changes {
    /// Has the box send its files and keeps those that differ.
    pub fn find(
        ctx: &Context,
        client: &Client,
        target: &Target,
        ask: Ask<'_>,
    ) -> Result<Self, CommandError> {
        let spool = tempfile::tempfile_in(&ctx.home)?;
        let folder = ask.into.canonicalize().unwrap_or(ask.into);
        let place = Place { folder, renamed: None };
        let mut comparing = Comparing {
            place: &place,
            spool: &spool,
            at: 0,
            way: Way::default(),
            wanted: ask.wanted,
            list: Vec::new(),
            ours: vec![0; CHUNK],
            theirs: vec![0; CHUNK],
        };
        let mut taken = Taken::default();
        let moving = Moving::new(&ctx.ui, "Compare with the box", None);
        let mut packed = Packed::open(client, target, &ask.what, moving)?;
        let done =
            read(&mut packed, bounds(ask.tops, false, ask.all), &mut taken, |arrived, content| {
                if (ask.skip)(&arrived.path) {
                    return Ok(());
                }
                let Some(tame) = (ask.tame)(&arrived.path) else {
                    return comparing.take(arrived, content);
                };
                match tamed(arrived, content, tame)? {
                    Some((arrived, text)) => comparing.take(&arrived, &mut text.as_bytes()),
                    None => Ok(()),
                }
            });
        let list = comparing.list;
        match done {
            Ok(()) => drop(packed.end()?),
            Err(ended @ Ended::Broken(_)) => {
                // A box that could not even pack says so better than its broken archive does.
                packed.end()?;
                return Err(cut_short(ended));
            }
            Err(ended) => return Err(cut_short(ended)),
        }
        Ok(Self { place, spool, list, taken })
    }

    /// Writes what was shown. What has changed since then ends it.
    pub fn write(&self) -> Result<usize, CommandError> {
        let mut landing = Landing::new(self.place.clone());
        let mut way = Way::default();
        for change in &self.list {
            let now = way.look(&change.path);
            if !now.is_ok_and(|now| now == change.before) {
                let text = format!("{} has changed meanwhile", super::shown(&change.path));
                return Err(CommandError::failed(text).hint("run it again to see what differs now"));
            }
        }
        for (written, change) in self.list.iter().enumerate() {
            let mut content = &self.spool;
            content.seek(SeekFrom::Start(change.at))?;
            let mut content = content.take(change.bytes());
            landing.put(&change.arrived, &mut content).map_err(|e| {
                let why = match e {
                    NotTaken::Refused(what) => format!("cannot write {what}"),
                    NotTaken::Failed(why) => format!("cannot write {why}"),
                };
                CommandError::failed(format!("{why}; {written} file(s) had been written before"))
            })?;
        }
        Ok(self.list.len())
    }
}

/// A file without what could do harm here; none when nothing is left of it.
fn tamed(
    arrived: &Arrived,
    content: &mut dyn Read,
    tame: fn(&str) -> Option<String>,
) -> Result<Option<(Arrived, String)>, NotTaken> {
    let refused = |why: &str| {
        let name = said(arrived.path.as_os_str().as_bytes());
        NotTaken::Refused(Refused::new(format!("'{name}', {why}")))
    };
    let Kind::File { size, .. } = arrived.kind else {
        return Err(refused("which is no file"));
    };
    if size > MOST_TAMED {
        return Err(refused("which is too large"));
    }
    let mut bytes = Vec::new();
    let failed = |e: io::Error| NotTaken::Failed(format!("{}: {e}", super::shown(&arrived.path)));
    content.take(size).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8(bytes).ok().and_then(|text| tame(&text));
    Ok(text.map(|text| {
        let kind = Kind::File { size: text.len() as u64, runs: false };
        (Arrived { kind, ..arrived.clone() }, text)
    }))
}

struct Comparing<'a> {
    place: &'a Place,
    spool: &'a File,
    at: u64,
    way: Way,
    wanted: Wanted,
    list: Vec<Change>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl Comparing<'_> {
    fn take(&mut self, arrived: &Arrived, content: &mut dyn Read) -> Result<(), NotTaken> {
        if arrived.kind == Kind::Folder {
            return Ok(());
        }
        let path = self.place.path_of(&arrived.path);
        let refuse = |why: &str| {
            let name = said(arrived.path.as_os_str().as_bytes());
            Err(NotTaken::Refused(Refused::new(format!("'{name}', {why}"))))
        };
        let failed = |e: io::Error| NotTaken::Failed(format!("{}: {e}", super::shown(&path)));
        let before = match self.way.look(&path) {
            Ok(before) => before,
            Err(e) if is_detour(&e) => return refuse("which would lie behind a link or in a file"),
            Err(e) => return Err(failed(e)),
        };
        match before.as_ref().map(|seen| seen.kind) {
            Some(_) if self.wanted == Wanted::Missing => return Ok(()),
            Some(There::Folder) => return refuse("where a folder lies"),
            Some(There::Other) => return refuse("where something lies that is no file"),
            _ => {}
        }
        let at = self.at;
        let same = match &arrived.kind {
            Kind::Folder => true,
            Kind::Link { target } => {
                let is_link = before.as_ref().is_some_and(|seen| seen.kind == There::Link);
                is_link && path.read_link().is_ok_and(|now| now.as_os_str() == target)
            }
            Kind::File { size, .. } => {
                self.spool_file(&path, before.as_ref(), *size, content).map_err(failed)?
            }
        };
        if same {
            self.at = at;
        } else {
            self.list.push(Change { arrived: arrived.clone(), path, before, at });
        }
        Ok(())
    }

    /// Keeps a file's content; whether it is what is there already.
    fn spool_file(
        &mut self,
        path: &Path,
        before: Option<&Seen>,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<bool> {
        let alike = before.is_some_and(|seen| seen.kind == There::File && seen.size == size);
        let mut ours = if alike { open(path).ok() } else { None };
        let mut spool = self.spool;
        spool.seek(SeekFrom::Start(self.at))?;
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
            let n = content.read(&mut self.theirs[..most])?;
            if n == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the box broke off"));
            }
            spool.write_all(&self.theirs[..n])?;
            let same = |file: &mut File, into: &mut [u8]| file.read_exact(into).is_ok();
            if let Some(file) = &mut ours
                && !(same(file, &mut self.ours[..n]) && self.ours[..n] == self.theirs[..n])
            {
                ours = None;
            }
            left -= n as u64;
        }
        self.at += size;
        Ok(ours.is_some())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_name = || io::Error::from(io::ErrorKind::InvalidInput);
    let (parent, name) =
        (path.parent().ok_or_else(no_name)?, path.file_name().ok_or_else(no_name)?);
    Folder::at(parent)?.read(Path::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_some_size_is_read_to_be_written_anew() {
        let take = |kind: Kind, mut bytes: &[u8]| {
            let arrived = Arrived { path: "config.toml".into(), kind };
            tamed(&arrived, &mut bytes, |text| text.strip_prefix("good ").map(str::to_owned))
        };
        let file = |size| Kind::File { size, runs: true };
        let (arrived, text) = take(file(7), b"good ab").unwrap().unwrap();
        assert_eq!((arrived.kind, text.as_str()), (Kind::File { size: 2, runs: false }, "ab"));
        for nothing in [&b"evil ab"[..], b"good \xff\xff"] {
            assert!(take(file(7), nothing).unwrap().is_none());
        }
        let link = Kind::Link { target: "/etc/passwd".into() };
        for bad in [link, Kind::Folder, file(MOST_TAMED + 1)] {
            assert!(matches!(take(bad, b"good ab"), Err(NotTaken::Refused(_))));
        }
    }
}
