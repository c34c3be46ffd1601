//! What people choose from when they make a box: projects they had boxes for, and what is in a folder.

use crate::api::Api;
use crate::engine::control_error;
use protocol::control::{ControlError, ErrorCode};
use protocol::projects::{FolderView, ProjectView, RepositoryView};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// A list for choosing from, not an archive.
const MOST: usize = 50;
/// Files that are named one by one.
const MOST_FILES: usize = 100;

impl Api {
    /// Projects that boxes were made for and whose folders are still there, the latest first.
    pub async fn projects(&self) -> Result<Vec<ProjectView>, ControlError> {
        let boxes = self.boxes().await;
        let roots = self.core().store.project_roots().await?;
        let there = roots.into_iter().filter(|root| Path::new(root).is_dir());
        let mut all: Vec<ProjectView> = there
            .map(|root| {
                let own = || boxes.iter().filter(|b| b.project_root == root);
                ProjectView {
                    name: name_of(Path::new(&root)),
                    boxes: u32::try_from(own().count()).unwrap_or(u32::MAX),
                    last_used: own().map(|b| b.created_at).max(),
                    root,
                }
            })
            .collect();
        all.sort_by_key(|project| Reverse(project.last_used));
        all.truncate(MOST);
        Ok(all)
    }

    pub async fn look_at_folder(&self, path: &str) -> Result<FolderView, ControlError> {
        let folder = from_home(path.trim());
        if !folder.is_absolute() {
            let text = format!("{} is not an absolute path", protocol::text::visible(path));
            return Err(ControlError::new(ErrorCode::Usage, text));
        }
        self.core().refuse_own(&folder)?;
        let seen = boxes::preview(&folder).await.map_err(control_error)?;
        let settings = self.core().settings_for(&seen.root)?;
        let project_root = seen.root.to_string_lossy().into_owned();
        let mut checkpoints = self.core().store.checkpoints().await?;
        checkpoints.retain(|checkpoint| checkpoint.project_root == project_root);
        let (branches, uncommitted) = (seen.branches, seen.uncommitted);
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Ok(FolderView {
            folder: text(seen.folder),
            project: name_of(&seen.root),
            repository: branches.map(|branches| RepositoryView {
                current: branches.current,
                branches: branches.own,
                remote_branches: branches.remote,
                uncommitted,
            }),
            env_files: seen
                .env_files
                .map(|files| files.into_iter().take(MOST_FILES).map(text).collect()),
            with_env: settings.boxes.with_env,
            checkpoints,
            limits: settings.boxes.limits(),
            project_root,
        })
    }
}

/// `~/shop`, as people write it.
fn from_home(path: &str) -> PathBuf {
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn name_of(root: &Path) -> String {
    root.file_name().map_or_else(|| "root".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_people_write_them() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(from_home("~/shop"), home.join("shop"));
        assert_eq!(from_home("/srv/~/shop"), Path::new("/srv/~/shop"));
        assert_eq!(name_of(Path::new("/srv/shop")), "shop");
        assert_eq!(name_of(Path::new("/")), "root");
    }
}
