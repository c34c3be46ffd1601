//! Credentials as files, for machines without a keychain: the file's name is the credential's.
//!
//! Everybody's are in the folder itself; a project's and a box's in `@project/<key>` and `@box/<id>`
//! below it, which are no names of credentials.
//!
//! What others could read or have put there is not used: every folder must be 0700 and ours, a file
//! 0600, ours, regular, with one name, spelt as it was asked for, and no symbolic link. Setting a
//! credential replaces whatever stood in its place, so that is also how a refused one is put right.

use crate::value::MOST;
use crate::{Error, Scope, Value};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use protocol::SecretId;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// How often a file may be replaced under its reader.
const TRIES: usize = 5;

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

    pub async fn get(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        let (scope, id) = (scope.clone(), id.clone());
        self.off_thread(move |folder| folder.read(&scope, &id)).await
    }

    pub async fn set(&self, scope: &Scope, id: &SecretId, value: Value) -> Result<(), Error> {
        let (scope, id) = (scope.clone(), id.clone());
        self.off_thread(move |folder| folder.write(&scope, &id, &value)).await
    }

    pub async fn remove(&self, scope: &Scope, id: &SecretId) -> Result<bool, Error> {
        let (scope, id) = (scope.clone(), id.clone());
        self.off_thread(move |folder| folder.unlink(&scope, &id)).await
    }

    pub async fn list(&self, scope: &Scope) -> Result<Vec<SecretId>, Error> {
        let scope = scope.clone();
        self.off_thread(move |folder| folder.names(&scope)).await
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

    fn read(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        let path = self.path_of(scope, id);
        let Some(dir) = self.open(scope)? else { return Ok(None) };
        for _ in 0..TRIES {
            if let Some(read) = read_once(&dir, &path, id)? {
                return Ok(read);
            }
        }
        Err(Error::Failed(format!("{} is replaced again and again", path.display())))
    }

    fn write(&self, scope: &Scope, id: &SecretId, value: &Value) -> Result<(), Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = self.open_or_make(scope)?;
        let new = temporary(id);
        fill(&dir, &new, value)
            .and_then(|()| Ok(renameat(&dir, new.as_str(), &dir, id.as_str())?))
            .and_then(|()| File::from(dir.try_clone()?).sync_all())
            .map_err(|e| {
                let _ = unlinkat(&dir, new.as_str(), UnlinkatFlags::NoRemoveDir);
                failed(&self.path_of(scope, id), e)
            })
    }

    fn unlink(&self, scope: &Scope, id: &SecretId) -> Result<bool, Error> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(dir) = self.open(scope)? else { return Ok(false) };
        let mut was_there = false;
        for name in [id.as_str(), &temporary(id)] {
            match unlinkat(&dir, name, UnlinkatFlags::NoRemoveDir) {
                Ok(()) => was_there |= name == id.as_str(),
                Err(Errno::ENOENT) => {}
                Err(e) => return Err(failed(&self.path_of(scope, id), e.into())),
            }
        }
        if *scope != Scope::Everybody {
            // The folder of a box or project that has no more of them; any other stays.
            let _ = std::fs::remove_dir(self.folder_of(scope));
        }
        Ok(was_there)
    }

    fn names(&self, scope: &Scope) -> Result<Vec<SecretId>, Error> {
        let Some(dir) = self.open(scope)? else { return Ok(Vec::new()) };
        let names = entries(&dir).map_err(|e| failed(&self.folder_of(scope), e))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn open_or_make(&self, scope: &Scope) -> Result<OwnedFd, Error> {
        if let Some(dir) = self.open(scope)? {
            return Ok(dir);
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|e| failed(&self.path, e))?;
        let gone = |path: &Path| failed(path, io::ErrorKind::NotFound.into());
        let mut dir = open_root(&self.path)?.ok_or_else(|| gone(&self.path))?;
        let mut path = self.path.clone();
        for name in below(scope) {
            path.push(&name);
            match mkdirat(&dir, name.as_str(), Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(failed(&path, e.into())),
            }
            dir = open_below(&dir, &name, &path)?.ok_or_else(|| gone(&path))?;
        }
        Ok(dir)
    }

    /// The folder of a scope, each one on the way checked; none when there is none.
    fn open(&self, scope: &Scope) -> Result<Option<OwnedFd>, Error> {
        let Some(mut dir) = open_root(&self.path)? else { return Ok(None) };
        let mut path = self.path.clone();
        for name in below(scope) {
            path.push(&name);
            match open_below(&dir, &name, &path)? {
                Some(next) => dir = next,
                None => return Ok(None),
            }
        }
        Ok(Some(dir))
    }

    /// For people: nothing is opened by it.
    fn folder_of(&self, scope: &Scope) -> PathBuf {
        below(scope).iter().fold(self.path.clone(), |path, name| path.join(name))
    }

    fn path_of(&self, scope: &Scope, id: &SecretId) -> PathBuf {
        self.folder_of(scope).join(id.as_str())
    }
}

/// What there is; nothing at all when that was replaced or removed while it was opened.
#[allow(clippy::option_option, reason = "none of the two is the other")]
fn read_once(dir: &OwnedFd, path: &Path, id: &SecretId) -> Result<Option<Option<Value>>, Error> {
    // Not blocking: a pipe in its place would wait for a writer for ever.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(dir, id.as_str(), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT) => return Ok(Some(None)),
        Err(Errno::ELOOP) => return Err(refused(path, id, "is a symbolic link")),
        Err(e) => return Err(failed(path, e.into())),
    };
    let stat = || fstat(&file).map_err(|e| failed(path, e.into()));
    // Its name may go to another one at any moment.
    let nameless = |stat: &FileStat| stat.st_nlink == 0;
    let found = stat()?;
    if nameless(&found) {
        return Ok(None);
    }
    check_file(path, id, &found)?;
    // A volume that does not tell upper case from lower would give one credential for another.
    if !entries(dir).map_err(|e| failed(path, e))?.iter().any(|name| name == id.as_str()) {
        let gone = nameless(&stat()?);
        let misspelt = || refused(path, id, "is spelt differently in its folder");
        return if gone { Ok(None) } else { Err(misspelt()) };
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(MOST + 3));
    // Two more for a line end, and one to notice that there is more.
    let most = MOST as u64 + 3;
    file.take(most).read_to_end(&mut bytes).map_err(|e| failed(path, e))?;
    Value::from_bytes(bytes).map(|value| Some(Some(value)))
}

/// The folders of a scope, from the outermost. A credential's name never begins with an @.
fn below(scope: &Scope) -> Vec<String> {
    let parts = scope.parts();
    parts.map(|(kind, name)| vec![format!("@{kind}"), name.to_owned()]).unwrap_or_default()
}

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

fn open_root(path: &Path) -> Result<Option<OwnedFd>, Error> {
    checked_folder(path, open(path, FOLDER, Mode::empty()))
}

fn open_below(dir: &OwnedFd, name: &str, path: &Path) -> Result<Option<OwnedFd>, Error> {
    checked_folder(path, openat(dir, name, FOLDER, Mode::empty()))
}

fn checked_folder(path: &Path, opened: nix::Result<OwnedFd>) -> Result<Option<OwnedFd>, Error> {
    let shown = path.display();
    let dir = match opened {
        Ok(dir) => dir,
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP | Errno::ENOTDIR) => {
            return Err(Error::Failed(format!("{shown} is not a folder, or a link to one")));
        }
        Err(e) => return Err(failed(path, e.into())),
    };
    let stat = fstat(&dir).map_err(|e| failed(path, e.into()))?;
    if !is_ours(&stat) {
        return Err(Error::Failed(format!("{shown} belongs to somebody else")));
    }
    if open_to_others(&stat) {
        return Err(Error::Failed(format!("{shown} is open to others; chmod 700 {shown}")));
    }
    Ok(Some(dir))
}

fn check_file(path: &Path, id: &SecretId, stat: &FileStat) -> Result<(), Error> {
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        return Err(refused(path, id, "is not a regular file"));
    }
    if !is_ours(stat) {
        return Err(refused(path, id, "belongs to somebody else"));
    }
    if stat.st_nlink != 1 {
        return Err(refused(path, id, "has a second name elsewhere"));
    }
    if open_to_others(stat) {
        let path = path.display();
        return Err(Error::Failed(format!("{path} is open to others; chmod 600 {path}")));
    }
    Ok(())
}

/// The names in a folder, as they are spelt there.
fn entries(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut dir = Dir::openat(dir, ".", FOLDER, Mode::empty())?;
    let mut names = Vec::new();
    for entry in dir.iter() {
        names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
    }
    Ok(names)
}

fn refused(path: &Path, id: &SecretId, why: &str) -> Error {
    Error::Failed(format!("{} {why}; set {id} again", path.display()))
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::Failed(format!("{}: {error}", path.display()))
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
mod tests;
