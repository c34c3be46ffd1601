//! Which project a folder belongs to.
//!
//! Roots are always canonical: a temporary folder behind a symlink must give the same root when a
//! box is made and when it is looked up.

use crate::{Error, repo};
use sha1::{Digest, Sha1};
use std::path::{Path, PathBuf};

/// The nearest ancestor with an `agentbox.yaml`, else the top of the git work tree, else the
/// folder itself.
pub async fn project_root(workspace: &Path) -> Result<PathBuf, Error> {
    let folder = canonical_folder(workspace)?;
    if let Some(root) = configured_root(&folder) {
        return Ok(root);
    }
    Ok(repo::toplevel(&folder).await?.unwrap_or(folder))
}

pub(crate) fn configured_root(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|at| at.join("agentbox.yaml").is_file()).map(Path::to_owned)
}

pub(crate) fn canonical_folder(path: &Path) -> Result<PathBuf, Error> {
    match path.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        _ => Err(Error::NoWorkspace(path.to_owned())),
    }
}

/// A short name for a project root that is safe in a label and a file name. Whoever
/// names folders can make two the same: what is found by it has to say whose it is.
pub fn project_hash(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let path = root.as_os_str().as_bytes();
    let path = path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path);
    hex(&Sha1::digest(path))[..16].to_owned()
}

pub(crate) fn folder_name(root: &Path) -> String {
    root.file_name().map_or_else(|| "root".to_owned(), |name| name.to_string_lossy().into_owned())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::Repo;

    #[tokio::test]
    async fn the_nearest_agentbox_yaml_wins_over_the_repository() {
        let repo = Repo::new();
        let deep = repo.dir("a/b/c");
        assert_eq!(project_root(&deep).await.unwrap(), repo.path());
        repo.write("a/agentbox.yaml", "");
        assert_eq!(project_root(&deep).await.unwrap(), repo.path().join("a"));
    }

    #[tokio::test]
    async fn a_plain_folder_is_its_own_root_and_symlinks_are_resolved() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(project_root(&link).await.unwrap(), real);
        assert_eq!(project_hash(&real).len(), 16);
    }

    #[test]
    fn yaml_13_55_a_project_is_known_by_its_path() {
        for path in ["/foo/bar", "/foo/bar/"] {
            assert_eq!(project_hash(Path::new(path)), "a82cce35fd860de6");
        }
    }

    #[tokio::test]
    async fn a_missing_folder_is_named() {
        let error = project_root(Path::new("/no/such/folder")).await.unwrap_err();
        assert!(matches!(error, Error::NoWorkspace(path) if path == Path::new("/no/such/folder")));
    }
}
