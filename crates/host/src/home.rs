//! `$AGENTBOX_HOME`: where everything of one installation lies.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `$AGENTBOX_HOME`, else `~/.agentbox`.
pub fn default_home() -> Option<PathBuf> {
    let given = std::env::var_os("AGENTBOX_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
    given.or_else(|| std::env::home_dir().map(|h| h.join(".agentbox")))
}

/// Makes the folders, for their owner alone. Existing ones are tightened.
pub fn prepare(home: &Path) -> io::Result<()> {
    for dir in ["", "run", "run/boxes", "boxes", "repos", "relay", "logs"] {
        private_dir(&home.join(dir))?;
    }
    Ok(())
}

/// Removes what a host that was killed was working on: bundles of pushes, and clones. Only the holder
/// of the lock may.
pub fn clear_leftovers(home: &Path) {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    for repo in entries(&home.join("repos")) {
        let bundle = |path: &PathBuf| path.extension().is_some_and(|e| e == "bundle");
        for file in entries(&repo.path()).map(|e| e.path()).filter(bundle) {
            let _ = std::fs::remove_file(file);
        }
    }
    for entry in entries(&home.join("relay")) {
        if entry.file_name().to_string_lossy().starts_with("clone-") {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder only its owner can enter.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

pub fn control_socket(home: &Path) -> PathBuf {
    home.join("run/control.sock")
}

pub fn lock_file(home: &Path) -> PathBuf {
    home.join("run/host.lock")
}

pub fn database(home: &Path) -> PathBuf {
    home.join("agentbox.db")
}

/// The folder of sockets that is mounted into one box.
pub fn box_run_dir(home: &Path, id: &protocol::BoxId) -> PathBuf {
    home.join("run/boxes").join(id.as_str())
}

/// What else the host keeps for one box; never mounted anywhere.
pub fn box_dir(home: &Path, id: &protocol::BoxId) -> PathBuf {
    home.join("boxes").join(id.as_str())
}

/// Every folder of one box.
pub fn box_dirs(home: &Path, id: &protocol::BoxId) -> [PathBuf; 3] {
    [box_run_dir(home, id), box_repo_dir(home, id), box_dir(home, id)]
}

/// The box's clean transfer repository and whatever else the relay keeps for it.
pub fn box_repo_dir(home: &Path, id: &protocol::BoxId) -> PathBuf {
    home.join("repos").join(id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_being_worked_on_is_cleared() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let kept = ["repos/b1/workspace.git/objects/x.bundle", "repos/b1/other", "relay/b1/x"];
        let gone = ["repos/b1/.tmpA1.bundle", "relay/clone-A1/repository.git/config"];
        for name in kept.iter().chain(&gone) {
            file(name);
        }
        clear_leftovers(home.path());
        assert!(kept.iter().all(|name| home.path().join(name).exists()));
        assert!(!home.path().join("repos/b1/.tmpA1.bundle").exists());
        assert!(!home.path().join("relay/clone-A1").exists());
        clear_leftovers(&home.path().join("nothing"));
    }
}
