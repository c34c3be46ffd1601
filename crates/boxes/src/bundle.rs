//! Commits on their way between a box and the host, as git bundles.
//!
//! What a box sends is hostile: its first line is bounded, its size is bounded, and nothing of it
//! is interpreted here beyond one object id. Whether the bundle holds what it says is for git to
//! check when the host fetches from it.

use crate::create::json_line;
use crate::engine::limited;
use crate::exec::{CtlCall, Nothing, Sink};
use crate::repo::is_oid;
use crate::{Boxes, Error, Record};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use protocol::ctl::{BundleHead, Unbundle};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// The first line of an answer: one small JSON object.
const HEAD_LIMIT: usize = 4 * 1024;
/// A box that takes longer is stalling: whoever waits holds up the box's other work.
const PATIENCE: Duration = Duration::from_secs(120);

impl Boxes {
    /// Asks the box for its branch. `haves` are commits the host has; what is missing is written
    /// to `dest`, at most `limit` bytes. Answers the branch's commit, none when there is none.
    /// The file is empty when that commit is one of the haves.
    pub async fn export_bundle(
        &self,
        record: &Record,
        branch: &str,
        haves: &[String],
        dest: &Path,
        limit: u64,
    ) -> Result<Option<String>, Error> {
        let bad = |why: &str| Error::BadAnswer { command: "bundle".into(), why: why.into() };
        if branch.is_empty() || branch.starts_with('-') || !haves.iter().all(|have| is_oid(have)) {
            return Err(bad("the request names no branch and commits"));
        }
        let file = File::create(dest).await.map_err(|error| Error::io("write", dest, error))?;
        let mut sink =
            BundleFile { head: Head::Coming(BytesMut::new()), file, dest, left: limit, limit };
        let mut args = vec!["bundle".to_owned(), branch.to_owned()];
        args.extend(haves.iter().cloned());
        let call = CtlCall { args, ..CtlCall::default() };
        let asked = self.ctl(&record.container, call, stream::empty(), &mut sink);
        limited("get the branch from the box", PATIENCE, asked).await??;
        sink.file.flush().await.map_err(|error| Error::io("write", dest, error))?;
        match sink.head {
            Head::Read(head) => Ok(head.oid),
            Head::Coming(_) => Err(bad("no first line")),
        }
    }

    /// Gives the box objects and sets refs in it.
    pub async fn import_bundle(
        &self,
        record: &Record,
        plan: &Unbundle,
        bundle: Option<&Path>,
    ) -> Result<(), Error> {
        let line = json_line(&Unbundle { bundle: bundle.is_some(), ..plan.clone() })?;
        let file = match bundle {
            Some(path) => {
                Some(File::open(path).await.map_err(|error| Error::io("read", path, error))?)
            }
            None => None,
        };
        let call = CtlCall { args: vec!["unbundle".to_owned()], ..CtlCall::default() };
        let mut nothing = Nothing;
        let told = self.ctl(&record.container, call, feed(line, file), &mut nothing);
        limited("bring commits to the box", PATIENCE, told).await?
    }
}

fn feed(line: Bytes, file: Option<File>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let rest = stream::iter(file)
        .flat_map(|file| tokio_util::io::ReaderStream::with_capacity(file, 64 * 1024));
    stream::once(async { Ok(line) }).chain(rest)
}

/// Splits an answer into its first line and the file after it.
struct BundleFile<'a> {
    head: Head,
    file: File,
    dest: &'a Path,
    left: u64,
    limit: u64,
}

enum Head {
    Coming(BytesMut),
    Read(BundleHead),
}

impl Sink for BundleFile<'_> {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        let body = match &mut self.head {
            Head::Read(_) => bytes,
            Head::Coming(line) => {
                line.extend_from_slice(&bytes);
                let Some(end) = line.iter().take(HEAD_LIMIT).position(|byte| *byte == b'\n') else {
                    return if line.len() < HEAD_LIMIT {
                        Ok(())
                    } else {
                        Err(bad_head("too long"))
                    };
                };
                let body = line.split_off(end + 1).freeze();
                self.head = Head::Read(parse_head(line)?);
                body
            }
        };
        let size = body.len() as u64;
        self.left = self.left.checked_sub(size).ok_or(Error::TooLarge { limit: self.limit })?;
        self.file.write_all(&body).await.map_err(|error| Error::io("write", self.dest, error))
    }
}

fn parse_head(line: &[u8]) -> Result<BundleHead, Error> {
    let head: BundleHead =
        serde_json::from_slice(line).map_err(|error| bad_head(&error.to_string()))?;
    match &head.oid {
        Some(oid) if !is_oid(oid) => Err(bad_head("not an object id")),
        _ => Ok(head),
    }
}

fn bad_head(why: &str) -> Error {
    Error::BadAnswer { command: "bundle".to_owned(), why: format!("its first line: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "0123456789012345678901234567890123456789";

    async fn answer(pieces: &[&[u8]], limit: u64) -> Result<(Option<String>, Vec<u8>), Error> {
        let temp = tempfile::tempdir().unwrap();
        let dest = temp.path().join("b");
        let file = File::create(&dest).await.unwrap();
        let head = Head::Coming(BytesMut::new());
        let mut sink = BundleFile { head, file, dest: &dest, left: limit, limit };
        for piece in pieces {
            sink.take(Bytes::copy_from_slice(piece)).await?;
        }
        sink.file.flush().await.unwrap();
        let Head::Read(head) = sink.head else { panic!("no head") };
        Ok((head.oid, std::fs::read(&dest).unwrap()))
    }

    #[tokio::test]
    async fn the_first_line_is_split_off_wherever_it_is_cut() {
        let whole = format!("{{\"oid\":\"{OID}\"}}\nbody\nmore");
        for at in [1, 10, whole.len() - 10, whole.len() - 9, whole.len() - 1] {
            let (a, b) = whole.as_bytes().split_at(at);
            let (oid, body) = answer(&[a, b], 100).await.unwrap();
            assert_eq!((oid.as_deref(), body.as_slice()), (Some(OID), b"body\nmore".as_slice()));
        }
        assert_eq!(answer(&[b"{\"oid\":null}\n"], 0).await.unwrap(), (None, vec![]));
    }

    #[tokio::test]
    async fn hostile_answers_are_refused() {
        let long = vec![b'x'; 5000];
        for bad in [&b"{}x\n"[..], b"{\"oid\":\"--upload-pack=x\"}\n", b"[]\n", b"\n", &long] {
            assert!(matches!(answer(&[bad], 10).await, Err(Error::BadAnswer { .. })));
        }
        let too_much = answer(&[b"{\"oid\":null}\n", &[0; 10], b"x"], 10).await;
        assert!(matches!(too_much, Err(Error::TooLarge { limit: 10 })));
    }
}
