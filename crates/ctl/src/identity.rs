//! Who this box is: `box.env`, which every start writes anew and whoever wants to know reads.
//!
//! The container's environment says the same to commands, but it is as old as the container, and not
//! every program is one's child. A checkpoint has no `box.env` (see `hold`), and before the next box has its own,
//! nothing of that box's runs.

use crate::error::{Doing, Result};
use crate::places;
use protocol::ctl::Identity;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Everybody may read it, and a shell can, too. There whole or not at all.
pub fn write(to: &Path, identity: &Identity) -> Result<()> {
    let doing = || format!("write {}", to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let fresh = to.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o644).open(&fresh).doing(doing)?;
    file.write_all(lines(&identity.variables()).as_bytes()).doing(doing)?;
    // Whatever the mask says.
    file.set_permissions(Permissions::from_mode(0o644)).doing(doing)?;
    fs::rename(&fresh, to).doing(doing)
}

/// Names and values; none in a box that was never told.
pub fn read() -> Vec<(String, String)> {
    parsed(&fs::read_to_string(places::identity()).unwrap_or_default())
}

/// One variable, as this process has it, else as the box was told. Empty is none.
pub fn variable(told: &[(String, String)], name: &str) -> Option<String> {
    let own = std::env::var(name).ok().filter(|value| !value.is_empty());
    own.or_else(|| told.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone()))
}

fn lines(variables: &[(&str, String)]) -> String {
    variables.iter().map(|(name, value)| format!("{name}={}\n", quoted(value))).collect()
}

/// In single quotes nothing has a meaning but their end.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

fn parsed(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?.replace(r"'\''", "'");
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let good = !name.is_empty() && name.bytes().all(fits);
        good.then(|| (name.to_owned(), value))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn identity(workspace: &str) -> Identity {
        Identity {
            id: "b00000001".parse().unwrap(),
            name: "fix".parse().unwrap(),
            host_workspace: Some(workspace.to_owned()),
            project_root: None,
            project_index: 1,
        }
    }

    #[test]
    fn odd_lines_are_nobodys() {
        let read = parsed("A='x y'\nB='it'\\''s'\n# no\nC=bare\nD E='x'\n");
        assert_eq!(read, [("A".into(), "x y".into()), ("B".into(), "it's".into())]);
    }

    #[test]
    fn a_shell_reads_what_was_written_and_runs_none_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("etc/box.env");
        for odd in ["/it's", "/$(touch x) `y` \"z\" \\", "'", "'\\''", "/ends with '", " é ", "#="]
        {
            write(&file, &identity(odd)).unwrap();
            let script = ". \"$1\"; printf %s \"$AGENTBOX_HOST_WORKSPACE\"";
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", script, "sh"]).arg(&file).current_dir(dir.path());
            assert_eq!(String::from_utf8(shell.output().unwrap().stdout).unwrap(), odd);
            let told = parsed(&fs::read_to_string(&file).unwrap());
            assert_eq!(variable(&told, "AGENTBOX_HOST_WORKSPACE").as_deref(), Some(odd));
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn another_boxs_name_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("box.env");
        fs::write(&file, "AGENTBOX_BOX_NAME='old'\nAGENTBOX_PROJECT_ROOT='/old'\n").unwrap();
        write(&file, &identity("/new")).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("AGENTBOX_BOX_NAME='fix'\n") && !text.contains("old"), "{text}");
    }

    proptest::proptest! {
        #[test]
        fn every_line_comes_back(value in "[^\\p{Cc}]{1,40}") {
            let read = parsed(&lines(&[("A", value.clone()), ("B", "b".to_owned())]));
            let wanted = [("A".to_owned(), value), ("B".to_owned(), "b".to_owned())];
            proptest::prop_assert_eq!(read, wanted);
        }
    }
}
