//! The project's git repository on the host: what a box needs to know of it.
//!
//! Everything here reads; the only things ever written into the person's repository are objects
//! and refs below `refs/agentbox/<id>/` ([`carry`], [`unpin`]). The index, the work tree, the
//! stash list and the branches stay as they are.

mod branch;
mod carry;
mod fate;
mod file;
mod git;
mod glance;
mod ignored;
mod remotes;
mod replay;
mod resync;
mod start;
mod stores;
mod submodules;
mod survey;
#[cfg(test)]
pub(crate) mod testing;

pub use branch::{OWN, choose_branch, nested_name};
pub use carry::{Carry, carry, unpin};
pub use fate::{Unpushed, delete_branch, goes_beyond, pinned, unpushed};
pub use file::{CommittedFile, committed_file};
pub use glance::{Branches, branches, uncommitted};
pub use ignored::ignored_by;
pub(crate) use replay::in_the_way;
pub(crate) use resync::{News, news, resolve};
pub use start::{Start, start};
pub use stores::ObjectStore;
pub use submodules::modules;
pub use survey::{Found, Survey, survey};

use crate::{Error, Remote, RepoRecord};
use git::Git;
use protocol::ctl::{RefAt, SeedRepo};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings a box gets from the person's configuration. None of them can run a program or name a
/// credential.
const HARMLESS_SETTINGS: &str =
    r"^(user\.name|user\.email|init\.defaultbranch|core\.autocrlf|pull\.rebase|pull\.ff)$";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoSnapshot {
    /// The top of the work tree; canonical.
    pub toplevel: PathBuf,
    /// This work tree's own git folder (index, HEAD).
    pub git_dir: PathBuf,
    /// The folder shared by all work trees (objects, refs, config).
    pub common_dir: PathBuf,
    /// `sha1` or `sha256`.
    pub object_format: String,
    pub stores: Vec<ObjectStore>,
    /// The host's files of Git LFS.
    pub lfs: Option<ObjectStore>,
    /// Boundary commits when the repository is shallow.
    pub shallow: Vec<String>,
    /// None in a repository without commits.
    pub head: Option<String>,
    /// The branch that is checked out, in full; none when there is only a commit.
    pub on: Option<String>,
    /// The commit a box starts from: `head`, unless somebody chose another.
    pub base: Option<String>,
    /// What is on the host's disk is not taken along.
    pub clean: bool,
    pub remotes: BTreeMap<String, Remote>,
    /// Remote-tracking refs that are commits.
    pub tracking: Vec<RefAt>,
    pub default_branch: Option<String>,
    /// [`HARMLESS_SETTINGS`] that are set.
    pub config: Vec<(String, String)>,
}

/// The top of the work tree `folder` is in; none outside a repository.
pub async fn toplevel(folder: &Path) -> Result<Option<PathBuf>, Error> {
    Ok(locate(folder).await?.map(|place| place.toplevel))
}

/// Reads the repository `workspace` is in; none outside a repository.
pub async fn inspect(workspace: &Path) -> Result<Option<RepoSnapshot>, Error> {
    match locate(workspace).await? {
        Some(place) => describe(place, 0, &[]).await.map(Some),
        None => Ok(None),
    }
}

/// Reads a repository. `number` is its place among those of its box, `others` are the mounts of the
/// ones before it.
async fn describe(
    place: Place,
    number: usize,
    others: &[ObjectStore],
) -> Result<RepoSnapshot, Error> {
    let Place { toplevel, git_dir, common_dir, object_format } = place;
    let (head, on, remotes, refs, config) = tokio::try_join!(
        head(&toplevel),
        on(&toplevel),
        remotes::read(&common_dir),
        refs(&toplevel),
        settings(&toplevel)
    )?;
    Ok(RepoSnapshot {
        stores: stores::find(&common_dir.join("objects"), number, others)?,
        lfs: stores::lfs(&common_dir, number),
        shallow: shallow(&common_dir)?,
        default_branch: default_branch(&refs, &git_dir),
        tracking: refs.into_iter().filter_map(Ref::tracking).collect(),
        toplevel,
        git_dir,
        common_dir,
        object_format,
        base: head.clone(),
        head,
        on,
        clean: false,
        remotes,
        config,
    })
}

impl RepoSnapshot {
    /// What the host keeps.
    pub fn record(&self) -> RepoRecord {
        RepoRecord {
            toplevel: self.toplevel.clone(),
            common_dir: self.common_dir.clone(),
            remotes: self.remotes.clone(),
            default_branch: self.default_branch.clone(),
            object_format: self.object_format.clone(),
            on: self.on.clone(),
        }
    }

    /// What the box is told: no user information in addresses, no host paths besides the mounts.
    pub fn seed(&self, branch: &str, carry: &Carry) -> SeedRepo {
        let address = |remote: &Remote| remotes::without_user(&remote.fetch_url);
        let listed = self.stores.iter().filter(|store| store.listed);
        SeedRepo {
            path: String::new(),
            git_dir: None,
            lfs: self.lfs.is_some(),
            branch: branch.to_owned(),
            object_format: self.object_format.clone(),
            alternates: listed.map(|store| store.inside.clone()).collect(),
            shallow: self.shallow.clone(),
            base: self.base.clone(),
            index_tree: carry.index_tree.clone(),
            worktree_tree: carry.worktree_tree.clone(),
            remotes: self.remotes.iter().map(|(name, r)| (name.clone(), address(r))).collect(),
            tracking: self.tracking.clone(),
            config: self.config.clone(),
        }
    }
}

#[derive(Debug, Clone)]
struct Place {
    toplevel: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_format: String,
}

async fn locate(folder: &Path) -> Result<Option<Place>, Error> {
    let what = "find the repository";
    let args = [
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--git-dir",
        "--git-common-dir",
        "--show-object-format",
    ];
    // A folder of files that are named like a repository's is none, whoever made them.
    let careful = ["-c", "safe.bareRepository=explicit"];
    let answer = Git::new(what, folder)?.args(careful).args(args).ask().await?;
    if answer.code != 0 {
        if answer.stderr.contains("not a git repository") {
            return Ok(None);
        }
        let bare = ["must be run in a work tree", "cannot use bare repository"];
        if bare.iter().any(|said| answer.stderr.contains(said)) {
            let why = "it is a bare repository or inside a .git folder; use a work tree".to_owned();
            return Err(Error::Repository { path: folder.to_owned(), why });
        }
        return Err(Error::Git { what: what.into(), path: folder.into(), why: answer.stderr });
    }
    let text = String::from_utf8(answer.stdout).ok();
    let lines: Option<Vec<&str>> = text.as_deref().map(|text| text.lines().collect());
    let Some([top, git_dir, common, format]) = lines.as_deref() else {
        let why = "its path is not plain text in one line".to_owned();
        return Err(Error::Repository { path: folder.to_owned(), why });
    };
    let canonical = |path: &str| {
        Path::new(path).canonicalize().map_err(|error| Error::io("find", Path::new(path), error))
    };
    Ok(Some(Place {
        toplevel: canonical(top)?,
        git_dir: canonical(git_dir)?,
        common_dir: canonical(common)?,
        object_format: (*format).to_owned(),
    }))
}

async fn head(dir: &Path) -> Result<Option<String>, Error> {
    let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
    let answer = Git::new("read HEAD", dir)?.args(args).ask().await?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.code == 0 && is_oid(&text)).then_some(text))
}

async fn on(dir: &Path) -> Result<Option<String>, Error> {
    let answer =
        Git::new("read HEAD", dir)?.args(["symbolic-ref", "--quiet", "HEAD"]).ask().await?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.code == 0 && text.starts_with("refs/heads/")).then_some(text))
}

struct Ref {
    name: String,
    oid: String,
    kind: String,
    /// What it points to when it is symbolic.
    target: String,
}

impl Ref {
    fn tracking(self) -> Option<RefAt> {
        let wanted = self.name.starts_with("refs/remotes/")
            && self.target.is_empty()
            && self.kind == "commit"
            && is_oid(&self.oid);
        wanted.then_some(RefAt { name: self.name, oid: self.oid })
    }
}

async fn refs(dir: &Path) -> Result<Vec<Ref>, Error> {
    let format = "--format=%(refname)%09%(objectname)%09%(objecttype)%09%(symref)";
    let names = ["refs/remotes", "refs/heads/main", "refs/heads/master"];
    let args = ["for-each-ref", format].into_iter().chain(names);
    let stdout = Git::new("list refs", dir)?.args(args).run().await?;
    let parse = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        Some(Ref {
            name: fields.next()?,
            oid: fields.next()?,
            kind: fields.next()?,
            target: fields.next()?,
        })
    };
    Ok(String::from_utf8_lossy(&stdout).lines().filter_map(parse).collect())
}

/// What the remote calls its default, else `main` or `master`, else the branch checked out.
fn default_branch(refs: &[Ref], git_dir: &Path) -> Option<String> {
    let origin_head = refs.iter().find(|r| r.name == "refs/remotes/origin/HEAD");
    if let Some(name) = origin_head.and_then(|r| r.target.strip_prefix("refs/remotes/origin/")) {
        return Some(name.to_owned());
    }
    for prefix in ["refs/remotes/origin/", "refs/heads/"] {
        for name in ["main", "master"] {
            if refs.iter().any(|r| r.name.strip_prefix(prefix) == Some(name)) {
                return Some(name.to_owned());
            }
        }
    }
    let head = std::fs::read_to_string(git_dir.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

async fn settings(dir: &Path) -> Result<Vec<(String, String)>, Error> {
    let args = ["config", "-z", "--get-regexp", HARMLESS_SETTINGS];
    let answer = Git::new("read settings", dir)?.args(args).ask().await?;
    // The last value wins, as in git.
    let found: BTreeMap<String, String> = config_entries(&answer.stdout).into_iter().collect();
    Ok(found.into_iter().collect())
}

/// Entries of `git config -z --get-regexp`: `key\nvalue\0`.
fn config_entries(stdout: &[u8]) -> Vec<(String, String)> {
    let entries =
        stdout.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    let pairs = entries.filter_map(|entry| entry.split_once('\n'));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn shallow(common_dir: &Path) -> Result<Vec<String>, Error> {
    let path = common_dir.join("shallow");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().filter(|line| is_oid(line)).map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", &path, error)),
    }
}

/// An object id of either format, in git's own spelling.
pub(crate) fn is_oid(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::testing::Repo;
    use super::*;

    #[tokio::test]
    async fn a_plain_folder_is_no_repository() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(inspect(temp.path()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_repository_is_described() {
        let repo = Repo::new();
        let head = repo.commit("a", "one");
        repo.git(&["remote", "add", "origin", "https://me:secret@example.org/o/r.git"]);
        repo.git(&["config", "remote.origin.pushurl", "git@example.org:o/r.git"]);
        repo.git(&["update-ref", "refs/remotes/origin/trunk", &head]);
        repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
        let snapshot = inspect(&repo.dir("sub/folder")).await.unwrap().unwrap();
        assert_eq!(snapshot.toplevel, repo.path());
        assert_eq!(snapshot.common_dir, repo.path().join(".git"));
        assert_eq!(snapshot.object_format, "sha1");
        assert_eq!(snapshot.head, Some(head.clone()));
        assert_eq!(snapshot.default_branch.as_deref(), Some("trunk"));
        let tracking = vec![RefAt { name: "refs/remotes/origin/trunk".into(), oid: head }];
        assert_eq!(snapshot.tracking, tracking);
        assert_eq!(snapshot.remotes["origin"].fetch_url, "https://me:secret@example.org/o/r.git");
        assert_eq!(snapshot.remotes["origin"].push_url, "git@example.org:o/r.git");
        assert!(snapshot.config.contains(&("user.email".into(), "dev@example.org".into())));

        let seed = snapshot.seed("agentbox/x", &Carry::default());
        assert_eq!(seed.remotes, [("origin".to_owned(), "https://example.org/o/r.git".to_owned())]);
        assert_eq!(seed.alternates, ["/agentbox/objects/0/objects"]);
        assert!(!serde_json::to_string(&seed).unwrap().contains("secret"));
    }

    #[tokio::test]
    async fn an_unborn_head_is_none_and_names_the_default_branch() {
        let repo = Repo::new();
        let snapshot = inspect(repo.path()).await.unwrap().unwrap();
        assert_eq!(snapshot.head, None);
        assert_eq!(snapshot.default_branch.as_deref(), Some("main"));
    }

    #[tokio::test]
    async fn a_linked_worktree_uses_the_common_folder() {
        let repo = Repo::new();
        let head = repo.commit("a", "one");
        let linked = repo.outside("linked");
        repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
        let snapshot = inspect(&linked).await.unwrap().unwrap();
        assert_eq!(snapshot.toplevel, linked);
        assert_eq!(snapshot.common_dir, repo.path().join(".git"));
        assert_eq!(snapshot.git_dir, repo.path().join(".git/worktrees/linked"));
        assert_eq!(snapshot.head, Some(head));
        assert_eq!(snapshot.stores[0].host, repo.path().join(".git/objects"));
    }

    #[tokio::test]
    async fn a_shallow_clone_tells_its_boundary() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let second = repo.commit("a", "two");
        let clone = repo.outside("clone");
        let url = format!("file://{}", repo.path().display());
        repo.git(&["clone", "-q", "--depth=1", &url, clone.to_str().unwrap()]);
        assert_eq!(inspect(&clone).await.unwrap().unwrap().shallow, [second]);
    }

    #[tokio::test]
    async fn a_bare_repository_is_refused() {
        let repo = Repo::new();
        let bare = repo.outside("bare");
        repo.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
        assert!(matches!(inspect(&bare).await, Err(Error::Repository { .. })));
    }

    #[tokio::test]
    async fn included_configuration_adds_no_remote() {
        let repo = Repo::new();
        let other = repo.outside("more.config");
        std::fs::write(&other, "[remote \"evil\"]\n\turl = https://evil\n").unwrap();
        repo.git(&["config", "include.path", other.to_str().unwrap()]);
        assert!(inspect(repo.path()).await.unwrap().unwrap().remotes.is_empty());
    }
}
