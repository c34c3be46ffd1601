//! The list as a tar stream for `agentbox-ctl carry`, and the copying itself.
//!
//! Read a second time and by handle: what has changed its kind, has grown beyond the limit or changes
//! under the reader's hands ends the copy.

use super::{Entry, Found, Plan, What, link_target, opened, walk};
use crate::create::json_line;
use crate::engine::limited;
use crate::exec::{CtlCall, Nothing};
use crate::files::Sender;
use crate::{Boxes, Error};
use ::project::render::{self, Values};
use bytes::Bytes;
use files::folder::Kind;
use futures_util::{StreamExt, stream};
use protocol::carry::{Carried, CarryBy, CarryIn, CarryInto};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(600);

impl Boxes {
    /// Copies what is on the list into a box that is held.
    pub(crate) async fn carry(
        &self,
        container: &str,
        plan: &Plan,
        values: Values,
        by: CarryBy,
    ) -> Result<Vec<Carried>, Error> {
        let line = json_line(&plan.told())?;
        let (sender, chunks) = mpsc::channel::<io::Result<Bytes>>(8);
        let plan = plan.clone();
        let packing = tokio::task::spawn_blocking(move || {
            let packed = plan.pack(&values, by, Sender::new(sender.clone()));
            // A stream that ends early is no whole archive; whoever reads it says so.
            if let Err(e) = &packed {
                let _ = sender.blocking_send(Err(io::Error::other(e.to_string())));
            }
            packed
        });
        let tar = stream::unfold(chunks, |mut chunks| async {
            chunks.recv().await.map(|chunk| (chunk, chunks))
        });
        let feed = stream::iter([Ok(line)]).chain(tar);
        let call = CtlCall {
            args: vec!["carry".to_owned()],
            user: Some("0".to_owned()),
            ..CtlCall::default()
        };
        let mut nothing = Nothing;
        let told = self.ctl(container, call, feed, &mut nothing);
        let told = limited("copy files from this computer", PATIENCE, told).await;
        let packed = packing.await.map_err(|e| Error::Carry(e.to_string()))?;
        match (packed, told.and_then(|done| done)) {
            (Ok(carried), Ok(())) => Ok(carried),
            // A box that stopped reading has said why; else what could not be read here matters.
            (_, Err(said @ Error::InBox { .. })) => Err(said),
            (Err(why), _) => Err(Error::Carry(why.to_string())),
            (Ok(_), Err(e)) => Err(e),
        }
    }
}

impl Plan {
    /// What the box is told. Entries that are not there keep their number.
    fn told(&self) -> CarryIn {
        let told = |entry: &Entry| CarryInto {
            dest: entry.planned.dest.clone(),
            name: entry.name(),
            folder: matches!(entry.what, What::Folder { .. }),
            user: entry.planned.item.user,
        };
        CarryIn { entries: self.entries.iter().map(told).collect() }
    }

    pub(super) fn pack(
        &self,
        values: &Values,
        by: CarryBy,
        into: impl Write,
    ) -> io::Result<Vec<Carried>> {
        let mut tar = tar::Builder::new(into);
        let mut carried = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let shown = ::project::carry::shown(&entry.planned.item);
            let packed = self.pack_one(number, entry, values, by, &mut tar);
            carried.extend(packed.map_err(|e| io::Error::other(format!("{shown}: {e}")))?);
        }
        tar.into_inner()?.flush()?;
        Ok(carried)
    }

    /// None when it is not there.
    pub(super) fn pack_one<W: Write>(
        &self,
        number: usize,
        entry: &Entry,
        values: &Values,
        by: CarryBy,
        tar: &mut tar::Builder<W>,
    ) -> io::Result<Option<Carried>> {
        let mut reading = Reading { tar, left: self.limit, hash: Sha256::new(), bytes: 0 };
        match entry.what {
            What::Missing => return Ok(None),
            What::File { .. } => reading.file(entry, number, values)?,
            What::Folder { .. } => reading.folder(entry, number)?,
        }
        let (bytes, hash) = (reading.bytes, hex(reading.hash));
        let line = entry.line();
        Ok(Some(Carried {
            src: entry.real.display().to_string(),
            dest: entry.place(),
            bytes,
            hash,
            by,
            kind: line.kind,
            mode: entry.planned.item.mode.map(|mode| format!("{mode:04o}")),
            user: line.user,
            terms: Some(entry.terms()),
            warnings: line.warnings,
        }))
    }
}

/// One entry on its way into the archive.
struct Reading<'a, W: Write> {
    tar: &'a mut tar::Builder<W>,
    /// So much may still be read.
    left: u64,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Reading<'_, W> {
    fn file(&mut self, entry: &Entry, number: usize, values: &Values) -> io::Result<()> {
        let (folder, name) = opened(&entry.real)?;
        let file = folder.read(&name)?;
        let mode = entry.planned.item.mode;
        let at = number.to_string();
        if !entry.planned.is_rendered() {
            return self.content(file, Path::new(&at), mode);
        }
        let size = file.metadata()?.len();
        let own = file.metadata()?.mode() & 0o777;
        self.count(size)?;
        let mut bytes = Vec::new();
        file.take(size).read_to_end(&mut bytes)?;
        self.hash.update(&bytes);
        let text = String::from_utf8(bytes)
            .map_err(|_| io::Error::other("it is not UTF-8, so nothing can be replaced in it"))?;
        let item = &entry.planned.item;
        let rendered = render::render(&text, item.replace_envs, &entry.planned.rules, values)
            .map_err(io::Error::other)?;
        for name in rendered.without_value {
            tracing::warn!(name, file = %entry.real.display(), "a placeholder has no value");
        }
        let text = rendered.text.as_bytes();
        let mut header = header(tar::EntryType::Regular, mode.unwrap_or(own), text.len() as u64);
        self.tar.append_data(&mut header, at, text)
    }

    fn folder(&mut self, entry: &Entry, number: usize) -> io::Result<()> {
        let mode = entry.planned.item.mode;
        let of_folder = |own: u32| mode.map_or(own, passable);
        let top = super::seen(&entry.real)?;
        if top.kind != Kind::Folder {
            return Err(io::Error::other("it is no folder any more"));
        }
        let mut dir = header(tar::EntryType::Directory, of_folder(top.mode & 0o777), 0);
        self.tar.append_data(&mut dir, format!("{number}/"), io::empty())?;
        walk(&entry.real, entry.planned.excludes(), &mut |found: &Found<'_>| {
            let at = format!("{number}/{}", found.path);
            self.hash.update([0]);
            self.hash.update(found.path.as_bytes());
            match found.seen.kind {
                Kind::Folder => {
                    let own = of_folder(found.seen.mode & 0o777);
                    let mut header = header(tar::EntryType::Directory, own, 0);
                    self.tar.append_data(&mut header, format!("{at}/"), io::empty())
                }
                Kind::File => self.content(found.folder.read(found.name)?, Path::new(&at), mode),
                Kind::Link => match link_target(found)? {
                    Some(target) => {
                        self.hash.update(target.as_encoded_bytes());
                        let mut header = header(tar::EntryType::Symlink, 0o777, 0);
                        self.tar.append_link(&mut header, &at, &target)
                    }
                    None => Ok(()),
                },
                Kind::Other => Ok(()),
            }
        })
    }

    fn content(&mut self, file: File, at: &Path, mode: Option<u32>) -> io::Result<()> {
        let data = file.metadata()?;
        let size = data.len();
        self.count(size)?;
        let mode = mode.unwrap_or(data.mode() & 0o777);
        let mut header = header(tar::EntryType::Regular, mode, size);
        let mut reader = Hashing { from: file.take(size), hash: &mut self.hash, read: 0 };
        self.tar.append_data(&mut header, at, &mut reader)?;
        if reader.read != size {
            return Err(io::Error::other("it changed while it was copied; try again"));
        }
        Ok(())
    }

    fn count(&mut self, size: u64) -> io::Result<()> {
        let left = self.left.checked_sub(size);
        self.left = left.ok_or_else(|| io::Error::other("it has grown beyond box.cpMaxBytes"))?;
        self.bytes += size;
        Ok(())
    }
}

/// A folder one may read may be entered, too.
fn passable(mode: u32) -> u32 {
    mode | ((mode & 0o444) >> 2)
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header
}

pub(super) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Hashing<'a, R> {
    from: R,
    hash: &'a mut Sha256,
    read: u64,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(into)?;
        self.hash.update(&into[..n]);
        self.read += n as u64;
        Ok(n)
    }
}
