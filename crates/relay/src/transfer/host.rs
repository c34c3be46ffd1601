//! The user's own repository: looked at and written to by git there, with hooks and monitors off.
//!
//! No path of a box leads here: the objects come from the transfer repository, where they were
//! checked, and a branch is written only if it is where it was when somebody decided.

use super::{Done, SHOWN_COMMITS, Transfer, approved_ref, box_ref, commits, fetch_args};
use crate::process::{Limit, Output, ProcessError};
use connectors::git::{BranchName, ObjectId};
use protocol::question::Commit;
use std::ffi::OsString;

/// A branch of the user's repository, before a box's commits come to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    pub new: ObjectId,
    /// None: there is no such branch yet.
    pub old: Option<ObjectId>,
    /// What is there was put there for this box.
    pub ours: bool,
    /// Commits that come, and the newest of them.
    pub count: u32,
    pub commits: Vec<Commit>,
    /// Commits that would be on no branch of that name any more, and the newest of them.
    pub lost: u32,
    pub lost_commits: Vec<Commit>,
}

/// How many names are tried for commits that must not be lost.
const MOST_NAMES: u32 = 100;

impl Transfer<'_> {
    /// What landing `new` as `dest` would change.
    pub async fn landing(&self, dest: &BranchName, new: ObjectId) -> Done<Landing> {
        let old = self.host_tip(dest).await?;
        let last = self.resolve(&landed_ref(dest)).await?;
        let ours = old.is_some() && old == last;
        let base = self.worktree.base.as_ref();
        let without: Vec<&str> = old.iter().chain(base).map(ObjectId::as_str).collect();
        let (count, commits) = self.between(new.as_str(), &without).await?;
        let (lost, lost_commits) = match &old {
            Some(old) => self.between(old.as_str(), &[new.as_str()]).await?,
            None => (0, vec![]),
        };
        Ok(Landing { new, old, ours, count, commits, lost, lost_commits })
    }

    async fn between(&self, tip: &str, without: &[&str]) -> Done<(u32, Vec<Commit>)> {
        let range = [&[tip, "--not"], without].concat();
        let count = [&["rev-list", "--count"][..], &range[..]].concat();
        let count = self.must("rev-list", &count, Limit::LOCAL).await?;
        let limit = format!("-n{SHOWN_COMMITS}");
        let log = ["log", "-z", "--no-show-signature", "--format=%h%x09%s", &limit];
        let log = self.must("log", &[&log[..], &range[..]].concat(), Limit::LOCAL).await?;
        Ok((count.out().trim().parse().unwrap_or(0), commits(&log.out())))
    }

    /// Where a branch of the user's repository is.
    pub async fn host_tip(&self, branch: &BranchName) -> Done<Option<ObjectId>> {
        let name = branch.to_ref();
        let args = ["rev-parse", "--quiet", "--verify", name.as_str()].map(OsString::from);
        Ok(self.in_host(&args).await?.out().trim().parse().ok())
    }

    /// Somebody works on the branch: it is checked out in a work tree, or stands for another branch.
    /// By letters alone, as some disks compare.
    pub async fn in_use(&self, branch: &BranchName) -> Done<bool> {
        let list = ["worktree", "list", "--porcelain"].map(OsString::from);
        let list = self.check("worktree list", self.in_host(&list).await?)?.out();
        let name = branch.to_ref().as_str().to_lowercase();
        let checked_out = list
            .lines()
            .filter_map(|line| line.strip_prefix("branch "))
            .any(|other| other.to_lowercase() == name);
        let points = ["symbolic-ref", "--quiet", branch.to_ref().as_str()].map(OsString::from);
        Ok(checked_out || self.in_host(&points).await?.ok())
    }

    /// Moves a branch of the user's repository from `old` to `new`, which is frozen. False when the
    /// branch is elsewhere by now.
    pub async fn write_host(
        &self,
        dest: &BranchName,
        new: &ObjectId,
        old: Option<&ObjectId>,
    ) -> Done<bool> {
        let mut fetch: Vec<OsString> = fetch_args();
        fetch.push(self.worktree.transfer.clone().into());
        fetch.push(approved_ref(&self.worktree.branch).into());
        self.check("fetch", self.in_host(&fetch).await?)?;
        let output = self.in_host(&write_args(dest, new, old).map(OsString::from)).await?;
        if !output.ok() {
            let now = self.host_tip(dest).await?;
            // The box's commits come here by themselves too, and may have been quicker.
            if now.as_ref() != old {
                return Ok(now.as_ref() == Some(new));
            }
        }
        self.check("update-ref", output)?;
        // Without the note the box is asked about more the next time, not less.
        self.git(&["update-ref", &landed_ref(dest), new.as_str()], Limit::LOCAL).await?;
        Ok(true)
    }

    /// Shows the box's branch in the user's repository, unless the user has it checked out or has
    /// put work of their own on it.
    pub async fn land(&self, branch: &BranchName) -> Done<bool> {
        let Some(tip) = self.tip(branch).await? else { return Ok(false) };
        let landed = landed_ref(branch);
        let last = self.resolve(&landed).await?;
        let host = self.worktree.host_repo.as_os_str();
        let local = branch.to_ref();
        let current = self.host_tip(branch).await?;
        let untouched = current.is_none() && self.worktree.base.as_ref() == Some(&tip);
        if current.as_ref() == Some(&tip) || untouched {
            return Ok(true);
        }
        // Only what was written here before may be rewritten, and only on a branch that was made for
        // the box; anything else must fast-forward.
        let ours = self.worktree.has_own_branch() && (current.is_none() || last == current);
        let force = if ours { "+" } else { "" };
        let mut args: Vec<OsString> = fetch_args();
        args.push(self.worktree.transfer.clone().into());
        args.push(format!("{force}{}:{local}", box_ref(branch)).into());
        let output = self.in_host(&args).await?;
        if !output.ok() {
            tracing::info!("{} not updated in {}: {}", branch, host.display(), output.err().trim());
            return Ok(false);
        }
        let note = ["update-ref", &landed, tip.as_str()];
        self.must("update-ref", &note, Limit::LOCAL).await?;
        Ok(true)
    }

    /// Keeps commits of the box that its branch on the host does not have, because the person has it
    /// checked out or has put work of their own on it: under the next free name. The name, when one
    /// was needed.
    pub async fn rescue(&self, branch: &BranchName) -> Done<Option<String>> {
        let Some(tip) = self.tip(branch).await? else { return Ok(None) };
        let untouched = self.worktree.base.as_ref() == Some(&tip);
        if untouched || self.host_has(branch, &tip).await? {
            return Ok(None);
        }
        for n in 2..=MOST_NAMES {
            let Ok(name) = format!("{branch}-{n}").parse::<BranchName>() else { break };
            match self.host_tip(&name).await? {
                Some(at) if at == tip => return Ok(None),
                Some(_) => continue,
                None => {}
            }
            let mut args: Vec<OsString> = fetch_args();
            args.push(self.worktree.transfer.clone().into());
            args.push(format!("{}:{}", box_ref(branch), name.to_ref()).into());
            self.check("fetch", self.in_host(&args).await?)?;
            return Ok(Some(name.to_string()));
        }
        Ok(None)
    }

    /// Whether a branch of the user's repository holds a commit. One the repository does not know is
    /// on no branch of it.
    async fn host_has(&self, branch: &BranchName, commit: &ObjectId) -> Done<bool> {
        let at = branch.to_ref();
        let args = ["merge-base", "--is-ancestor", commit.as_str(), at.as_str()];
        Ok(self.in_host(&args.map(OsString::from)).await?.ok())
    }

    /// Runs git in the user's own repository; its hooks and monitors stay out of it.
    pub(crate) async fn in_host(&self, args: &[OsString]) -> Result<Output, ProcessError> {
        self.in_host_within(Limit::LOCAL, args).await
    }

    pub(crate) async fn in_host_within(
        &self,
        limit: Limit,
        args: &[OsString],
    ) -> Result<Output, ProcessError> {
        let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let args: Vec<OsString> =
            quiet.iter().map(OsString::from).chain(args.iter().cloned()).collect();
        self.tool.run(&self.worktree.host_repo, &args, &self.env, limit).await
    }
}

/// The command that moves the branch, only from where it was. An empty value means: from nowhere.
pub fn write_args(dest: &BranchName, new: &ObjectId, old: Option<&ObjectId>) -> [String; 4] {
    let old = old.map_or("", ObjectId::as_str);
    ["update-ref".into(), dest.to_ref().to_string(), new.to_string(), old.into()]
}

fn landed_ref(branch: &BranchName) -> String {
    format!("refs/landed/{branch}")
}
