//! Where a box starts: the commit that is checked out, a branch to start from, or one to work on.
//!
//! Names mean what they mean to git in the person's repository. A branch of a remote is fetched
//! first, into the box's own refs: the person's tracking refs stay as they are.

use super::git::Git;
use super::{RepoSnapshot, is_oid};
use crate::Error;
use protocol::BoxId;
use std::time::Duration;

/// What a person chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Start {
    /// What is checked out, with everything uncommitted.
    #[default]
    Here,
    /// Another commit, with everything uncommitted that fits there.
    From(String),
    /// An existing branch, as it is, to work on.
    On(String),
}

/// A remote that answers later than this is not waited for.
const FETCH: Duration = Duration::from_secs(60);

/// Finds the commit and puts it into the snapshot. Answers the branch to work on, when one was
/// chosen. `taken` are branches other boxes work on.
pub async fn start(
    repo: &mut RepoSnapshot,
    start: &Start,
    id: &BoxId,
    taken: &[String],
) -> Result<Option<String>, Error> {
    let bad = |name: &str, why: &str| Error::Branch { name: name.to_owned(), why: why.to_owned() };
    match start {
        Start::Here => Ok(None),
        Start::From(name) => {
            let found = commit(repo, name, id).await?;
            repo.base = Some(found.ok_or_else(|| bad(name, "there is no such commit"))?);
            Ok(None)
        }
        Start::On(name) => {
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            if !is_branch(repo, name).await? {
                return Err(bad(name, "that is no name of a branch"));
            }
            if taken.iter().any(|other| other == name) {
                return Err(bad(name, "another box works on it"));
            }
            if checked_out(repo, name).await? {
                let why = "it is checked out on this computer; switch to another one there";
                return Err(bad(name, why));
            }
            let local = resolve(repo, &format!("refs/heads/{name}")).await?;
            let found = match local {
                Some(oid) => Some(oid),
                None => fetched(repo, "origin", name, id).await?,
            };
            repo.base = Some(found.ok_or_else(|| bad(name, "there is no such branch"))?);
            repo.clean = true;
            Ok(Some(name.to_owned()))
        }
    }
}

async fn is_branch(repo: &RepoSnapshot, name: &str) -> Result<bool, Error> {
    let git = Git::new("check the branch", &repo.toplevel)?;
    Ok(git.args(["check-ref-format", "--branch", name]).ask().await?.code == 0)
}

async fn commit(repo: &RepoSnapshot, name: &str, id: &BoxId) -> Result<Option<String>, Error> {
    if name.is_empty() || name.starts_with('-') || name.contains(['\n', '\0']) {
        return Ok(None);
    }
    let of_remote = name.split_once('/').filter(|(remote, _)| repo.remotes.contains_key(*remote));
    if let Some((remote, branch)) = of_remote
        && let Some(oid) = fetched(repo, remote, branch, id).await?
    {
        return Ok(Some(oid));
    }
    match resolve(repo, name).await? {
        Some(oid) => Ok(Some(oid)),
        None => fetched(repo, "origin", name, id).await,
    }
}

async fn resolve(repo: &RepoSnapshot, name: &str) -> Result<Option<String>, Error> {
    let name = format!("{name}^{{commit}}");
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
    let answer = Git::new("find the commit", &repo.toplevel)?.args(args).ask().await?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.code == 0 && is_oid(&text)).then_some(text))
}

/// A branch as it is at the remote now; none when the remote does not say.
async fn fetched(
    repo: &RepoSnapshot,
    remote: &str,
    branch: &str,
    id: &BoxId,
) -> Result<Option<String>, Error> {
    let git = Git::new("fetch the branch", &repo.toplevel)?.with_keys();
    if !repo.remotes.contains_key(remote) || !is_branch(repo, branch).await? {
        return Ok(None);
    }
    let pin = format!("refs/agentbox/{id}/start");
    let spec = format!("+refs/heads/{branch}:{pin}");
    let quiet = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"];
    let alone = ["--no-recurse-submodules", "--refmap="];
    let git = git.args(quiet).args(alone).args([remote, &spec]);
    match tokio::time::timeout(FETCH, git.ask()).await {
        Ok(Ok(answer)) if answer.code == 0 => resolve(repo, &pin).await,
        Ok(Ok(_)) | Err(_) => Ok(None),
        Ok(Err(error)) => Err(error),
    }
}

/// By letters alone, as some disks compare.
async fn checked_out(repo: &RepoSnapshot, branch: &str) -> Result<bool, Error> {
    let git = Git::new("list work trees", &repo.toplevel)?;
    let list = git.args(["worktree", "list", "--porcelain"]).run().await?;
    let name = format!("refs/heads/{branch}").to_lowercase();
    let list = String::from_utf8_lossy(&list).into_owned();
    let mut branches = list.lines().filter_map(|line| line.strip_prefix("branch "));
    Ok(branches.any(|other| other.to_lowercase() == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::inspect;
    use crate::repo::testing::Repo;

    fn id() -> BoxId {
        BoxId::from_bytes([1, 2, 3, 4])
    }

    async fn begin(repo: &Repo, at: Start) -> Result<(Option<String>, RepoSnapshot), Error> {
        let mut snapshot = inspect(repo.path()).await.unwrap().unwrap();
        let branch = start(&mut snapshot, &at, &id(), &["taken".into()]).await?;
        Ok((branch, snapshot))
    }

    #[tokio::test]
    async fn a_branch_a_tag_and_a_commit_are_found() {
        let repo = Repo::new();
        let first = repo.commit("a", "one");
        repo.git(&["branch", "side"]);
        repo.git(&["tag", "-am", "x", "v1"]);
        repo.commit("a", "two");
        for name in ["side", "v1", "HEAD~1", &first[..9]] {
            let (branch, snapshot) = begin(&repo, Start::From(name.into())).await.unwrap();
            assert_eq!((branch, snapshot.base.as_ref()), (None, Some(&first)), "{name}");
        }
        for name in ["", "no", "-x", "--upload-pack=x", "a\nb"] {
            let error = begin(&repo, Start::From(name.into())).await.unwrap_err();
            assert!(matches!(error, Error::Branch { .. }), "{name}");
        }
    }

    #[tokio::test]
    async fn a_remote_branch_is_fetched_without_moving_tracking_refs() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let other = repo.outside("other");
        repo.git(&["clone", "-q", ".", other.to_str().unwrap()]);
        let git = |args: &[&str]| crate::repo::testing::git_in(&other, args);
        git(&["config", "user.name", "x"]);
        git(&["config", "user.email", "x@x"]);
        git(&["checkout", "-qb", "far"]);
        git(&["commit", "-q", "--allow-empty", "-m", "far"]);
        let tip = git(&["rev-parse", "HEAD"]);
        repo.git(&["remote", "add", "origin", other.to_str().unwrap()]);
        let before = repo.git(&["for-each-ref", "refs/heads", "refs/remotes"]);
        for at in
            [Start::From("origin/far".into()), Start::From("far".into()), Start::On("far".into())]
        {
            assert_eq!(begin(&repo, at).await.unwrap().1.base, Some(tip.clone()));
        }
        assert_eq!(repo.git(&["for-each-ref", "refs/heads", "refs/remotes"]), before);
        assert!(!repo.path().join(".git/FETCH_HEAD").exists());
    }

    #[tokio::test]
    async fn boxes_16_11_a_branch_that_is_checked_out_is_not_worked_on() {
        let repo = Repo::new();
        let first = repo.commit("a", "one");
        repo.git(&["branch", "side"]);
        repo.git(&["branch", "taken"]);
        for name in ["main", "refs/heads/main", "MAIN", "taken", "no-such", "a..b"] {
            let error = begin(&repo, Start::On(name.into())).await.unwrap_err();
            assert!(matches!(error, Error::Branch { .. }), "{name}");
        }
        let (branch, snapshot) = begin(&repo, Start::On("side".into())).await.unwrap();
        assert_eq!((branch.as_deref(), snapshot.base), (Some("side"), Some(first)));
        assert!(snapshot.clean);
    }
}
