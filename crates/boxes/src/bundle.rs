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
use protocol::ctl::{BundleHead, CloneIn, KnownTags, MAX_TAGS, TagsHead, Unbundle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// The first line of an answer: one JSON object, with a hundred tags at most.
const HEAD_LIMIT: usize = 64 * 1024;
/// A box that takes longer is stalling: whoever waits holds up the box's other work.
const PATIENCE: Duration = Duration::from_secs(120);
/// A clone may be large, and is written to disk in the box.
const CLONE_PATIENCE: Duration = Duration::from_secs(600);

impl Boxes {
    /// Asks the box for its branch of the repository in a folder of it. `haves` are commits the host has; what is missing is written
    /// to `dest`, at most `limit` bytes. Answers the branch's commit, none when there is none.
    /// The file is empty when that commit is one of the haves.
    pub async fn export_bundle(
        &self,
        record: &Record,
        repo: &str,
        branch: &str,
        haves: &[String],
        dest: &Path,
        limit: u64,
    ) -> Result<Option<String>, Error> {
        let bad = |why: &str| Error::BadAnswer { command: "bundle".into(), why: why.into() };
        if branch.is_empty() || branch.starts_with('-') || !haves.iter().all(|have| is_oid(have)) {
            return Err(bad("the request names no branch and commits"));
        }
        let mut args = bundle_of(repo);
        args.push(branch.to_owned());
        args.extend(haves.iter().cloned());
        let head: BundleHead = self.bundle(record, args, Bytes::new(), dest, limit).await?;
        branch_head(head)
    }

    /// Asks the box for the tags that are not among `known`. What is missing of them beyond `haves`
    /// is written to `dest`, at most `limit` bytes. The names are as the box gives them.
    pub async fn export_tags(
        &self,
        record: &Record,
        repo: &str,
        known: &KnownTags,
        haves: &[String],
        dest: &Path,
        limit: u64,
    ) -> Result<TagsHead, Error> {
        if !haves.iter().all(|have| is_oid(have)) {
            let why = "the request names no commits".to_owned();
            return Err(Error::BadAnswer { command: "bundle".into(), why });
        }
        let mut args = bundle_of(repo);
        args.push("--tags".to_owned());
        args.extend(haves.iter().cloned());
        tags_head(self.bundle(record, args, json_line(known)?, dest, limit).await?)
    }

    /// Runs `agentbox-ctl bundle …`; its first line, and the rest of its output as a file.
    async fn bundle<H: DeserializeOwned + Send>(
        &self,
        record: &Record,
        args: Vec<String>,
        input: Bytes,
        dest: &Path,
        limit: u64,
    ) -> Result<H, Error> {
        let file = File::create(dest).await.map_err(|error| Error::io("write", dest, error))?;
        let mut sink =
            BundleFile { head: Head::Coming(BytesMut::new()), file, dest, left: limit, limit };
        let call = CtlCall { args, ..CtlCall::default() };
        let asked = self.ctl(&record.container, call, feed(input, None), &mut sink);
        limited("get commits from the box", PATIENCE, asked).await??;
        sink.file.flush().await.map_err(|error| Error::io("write", dest, error))?;
        match sink.head {
            Head::Read(head) => Ok(head),
            Head::Coming(_) => Err(bad_head("there is none")),
        }
    }

    /// Gives the box objects and sets refs in it.
    pub async fn import_bundle(
        &self,
        record: &Record,
        plan: &Unbundle,
        bundle: Option<&Path>,
    ) -> Result<(), Error> {
        let plan = Unbundle { bundle: bundle.is_some(), ..plan.clone() };
        self.tell(record, "unbundle", &plan, bundle, PATIENCE).await
    }

    /// Makes a repository in the box of what the host cloned.
    pub async fn clone_in(
        &self,
        record: &Record,
        plan: &CloneIn,
        bundle: Option<&Path>,
    ) -> Result<(), Error> {
        self.tell(record, "clone-in", plan, bundle, CLONE_PATIENCE).await
    }

    /// Runs a command of `agentbox-ctl` that reads a line and a file.
    async fn tell(
        &self,
        record: &Record,
        command: &str,
        plan: &(impl Serialize + Sync),
        bundle: Option<&Path>,
        patience: Duration,
    ) -> Result<(), Error> {
        let line = json_line(plan)?;
        let file = match bundle {
            Some(path) => {
                Some(File::open(path).await.map_err(|error| Error::io("read", path, error))?)
            }
            None => None,
        };
        let call = CtlCall { args: vec![command.to_owned()], ..CtlCall::default() };
        let mut nothing = Nothing;
        let told = self.ctl(&record.container, call, feed(line, file), &mut nothing);
        limited("bring commits to the box", patience, told).await?
    }
}

fn bundle_of(repo: &str) -> Vec<String> {
    ["bundle", "-C", repo].map(str::to_owned).to_vec()
}

fn feed(line: Bytes, file: Option<File>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let rest = stream::iter(file)
        .flat_map(|file| tokio_util::io::ReaderStream::with_capacity(file, 64 * 1024));
    stream::once(async { Ok(line) }).chain(rest)
}

/// Splits an answer into its first line and the file after it.
struct BundleFile<'a, H> {
    head: Head<H>,
    file: File,
    dest: &'a Path,
    left: u64,
    limit: u64,
}

enum Head<H> {
    Coming(BytesMut),
    Read(H),
}

impl<H: DeserializeOwned + Send> Sink for BundleFile<'_, H> {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        let body = match &mut self.head {
            Head::Read(_) => bytes,
            Head::Coming(line) => {
                // Only what is new is searched: the pieces may be as small as the box likes.
                let searched = line.len();
                line.extend_from_slice(&bytes);
                let end = line[searched..].iter().position(|byte| *byte == b'\n');
                let Some(end) = end.map(|at| searched + at).filter(|end| *end < HEAD_LIMIT) else {
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

fn parse_head<H: DeserializeOwned>(line: &[u8]) -> Result<H, Error> {
    serde_json::from_slice(line).map_err(|error| bad_head(&error.to_string()))
}

fn branch_head(head: BundleHead) -> Result<Option<String>, Error> {
    match &head.oid {
        Some(oid) if !is_oid(oid) => Err(bad_head("not an object id")),
        _ => Ok(head.oid),
    }
}

fn tags_head(head: TagsHead) -> Result<TagsHead, Error> {
    if head.tags.len() > MAX_TAGS || !head.tags.iter().all(|tag| is_oid(&tag.oid)) {
        return Err(bad_head("not a list of tags"));
    }
    Ok(head)
}

fn bad_head(why: &str) -> Error {
    Error::BadAnswer { command: "bundle".to_owned(), why: format!("its first line: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ctl::RefAt;

    const OID: &str = "0123456789012345678901234567890123456789";

    async fn answer(pieces: &[&[u8]], limit: u64) -> Result<(Option<String>, Vec<u8>), Error> {
        let temp = tempfile::tempdir().unwrap();
        let dest = temp.path().join("b");
        let file = File::create(&dest).await.unwrap();
        let head: Head<BundleHead> = Head::Coming(BytesMut::new());
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
        let long = vec![b'x'; HEAD_LIMIT + 1];
        for bad in [&b"{}x\n"[..], b"{\"oid\":7}\n", b"7\n", b"\n", &long] {
            assert!(matches!(answer(&[bad], 10).await, Err(Error::BadAnswer { .. })));
        }
        assert!(branch_head(BundleHead { oid: Some("--upload-pack=x".into()) }).is_err());
        let tag = |oid: &str| RefAt { name: "refs/tags/v".into(), oid: oid.into() };
        assert!(tags_head(TagsHead { tags: vec![tag("--exec=x")], more: 0 }).is_err());
        assert!(tags_head(TagsHead { tags: vec![tag(OID); MAX_TAGS + 1], more: 0 }).is_err());
        assert!(tags_head(TagsHead { tags: vec![tag(OID); MAX_TAGS], more: 0 }).is_ok());
        let too_much = answer(&[b"{\"oid\":null}\n", &[0; 10], b"x"], 10).await;
        assert!(matches!(too_much, Err(Error::TooLarge { limit: 10 })));
    }
}
