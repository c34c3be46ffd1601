//! What becomes of a box's branch and pins in the person's repository when the box goes.
//!
//! Commits on the branch were made in a box: their texts are shown only after they were made
//! harmless, and nothing here runs what a repository can configure for reading them.

use super::git::Git;
use crate::Error;
use protocol::BoxId;
use std::collections::BTreeSet;
use std::path::Path;

/// Commits that are listed; the rest is counted.
const LISTED: &str = "20";

/// Commits of a branch that are on no remote and that its base has not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpushed {
    pub count: usize,
    /// The newest: short id and subject.
    pub newest: Vec<(String, String)>,
}

/// What was made on a branch and is in this repository alone; none when the branch is not there.
pub async fn unpushed(
    repo: &Path,
    branch: &str,
    base: Option<&str>,
) -> Result<Option<Unpushed>, Error> {
    if tip(repo, branch).await?.is_none() {
        return Ok(None);
    }
    let name = format!("refs/heads/{branch}");
    // A base that is gone would be an error, and then every commit counts.
    let base = base.filter(|base| super::is_oid(base)).unwrap_or_default();
    let base = if is_commit(repo, base).await? { Some(base) } else { None };
    let only = [name.as_str(), "--not", "--remotes"].into_iter().chain(base);
    let count = ["rev-list", "--count"].into_iter().chain(only.clone());
    let count = Git::new("count commits", repo)?.args(count).line().await?;
    let list = ["-c", "log.showSignature=false", "log", "--no-color", "--no-decorate"];
    let list = list.into_iter().chain(["-n", LISTED, "--format=%h%x09%s"]).chain(only);
    let text = Git::new("list commits", repo)?.args(list).run().await?;
    let text = String::from_utf8_lossy(&text);
    let newest = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(Some(Unpushed {
        count: count.parse().unwrap_or(0),
        newest: newest.map(|(id, subject)| (id.to_owned(), subject.to_owned())).collect(),
    }))
}

/// Whether a branch has commits that its base has not; none when the branch is not there.
pub async fn goes_beyond(
    repo: &Path,
    branch: &str,
    base: Option<&str>,
) -> Result<Option<bool>, Error> {
    let Some(tip) = tip(repo, branch).await? else { return Ok(None) };
    let Some(base) = base else { return Ok(Some(true)) };
    let args = ["merge-base", "--is-ancestor", &tip, base];
    let answer = Git::new("compare commits", repo)?.args(args).ask().await?;
    // A base that is gone tells nothing, and then nothing is lost by keeping the branch.
    Ok(Some(answer.code != 0))
}

/// Deletes a branch with whatever is on it. One that is checked out stays, and that is an error.
pub async fn delete_branch(repo: &Path, branch: &str) -> Result<(), Error> {
    let args = ["branch", "--quiet", "-D", "--", branch];
    Git::new("delete the branch", repo)?.args(args).run().await.map(drop)
}

/// The boxes that have pins here, of whatever installation.
pub async fn pinned(repo: &Path) -> Result<BTreeSet<BoxId>, Error> {
    let args = ["for-each-ref", "--format=%(refname)", "refs/agentbox/"];
    let names = Git::new("list pins", repo)?.args(args).run().await?;
    let names = String::from_utf8_lossy(&names);
    let ids = names.lines().filter_map(|name| name.split('/').nth(2)?.parse().ok());
    Ok(ids.collect())
}

async fn is_commit(repo: &Path, oid: &str) -> Result<bool, Error> {
    let args = ["cat-file", "-e", &format!("{oid}^{{commit}}")];
    Ok(!oid.is_empty() && Git::new("look for a commit", repo)?.args(args).ask().await?.code == 0)
}

async fn tip(repo: &Path, branch: &str) -> Result<Option<String>, Error> {
    let name = format!("refs/heads/{branch}^{{commit}}");
    let args = ["rev-parse", "--verify", "--quiet", &name];
    let answer = Git::new("read the branch", repo)?.args(args).ask().await?;
    // Anything else is about the repository, and says nothing of the branch.
    if !matches!(answer.code, 0 | 1) {
        let (what, path) = ("read the branch".to_owned(), repo.to_owned());
        return Err(Error::Git { what, path, why: answer.stderr });
    }
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.code == 0 && super::is_oid(&text)).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Repo;
    use super::*;

    #[tokio::test]
    async fn boxes_16_53_a_branch_goes_beyond_its_base_or_not() {
        let repo = Repo::new();
        let base = repo.commit("a", "one");
        assert_eq!(goes_beyond(repo.path(), "agentbox/x", Some(&base)).await.unwrap(), None);
        repo.git(&["branch", "agentbox/x"]);
        let beyond = || goes_beyond(repo.path(), "agentbox/x", Some(&base));
        assert_eq!(beyond().await.unwrap(), Some(false));
        repo.git(&["checkout", "-q", "agentbox/x"]);
        repo.commit("a", "two");
        assert_eq!(beyond().await.unwrap(), Some(true));
        assert_eq!(goes_beyond(repo.path(), "agentbox/x", None).await.unwrap(), Some(true));
        let gone = "0".repeat(40);
        let unknown = goes_beyond(repo.path(), "agentbox/x", Some(&gone)).await;
        assert_eq!(unknown.unwrap(), Some(true));
        assert!(delete_branch(repo.path(), "agentbox/x").await.is_err(), "it is checked out");
        repo.git(&["checkout", "-q", "main"]);
        delete_branch(repo.path(), "agentbox/x").await.unwrap();
        assert_eq!(beyond().await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_on_no_remote_is_counted() {
        let repo = Repo::new();
        let first = repo.commit("a", "one");
        repo.git(&["update-ref", "refs/remotes/origin/main", &first]);
        assert_eq!(unpushed(repo.path(), "main", None).await.unwrap(), Some(Unpushed::default()));
        for n in 0..25 {
            repo.commit("a", &format!("{n}"));
        }
        let found = unpushed(repo.path(), "main", None).await.unwrap().unwrap();
        assert_eq!((found.count, found.newest.len()), (25, 20));
        assert_eq!(unpushed(repo.path(), "none", None).await.unwrap(), None);
        // Without a remote, what the project had before does not count.
        let base = repo.git(&["rev-parse", "HEAD~3"]);
        repo.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
        let found = unpushed(repo.path(), "main", Some(base.trim())).await.unwrap().unwrap();
        assert_eq!(found.count, 3);
        let gone = "0".repeat(40);
        let found = unpushed(repo.path(), "main", Some(&gone)).await.unwrap().unwrap();
        assert_eq!(found.count, 26);
    }

    #[tokio::test]
    async fn pins_name_their_boxes() {
        let repo = Repo::new();
        let head = repo.commit("a", "one");
        repo.git(&["update-ref", "refs/agentbox/b00000001/base", &head]);
        repo.git(&["update-ref", "refs/agentbox/b00000001/tracking", &head]);
        repo.git(&["update-ref", "refs/agentbox/odd/base", &head]);
        let found = pinned(repo.path()).await.unwrap();
        assert_eq!(found.iter().map(BoxId::as_str).collect::<Vec<_>>(), ["b00000001"]);
    }
}
