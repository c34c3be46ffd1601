//! `agentbox-ctl unpack-into [--several] <dest>` (box user): lays out files the host sent.
//!
//! Like cp: into `dest` when that is a folder or ends with a slash, else under that name. Under
//! another name it is laid out beside its place first and then moved there whole.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::unpack::unpack;
use connectors::files::shown;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub fn run(args: &[OsString]) -> Result<i32> {
    let (several, dest) = match args {
        [dest] => (false, dest),
        [flag, dest] if flag == "--several" => (true, dest),
        _ => return Err(Error::Usage("use 'agentbox-ctl unpack-into [--several] <dest>'.".into())),
    };
    let dest = Path::new(dest);
    // Said before anything is read: several things have no room under one name.
    if several && !is_folder(dest) {
        return Err(Error::Failed(format!(
            "{} is no folder; several sources go into a folder, so end it with '/'.",
            shown(dest)
        )));
    }
    unpack_into(input::archive()?, dest)?;
    Ok(protocol::exit::OK)
}

fn unpack_into(from: impl Read, dest: &Path) -> Result<()> {
    let make = |path: &Path| fs::create_dir_all(path).doing(|| format!("make {}", shown(path)));
    if is_folder(dest) {
        make(dest)?;
        return unpack(from, dest);
    }
    let parent = dest.parent().unwrap_or(Path::new("/"));
    make(parent)?;
    let aside = Aside(parent.join(format!(".agentbox-{}", std::process::id())));
    make(&aside.0)?;
    unpack(from, &aside.0)?;
    let doing = || format!("write {}", shown(dest));
    let mut names = fs::read_dir(&aside.0).doing(doing)?.flatten().map(|e| e.path());
    match (names.next(), names.next()) {
        (Some(one), None) => fs::rename(one, dest).doing(doing),
        _ => {
            let why = format!("several files for {}, which is no folder", shown(dest));
            Err(Error::BadInput(why))
        }
    }
}

/// It is one, or is written as one.
fn is_folder(dest: &Path) -> bool {
    dest.as_os_str().as_bytes().ends_with(b"/") || dest.is_dir()
}

/// A folder that is gone when this is.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(1);
            tar.append_data(&mut header, name, &b"x"[..]).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn a_folder_is_filled_and_a_name_is_taken() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::create_dir(dir.join("there")).unwrap();
        let put = |names: &[&str], dest: &str| {
            unpack_into(archive(names).as_slice(), Path::new(&format!("{}/{dest}", dir.display())))
        };
        put(&["a", "b/c"], "there").unwrap();
        put(&["a"], "new/").unwrap();
        put(&["a"], "deep/name").unwrap();
        put(&["b/c"], "renamed").unwrap();
        put(&["a"], "there/a").unwrap();
        for file in ["there/a", "there/b/c", "new/a", "deep/name", "renamed/c"] {
            assert!(dir.join(file).is_file(), "{file}");
        }
        assert!(put(&["a", "b"], "other").is_err());
        assert!(!dir.join("other").exists());
        let left = fs::read_dir(dir).unwrap().flatten().map(|e| e.file_name());
        assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(".agentbox")));
    }
}
