//! `agentbox-ctl seed` (box user, once, started by `begin`): lays out the workspace as it is on the host.
//!
//! The box gets its own repository. Objects stay where they are on the host, mounted read-only and
//! named as alternates; only refs, index and files are made here. Afterwards `git status` says the
//! same in the box as on the host: staged, unstaged, deleted, executable, linked, untracked.
//!
//! The surprising thing: the tree of the files on disk is checked out first and the staged tree is
//! read into the index afterwards, so the difference between the two is what shows as unstaged.

use crate::error::{Doing, Error, Result};
use crate::git_config::setting;
use crate::real_git::Git;
use crate::{input, places, unpack};
use connectors::git::{BranchName, ObjectId, RefName};
use protocol::ctl::{RefAt, SeedPlan, SeedRepo};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

pub fn run() -> Result<i32> {
    let mut stdin = io::stdin().lock();
    let plan: SeedPlan = input::json_line(&mut stdin)?;
    input::wait_until_ready()?;
    let git = Git::for_host();
    if let Some(repo) = &plan.repo {
        let old = tracked(&git);
        forget_old_repository()?;
        make_repository(&git, repo)?;
        check_out(&git, repo)?;
        remove_those_of_the_old(&git, &old)?;
    }
    unpack::unpack(stdin, &places::workspace())?;
    Ok(protocol::exit::OK)
}

/// What another box's repository tracks; nothing where there is none.
fn tracked(git: &Git) -> BTreeSet<Vec<u8>> {
    if !places::workspace().join(".git").is_dir() {
        return BTreeSet::new();
    }
    let listed = git.run(&["-c", "core.fsmonitor=false", "ls-files", "-z"]).unwrap_or_default();
    listed.split(|b| *b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Files another box had added and this one's project does not have. They would look as if somebody
/// had made them here.
fn remove_those_of_the_old(git: &Git, old: &BTreeSet<Vec<u8>>) -> Result<()> {
    if old.is_empty() {
        return Ok(());
    }
    let now = git.run(&["ls-files", "-z"])?;
    let now: BTreeSet<&[u8]> = now.split(|b| *b == 0).collect();
    let root = places::workspace();
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

/// A box that starts from a checkpoint finds another box's repository. The files stay; its branch
/// and settings are that box's, and its commits are on the host.
fn forget_old_repository() -> Result<()> {
    let path = places::workspace().join(".git");
    match fs::symlink_metadata(&path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(&path),
        Ok(_) => fs::remove_file(&path),
        Err(_) => Ok(()),
    }
    .doing(|| format!("remove {}", path.display()))
}

fn make_repository(git: &Git, repo: &SeedRepo) -> Result<()> {
    let branch: BranchName = repo.branch.parse().map_err(bad)?;
    let format = format!("--object-format={}", repo.object_format);
    git.run(&["init", "--quiet", &format, "-b", branch.as_str()])?;
    write("objects/info/alternates", &lines(&repo.alternates)?)?;
    if !repo.shallow.is_empty() {
        repo.shallow.iter().try_for_each(|o| o.parse::<ObjectId>().map(drop)).map_err(bad)?;
        write("shallow", &lines(&repo.shallow)?)?;
    }
    append("config", &configuration(repo)?)?;
    write("packed-refs", &packed_refs(&repo.tracking)?)?;
    if let Some(base) = &repo.base {
        let base: ObjectId = base.parse().map_err(bad)?;
        git.run(&["update-ref", branch.to_ref().as_str(), base.as_str()])?;
    }
    Ok(())
}

fn check_out(git: &Git, repo: &SeedRepo) -> Result<()> {
    let staged = repo.index_tree.as_ref().or(repo.base.as_ref());
    let on_disk = repo.worktree_tree.as_ref().or(staged);
    let Some(on_disk) = on_disk else { return Ok(()) };
    let on_disk: ObjectId = on_disk.parse().map_err(bad)?;
    // Every core: a large tree is what making a box waits for.
    let read = ["-c", "checkout.workers=0", "read-tree", "--reset", "-u", on_disk.as_str()];
    git.run(&read)?;
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
fn intend_to_add(git: &Git, paths: Vec<u8>) -> Result<()> {
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

fn write(name: &str, text: &str) -> Result<()> {
    let path = places::workspace().join(".git").join(name);
    fs::write(&path, text).doing(|| format!("write {}", path.display()))
}

fn append(name: &str, text: &str) -> Result<()> {
    let path = places::workspace().join(".git").join(name);
    let doing = || format!("write {}", path.display());
    let mut file = OpenOptions::new().append(true).open(&path).doing(doing)?;
    file.write_all(text.as_bytes()).doing(doing)
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
}
