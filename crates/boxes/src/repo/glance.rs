//! What somebody who is about to make a box wants to see of a repository.

use super::git::Git;
use crate::Error;
use std::path::Path;

/// More are no choice any more.
const MOST: usize = 300;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branches {
    /// What is checked out; none between branches.
    pub current: Option<String>,
    /// The one with the newest commit first.
    pub own: Vec<String>,
    /// `origin/main`, in the same order.
    pub remote: Vec<String>,
}

pub async fn branches(toplevel: &Path) -> Result<Branches, Error> {
    let head =
        Git::new("read HEAD", toplevel)?.args(["symbolic-ref", "--quiet", "--short", "HEAD"]);
    let head = head.ask().await?;
    let current = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    Ok(Branches {
        current: Some(current).filter(|name| head.code == 0 && !name.is_empty()),
        own: names(toplevel, "refs/heads/").await?,
        remote: names(toplevel, "refs/remotes/").await?,
    })
}

async fn names(toplevel: &Path, below: &str) -> Result<Vec<String>, Error> {
    let most = format!("--count={MOST}");
    let args = ["for-each-ref", &most, "--sort=-committerdate", "--format=%(refname)", below];
    let list = Git::new("list branches", toplevel)?.args(args).run().await?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let name = |line: &str| line.strip_prefix(below).map(str::to_owned);
    // A remote's HEAD is another name of one of the others.
    Ok(list.lines().filter_map(name).filter(|name| !name.ends_with("/HEAD")).collect())
}

/// How many files have changes that are in no commit.
pub async fn uncommitted(toplevel: &Path) -> Result<u32, Error> {
    let args = ["status", "--porcelain", "-z", "--no-renames"];
    let list = Git::new("look for changes", toplevel)?.args(args).run().await?;
    let count = list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).count();
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::Repo;

    #[tokio::test]
    async fn branches_and_changes_are_seen() {
        let repo = Repo::new();
        assert_eq!(branches(repo.path()).await.unwrap().own, Vec::<String>::new());
        repo.commit("a.txt", "a");
        repo.git(&["branch", "feature/x"]);
        repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
        let seen = branches(repo.path()).await.unwrap();
        let current = seen.current.clone().unwrap();
        assert!(seen.own.contains(&current) && seen.own.contains(&"feature/x".to_owned()));
        assert_eq!(seen.remote, ["origin/main"]);
        assert_eq!(uncommitted(repo.path()).await.unwrap(), 0);
        repo.write("a.txt", "b");
        repo.write("ö new.txt", "");
        assert_eq!(uncommitted(repo.path()).await.unwrap(), 2);
        repo.git(&["checkout", "-q", "--detach"]);
        assert_eq!(branches(repo.path()).await.unwrap().current, None);
    }
}
