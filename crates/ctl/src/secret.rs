//! `agentbox-ctl secret list|rotate <name>|rm <name>`: secrets that are made up in this box, by name.
//!
//! `render` makes them and puts them into files. Here nobody is shown a value: what reads a terminal
//! reads its history, too.

use crate::error::{Doing, Error, Result};
use crate::supervisor::client::INVALID;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use protocol::exit;
use protocol::supervisor::{STATE, STATE_DIR};
use protocol::text::visible;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const USE: &str = "use 'agentbox-ctl secret list [--json]', 'agentbox-ctl secret rotate <name>' or \
    'agentbox-ctl secret rm <name>'.";
/// Bytes of a secret before they are text.
const BYTES: usize = 32;
const LONGEST_NAME: usize = 200;
/// More than anybody has.
const MOST: usize = 10_000;

/// Where state that outlives a stop is kept in this box.
pub fn state() -> PathBuf {
    let state = fs::read_to_string(STATE_DIR).unwrap_or_else(|_| STATE.to_owned());
    PathBuf::from(state.trim())
}

/// Where secrets are kept below it.
pub fn dir(state: &Path) -> PathBuf {
    state.join("secrets")
}

pub fn run(args: &[OsString]) -> Result<i32> {
    let mut words: Vec<&str> = Vec::new();
    let (mut state, mut json) = (state(), false);
    let mut args = args.iter();
    while let Some(word) = args.next() {
        match word.to_str() {
            Some("--json" | "-j") => json = true,
            Some("--state-dir") => match args.next() {
                Some(path) => state = PathBuf::from(path),
                None => return Ok(wrong()),
            },
            Some(word) if !word.starts_with('-') => words.push(word),
            _ => return Ok(wrong()),
        }
    }
    let dir = dir(&state);
    match words.as_slice() {
        ["list"] => {
            let names = names(&dir)?;
            crate::say(&if json {
                format!("{}\n", serde_json::json!({ "schema": 1, "secrets": names }))
            } else {
                names.iter().map(|name| format!("{name}\n")).collect()
            });
            Ok(exit::OK)
        }
        ["rotate", name] if !json => changed(&dir, name, "another one now", replace),
        ["rm", name] if !json => changed(&dir, name, "removed", |path| {
            fs::remove_file(path).doing(|| format!("remove {}", path.display()))
        }),
        _ => Ok(wrong()),
    }
}

fn wrong() -> i32 {
    crate::complain(&format!("agentbox-ctl: {USE}"));
    INVALID
}

fn changed(
    dir: &Path,
    name: &str,
    what: &str,
    change: impl FnOnce(&Path) -> Result<()>,
) -> Result<i32> {
    if !is_name(name) || !dir.join(name).is_file() {
        let shown = visible(name);
        let list = "'agentbox-ctl secret list' names those there are";
        return Err(Error::Failed(format!("there is no secret {shown} in this box; {list}.")));
    }
    change(&dir.join(name))?;
    crate::say(&format!(
        "{name}: {what}. Files that have the old one keep it until they are rendered again.\n"
    ));
    Ok(exit::OK)
}

pub fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(plain)
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.doing(|| format!("read {}", dir.display()))?,
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_name(name)).take(MOST).collect();
    names.sort();
    Ok(names)
}

pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Made up once. Of two that make it at once, one wins and both use it.
pub fn kept(dir: &Path, name: &str) -> Result<String> {
    let path = dir.join(name);
    let doing = || format!("keep the secret {}", path.display());
    if !path.exists() {
        make(dir, &path).doing(doing)?;
    }
    let text = fs::read_to_string(&path).doing(doing)?;
    Ok(text.trim_end().to_owned())
}

fn make(dir: &Path, path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    whole(path, |new| match fs::hard_link(new, path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    })
}

/// Whoever reads it meanwhile has the old one or the new one.
fn replace(path: &Path) -> Result<()> {
    whole(path, |new| fs::rename(new, path)).doing(|| format!("write {}", path.display()))
}

/// A new value that is whole before it has its name.
fn whole(path: &Path, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_file_name(format!(".new-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let made = File::options().write(true).create_new(true).mode(0o600).open(&new);
    let done = made.and_then(|mut file| {
        writeln!(file, "{}", fresh()?)?;
        file.sync_all()?;
        put(&new)
    });
    let _ = fs::remove_file(&new);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn ran(state: &Path, words: &[&str]) -> Result<i32> {
        let mut args: Vec<OsString> = words.iter().map(OsString::from).collect();
        args.extend([OsString::from("--state-dir"), state.into()]);
        run(&args)
    }

    #[test]
    fn two_that_make_a_secret_at_once_have_the_same() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("k"), "the-first\n").unwrap();
        make(dir.path(), &dir.path().join("k")).unwrap();
        assert_eq!(kept(dir.path(), "k").unwrap(), "the-first");
    }

    #[test]
    fn a_secret_is_made_anew_or_removed_by_name() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path();
        let at = dir(state);
        assert_eq!(ran(state, &["list"]).unwrap(), exit::OK);
        assert!(!at.exists(), "looking makes nothing");
        let first = kept(&at, "k").unwrap();
        fs::write(at.join(".new-1"), "half").unwrap();
        assert_eq!(names(&at).unwrap(), ["k"]);
        assert_eq!(ran(state, &["rotate", "k"]).unwrap(), exit::OK);
        let second = kept(&at, "k").unwrap();
        assert!(first != second && second.len() == 43);
        assert_eq!(fs::metadata(at.join("k")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ran(state, &["rm", "k"]).unwrap(), exit::OK);
        assert!(names(&at).unwrap().is_empty());
        for gone in [["rm", "k"], ["rotate", "k"], ["rm", "../tasks/x"], ["rm", ".new-1"]] {
            assert_eq!(ran(state, &gone).unwrap_err().exit_code(), exit::FAILURE, "{gone:?}");
        }
        assert!(at.join(".new-1").exists());
        for odd in [&["rotate"][..], &["show", "k"], &[], &["list", "k"], &["list", "--what"]] {
            assert_eq!(ran(state, odd).unwrap(), INVALID, "{odd:?}");
        }
    }
}
