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
    for dir in ["", "run", "run/boxes", "repos", "relay", "logs"] {
        private_dir(&home.join(dir))?;
    }
    Ok(())
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

/// The box's clean transfer repository and whatever else the relay keeps for it.
pub fn box_repo_dir(home: &Path, id: &protocol::BoxId) -> PathBuf {
    home.join("repos").join(id.as_str())
}
