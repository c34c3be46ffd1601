//! Folders of the host by handle, one name at a time, through no link.
//!
//! A path that was looked at and a path that is opened later need not lead to the same place. Here
//! every step from the root on is taken relative to the step before and refuses links, so what was
//! looked at is what is opened, or it is an error.

use nix::dir::Dir;
use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::fcntl::AT_FDCWD;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// A handle that leads somewhere and need not be readable: there are folders one may pass only.
#[cfg(target_os = "linux")]
const PASS: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlag = OFlag::O_RDONLY;
const STEP: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

#[derive(Debug)]
pub struct Folder(OwnedFd);

/// What a name is, not where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// What a name was at one moment. Two that are equal are the same file with the same content, as
/// far as a file system can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub kind: Kind,
    pub size: u64,
    pub runs: bool,
    /// Who may do what with it.
    pub mode: u32,
    identity: [i128; 6],
}

impl Folder {
    pub fn root() -> io::Result<Self> {
        Ok(Self(open("/", PASS | STEP, Mode::empty())?))
    }

    /// The folder at a path that was canonical a moment ago.
    pub fn at(path: &Path) -> io::Result<Self> {
        let mut folder = Self::root()?;
        for part in path.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => folder = folder.enter(Path::new(name))?,
                _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a full path")),
            }
        }
        Ok(folder)
    }

    pub fn enter(&self, name: &Path) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, PASS | STEP, Mode::empty())?))
    }

    pub fn enter_or_make(&self, name: &Path) -> io::Result<Self> {
        match self.enter(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&self.0, name, Mode::from_bits_truncate(0o777)) {
                    // Somebody else may have been quicker.
                    Ok(()) | Err(Errno::EEXIST) => self.enter(name),
                    Err(e) => Err(e.into()),
                }
            }
            entered => entered,
        }
    }

    /// What is there under a name, if anything.
    pub fn look(&self, name: &Path) -> io::Result<Option<Seen>> {
        match fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Seen::new(&stat))),
            Err(Errno::ENOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// A file to read, and its size. Opening never waits, as it would for a pipe.
    pub fn read(&self, name: &Path) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file any more"));
        }
        Ok(file)
    }

    fn create(&self, name: &Path, runs: bool) -> io::Result<File> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.0, name, flags, mode(runs))?.into())
    }

    /// A file that was not there, with its content. Under its name it is whole or not at all, also
    /// when this process is killed meanwhile.
    pub fn make_file(
        &self,
        name: &Path,
        runs: bool,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(mut file) = self.nameless(runs)? {
            fill(&mut file)?;
            let file = format!("/proc/self/fd/{}", file.as_raw_fd());
            let follow = AtFlags::AT_SYMLINK_FOLLOW;
            return Ok(linkat(AT_FDCWD, file.as_str(), &self.0, name, follow)?);
        }
        let fresh = fresh_name()?;
        let mut file = self.create(&fresh, runs)?;
        let made = fill(&mut file).and_then(|()| {
            match linkat(&self.0, &fresh, &self.0, name, AtFlags::empty()) {
                Ok(()) => self.remove(&fresh),
                // A disk without hard links. Then the name is looked at, and taken a moment later.
                Err(Errno::EPERM | Errno::EOPNOTSUPP) if self.look(name)?.is_none() => {
                    self.rename(&fresh, name)
                }
                Err(Errno::EPERM | Errno::EOPNOTSUPP) => Err(Errno::EEXIST.into()),
                Err(e) => Err(e.into()),
            }
        });
        made.inspect_err(|_| drop(self.remove(&fresh)))
    }

    /// A file that has no name yet and is gone with this process; none where a disk has no such.
    #[cfg(target_os = "linux")]
    fn nameless(&self, runs: bool) -> io::Result<Option<File>> {
        let flags = OFlag::O_WRONLY | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        match openat(&self.0, ".", flags, mode(runs)) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// A link that was not there.
    pub fn link(&self, name: &Path, target: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.0, name)?)
    }

    pub fn target(&self, name: &Path) -> io::Result<OsString> {
        Ok(readlinkat(&self.0, name)?)
    }

    /// Takes the place of what has the other name; a link there is replaced, not followed.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub fn remove(&self, name: &Path) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Every name in it, sorted; at most `most` and one.
    pub fn names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let readable = openat(&self.0, ".", OFlag::O_RDONLY | STEP, Mode::empty())?;
        let mut dir = Dir::from_fd(readable)?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
            if names.len() > most {
                break;
            }
        }
        names.sort();
        Ok(names)
    }
}

/// The person's own mask decides who may read it.
fn mode(runs: bool) -> Mode {
    Mode::from_bits_truncate(if runs { 0o777 } else { 0o666 })
}

/// A name nothing has, for what takes another's place in a moment.
pub fn fresh_name() -> io::Result<PathBuf> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(PathBuf::from(format!(".agentbox-{:08x}", u32::from_be_bytes(bytes))))
}

impl Seen {
    // The fields' types differ between systems.
    #[allow(clippy::cast_lossless, clippy::useless_conversion, clippy::unnecessary_cast)]
    fn new(stat: &FileStat) -> Self {
        let kind = match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFREG => Kind::File,
            SFlag::S_IFDIR => Kind::Folder,
            SFlag::S_IFLNK => Kind::Link,
            _ => Kind::Other,
        };
        let moment = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Self {
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            runs: stat.st_mode & 0o111 != 0,
            mode: stat.st_mode as u32 & 0o7777,
            identity: [
                stat.st_dev as i128,
                stat.st_ino as i128,
                i128::from(stat.st_mode),
                i128::from(stat.st_size),
                moment(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                moment(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ],
        }
    }
}

/// A name led through a link, or to something that is no folder.
pub fn is_detour(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::ELOOP | Errno::ENOTDIR | Errno::EMLINK))
}

/// Looks at many paths, most of which lie in the same folder as the one before.
#[derive(Debug, Default)]
pub struct Way {
    last: Option<(PathBuf, Option<Folder>)>,
}

impl Way {
    pub fn look(&mut self, path: &Path) -> io::Result<Option<Seen>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            let folder = match Folder::at(parent) {
                Ok(folder) => Some(folder),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            };
            self.last = Some((parent.to_owned(), folder));
        }
        match &self.last {
            Some((_, Some(folder))) => folder.look(Path::new(name)),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_step_goes_through_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("real/sub")).unwrap();
        symlink("real", dir.join("link")).unwrap();
        std::fs::write(dir.join("real/sub/file"), "x").unwrap();
        symlink("file", dir.join("real/sub/alias")).unwrap();
        assert!(Folder::at(&dir.join("real/sub")).is_ok());
        assert!(is_detour(&Folder::at(&dir.join("link/sub")).unwrap_err()));
        assert!(is_detour(&Folder::at(&dir.join("link")).unwrap_err()));
        let sub = Folder::at(&dir.join("real/sub")).unwrap();
        assert!(sub.read(Path::new("file")).is_ok());
        assert!(sub.read(Path::new("alias")).is_err());
        assert!(sub.create(Path::new("alias"), false).is_err());
        assert_eq!(sub.look(Path::new("alias")).unwrap().unwrap().kind, Kind::Link);
        assert_eq!(sub.names(10).unwrap(), ["alias", "file"]);
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        use std::io::Write;
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let folder = Folder::at(&dir).unwrap();
        let make = |name: &str, fails: bool| {
            folder.make_file(Path::new(name), true, |file| {
                file.write_all(b"half")?;
                assert_eq!(folder.look(Path::new(name))?, None);
                if fails { Err(io::Error::other("full")) } else { file.write_all(b" and half") }
            })
        };
        assert_eq!(make("f", true).unwrap_err().to_string(), "full");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        make("f", false).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("f")).unwrap(), "half and half");
        assert!(folder.look(Path::new("f")).unwrap().unwrap().runs);
        // Nothing takes the place of what has come meanwhile.
        std::fs::write(dir.join("theirs"), "theirs").unwrap();
        let late = folder.make_file(Path::new("theirs"), false, |file| file.write_all(b"ours"));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(dir.join("theirs")).unwrap(), "theirs");
        symlink("nowhere", dir.join("link")).unwrap();
        assert!(folder.make_file(Path::new("link"), false, |_| Ok(())).is_err());
        assert_eq!(folder.names(10).unwrap(), ["f", "link", "theirs"]);
    }

    #[test]
    fn a_pipe_does_not_hold_anybody_up() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        nix::unistd::mkfifo(&dir.join("pipe"), Mode::S_IRWXU).unwrap();
        let folder = Folder::at(&dir).unwrap();
        assert!(folder.read(Path::new("pipe")).is_err());
        assert_eq!(folder.look(Path::new("pipe")).unwrap().unwrap().kind, Kind::Other);
    }

    #[test]
    fn a_file_that_was_written_to_is_not_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let folder = Folder::at(&dir).unwrap();
        let look = || folder.look(Path::new("f")).unwrap();
        assert_eq!(look(), None);
        std::fs::write(dir.join("f"), "one").unwrap();
        let before = look();
        assert_eq!(before, look());
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(dir.join("f"), "two").unwrap();
        assert_ne!(before, look());
    }
}
