//! `agentbox-ctl keep-paste <name>` (box user): an image a person pasted, for whoever works here.
//!
//! Names begin with the time, so that the oldest ones are those that go when there are too many.

use crate::error::{Doing, Error, Result};
use crate::places;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const KEPT: usize = 20;

pub fn run(args: &[OsString]) -> Result<i32> {
    let name = match args {
        [name] => name.to_str().filter(|name| is_name(name)),
        _ => None,
    };
    let usage = || Error::Usage("use 'agentbox-ctl keep-paste <name>'.".into());
    keep(&places::pastes(), name.ok_or_else(usage)?, &mut io::stdin().lock())?;
    Ok(protocol::exit::OK)
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    !name.starts_with('.') && !name.is_empty() && name.len() <= 100 && name.chars().all(fits)
}

/// Whole or not at all.
fn keep(folder: &Path, name: &str, from: &mut impl io::Read) -> Result<()> {
    let doing = || format!("keep {}", folder.join(name).display());
    fs::create_dir_all(folder).doing(doing)?;
    let part = folder.join(format!(".{name}"));
    let mut file = File::create(&part).doing(doing)?;
    let copied = io::copy(from, &mut file).and_then(|_| fs::rename(&part, folder.join(name)));
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied.doing(doing)?;
    let entries = fs::read_dir(folder).doing(doing)?.flatten();
    // One that begins with a dot is still being written.
    let whole = |p: &PathBuf| {
        p.is_file() && !p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."))
    };
    let mut all: Vec<_> = entries.map(|e| e.path()).filter(whole).collect();
    all.sort();
    for old in all.iter().take(all.len().saturating_sub(KEPT)) {
        let _ = fs::remove_file(old);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for n in 10..40 {
            keep(dir.path(), &format!("{n}.png"), &mut &b"image"[..]).unwrap();
        }
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(
            (left.len(), left[0].to_str(), left[19].to_str()),
            (20, Some("20.png"), Some("39.png"))
        );
        assert_eq!(fs::read(dir.path().join("39.png")).unwrap(), b"image");
    }

    #[test]
    fn a_name_is_no_path() {
        for bad in ["", ".x", "../x", "a/b", "a b", "a\n"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(is_name("1763409600000-12.png"));
    }
}
