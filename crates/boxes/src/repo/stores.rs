//! The object stores a repository reads from, and where each is mounted in a box.
//!
//! A store may name further ones in `info/alternates`, and git in the box follows that file too:
//! each store is therefore mounted where its name resolves inside the box. Where that is a place
//! the box needs for itself, it is mounted below `/agentbox/objects` and listed by hand.

use crate::Error;
use protocol::ctl::paths;
use std::path::{Component, Path, PathBuf};

/// Git gives up on longer chains.
const DEEPEST: usize = 5;

/// Places in a box that are its own.
const RESERVED: [&str; 7] =
    ["/workspace", "/agentbox", "/run", "/proc", "/sys", "/dev", "/home/vscode"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectStore {
    pub host: PathBuf,
    pub inside: String,
    /// The box must name it itself, because no other store does under this path.
    pub listed: bool,
}

/// The store at `objects` and all it refers to.
pub(super) fn find(objects: &Path) -> Result<Vec<ObjectStore>, Error> {
    let own = ObjectStore {
        host: objects.to_owned(),
        inside: format!("{}/0", paths::OBJECTS),
        listed: true,
    };
    let mut stores = vec![own];
    let mut level = 0..1;
    for _ in 0..DEEPEST {
        let end = stores.len();
        for at in level {
            for name in alternates(&stores[at].host)? {
                add(&mut stores, at, &name)?;
            }
        }
        level = end..stores.len();
    }
    Ok(stores)
}

fn add(stores: &mut Vec<ObjectStore>, from: usize, name: &Path) -> Result<(), Error> {
    let host = normal(&stores[from].host.join(name));
    // Git, too, goes on without a store that is not there.
    let Ok(host) = host.canonicalize() else { return Ok(()) };
    if stores.iter().any(|store| store.host == host) {
        return Ok(());
    }
    if host.to_str().is_none() {
        let why = "its name is not plain text, so the engine cannot mount it".to_owned();
        return Err(Error::Repository { path: host, why });
    }
    let resolved = normal(&Path::new(&stores[from].inside).join(name));
    let inside = resolved.to_str().filter(|path| !is_reserved(path)).map(str::to_owned);
    let listed = inside.is_none();
    let inside = inside.unwrap_or_else(|| format!("{}/{}", paths::OBJECTS, stores.len()));
    stores.push(ObjectStore { host, inside, listed });
    Ok(())
}

fn is_reserved(path: &str) -> bool {
    let path = Path::new(path);
    // A short path would hide a part of the image.
    path.components().count() < 3 || RESERVED.iter().any(|folder| path.starts_with(folder))
}

/// Names in `info/alternates`, one per line, `#` starts a comment.
fn alternates(store: &Path) -> Result<Vec<PathBuf>, Error> {
    use std::os::unix::ffi::OsStrExt;
    let path = store.join("info/alternates");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    let names: Vec<&[u8]> = lines.filter(|line| !line.is_empty() && line[0] != b'#').collect();
    if names.iter().any(|name| name[0] == b'"') {
        let why = "it names an alternate object store in quotes".to_owned();
        return Err(Error::Repository { path, why });
    }
    Ok(names.into_iter().map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name))).collect())
}

/// Resolves `.` and `..` by text alone, as git does with these names.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut at, component| {
        match component {
            Component::ParentDir => {
                at.pop();
            }
            Component::CurDir => {}
            other => at.push(other),
        }
        at
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::{Repo, git_in};

    #[test]
    fn absolute_and_relative_alternates_resolve_in_the_box() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let middle = repo.outside("middle");
        repo.git(&["clone", "-q", "--shared", ".", middle.to_str().unwrap()]);
        let top = repo.outside("top");
        repo.git(&["init", "-q", top.to_str().unwrap()]);
        let objects = top.join(".git/objects");
        std::fs::write(objects.join("info/alternates"), "# c\n../../../middle/.git/objects\n")
            .unwrap();

        let stores = find(&objects).unwrap();
        let first = repo.path().join(".git/objects");
        let expected = [
            (objects.clone(), "/agentbox/objects/0".to_owned(), true),
            // Up three from /agentbox/objects/0 ends at the root.
            (middle.join(".git/objects"), "/middle/.git/objects".to_owned(), false),
            (first.clone(), first.to_str().unwrap().to_owned(), false),
        ];
        let found: Vec<_> = stores.into_iter().map(|s| (s.host, s.inside, s.listed)).collect();
        assert_eq!(found, expected);
        assert_eq!(git_in(&top, &["cat-file", "-t", &repo.git(&["rev-parse", "HEAD"])]), "commit");
    }

    #[test]
    fn places_of_the_box_are_not_mounted_over() {
        for path in ["/", "/usr", "/workspace/x/objects", "/proc/1/x", "/home/vscode/a/objects"] {
            assert!(is_reserved(path), "{path}");
        }
        for path in ["/srv/git/x/objects", "/home/me/r/.git/objects", "/workspaces/a/objects"] {
            assert!(!is_reserved(path), "{path}");
        }
    }

    #[test]
    fn a_circle_of_alternates_ends() {
        let repo = Repo::new();
        let objects = repo.path().join(".git/objects");
        std::fs::write(
            objects.join("info/alternates"),
            format!("{}\n/no/such\n", objects.display()),
        )
        .unwrap();
        assert_eq!(find(&objects).unwrap().len(), 1);
    }
}
