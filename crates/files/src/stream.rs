//! An archive of a box taken entry by entry, while it comes.
//!
//! What may not be is left out and named; the rest is handed on. Nothing is held but numbers: one
//! for each entry, so that none comes twice and none lies in something that is no folder.

use crate::rules::{self, Refused, Tops, said};
use std::collections::HashSet;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use tar::EntryType;

/// How many refused entries are named; the rest are counted.
const NAMED: usize = 50;
/// Rights that are never taken over: whose a program runs as, and who may remove what.
const SPECIAL: u32 = 0o7000;

/// What may come.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    pub tops: Tops<'a>,
    /// Git's own data may be among it.
    pub git: bool,
    pub bytes: u64,
    pub entries: usize,
}

/// One entry that may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Relative, of plain names only; never empty.
    pub path: PathBuf,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File { size: u64, runs: bool },
    Link { target: OsString },
}

/// Why an entry was not taken by whoever it was handed to.
#[derive(Debug)]
pub enum NotTaken {
    /// This one is left out, and named.
    Refused(Refused),
    /// Nothing more can be taken.
    Failed(String),
}

/// Why there is no more.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The box sent something that cannot be read on from.
    Broken(Refused),
    /// It sent more than it may.
    TooMuch {
        bytes: u64,
        entries: usize,
    },
    Failed(String),
}

/// What has come.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Files and links.
    pub files: usize,
    pub bytes: u64,
    /// In words that follow “refused”.
    pub refused: Vec<String>,
    /// How many more were refused.
    pub more_refused: usize,
}

impl Taken {
    pub fn is_whole(&self) -> bool {
        self.refused.is_empty()
    }

    fn refuse(&mut self, what: &Refused) {
        if self.refused.len() < NAMED {
            self.refused.push(what.to_string());
        } else {
            self.more_refused += 1;
        }
    }
}

/// Reads an archive to its end and hands each entry to `take`, with its content.
pub fn read(
    from: impl Read,
    bounds: Bounds<'_>,
    taken: &mut Taken,
    mut take: impl FnMut(&Arrived, &mut dyn Read) -> Result<(), NotTaken>,
) -> Result<(), Ended> {
    let broken = |e: std::io::Error| Ended::Broken(rules::broken(&e));
    let mut archive = tar::Archive::new(from);
    let mut known = Known::default();
    let (mut long_name, mut long_link) = (None, None);
    let mut seen = 0usize;
    for entry in archive.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        seen += 1;
        taken.bytes = taken.bytes.saturating_add(entry.size());
        // Long names are entries of their own, one or two before each real one.
        if taken.bytes > bounds.bytes || seen / 3 > bounds.entries || known.count > bounds.entries {
            return Err(Ended::TooMuch { bytes: bounds.bytes, entries: bounds.entries });
        }
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                long_name = Some(rules::long_name(&mut entry).map_err(Ended::Broken)?);
            }
            EntryType::GNULongLink => {
                long_link = Some(rules::long_name(&mut entry).map_err(Ended::Broken)?);
            }
            kind => {
                let header = entry.header();
                let name = long_name.take().unwrap_or_else(|| header.path_bytes().into_owned());
                let link = header.link_name_bytes().unwrap_or_default().into_owned();
                let link = long_link.take().unwrap_or(link);
                let sent = Sent {
                    kind,
                    name: &name,
                    link: &link,
                    mode: header.mode().unwrap_or(0),
                    size: entry.size(),
                };
                let done = match known.judge(&sent, bounds) {
                    Ok(Some(arrived)) => take(&arrived, &mut entry)
                        .map(|()| taken.files += usize::from(arrived.kind != Kind::Folder)),
                    Ok(None) => Ok(()),
                    Err(refused) => Err(NotTaken::Refused(refused)),
                };
                match done {
                    Ok(()) => {}
                    Err(NotTaken::Refused(refused)) => {
                        known.close(&name);
                        taken.refuse(&refused);
                    }
                    Err(NotTaken::Failed(why)) => return Err(Ended::Failed(why)),
                }
            }
        }
    }
    Ok(())
}

/// An entry as its header tells it.
struct Sent<'a> {
    kind: EntryType,
    name: &'a [u8],
    link: &'a [u8],
    mode: u32,
    size: u64,
}

/// What came before, as numbers nobody can foresee.
#[derive(Default)]
struct Known {
    hasher: RandomState,
    folders: HashSet<u64>,
    /// Files, links, and whatever was refused: nothing lies in them.
    others: HashSet<u64>,
    count: usize,
}

impl Known {
    /// The entry as it may be taken; none when it is only the folder everything lies in.
    fn judge(&mut self, sent: &Sent<'_>, bounds: Bounds<'_>) -> Result<Option<Arrived>, Refused> {
        self.count += 1;
        let refuse = |why: &str| Err(Refused::new(format!("'{}', {why}", said(sent.name))));
        let parts = rules::parts(sent.name, bounds.tops)?;
        if !bounds.git && parts.iter().any(|part| part.eq_ignore_ascii_case(b".git")) {
            return refuse("which is git's own");
        }
        let kind = match sent.kind {
            EntryType::Directory => Kind::Folder,
            EntryType::Regular | EntryType::Continuous if !parts.is_empty() => {
                Kind::File { size: sent.size, runs: sent.mode & 0o111 != 0 }
            }
            EntryType::Symlink if !parts.is_empty() => {
                rules::check_link(&parts, sent.link, bounds.tops)?;
                Kind::Link { target: OsString::from_vec(sent.link.to_vec()) }
            }
            other => return refuse(&format!("which is neither file, folder nor link ({other:?})")),
        };
        if sent.mode & SPECIAL != 0 {
            return refuse("which is to run with another's rights");
        }
        for upto in 1..parts.len() {
            if self.others.contains(&self.number(&parts[..upto])) {
                return refuse("which lies in something that is no folder");
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let number = self.number(&parts);
        let fresh = match kind {
            Kind::Folder => !self.others.contains(&number),
            _ => !self.others.contains(&number) && !self.folders.contains(&number),
        };
        if !fresh {
            return refuse("which came twice");
        }
        // What something lies in is a folder, whether it was sent as one or not.
        for upto in 1..parts.len() {
            let number = self.number(&parts[..upto]);
            self.folders.insert(number);
        }
        let set = if kind == Kind::Folder { &mut self.folders } else { &mut self.others };
        set.insert(number);
        let path = parts.iter().map(|part| OsString::from_vec(part.to_vec())).collect();
        Ok(Some(Arrived { path, kind }))
    }

    /// Nothing may lie in it from here on.
    fn close(&mut self, name: &[u8]) {
        let parts: Vec<&[u8]> = name.split(|b| *b == b'/').filter(|p| !p.is_empty()).collect();
        if !parts.is_empty() && parts.len() <= rules::MAX_DEPTH {
            let number = self.number(&parts);
            if !self.folders.contains(&number) {
                self.others.insert(number);
            }
        }
    }

    fn number(&self, parts: &[&[u8]]) -> u64 {
        self.hasher.hash_one(parts)
    }
}

#[cfg(test)]
mod tests;
