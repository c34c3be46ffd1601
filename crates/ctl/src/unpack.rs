//! A tar stream laid out in a folder.
//!
//! Regular files, folders and symbolic links only; owned by whoever runs this, with the archive's
//! modes and times. An entry that points outside the folder ends everything. The surprising thing:
//! folders get their mode last, because a read-only folder could not be filled.

use crate::error::{Doing, Error, Result};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use tar::EntryType;

struct Folder {
    path: PathBuf,
    mode: u32,
    modified: SystemTime,
}

pub fn unpack(from: impl Read, into: &Path) -> Result<()> {
    let doing = || "read the archive";
    let mut archive = tar::Archive::new(from);
    archive.set_preserve_mtime(true);
    let mut folders = Vec::new();
    for entry in archive.entries().doing(doing)? {
        let mut entry = entry.doing(doing)?;
        let path = entry.path().doing(doing)?.into_owned();
        check(&path)?;
        match entry.header().entry_type() {
            EntryType::Directory => folders.push(open_folder(&mut entry, into, &path)?),
            EntryType::Regular | EntryType::Continuous | EntryType::Symlink => {
                lay_out(&mut entry, into, &path)?;
            }
            EntryType::XGlobalHeader => {}
            other => {
                let shown = path.display();
                return Err(Error::BadInput(format!("an archive with {shown}, a {other:?}")));
            }
        }
    }
    folders.iter().rev().try_for_each(close_folder)?;
    // Padding after the end mark; the sender should not meet a closed pipe.
    io::copy(&mut archive.into_inner(), &mut io::sink()).doing(doing)?;
    Ok(())
}

/// What [`add`] did.
#[derive(Debug, Default)]
pub struct Added {
    pub new: u32,
    /// What is there and differs.
    pub kept: Vec<PathBuf>,
}

/// Lays out only what is not there. What is there and the same is passed over, what differs stays.
pub fn add(from: impl Read, into: &Path) -> Result<Added> {
    let doing = || "read the archive";
    let mut archive = tar::Archive::new(from);
    archive.set_preserve_mtime(true);
    let mut added = Added::default();
    for entry in archive.entries().doing(doing)? {
        let mut entry = entry.doing(doing)?;
        let path = entry.path().doing(doing)?.into_owned();
        check(&path)?;
        let (kind, here) = (entry.header().entry_type(), into.join(&path));
        if !matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::Symlink) {
            continue;
        }
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        let blocked = above
            .filter_map(|above| into.join(above).symlink_metadata().ok())
            .any(|data| !data.is_dir());
        match here.symlink_metadata() {
            Err(_) if !blocked => {
                if let Some(folder) = here.parent() {
                    fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
                }
                lay_out(&mut entry, into, &path)?;
                added.new += 1;
            }
            Ok(data) if !blocked && is_same(&mut entry, &here, &data) => {}
            _ => added.kept.push(path),
        }
    }
    io::copy(&mut archive.into_inner(), &mut io::sink()).doing(doing)?;
    Ok(added)
}

fn is_same<R: Read>(entry: &mut tar::Entry<'_, R>, here: &Path, data: &fs::Metadata) -> bool {
    if entry.header().entry_type() == EntryType::Symlink {
        let target = entry.link_name().ok().flatten();
        return data.is_symlink() && fs::read_link(here).ok().as_deref() == target.as_deref();
    }
    if !data.is_file() || entry.header().size().ok() != Some(data.len()) {
        return false;
    }
    let Ok(file) = File::open(here) else { return false };
    let mut ours = io::BufReader::new(file).bytes();
    io::BufReader::new(entry).bytes().all(|byte| match (byte, ours.next()) {
        (Ok(one), Some(Ok(other))) => one == other,
        _ => false,
    })
}

fn check(path: &Path) -> Result<()> {
    let inside = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
    if path.components().all(inside) {
        return Ok(());
    }
    Err(Error::BadInput(format!("an archive that leaves the workspace: {}", path.display())))
}

fn lay_out<R: Read>(entry: &mut tar::Entry<'_, R>, into: &Path, path: &Path) -> Result<()> {
    // Also refuses to go through a link that leads outside.
    let done = entry.unpack_in(into).doing(|| format!("unpack {}", path.display()))?;
    if done { Ok(()) } else { Err(Error::BadInput(format!("an odd entry: {}", path.display()))) }
}

fn open_folder<R: Read>(entry: &mut tar::Entry<'_, R>, into: &Path, path: &Path) -> Result<Folder> {
    let doing = || format!("unpack {}", path.display());
    let mode = entry.header().mode().doing(doing)? & 0o777;
    let seconds = entry.header().mtime().doing(doing)?;
    lay_out(entry, into, path)?;
    let path = into.join(path);
    fs::set_permissions(&path, Permissions::from_mode(mode | 0o700)).doing(doing)?;
    Ok(Folder { path, mode, modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) })
}

fn close_folder(folder: &Folder) -> Result<()> {
    let doing = || format!("unpack {}", folder.path.display());
    let open = File::open(&folder.path).doing(doing)?;
    open.set_modified(folder.modified).doing(doing)?;
    open.set_permissions(Permissions::from_mode(folder.mode)).doing(doing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn header(path: &[u8], kind: EntryType, mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_000_000);
        header.set_size(size);
        header
    }

    fn archive(entries: &[(&[u8], EntryType, u32, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, mode, data) in entries {
            let is_link = *kind == EntryType::Symlink;
            let size = if is_link { 0 } else { data.len() as u64 };
            let mut header = header(path, *kind, *mode, size);
            if is_link {
                header.set_link_name_literal(data).unwrap();
            }
            header.set_cksum();
            builder.append(&header, if is_link { &[] } else { *data }).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn only_what_is_not_there_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("same"), "1").unwrap();
        fs::write(at("differs"), "2").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink("/etc", at("out")).unwrap();
        std::os::unix::fs::symlink("same", at("link")).unwrap();
        let file = EntryType::Regular;
        let tar = archive(&[
            (b"same", file, 0o644, b"1"),
            (b"differs", file, 0o644, b"1"),
            (b"folder", file, 0o644, b"1"),
            (b"out/passwd", file, 0o644, b"1"),
            (b"out/new", file, 0o644, b"1"),
            (b"same/below", file, 0o644, b"1"),
            (b"link", EntryType::Symlink, 0o777, b"same"),
            (b"a/b/new", file, 0o644, b"1"),
        ]);
        let added = add(&tar[..], dir.path()).unwrap();
        let kept: Vec<&str> = added.kept.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(kept, ["differs", "folder", "out/passwd", "out/new", "same/below"]);
        assert_eq!((added.new, fs::read_to_string(at("a/b/new")).unwrap().as_str()), (1, "1"));
        assert_eq!(fs::read_to_string(at("differs")).unwrap(), "2");
    }

    #[test]
    fn files_folders_and_links_are_laid_out() {
        let dir = tempfile::tempdir().unwrap();
        let tar = archive(&[
            (b"ro/", EntryType::Directory, 0o555, b""),
            (b"ro/file", EntryType::Regular, 0o640, b"text"),
            (b"deep/er/run", EntryType::Regular, 0o755, b"#!"),
            (b"b\xffd", EntryType::Regular, 0o644, b"bytes"),
            (b"link", EntryType::Symlink, 0o777, b"ro/file"),
        ]);
        unpack([tar, vec![0; 20_000]].concat().as_slice(), dir.path()).unwrap();
        let meta = |p: &str| fs::metadata(dir.path().join(p)).unwrap();
        assert_eq!(fs::read(dir.path().join("link")).unwrap(), b"text");
        assert_eq!(meta("ro").mode() & 0o777, 0o555);
        assert_eq!(meta("ro/file").mode() & 0o777, 0o640);
        assert_eq!(meta("deep/er/run").mode() & 0o777, 0o755);
        assert_eq!((meta("ro").mtime(), meta("ro/file").mtime()), (1_000_000, 1_000_000));
        fs::set_permissions(dir.path().join("ro"), Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn nothing_leaves_the_folder() {
        for (path, kind, data) in [
            (&b"../x"[..], EntryType::Regular, &b"x"[..]),
            (b"a/../../x", EntryType::Regular, b"x"),
            (b"/tmp/x", EntryType::Regular, b"x"),
            (b"fifo", EntryType::Fifo, b""),
            (b"dev", EntryType::Char, b""),
            (b"hard", EntryType::Link, b""),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let error = unpack(archive(&[(path, kind, 0o644, data)]).as_slice(), dir.path());
            assert!(error.is_err(), "{path:?} was taken");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_link_is_no_way_out() {
        let outside = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let target = outside.path().to_str().unwrap().as_bytes();
        let tar = archive(&[
            (b"out", EntryType::Symlink, 0o777, target),
            (b"out/x", EntryType::Regular, 0o644, b"x"),
        ]);
        assert!(unpack(tar.as_slice(), dir.path()).is_err());
        assert!(!outside.path().join("x").exists());
    }

    #[test]
    fn a_truncated_archive_is_an_error_and_an_empty_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let tar = archive(&[(b"a", EntryType::Regular, 0o644, &[7; 5000])]);
        assert!(unpack(&tar[..2000], dir.path()).is_err());
        unpack(&[][..], dir.path()).unwrap();
    }
}
