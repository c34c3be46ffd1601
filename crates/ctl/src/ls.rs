//! `agentbox-ctl ls -- <folder>` (box user): what is in a folder, a line of JSON for each entry, for the
//! window's page. Names that are not UTF-8 are left out: nothing there could name them again.

use crate::error::{Doing, Error, Result};
use protocol::window::{BoxFile, FileKind};
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, FileType};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub fn run(args: &[OsString]) -> Result<i32> {
    let folder = match args {
        [dashes, folder] if dashes == OsStr::new("--") => Path::new(folder),
        _ => return Err(Error::Usage("ls takes -- and one folder.".into())),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for entry in std::fs::read_dir(folder).doing(|| format!("read {}", folder.display()))? {
        let Some(file) = entry.ok().and_then(|entry| told(&entry)) else { continue };
        let line = serde_json::to_string(&file).map_err(io::Error::from);
        let written = line.and_then(|line| writeln!(out, "{line}"));
        written.doing(|| "write standard output")?;
    }
    out.flush().doing(|| "write standard output")?;
    Ok(protocol::exit::OK)
}

fn told(entry: &DirEntry) -> Option<BoxFile> {
    let name = entry.file_name().into_string().ok()?;
    let data = entry.metadata().ok()?;
    let seconds = u64::try_from(data.mtime()).unwrap_or(0);
    let kind = kind(data.file_type());
    Some(BoxFile { name, kind, size: data.len(), modified: seconds * 1000 })
}

fn kind(of: FileType) -> FileKind {
    match of {
        of if of.is_dir() => FileKind::Folder,
        of if of.is_file() => FileKind::File,
        of if of.is_symlink() => FileKind::Link,
        _ => FileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join("a"), "abc").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let all = std::fs::read_dir(dir.path()).unwrap();
        let mut all: Vec<BoxFile> = all.filter_map(|entry| told(&entry.unwrap())).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let kinds: Vec<FileKind> = all.iter().map(|file| file.kind).collect();
        assert_eq!(kinds, [FileKind::File, FileKind::Link, FileKind::Folder]);
        assert_eq!(all[0].size, 3);
        assert!(run(&["src".into()]).is_err());
    }
}
