//! Text for git's configuration file.
//!
//! Written in one piece because a process per setting is felt when a box is made. Values are
//! always quoted, so nothing in them can end the line or start a section.

use crate::error::{Error, Result};

/// One setting as a section of its own; git allows a section any number of times.
pub fn setting(key: &str, value: &str) -> Result<String> {
    let bad = || Error::BadInput(format!("a setting that cannot be written: {key:?}"));
    let (section, rest) = key.split_once('.').ok_or_else(bad)?;
    let (subsection, name) = match rest.rsplit_once('.') {
        Some((subsection, name)) => (Some(subsection), name),
        None => (None, rest),
    };
    let word = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let one_line = |t: &str| !t.contains(['\n', '\0']);
    if !word(section) || !word(name) || !starts_well || value.contains('\0') {
        return Err(bad());
    }
    let heading = match subsection {
        None => format!("[{section}]"),
        Some(s) if one_line(s) => format!("[{section} \"{}\"]", escaped(s)),
        Some(_) => return Err(bad()),
    };
    let value = escaped(value).replace('\n', "\\n").replace('\t', "\\t");
    Ok(format!("{heading}\n\t{name} = \"{value}\"\n"))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn git_reads_what_was_written() {
        let values = ["plain", "", " a # b ; c ", "q\"uo\\te", "two\nlines\tand tab", "Zoë"];
        let keys = ["user.name", "remote.a\"b\\c.url", "branch.a.b.merge", "pull.ff-x"];
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        for key in keys {
            for value in values {
                std::fs::write(&file, setting(key, value).unwrap()).unwrap();
                let mut git = Command::new(protocol::ctl::paths::GIT);
                let out = git.args(["config", "-z", "-f"]).arg(&file).arg(key).output().unwrap();
                assert_eq!(String::from_utf8(out.stdout).unwrap(), format!("{value}\0"), "{key}");
            }
        }
    }

    #[test]
    fn what_would_break_the_file_is_refused() {
        for key in ["", "user", "us er.name", "user.", "user.na=me", "a.b\nc.d", "user.1a", "].x"] {
            assert!(setting(key, "v").is_err(), "{key:?} was taken");
        }
        assert!(setting("user.name", "a\0b").is_err());
    }
}
