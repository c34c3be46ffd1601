//! `agentbox-ctl clone-in`: makes a repository of what the host cloned.
//!
//! Runs as the box user, so it reaches no further in the box than the agent itself. The repository
//! looks as `git clone` would have left it: `origin`, its branches, tags, one branch checked out.
//! What was begun and failed is taken away again.

use crate::error::{Doing, Error, Result};
use crate::git_config::setting;
use crate::input;
use crate::real_git::Git;
use crate::unbundle::take_in;
use connectors::git::{BadName, BranchName, ObjectId, RefName};
use protocol::ctl::{CloneIn, RefAt};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// Settings of the project's repository that a clone beside it gets too.
const IDENTITY: [&str; 2] = ["user.name", "user.email"];

pub fn run() -> Result<i32> {
    let mut stdin = io::stdin().lock();
    let plan: CloneIn = input::json_line(&mut stdin)?;
    let place = Place::claim(Path::new(&plan.dir))?;
    fill(&place.dir, &plan, &mut stdin)?;
    place.keep();
    Ok(protocol::exit::OK)
}

fn fill(dir: &Path, plan: &CloneIn, bundle: &mut impl BufRead) -> Result<()> {
    let git = Git::at(dir);
    let refs = updates(&plan.refs)?;
    let branch = plan.branch.as_deref().map(str::parse::<BranchName>).transpose().map_err(bad)?;
    let at = plan.at.as_deref().map(str::parse::<ObjectId>).transpose().map_err(bad)?;
    let format = format!("--object-format={}", plan.object_format);
    let mut init = vec!["init", "--quiet", &format];
    init.extend(branch.iter().flat_map(|branch| ["-b", branch.as_str()]));
    git.run(&init)?;
    append(&dir.join(".git/config"), &configuration(&plan.url, branch.as_ref())?)?;
    if !plan.shallow.is_empty() {
        append(&dir.join(".git/shallow"), &boundaries(&plan.shallow)?)?;
    }
    if plan.refs.is_empty() {
        return Ok(());
    }
    take_in(&git, bundle)?;
    git.feed(&["update-ref", "--stdin"], refs.as_bytes())?;
    check_out(&git, branch.as_ref(), at.as_ref())
}

/// Branches of the other side are tracking refs here; tags are tags.
fn updates(refs: &[RefAt]) -> Result<String> {
    let update = |at: &RefAt| {
        let name: RefName = at.name.parse().map_err(bad)?;
        let oid: ObjectId = at.oid.parse().map_err(bad)?;
        let name = match (name.as_str().strip_prefix("refs/heads/"), name.as_str()) {
            (Some(head), _) => format!("refs/remotes/origin/{head}"),
            (None, tag) if tag.starts_with("refs/tags/") => tag.to_owned(),
            _ => return Err(Error::BadInput(format!("a ref that is no branch or tag: {name}"))),
        };
        Ok(format!("update {name} {oid}\n"))
    };
    let updates: Vec<String> = refs.iter().map(update).collect::<Result<_>>()?;
    Ok(updates.concat())
}

fn check_out(git: &Git, branch: Option<&BranchName>, at: Option<&ObjectId>) -> Result<()> {
    let Some(at) = at else { return Ok(()) };
    let Some(branch) = branch else {
        return git.run(&["checkout", "--quiet", "--detach", at.as_str()]).map(drop);
    };
    let tracking = format!("refs/remotes/origin/{branch}");
    git.run(&["symbolic-ref", "refs/remotes/origin/HEAD", &tracking])?;
    git.run(&["update-ref", branch.to_ref().as_str(), at.as_str()])?;
    git.run(&["reset", "--quiet", "--hard"]).map(drop)
}

fn configuration(url: &str, branch: Option<&BranchName>) -> Result<String> {
    let mut text = setting("remote.origin.url", url)?;
    text += &setting("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")?;
    if let Some(branch) = branch {
        text += &setting(&format!("branch.{branch}.remote"), "origin")?;
        text += &setting(&format!("branch.{branch}.merge"), branch.to_ref().as_str())?;
    }
    let project = Git::for_host();
    for key in IDENTITY {
        if let Ok(value) = project.read(&["config", key]) {
            text += &setting(key, &value)?;
        }
    }
    // No signing key is in a box.
    Ok(text + &setting("commit.gpgsign", "false")?)
}

fn boundaries(commits: &[String]) -> Result<String> {
    let line = |oid: &String| Ok(format!("{}\n", oid.parse::<ObjectId>().map_err(bad)?));
    Ok(commits.iter().map(line).collect::<Result<Vec<_>>>()?.concat())
}

fn append(path: &Path, text: &str) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let mut file = OpenOptions::new().create(true).append(true).open(path).doing(doing)?;
    file.write_all(text.as_bytes()).doing(doing)
}

fn bad(error: BadName) -> Error {
    Error::BadInput(format!("a bad name: {error}"))
}

/// The folder of a clone; empty again when dropped, unless it is kept.
struct Place {
    dir: PathBuf,
    was_there: bool,
    kept: bool,
}

impl Place {
    fn claim(dir: &Path) -> Result<Self> {
        if !dir.is_absolute() {
            return Err(Error::BadInput("a folder that is not absolute".into()));
        }
        let was_there = match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
            Ok(true) => true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            _ => {
                return Err(Error::Failed(format!(
                    "git clone: '{}' is there already and not an empty folder. Name another one.",
                    protocol::text::visible(&dir.to_string_lossy())
                )));
            }
        };
        fs::create_dir_all(dir).doing(|| format!("make {}", dir.display()))?;
        Ok(Self { dir: dir.to_owned(), was_there, kept: false })
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let _ = fs::remove_dir_all(&self.dir);
        if self.was_there {
            let _ = fs::create_dir(&self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_become_tracking_refs_and_nothing_else_is_set() {
        let at = |name: &str| RefAt { name: name.into(), oid: "ab".repeat(20) };
        let text = updates(&[at("refs/heads/a/b"), at("refs/tags/v1")]).unwrap();
        let oid = "ab".repeat(20);
        assert_eq!(
            text,
            format!("update refs/remotes/origin/a/b {oid}\nupdate refs/tags/v1 {oid}\n")
        );
        for bad in ["refs/notes/x", "HEAD", "refs/heads/a\nupdate x", "refs/heads/../x"] {
            assert!(updates(&[at(bad)]).is_err(), "{bad:?}");
        }
    }
}
