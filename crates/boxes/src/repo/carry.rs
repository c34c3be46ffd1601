//! Uncommitted work, taken along without being touched.
//!
//! What is staged and what is on disk become two trees, made with copies of the index, so the
//! person's index, files and stash list stay as they are. A box reads the host's objects, so
//! everything it was given is pinned by refs below `refs/agentbox/<id>/`: the host may collect
//! garbage, prune its remotes and rebase, and the box still works.

use super::git::Git;
use super::replay::{self, Sides};
use super::{Found, RepoSnapshot};
use crate::Error;
use protocol::BoxId;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Work that is not committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// Tree of what is staged, when it differs from the base commit's.
    pub index_tree: Option<String>,
    /// Tree of the tracked files on disk, when it differs from what is staged.
    pub worktree_tree: Option<String>,
    /// Untracked files that are not ignored, relative to the work tree's top. A name that ends
    /// with `/` is a repository of its own.
    pub untracked: Vec<PathBuf>,
    /// What does not fit on the commit the box starts from, and so stays behind.
    pub skipped: Vec<PathBuf>,
}

/// The trees that stand for uncommitted work.
struct Trees {
    /// Of the commit the work was made on.
    head: String,
    staged: String,
    disk: String,
}

/// Takes the work along and pins what the box `id` will read.
pub async fn carry(found: &Found, id: &BoxId) -> Result<Carry, Error> {
    carry_below(found, id, &format!("refs/agentbox/{id}/{}", found.pin)).await
}

/// The same with pins of another name.
pub(super) async fn carry_below(found: &Found, id: &BoxId, prefix: &str) -> Result<Carry, Error> {
    let repo = &found.repo;
    let pins = Pins { repo, prefix: prefix.to_owned(), id };
    if repo.clean {
        pins.write(None, &[]).await?;
        return Ok(Carry::default());
    }
    let temp =
        tempfile::tempdir().map_err(|error| Error::io("make", &std::env::temp_dir(), error))?;
    let head = tree_of(repo, repo.head.as_deref()).await?;
    let (staged, disk) = (temp.path().join("staged"), temp.path().join("disk"));
    let (staged, disk, untracked) = tokio::try_join!(
        index_tree(repo, &staged, &head),
        worktree_tree(repo, &disk),
        untracked(repo),
    )?;
    let trees = Trees { head, staged, disk };
    if repo.base == repo.head {
        pins.write(Some(&trees), &[]).await?;
        return Ok(carried(&trees, &trees.head, untracked, BTreeSet::new()));
    }
    let base = tree_of(repo, repo.base.as_deref()).await?;
    let (moved, mut skipped) = moved(repo, &trees, &base, temp.path()).await?;
    pins.write(Some(&trees), &[&moved.staged, &moved.disk]).await?;
    let clashes = replay::in_the_way(repo, &base, &untracked).await?;
    let untracked = untracked.into_iter().filter(|name| !clashes.contains(name)).collect();
    skipped.extend(clashes);
    Ok(carried(&moved, &base, untracked, skipped))
}

fn carried(
    trees: &Trees,
    base: &str,
    untracked: Vec<PathBuf>,
    skipped: BTreeSet<PathBuf>,
) -> Carry {
    Carry {
        worktree_tree: (trees.disk != trees.staged).then(|| trees.disk.clone()),
        index_tree: (trees.staged != base).then(|| trees.staged.clone()),
        untracked,
        skipped: skipped.into_iter().collect(),
    }
}

/// The work on another commit's tree. A path that does not fit staged or on disk is left out of both.
async fn moved(
    repo: &RepoSnapshot,
    trees: &Trees,
    base: &str,
    temp: &Path,
) -> Result<(Trees, BTreeSet<PathBuf>), Error> {
    let onto = |work| Sides { old: &trees.head, new: base, work };
    let staged = replay::merge(repo, &onto(&trees.staged), temp).await?;
    let disk = replay::merge(repo, &onto(&trees.disk), temp).await?;
    let skipped: BTreeSet<PathBuf> = staged.conflicts.union(&disk.conflicts).cloned().collect();
    let index = temp.join("both");
    let moved = Trees {
        head: base.to_owned(),
        staged: replay::without(repo, &staged.tree, base, &skipped, &index).await?,
        disk: replay::without(repo, &disk.tree, base, &skipped, &index).await?,
    };
    Ok((moved, skipped))
}

/// Removes a box's pins. A repository that is gone has none.
pub async fn unpin(common_dir: &Path, id: &BoxId) -> Result<(), Error> {
    if !common_dir.is_dir() {
        return Ok(());
    }
    unpin_below(common_dir, &format!("refs/agentbox/{id}/")).await
}

pub(super) async fn unpin_below(common_dir: &Path, prefix: &str) -> Result<(), Error> {
    let args = ["for-each-ref", "--format=delete %(refname)", prefix];
    let deletions = Git::new("list pins", common_dir)?.args(args).run().await?;
    if deletions.is_empty() {
        return Ok(());
    }
    let git = Git::new("remove pins", common_dir)?.args(["update-ref", "--stdin"]);
    git.input(deletions).run().await.map(|_| ())
}

/// The tree of a commit; without one, the empty tree.
pub(super) async fn tree_of(repo: &RepoSnapshot, commit: Option<&str>) -> Result<String, Error> {
    let git = Git::new("read the base tree", &repo.toplevel)?;
    match commit {
        Some(oid) => git.args(["rev-parse", "--verify", &format!("{oid}^{{tree}}")]).line().await,
        None => git.args(["hash-object", "-w", "-t", "tree", "--stdin"]).line().await,
    }
}

/// What is staged. With conflicts there is no such tree; the base's stands in for it.
async fn index_tree(repo: &RepoSnapshot, copy: &Path, base_tree: &str) -> Result<String, Error> {
    copy_index(repo, copy)?;
    let top = &repo.toplevel;
    let conflicts = Git::new("list conflicts", top)?.index(copy).args(["ls-files", "--unmerged"]);
    if !conflicts.run().await?.is_empty() {
        return Ok(base_tree.to_owned());
    }
    Git::new("read the index", top)?.index(copy).args(["write-tree"]).line().await
}

/// The tracked files as they are on disk.
async fn worktree_tree(repo: &RepoSnapshot, copy: &Path) -> Result<String, Error> {
    copy_index(repo, copy)?;
    let top = &repo.toplevel;
    let update = ["-c", "core.safecrlf=false", "add", "--update"];
    Git::new("read changed files", top)?.index(copy).args(update).run().await?;
    Git::new("read changed files", top)?.index(copy).args(["write-tree"]).line().await
}

/// Copies the index with its time: git takes an entry as old as the index for possibly changed,
/// and a younger copy would hide a change made in the same instant.
fn copy_index(repo: &RepoSnapshot, copy: &Path) -> Result<(), Error> {
    let index = repo.git_dir.join("index");
    let copied = || -> std::io::Result<()> {
        let modified = match index.metadata() {
            Ok(data) => data.modified()?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        std::fs::copy(&index, copy)?;
        File::options().write(true).open(copy)?.set_modified(modified)
    };
    copied().map_err(|error| Error::io("copy", &index, error))
}

async fn untracked(repo: &RepoSnapshot) -> Result<Vec<PathBuf>, Error> {
    let args = ["ls-files", "--others", "--exclude-standard", "-z"];
    let stdout = Git::new("list untracked files", &repo.toplevel)?.args(args).run().await?;
    let names = stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))).collect())
}

/// The refs that keep what a box reads.
struct Pins<'a> {
    repo: &'a RepoSnapshot,
    prefix: String,
    id: &'a BoxId,
}

impl Pins<'_> {
    /// Keeps the commit the box starts from, the tracking refs, the person's work as it was and
    /// `more` trees made of it.
    async fn write(&self, work: Option<&Trees>, more: &[&String]) -> Result<(), Error> {
        let mut updates = Vec::new();
        let mut update = |name: &str, oid: &str| {
            updates.push(format!("update {}{name} {oid}\n", self.prefix));
        };
        if let Some(base) = &self.repo.base {
            update("base", base);
        }
        if let Some(trees) = work
            && (trees.staged != trees.head || trees.disk != trees.staged)
        {
            let head: Vec<&str> = self.repo.head.iter().map(String::as_str).collect();
            let staged = self.commit(&trees.staged, &head).await?;
            let parents: Vec<&str> = head.iter().copied().chain([staged.as_str()]).collect();
            update("carryover", &self.commit(&trees.disk, &parents).await?);
        }
        let mut chain: Option<String> = None;
        for tree in more {
            let parents: Vec<&str> = chain.iter().map(String::as_str).collect();
            chain = Some(self.commit(tree, &parents).await?);
        }
        if let Some(chain) = &chain {
            update("moved", chain);
        }
        let mut tips: Vec<&str> = self.repo.tracking.iter().map(|at| at.oid.as_str()).collect();
        tips.sort_unstable();
        tips.dedup();
        if !tips.is_empty() {
            // One commit with every tip as a parent keeps them all with a single ref.
            let any = match work {
                Some(trees) => trees.head.clone(),
                None => tree_of(self.repo, None).await?,
            };
            update("tracking", &self.commit(&any, &tips).await?);
        }
        if updates.is_empty() {
            return Ok(());
        }
        let git = Git::new("pin the box's objects", &self.repo.toplevel)?;
        let git = git.args(["update-ref", "--stdin"]).input(updates.concat());
        git.run().await.map(|_| ())
    }

    async fn commit(&self, tree: &str, parents: &[&str]) -> Result<String, Error> {
        let message = format!("Objects that box {} reads", self.id);
        commit(self.repo, &message, tree, parents).await
    }
}

/// Writes a commit that only keeps objects; nobody's identity or clock is needed for it.
pub(super) async fn commit(
    repo: &RepoSnapshot,
    message: &str,
    tree: &str,
    parents: &[&str],
) -> Result<String, Error> {
    let parents: String = parents.iter().flat_map(|parent| ["parent ", parent, "\n"]).collect();
    let who = "AgentBox <agentbox@localhost> 0 +0000";
    let text = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n{message}\n");
    let git = Git::new("pin the box's objects", &repo.toplevel)?;
    git.args(["hash-object", "-w", "-t", "commit", "--stdin"]).input(text).line().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::inspect;
    use crate::repo::testing::{Repo, git_in};

    fn id() -> BoxId {
        BoxId::from_bytes([1, 2, 3, 4])
    }

    async fn carried(repo: &Repo) -> (RepoSnapshot, Carry) {
        let found = Found::root(inspect(repo.path()).await.unwrap().unwrap());
        let carry = carry(&found, &id()).await.unwrap();
        (found.repo, carry)
    }

    fn show(repo: &Repo, tree: Option<&String>, path: &str) -> String {
        repo.git(&["show", &format!("{}:{path}", tree.unwrap())])
    }

    #[tokio::test]
    async fn boxes_16_03_staged_unstaged_and_untracked_are_carried_untouched() {
        let repo = Repo::new();
        repo.commit("both", "old");
        repo.commit("gone", "old");
        repo.commit("plain", "old");
        repo.git(&["stash", "list"]);
        repo.write("both", "staged");
        repo.write("added", "staged");
        repo.git(&["add", "both", "added"]);
        repo.write("both", "on disk");
        std::fs::remove_file(repo.path().join("gone")).unwrap();
        repo.write(".gitignore", "ignored\n");
        repo.write("ignored", "x");
        repo.write("dir/new file", "x");
        let odd = PathBuf::from(OsString::from_vec(b"odd\xff\n".to_vec()));
        std::fs::write(repo.path().join(&odd), "x").unwrap();

        let before = state(&repo);
        let (snapshot, carry) = carried(&repo).await;
        assert_eq!(state(&repo), before, "the host's index, files or stashes changed");

        assert_eq!(show(&repo, carry.index_tree.as_ref(), "both"), "staged");
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "added"), "staged");
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "gone"), "old");
        assert_eq!(show(&repo, carry.worktree_tree.as_ref(), "both"), "on disk");
        let listed = repo.git(&["ls-tree", "--name-only", carry.worktree_tree.as_ref().unwrap()]);
        assert_eq!(listed, "added\nboth\nplain");
        let untracked = [".gitignore".into(), "dir/new file".into(), odd];
        assert_eq!(carry.untracked, untracked);

        // Nothing but the pins keeps these trees.
        repo.git(&["gc", "-q", "--prune=now"]);
        assert_eq!(show(&repo, carry.worktree_tree.as_ref(), "both"), "on disk");
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "both"), "staged");
        assert_eq!(
            repo.git(&["rev-parse", &format!("refs/agentbox/{}/base", id())]),
            snapshot.head.unwrap()
        );
    }

    fn state(repo: &Repo) -> (Vec<u8>, std::time::SystemTime, String, String) {
        let index = repo.path().join(".git/index");
        (
            std::fs::read(&index).unwrap(),
            index.metadata().unwrap().modified().unwrap(),
            repo.git(&["--no-optional-locks", "status", "--porcelain"]),
            repo.git(&["stash", "list"]),
        )
    }

    #[tokio::test]
    async fn a_clean_repository_carries_nothing() {
        let repo = Repo::new();
        repo.commit("a", "one");
        assert_eq!(carried(&repo).await.1, Carry::default());
        assert_eq!(
            repo.git(&["for-each-ref", "--format=%(refname)", "refs/agentbox"]),
            format!("refs/agentbox/{}/base", id())
        );
    }

    #[tokio::test]
    async fn without_commits_the_staged_files_are_carried() {
        let repo = Repo::new();
        assert_eq!(carried(&repo).await.1, Carry::default());
        repo.write("a", "staged");
        repo.git(&["add", "a"]);
        let carry = carried(&repo).await.1;
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "a"), "staged");
        assert_eq!(carry.worktree_tree, None);
    }

    #[tokio::test]
    async fn with_conflicts_the_disk_is_carried_over_the_base() {
        let repo = Repo::new();
        repo.commit("a", "base\n");
        repo.git(&["checkout", "-q", "-b", "side"]);
        repo.commit("a", "side\n");
        repo.git(&["checkout", "-q", "main"]);
        repo.commit("a", "main\n");
        let merge = std::process::Command::new("git")
            .current_dir(repo.path())
            .args(["merge", "-q", "side"])
            .output()
            .unwrap();
        assert!(!merge.status.success());
        let carry = carried(&repo).await.1;
        assert_eq!(carry.index_tree, None);
        assert!(show(&repo, carry.worktree_tree.as_ref(), "a").contains("<<<<<<<"));
        assert!(repo.git(&["status", "--porcelain"]).starts_with("UU"));
    }

    #[tokio::test]
    async fn a_linked_worktree_carries_its_own_index() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let linked = repo.outside("linked");
        repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
        std::fs::write(linked.join("a"), "linked").unwrap();
        git_in(&linked, &["add", "a"]);
        let found = Found::root(inspect(&linked).await.unwrap().unwrap());
        let carry = carry(&found, &id()).await.unwrap();
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "a"), "linked");
    }

    #[tokio::test]
    async fn boxes_16_13_work_that_does_not_fit_stays_behind_and_is_kept() {
        let repo = Repo::new();
        repo.commit("clash", "old\n");
        repo.commit("fits", "old\n");
        repo.git(&["checkout", "-qb", "side"]);
        let side = repo.commit("clash", "side\n");
        repo.commit("new", "tracked there\n");
        repo.git(&["checkout", "-q", "main"]);
        repo.write("clash", "mine\n");
        repo.write("fits", "staged\n");
        repo.git(&["add", "."]);
        repo.write("fits", "on disk\n");
        repo.write("new", "untracked here\n");
        repo.write("other", "untracked\n");
        let before = state(&repo);
        let mut found = Found::root(inspect(repo.path()).await.unwrap().unwrap());
        found.repo.base = Some(repo.git(&["rev-parse", "side"]));
        let carry = carry(&found, &id()).await.unwrap();
        assert_eq!(state(&repo), before);
        assert_eq!(carry.skipped, ["clash", "new"].map(PathBuf::from));
        assert_eq!(carry.untracked, [PathBuf::from("other")]);
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "fits"), "staged");
        assert_eq!(show(&repo, carry.worktree_tree.as_ref(), "fits"), "on disk");
        assert_eq!(show(&repo, carry.worktree_tree.as_ref(), "clash"), "side");
        repo.git(&["branch", "-qD", "side"]);
        repo.git(&["reflog", "expire", "--expire=now", "--all"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        assert_eq!(show(&repo, carry.index_tree.as_ref(), "fits"), "staged");
        repo.git(&["cat-file", "-e", &side]);
        let kept = format!("refs/agentbox/{}/carryover", id());
        assert_eq!(repo.git(&["show", &format!("{kept}:clash")]), "mine");
    }

    #[tokio::test]
    async fn pruned_remote_branches_stay_until_unpinned() {
        let repo = Repo::new();
        repo.commit("a", "one");
        repo.git(&["checkout", "-q", "--detach"]);
        let tip = repo.commit("a", "remote work");
        repo.git(&["checkout", "-q", "main"]);
        repo.git(&["update-ref", "refs/remotes/origin/work", &tip]);
        let (snapshot, _) = carried(&repo).await;
        repo.git(&["update-ref", "-d", "refs/remotes/origin/work"]);
        let collect = || {
            repo.git(&["reflog", "expire", "--expire=now", "--all"]);
            repo.git(&["gc", "-q", "--prune=now"]);
        };
        collect();
        assert_eq!(repo.git(&["cat-file", "-t", &tip]), "commit");

        unpin(&snapshot.common_dir, &id()).await.unwrap();
        assert_eq!(repo.git(&["for-each-ref", "refs/agentbox"]), "");
        collect();
        let gone = std::process::Command::new("git")
            .current_dir(repo.path())
            .args(["cat-file", "-e", &tip])
            .output()
            .unwrap();
        assert!(!gone.status.success());
        unpin(&snapshot.common_dir, &id()).await.unwrap();
        unpin(Path::new("/no/such"), &id()).await.unwrap();
    }
}
