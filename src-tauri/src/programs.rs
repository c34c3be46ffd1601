//! Where the other programs of AgentBox lie, seen from the one that runs.
//!
//! In a clone and in an app of macOS they lie together. A Linux package has those that people type in
//! `/usr/bin`, and the window in `/usr/lib/agentbox`.

use protocol::control::{ControlError, ErrorCode};
use std::path::{Path, PathBuf};

/// The window's program; fails in words.
pub fn window() -> Result<PathBuf, String> {
    near("agentbox-window", &["", "../lib/agentbox"])
        .ok_or_else(|| "agentbox-window is not where agentbox-desktop expects it".into())
}

/// The command line.
pub fn agentbox() -> Result<PathBuf, ControlError> {
    near("agentbox", &["", "../../bin"]).ok_or_else(|| {
        let text = "The program agentbox is not beside agentbox-desktop.";
        ControlError::new(ErrorCode::Failed, text).hint("Install both, in one folder.")
    })
}

fn near(name: &str, places: &[&str]) -> Option<PathBuf> {
    // Through links: on macOS a program does not learn where a link to it leads.
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    find(name, own.parent()?, places)
}

fn find(name: &str, from: &Path, places: &[&str]) -> Option<PathBuf> {
    let at = |place: &&str| from.join(place).join(name).canonicalize().ok();
    places.iter().filter_map(at).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_each_other_in_a_package_and_in_a_clone() {
        let root = std::env::temp_dir().join(format!("agentbox-programs-{}", std::process::id()));
        let root = {
            std::fs::create_dir_all(&root).unwrap();
            root.canonicalize().unwrap()
        };
        let put = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let (window, agentbox) = (put("usr/lib/agentbox/agentbox-window"), put("usr/bin/agentbox"));
        let from = |folder: &str, name, places| find(name, &root.join(folder), places);
        let found = from("usr/bin", "agentbox-window", &["", "../lib/agentbox"]);
        assert_eq!(found, Some(window));
        assert_eq!(from("usr/lib/agentbox", "agentbox", &["", "../../bin"]), Some(agentbox));

        let beside = put("clone/agentbox-window");
        assert_eq!(from("clone", "agentbox-window", &["", "../lib/agentbox"]), Some(beside));
        assert_eq!(from("clone", "agentbox", &["", "../../bin"]), None);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
