//! A box's tags on their way to a remote.
//!
//! What the box says about its tags is a claim; what a person is shown is read from the objects that
//! came in, or that the host has anyway.

use super::{Done, Transfer, TransferError, fetch_args};
use crate::process::Limit;
use connectors::git::{ObjectId, RemoteName, TagName};
use protocol::ctl::{KnownTags, RefAt, TagsHead};
use protocol::text::shortened;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

/// How much of a tagged commit's first line is shown.
const SHOWN_SUBJECT: usize = 80;

/// A tag the remote does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    pub name: TagName,
    pub oid: ObjectId,
    /// An object of its own, not just another name of a commit.
    pub annotated: bool,
    /// The commit it leads to; a tag may also be on a file.
    pub commit: Option<ObjectId>,
    /// Made visible.
    pub subject: String,
}

impl Tag {
    /// For people: what the tag is and where it leads.
    pub fn shown(&self) -> String {
        let kind = if self.annotated {
            format!("annotated tag {}", self.oid.short())
        } else {
            "lightweight tag".to_owned()
        };
        match &self.commit {
            Some(commit) => format!("{kind} on commit {} {}", commit.short(), self.subject),
            None => format!("{kind} on object {}, which is no commit", self.oid.short()),
        }
    }
}

/// The command's part about one tag; never forced.
pub fn refspec(tag: &TagName) -> String {
    format!("{}:{}", approved_tag(tag), tag.to_ref())
}

fn approved_tag(tag: &TagName) -> String {
    format!("refs/agentbox-tags/{tag}")
}

fn box_tag(tag: &TagName) -> String {
    format!("refs/box/tags/{tag}")
}

impl Transfer<'_> {
    /// The tags where a push to `remote` would go, as they are now.
    pub async fn remote_tags(&self, remote: &RemoteName) -> Done<KnownTags> {
        // By a name of the settings: an address may hold a password, which no command line may. No
        // remote of the user's has a slash in its name here.
        let elsewhere =
            self.worktree.remotes.get(remote).is_some_and(|urls| urls.push != urls.fetch);
        let place = if elsewhere { format!("{remote}/push") } else { remote.to_string() };
        let args = ["ls-remote", "--quiet", "--tags", "--refs", "--", &place];
        let text = self.must("ls-remote", &args, Limit::NETWORK).await?.out();
        let split = |line: &str| {
            let (oid, name) = line.split_once('\t')?;
            Some(RefAt { name: name.to_owned(), oid: oid.to_owned() })
        };
        Ok(KnownTags { tags: text.lines().filter_map(split).collect() })
    }

    /// Takes the box's tags in. `claimed` is what it says they are.
    pub async fn take_in_tags(&self, bundle: &Path, claimed: &TagsHead) -> Done<Vec<Tag>> {
        let tags = names(claimed)?;
        self.clear("refs/box/tags/").await?;
        let sent = self.sent(bundle).await?;
        let (sent, had): (Vec<_>, Vec<_>) =
            tags.iter().partition(|(name, _)| sent.contains(name.to_ref().as_str()));
        if !sent.is_empty() {
            let refspec = |(name, _): &&(TagName, ObjectId)| {
                OsString::from(format!("+{}:{}", name.to_ref(), box_tag(name)))
            };
            let args = [fetch_args(), vec![bundle.into()], sent.iter().map(refspec).collect()];
            self.fetch_from_box(&args.concat()).await?;
        }
        let create =
            |(name, oid): &&(TagName, ObjectId)| format!("create {} {oid}\n", box_tag(name));
        self.update_refs(&had.iter().map(create).collect::<String>()).await?;
        self.describe(tags.into_iter().map(|(name, _)| name).collect()).await
    }

    /// The refs a bundle brings; none when there is no bundle.
    async fn sent(&self, bundle: &Path) -> Done<HashSet<String>> {
        let size = std::fs::metadata(bundle).map_or(0, |m| m.len());
        if size == 0 {
            return Ok(HashSet::new());
        }
        let file = bundle.display().to_string();
        let list = ["bundle", "list-heads", &file];
        let heads = self.must("bundle list-heads", &list, Limit::LOCAL).await?;
        let name = |line: &str| line.split_once(' ').map(|(_, name)| name.to_owned());
        Ok(heads.out().lines().filter_map(name).collect())
    }

    async fn describe(&self, names: Vec<TagName>) -> Done<Vec<Tag>> {
        let input: String =
            names.iter().map(|name| format!("{0}\n{0}^{{commit}}\n", box_tag(name))).collect();
        let format = "--batch-check=%(objectname) %(objecttype)";
        let lines = self.feed("cat-file", &["cat-file", format], &input).await?.out();
        let lines: Vec<&str> = lines.lines().collect();
        let found = |line: &str| {
            let (oid, kind) = line.split_once(' ')?;
            Some((oid.parse::<ObjectId>().ok()?, kind.to_owned()))
        };
        let mut tags = Vec::new();
        for (name, pair) in names.into_iter().zip(lines.chunks(2)) {
            let Some((oid, kind)) = pair.first().and_then(|line| found(line)) else {
                let detail = format!("tag {name} did not arrive");
                return Err(TransferError::Git { what: "fetch from the box", detail });
            };
            let commit = pair.get(1).and_then(|line| found(line)).map(|(oid, _)| oid);
            let subject = String::new();
            tags.push(Tag { name, oid, annotated: kind == "tag", commit, subject });
        }
        let subjects = self.subjects(&tags).await?;
        for tag in &mut tags {
            let subject = tag.commit.as_ref().and_then(|commit| subjects.get(commit.as_str()));
            tag.subject = subject.map(|s| shortened(s, SHOWN_SUBJECT)).unwrap_or_default();
        }
        Ok(tags)
    }

    async fn subjects(&self, tags: &[Tag]) -> Done<HashMap<String, String>> {
        let commits: Vec<&str> =
            tags.iter().filter_map(|t| t.commit.as_ref()).map(ObjectId::as_str).collect();
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let log = ["log", "-z", "--no-walk=unsorted", "--no-show-signature", "--format=%H%x09%s"];
        let log = self.must("log", &[&log[..], &commits[..]].concat(), Limit::LOCAL).await?;
        let split = |line: &str| {
            let (oid, subject) = line.split_once('\t')?;
            Some((oid.to_owned(), subject.to_owned()))
        };
        Ok(log.out().split('\0').filter_map(split).collect())
    }

    /// Freezes what was approved, so that the push can only ever send that.
    pub async fn freeze_tags(&self, tags: &[Tag]) -> Done<()> {
        self.clear("refs/agentbox-tags/").await?;
        let create = |tag: &Tag| format!("create {} {}\n", approved_tag(&tag.name), tag.oid);
        self.update_refs(&tags.iter().map(create).collect::<String>()).await
    }
}

/// The claimed tags by name, each name one git would take.
fn names(claimed: &TagsHead) -> Done<Vec<(TagName, ObjectId)>> {
    let parse = |at: &RefAt| {
        let name = at.name.strip_prefix("refs/tags/").unwrap_or(&at.name).parse()?;
        Ok((name, at.oid.parse()?))
    };
    claimed.tags.iter().map(parse).collect::<Result<_, _>>().map_err(TransferError::BadTag)
}

/// Tags that are on the remote already, at another object.
pub fn clashes(tags: &[Tag], remote: &KnownTags) -> Vec<TagName> {
    let there: HashMap<&str, &str> =
        remote.tags.iter().map(|t| (t.name.as_str(), t.oid.as_str())).collect();
    let clash = |tag: &&Tag| {
        there.get(tag.name.to_ref().as_str()).is_some_and(|oid| *oid != tag.oid.as_str())
    };
    tags.iter().filter(clash).map(|tag| tag.name.clone()).collect()
}
