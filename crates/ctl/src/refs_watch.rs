//! Notices that a branch of one of the workspace's repositories moved.
//!
//! Uses inotify on exactly the folders git writes refs to. Files there are replaced by rename, so
//! folders are watched and names compared; a `.lock` is never news. A repository may come later,
//! go, or come back: then the folder it would be in is watched instead. Nothing is polled.
//!
//! The surprising thing: what changed does not matter, only that something did. That makes the
//! race between a new folder and its watch harmless: a new folder is news in itself.

use crate::error::{Doing, Result};
use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A box with more branch folders than this is watched in its first ones only.
const MAX_FOLDERS: usize = 4096;

pub struct RefsWatch {
    inotify: Inotify,
    /// Where git keeps each repository.
    git_dirs: Vec<PathBuf>,
    sockets: PathBuf,
    roles: HashMap<WatchDescriptor, Role>,
}

/// Why a folder is watched.
#[derive(Clone, PartialEq)]
enum Role {
    /// For a repository to appear.
    Around,
    /// For `HEAD`, `packed-refs` and `refs`.
    GitDir,
    /// For `heads`.
    Refs,
    /// A folder of branches.
    Heads(PathBuf),
    /// For the host's socket to come back.
    Sockets,
}

/// What was noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct News {
    pub refs_changed: bool,
    pub host_came: bool,
}

impl RefsWatch {
    pub fn new(git_dirs: Vec<PathBuf>, relay_socket: &Path) -> Result<Self> {
        let inotify = Inotify::init().doing(|| "start watching")?;
        let sockets = relay_socket.parent().unwrap_or(Path::new("/")).to_owned();
        let mut watch = Self { inotify, git_dirs, sockets, roles: HashMap::new() };
        watch.look_again();
        Ok(watch)
    }

    /// Sleeps until something happens or the time is there.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<News> {
        let mut fds = [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout(until)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(News::default()),
            other => other.doing(|| "wait for changes")?,
        };
        let mut buffer = [0; 4096];
        let events = match self.inotify.read_events(&mut buffer) {
            Ok(events) => events.map(|e| e.to_owned()).collect::<Vec<_>>(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(News::default()),
            Err(e) => return Err(e).doing(|| "read changes"),
        };
        let mut news = News::default();
        for event in events {
            self.take(&event, &mut news);
        }
        Ok(news)
    }

    fn take(&mut self, event: &Event<std::ffi::OsString>, news: &mut News) {
        // A moved repository takes its watches along.
        if event.mask.intersects(EventMask::Q_OVERFLOW | EventMask::MOVE_SELF) {
            news.refs_changed = true;
            return self.begin_anew();
        }
        let Some(role) = self.roles.get(&event.wd).cloned() else { return };
        if event.mask.contains(EventMask::IGNORED) {
            self.roles.remove(&event.wd);
            news.refs_changed |= role != Role::Sockets;
            // A folder of branches that comes back is news in the folder above it.
            if !matches!(role, Role::Heads(_)) {
                self.look_again();
            }
            return;
        }
        let name = event.name.as_deref().unwrap_or(OsStr::new(""));
        match role {
            Role::Sockets => news.host_came = true,
            Role::Around if self.git_dirs.iter().any(|dir| dir.file_name() == Some(name)) => {
                news.refs_changed = true;
                self.look_again();
            }
            Role::GitDir if name == "HEAD" || name == "packed-refs" => news.refs_changed = true,
            Role::GitDir if name == "refs" => self.look_again(),
            Role::Refs if name == "heads" => {
                news.refs_changed = true;
                self.look_again();
            }
            Role::Heads(folder) if !name.as_encoded_bytes().ends_with(b".lock") => {
                news.refs_changed = true;
                if event.mask.contains(EventMask::ISDIR) {
                    self.watch_heads(&folder.join(name));
                }
            }
            _ => {}
        }
    }

    fn begin_anew(&mut self) {
        if let Ok(fresh) = Inotify::init() {
            self.inotify = fresh;
            self.roles.clear();
        }
        self.look_again();
    }

    /// Watches what there is now. Adding a watch twice gives the first one back.
    fn look_again(&mut self) {
        // Files come and go around a repository all the time; once it is there, none is news.
        self.forget(&Role::Around);
        for git_dir in self.git_dirs.clone() {
            self.look_at(&git_dir);
        }
        self.watch_sockets();
    }

    fn look_at(&mut self, git_dir: &Path) {
        let arrivals = WatchMask::CREATE | WatchMask::MOVED_TO;
        let in_git_dir = arrivals | WatchMask::MOVE_SELF;
        if !self.watch(git_dir, in_git_dir, Role::GitDir) {
            let around = git_dir.parent().unwrap_or(Path::new("/"));
            self.watch(around, arrivals, Role::Around);
            // It may have come between the two.
            if !self.watch(git_dir, in_git_dir, Role::GitDir) {
                return;
            }
        }
        self.watch(&git_dir.join("refs"), arrivals, Role::Refs);
        self.watch_heads(&git_dir.join("refs/heads"));
    }

    fn watch_sockets(&mut self) {
        let sockets = self.sockets.clone();
        self.watch(&sockets, WatchMask::CREATE | WatchMask::MOVED_TO, Role::Sockets);
    }

    fn watch_heads(&mut self, root: &Path) {
        let mask = WatchMask::CREATE
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE;
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            // Watch before reading: what appears in between is seen by one of the two.
            if !self.watch(&folder, mask, Role::Heads(folder.clone())) {
                continue;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            open.extend(folders.map(|e| e.path()));
        }
    }

    fn watch(&mut self, path: &Path, mask: WatchMask, role: Role) -> bool {
        if self.roles.len() >= MAX_FOLDERS {
            return false;
        }
        let mask = mask | WatchMask::ONLYDIR | WatchMask::DONT_FOLLOW;
        let Ok(wd) = self.inotify.watches().add(path, mask) else { return false };
        // One repository may be kept inside another.
        if role != Role::Around || !self.roles.contains_key(&wd) {
            self.roles.insert(wd, role);
        }
        true
    }

    fn forget(&mut self, role: &Role) {
        let found: Vec<WatchDescriptor> =
            self.roles.iter().filter(|(_, r)| *r == role).map(|(wd, _)| wd.clone()).collect();
        for wd in found {
            self.roles.remove(&wd);
            let _ = self.inotify.watches().remove(wd);
        }
    }
}

fn timeout(until: Option<Instant>) -> PollTimeout {
    let Some(until) = until else { return PollTimeout::NONE };
    let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
}
