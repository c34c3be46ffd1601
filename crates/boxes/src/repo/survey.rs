//! Which repositories a workspace holds: its own, those one level below, and their submodules.
//!
//! Each is a repository of its own in the box, at the same place, on a branch of its own.

use super::submodules;
use super::{Carry, ObjectStore, Place, RepoSnapshot, describe, locate, nested_name, remotes};
use crate::Error;
use protocol::BoxName;
use protocol::ctl::SeedRepo;
use std::path::{Path, PathBuf};

/// More repositories than this are no project.
const MOST: usize = 100;

/// A workspace and its repositories, outer ones before inner ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The top of the work tree, or the folder.
    pub workspace: PathBuf,
    pub repos: Vec<Found>,
    /// How many have been given a number for their mounts.
    numbered: usize,
}

/// One repository of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// From the workspace; empty for the workspace's own.
    pub path: String,
    /// From the workspace: where a submodule's repository is kept in the box.
    pub git_dir: Option<String>,
    /// Comes before the names of its pins: several work trees may share one repository.
    pub pin: String,
    /// Settings its submodules need.
    pub config: Vec<(String, String)>,
    pub repo: RepoSnapshot,
}

impl Found {
    /// The workspace's own repository.
    pub fn root(repo: RepoSnapshot) -> Self {
        Self { path: String::new(), git_dir: None, pin: String::new(), config: Vec::new(), repo }
    }

    pub fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// What its branch is called below `agentbox/`.
    pub fn branch_name(&self, name: &BoxName) -> String {
        if self.is_root() { name.to_string() } else { nested_name(name, &self.path) }
    }

    /// What the box is told of it.
    pub fn seed(&self, branch: &str, carry: &Carry) -> SeedRepo {
        let mut seed = self.repo.seed(branch, carry);
        seed.path.clone_from(&self.path);
        seed.git_dir.clone_from(&self.git_dir);
        seed.config.extend(self.config.iter().cloned());
        seed
    }

    /// Everything of it that is mounted.
    pub fn mounts(&self) -> impl Iterator<Item = &ObjectStore> {
        self.repo.stores.iter().chain(&self.repo.lfs)
    }
}

impl Survey {
    pub fn root(&self) -> Option<&Found> {
        self.repos.first().filter(|found| found.is_root())
    }

    pub fn root_mut(&mut self) -> Option<&mut Found> {
        self.repos.first_mut().filter(|found| found.is_root())
    }

    /// Those that are no submodules, by their path.
    pub fn nested(&self) -> impl Iterator<Item = &str> {
        let own = |found: &&Found| !found.is_root() && found.git_dir.is_none();
        self.repos.iter().filter(own).map(|found| found.path.as_str())
    }

    /// Adds the submodules, once it is known where each repository starts.
    pub async fn add_submodules(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.repos.len() {
            let mounts = self.all_mounts();
            let inner = submodules::find(&self.repos[at].repo, self.numbered, &mounts).await?;
            self.numbered += inner.len();
            for submodule in inner {
                let parent = &mut self.repos[at];
                let key = |what: &str| format!("submodule.{}.{what}", submodule.name);
                let url = submodule.repo.remotes.get("origin");
                let url = url.map(|remote| remotes::without_user(&remote.fetch_url));
                parent.config.push((key("active"), "true".to_owned()));
                parent.config.extend(url.map(|url| (key("url"), url)));
                let outer = match &parent.git_dir {
                    Some(dir) => dir.clone(),
                    None => below(&parent.path, ".git"),
                };
                let path = below(&parent.path, &submodule.path);
                // A folder of that name may hold a repository already; the submodule is that one.
                self.repos.retain(|found| found.path != path);
                self.add(Found {
                    path,
                    git_dir: Some(format!("{outer}/modules/{}", submodule.name)),
                    ..Found::root(submodule.repo)
                })?;
            }
            at += 1;
        }
        Ok(())
    }

    fn all_mounts(&self) -> Vec<ObjectStore> {
        self.repos.iter().flat_map(|found| found.repo.stores.clone()).collect()
    }

    fn add(&mut self, mut found: Found) -> Result<(), Error> {
        if self.repos.len() >= MOST {
            let why = format!("it holds more than {MOST} repositories");
            return Err(Error::Repository { path: self.workspace.clone(), why });
        }
        let shared = |other: &Found| other.repo.common_dir == found.repo.common_dir;
        if self.repos.iter().any(shared) {
            found.pin = format!("{}/", self.repos.len());
        }
        self.repos.push(found);
        Ok(())
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Looks for the repositories of the project `folder` is in, without submodules. `without` names
/// folders that are never looked into.
pub async fn survey(folder: &Path, root: &Path, without: &[&str]) -> Result<Survey, Error> {
    let own = match locate(folder).await? {
        Some(place) => Some(describe(place, 0, &[]).await?),
        None => None,
    };
    let workspace = own.as_ref().map_or_else(|| root.to_owned(), |repo| repo.toplevel.clone());
    // Inside the repository's own folder are its submodules.
    let modules = own.as_ref().map(|repo| repo.common_dir.join("modules"));
    let repos: Vec<Found> = own.map(Found::root).into_iter().collect();
    let mut survey = Survey { workspace, numbered: repos.len(), repos };
    for name in below_with_git(&survey.workspace, without) {
        let folder = survey.workspace.join(&name);
        let own = |place: &Place| {
            let submodule = modules.as_ref().is_some_and(|dir| place.common_dir.starts_with(dir));
            place.toplevel == folder && !submodule
        };
        let Some(place) = locate(&folder).await?.filter(own) else { continue };
        let repo = describe(place, survey.numbered, &survey.all_mounts()).await?;
        survey.numbered += 1;
        survey.add(Found { path: name, ..Found::root(repo) })?;
    }
    Ok(survey)
}

/// Folders one level below that have a `.git`; a link is none of them.
fn below_with_git(workspace: &Path, without: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(workspace).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().into_string().ok()?;
        let wanted = !name.starts_with('.') && !name.contains('\n') && !without.contains(&&*name);
        (is_folder && wanted && entry.path().join(".git").exists()).then_some(name)
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::{Repo, git_in};

    fn make(path: &Path) {
        std::fs::create_dir_all(path).unwrap();
        git_in(path, &["init", "-q", "-b", "main"]);
        let commit = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ];
        git_in(path, &commit);
    }

    fn paths(survey: &Survey) -> Vec<&str> {
        survey.repos.iter().map(|found| found.path.as_str()).collect()
    }

    #[tokio::test]
    async fn a_folder_of_repositories_has_them_all() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().canonicalize().unwrap();
        for name in ["web", "api", ".hidden", "node_modules", "deep/er"] {
            make(&folder.join(name));
        }
        std::os::unix::fs::symlink(folder.join("api"), folder.join("link")).unwrap();
        std::fs::create_dir_all(folder.join("broken/.git")).unwrap();
        let found = survey(&folder, &folder, &["node_modules"]).await.unwrap();
        assert_eq!(paths(&found), ["api", "web"]);
        assert!(found.root().is_none());
        assert_eq!(found.nested().collect::<Vec<_>>(), ["api", "web"]);
        let name: BoxName = "fix".parse().unwrap();
        assert_eq!(found.repos[0].branch_name(&name), "fix--api");
        assert_eq!(found.repos[1].repo.stores[0].inside, "/agentbox/objects/1/objects");
    }

    #[tokio::test]
    async fn work_trees_of_one_repository_have_pins_of_their_own() {
        let repo = Repo::new();
        repo.commit("a", "one");
        repo.git(&["worktree", "add", "-q", "-b", "side", "side"]);
        let found = survey(repo.path(), repo.path(), &[]).await.unwrap();
        assert_eq!(paths(&found), ["", "side"]);
        assert_eq!((found.repos[0].pin.as_str(), found.repos[1].pin.as_str()), ("", "1/"));
    }

    #[tokio::test]
    async fn submodules_come_with_what_git_needs_to_know_of_them() {
        let (lib, repo) = (Repo::new(), Repo::new());
        lib.commit("code", "one");
        repo.commit("a", "one");
        let url = lib.path().to_str().unwrap();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", url, "lib"]);
        let mut found = survey(repo.path(), repo.path(), &[]).await.unwrap();
        found.add_submodules().await.unwrap();
        assert_eq!(paths(&found), ["", "lib"]);
        assert_eq!(found.repos[1].git_dir.as_deref(), Some(".git/modules/lib"));
        let config = &found.repos[0].config;
        assert!(config.contains(&("submodule.lib.active".into(), "true".into())), "{config:?}");
        assert!(config.contains(&("submodule.lib.url".into(), url.into())), "{config:?}");
        assert_eq!(found.nested().count(), 0);
    }
}
