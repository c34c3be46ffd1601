//! `agentbox-ctl bundle <branch> [have…]`: the branch's commits, for the host.
//!
//! First a line that says where the branch is, then a bundle of what the host does not have. The
//! surprising thing: a branch that moved back to a commit the host has would give an empty bundle,
//! which git refuses to make; then that one commit is bundled again.

use crate::error::{Doing, Error, Result};
use crate::real_git::Git;
use connectors::git::{BranchName, ObjectId};
use protocol::ctl::BundleHead;
use protocol::ctl::paths::GIT;
use std::ffi::OsString;
use std::io::Write;

pub fn run(args: &[OsString]) -> Result<i32> {
    let (branch, haves) = parse(args)?;
    let git = Git::for_host();
    let tip = format!("{}^{{commit}}", branch.to_ref());
    let oid = git.read(&["rev-parse", "--verify", "--quiet", &tip]).ok();
    let oid: Option<ObjectId> = oid.and_then(|text| text.parse().ok());
    say_head(oid.as_ref())?;
    match oid {
        Some(oid) if !haves.contains(&oid) => write_bundle(&git, &branch, &oid, &haves),
        _ => Ok(protocol::exit::OK),
    }
}

fn parse(args: &[OsString]) -> Result<(BranchName, Vec<ObjectId>)> {
    let usage =
        |why: &str| Error::Usage(format!("use 'agentbox-ctl bundle <branch> [have…]'{why}"));
    let [branch, haves @ ..] = args else { return Err(usage(".")) };
    let bad = |e: connectors::git::BadName| usage(&format!(": {e}."));
    let haves = haves.iter().map(|h| h.to_string_lossy().parse().map_err(bad));
    Ok((branch.to_string_lossy().parse().map_err(bad)?, haves.collect::<Result<_>>()?))
}

fn say_head(oid: Option<&ObjectId>) -> Result<()> {
    let head = BundleHead { oid: oid.map(ToString::to_string) };
    let line = serde_json::to_string(&head).map_err(|e| Error::Failed(e.to_string()))? + "\n";
    let mut out = std::io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).doing(|| "write standard output")
}

fn write_bundle(git: &Git, branch: &BranchName, oid: &ObjectId, haves: &[ObjectId]) -> Result<i32> {
    let exclude = exclusions(git, oid, haves)?;
    let branch = branch.to_ref();
    let mut args = vec!["bundle", "create", "--quiet", "-", branch.as_str()];
    if !exclude.is_empty() {
        args.push("--not");
        args.extend(exclude.iter().map(String::as_str));
    }
    let status = git.command(&args).status().map_err(|e| Error::Program(GIT, e))?;
    Ok(status.code().unwrap_or(protocol::exit::FAILURE))
}

/// What need not be sent: the haves, or the parents when all of the branch is among the haves.
fn exclusions(git: &Git, oid: &ObjectId, haves: &[ObjectId]) -> Result<Vec<String>> {
    let known = known(git, haves)?;
    if known.is_empty() {
        return Ok(known);
    }
    let mut list = vec!["rev-list", "--max-count=1", oid.as_str(), "--not"];
    list.extend(known.iter().map(String::as_str));
    if git.read(&list)?.is_empty() {
        let parents = git.read(&["rev-parse", &format!("{oid}^@")])?;
        return Ok(parents.lines().map(str::to_owned).collect());
    }
    Ok(known)
}

/// Those of the haves that are commits in this repository too.
fn known(git: &Git, haves: &[ObjectId]) -> Result<Vec<String>> {
    if haves.is_empty() {
        return Ok(Vec::new());
    }
    let input = haves.iter().map(|h| format!("{h}\n")).collect::<Vec<_>>().concat();
    let format = "--batch-check=%(objectname) %(objecttype)";
    let output = git.feed(&["cat-file", format], input.as_bytes())?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(|l| l.strip_suffix(" commit")).map(str::to_owned).collect())
}
