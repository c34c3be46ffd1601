//! `agentbox-ctl hold` (root): takes what is this box's alone out of the way while it is captured.
//!
//! Keys, logins and files of settings are moved to the tmpfs, which no image holds. Then it says so
//! and waits; when its input ends, everything is put back. Also when the host has gone, and when the
//! box is told to stop: what is held lives in memory only.
//!
//! The surprising thing: what lies on a volume is left alone. It is in no image, and other boxes may
//! be using it.

use crate::error::{Doing, Error, Result};
use crate::{input, places};
use connectors::files::is_named;
use nix::sys::signal::{SigSet, Signal};
use protocol::ctl::{BOX_USER, HELD, Hold, paths};
use protocol::ctl::{ENV_FILES, NO_ENV_FILES};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// More than anybody has, and no more than the tmpfs bears.
const MOST: usize = 1000;
/// Below the box user's home.
const OF_HOME: [&str; 11] = [
    ".ssh/authorized_keys",
    ".vnc/passwd",
    ".config/tigervnc/passwd",
    ".claude/.credentials.json",
    ".claude.json",
    ".claude.json.backup",
    ".codex/auth.json",
    ".local/share/opencode/auth.json",
    ".git-credentials",
    ".config/git/credentials",
    ".netrc",
];

pub fn run() -> Result<i32> {
    let hold: Hold = input::json_line(&mut io::stdin().lock())?;
    let mut stops = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        stops.add(signal);
    }
    stops.thread_block().doing(|| "listen for signals")?;
    let dir = Path::new(paths::RUN).join(format!("held-{}", std::process::id()));
    let kept = Arc::new(Mutex::new(Kept::new(dir)?));
    let late = Arc::clone(&kept);
    std::thread::spawn(move || {
        if stops.wait().is_ok() {
            let put = lock(&late).put_back();
            std::process::exit(if put.is_ok() {
                protocol::exit::OK
            } else {
                protocol::exit::FAILURE
            });
        }
    });
    let found = found(&hold)?;
    for path in &found {
        lock(&kept).take(path)?;
    }
    crate::say(HELD);
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    lock(&kept).put_back()?;
    Ok(protocol::exit::OK)
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn found(hold: &Hold) -> Result<Vec<PathBuf>> {
    let device = fs::metadata("/").doing(|| "look at /")?.dev();
    let home = Path::new("/home").join(BOX_USER);
    let mut all: Vec<PathBuf> = OF_HOME.iter().map(|name| home.join(name)).collect();
    if let Ok(keys) = fs::read_dir("/etc/ssh") {
        let is_key = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.as_bytes().starts_with(b"ssh_host_")
        };
        all.extend(keys.flatten().map(|e| e.path()).filter(is_key));
    }
    all.push(places::identity());
    // Those that `render` made up for this box.
    for folder in ["/var/lib/agentbox/secrets", "/var/log/agentbox/state/secrets"] {
        all.extend(fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()));
    }
    if !hold.keeps_env {
        env_files(&places::workspace(), &mut all);
    }
    let plain = |path: &PathBuf| {
        path.symlink_metadata().is_ok_and(|data| data.is_file() && data.dev() == device)
    };
    all.retain(plain);
    if all.len() > MOST {
        return Err(Error::Failed(format!("more than {MOST} files of settings and keys.")));
    }
    Ok(all)
}

fn env_files(root: &Path, into: &mut Vec<PathBuf>) {
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (name, kind) = (entry.file_name(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                if !NO_ENV_FILES.iter().any(|left| name == *left) {
                    pending.push(entry.path());
                }
            } else if is_named(name.as_bytes(), &ENV_FILES) {
                into.push(entry.path());
            }
        }
    }
}

/// What is out of the way. Put back when dropped, whatever happened.
struct Kept {
    dir: PathBuf,
    files: Vec<Held>,
}

struct Held {
    path: PathBuf,
    copy: PathBuf,
    mode: u32,
    owner: (u32, u32),
    modified: SystemTime,
}

impl Kept {
    fn new(dir: PathBuf) -> Result<Self> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .doing(|| format!("make {}", dir.display()))?;
        Ok(Self { dir, files: Vec::new() })
    }

    fn take(&mut self, path: &Path) -> Result<()> {
        let doing = || format!("put {} aside", path.display());
        let mut file = File::open(path).doing(doing)?;
        let data = file.metadata().doing(doing)?;
        let copy = self.dir.join(self.files.len().to_string());
        let mut options = OpenOptions::new();
        let mut into = options.write(true).create_new(true).mode(0o600).open(&copy).doing(doing)?;
        io::copy(&mut file, &mut into).doing(doing)?;
        let held = Held {
            path: path.to_owned(),
            copy,
            mode: data.mode() & 0o7777,
            owner: (data.uid(), data.gid()),
            modified: data.modified().doing(doing)?,
        };
        // From here on it is put back, whether it was taken away or not.
        self.files.push(held);
        fs::remove_file(path).doing(doing)
    }

    fn put_back(&mut self) -> Result<()> {
        let mut first = Ok(());
        for held in self.files.drain(..) {
            let done = held.put_back();
            if first.is_ok() {
                first = done;
            }
        }
        let _ = fs::remove_dir_all(&self.dir);
        first
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

impl Held {
    /// What has come in its place meanwhile stays.
    fn put_back(&self) -> Result<()> {
        let doing = || format!("put {} back", self.path.display());
        let mut copy = File::open(&self.copy).doing(doing)?;
        let mut bytes = Vec::new();
        copy.read_to_end(&mut bytes).doing(doing)?;
        let mut options = OpenOptions::new();
        let mut file = match options.write(true).create_new(true).mode(0o600).open(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            file => file.doing(doing)?,
        };
        file.write_all(&bytes).doing(doing)?;
        fchown(&file, Some(self.owner.0), Some(self.owner.1)).doing(doing)?;
        file.set_permissions(Permissions::from_mode(self.mode)).doing(doing)?;
        file.set_modified(self.modified).doing(doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(".env");
        let other = temp.path().join(".env.local");
        fs::write(&path, "KEY=1").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        fs::write(&other, "OLD=1").unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let mut kept = Kept::new(temp.path().join("held")).unwrap();
        kept.take(&path).unwrap();
        kept.take(&other).unwrap();
        assert!(!path.exists() && !other.exists());
        fs::write(&other, "NEW=1").unwrap();
        kept.put_back().unwrap();
        let data = fs::metadata(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "KEY=1");
        assert_eq!((data.mode() & 0o777, data.modified().unwrap()), (0o640, before));
        assert_eq!(fs::read_to_string(&other).unwrap(), "NEW=1");
        assert!(!temp.path().join("held").exists());
    }

    #[test]
    fn env_files_are_found_where_people_keep_them() {
        let temp = tempfile::tempdir().unwrap();
        for file in [".env", "api/.env.local", "node_modules/x/.env", "src/env.rs"] {
            let path = temp.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut found = Vec::new();
        env_files(temp.path(), &mut found);
        found.sort();
        assert_eq!(found, [temp.path().join(".env"), temp.path().join("api/.env.local")]);
    }
}
