//! `run_once`: a mark that a task has been done, made from what it would run.
//!
//! The mark is there before anybody is told that the task is done, and gone before it is run again:
//! a task that was cut short is run at the next start.

use super::unit::{Argv, Once, Unit};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Files that can be inputs.
const MOST_INPUTS: usize = 20_000;

#[derive(Serialize)]
struct Payload<'a> {
    command: Command<'a>,
    cwd: String,
    env: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Vec<(String, String)>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Command<'a> {
    Text(&'a str),
    Words(&'a [String]),
}

/// What a mark of this task says. Reads its inputs.
pub fn hash(unit: &Unit) -> io::Result<String> {
    let inputs = match unit.task().map(|task| &task.once) {
        Some(Once::Inputs(globs)) => Some(inputs(&unit.cwd, globs)?),
        _ => None,
    };
    let command = match &unit.command {
        Argv::Shell(text) => Command::Text(text),
        Argv::Words(words) => Command::Words(words),
        // A task is never one.
        Argv::Container(container) => Command::Text(&container.name),
    };
    let cwd = unit.cwd.display().to_string();
    let payload = Payload { command, cwd, env: unit.env.as_ref(), inputs };
    let text = serde_json::to_vec(&payload).map_err(io::Error::other)?;
    Ok(hex(&Sha256::digest(text)))
}

/// Files by name with what is in them.
fn inputs(cwd: &Path, globs: &[String]) -> io::Result<Vec<(String, String)>> {
    let mut found = BTreeMap::new();
    for glob in globs {
        let base = glob::Pattern::escape(&cwd.display().to_string());
        // At the end it means everything below, as elsewhere; to this library it means folders alone.
        let below = if glob == "**" || glob.ends_with("/**") { "/*" } else { "" };
        let pattern = format!("{base}/{}{below}", glob.trim_start_matches("./"));
        let paths = glob::glob(&pattern).map_err(|e| io::Error::other(format!("{glob}: {e}")))?;
        for path in paths.flatten().filter(|path| path.is_file()) {
            if found.len() >= MOST_INPUTS {
                return Err(io::Error::other(format!("more than {MOST_INPUTS} inputs")));
            }
            let name = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
            found.insert(name, digest(&path)?);
        }
    }
    Ok(found.into_iter().collect())
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn path(state: &Path, name: &str) -> PathBuf {
    state.join("tasks").join(name)
}

/// Whether the mark says this.
pub fn matches(state: &Path, name: &str, hash: &str) -> bool {
    let mut first = Vec::new();
    let read = File::open(path(state, name)).and_then(|f| f.take(65).read_to_end(&mut first));
    read.is_ok() && first.split(|b| *b == b'\n').next() == Some(hash.as_bytes())
}

pub fn remove(state: &Path, name: &str) {
    let _ = fs::remove_file(path(state, name));
}

/// Whole and on disk, or an error.
pub fn write(state: &Path, name: &str, hash: &str) -> io::Result<()> {
    let path = path(state, name);
    let dir = state.join("tasks");
    fs::create_dir_all(&dir)?;
    let fresh = dir.join(format!(".{name}.new"));
    let mut file = File::create(&fresh)?;
    file.write_all(format!("{hash}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, &path)?;
    File::open(&dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::unit::{Kind, Task};

    fn task(command: &str, cwd: &Path, once: Once) -> Unit {
        Unit {
            name: "install".into(),
            command: Argv::Shell(command.into()),
            cwd: cwd.to_owned(),
            env: None,
            needs: vec![],
            kind: Kind::Task(Task { once, timeout: None }),
        }
    }

    #[test]
    fn yaml_13_38_the_mark_is_made_from_command_folder_and_environment() {
        let unit = task("pnpm install --frozen-lockfile", Path::new("/workspace"), Once::Marker);
        let wanted = "7aedfc66b871eb081e25efe443d9d14909af1465c7ac53ee432d431b222e0e50";
        assert_eq!(hash(&unit).unwrap(), wanted);
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "install", wanted).unwrap();
        let file = dir.path().join("tasks/install");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{wanted}\n"));
        assert!(matches(dir.path(), "install", wanted));
        let mut needy = unit.clone();
        needy.needs = vec!["x".into()];
        assert_eq!(hash(&needy).unwrap(), wanted);
        let other = Unit { env: Some(BTreeMap::from([("A".into(), "1".into())])), ..unit };
        assert!(!matches(dir.path(), "install", &hash(&other).unwrap()));
        remove(dir.path(), "install");
        assert!(!matches(dir.path(), "install", wanted));
    }

    #[test]
    fn yaml_13_43_inputs_are_part_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let once = Once::Inputs(vec!["pnpm-lock.yaml".into(), "packages/*/package.json".into()]);
        let unit = task("true", dir.path(), once);
        let none = hash(&unit).unwrap();
        assert_eq!(hash(&unit).unwrap(), none);
        fs::write(dir.path().join("pnpm-lock.yaml"), "1").unwrap();
        let one = hash(&unit).unwrap();
        fs::create_dir_all(dir.path().join("packages/a")).unwrap();
        fs::write(dir.path().join("packages/a/package.json"), "{}").unwrap();
        let two = hash(&unit).unwrap();
        fs::write(dir.path().join("pnpm-lock.yaml"), "2").unwrap();
        let three = hash(&unit).unwrap();
        let all = [none, one, two, three];
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn two_stars_at_the_end_are_all_files_below() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("lib/deep")).unwrap();
        for name in ["lib/a", "lib/deep/b", "top"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let names = |glob: &str| {
            let found = inputs(dir.path(), &[glob.to_owned()]).unwrap();
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names("lib/**"), ["lib/a", "lib/deep/b"]);
        assert_eq!(names("./lib/**"), ["lib/a", "lib/deep/b"]);
        assert_eq!(names("**"), ["lib/a", "lib/deep/b", "top"]);
        assert_eq!(names("**/b"), ["lib/deep/b"]);
    }
}
