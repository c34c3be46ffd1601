//! `agentbox-ctl resync` (box user): takes over what is new on the host. Where both changed the same, the
//! box's side stays and is named.
//!
//! Everything is worked out as trees first; the work tree, the branch and the index follow at the end, so
//! that what fails leaves the box as it was. No conflict marker ever reaches a file.

use crate::error::{Doing, Error, Result};
use crate::real_git::Git;
use crate::seed::{LFS_OFFLINE, below, intend_to_add};
use crate::{input, places, unpack};
use connectors::git::{BranchName, ObjectId};
use protocol::resync::{MOST_KEPT, ResyncPlan, ResyncRepo, Resynced};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Files that say that git is in the middle of something.
const UNDER_WAY: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock"];

pub fn run() -> Result<i32> {
    let mut stdin = io::stdin().lock();
    let plan: ResyncPlan = input::json_line(&mut stdin)?;
    let mut told = Resynced::default();
    for repo in &plan.repos {
        let place = Place::of(repo)?;
        match place.take_over(repo) {
            Ok(taken) => taken.tell(repo, &mut told),
            Err(error) => {
                let name = if repo.path.is_empty() { "the workspace" } else { &repo.path };
                told.left.push(format!("{name}: {error}"));
            }
        }
    }
    let added = unpack::add(stdin, &places::workspace())?;
    told.files += added.new;
    told.kept.extend(added.kept.iter().map(|path| path.to_string_lossy().into_owned()));
    told.kept.sort();
    told.kept.dedup();
    told.kept.truncate(MOST_KEPT);
    let json = serde_json::to_string(&told).map_err(|e| Error::Failed(e.to_string()))?;
    crate::say(&format!("{json}\n"));
    Ok(protocol::exit::OK)
}

/// What one repository took over.
#[derive(Default)]
struct Taken {
    commits: u32,
    files: u32,
    kept: BTreeSet<Vec<u8>>,
}

impl Taken {
    fn tell(&self, repo: &ResyncRepo, told: &mut Resynced) {
        told.commits += self.commits;
        told.files += self.files;
        let name = |path: &Vec<u8>| Path::new(&repo.path).join(OsStr::from_bytes(path));
        told.kept.extend(self.kept.iter().map(|path| name(path).to_string_lossy().into_owned()));
    }
}

/// Trees that a merge starts from. Where both differ from `base`, `ours` stays.
struct Sides<'a> {
    base: &'a str,
    ours: &'a str,
    theirs: &'a str,
}

struct Place {
    git: Git,
    folder: PathBuf,
    git_dir: PathBuf,
}

impl Place {
    fn of(repo: &ResyncRepo) -> Result<Self> {
        let folder = places::workspace().join(below(&repo.path)?);
        let git = Git::at(&folder);
        let git_dir = git.read(&["rev-parse", "--absolute-git-dir"])?;
        Ok(Self { git, folder, git_dir: git_dir.into() })
    }

    fn take_over(&self, repo: &ResyncRepo) -> Result<Taken> {
        let oid = |text: &str| text.parse::<ObjectId>().map(|oid| oid.as_str().to_owned());
        let bad = |e: connectors::git::BadName| Error::BadInput(format!("a bad name: {e}"));
        let host = oid(&repo.commit).map_err(bad)?;
        let (before, now) = (oid(&repo.before).map_err(bad)?, oid(&repo.now).map_err(bad)?);
        let branch: BranchName = repo.branch.parse().map_err(bad)?;
        self.check(&branch)?;
        let mut taken = Taken::default();
        let head = self.git.read(&["rev-parse", "--verify", "HEAD^{commit}"])?;
        let tree =
            |commit: &str| self.git.read(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]);
        let staged = self.git.read(&["write-tree"])?;
        let scratch = Scratch(self.git_dir.join("agentbox-resync"));
        fs::copy(self.git_dir.join("index"), &scratch.0).doing(|| "copy the index")?;
        self.with(&scratch, &["add", "--update"])?;
        let disk = self.with(&scratch, &["write-tree"])?;

        let merged = self.merge(&head, &host, &mut taken)?;
        let (old, new) = (tree(&head)?, tree(&merged)?);
        let staged = self.replay(&Sides { base: &old, ours: &staged, theirs: &new }, &mut taken)?;
        let moved = self.replay(&Sides { base: &old, ours: &disk, theirs: &new }, &mut taken)?;
        let wanted =
            self.replay(&Sides { base: &before, ours: &moved, theirs: &now }, &mut taken)?;
        let wanted = self.without_what_is_there(&disk, wanted, &mut taken)?;
        taken.files = count(&self.changed(&moved, &wanted, None)?);
        if merged == head && wanted == disk {
            return Ok(taken);
        }
        let read = ["read-tree", "-m", "-u", &disk, &wanted];
        self.with(&scratch, &[&LFS_OFFLINE[..], &read].concat())?;
        let reason = "resync with the host";
        self.git.run(&["update-ref", "-m", reason, "HEAD", &merged, &head])?;
        fs::rename(&scratch.0, self.git_dir.join("index")).doing(|| "write the index")?;
        self.git.run(&["read-tree", "--reset", &staged])?;
        intend_to_add(&self.git, self.changed(&staged, &wanted, Some("A"))?)?;
        Ok(taken)
    }

    /// Whether this is a good moment.
    fn check(&self, branch: &BranchName) -> Result<()> {
        let no = |why: String| Err(Error::Failed(why));
        if let Some(name) = UNDER_WAY.iter().find(|name| self.git_dir.join(name).exists()) {
            return no(format!("git is in the middle of something ({name})"));
        }
        let on = self.git.read(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
        if on != branch.to_ref().as_str() {
            return no(format!("it is not on its branch {branch}"));
        }
        if !self.git.run(&["ls-files", "--unmerged"])?.is_empty() {
            return no("it has conflicts that nobody has resolved".into());
        }
        Ok(())
    }

    /// Git on another index than the repository's.
    fn with(&self, index: &Scratch, args: &[&str]) -> Result<String> {
        let mut command = self.git.command(&[&["-c", "core.safecrlf=false"], args].concat());
        command.env("GIT_INDEX_FILE", &index.0).stdin(Stdio::null());
        let output = command.output().map_err(|e| Error::Program("git", e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Git { what: "git".into(), said })
    }

    /// The commit the box is to be at: the host's where the box has nothing of its own, else one that
    /// has both.
    fn merge(&self, head: &str, host: &str, taken: &mut Taken) -> Result<String> {
        let is_in = |a: &str, b: &str| self.git.run(&["merge-base", "--is-ancestor", a, b]).is_ok();
        if is_in(host, head) {
            return Ok(head.to_owned());
        }
        let range = format!("{head}..{host}");
        taken.commits = self.git.read(&["rev-list", "--count", &range])?.parse().unwrap_or(0);
        if is_in(head, host) {
            return Ok(host.to_owned());
        }
        let tree = self.merge_trees(head, host, head, taken)?;
        let message = "Merge what is new on the host";
        self.git.read(&[
            "-c",
            "user.name=agentbox",
            "-c",
            "user.email=agentbox@localhost",
            "commit-tree",
            "--no-gpg-sign",
            &tree,
            "-p",
            head,
            "-p",
            host,
            "-m",
            message,
        ])
    }

    /// One tree with the changes of another. What does not fit stays as `ours` has it.
    fn replay(&self, sides: &Sides<'_>, taken: &mut Taken) -> Result<String> {
        let Sides { base, ours, theirs } = *sides;
        if base == theirs || ours == theirs {
            return Ok(ours.to_owned());
        }
        if base == ours {
            return Ok(theirs.to_owned());
        }
        let base = self.commit(base, None)?;
        let (own, other) = (self.commit(ours, Some(&base))?, self.commit(theirs, Some(&base))?);
        self.merge_trees(&own, &other, ours, taken)
    }

    /// A commit that nothing keeps, so that the right tree is the base of a merge.
    fn commit(&self, tree: &str, parent: Option<&str>) -> Result<String> {
        let parent: String = parent.map(|oid| format!("parent {oid}\n")).unwrap_or_default();
        let who = "agentbox <agentbox@localhost> 0 +0000";
        let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\ntrees\n");
        let made =
            self.git.feed(&["hash-object", "-w", "-t", "commit", "--stdin"], text.as_bytes())?;
        Ok(String::from_utf8_lossy(&made).trim().to_owned())
    }

    /// The merge of two commits, with conflicts as `keep` has them.
    fn merge_trees(&self, a: &str, b: &str, keep: &str, taken: &mut Taken) -> Result<String> {
        let args = ["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", a, b];
        let mut command = self.git.command(&args);
        let output = command.stdin(Stdio::null()).output().map_err(|e| Error::Program("git", e))?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Git { what: "git merge-tree".into(), said });
        }
        let mut parts = output.stdout.split(|b| *b == 0).filter(|part| !part.is_empty());
        let tree = parts.next().map(|part| String::from_utf8_lossy(part).trim().to_owned());
        let tree = tree.filter(|tree| tree.parse::<ObjectId>().is_ok());
        let tree = tree.ok_or_else(|| Error::Failed("git merge-tree said nothing".into()))?;
        let conflicts: BTreeSet<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
        let tree = self.as_in(&tree, keep, &conflicts)?;
        taken.kept.extend(conflicts);
        Ok(tree)
    }

    /// `tree` with these paths as they are in `keep`.
    fn as_in(&self, tree: &str, keep: &str, paths: &BTreeSet<Vec<u8>>) -> Result<String> {
        if paths.is_empty() {
            return Ok(tree.to_owned());
        }
        let none = "0".repeat(tree.len());
        let mut lines = Vec::new();
        for path in paths {
            lines.extend([format!("0 {none}\t").as_bytes(), path, b"\0"].concat());
        }
        for path in paths.iter().chain(&aside(paths)) {
            let name = OsStr::from_bytes(path);
            let list = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", keep, "--"];
            let mut args: Vec<OsString> = list.iter().map(OsString::from).collect();
            args.push(name.to_owned());
            lines.extend(self.git.run(&args)?);
        }
        let scratch = Scratch(self.git_dir.join("agentbox-resync-sides"));
        self.with(&scratch, &["read-tree", tree])?;
        let update = ["update-index", "--replace", "-z", "--index-info"];
        self.git.feed_with(&update, &lines, &[("GIT_INDEX_FILE", scratch.0.as_os_str())])?;
        self.with(&scratch, &["write-tree"])
    }

    /// Names that differ between two trees.
    fn changed(&self, from: &str, to: &str, only: Option<&str>) -> Result<Vec<u8>> {
        let filter = only.map(|kind| format!("--diff-filter={kind}"));
        let mut args = vec!["diff-tree", "-r", "-z", "--no-renames", "--name-only"];
        args.extend(filter.as_deref());
        args.extend([from, to]);
        self.git.run(&args)
    }

    /// Files the box has and does not track are not written over.
    fn without_what_is_there(
        &self,
        disk: &str,
        wanted: String,
        taken: &mut Taken,
    ) -> Result<String> {
        let new = self.changed(disk, &wanted, Some("A"))?;
        let is_there = |name: &&[u8]| {
            let path = Path::new(OsStr::from_bytes(name));
            let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
            let mut above = above.map(|above| self.folder.join(above).symlink_metadata());
            self.folder.join(path).symlink_metadata().is_ok()
                || above.any(|data| data.is_ok_and(|data| !data.is_dir()))
        };
        let names = new.split(|b| *b == 0).filter(|name| !name.is_empty());
        // One that is replaced by a folder of its name is gone by then.
        let tracked = self.git.run(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", disk])?;
        let tracked: BTreeSet<&[u8]> = tracked.split(|b| *b == 0).collect();
        let replaced = |name: &&[u8]| {
            let at = |at: usize| name[at] == b'/' && tracked.contains(&name[..at]);
            (0..name.len()).any(at)
        };
        let kept: BTreeSet<Vec<u8>> =
            names.filter(|name| !replaced(name)).filter(is_there).map(<[u8]>::to_vec).collect();
        let tree = self.as_in(&wanted, disk, &kept)?;
        taken.kept.extend(kept);
        Ok(tree)
    }
}

/// Git puts a file whose place became a folder under another name, `x~side`. These are the places.
fn aside(paths: &BTreeSet<Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let place = |path: &Vec<u8>| {
        let at = path.iter().rposition(|byte| *byte == b'~')?;
        Some(path[..at].to_vec()).filter(|place| !place.is_empty())
    };
    paths.iter().filter_map(place).collect()
}

fn count(names: &[u8]) -> u32 {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    u32::try_from(names.count()).unwrap_or(u32::MAX)
}

/// An index of ours; gone when it is not wanted any more.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
