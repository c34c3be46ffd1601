//! `agentbox-ctl carry` (root, once, before PID 1 is released): lays out files from the person's
//! computer, with their modes and owners, and answers which of them it could not.
//!
//! Each is written beside its place and moved there whole, once it is known that all of it came. The image
//! may be one that a box had in its hands, so a folder on the way that leads to what is the box's own ends
//! that entry. An entry that fails ends no other; an archive that cannot be read ends all.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::passwd::Account;
use connectors::files::shown;
use protocol::carry::{CarryFailed, CarryIn, CarryInto, CarryOut, LONGEST_WHY};
use protocol::ctl::{BOX_USER, paths};
use protocol::text::shortened;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, fchown, lchown};
use std::path::{Component, Path, PathBuf};
use tar::EntryType;

const CHUNK: usize = 256 * 1024;

pub fn run() -> Result<i32> {
    let stdin = io::stdin().as_fd().try_clone_to_owned().doing(|| "read standard input")?;
    let mut stdin = BufReader::with_capacity(CHUNK, File::from(stdin));
    let plan: CarryIn = input::json_line(&mut stdin)?;
    input::wait_until_ready()?;
    let user = Account::of_system(BOX_USER)?;
    let out = carry(stdin, &plan, &user, &[Path::new(paths::WORKSPACE), &user.home])?;
    let answer = serde_json::to_string(&out).doing(|| "answer")?;
    writeln!(io::stdout(), "{answer}").doing(|| "answer")?;
    Ok(protocol::exit::OK)
}

/// Below `own` new folders are the box user's, elsewhere root's.
fn carry(from: impl Read, plan: &CarryIn, user: &Account, own: &[&Path]) -> Result<CarryOut> {
    let doing = || "read the archive";
    let mut archive = tar::Archive::new(from);
    let mut carrying = Carrying::default();
    for (count, member) in archive.entries().doing(doing)?.enumerate() {
        let mut member = member.doing(doing)?;
        let path = member.path().doing(doing)?.into_owned();
        let of = entry_of(plan, &path)?;
        if of.broken {
            carrying.waiting = None;
            continue;
        }
        carrying.settle();
        if carrying.failed.contains_key(&of.number) {
            continue;
        }
        let owner = of.into.user.map_or((user.uid, user.gid), |id| (id, id));
        let laying = Laying { user, own, owner, count };
        let mode = member.header().mode().doing(doing)? & 0o7777;
        let place = place(of.into, &of.below);
        let laid = match member.header().entry_type() {
            EntryType::Directory if of.into.folder => {
                let made = laying.folder(&place);
                if made.is_ok() {
                    carrying.folders.push((of.number, place, mode));
                }
                made
            }
            EntryType::Regular | EntryType::Continuous => laying
                .file(&place, mode, &mut member)
                .map(|fresh| carrying.waiting = Some((of.number, fresh))),
            EntryType::Symlink if of.into.folder => {
                let target = member.link_name().doing(doing)?.unwrap_or_default().into_owned();
                laying.link(&place, &target)
            }
            other => {
                let shown = path.display();
                return Err(Error::BadInput(format!("an archive with {shown}, a {other:?}")));
            }
        };
        carrying.note(of.number, laid);
    }
    io::copy(&mut archive.into_inner(), &mut io::sink()).doing(doing)?;
    Ok(carrying.end())
}

/// What has been laid out so far.
#[derive(Default)]
struct Carrying {
    /// Why entries failed, by their numbers.
    failed: BTreeMap<usize, String>,
    folders: Vec<(usize, PathBuf, u32)>,
    /// The last file, beside its place: the host may still say that it is not whole.
    waiting: Option<(usize, Fresh)>,
}

impl Carrying {
    /// The first reason is the one that counts.
    fn note(&mut self, number: usize, done: Result<()>) {
        if let Err(error) = done {
            let why = error.to_string();
            let why = why.strip_prefix("agentbox: ").unwrap_or(&why).trim_end_matches('.');
            self.failed.entry(number).or_insert_with(|| shortened(why, LONGEST_WHY));
        }
    }

    fn settle(&mut self) {
        if let Some((number, fresh)) = self.waiting.take() {
            self.note(number, fresh.settle());
        }
    }

    fn end(mut self) -> CarryOut {
        self.settle();
        // Last, because a read-only folder could not be filled. Also where an entry failed: what there is
        // of it is no more open than it was on the person's computer.
        for (number, folder, mode) in std::mem::take(&mut self.folders).into_iter().rev() {
            let set = fs::set_permissions(&folder, Permissions::from_mode(mode));
            self.note(number, set.doing(|| format!("write {}", shown(&folder))));
        }
        let failed = self.failed.into_iter().map(|(entry, why)| CarryFailed { entry, why });
        CarryOut { failed: failed.collect() }
    }
}

/// A file beside its place, gone unless it is moved there.
struct Fresh {
    at: PathBuf,
    place: PathBuf,
}

impl Fresh {
    fn settle(self) -> Result<()> {
        fs::rename(&self.at, &self.place).doing(|| format!("write {}", shown(&self.place)))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // Not there any more once it was moved.
        let _ = fs::remove_file(&self.at);
    }
}

/// What a member of the archive is part of.
struct Of<'p> {
    number: usize,
    into: &'p CarryInto,
    /// Where it goes below the entry's place.
    below: PathBuf,
    /// Not a part, but the word that the last one is not whole.
    broken: bool,
}

/// Which entry of the plan this belongs to, and where below it.
fn entry_of<'p>(plan: &'p CarryIn, path: &Path) -> Result<Of<'p>> {
    let odd = || Error::BadInput(format!("an archive with {}", path.display()));
    let mut parts = path.components();
    let Some(Component::Normal(name)) = parts.next() else { return Err(odd()) };
    let name = name.to_str().ok_or_else(odd)?;
    let (name, broken) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
    let number = name.parse::<usize>().map_err(|_| odd())?;
    let into = plan.entries.get(number).ok_or_else(odd)?;
    let below = parts.as_path().to_owned();
    let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let absolute = Path::new(&into.dest).is_absolute();
    let alone = broken || !into.folder;
    if !plain || !absolute || (alone && below.components().next().is_some()) {
        return Err(odd());
    }
    Ok(Of { number, into, below, broken })
}

fn place(into: &CarryInto, below: &Path) -> PathBuf {
    let dest = Path::new(&into.dest);
    if into.folder {
        // Joining nothing would add a slash.
        if below.as_os_str().is_empty() { dest.to_owned() } else { dest.join(below) }
    } else if into.dest.ends_with('/') {
        dest.join(&into.name)
    } else {
        dest.to_owned()
    }
}

struct Laying<'a> {
    user: &'a Account,
    own: &'a [&'a Path],
    owner: (u32, u32),
    count: usize,
}

impl Laying<'_> {
    /// Writes it beside its place.
    fn file(&self, place: &Path, mode: u32, content: &mut impl Read) -> Result<Fresh> {
        let doing = || format!("write {}", shown(place));
        let parent = self.parent(place)?;
        if fs::symlink_metadata(place).is_ok_and(|data| data.is_dir()) {
            let why = "it is a folder; end it with '/' to put the file into it";
            return Err(Error::Failed(format!("cannot write {}: {why}.", shown(place))));
        }
        let at = parent.join(format!(".agentbox-{}-{}", std::process::id(), self.count));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&at).doing(doing)?;
        let fresh = Fresh { at, place: place.to_owned() };
        io::copy(content, &mut file)
            // Before the mode: a change of owner takes bits of it away.
            .and_then(|_| fchown(&file, Some(self.owner.0), Some(self.owner.1)))
            .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
            .doing(doing)?;
        Ok(fresh)
    }

    fn link(&self, place: &Path, target: &Path) -> Result<()> {
        let doing = || format!("write {}", shown(place));
        self.parent(place)?;
        match fs::remove_file(place) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e).doing(doing),
            _ => {}
        }
        std::os::unix::fs::symlink(target, place).doing(doing)?;
        lchown(place, Some(self.owner.0), Some(self.owner.1)).doing(doing)
    }

    fn folder(&self, place: &Path) -> Result<()> {
        let doing = || format!("make {}", shown(place));
        self.parent(place)?;
        match fs::symlink_metadata(place) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)).doing(doing),
            Err(_) => fs::create_dir(place).doing(doing)?,
        }
        chown(place, Some(self.owner.0), Some(self.owner.1)).doing(doing)
    }

    /// The folder something lies in, made with all above it.
    fn parent(&self, place: &Path) -> Result<PathBuf> {
        let parent = place.parent().unwrap_or(Path::new("/"));
        let mut missing = Vec::new();
        let mut at = parent;
        while !at.exists() {
            missing.push(at.to_owned());
            at = at.parent().unwrap_or(Path::new("/"));
        }
        let real = at.canonicalize().doing(|| format!("look at {}", shown(at)))?;
        let whole = real.join(place.strip_prefix(at).unwrap_or(place));
        let denied = match whole.to_str() {
            Some(text) => project::carry::denied(text),
            None => Some("its name is not UTF-8".to_owned()),
        };
        if let Some(why) = denied {
            return Err(Error::Failed(format!("cannot write {}: {why}.", shown(&whole))));
        }
        for folder in missing.iter().rev() {
            let doing = || format!("make {}", shown(folder));
            fs::create_dir(folder).doing(doing)?;
            if self.own.iter().any(|own| folder.starts_with(own)) {
                chown(folder, Some(self.user.uid), Some(self.user.gid)).doing(doing)?;
            }
        }
        Ok(parent.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn me() -> Account {
        let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        Account { uid, gid, home: PathBuf::from("/nonexistent") }
    }

    fn archive(entries: &[(&str, EntryType, u32, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, kind, mode, data) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            if *kind == EntryType::Symlink {
                header.set_size(0);
                tar.append_link(&mut header, path, data).unwrap();
            } else {
                header.set_size(data.len() as u64);
                tar.append_data(&mut header, path, data.as_bytes()).unwrap();
            }
        }
        tar.into_inner().unwrap()
    }

    fn into(dest: String, folder: bool) -> CarryInto {
        CarryInto { dest, name: "name".into(), folder, user: None }
    }

    #[test]
    fn files_and_folders_come_whole_with_their_modes() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let at = |path: &str| format!("{}/{path}", dir.display());
        fs::write(dir.join("old"), "old").unwrap();
        let plan = CarryIn {
            entries: vec![
                into(at("a/b/file"), false),
                into(at("into/"), false),
                into(at("old"), false),
                into(at("tree"), true),
            ],
        };
        let tar = archive(&[
            ("0", EntryType::Regular, 0o600, "zero"),
            ("1", EntryType::Regular, 0o4755, "one"),
            ("2", EntryType::Regular, 0o644, "new"),
            ("3/", EntryType::Directory, 0o750, ""),
            ("3/ro/", EntryType::Directory, 0o500, ""),
            ("3/ro/x", EntryType::Regular, 0o400, "x"),
            ("3/link", EntryType::Symlink, 0o777, "ro/x"),
        ]);
        let out = carry(tar.as_slice(), &plan, &me(), &[&dir]).unwrap();
        assert_eq!(out, CarryOut::default());
        let mode = |path: &str| fs::metadata(dir.join(path)).unwrap().mode() & 0o7777;
        assert_eq!(fs::read_to_string(dir.join("a/b/file")).unwrap(), "zero");
        assert_eq!((mode("a/b/file"), mode("into/name"), mode("old")), (0o600, 0o4755, 0o644));
        assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "new");
        assert_eq!((mode("tree"), mode("tree/ro")), (0o750, 0o500));
        assert_eq!(fs::read_to_string(dir.join("tree/link")).unwrap(), "x");
        fs::set_permissions(dir.join("tree/ro"), Permissions::from_mode(0o700)).unwrap();
        let left = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with(".agentbox");
        assert!(!fs::read_dir(&dir).unwrap().flatten().any(|e| left(&e)));
    }

    #[test]
    fn what_leads_to_the_boxs_own_ends_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/proc", dir.join("proc")).unwrap();
        fs::create_dir(dir.join("folder")).unwrap();
        let one = |dest: &str, name: &str| {
            let plan = CarryIn { entries: vec![into(format!("{}/{dest}", dir.display()), false)] };
            carry(archive(&[(name, EntryType::Regular, 0o600, "x")]).as_slice(), &plan, &me(), &[])
        };
        let why = |dest: &str| one(dest, "0").unwrap().failed.remove(0).why;
        assert!(why("proc/self/x").contains("nothing can be copied"));
        assert!(why("folder").contains("it is a folder"));
        for odd in ["1", "x", "0/x", "!1", "!0/x", "!", "!!0"] {
            assert!(matches!(one("fine", odd), Err(Error::BadInput(_))), "{odd}");
        }
    }

    #[test]
    fn an_entry_that_fails_ends_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let at = |path: &str| format!("{}/{path}", dir.display());
        fs::write(dir.join("file"), "mine").unwrap();
        fs::create_dir(dir.join("taken")).unwrap();
        let entries = vec![
            into(at("taken"), false),
            into(at("file/below"), false),
            into(at("file"), true),
            into(at("tree"), true),
            into(at("last"), false),
        ];
        let tar = archive(&[
            ("0", EntryType::Regular, 0o600, "zero"),
            ("1", EntryType::Regular, 0o600, "one"),
            ("2/", EntryType::Directory, 0o755, ""),
            ("2/x", EntryType::Regular, 0o600, "two"),
            ("3/", EntryType::Directory, 0o755, ""),
            ("3/x", EntryType::Regular, 0o600, "three"),
            ("4", EntryType::Regular, 0o600, "four"),
        ]);
        let out = carry(tar.as_slice(), &CarryIn { entries }, &me(), &[&dir]).unwrap();
        let failed: Vec<usize> = out.failed.iter().map(|one| one.entry).collect();
        assert_eq!(failed, [0, 1, 2], "{out:?}");
        assert!(out.failed.iter().all(|one| !one.why.starts_with("agentbox")), "{out:?}");
        let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
        assert_eq!(
            (read("file"), read("tree/x"), read("last")),
            ("mine".into(), "three".into(), "four".into())
        );
        assert!(fs::read_dir(dir.join("taken")).unwrap().next().is_none());
    }

    #[test]
    fn what_is_not_whole_takes_no_place() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        let at = |path: &str| format!("{}/{path}", dir.display());
        fs::write(dir.join("old"), "old").unwrap();
        let entries = vec![into(at("old"), false), into(at("tree"), true), into(at("new"), false)];
        let tar = archive(&[
            ("0", EntryType::Regular, 0o600, "ne\0\0"),
            ("!0", EntryType::Regular, 0o600, ""),
            ("1/", EntryType::Directory, 0o755, ""),
            ("1/whole", EntryType::Regular, 0o600, "x"),
            ("1/half", EntryType::Regular, 0o600, "x\0"),
            ("!1", EntryType::Regular, 0o600, ""),
            ("2", EntryType::Regular, 0o600, "new"),
        ]);
        let plan = CarryIn { entries };
        let out = carry(tar.as_slice(), &plan, &me(), &[&dir]).unwrap();
        assert_eq!(out, CarryOut::default(), "the host knows of it");
        assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old");
        let names = |of: &Path| {
            let found = fs::read_dir(of).unwrap().flatten();
            let mut names: Vec<_> = found.map(|e| e.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&dir), ["new", "old", "tree"]);
        assert_eq!(names(&dir.join("tree")), ["whole"]);
        // Cut off in the middle of its last file.
        let cut = &tar[..tar.len() - 1500];
        assert!(carry(cut, &plan, &me(), &[&dir]).is_err());
        assert_eq!(names(&dir), ["new", "old", "tree"]);
    }
}
