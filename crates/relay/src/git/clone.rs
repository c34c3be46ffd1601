//! `git.clone`: a repository the person can read, for the box.
//!
//! The host clones into a folder of its own, without a work tree, and gives the box a bundle. It
//! reads whatever the person may read, so it always asks, with the whole address.
//!
//! Which hosts the person has a login for is not known here. What holds instead: SSH refuses a host
//! whose key the person has not accepted before, because nobody can be asked; HTTPS sends only what
//! the person's own credential helper has for that host; and a host the project has no remote on is
//! pointed out in the question.

use crate::call::{Call, Stop, envelope};
use crate::process::{Limit, Output, Tool};
use approvals::Draft;
use connectors::clone::Cloning;
use connectors::git::{BranchName, ObjectId};
use connectors::worktree::BoxPath;
use protocol::ctl::{CloneIn, RefAt};
use protocol::exit;
use protocol::question::{Fact, Tier};
use protocol::rpc::Envelope;
use protocol::text::visible;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most a clone may bring to this disk, and how often that is looked at.
const MAX_CLONE: u64 = 1024 * 1024 * 1024;
const LOOK: Duration = Duration::from_millis(250);
const LIMIT: Limit = Limit::NETWORK;

/// Settings a clone is made with: no hook, nothing but the network, every object checked. What many
/// old repositories have wrong in a date or a mode harms nobody.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    // Where it goes is what the person saw.
    "http.followRedirects=false",
    "transfer.fsckObjects=true",
    "fetch.fsck.badTimezone=ignore",
    "fetch.fsck.missingSpaceBeforeDate=ignore",
    "fetch.fsck.zeroPaddedFilemode=ignore",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

pub(super) async fn clone(call: &Call, cloning: Cloning, into: BoxPath) -> Result<Envelope, Stop> {
    let git = call.tool("git")?;
    let job = Job::new(call, cloning, into, git)?;
    let draft = job.draft(call);
    let summary = draft.title.clone();
    call.gate(draft, None).await?;
    let later = call.clone();
    let work = async move {
        let reply = job.run(&later).await.unwrap_or_else(|stop| stop.envelope);
        Ok(later.done(summary, json!({ "argv": job.args, "into": job.into.as_str() }), reply).await)
    };
    call.finish(work).await
}

/// One clone, and the folder it is made in, which goes with it.
struct Job {
    cloning: Cloning,
    into: BoxPath,
    git: Tool,
    dir: tempfile::TempDir,
    args: Vec<String>,
}

impl Job {
    fn new(call: &Call, cloning: Cloning, into: BoxPath, git: Tool) -> Result<Self, Stop> {
        let scratch = &call.shared.deps.scratch;
        let made = std::fs::create_dir_all(scratch);
        let made =
            made.and_then(|()| tempfile::Builder::new().prefix("clone-").tempdir_in(scratch));
        let dir = made.map_err(|e| fail(format!("cannot make a folder on the host: {e}")))?;
        let args = args(&cloning, &dir.path().join("repository.git"));
        Ok(Self { cloning, into, git, dir, args })
    }

    fn repository(&self) -> PathBuf {
        self.dir.path().join("repository.git")
    }

    fn draft(&self, call: &Call) -> Draft {
        let address = self.cloning.address.to_string();
        let title = format!("Clone {address} into the box");
        let mut draft = call.draft(Tier::Sensitive, title, &address);
        let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
        draft.evidence.facts = vec![
            fact("address", address.clone()),
            fact("folder in the box", visible(self.into.as_str())),
        ];
        let branch = self.cloning.branch.iter().map(|b| fact("branch or tag", b.to_string()));
        let depth = self.cloning.depth.iter().map(|n| fact("depth", n.to_string()));
        draft.evidence.facts.extend(branch.chain(depth));
        if !known_host(call, self.cloning.address.host()) {
            let host = self.cloning.address.host();
            draft.warnings.push(format!("the project has no remote on {host}"));
        }
        draft.argv = std::iter::once("git".to_owned()).chain(self.args.iter().cloned()).collect();
        draft.plan = self.into.as_str().into();
        draft
    }

    async fn run(&self, call: &Call) -> Result<Envelope, Stop> {
        let env = env(call);
        let output = tokio::select! {
            output = call.run(&self.git, &self.args, None, &env, LIMIT) => output?,
            () = grows_beyond(self.dir.path(), MAX_CLONE) => return Err(too_large()),
        };
        if !output.ok() {
            return Ok(self.without_places(envelope(&output)));
        }
        let plan = self.plan(call).await?;
        let bundle = self.bundle(call, &plan).await?;
        let sent = call.shared.deps.port.import_clone(&call.reg().id, plan, bundle.as_deref());
        sent.await.map_err(|e| fail(e.to_string()))?;
        let stderr = format!("Cloned {} into {}\n", self.cloning.address, self.into.as_str());
        Ok(Envelope { stderr, ..Envelope::default() })
    }

    /// What the box makes of it.
    async fn plan(&self, call: &Call) -> Result<CloneIn, Stop> {
        let read = |args: &'static [&'static str]| self.read(call, args);
        let format = read(&["rev-parse", "--show-object-format"]).await?.out();
        let at = read(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).await?.out();
        let branch = read(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?.out();
        let list =
            ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", "refs/tags/"];
        let refs = self.must(call, &list).await?.out();
        let shallow =
            std::fs::read_to_string(self.repository().join("shallow")).unwrap_or_default();
        let split = |line: &str| {
            let (oid, name) = line.split_once(' ')?;
            Some(RefAt { name: name.to_owned(), oid: oid.to_owned() })
        };
        let branch = branch.trim().parse::<BranchName>().ok();
        Ok(CloneIn {
            dir: self.into.as_str().to_owned(),
            url: self.cloning.address.to_string(),
            object_format: format.trim().to_owned(),
            refs: refs.lines().filter_map(split).collect(),
            shallow: shallow.lines().map(str::to_owned).collect(),
            branch: branch.map(|b| b.to_string()),
            at: at.trim().parse::<ObjectId>().ok().map(|at| at.to_string()),
        })
    }

    /// The repository as one file; none when there is nothing in it.
    async fn bundle(&self, call: &Call, plan: &CloneIn) -> Result<Option<PathBuf>, Stop> {
        if plan.refs.is_empty() {
            return Ok(None);
        }
        let file = self.dir.path().join("clone.bundle");
        let path = file.display().to_string();
        // Without the loose ends of a detached head: a tag it was made of is among the tags.
        self.must(call, &["bundle", "create", "--quiet", &path, "--branches", "--tags"]).await?;
        let size = std::fs::metadata(&file).map_or(0, |m| m.len());
        if size > MAX_CLONE { Err(too_large()) } else { Ok(Some(file)) }
    }

    async fn read(&self, call: &Call, args: &[&str]) -> Result<Output, Stop> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let mut env = env(call);
        env.push(("GIT_DIR".into(), self.repository().into()));
        call.run(&self.git, &args, None, &env, LIMIT).await
    }

    async fn must(&self, call: &Call, args: &[&str]) -> Result<Output, Stop> {
        let output = self.read(call, args).await?;
        if output.ok() {
            return Ok(output);
        }
        let said = self.without_places(envelope(&output)).stderr;
        Err(fail(format!("git {} failed: {}", args[0], visible(said.trim()))))
    }

    /// What git says about its own folder is of no use in the box.
    fn without_places(&self, mut envelope: Envelope) -> Envelope {
        let place = self.repository().display().to_string();
        envelope.stderr = envelope.stderr.replace(&place, self.into.as_str());
        envelope.stdout = envelope.stdout.replace(&place, self.into.as_str());
        envelope
    }
}

/// Nobody is there to be asked for a password or about a host, and nothing but the network is cloned
/// from, whatever an address is rewritten to by the person's settings.
fn env(call: &Call) -> Vec<(OsString, OsString)> {
    let mut env = call.env(&[]);
    env.push(("GIT_ALLOW_PROTOCOL".into(), "https:ssh".into()));
    env
}

/// The command a person approves, complete.
fn args(cloning: &Cloning, dest: &Path) -> Vec<String> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]);
    let mut args: Vec<String> = settings.collect();
    args.extend(["clone", "--quiet", "--bare", "--template="].map(str::to_owned));
    args.extend(cloning.flags());
    args.push("--".to_owned());
    args.push(cloning.address.to_string());
    args.push(dest.display().to_string());
    args
}

/// A remote of the project is there.
fn known_host(call: &Call, host: &str) -> bool {
    let remotes = call.reg().worktrees.iter().flat_map(|w| w.remotes.values());
    remotes.map(crate::RemoteUrls::shown).any(|shown| {
        let place = shown.split('/').next().unwrap_or_default();
        place.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case(host))
    })
}

/// Resolves when the folder holds too much.
async fn grows_beyond(dir: &Path, limit: u64) {
    loop {
        tokio::time::sleep(LOOK).await;
        let dir = dir.to_owned();
        let size = tokio::task::spawn_blocking(move || size_of(&dir)).await.unwrap_or(0);
        if size > limit {
            return;
        }
    }
}

fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => size_of(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn too_large() -> Stop {
    fail("the repository is larger than 1 GiB; use --depth 1, or clone it on the host".to_owned())
}

fn fail(why: String) -> Stop {
    Stop::fail(exit::FAILURE, format!("git clone: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_ends_with_address_and_folder() {
        let words = ["--depth=1", "--", "acme/shop"].map(str::to_owned);
        let args = args(&Cloning::parse(&words).unwrap(), Path::new("/s/repository.git"));
        let tail = &args[args.len() - 5..];
        assert_eq!(
            tail,
            [
                "--template=",
                "--depth=1",
                "--",
                "https://github.com/acme/shop.git",
                "/s/repository.git"
            ]
        );
        assert!(args.contains(&"transfer.fsckObjects=true".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_grows_too_large_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("pack"), vec![0; 1000]).unwrap();
        assert_eq!(size_of(dir.path()), 1000);
        grows_beyond(dir.path(), 999).await;
        let waits = tokio::time::timeout(Duration::from_secs(5), grows_beyond(dir.path(), 1000));
        assert!(waits.await.is_err());
    }
}
