//! Submodules: each becomes a repository of its own in the box, from what the host has of it.
//!
//! Nothing is fetched. A submodule that is checked out on the host goes as it is there; one that is
//! not, but whose repository the host keeps, goes at the commit the project wants. One the host does
//! not have stays an empty folder, as on the host.

use super::git::Git;
use super::{ObjectStore, Place, RepoSnapshot, config_entries, describe, is_oid, locate};
use crate::Error;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// A submodule that can go into a box.
pub(super) struct Submodule {
    /// From the top of the work tree it belongs to.
    pub path: String,
    pub name: String,
    pub repo: RepoSnapshot,
}

/// The submodules of a repository as a box will have it. Their mounts go on from `number`.
pub(super) async fn find(
    parent: &RepoSnapshot,
    number: usize,
    others: &[ObjectStore],
) -> Result<Vec<Submodule>, Error> {
    let mut found = Vec::new();
    let mut mounts = others.to_vec();
    for (path, name, wanted) in listed(parent).await? {
        let number = number + found.len();
        if let Some(repo) = take(parent, &path, &name, &wanted, number, &mounts).await? {
            mounts.extend(repo.stores.iter().cloned());
            found.push(Submodule { path, name, repo });
        }
    }
    Ok(found)
}

/// Path, name and commit of each submodule: those of the index, or of the commit somebody chose.
async fn listed(parent: &RepoSnapshot) -> Result<Vec<(String, String, String)>, Error> {
    let elsewhere = parent.clean || parent.base != parent.head;
    let base = parent.base.as_deref().filter(|_| elsewhere);
    let names = names(parent, base).await?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let git = Git::new("list submodules", &parent.toplevel)?.args(["--literal-pathspecs"]);
    let git = match base {
        Some(base) => git.args(["ls-tree", "-z", "--full-tree", base, "--"]),
        None => git.args(["ls-files", "--stage", "-z", "--"]),
    };
    let stdout = git.args(names.keys()).run().await?;
    let entry = |entry: &[u8]| {
        let (head, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        let mut words = head.split(' ');
        let is_link = words.next() == Some("160000");
        let oid = words.find(|word| is_oid(word))?.to_owned();
        let name = names.get(path).filter(|_| is_link)?;
        Some((path.to_owned(), name.clone(), oid))
    };
    Ok(stdout.split(|byte| *byte == 0).filter_map(entry).collect())
}

/// Names by path, as the project's `.gitmodules` gives them.
async fn names(
    parent: &RepoSnapshot,
    base: Option<&str>,
) -> Result<BTreeMap<String, String>, Error> {
    let file = parent.toplevel.join(".gitmodules");
    let git =
        Git::new("read .gitmodules", &parent.toplevel)?.args(["config", "--no-includes", "-z"]);
    let git = match base {
        Some(base) => git.args(["--blob", &format!("{base}:.gitmodules")]),
        None if file.is_file() => git.args(["--file"]).args([&file]),
        None => return Ok(BTreeMap::new()),
    };
    // A commit without that file has no submodules.
    let answer = git.args(["--get-regexp", r"^submodule\..*\.path$"]).ask().await?;
    let pair = |(key, path): (String, String)| {
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?.to_owned();
        (is_below(&name) && is_below(&path)).then_some((path, name))
    };
    Ok(config_entries(&answer.stdout).into_iter().filter_map(pair).collect())
}

/// Both a name and a path become places in the box; neither may lead out of its folder.
fn is_below(text: &str) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(name) if name != ".git");
    !text.is_empty() && !text.contains('\n') && Path::new(text).components().all(plain)
}

async fn take(
    parent: &RepoSnapshot,
    path: &str,
    name: &str,
    wanted: &str,
    number: usize,
    others: &[ObjectStore],
) -> Result<Option<RepoSnapshot>, Error> {
    let elsewhere = parent.clean || parent.base != parent.head;
    if let Some(place) = checked_out(parent, path).await? {
        let mut repo = describe(place, number, others).await?;
        if !elsewhere || repo.head.as_deref() == Some(wanted) {
            return Ok(Some(RepoSnapshot { clean: parent.clean, ..repo }));
        }
        repo = RepoSnapshot { base: Some(wanted.to_owned()), clean: true, ..repo };
        return Ok(has(&repo, wanted).await?.then_some(repo));
    }
    let Some(place) = kept(parent, name).await? else { return Ok(None) };
    let repo = describe(place, number, others).await?;
    let repo = RepoSnapshot { base: Some(wanted.to_owned()), clean: true, ..repo };
    Ok(has(&repo, wanted).await?.then_some(repo))
}

/// The repository of a submodule that is checked out. An empty folder is a part of the project's own
/// work tree.
///
/// A box may have written everything the project tracks, the path included. So the folder must be where
/// it says, through no link, and hold git's own mark, which nothing tracked can: files that are named
/// like a repository's are none. And its repository must be its own or one the project keeps.
async fn checked_out(parent: &RepoSnapshot, path: &str) -> Result<Option<Place>, Error> {
    let folder = parent.toplevel.join(path);
    let is_there = folder.canonicalize().is_ok_and(|real| real == folder && real.is_dir());
    let mark = folder.join(".git");
    let marked = std::fs::symlink_metadata(&mark).is_ok_and(|meta| !meta.is_symlink());
    if !is_there || !marked {
        return Ok(None);
    }
    let kept = [&parent.git_dir, &parent.common_dir].map(|dir| dir.join("modules"));
    let ours = |dir: &Path| dir == mark || kept.iter().any(|modules| dir.starts_with(modules));
    let place = locate(&folder).await?;
    Ok(place.filter(|place| place.toplevel == folder && ours(&place.git_dir)))
}

/// The repository of a submodule that is not checked out.
async fn kept(parent: &RepoSnapshot, name: &str) -> Result<Option<Place>, Error> {
    let folders = [&parent.git_dir, &parent.common_dir].map(|dir| dir.join("modules").join(name));
    let Some(dir) = folders.into_iter().find(|dir| dir.join("objects").is_dir()) else {
        return Ok(None);
    };
    let Ok(dir) = dir.canonicalize() else { return Ok(None) };
    let format = ["rev-parse", "--show-object-format"];
    let answer = Git::new("find the submodule", &dir)?.args(format).ask().await?;
    let object_format = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let place =
        Place { toplevel: dir.clone(), git_dir: dir.clone(), common_dir: dir, object_format };
    Ok((answer.code == 0).then_some(place))
}

/// Every submodule's repository that the host keeps for this one.
pub fn modules(parent: &RepoSnapshot) -> Vec<PathBuf> {
    const DEEPEST: usize = 12;
    let mut found = Vec::new();
    let mut pending: Vec<(PathBuf, usize)> =
        [&parent.git_dir, &parent.common_dir].map(|dir| (dir.join("modules"), 0)).into();
    pending.dedup();
    while let Some((dir, depth)) = pending.pop() {
        let is_repo = dir.join("HEAD").is_file() && dir.join("objects").is_dir();
        let inner = if is_repo { dir.join("modules") } else { dir.clone() };
        if is_repo {
            found.push(dir);
        }
        let entries = std::fs::read_dir(inner).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        if depth < DEEPEST {
            pending.extend(folders.map(|entry| (entry.path(), depth + 1)));
        }
    }
    found
}

async fn has(repo: &RepoSnapshot, oid: &str) -> Result<bool, Error> {
    let git = Git::new("find the commit", &repo.toplevel)?;
    Ok(git.args(["cat-file", "-e", &format!("{oid}^{{commit}}")]).ask().await?.code == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::inspect;
    use crate::repo::testing::{Repo, git_in};

    #[tokio::test]
    async fn files_that_look_like_a_repository_are_none() {
        let repo = Repo::new();
        let at = repo.commit("a", "one");
        let fake = repo.path().join("vendor/x");
        for dir in ["objects/info", "refs/heads", "lfs"] {
            std::fs::create_dir_all(fake.join(dir)).unwrap();
        }
        for (name, text) in [
            ("HEAD", "ref: refs/heads/main\n"),
            ("config", "[core]\n\trepositoryformatversion = 0\n\tworktree = .\n"),
            ("objects/info/alternates", "/etc\n"),
            ("refs/heads/main", &at),
        ] {
            std::fs::write(fake.join(name), text).unwrap();
        }
        let other = Repo::new();
        other.commit("private", "one");
        std::os::unix::fs::symlink(other.path(), repo.path().join("vendor/y")).unwrap();
        std::fs::create_dir(repo.path().join("vendor/z")).unwrap();
        std::os::unix::fs::symlink(other.path().join(".git"), repo.path().join("vendor/z/.git"))
            .unwrap();
        let file = format!("gitdir: {}\n", other.path().join(".git").display());
        std::fs::create_dir(repo.path().join("vendor/w")).unwrap();
        std::fs::write(repo.path().join("vendor/w/.git"), file).unwrap();
        let parent = inspect(repo.path()).await.unwrap().unwrap();
        for path in ["vendor/x", "vendor/y", "vendor/z", "vendor/w", "vendor/none"] {
            assert!(checked_out(&parent, path).await.unwrap().is_none(), "{path}");
        }
    }

    /// A project with a submodule `lib` at `libs/lib`.
    fn project() -> (Repo, Repo, String) {
        let lib = Repo::new();
        let first = lib.commit("code", "one");
        let repo = Repo::new();
        repo.commit("a", "one");
        let url = lib.path().to_str().unwrap();
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "-q",
            "--name",
            "lib",
            url,
            "libs/lib",
        ];
        repo.git(&add);
        repo.git(&["commit", "-qm", "With a submodule"]);
        (repo, lib, first)
    }

    async fn of(repo: &RepoSnapshot) -> Vec<(String, String, Option<String>, bool)> {
        let found = find(repo, 1, &repo.stores).await.unwrap();
        found.into_iter().map(|s| (s.path, s.name, s.repo.base, s.repo.clean)).collect()
    }

    #[tokio::test]
    async fn a_submodule_goes_as_it_is_on_the_host() {
        let (repo, _lib, first) = project();
        let snapshot = inspect(repo.path()).await.unwrap().unwrap();
        let expected =
            |oid: &str, clean| vec![("libs/lib".into(), "lib".into(), Some(oid.to_owned()), clean)];
        assert_eq!(of(&snapshot).await, expected(&first, false));
        let inner = repo.path().join("libs/lib");
        git_in(
            &inner,
            &[
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@x",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "more",
            ],
        );
        let second = git_in(&inner, &["rev-parse", "HEAD"]);
        assert_eq!(of(&snapshot).await, expected(&second, false));
        // From another commit it is at what that commit wants.
        let base = RepoSnapshot { clean: true, ..snapshot.clone() };
        assert_eq!(of(&base).await, expected(&first, true));
        let before =
            RepoSnapshot { base: Some(repo.git(&["rev-parse", "HEAD~1"])), ..snapshot.clone() };
        assert_eq!(of(&before).await, vec![]);
    }

    #[tokio::test]
    async fn one_that_is_not_checked_out_comes_from_what_the_host_keeps() {
        let (repo, _lib, first) = project();
        repo.git(&["submodule", "deinit", "-q", "-f", "libs/lib"]);
        let snapshot = inspect(repo.path()).await.unwrap().unwrap();
        assert_eq!(of(&snapshot).await, vec![("libs/lib".into(), "lib".into(), Some(first), true)]);
        std::fs::remove_dir_all(repo.path().join(".git/modules")).unwrap();
        assert_eq!(of(&snapshot).await, vec![]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        for bad in ["", "..", "a/../..", "/a", "a/.git", "a\nb", "./.."] {
            assert!(!is_below(bad), "{bad:?}");
        }
        assert!(is_below("libs/a b"));
    }
}
