//! Where state that outlives a stop is kept: one answer for everybody.
//!
//! A folder counts when a file can be made in it, not when it looks as if. What may be below it from
//! before must be usable, too.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The wanted folder, or the one beside the logs when that cannot be written; the wanted one when
/// neither can, so that whoever writes says why not.
pub fn resolve(wanted: &Path, logs: &Path) -> PathBuf {
    let beside = logs.join("state");
    if is_usable(wanted) {
        return wanted.to_owned();
    }
    if is_usable(&beside) { beside } else { wanted.to_owned() }
}

fn is_usable(base: &Path) -> bool {
    let _ = fs::create_dir_all(base);
    let below = ["tasks", "secrets"].map(|name| base.join(name));
    takes_files(base) && below.iter().all(|dir| !dir.exists() || takes_files(dir))
}

fn takes_files(dir: &Path) -> bool {
    let probe = dir.join(format!(".probe-{}", std::process::id()));
    let made = File::options().write(true).create_new(true).open(&probe).is_ok();
    made && fs::remove_file(&probe).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_13_42_a_folder_that_takes_no_files_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let (wanted, logs) = (dir.path().join("lib"), dir.path().join("log"));
        assert_eq!(resolve(&wanted, &logs), wanted);
        fs::write(wanted.join("tasks"), "in the way").unwrap();
        assert_eq!(resolve(&wanted, &logs), logs.join("state"));
        fs::remove_dir_all(&logs).unwrap();
        fs::write(&logs, "in the way").unwrap();
        assert_eq!(resolve(&wanted, &logs), wanted);
        assert_eq!(wanted.read_dir().unwrap().count(), 1, "no probe is left");
    }
}
