//! Uncommitted work on another commit than it was made on.
//!
//! A merge of trees, without a work tree: what both sides changed in ways that do not fit together is
//! left as the new commit has it, and named. No conflict marker ever reaches a box.

use super::RepoSnapshot;
use super::git::Git;
use crate::Error;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The three trees a merge starts from.
pub(super) struct Sides<'a> {
    /// What the work was made on.
    pub old: &'a str,
    /// What it is to be on.
    pub new: &'a str,
    /// The work.
    pub work: &'a str,
}

pub(super) struct Merged {
    pub tree: String,
    pub conflicts: BTreeSet<PathBuf>,
}

/// The work on the new tree. Where both changed, the new tree's side stays.
pub(super) async fn merge(
    repo: &RepoSnapshot,
    sides: &Sides<'_>,
    temp: &Path,
) -> Result<Merged, Error> {
    let merged = match by_merge_tree(repo, sides).await? {
        Some(merged) => merged,
        None => by_read_tree(repo, sides, &temp.join("merge")).await?,
    };
    let tree =
        without(repo, &merged.tree, sides.new, &merged.conflicts, &temp.join("sides")).await?;
    Ok(Merged { tree, ..merged })
}

/// With git 2.38 and later, also inside files. None when this git cannot.
async fn by_merge_tree(repo: &RepoSnapshot, sides: &Sides<'_>) -> Result<Option<Merged>, Error> {
    // Commits of their own, so that the right tree is the base of the merge.
    let old = commit(repo, sides.old, None).await?;
    let (new, work) =
        (commit(repo, sides.new, Some(&old)).await?, commit(repo, sides.work, Some(&old)).await?);
    let args = ["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", &new, &work];
    let answer = Git::new("merge your changes", &repo.toplevel)?.args(args).ask().await?;
    if !matches!(answer.code, 0 | 1) {
        return Ok(None);
    }
    let mut parts = answer.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let tree = parts.next().map(|part| String::from_utf8_lossy(part).trim().to_owned());
    let Some(tree) = tree.filter(|tree| super::is_oid(tree)) else { return Ok(None) };
    Ok(Some(Merged { tree, conflicts: parts.map(path).collect() }))
}

/// With any git, whole files only: a file both sides changed is a conflict.
async fn by_read_tree(
    repo: &RepoSnapshot,
    sides: &Sides<'_>,
    index: &Path,
) -> Result<Merged, Error> {
    let git = || Ok::<_, Error>(Git::new("merge your changes", &repo.toplevel)?.index(index));
    let read = ["read-tree", "-m", "-i", "--aggressive", sides.old, sides.new, sides.work];
    git()?.args(read).run().await?;
    let unmerged = git()?.args(["ls-files", "--unmerged", "-z"]).run().await?;
    let entries = unmerged.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let name = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        Some(path(&entry[tab + 1..]))
    };
    let conflicts: BTreeSet<PathBuf> = entries.filter_map(name).collect();
    let forget = remove(&conflicts, repo);
    git()?.args(["update-index", "-z", "--index-info"]).input(forget).run().await?;
    let tree = git()?.args(["write-tree"]).line().await?;
    Ok(Merged { tree, conflicts })
}

/// `tree` with these paths as they are in `new`.
pub(super) async fn without(
    repo: &RepoSnapshot,
    tree: &str,
    new: &str,
    paths: &BTreeSet<PathBuf>,
    index: &Path,
) -> Result<String, Error> {
    if paths.is_empty() {
        return Ok(tree.to_owned());
    }
    let git = || Ok::<_, Error>(Git::new("merge your changes", &repo.toplevel)?.index(index));
    git()?.args(["read-tree", tree]).run().await?;
    let mut changes = remove(paths, repo);
    for some in paths.iter().collect::<Vec<_>>().chunks(100) {
        let list =
            git()?.args(["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", new, "--"]);
        changes.extend(list.args(some).run().await?);
    }
    let update = ["update-index", "--replace", "-z", "--index-info"];
    git()?.args(update).input(changes).run().await?;
    git()?.args(["write-tree"]).line().await
}

/// Lines for `update-index --index-info` that take paths out.
fn remove(paths: &BTreeSet<PathBuf>, repo: &RepoSnapshot) -> Vec<u8> {
    let none = "0".repeat(if repo.object_format == "sha256" { 64 } else { 40 });
    let line = |path: &PathBuf| {
        [format!("0 {none}\t").as_bytes(), path.as_os_str().as_bytes(), b"\0"].concat()
    };
    paths.iter().flat_map(line).collect()
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

async fn commit(repo: &RepoSnapshot, tree: &str, parent: Option<&str>) -> Result<String, Error> {
    let parents: Vec<&str> = parent.into_iter().collect();
    super::carry::commit(repo, "Trees to merge", tree, &parents).await
}

/// Those of `names` that a commit has as files, or has files below or above.
pub(crate) async fn in_the_way(
    repo: &RepoSnapshot,
    base: &str,
    names: &[PathBuf],
) -> Result<BTreeSet<PathBuf>, Error> {
    if names.is_empty() {
        return Ok(BTreeSet::new());
    }
    let git = Git::new("list the files", &repo.toplevel)?;
    let list = git.args(["ls-tree", "-r", "-z", "--full-tree", "--name-only", base]).run().await?;
    let files: BTreeSet<&[u8]> = list.split(|b| *b == 0).filter(|name| !name.is_empty()).collect();
    let clashes = |name: &&PathBuf| {
        let bytes = name.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let above = (0..bytes.len()).filter(|at| bytes[*at] == b'/').map(|at| &bytes[..at]);
        let below = [bytes, b"/"].concat();
        let next = files.range(&below[..]..).next();
        files.contains(bytes)
            || above.into_iter().any(|folder| files.contains(folder))
            || next.is_some_and(|file| file.starts_with(&below))
    };
    Ok(names.iter().filter(clashes).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::inspect;
    use crate::repo::testing::Repo;

    /// One repository where main and side differ, and work on main.
    async fn trees(repo: &Repo) -> (RepoSnapshot, [String; 3]) {
        for (file, text) in
            [("both", "1\n2\n3\n4\n5\n"), ("clash", "a\n"), ("gone", "x\n"), ("mine", "x\n")]
        {
            repo.commit(file, text);
        }
        repo.git(&["checkout", "-qb", "side"]);
        repo.commit("both", "1\n2\n3\n4\nside\n");
        repo.commit("clash", "side\n");
        repo.git(&["rm", "-q", "gone"]);
        repo.commit("theirs", "new\n");
        repo.git(&["checkout", "-q", "main"]);
        repo.write("both", "work\n2\n3\n4\n5\n");
        repo.write("clash", "work\n");
        repo.write("gone", "changed\n");
        repo.write("mine", "work\n");
        repo.write("dir/added", "work\n");
        repo.git(&["add", "."]);
        let tree = |name: &str| repo.git(&["rev-parse", &format!("{name}^{{tree}}")]);
        let trees = [tree("main"), tree("side"), repo.git(&["write-tree"])];
        (inspect(repo.path()).await.unwrap().unwrap(), trees)
    }

    fn names(paths: &BTreeSet<PathBuf>) -> Vec<&str> {
        paths.iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[tokio::test]
    async fn what_fits_is_merged_and_what_does_not_is_left_as_it_was() {
        let repo = Repo::new();
        let (snapshot, [old, new, work]) = trees(&repo).await;
        let sides = Sides { old: &old, new: &new, work: &work };
        let temp = tempfile::tempdir().unwrap();
        let merged = merge(&snapshot, &sides, temp.path()).await.unwrap();
        assert_eq!(names(&merged.conflicts), ["clash", "gone"]);
        let show = |path: &str| repo.git(&["show", &format!("{}:{path}", merged.tree)]);
        assert_eq!(show("both"), "work\n2\n3\n4\nside");
        assert_eq!(
            (show("clash"), show("mine"), show("theirs")),
            ("side".into(), "work".into(), "new".into())
        );
        assert_eq!(show("dir/added"), "work");
        let listed = repo.git(&["ls-tree", "-r", "--name-only", &merged.tree]);
        assert_eq!(listed, "both\nclash\ndir/added\nmine\ntheirs");
    }

    #[tokio::test]
    async fn an_older_git_merges_whole_files() {
        let repo = Repo::new();
        let (snapshot, [old, new, work]) = trees(&repo).await;
        let sides = Sides { old: &old, new: &new, work: &work };
        let temp = tempfile::tempdir().unwrap();
        let merged = by_read_tree(&snapshot, &sides, &temp.path().join("i")).await.unwrap();
        assert_eq!(names(&merged.conflicts), ["both", "clash", "gone"]);
        let index = temp.path().join("j");
        let tree = without(&snapshot, &merged.tree, &new, &merged.conflicts, &index);
        let tree = tree.await.unwrap();
        let show = |path: &str| repo.git(&["show", &format!("{tree}:{path}")]);
        assert_eq!((show("both"), show("mine")), ("1\n2\n3\n4\nside".into(), "work".into()));
        assert_eq!(
            repo.git(&["ls-tree", "-r", "--name-only", &tree]),
            "both\nclash\ndir/added\nmine\ntheirs"
        );
    }

    #[tokio::test]
    async fn a_file_where_the_other_side_has_a_folder_is_left_out() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let old = repo.git(&["rev-parse", "HEAD^{tree}"]);
        repo.commit("x/y", "theirs");
        let new = repo.git(&["rev-parse", "HEAD^{tree}"]);
        repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
        repo.write("x", "mine");
        repo.git(&["add", "."]);
        let work = repo.git(&["write-tree"]);
        let snapshot = inspect(repo.path()).await.unwrap().unwrap();
        let temp = tempfile::tempdir().unwrap();
        let sides = Sides { old: &old, new: &new, work: &work };
        let merged = merge(&snapshot, &sides, temp.path()).await.unwrap();
        assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", &merged.tree]), "a\nx/y");
        assert!(!merged.conflicts.is_empty());
    }

    #[tokio::test]
    async fn untracked_files_do_not_replace_tracked_ones() {
        let repo = Repo::new();
        repo.commit("a/b", "x");
        repo.commit("c", "x");
        let snapshot = inspect(repo.path()).await.unwrap().unwrap();
        let ask = ["a", "a/b", "a/b/c", "a/bb", "c", "c/d", "d", "a-b"].map(PathBuf::from);
        let base = snapshot.head.clone().unwrap();
        let found = in_the_way(&snapshot, &base, &ask).await.unwrap();
        assert_eq!(names(&found), ["a", "a/b", "a/b/c", "c", "c/d"]);
    }
}
