//! A real repository in a temporary folder, with an identity and no influence from the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Repo {
    temp: tempfile::TempDir,
    path: PathBuf,
}

impl Repo {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&path).unwrap();
        let repo = Self { temp, path };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Dev"]);
        repo.git(&["config", "user.email", "dev@example.org"]);
        repo
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path beside the repository.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn commit(&self, file: &str, text: &str) -> String {
        self.write(file, text);
        self.git(&["add", file]);
        self.git(&["commit", "-q", "-m", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub fn git(&self, args: &[&str]) -> String {
        git_in(&self.path, args)
    }
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(dir).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
