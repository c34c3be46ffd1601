//! `agentbox-ctl bundle [-C <folder>] <branch>|--tags [have…]`: the branch's commits or the tags, for the host.
//!
//! First a line that says where the branch or the tags are, then a bundle of what the host does not
//! have. The surprising thing: a branch that moved back to a commit the host has would give an empty
//! bundle, which git refuses to make; then that one commit is bundled again. For tags there is then
//! no bundle at all.

use crate::error::{Doing, Error, Result};
use crate::input;
use crate::real_git::Git;
use connectors::git::{BranchName, ObjectId};
use protocol::ctl::paths::GIT;
use protocol::ctl::{BundleHead, KnownTags, MAX_TAGS, RefAt, TagsHead};
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

pub fn run(args: &[OsString]) -> Result<i32> {
    let (git, args) = match args {
        [flag, folder, rest @ ..] if flag == "-C" => (Git::at(Path::new(folder)), rest),
        _ => (Git::for_host(), args),
    };
    match args {
        [flag, haves @ ..] if flag == "--tags" => tags(&git, &objects(haves)?),
        _ => branch(&git, args),
    }
}

fn branch(git: &Git, args: &[OsString]) -> Result<i32> {
    let (branch, haves) = parse(args)?;
    let tip = format!("{}^{{commit}}", branch.to_ref());
    let oid = git.read(&["rev-parse", "--verify", "--quiet", &tip]).ok();
    let oid: Option<ObjectId> = oid.and_then(|text| text.parse().ok());
    say_head(&BundleHead { oid: oid.as_ref().map(ToString::to_string) })?;
    match oid {
        Some(oid) if !haves.contains(&oid) => {
            let exclude = exclusions(git, &oid, &haves)?;
            write_bundle(git, &[branch.to_ref().as_str()], &exclude)
        }
        _ => Ok(protocol::exit::OK),
    }
}

/// Tells about the tags the host did not name.
fn tags(git: &Git, haves: &[ObjectId]) -> Result<i32> {
    let known: KnownTags = input::json_line(&mut io::stdin().lock())?;
    let mut tags = unknown(git, &known)?;
    let more = tags.len().saturating_sub(MAX_TAGS);
    tags.truncate(MAX_TAGS);
    let more = u32::try_from(more).unwrap_or(u32::MAX);
    say_head(&TagsHead { tags: tags.iter().map(|t| t.at.clone()).collect(), more })?;
    let exclude = self::known(git, haves)?;
    if !brings_something(git, &tags, &exclude)? {
        return Ok(protocol::exit::OK);
    }
    let names: Vec<&str> = tags.iter().map(|t| t.at.name.as_str()).collect();
    write_bundle(git, &names, &exclude)
}

struct Tag {
    at: RefAt,
    /// It names a commit itself; an annotated tag is an object of its own.
    is_commit: bool,
}

fn unknown(git: &Git, known: &KnownTags) -> Result<Vec<Tag>> {
    let known: HashSet<(&str, &str)> =
        known.tags.iter().map(|t| (t.name.as_str(), t.oid.as_str())).collect();
    let format = "--format=%(objectname) %(objecttype) %(refname)";
    let all = git.read(&["for-each-ref", format, "refs/tags/"])?;
    let split = |line: &str| {
        let [oid, kind, name] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().ok()?;
        let at = RefAt { name: name.to_owned(), oid: oid.to_owned() };
        (!known.contains(&(name, oid))).then_some(Tag { at, is_commit: kind == "commit" })
    };
    Ok(all.lines().filter_map(split).collect())
}

fn brings_something(git: &Git, tags: &[Tag], exclude: &[String]) -> Result<bool> {
    if tags.is_empty() || tags.iter().any(|t| !t.is_commit) {
        return Ok(!tags.is_empty());
    }
    let mut list = vec!["rev-list", "--max-count=1"];
    list.extend(tags.iter().map(|t| t.at.oid.as_str()));
    list.push("--not");
    list.extend(exclude.iter().map(String::as_str));
    Ok(!git.read(&list)?.is_empty())
}

fn parse(args: &[OsString]) -> Result<(BranchName, Vec<ObjectId>)> {
    let [branch, haves @ ..] = args else { return Err(usage(".")) };
    let branch = branch
        .to_string_lossy()
        .parse()
        .map_err(|e: connectors::git::BadName| usage(&format!(": {e}.")))?;
    Ok((branch, objects(haves)?))
}

fn objects(words: &[OsString]) -> Result<Vec<ObjectId>> {
    let parse = |word: &OsString| word.to_string_lossy().parse();
    words
        .iter()
        .map(parse)
        .collect::<std::result::Result<_, _>>()
        .map_err(|e: connectors::git::BadName| usage(&format!(": {e}.")))
}

fn usage(why: &str) -> Error {
    Error::Usage(format!("use 'agentbox-ctl bundle [-C <folder>] <branch>|--tags [have…]'{why}"))
}

fn say_head(head: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(head).map_err(|e| Error::Failed(e.to_string()))? + "\n";
    let mut out = io::stdout();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).doing(|| "write standard output")
}

fn write_bundle(git: &Git, refs: &[&str], exclude: &[String]) -> Result<i32> {
    let mut args = vec!["bundle", "create", "--quiet", "-"];
    args.extend(refs);
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
