//! The list as a tar stream for `agentbox-ctl carry`, and the copying itself.
//!
//! Read a second time and by handle: what has changed its kind, has grown beyond the limit or changes
//! under the reader's hands is not copied. Each entry is for itself: what fails of one is told, here or by
//! the box, and the others come all the same. The box's word is only that an entry failed, and why; that it
//! was sent stays on record.

use super::{Entry, Found, Plan, What, Yes, link_target, opened, walk};
use crate::answer::Answer;
use crate::create::json_line;
use crate::engine::limited;
use crate::exec::CtlCall;
use crate::files::Sender;
use crate::{Boxes, Error};
use ::project::render::{self, Values};
use bytes::Bytes;
use files::folder::Kind;
use futures_util::{StreamExt, stream};
use protocol::carry::{Carried, CarryIn, CarryInto, CarryOut, LONGEST_WHY};
use protocol::text::shortened;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(600);
/// A reason for each entry of the longest list fits.
const MAX_ANSWER: usize = 512 * 1024;

impl Boxes {
    /// Copies what is on the list into a box that is held; every entry that is there, those that failed
    /// among them.
    pub(crate) async fn carry(
        &self,
        container: &str,
        plan: &Plan,
        values: Values,
        yes: Yes,
    ) -> Result<Vec<Carried>, Error> {
        let line = json_line(&plan.told())?;
        let (sender, chunks) = mpsc::channel::<io::Result<Bytes>>(8);
        let packed = plan.clone();
        let packing = tokio::task::spawn_blocking(move || {
            let packed = packed.pack(&values, yes, Sender::new(sender.clone()));
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
        let mut answer = Answer::to("carry", MAX_ANSWER);
        let told = self.ctl(container, call, feed, &mut answer);
        let told = limited("copy files from this computer", PATIENCE, told).await;
        let packed = packing.await.map_err(|e| Error::Carry(e.to_string()))?;
        match (packed, told.and_then(|done| done)) {
            (Ok(packed), Ok(())) => plan.with_answer(packed, &answer),
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

    /// What was packed, and what the box says of it. One made before it answered anything has failed
    /// wherever something did.
    fn with_answer(&self, packed: Vec<Carried>, answer: &Answer) -> Result<Vec<Carried>, Error> {
        if answer.is_empty() {
            return Ok(packed);
        }
        let asked = |number: usize| self.entries.get(number).is_some_and(Entry::is_there);
        let said: CarryOut = answer.read()?;
        let mut failed = said.checked(asked).map_err(|why| answer.bad(why))?;
        let numbers = (0..self.entries.len()).filter(|number| asked(*number));
        let told = numbers.zip(packed).map(|(number, one)| {
            // What could not be read here is why it is not there.
            let why = one.failed.clone().or(failed.remove(&number));
            Carried { failed: why, ..one }
        });
        Ok(told.collect())
    }

    /// Of what was copied, what failed though the list wants it there.
    pub(crate) fn lacking(&self, carried: &[Carried]) -> Vec<String> {
        let there = self.entries.iter().filter(|entry| entry.is_there());
        let needed = there.zip(carried).filter(|(entry, _)| !entry.planned.item.optional);
        needed.filter_map(|(_, one)| one.failure()).collect()
    }

    /// Every entry that is there, in their order. An error is one of `into`.
    pub(super) fn pack(
        &self,
        values: &Values,
        yes: Yes,
        into: impl Write,
    ) -> io::Result<Vec<Carried>> {
        let mut tar = tar::Builder::new(Out::new(into));
        let mut carried = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let packed = self.pack_one(number, entry, values, yes, &mut tar)?;
            if packed.as_ref().is_some_and(|one| one.failed.is_some()) {
                let mut header = header(tar::EntryType::Regular, 0o600, 0);
                tar.append_data(&mut header, format!("!{number}"), io::empty())?;
            }
            carried.extend(packed);
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
        yes: Yes,
        tar: &mut tar::Builder<Out<W>>,
    ) -> io::Result<Option<Carried>> {
        let mut reading =
            Reading { tar, left: self.limit, hash: Sha256::new(), bytes: 0, unfilled: Vec::new() };
        let read = match entry.what {
            What::Missing => return Ok(None),
            What::File { .. } => reading.file(entry, number, values),
            What::Folder { .. } => reading.folder(entry, number),
        };
        let failed = match read {
            Err(e) if reading.tar.get_ref().broken => return Err(e),
            read => read.err().map(|e| shortened(&e.to_string(), LONGEST_WHY)),
        };
        let (bytes, hash, unfilled) = (reading.bytes, hex(reading.hash), reading.unfilled);
        let line = entry.line();
        Ok(Some(Carried {
            src: entry.real.display().to_string(),
            dest: entry.place(),
            bytes,
            hash,
            by: yes.by,
            approved_at: yes.at,
            kind: line.kind,
            mode: entry.planned.item.mode.map(|mode| format!("{mode:04o}")),
            user: line.user,
            terms: Some(entry.terms()),
            warnings: line.warnings,
            failed,
            unfilled,
        }))
    }
}

/// Where an archive goes. When that does not work, no entry is to blame.
pub(super) struct Out<W> {
    into: W,
    broken: bool,
}

impl<W> Out<W> {
    pub fn new(into: W) -> Self {
        Self { into, broken: false }
    }
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.into.write(bytes).inspect_err(|_| self.broken = true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush().inspect_err(|_| self.broken = true)
    }
}

/// One entry on its way into the archive.
struct Reading<'a, W: Write> {
    tar: &'a mut tar::Builder<Out<W>>,
    /// So much may still be read.
    left: u64,
    hash: Sha256,
    bytes: u64,
    unfilled: Vec<String>,
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
        self.unfilled = rendered.without_value;
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
        let mut reader = Whole { from: file, hash: &mut self.hash, left: size, failed: None };
        self.tar.append_data(&mut header, at, &mut reader)?;
        reader.failed.map_or(Ok(()), Err)
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

/// As many bytes as the archive says there are, whatever becomes of the file: the archive has to go on with
/// the next entry. What is missing is zeros.
struct Whole<'a, R> {
    from: R,
    hash: &'a mut Sha256,
    left: u64,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Whole<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let into = &mut into[..most];
        if into.is_empty() {
            return Ok(0);
        }
        let read = if self.failed.is_none() { self.from.read(into) } else { Ok(0) };
        let n = match read {
            Ok(n) if n > 0 => {
                self.hash.update(&into[..n]);
                n
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            short => {
                let changed = || io::Error::other("it changed while it was copied; try again");
                self.failed.get_or_insert_with(|| short.err().unwrap_or_else(changed));
                into.fill(0);
                most
            }
        };
        self.left -= n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Host;
    use super::*;
    use protocol::carry::CarryBy;
    use std::fs;

    const YES: Yes = Yes { by: CarryBy::Prompt, at: Some(7) };

    /// Names and contents of an archive.
    fn members(tar: &[u8]) -> Vec<(String, String)> {
        let mut archive = tar::Archive::new(tar);
        let read = |member: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut member = member.unwrap();
            let mut text = String::new();
            member.read_to_string(&mut text).unwrap();
            (member.path().unwrap().display().to_string(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn what_cannot_be_read_any_more_ends_no_other_entry() {
        let host = Host::new();
        fs::write(host.home.join("late"), "late").unwrap();
        let list = "['~/notes=/a', {src: ~/late, dest: /b, optional: true}, '~/.ssh/id_ed25519=/c', {src: ~/no, optional: true}]";
        let plan = host.resolve(list, 1000).unwrap();
        fs::remove_file(host.home.join("notes")).unwrap();
        fs::write(host.home.join("late"), "x".repeat(1001)).unwrap();
        let mut tar = Vec::new();
        let carried = plan.pack(&Values::default(), YES, &mut tar).unwrap();
        let failed: Vec<bool> = carried.iter().map(|one| one.failed.is_some()).collect();
        assert_eq!(failed, [true, true, false], "{carried:?}");
        assert!(carried.iter().all(|one| one.approved_at == Some(7)));
        let found = members(&tar);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["!0", "!1", "2"]);
        let lacking = plan.lacking(&carried);
        assert_eq!(lacking.len(), 1, "one need not be there: {lacking:?}");
        assert!(lacking[0].contains("/notes → /a: "), "{lacking:?}");
    }

    #[test]
    fn an_archive_goes_on_after_a_file_that_became_shorter() {
        let mut hash = Sha256::new();
        let mut reader = Whole { from: &b"ab"[..], hash: &mut hash, left: 5, failed: None };
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"ab\0\0\0");
        assert!(reader.failed.unwrap().to_string().contains("changed while"));
    }

    #[test]
    fn where_an_archive_goes_is_no_entrys_fault() {
        let host = Host::new();
        let plan = host.resolve("[~/notes]", 1000).unwrap();
        let mut small = [0; 600];
        assert!(plan.pack(&Values::default(), YES, &mut small[..]).is_err());
    }

    #[tokio::test]
    async fn a_box_says_which_entries_failed_and_nothing_else() {
        use crate::exec::Sink;
        let host = Host::new();
        let list = "[{src: ~/no, optional: true}, '~/notes=/a', '~/.ssh/id_ed25519=/b']";
        let plan = host.resolve(list, 1000).unwrap();
        let packed = plan.pack(&Values::default(), YES, io::sink()).unwrap();
        let told = async |text: &str| {
            let mut answer = Answer::to("carry", MAX_ANSWER);
            answer.take(Bytes::from(text.to_owned())).await.unwrap();
            plan.with_answer(packed.clone(), &answer)
        };
        let two = told(r#"{"failed":[{"entry":2,"why":"it is\u001b a folder"}]}"#).await.unwrap();
        let why: Vec<Option<&str>> = two.iter().map(|one| one.failed.as_deref()).collect();
        assert_eq!(why, [None, Some("it is\\x1b a folder")]);
        assert_eq!(two[1].hash, packed[1].hash, "it was sent");
        assert_eq!(told("").await.unwrap(), packed);
        for odd in
            [r#"{"failed":[{"entry":0,"why":""}]}"#, r#"{"failed":[{"entry":3,"why":""}]}"#, "{}"]
        {
            let error = told(odd).await.unwrap_err();
            assert!(matches!(error, Error::BadAnswer { .. }), "{odd}: {error}");
        }
    }
}
