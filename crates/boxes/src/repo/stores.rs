//! The object stores a repository reads from, and where each is mounted in a box.
//!
//! A store may name further ones in `info/alternates`, and git in the box follows that file too:
//! each store is therefore mounted where its name resolves inside the box. Where that is a place
//! the box needs for itself, or where another repository's store is, it is mounted below the
//! repository's own folder in `/agentbox/objects` and listed by hand.
//!
//! The surprising thing: a repository's files of Git LFS are mounted beside its objects, because that
//! is where git-lfs looks for them when it follows an alternate.

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

/// The store at `objects` and all it refers to. `number` is the repository's among those of its box,
/// `others` are the mounts of those before it.
pub(super) fn find(
    objects: &Path,
    number: usize,
    others: &[ObjectStore],
) -> Result<Vec<ObjectStore>, Error> {
    let room = Room { path: format!("{}/{number}", paths::OBJECTS), others };
    let inside = format!("{}/objects", room.path);
    let own = ObjectStore { host: objects.to_owned(), inside, listed: true };
    let mut stores = vec![own];
    let mut level = 0..1;
    for _ in 0..DEEPEST {
        let end = stores.len();
        for at in level {
            for name in alternates(&stores[at].host)? {
                add(&mut stores, &room, at, &name)?;
            }
        }
        level = end..stores.len();
    }
    Ok(stores)
}

/// The files of Git LFS that a repository has, where git-lfs in the box looks for them.
pub(super) fn lfs(common_dir: &Path, number: usize) -> Option<ObjectStore> {
    let host = common_dir.join("lfs/objects").canonicalize().ok().filter(|path| path.is_dir())?;
    let inside = format!("{}/{number}/lfs/objects", paths::OBJECTS);
    Some(ObjectStore { host, inside, listed: false })
}

/// Where one repository's stores are mounted.
struct Room<'a> {
    path: String,
    others: &'a [ObjectStore],
}

impl Room<'_> {
    /// Another repository has something else there.
    fn is_taken(&self, inside: &str, host: &Path) -> bool {
        self.others.iter().any(|other| other.inside == inside && other.host != host)
    }
}

fn add(
    stores: &mut Vec<ObjectStore>,
    room: &Room<'_>,
    from: usize,
    name: &Path,
) -> Result<(), Error> {
    let host = normal(&stores[from].host.join(name));
    // Git, too, goes on without a store that is not there.
    let Ok(host) = host.canonicalize() else { return Ok(()) };
    // What is mounted into a box is never more than git's objects, whatever a file says.
    if !is_store(&host) {
        let why = "it is named as an alternate object store and is none".to_owned();
        return Err(Error::Repository { path: host, why });
    }
    if stores.iter().any(|store| store.host == host) {
        return Ok(());
    }
    if host.to_str().is_none() {
        let why = "its name is not plain text, so the engine cannot mount it".to_owned();
        return Err(Error::Repository { path: host, why });
    }
    let resolved = normal(&Path::new(&stores[from].inside).join(name));
    let free = |path: &&str| !is_reserved(path) && !room.is_taken(path, &host);
    let inside = resolved.to_str().filter(free).map(str::to_owned);
    let listed = inside.is_none();
    let inside = inside.unwrap_or_else(|| format!("{}/{}", room.path, stores.len()));
    stores.push(ObjectStore { host, inside, listed });
    Ok(())
}

fn is_store(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| name == "objects");
    named && ["pack", "info"].iter().any(|part| path.join(part).is_dir())
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

        let stores = find(&objects, 0, &[]).unwrap();
        let first = repo.path().join(".git/objects");
        let expected = [
            (objects.clone(), "/agentbox/objects/0/objects".to_owned(), true),
            // Up three from there is a place of the box's own.
            (middle.join(".git/objects"), "/agentbox/objects/0/1".to_owned(), true),
            (first.clone(), first.to_str().unwrap().to_owned(), false),
        ];
        let found: Vec<_> =
            stores.iter().map(|s| (s.host.clone(), s.inside.clone(), s.listed)).collect();
        assert_eq!(found, expected);
        // Where another repository has something else, it goes elsewhere.
        let mut others = stores.clone();
        others[2].host = "/elsewhere".into();
        let beside = find(&objects, 1, &others).unwrap();
        assert_eq!((beside[2].inside.as_str(), beside[2].listed), ("/agentbox/objects/1/2", true));
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
        assert_eq!(find(&objects, 0, &[]).unwrap().len(), 1);
    }
}
