//! What a folder without a repository wants left out: its `.agentboxignore`.
//!
//! The file is read as git reads a `.gitignore`, by git itself with an empty repository that is gone
//! afterwards: no second reading of those rules can then differ from the first.

use super::git::Git;
use crate::Error;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const FILE: &str = ".agentboxignore";

/// The files and folders of `folder` that its ignore file names, relative to it, and folders in which
/// nothing else is.
pub async fn ignored_by(folder: &Path) -> Result<HashSet<PathBuf>, Error> {
    let file = folder.join(FILE);
    if !file.is_file() {
        return Ok(HashSet::new());
    }
    let temp = tempfile::tempdir().map_err(|e| Error::io("make", &std::env::temp_dir(), e))?;
    let what = "read .agentboxignore";
    Git::new(what, temp.path())?.args(["init", "-q", "--bare", "."]).run().await?;
    let args = ["ls-files", "--others", "--ignored", "--directory", "-z", "--exclude-from"];
    let git = Git::new(what, folder)?.of(temp.path()).args(args).args([&file]);
    let stdout = git.run().await?;
    let names = stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let plain = |name: &[u8]| name.strip_suffix(b"/").unwrap_or(name).to_vec();
    Ok(names.map(|name| PathBuf::from(OsString::from_vec(plain(name)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rules_are_those_of_a_gitignore() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(ignored_by(temp.path()).await.unwrap().is_empty());
        for name in
            ["a.log", "keep.log", "deep/b.log", "data/x", "data/y/z", "src/data/w", "odd name"]
        {
            write(name, "");
        }
        write(FILE, "# rules\n*.log\n!keep.log\n/data/\nodd name\n");
        let mut found: Vec<_> = ignored_by(temp.path()).await.unwrap().into_iter().collect();
        found.sort();
        assert_eq!(found, ["a.log", "data", "deep", "deep/b.log", "odd name"].map(PathBuf::from));
        assert!(!temp.path().join(".git").exists());
    }
}
