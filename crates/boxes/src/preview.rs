//! A folder as a box would be made from it: looked at, nothing written.

use crate::create::refuse_home;
use crate::files::MADE_BY_TOOLS;
use crate::project::{canonical_folder, configured_root};
use crate::repo::{self, Branches};
use crate::{Error, env_files};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Somebody waits: what takes longer is left out.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Preview {
    pub folder: PathBuf,
    /// The project's.
    pub root: PathBuf,
    /// None outside a repository.
    pub branches: Option<Branches>,
    /// Files with uncommitted changes; none when looking took too long.
    pub uncommitted: Option<u32>,
    /// Settings that git ignores; none when looking took too long.
    pub env_files: Option<Vec<PathBuf>>,
}

pub async fn preview(folder: &Path) -> Result<Preview, Error> {
    let folder = canonical_folder(folder)?;
    let configured = configured_root(&folder);
    refuse_home(&folder)?;
    let survey =
        repo::survey(&folder, configured.as_ref().unwrap_or(&folder), &MADE_BY_TOOLS).await?;
    refuse_home(&survey.workspace)?;
    let top = survey.root().map(|found| found.repo.toplevel.clone());
    let (mut branches, mut uncommitted) = (None, None);
    if let Some(top) = &top {
        branches = Some(repo::branches(top).await?);
        uncommitted =
            tokio::time::timeout(PATIENCE, repo::uncommitted(top)).await.ok().transpose()?;
    }
    let env_files = tokio::time::timeout(PATIENCE, env_files::new_to(&survey)).await;
    let env_files = env_files.ok().transpose()?;
    let root = configured.or(top).unwrap_or_else(|| folder.clone());
    Ok(Preview { folder, root, branches, uncommitted, env_files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::Repo;

    #[tokio::test]
    async fn a_repository_and_what_would_come_along() {
        let repo = Repo::new();
        repo.commit(".gitignore", ".env\n");
        repo.commit("secrets.toml", "committed");
        repo.write(".env", "A=1");
        repo.write("new.txt", "");
        let deep = repo.dir("api");
        let seen = preview(&deep).await.unwrap();
        assert_eq!((&*seen.folder, &*seen.root), (&*deep, repo.path()));
        assert_eq!(seen.env_files.unwrap(), [PathBuf::from(".env")]);
        assert_eq!(seen.uncommitted, Some(1));
        assert!(seen.branches.unwrap().current.is_some());
    }

    #[tokio::test]
    async fn a_plain_folder_has_no_branches_and_a_missing_one_is_named() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(".envrc"), "").unwrap();
        let seen = preview(temp.path()).await.unwrap();
        assert!(seen.branches.is_none() && seen.uncommitted.is_none());
        assert_eq!(seen.env_files.unwrap(), [PathBuf::from(".envrc")]);
        assert!(matches!(preview(Path::new("/no/such")).await, Err(Error::NoWorkspace(_))));
        assert!(matches!(preview(Path::new("/")).await, Err(Error::Repository { .. })));
    }
}
