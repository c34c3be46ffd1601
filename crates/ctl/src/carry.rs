//! `agentbox-ctl carry` (root, once, before PID 1 is released): lays out files from the person's
//! computer, with their modes and owners.
//!
//! Each is written beside its place and moved there whole. The image may be one that a box had in its
//! hands, so a folder on the way that leads to what is the box's own ends the copy.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::passwd::Account;
use connectors::files::shown;
use protocol::carry::{CarryIn, CarryInto};
use protocol::ctl::{BOX_USER, paths};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
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
    carry(stdin, &plan, &user, &[Path::new(paths::WORKSPACE), &user.home])?;
    Ok(protocol::exit::OK)
}

/// Below `own` new folders are the box user's, elsewhere root's.
fn carry(from: impl Read, plan: &CarryIn, user: &Account, own: &[&Path]) -> Result<()> {
    let doing = || "read the archive";
    let mut archive = tar::Archive::new(from);
    let mut folders: Vec<(PathBuf, u32)> = Vec::new();
    for (count, entry) in archive.entries().doing(doing)?.enumerate() {
        let mut entry = entry.doing(doing)?;
        let path = entry.path().doing(doing)?.into_owned();
        let (into, below) = entry_of(plan, &path)?;
        let owner = into.user.map_or((user.uid, user.gid), |id| (id, id));
        let place = place(into, &below);
        let laying = Laying { user, own, owner, count };
        let mode = entry.header().mode().doing(doing)? & 0o7777;
        match entry.header().entry_type() {
            EntryType::Directory if into.folder => {
                laying.folder(&place)?;
                folders.push((place, mode));
            }
            EntryType::Regular | EntryType::Continuous => laying.file(&place, mode, &mut entry)?,
            EntryType::Symlink if into.folder => {
                let target = entry.link_name().doing(doing)?.unwrap_or_default().into_owned();
                laying.link(&place, &target)?;
            }
            other => {
                let shown = path.display();
                return Err(Error::BadInput(format!("an archive with {shown}, a {other:?}")));
            }
        }
    }
    // Last, because a read-only folder could not be filled.
    for (folder, mode) in folders.iter().rev() {
        let mode = Permissions::from_mode(*mode);
        fs::set_permissions(folder, mode).doing(|| format!("write {}", shown(folder)))?;
    }
    io::copy(&mut archive.into_inner(), &mut io::sink()).doing(doing)?;
    Ok(())
}

/// Which entry of the plan this belongs to, and where below it.
fn entry_of<'p>(plan: &'p CarryIn, path: &Path) -> Result<(&'p CarryInto, PathBuf)> {
    let odd = || Error::BadInput(format!("an archive with {}", path.display()));
    let mut parts = path.components();
    let number = match parts.next() {
        Some(Component::Normal(name)) => name.to_str().and_then(|name| name.parse::<usize>().ok()),
        _ => None,
    };
    let into = number.and_then(|number| plan.entries.get(number)).ok_or_else(odd)?;
    let below = parts.as_path().to_owned();
    let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let absolute = Path::new(&into.dest).is_absolute();
    if !plain || !absolute || (!into.folder && below.components().next().is_some()) {
        return Err(odd());
    }
    Ok((into, below))
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
    fn file(&self, place: &Path, mode: u32, content: &mut impl Read) -> Result<()> {
        let doing = || format!("write {}", shown(place));
        let parent = self.parent(place)?;
        if fs::symlink_metadata(place).is_ok_and(|data| data.is_dir()) {
            let why = "it is a folder; end it with '/' to put the file into it";
            return Err(Error::Failed(format!("cannot write {}: {why}.", shown(place))));
        }
        let fresh = parent.join(format!(".agentbox-{}-{}", std::process::id(), self.count));
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(&fresh).doing(doing)?;
        let written = io::copy(content, &mut file)
            // Before the mode: a change of owner takes bits of it away.
            .and_then(|_| fchown(&file, Some(self.owner.0), Some(self.owner.1)))
            .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
            .and_then(|()| fs::rename(&fresh, place));
        written.inspect_err(|_| drop(fs::remove_file(&fresh))).doing(doing)
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
        carry(tar.as_slice(), &plan, &me(), &[&dir]).unwrap();
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
        assert!(one("proc/self/x", "0").unwrap_err().to_string().contains("nothing can be copied"));
        assert!(one("folder", "0").unwrap_err().to_string().contains("it is a folder"));
        for odd in ["1", "x", "0/x"] {
            assert!(matches!(one("fine", odd), Err(Error::BadInput(_))), "{odd}");
        }
    }
}
