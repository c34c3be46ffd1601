//! `agentbox-ctl unbundle`: takes in what the host fetched.
//!
//! Objects first, then the refs that need them. Only remote-tracking refs and tags are ever
//! written: a branch of the box moves by the box's own git alone.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::real_git::Git;
use connectors::git::{BranchName, ObjectId, RefName, RemoteName};
use protocol::ctl::{RefAt, Unbundle, Upstream};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const WRITABLE: [&str; 2] = ["refs/remotes/", "refs/tags/"];

pub fn run() -> Result<i32> {
    let mut stdin = io::stdin().lock();
    let plan: Unbundle = input::json_line(&mut stdin)?;
    let updates = updates(&plan)?;
    let git = plan.repo.as_ref().map_or_else(Git::for_host, |dir| Git::at(Path::new(dir)));
    if plan.bundle {
        take_in(&git, &mut stdin)?;
    }
    // Before the updates: `a` must be gone before `a/b` can be.
    if let Some(prefix) = &plan.prune {
        let kept = plan.refs.iter().map(|r| r.name.as_str()).collect();
        prune(&git, prefix, &kept)?;
    }
    git.feed(&["update-ref", "--stdin"], updates.as_bytes())?;
    plan.upstream.iter().try_for_each(|upstream| set_upstream(&git, upstream))?;
    Ok(protocol::exit::OK)
}

/// What somebody in the box has chosen stays.
fn set_upstream(git: &Git, upstream: &Upstream) -> Result<()> {
    let Upstream { branch, remote, merge } = upstream;
    let bad = |e: connectors::git::BadName| Error::BadInput(format!("a bad name: {e}"));
    let (branch, merge): (BranchName, BranchName) =
        (branch.parse().map_err(bad)?, merge.parse().map_err(bad)?);
    let remote: RemoteName = remote.parse().map_err(bad)?;
    let key = format!("branch.{branch}.merge");
    if git.run(&["config", &key]).is_ok() {
        return Ok(());
    }
    git.run(&["config", &format!("branch.{branch}.remote"), remote.as_str()])?;
    git.run(&["config", &key, merge.to_ref().as_str()]).map(drop)
}

fn updates(plan: &Unbundle) -> Result<String> {
    let bad = |e: connectors::git::BadName| Error::BadInput(format!("a bad name: {e}"));
    let update = |at: &RefAt| {
        let name: RefName = at.name.parse().map_err(bad)?;
        let oid: ObjectId = at.oid.parse().map_err(bad)?;
        writable(name.as_str())?;
        // `<remote>/HEAD` may point at a branch; it is that name which is set, not the branch.
        Ok(format!("option no-deref\nupdate {name} {oid}\n"))
    };
    let updates: Vec<String> = plan.refs.iter().map(update).collect::<Result<_>>()?;
    Ok(updates.concat())
}

fn writable(name: &str) -> Result<()> {
    if WRITABLE.iter().any(|w| name.starts_with(w)) {
        return Ok(());
    }
    let shown = protocol::text::visible(name);
    Err(Error::BadInput(format!("a ref that is not the host's to set: {shown}")))
}

/// By way of a file: older git reads bundles from nothing else.
pub fn take_in(git: &Git, from: &mut impl Read) -> Result<()> {
    let dir = PathBuf::from(git.read(&["rev-parse", "--absolute-git-dir"])?);
    let file = Temporary(dir.join(format!("agentbox-{}.bundle", std::process::id())));
    let doing = || format!("write {}", file.0.display());
    io::copy(from, &mut File::create(&file.0).doing(doing)?).doing(doing)?;
    git.run(&["bundle".as_ref(), "unbundle".as_ref(), file.0.as_os_str()]).map(drop)
}

struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn prune(git: &Git, prefix: &str, kept: &HashSet<&str>) -> Result<()> {
    writable(prefix)?;
    let prefix = format!("{}/", prefix.trim_end_matches('/'));
    let refs = git.read(&["for-each-ref", "--format=%(refname)", &prefix])?;
    // git keeps the default-branch pointer when it prunes.
    let is_pointer = |name: &str| Path::new(name).file_name().is_some_and(|n| n == "HEAD");
    let gone = refs.lines().filter(|name| !kept.contains(name) && !is_pointer(name));
    let deletes: Vec<String> =
        gone.map(|name| format!("option no-deref\ndelete {name}\n")).collect();
    git.feed(&["update-ref", "--stdin"], deletes.concat().as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tracking_refs_and_tags_are_written() {
        let oid = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let plan = |name: &str| Unbundle {
            refs: vec![RefAt { name: name.into(), oid: oid.clone() }],
            ..Unbundle::default()
        };
        assert!(updates(&plan("refs/remotes/origin/main")).is_ok());
        assert!(updates(&plan("refs/tags/v1")).is_ok());
        for bad in
            ["refs/heads/main", "HEAD", "refs/remotes/a\nupdate x", "refs/remotes/../heads/x"]
        {
            assert!(updates(&plan(bad)).is_err(), "{bad:?} was taken");
        }
    }
}
