//! Credentials as files, for machines without a keychain: the file's name is the credential's.
//!
//! What others could read or have put there is not used: the folder must be 0700 and ours, a file
//! 0600, ours, regular, with one name, and no symbolic link. Setting a credential replaces whatever
//! stood in its place, so that is also how a refused one is put right.

use crate::value::MOST;
use crate::{Error, Value};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use protocol::SecretId;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Two writers of one credential would meet in its temporary file.
    writing: Arc<Mutex<()>>,
}

impl Folder {
    pub fn new(path: PathBuf) -> Self {
        Self { path, writing: Arc::default() }
    }

    pub async fn get(&self, id: &SecretId) -> Result<Option<Value>, Error> {
        let id = id.clone();
        self.off_thread(move |folder| folder.read(&id)).await
    }

    pub async fn set(&self, id: &SecretId, value: Value) -> Result<(), Error> {
        let id = id.clone();
        self.off_thread(move |folder| folder.write(&id, &value)).await
    }

    pub async fn remove(&self, id: &SecretId) -> Result<bool, Error> {
        let id = id.clone();
        self.off_thread(move |folder| folder.unlink(&id)).await
    }

    pub async fn list(&self) -> Result<Vec<SecretId>, Error> {
        self.off_thread(Folder::names).await
    }

    /// A disk may hang, and then so may a thread, but not the caller.
    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&folder)).await;
        done.unwrap_or_else(|_| Err(Error::Failed("reading credentials was interrupted".into())))
    }

    fn read(&self, id: &SecretId) -> Result<Option<Value>, Error> {
        let Some(dir) = self.open()? else { return Ok(None) };
        // Not blocking: a pipe in its place would wait for a writer for ever.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&dir, id.as_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(self.refused(id, "is a symbolic link")),
            Err(e) => return Err(self.failed(id, e.into())),
        };
        self.check_file(id, &fstat(&file).map_err(|e| self.failed(id, e.into()))?)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(MOST + 3));
        // Two more for a line end, and one to notice that there is more.
        let most = MOST as u64 + 3;
        file.take(most).read_to_end(&mut bytes).map_err(|e| self.failed(id, e))?;
        Value::from_bytes(bytes).map(Some)
    }

    fn write(&self, id: &SecretId, value: &Value) -> Result<(), Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = self.open_or_make()?;
        let new = temporary(id);
        fill(&dir, &new, value)
            .and_then(|()| Ok(renameat(&dir, new.as_str(), &dir, id.as_str())?))
            .and_then(|()| File::from(dir.try_clone()?).sync_all())
            .map_err(|e| {
                let _ = unlinkat(&dir, new.as_str(), UnlinkatFlags::NoRemoveDir);
                self.failed(id, e)
            })
    }

    fn unlink(&self, id: &SecretId) -> Result<bool, Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(dir) = self.open()? else { return Ok(false) };
        let mut was_there = false;
        for name in [id.as_str(), &temporary(id)] {
            match unlinkat(&dir, name, UnlinkatFlags::NoRemoveDir) {
                Ok(()) => was_there |= name == id.as_str(),
                Err(Errno::ENOENT) => {}
                Err(e) => return Err(self.failed(id, e.into())),
            }
        }
        Ok(was_there)
    }

    fn names(&self) -> Result<Vec<SecretId>, Error> {
        if self.open()?.is_none() {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&self.path).map_err(|e| self.failed_folder(e))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    fn open_or_make(&self) -> Result<OwnedFd, Error> {
        if let Some(dir) = self.open()? {
            return Ok(dir);
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|e| self.failed_folder(e))?;
        self.open()?.ok_or_else(|| self.failed_folder(io::ErrorKind::NotFound.into()))
    }

    /// The folder, checked; none when there is none.
    fn open(&self) -> Result<Option<OwnedFd>, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = match open(&self.path, flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENOTDIR) => {
                let path = self.path.display();
                return Err(Error::Failed(format!("{path} is not a folder, or a link to one")));
            }
            Err(e) => return Err(self.failed_folder(e.into())),
        };
        let stat = fstat(&dir).map_err(|e| self.failed_folder(e.into()))?;
        let path = self.path.display();
        if !is_ours(&stat) {
            return Err(Error::Failed(format!("{path} belongs to somebody else")));
        }
        if open_to_others(&stat) {
            return Err(Error::Failed(format!("{path} is open to others; chmod 700 {path}")));
        }
        Ok(Some(dir))
    }

    fn check_file(&self, id: &SecretId, stat: &FileStat) -> Result<(), Error> {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFREG {
            return Err(self.refused(id, "is not a regular file"));
        }
        if !is_ours(stat) {
            return Err(self.refused(id, "belongs to somebody else"));
        }
        if stat.st_nlink != 1 {
            return Err(self.refused(id, "has a second name elsewhere"));
        }
        if open_to_others(stat) {
            let path = self.path.join(id.as_str());
            let path = path.display();
            return Err(Error::Failed(format!("{path} is open to others; chmod 600 {path}")));
        }
        Ok(())
    }

    fn refused(&self, id: &SecretId, why: &str) -> Error {
        let path = self.path.join(id.as_str());
        Error::Failed(format!("{} {why}; set {id} again", path.display()))
    }

    fn failed(&self, id: &SecretId, error: io::Error) -> Error {
        Error::Failed(format!("{}: {error}", self.path.join(id.as_str()).display()))
    }

    fn failed_folder(&self, error: io::Error) -> Error {
        Error::Failed(format!("{}: {error}", self.path.display()))
    }
}

fn fill(dir: &OwnedFd, name: &str, value: &Value) -> io::Result<()> {
    // Left behind by a host that was killed in the middle of this.
    match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(e) => return Err(e.into()),
    }
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(dir, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    file.write_all(value.expose().as_bytes())?;
    file.sync_all()
}

/// Never the name of a credential: those begin with a letter.
fn temporary(id: &SecretId) -> String {
    format!(".{id}.new")
}

fn is_ours(stat: &FileStat) -> bool {
    stat.st_uid == geteuid().as_raw()
}

fn open_to_others(stat: &FileStat) -> bool {
    stat.st_mode & 0o077 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn id() -> SecretId {
        "github.token".parse().unwrap()
    }

    fn value(text: &str) -> Value {
        Value::new(text.into())
    }

    /// A folder that holds one credential, and the path of its file.
    fn filled() -> (tempfile::TempDir, Folder, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().join("secrets"));
        folder.write(&id(), &value("first")).unwrap();
        let file = folder.path.join("github.token");
        (home, folder, file)
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[track_caller]
    fn assert_refused(folder: &Folder, why: &str) {
        let Err(Error::Failed(said)) = folder.read(&id()) else { panic!("it was read") };
        assert!(said.contains(why), "{said}");
    }

    #[test]
    fn only_the_owner_can_read_it() {
        let (_home, folder, file) = filled();
        assert_eq!((mode(&folder.path), mode(&file)), (0o700, 0o600));
    }

    #[test]
    fn a_file_open_to_others_is_refused_until_set_again() {
        let (_home, folder, file) = filled();
        chmod(&file, 0o640);
        assert_refused(&folder, "open to others; chmod 600 ");
        folder.write(&id(), &value("second")).unwrap();
        assert_eq!(folder.read(&id()).unwrap().unwrap().expose(), "second");
    }

    #[test]
    fn a_folder_open_to_others_is_refused() {
        let (_home, folder, _) = filled();
        chmod(&folder.path, 0o750);
        assert_refused(&folder, "open to others; chmod 700 ");
        assert!(folder.write(&id(), &value("second")).is_err());
        assert!(folder.names().is_err());
    }

    #[test]
    fn links_are_neither_followed_nor_written_through() {
        let (home, folder, file) = filled();
        let elsewhere = home.path().join("elsewhere");
        std::fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert_refused(&folder, "symbolic link");
        folder.write(&id(), &value("second")).unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "first");
        assert_eq!(folder.read(&id()).unwrap().unwrap().expose(), "second");

        std::fs::hard_link(&file, home.path().join("also")).unwrap();
        assert_refused(&folder, "second name");

        let other = Folder::new(home.path().join("link"));
        symlink(&folder.path, &other.path).unwrap();
        assert!(matches!(other.read(&id()), Err(Error::Failed(_))));
    }

    #[test]
    fn a_pipe_in_its_place_does_not_wait() {
        let (_home, folder, file) = filled();
        std::fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        assert_refused(&folder, "not a regular file");
    }

    #[test]
    fn what_a_killed_host_left_is_replaced_and_removed() {
        let (_home, folder, file) = filled();
        let left = folder.path.join(".github.token.new");
        std::fs::write(&left, "half").unwrap();
        assert_eq!(folder.names().unwrap(), [id()]);
        folder.write(&id(), &value("second")).unwrap();
        assert!(!left.exists());

        std::fs::write(&left, "half").unwrap();
        assert!(folder.unlink(&id()).unwrap());
        assert!(!left.exists() && !file.exists());
    }

    #[test]
    fn a_hand_made_file_is_read_without_its_line_end() {
        let (_home, folder, file) = filled();
        std::fs::write(&file, "by hand\n").unwrap();
        assert_eq!(folder.read(&id()).unwrap().unwrap().expose(), "by hand");
        std::fs::write(&file, "x".repeat(MOST + 10)).unwrap();
        assert!(matches!(folder.read(&id()), Err(Error::TooLarge)));
    }
}
