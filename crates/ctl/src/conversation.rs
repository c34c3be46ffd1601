//! `agentbox-ctl conversation` (box user): puts a conversation the host brought where its agent looks.
//!
//! One that went on here since it was brought before stays as it is: what the host has is its beginning.
//! One that differs is kept beside the new one.

use crate::error::{Doing, Error, Result};
use protocol::ctl::INCOMING_CONVERSATION;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

pub fn run(args: &[OsString]) -> Result<i32> {
    if !args.is_empty() {
        return Err(Error::Usage("use 'agentbox-ctl conversation'.".into()));
    }
    let home = std::env::home_dir().ok_or_else(|| Error::Failed("there is no home.".into()))?;
    let incoming = home.join(INCOMING_CONVERSATION);
    let put = files(&incoming).and_then(|names| {
        names.iter().try_for_each(|name| place(&incoming.join(name), &home.join(name)))
    });
    let _ = fs::remove_dir_all(&incoming);
    put?;
    Ok(protocol::exit::OK)
}

/// Every file below, by its path from there.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut pending) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = pending.pop() {
        let here = root.join(&folder);
        for entry in fs::read_dir(&here).doing(|| format!("read {}", here.display()))?.flatten() {
            let name = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(name),
                Ok(kind) if kind.is_file() => found.push(name),
                _ => {}
            }
        }
    }
    Ok(found)
}

fn place(from: &Path, to: &Path) -> Result<()> {
    let doing = || format!("write {}", to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    if to.symlink_metadata().is_ok() {
        if begins_with(to, from) {
            return Ok(());
        }
        fs::rename(to, free(to)).doing(doing)?;
    }
    fs::rename(from, to).doing(doing)
}

/// A name beside it that nothing has; no agent takes it for a conversation.
fn free(path: &Path) -> PathBuf {
    let named = |n: u32| path.with_extension(format!("jsonl.before-{n}"));
    (1..1000).map(named).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| named(0))
}

fn begins_with(whole: &Path, beginning: &Path) -> bool {
    let (Ok(whole), Ok(beginning)) = (File::open(whole), File::open(beginning)) else {
        return false;
    };
    let mut whole = BufReader::new(whole).bytes();
    BufReader::new(beginning).bytes().all(|byte| match (byte, whole.next()) {
        (Ok(one), Some(Ok(other))) => one == other,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_on_here_stays_and_what_differs_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("in.jsonl"), dir.path().join("a/b.jsonl"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(&from, "1\n2\n").unwrap();
        place(&from, &to).unwrap();
        assert_eq!(read(&to), "1\n2\n");
        fs::write(&to, "1\n2\nmine\n").unwrap();
        fs::write(&from, "1\n2\n").unwrap();
        place(&from, &to).unwrap();
        assert_eq!(read(&to), "1\n2\nmine\n");
        fs::write(&from, "1\n2\ntheirs\n").unwrap();
        place(&from, &to).unwrap();
        assert_eq!(read(&to), "1\n2\ntheirs\n");
        assert_eq!(read(&dir.path().join("a/b.jsonl.before-1")), "1\n2\nmine\n");
    }

    #[test]
    fn only_files_are_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("x/y")).unwrap();
        fs::write(dir.path().join("x/y/z"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("x/link")).unwrap();
        assert_eq!(files(dir.path()).unwrap(), [PathBuf::from("x/y/z")]);
    }
}
