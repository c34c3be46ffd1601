//! `agentbox-ctl seed` (box user, once, started by `begin`): lays out the workspace as it is on the host.
//!
//! The box gets its own repositories. Objects stay where they are on the host, mounted read-only and
//! named as alternates; only refs, index and files are made here. Afterwards `git status` says the
//! same in the box as on the host: staged, unstaged, deleted, executable, linked, untracked.
//!
//! The surprising thing: the tree of the files on disk is checked out first and the staged tree is
//! read into the index afterwards, so the difference between the two is what shows as unstaged.

use crate::error::{Doing, Error, Result};
use crate::git_config::setting;
use crate::real_git::Git;
use crate::{input, places, resume, unpack};
use connectors::git::{BranchName, ObjectId, RefName};
use protocol::ctl::{RefAt, SeedPlan, SeedRepo};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where git looks for the program that brings files of Git LFS.
const LFS: &str = "/usr/bin/git-lfs";
/// Files of Git LFS come from the host's disk. One that is not there stays a pointer: nothing is
/// asked of a network, and the answer of this address is immediate.
pub const LFS_OFFLINE: [&str; 6] = [
    "-c",
    "lfs.url=http://127.0.0.1:9/none",
    "-c",
    "lfs.skipdownloaderrors=true",
    "-c",
    "lfs.transfer.maxretries=1",
];

pub fn run() -> Result<i32> {
    let mut stdin = input::archive()?;
    let plan: SeedPlan = input::json_line(&mut stdin)?;
    input::wait_until_ready()?;
    resume::forget();
    let mut seeded = Vec::new();
    for repo in &plan.repos {
        let place = Place::of(repo)?;
        let old = tracked(&place);
        place.make(repo)?;
        check_out(&place.git, repo)?;
        remove_those_of_the_old(&place, &old)?;
        seeded.push(place.git_dir);
    }
    unpack::unpack(stdin, &places::workspace())?;
    list(&seeded)?;
    Ok(protocol::exit::OK)
}

/// What another box's repository tracks; nothing where there is none.
fn tracked(place: &Place) -> BTreeSet<Vec<u8>> {
    if !place.git_dir.is_dir() || !place.folder.join(".git").exists() {
        return BTreeSet::new();
    }
    let listed =
        place.git.run(&["-c", "core.fsmonitor=false", "ls-files", "-z"]).unwrap_or_default();
    listed.split(|b| *b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Files another box had added and this one's project does not have. They would look as if somebody
/// had made them here.
fn remove_those_of_the_old(place: &Place, old: &BTreeSet<Vec<u8>>) -> Result<()> {
    if old.is_empty() {
        return Ok(());
    }
    let now = place.git.run(&["ls-files", "-z"])?;
    let now: BTreeSet<&[u8]> = now.split(|b| *b == 0).collect();
    let root = place.folder.as_path();
    for name in old.iter().filter(|name| !now.contains(name.as_slice())) {
        let path = root.join(OsStr::from_bytes(name));
        if path.symlink_metadata().is_ok_and(|data| !data.is_dir()) {
            fs::remove_file(&path).doing(|| format!("remove {}", path.display()))?;
            // Folders that are empty now are of no use either.
            let above = path.ancestors().skip(1).take_while(|dir| *dir != root);
            above.take_while(|dir| fs::remove_dir(dir).is_ok()).for_each(drop);
        }
    }
    Ok(())
}

/// One repository of the workspace.
struct Place {
    git: Git,
    folder: PathBuf,
    git_dir: PathBuf,
    /// Git keeps it elsewhere than in its folder.
    apart: bool,
}

impl Place {
    fn of(repo: &SeedRepo) -> Result<Self> {
        let folder = places::workspace().join(below(&repo.path)?);
        let git_dir = match &repo.git_dir {
            Some(dir) => places::workspace().join(below(dir)?),
            None => folder.join(".git"),
        };
        let git = Git::at(&folder);
        Ok(Self { git, folder, git_dir, apart: repo.git_dir.is_some() })
    }

    fn make(&self, repo: &SeedRepo) -> Result<()> {
        let branch: BranchName = repo.branch.parse().map_err(bad)?;
        fs::create_dir_all(&self.folder).doing(|| format!("make {}", self.folder.display()))?;
        self.forget_old_repository()?;
        let format = format!("--object-format={}", repo.object_format);
        let mut init = vec!["init", "--quiet", &format, "-b", branch.as_str()];
        let apart = format!("--separate-git-dir={}", self.git_dir.display());
        if self.apart {
            let parent = self.git_dir.parent().unwrap_or(&self.folder);
            fs::create_dir_all(parent).doing(|| format!("make {}", parent.display()))?;
            init.push(&apart);
        }
        self.git.run(&init)?;
        self.write("objects/info/alternates", &lines(&repo.alternates)?)?;
        if !repo.shallow.is_empty() {
            repo.shallow.iter().try_for_each(|o| o.parse::<ObjectId>().map(drop)).map_err(bad)?;
            self.write("shallow", &lines(&repo.shallow)?)?;
        }
        self.append("config", &configuration(repo)?)?;
        if self.apart {
            let folder = self.folder.display().to_string();
            self.append("config", &setting("core.worktree", &folder)?)?;
        }
        self.write("packed-refs", &packed_refs(&repo.tracking)?)?;
        if let Some(base) = &repo.base {
            let base: ObjectId = base.parse().map_err(bad)?;
            self.git.run(&["update-ref", branch.to_ref().as_str(), base.as_str()])?;
        }
        Ok(())
    }

    /// A box that starts from a checkpoint finds another box's repository. The files stay; its branch
    /// and settings are that box's, and its commits are on the host.
    fn forget_old_repository(&self) -> Result<()> {
        for path in [&self.folder.join(".git"), &self.git_dir] {
            match fs::symlink_metadata(path) {
                Ok(data) if data.is_dir() => fs::remove_dir_all(path),
                Ok(_) => fs::remove_file(path),
                Err(_) => Ok(()),
            }
            .doing(|| format!("remove {}", path.display()))?;
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.git_dir.join(name);
        fs::write(&path, text).doing(|| format!("write {}", path.display()))
    }

    fn append(&self, name: &str, text: &str) -> Result<()> {
        let path = self.git_dir.join(name);
        let doing = || format!("write {}", path.display());
        let mut file = OpenOptions::new().append(true).open(&path).doing(doing)?;
        file.write_all(text.as_bytes()).doing(doing)
    }
}

/// A path that stays in the workspace.
pub fn below(text: &str) -> Result<&Path> {
    let path = Path::new(text);
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(path);
    }
    Err(Error::BadInput(format!("a repository outside of the workspace: {text}")))
}

/// Tells who watches the repositories where they are.
fn list(git_dirs: &[PathBuf]) -> Result<()> {
    let path = places::repositories();
    let doing = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).doing(doing)?;
    }
    let names: Vec<String> = git_dirs.iter().map(|dir| dir.display().to_string()).collect();
    fs::write(&path, lines(&names)?).doing(doing)
}

fn check_out(git: &Git, repo: &SeedRepo) -> Result<()> {
    let staged = repo.index_tree.as_ref().or(repo.base.as_ref());
    let on_disk = repo.worktree_tree.as_ref().or(staged);
    let Some(on_disk) = on_disk else { return Ok(()) };
    let on_disk: ObjectId = on_disk.parse().map_err(bad)?;
    // Every core: a large tree is what making a box waits for.
    let read = ["-c", "checkout.workers=0", "read-tree", "--reset", "-u", on_disk.as_str()];
    git.run(&[&LFS_OFFLINE[..], &read].concat())?;
    if repo.worktree_tree.is_none() {
        return Ok(());
    }
    let Some(staged) = staged else {
        git.run(&["read-tree", "--empty"])?;
        return intend_to_add(
            git,
            git.run(&["ls-tree", "-r", "-z", "--name-only", on_disk.as_str()])?,
        );
    };
    let staged: ObjectId = staged.parse().map_err(bad)?;
    // Keeps what the index knows of files that are the same in both trees.
    git.run(&["read-tree", "--reset", staged.as_str()])?;
    let (from, to) = (format!("{staged}^{{tree}}"), format!("{on_disk}^{{tree}}"));
    let added = git.run(&[
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--name-only",
        "--diff-filter=A",
        &from,
        &to,
    ])?;
    intend_to_add(git, added)
}

/// A tracked file that is not in the staged tree was added with `git add -N` on the host.
pub fn intend_to_add(git: &Git, paths: Vec<u8>) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let from_stdin = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    let add = ["--literal-pathspecs", "add", "-N", "-f"];
    git.feed(&[&add[..], &from_stdin].concat(), &paths).map(drop)
}

fn bad(error: connectors::git::BadName) -> Error {
    Error::BadInput(format!("a bad name: {error}"))
}

fn configuration(repo: &SeedRepo) -> Result<String> {
    let mut text = String::new();
    for (key, value) in &repo.config {
        text += &setting(key, value)?;
    }
    for (name, url) in &repo.remotes {
        text += &setting(&format!("remote.{name}.url"), url)?;
        let fetch = format!("+refs/heads/*:refs/remotes/{name}/*");
        text += &setting(&format!("remote.{name}.fetch"), &fetch)?;
    }
    if repo.lfs && Path::new(LFS).exists() {
        for (name, value) in [
            ("clean", "git-lfs clean -- %f"),
            ("smudge", "git-lfs smudge -- %f"),
            ("process", "git-lfs filter-process"),
            ("required", "true"),
        ] {
            text += &setting(&format!("filter.lfs.{name}"), value)?;
        }
    }
    // Tells the shims which branch the host pushes, and that the host knows this repository.
    text += &setting("agentbox.branch", &repo.branch)?;
    // No signing key is in a box.
    Ok(text + &setting("commit.gpgsign", "false")?)
}

/// All tracking refs in one file: a project with thousands of branches costs no more than one.
fn packed_refs(refs: &[RefAt]) -> Result<String> {
    let mut sorted: Vec<&RefAt> = refs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.dedup_by(|a, b| a.name == b.name);
    let line = |at: &RefAt| {
        let name: RefName = at.name.parse().map_err(bad)?;
        let oid: ObjectId = at.oid.parse().map_err(bad)?;
        Ok(format!("{oid} {name}\n"))
    };
    let lines: Vec<String> = sorted.into_iter().map(line).collect::<Result<_>>()?;
    Ok(format!("# pack-refs with: sorted \n{}", lines.concat()))
}

fn lines(items: &[String]) -> Result<String> {
    if items.iter().any(|i| i.is_empty() || i.contains('\n')) {
        return Err(Error::BadInput("a line break where none can be".into()));
    }
    Ok(items.iter().map(|i| format!("{i}\n")).collect::<Vec<_>>().concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_packed_in_order() {
        let oid = "0123456789abcdef0123456789abcdef01234567";
        let at = |name: &str| RefAt { name: name.into(), oid: oid.into() };
        let text = packed_refs(&[at("refs/remotes/o/b"), at("refs/remotes/o/a")]).unwrap();
        assert_eq!(
            text,
            format!("# pack-refs with: sorted \n{oid} refs/remotes/o/a\n{oid} refs/remotes/o/b\n")
        );
        assert!(packed_refs(&[at("HEAD")]).is_err());
        assert!(packed_refs(&[at("refs/x\ny")]).is_err());
    }

    #[test]
    fn every_repository_is_in_the_workspace() {
        for bad in ["..", "a/../..", "/etc", "./a"] {
            assert!(below(bad).is_err(), "{bad}");
        }
        assert_eq!(below("libs/a").unwrap(), Path::new("libs/a"));
        assert_eq!(below("").unwrap(), Path::new(""));
    }
}
