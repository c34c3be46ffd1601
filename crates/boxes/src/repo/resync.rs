//! What is new in a repository since a box last had it.
//!
//! Everything is worked out here from what the person has; nothing of the box is read. What the box is
//! given is pinned anew each time, below `refs/agentbox/<id>/sync/<n>/`, and the older pins stay: the
//! box's history may rest on them.

use super::carry::{carry_below, tree_of, unpin_below};
use super::git::Git;
use super::replay::{self, Sides};
use super::{Carry, Found, RepoSnapshot};
use crate::Error;
use protocol::BoxId;
use std::path::Path;

/// What a box is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    pub commit: String,
    /// The host's files as the box knows them, on that commit.
    pub before: String,
    /// The host's files as they are.
    pub now: String,
    pub carry: Carry,
}

/// Looks for news; none in a repository without commits.
pub(crate) async fn news(found: &Found, id: &BoxId) -> Result<Option<News>, Error> {
    let repo = &found.repo;
    let Some(commit) = repo.base.clone() else { return Ok(None) };
    let last = last(found, id).await?;
    let pins = format!("refs/agentbox/{id}/sync/{}/", last.number + 1);
    let prefix = format!("{pins}{}", found.pin);
    let carry = carry_below(found, id, &prefix).await?;
    let tree = tree_of(repo, Some(&commit)).await?;
    let staged = carry.index_tree.as_ref().unwrap_or(&tree);
    let now = carry.worktree_tree.as_ref().unwrap_or(staged).clone();
    let before = match &last.base {
        None => tree,
        Some(base) => {
            let base = tree_of(repo, Some(base)).await?;
            let known = last.files.unwrap_or_else(|| base.clone());
            on(repo, &base, &tree, &known).await?
        }
    };
    // What is on the disk belongs to another branch: only commits are news.
    let now = if repo.clean { before.clone() } else { now };
    // Nothing new needs no pins.
    if last.base.as_ref() == Some(&commit) && before == now && found.pin.is_empty() {
        unpin_below(&repo.common_dir, &pins).await?;
    }
    Ok(Some(News { commit, before, now, carry }))
}

/// What a box knew of the host's files, had they been made on `new`.
async fn on(repo: &RepoSnapshot, old: &str, new: &str, work: &str) -> Result<String, Error> {
    if work == old || new == work {
        return Ok(new.to_owned());
    }
    if new == old {
        return Ok(work.to_owned());
    }
    let temp =
        tempfile::tempdir().map_err(|error| Error::io("make", &std::env::temp_dir(), error))?;
    Ok(replay::merge(repo, &Sides { old, new, work }, temp.path()).await?.tree)
}

/// What a box was given last.
struct Last {
    number: u32,
    base: Option<String>,
    /// Tree of the host's files.
    files: Option<String>,
}

async fn last(found: &Found, id: &BoxId) -> Result<Last, Error> {
    let dir = &found.repo.toplevel;
    let sync = format!("refs/agentbox/{id}/sync/");
    let args = ["for-each-ref", "--format=%(refname)", &sync];
    let names = Git::new("list pins", dir)?.args(args).run().await?;
    let names = String::from_utf8_lossy(&names).into_owned();
    let mine = |name: &str| -> Option<u32> {
        let (number, rest) = name.strip_prefix(&sync)?.split_once('/')?;
        let number = number.parse().ok()?;
        // The pins of another work tree of the same repository are numbered below.
        (rest.strip_prefix(&found.pin)? == "base").then_some(number)
    };
    let number = names.lines().filter_map(mine).max().unwrap_or(0);
    let prefix = match number {
        0 => format!("refs/agentbox/{id}/{}", found.pin),
        number => format!("{sync}{number}/{}", found.pin),
    };
    let base = oid(dir, &format!("{prefix}base^{{commit}}")).await?;
    let files = match oid(dir, &format!("{prefix}moved^{{tree}}")).await? {
        Some(tree) => Some(tree),
        None => oid(dir, &format!("{prefix}carryover^{{tree}}")).await?,
    };
    Ok(Last { number, base, files })
}

async fn oid(dir: &Path, name: &str) -> Result<Option<String>, Error> {
    let args = ["rev-parse", "--verify", "--quiet", name];
    let answer = Git::new("read a pin", dir)?.args(args).ask().await?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.code == 0 && super::is_oid(&text)).then_some(text))
}

/// The commit a name means now; none when it means none.
pub(crate) async fn resolve(dir: &Path, name: &str) -> Result<Option<String>, Error> {
    if name.starts_with('-') {
        return Ok(None);
    }
    oid(dir, &format!("{name}^{{commit}}")).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::inspect;
    use crate::repo::testing::Repo;

    fn id() -> BoxId {
        BoxId::from_bytes([1, 2, 3, 4])
    }

    async fn look(repo: &Repo) -> Found {
        Found::root(inspect(repo.path()).await.unwrap().unwrap())
    }

    fn show(repo: &Repo, tree: &str, path: &str) -> String {
        repo.git(&["show", &format!("{tree}:{path}")])
    }

    #[tokio::test]
    async fn only_what_the_box_does_not_know_is_news() {
        let repo = Repo::new();
        repo.commit("a", "1");
        repo.commit("b", "1");
        repo.write("a", "work");
        crate::repo::carry(&look(&repo).await, &id()).await.unwrap();
        let same = news(&look(&repo).await, &id()).await.unwrap().unwrap();
        assert_eq!(same.before, same.now);

        // Committing what the box knows, and something else beside it.
        repo.git(&["commit", "-qam", "work"]);
        let head = repo.commit("b", "2");
        repo.write("b", "more");
        let some = news(&look(&repo).await, &id()).await.unwrap().unwrap();
        assert_eq!(some.commit, head);
        assert_eq!(
            (show(&repo, &some.before, "a"), show(&repo, &some.now, "a")),
            ("work".into(), "work".into())
        );
        assert_eq!(
            (show(&repo, &some.before, "b"), show(&repo, &some.now, "b")),
            ("2".into(), "more".into())
        );

        // The next time that is known, too, and everything given stays pinned.
        repo.write("b", "most");
        let third = news(&look(&repo).await, &id()).await.unwrap().unwrap();
        assert_eq!(
            (show(&repo, &third.before, "b"), show(&repo, &third.now, "b")),
            ("more".into(), "most".into())
        );
        let pins = repo.git(&["for-each-ref", "--format=%(refname)", "refs/agentbox"]);
        let bases = pins.lines().filter(|name| name.ends_with("/base")).count();
        assert_eq!(bases, 3, "{pins}");
    }

    #[tokio::test]
    async fn names_are_no_options() {
        let repo = Repo::new();
        let head = repo.commit("a", "1");
        assert_eq!(resolve(repo.path(), "main").await.unwrap(), Some(head));
        assert_eq!(resolve(repo.path(), "--all").await.unwrap(), None);
        assert_eq!(resolve(repo.path(), "none").await.unwrap(), None);
    }
}
