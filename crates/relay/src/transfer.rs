//! The clean transfer repository: the only place where host git meets a box's commits.
//!
//! A bare repository per worktree of a box, written by nobody but the relay: no hooks, its own
//! settings, remotes from the registration. The host's object store is its alternate. A box's
//! commits come in as bundles, checked by git's fsck; nothing is ever checked out.
//!
//! Refs in it: `refs/box/heads/*` and `refs/box/tags/*` what the box has, `refs/agentbox/*` and
//! `refs/agentbox-tags/*` what a person approved, `refs/remotes/<remote>/*` what was last seen at a
//! remote, `refs/delivered/<remote>/*` what the box was last told, `refs/landed/*` what was last
//! written to the user's repository.

mod host;
mod lfs;
mod tags;

pub use host::{Landing, write_args};
pub use tags::{Tag, clashes};

use crate::process::{Limit, Output, ProcessError, Tool};
use crate::registration::Worktree;
use connectors::git::{BadName, BranchName, ObjectId, Push, RefName, RemoteName};
use protocol::ctl::RefAt;
use protocol::question::Commit;
use protocol::text::{shortened, visible};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Commits listed in a question, and how much of each one's first line.
const SHOWN_COMMITS: usize = 5;
const SHOWN_SUBJECT: usize = 200;
/// Files that steer CI listed in a question, and how much of each one's path.
const SHOWN_CI: usize = 10;
const SHOWN_PATH: usize = 200;
/// How much of git's complaint is passed on.
const SHOWN_ERROR: usize = 2000;
/// The most a transfer repository may hold: a box can fill it without anybody being asked.
const MAX_PACKS: u64 = 4 * 1024 * 1024 * 1024;
/// Of the list of commits a shallow repository begins with.
const MOST_BOUNDARY: u64 = 4 * 1024 * 1024;
/// More packs than this are made one.
const MANY: usize = 50;

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("git {what} failed: {detail}")]
    Git { what: &'static str, detail: String },
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("the box has no commit on {0} yet.")]
    NoCommit(BranchName),
    #[error("{0}. Rename the tag.")]
    BadTag(BadName),
    #[error(transparent)]
    Port(#[from] crate::PortError),
}

/// A transfer repository and the git that works in it.
pub struct Transfer<'a> {
    pub tool: Tool,
    pub env: Vec<(OsString, OsString)>,
    pub worktree: &'a Worktree,
}

/// What a push would do, as far as the host knows without asking the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub new: ObjectId,
    /// The remote branch as last seen.
    pub old: Option<ObjectId>,
    /// Commits the remote does not have.
    pub count: u32,
    pub commits: Vec<Commit>,
    pub files: u32,
    pub added: u32,
    pub removed: u32,
    /// Files that change what a CI service runs, the first few.
    pub ci: Vec<String>,
    /// How many more of those there are.
    pub more_ci: u32,
    /// The remote branch is not an ancestor of the new commit.
    pub rewrites: bool,
}

impl Preview {
    /// The remote branch is not there yet, or elsewhere.
    pub fn moves_branch(&self) -> bool {
        self.old.as_ref() != Some(&self.new)
    }

    fn note_ci(&mut self, path: &str) {
        let shown = shortened(path, SHOWN_PATH);
        if !steers_ci(path) || self.ci.contains(&shown) {
            return;
        }
        if self.ci.len() == SHOWN_CI {
            self.more_ci += 1;
        } else {
            self.ci.push(shown);
        }
    }
}

/// Where a push of `new` and `tags` starts from.
pub fn tips<'a>(new: &'a ObjectId, tags: &'a [Tag]) -> Vec<&'a str> {
    let tagged = tags.iter().filter_map(|tag| tag.commit.as_ref());
    std::iter::once(new).chain(tagged).map(ObjectId::as_str).collect()
}

type Done<T> = Result<T, TransferError>;

impl Transfer<'_> {
    /// Makes the repository if it is not there, and tells it what the user's repository last saw
    /// of each remote.
    pub async fn ensure(&self) -> Done<()> {
        let dir = &self.worktree.transfer;
        if dir.join("agentbox-ready").exists() {
            self.follow_boundary()?;
            return self.follow_registration().await;
        }
        let write = |path: &Path, text: String| {
            std::fs::write(path, text)
                .map_err(|source| TransferError::Write { path: path.display().to_string(), source })
        };
        std::fs::create_dir_all(dir)
            .map_err(|source| TransferError::Write { path: dir.display().to_string(), source })?;
        let format = format!("--object-format={}", self.worktree.object_format);
        let init = ["init", "--quiet", "--bare", "--template=", &format];
        self.must("init", &init, Limit::LOCAL).await?;
        write(&dir.join("config"), self.config())?;
        let info = dir.join("objects/info");
        std::fs::create_dir_all(&info)
            .map_err(|source| TransferError::Write { path: info.display().to_string(), source })?;
        write(&info.join("alternates"), format!("{}\n", self.worktree.host_objects.display()))?;
        self.follow_boundary()?;
        for remote in self.worktree.remotes.keys() {
            self.learn_from_host(remote).await?;
        }
        write(&dir.join("agentbox-ready"), String::new())
    }

    /// Where the user's repository ends, this one does too: what is before that is nowhere. The person
    /// may fetch more of it at any time.
    fn follow_boundary(&self) -> Done<()> {
        let own = self.worktree.transfer.join("shallow");
        let Some(host) = self.worktree.host_objects.parent() else { return Ok(()) };
        let boundary = boundary(&host.join("shallow"));
        if std::fs::read(&own).unwrap_or_default() == boundary {
            return Ok(());
        }
        let written = if boundary.is_empty() {
            std::fs::remove_file(&own)
        } else {
            let fresh = own.with_extension("new");
            std::fs::write(&fresh, boundary).and_then(|()| std::fs::rename(&fresh, &own))
        };
        written.map_err(|source| TransferError::Write { path: own.display().to_string(), source })
    }

    /// The person may have given the box other remotes since: what is pushed to is always what a
    /// question shows, and what was seen elsewhere is forgotten.
    async fn follow_registration(&self) -> Done<()> {
        let path = self.worktree.transfer.join("config");
        let config = self.config();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == config) {
            return Ok(());
        }
        self.clear("refs/remotes/").await?;
        std::fs::write(&path, config)
            .map_err(|source| TransferError::Write { path: path.display().to_string(), source })?;
        for remote in self.worktree.remotes.keys() {
            self.learn_from_host(remote).await?;
        }
        Ok(())
    }

    /// Removes every ref below.
    async fn clear(&self, prefix: &str) -> Done<()> {
        let args = ["for-each-ref", "--format=option no-deref%0adelete %(refname)", prefix];
        let deletes = self.must("for-each-ref", &args, Limit::LOCAL).await?.out();
        self.update_refs(&deletes).await
    }

    /// One command of `update-ref --stdin` per line.
    async fn update_refs(&self, commands: &str) -> Done<()> {
        if commands.is_empty() {
            return Ok(());
        }
        self.feed("update-ref", &["update-ref", "--stdin"], commands).await.map(drop)
    }

    /// The settings of the repository, whole: nothing in it was ever written by git on a box's
    /// behalf.
    fn config(&self) -> String {
        let quote = |v: &str| format!("\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\""));
        let version = i32::from(self.worktree.object_format == "sha256");
        let mut text = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n\thooksPath = /dev/null\n\tfsmonitor = false\n\taskPass =\n\tlogAllRefUpdates = false\n\tbigFileThreshold = 16m\n[push]\n\tfollowTags = false\n\trecurseSubmodules = no\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
        );
        if version == 1 {
            text.push_str("[extensions]\n\tobjectFormat = sha256\n");
        }
        for (name, urls) in &self.worktree.remotes {
            let (fetch, push) = (quote(&urls.fetch), quote(&urls.push));
            text.push_str(&format!(
                "[remote \"{name}\"]\n\turl = {fetch}\n\tpushurl = {push}\n\tfetch = +refs/heads/*:refs/remotes/{name}/*\n"
            ));
            if urls.push != urls.fetch {
                text.push_str(&format!("[remote \"{name}/push\"]\n\turl = {push}\n"));
            }
        }
        text
    }

    /// Takes over the user's remote-tracking refs. The box was seeded with the same.
    async fn learn_from_host(&self, remote: &RemoteName) -> Done<()> {
        let host = self.worktree.host_repo.as_os_str();
        let mut args: Vec<OsString> = fetch_args();
        args.push(host.to_owned());
        args.push(format!("+refs/remotes/{remote}/*:refs/remotes/{remote}/*").into());
        args.push(format!("+refs/remotes/{remote}/*:refs/delivered/{remote}/*").into());
        let output = self.run(&args, Limit::LOCAL).await?;
        self.check("fetch", output)?;
        self.learn_default(remote).await
    }

    /// The remote's default branch stays a name, so that it moves with every fetch.
    async fn learn_default(&self, remote: &RemoteName) -> Done<()> {
        let head = format!("refs/remotes/{remote}/HEAD");
        let ask = ["symbolic-ref", "--quiet", &head].map(OsString::from);
        let target = self.in_host(&ask).await?.out().trim().to_owned();
        let below = format!("refs/remotes/{remote}/");
        if target.parse::<RefName>().is_ok() && target.starts_with(&below) {
            self.must("symbolic-ref", &["symbolic-ref", &head, &target], Limit::LOCAL).await?;
        }
        Ok(())
    }

    /// Object ids the box certainly has.
    pub async fn box_haves(&self, branch: &BranchName) -> Done<Vec<String>> {
        let mut haves: Vec<String> = self.worktree.base.iter().map(ToString::to_string).collect();
        haves.extend(self.resolve(&box_ref(branch)).await?.map(|o| o.to_string()));
        Ok(haves)
    }

    /// Takes a bundle in. `claimed` is what the box says its branch points to.
    pub async fn take_in(&self, branch: &BranchName, bundle: &Path, claimed: &str) -> Done<()> {
        let known = self.box_haves(branch).await?;
        let to = box_ref(branch);
        if known.iter().any(|have| have == claimed) {
            let args = ["update-ref", to.as_str(), claimed];
            return self.must("update-ref", &args, Limit::LOCAL).await.map(drop);
        }
        let mut args: Vec<OsString> = fetch_args();
        args.push(bundle.into());
        args.push(format!("+refs/heads/{branch}:{to}").into());
        self.fetch_from_box(&args).await
    }

    async fn fetch_from_box(&self, args: &[OsString]) -> Done<()> {
        self.room()?;
        let taken = self.check("fetch from the box", self.run(args, Limit::LOCAL).await?);
        if taken.is_err() {
            self.sweep();
        }
        taken?;
        // Each fetch leaves a pack, however small, and every later git looks into all of them.
        if self.packs().filter(|e| e.path().extension().is_some_and(|x| x == "pack")).count() > MANY
        {
            let repacked = self.must("repack", &["repack", "-q", "-d", "-l"], Limit::LOCAL).await;
            if let Err(e) = repacked {
                tracing::debug!("{e}");
                self.sweep();
            }
        }
        Ok(())
    }

    fn packs(&self) -> impl Iterator<Item = std::fs::DirEntry> + use<> {
        let dir = self.worktree.transfer.join("objects/pack");
        std::fs::read_dir(dir).into_iter().flatten().flatten()
    }

    fn room(&self) -> Done<()> {
        let used: u64 = self.packs().filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum();
        if used <= MAX_PACKS {
            return Ok(());
        }
        let detail = "this box has sent more than 4 GiB of commits; destroy it and make a new one";
        Err(TransferError::Git { what: "fetch from the box", detail: detail.into() })
    }

    /// Removes what a fetch that broke off left behind: a box may break off as often as it likes.
    fn sweep(&self) {
        let left = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with("tmp_");
        for entry in self.packs().filter(left) {
            let _ = std::fs::remove_file(entry.path());
        }
        let objects = std::fs::read_dir(self.worktree.transfer.join("objects"));
        let objects = objects.into_iter().flatten().flatten();
        let left =
            |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with("tmp_objdir");
        for entry in objects.filter(left) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }

    /// The output of a git that succeeded; else what it said, without the places on this host.
    fn check(&self, what: &'static str, output: Output) -> Done<Output> {
        if output.ok() {
            return Ok(output);
        }
        let mut said = secrets::redact(output.err().trim());
        for place in [self.worktree.transfer.parent(), Some(&self.worktree.host_repo)] {
            if let Some(place) = place.and_then(Path::to_str).filter(|p| p.len() > 1) {
                said = said.replace(place, "…");
            }
        }
        Err(TransferError::Git { what, detail: shortened(&said, SHOWN_ERROR) })
    }

    /// Where the box's branch is, as far as the host has seen.
    pub async fn tip(&self, branch: &BranchName) -> Done<Option<ObjectId>> {
        self.resolve(&box_ref(branch)).await
    }

    /// What pushing `branch` and `tags` to `remote` would change.
    pub async fn preview(
        &self,
        branch: &BranchName,
        remote: &RemoteName,
        new: ObjectId,
        tags: &[Tag],
    ) -> Done<Preview> {
        let old = self.resolve(&format!("refs/remotes/{remote}/{branch}")).await?;
        let beyond = format!("--remotes={remote}");
        let range = [&tips(&new, tags)[..], &["--not", &beyond]].concat();
        let count = [&["rev-list", "--count"][..], &range[..]].concat();
        let count = self.must("rev-list", &count, Limit::LOCAL).await?;
        let count = count.out().trim().parse().unwrap_or(0);
        let limit = format!("-n{SHOWN_COMMITS}");
        let log = ["log", "-z", "--no-show-signature", "--format=%h%x09%s", &limit];
        let log = self.must("log", &[&log[..], &range[..]].concat(), Limit::LOCAL).await?;
        let rewrites = match &old {
            Some(old) => !self.is_ancestor(old, &new).await?,
            None => false,
        };
        let mut preview = Preview {
            commits: commits(&log.out()),
            count,
            old,
            new,
            files: 0,
            added: 0,
            removed: 0,
            ci: vec![],
            more_ci: 0,
            rewrites,
        };
        self.measure(remote, &mut preview).await?;
        self.measure_tags(remote, tags, &mut preview).await?;
        Ok(preview)
    }

    /// Tags may lead to commits beside the branch, and CI runs what is there.
    async fn measure_tags(
        &self,
        remote: &RemoteName,
        tags: &[Tag],
        preview: &mut Preview,
    ) -> Done<()> {
        let commits: Vec<&str> =
            tags.iter().filter_map(|t| t.commit.as_ref()).map(ObjectId::as_str).collect();
        if commits.is_empty() {
            return Ok(());
        }
        let log = ["log", "--format=", "--name-only", "-z", "-m", "--no-renames"];
        let beyond = format!("--remotes={remote}");
        let without = ["--not", preview.new.as_str(), &beyond];
        let log = [&log[..], &commits[..], &without[..]].concat();
        let log = self.must("log", &log, Limit::LOCAL).await?.out();
        log.split('\0').map(str::trim_start).for_each(|path| preview.note_ci(path));
        Ok(())
    }

    /// Counts files and lines between what the remote has and what it would get.
    async fn measure(&self, remote: &RemoteName, preview: &mut Preview) -> Done<()> {
        let from = self.compared_with(remote, preview).await?;
        let args = ["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
        let ids = [from.as_str(), preview.new.as_str()];
        let output = self.must("diff", &[&args[..], &ids[..]].concat(), Limit::LOCAL).await?;
        for line in output.stdout.split(|b| *b == 0).filter(|l| !l.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let mut fields = line.splitn(3, '\t');
            let mut number = || fields.next().and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
            preview.added = preview.added.saturating_add(number());
            preview.removed = preview.removed.saturating_add(number());
            preview.files = preview.files.saturating_add(1);
            preview.note_ci(fields.next().unwrap_or_default());
        }
        Ok(())
    }

    /// The commit a diff is taken from: the remote branch, else where the new commits leave what
    /// the remote has, else where the box started, else nothing at all.
    async fn compared_with(&self, remote: &RemoteName, preview: &Preview) -> Done<ObjectId> {
        if let Some(old) = &preview.old {
            return Ok(old.clone());
        }
        let args = ["for-each-ref", "--format=%(objectname)", &format!("refs/remotes/{remote}/")];
        let known = self.must("for-each-ref", &args, Limit::LOCAL).await?.out();
        let known: Vec<&str> = known.lines().take(64).collect();
        if !known.is_empty() {
            let args = [&["merge-base", preview.new.as_str()][..], &known[..]].concat();
            let base = self.git(&args, Limit::LOCAL).await?.out();
            if let Ok(base) = base.trim().parse() {
                return Ok(base);
            }
        }
        match &self.worktree.base {
            Some(base) => Ok(base.clone()),
            None => self.empty_tree().await,
        }
    }

    async fn empty_tree(&self) -> Done<ObjectId> {
        let args = ["hash-object", "-t", "tree", "/dev/null"];
        let output = self.must("hash-object", &args, Limit::LOCAL).await?;
        output.out().trim().parse().map_err(|_| TransferError::Git {
            what: "hash-object",
            detail: "it gave no object id".into(),
        })
    }

    /// Freezes what was approved, so that the push can only ever send that.
    pub async fn freeze(&self, branch: &BranchName, oid: &ObjectId) -> Done<()> {
        let args = ["update-ref", &approved_ref(branch), oid.as_str()];
        self.must("update-ref", &args, Limit::LOCAL).await.map(drop)
    }

    /// Runs the frozen push command.
    pub async fn push(&self, args: &[String]) -> Done<Output> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Ok(self.run(&args, Limit::NETWORK).await?)
    }

    /// Notes what the remote has after a push.
    pub async fn pushed(
        &self,
        branch: &BranchName,
        remote: &RemoteName,
        oid: &ObjectId,
    ) -> Done<()> {
        for space in ["remotes", "delivered"] {
            let name = format!("refs/{space}/{remote}/{branch}");
            self.must("update-ref", &["update-ref", &name, oid.as_str()], Limit::LOCAL).await?;
        }
        Ok(())
    }

    /// Fetches a remote's branches with the user's credentials.
    pub async fn fetch(&self, flags: &[&str], remote: &RemoteName) -> Done<Output> {
        let mut args =
            vec!["fetch", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc"];
        args.extend(flags);
        args.extend(["--", remote.as_str()]);
        self.git(&args, Limit::NETWORK).await
    }

    /// The refs of a remote, and tags when they were asked for.
    pub async fn known(&self, remote: &RemoteName, tags: bool) -> Done<Vec<RefAt>> {
        let prefix = format!("refs/remotes/{remote}/");
        let mut args = vec!["for-each-ref", "--format=%(objectname) %(refname)", &prefix];
        if tags {
            args.push("refs/tags/");
        }
        let text = self.must("for-each-ref", &args, Limit::LOCAL).await?.out();
        let split = |line: &str| {
            let (oid, name) = line.split_once(' ')?;
            Some(RefAt { name: name.to_owned(), oid: oid.to_owned() })
        };
        Ok(text.lines().filter_map(split).collect())
    }

    /// Writes what the box lacks of `refs` to `dest`; false when it lacks nothing.
    pub async fn bundle_for_box(
        &self,
        refs: &[RefAt],
        remote: &RemoteName,
        dest: &Path,
    ) -> Done<bool> {
        let delivered = format!("--glob=refs/delivered/{remote}/*");
        let mut not = vec!["--not".to_owned(), delivered, "--glob=refs/box/heads/*".to_owned()];
        not.extend(self.worktree.base.iter().map(ToString::to_string));
        let names: Vec<String> = refs.iter().map(|r| r.name.clone()).collect();
        let range: Vec<&str> = names.iter().chain(&not).map(String::as_str).collect();
        // An annotated tag is an object of its own, even on a commit the box has.
        let tagged = names.iter().any(|name| name.starts_with("refs/tags/"));
        let what: &[&str] = if tagged { &["--count", "--objects"] } else { &["--count"] };
        let count = [&["rev-list"], what, &range[..]].concat();
        let count = self.must("rev-list", &count, Limit::LOCAL).await?.out();
        if count.trim() == "0" {
            return Ok(false);
        }
        let dest = dest.display().to_string();
        let create = [&["bundle", "create", "--quiet", &dest][..], &range[..]].concat();
        self.must("bundle create", &create, Limit::LOCAL).await?;
        Ok(true)
    }

    /// Notes what the box now has.
    pub async fn delivered(&self, refs: &[RefAt], remote: &RemoteName) -> Done<()> {
        let prefix = format!("refs/remotes/{remote}/");
        for at in refs {
            if let Some(short) = at.name.strip_prefix(&prefix) {
                let name = format!("refs/delivered/{remote}/{short}");
                self.must("update-ref", &["update-ref", &name, &at.oid], Limit::LOCAL).await?;
            }
        }
        Ok(())
    }

    async fn is_ancestor(&self, old: &ObjectId, new: &ObjectId) -> Done<bool> {
        let args = ["merge-base", "--is-ancestor", old.as_str(), new.as_str()];
        Ok(self.git(&args, Limit::LOCAL).await?.ok())
    }

    pub(crate) async fn resolve(&self, name: &str) -> Done<Option<ObjectId>> {
        let args = ["rev-parse", "--quiet", "--verify", name];
        Ok(self.git(&args, Limit::LOCAL).await?.out().trim().parse().ok())
    }

    async fn must(&self, what: &'static str, args: &[&str], limit: Limit) -> Done<Output> {
        self.check(what, self.git(args, limit).await?)
    }

    /// The same with an input of one command per line.
    async fn feed(&self, what: &'static str, args: &[&str], input: &str) -> Done<Output> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let (dir, env) = (&self.worktree.transfer, self.own_env());
        let input = Some(input.as_bytes());
        self.check(what, self.tool.feed(dir, &args, input, &env, Limit::LOCAL).await?)
    }

    async fn git(&self, args: &[&str], limit: Limit) -> Done<Output> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Ok(self.run(&args, limit).await?)
    }

    /// Runs git in the transfer repository.
    pub(crate) async fn run(
        &self,
        args: &[OsString],
        limit: Limit,
    ) -> Result<Output, ProcessError> {
        self.tool.run(&self.worktree.transfer, args, &self.own_env(), limit).await
    }

    fn own_env(&self) -> Vec<(OsString, OsString)> {
        let dir = &self.worktree.transfer;
        let mut env = self.env.clone();
        env.push(("GIT_DIR".into(), dir.clone().into()));
        // No file of the folder above may say what this repository is.
        env.push(("GIT_CEILING_DIRECTORIES".into(), dir.clone().into()));
        env
    }
}

/// The command a person approves: complete, with one refspec for the branch if it is to move, and
/// one for each tag.
pub fn push_args(push: &Push, preview: &Preview, tags: &[Tag], worktree: &Worktree) -> Vec<String> {
    let to = worktree.published();
    let mut args = vec!["push".to_owned()];
    let written_here = ["--force-with-lease", "--tags"];
    let flags = push.to_argv().into_iter().filter(|flag| !written_here.contains(flag));
    args.extend(flags.map(str::to_owned));
    if push.force_with_lease {
        let expected = preview.old.as_ref().map_or("", ObjectId::as_str);
        args.push(format!("--force-with-lease=refs/heads/{to}:{expected}"));
    }
    args.push("--".into());
    args.push(push.remote.to_string());
    if preview.moves_branch() {
        args.push(format!("{}:refs/heads/{to}", approved_ref(&worktree.branch)));
    }
    args.extend(tags.iter().map(|tag| tags::refspec(&tag.name)));
    args
}

fn box_ref(branch: &BranchName) -> String {
    format!("refs/box/heads/{branch}")
}

fn approved_ref(branch: &BranchName) -> String {
    format!("refs/agentbox/{branch}")
}

/// A fetch from a file on this host, distrusting what it brings.
/// The commits a shallow repository begins with, as git keeps them. None when it is no plain file: the
/// folder may be somebody else's work.
fn boundary(file: &Path) -> Vec<u8> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(file)?;
        let mut bytes = Vec::new();
        if file.metadata()?.is_file() {
            file.take(MOST_BOUNDARY).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().unwrap_or_default()
}

fn fetch_args() -> Vec<OsString> {
    [
        "-c",
        "protocol.allow=never",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "fetch.fsckObjects=true",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-gc",
        "--upload-pack=git-upload-pack",
        "--",
    ]
    .map(OsString::from)
    .to_vec()
}

fn commits(log: &str) -> Vec<Commit> {
    let split = |record: &str| {
        let (oid, subject) = record.split_once('\t')?;
        Some(Commit { oid: visible(oid), subject: shortened(subject, SHOWN_SUBJECT) })
    };
    log.split('\0').filter_map(split).collect()
}

/// Files that make a CI service run something with the project's secrets.
fn steers_ci(path: &str) -> bool {
    const FOLDERS: &[&str] = &[
        ".github/workflows/",
        ".github/actions/",
        ".gitea/workflows/",
        ".forgejo/workflows/",
        ".gitlab/",
        ".circleci/",
        ".buildkite/",
        ".woodpecker/",
        ".semaphore/",
        ".teamcity/",
    ];
    // With any ending settings have, and whatever stands between name and ending.
    const FILES: &[&str] = &[
        ".gitlab-ci",
        "jenkinsfile",
        "azure-pipelines",
        "bitbucket-pipelines",
        ".travis",
        ".drone",
        ".woodpecker",
        "appveyor",
        ".appveyor",
        ".cirrus",
        ".semaphore",
        "cloudbuild",
        "buildspec",
        "wercker",
        "codefresh",
        ".build",
        "bitrise",
        "netlify",
        "vercel",
        "amplify",
        "render",
    ];
    let path = path.to_ascii_lowercase();
    let file = path.rsplit('/').next().unwrap_or_default();
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, ""));
    let settings =
        matches!(ending, "" | "yml" | "yaml" | "toml" | "json" | "groovy") || stem.is_empty();
    // A link or a submodule in the place of such a folder brings one along.
    let as_folder = format!("{path}/");
    FOLDERS.iter().any(|folder| path.starts_with(folder) || folder.starts_with(&as_folder))
        || (settings && FILES.iter().any(|name| file.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_a40_files_that_steer_ci_are_known() {
        for path in [
            ".github/workflows/ci.yml",
            // In the place of a folder: a link or a submodule.
            ".github/workflows",
            ".github",
            ".buildkite",
            ".gitlab-ci.yml",
            ".gitlab/ci/build.yml",
            "Jenkinsfile",
            "deploy/Jenkinsfile",
            ".drone.yml",
            ".woodpecker.yml",
            ".woodpecker/build.yaml",
            "appveyor.yml",
            ".cirrus.yml",
            "azure-pipelines.yaml",
            "azure-pipelines-release.yml",
            ".semaphore/semaphore.yml",
            "cloudbuild.yaml",
            ".travis.yml",
            ".circleci/config.yml",
        ] {
            assert!(steers_ci(path), "{path}");
        }
        for path in
            ["src/main.rs", "README.md", "docs/github/workflows.md", "", ".drone.md", "travis.rs"]
        {
            assert!(!steers_ci(path), "{path}");
        }
    }
}
