//! `git`, as a shim and as `agentbox-ctl git …`: carries out what [`shims::git`] planned.
//!
//! A push, fetch or clone happens on the host. What changes in the box afterwards is noted by the
//! box's own git: the tracking ref and upstream after a push, the merge of a pull. The host delivers
//! what it fetched or cloned itself before it answers.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::places;
use crate::real_git::Git;
use crate::rpc::{exit_code, print};
use connectors::git::{BranchName, ObjectId, Pull, RemoteName};
use protocol::ctl::paths::GIT;
use protocol::exit;
use protocol::rpc::{Envelope, Pushed};
use serde::Serialize;
use shims::git::{Look, Plan, Repository, Request, plan, plan_with_remote};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who merges when the box has no identity.
const FALLBACK_NAME: &str = "agentbox";
const FALLBACK_EMAIL: &str = "agentbox@users.noreply.github.com";

/// `git <args>`.
pub fn shim(args: &[OsString]) -> Result<i32> {
    carry_out(plan(args, &current_dir(), &Here), args)
}

/// `agentbox-ctl git [--remote <name>] <args>`.
pub fn command(args: &[OsString]) -> Result<i32> {
    let [flag, name, rest @ ..] = args else { return shim(args) };
    if flag != "--remote" {
        return shim(args);
    }
    let remote = remote(&name.to_string_lossy())?;
    carry_out(plan_with_remote(rest, &current_dir(), &Here, &remote), rest)
}

/// `agentbox-ctl merge [--remote <name>] [flags]`: what is left of a pull once the host has fetched.
pub fn merge_command(args: &[OsString]) -> Result<i32> {
    let mut flags: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let mut from = RemoteName::default();
    if flags.first().is_some_and(|flag| flag == "--remote") {
        from = remote(flags.get(1).map_or("", String::as_str))?;
        flags.drain(..2);
    }
    let pull = Pull::parse(&flags).map_err(|e| Error::Usage(e.to_string()))?;
    merge(&Git::for_person(&current_dir()), from.as_str(), &pull.merge_argv(), None)
}

fn remote(name: &str) -> Result<RemoteName> {
    name.parse().map_err(|e| {
        Error::Usage(format!("{e}. Use the name of a remote the project has, such as origin."))
    })
}

fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| crate::places::workspace())
}

/// The box as it is.
struct Here;

impl Look for Here {
    fn repository(&self, dir: &Path) -> Repository {
        let git = Git::for_person(dir);
        let read = |args: &[&str]| git.read(args).ok().filter(|text| !text.is_empty());
        let own = read(&["config", "agentbox.branch"]);
        let common = read(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let project = places::workspace().join(".git");
        let project = project.canonicalize().unwrap_or(project);
        let foreign = common.is_some_and(|common| Path::new(&common) != project);
        Repository {
            branch: read(&["symbolic-ref", "--quiet", "--short", "HEAD"]),
            foreign: foreign && own.is_none(),
            own,
            remotes: read(&["remote"]).unwrap_or_default().lines().map(str::to_owned).collect(),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}

fn carry_out(plan: Plan, args: &[OsString]) -> Result<i32> {
    match plan {
        Plan::Exec => Err(Error::Program(GIT, Command::new(GIT).args(args).exec())),
        Plan::Refuse(refused) => {
            crate::complain(&refused.line);
            Ok(refused.code)
        }
        Plan::Push(request) => push(&request),
        Plan::Fetch(request) => ask("git.fetch", &request.params).map(|e| exit_code(&e)),
        Plan::Pull { fetch, merge, from } => pull(&fetch, &merge, from.as_ref()),
        Plan::Clone(params) => ask("git.clone", &params).map(|e| exit_code(&e)),
    }
}

fn ask(method: &str, params: &impl Serialize) -> Result<Envelope> {
    let params = serde_json::to_value(params).map_err(|e| Error::Failed(e.to_string()))?;
    let envelope = Relay::open()?.call(method, params)?;
    print(&envelope);
    Ok(envelope)
}

fn push(request: &Request) -> Result<i32> {
    if let Some(note) = &request.note {
        crate::complain(note);
    }
    let envelope = ask("git.push", &request.params)?;
    let code = exit_code(&envelope);
    if let (exit::OK, Some(pushed)) = (code, &envelope.pushed)
        && let Err(e) = note(&Git::for_person(&request.dir), pushed)
    {
        crate::complain(&format!("warning: pushed, but the box could not note it: {e}"));
    }
    Ok(code)
}

/// Makes `git status` in the box know what the remote has now.
fn note(git: &Git, pushed: &Pushed) -> Result<()> {
    let bad = |e: connectors::git::BadName| Error::BadInput(e.to_string());
    let remote: RemoteName = pushed.remote.parse().map_err(bad)?;
    let branch: BranchName = pushed.branch.parse().map_err(bad)?;
    let local: BranchName = pushed.local.as_ref().unwrap_or(&pushed.branch).parse().map_err(bad)?;
    let oid: ObjectId = pushed.oid.parse().map_err(bad)?;
    let tracking = format!("refs/remotes/{remote}/{branch}");
    git.run(&["update-ref", "--no-deref", &tracking, oid.as_str()])?;
    git.run(&["config", &format!("branch.{local}.remote"), remote.as_str()])?;
    git.run(&["config", &format!("branch.{local}.merge"), branch.to_ref().as_str()])?;
    Ok(())
}

fn pull(fetch: &Request, flags: &[&str], from: Option<&BranchName>) -> Result<i32> {
    let envelope = ask("git.fetch", &fetch.params)?;
    let code = exit_code(&envelope);
    if code != exit::OK {
        return Ok(code);
    }
    let remote = fetch.params.remote.as_deref().unwrap_or("origin");
    merge(&Git::for_person(&fetch.dir), remote, flags, from)
}

fn merge(git: &Git, remote: &str, flags: &[&str], from: Option<&BranchName>) -> Result<i32> {
    let target = match from {
        Some(branch) => format!("refs/remotes/{remote}/{branch}"),
        None => merge_target(git, remote)?,
    };
    let mut args = identity(git);
    args.push("merge".to_owned());
    // A merge in a box is mostly an agent's; an editor would wait for nobody.
    args.push("--no-edit".to_owned());
    args.extend(flags.iter().map(ToString::to_string));
    args.push(target);
    let status = git.command(&args).status().map_err(|e| Error::Program(GIT, e))?;
    Ok(status.code().unwrap_or(exit::FAILURE))
}

/// The upstream, else the remote's default branch.
fn merge_target(git: &Git, remote: &str) -> Result<String> {
    let candidates = [
        "@{upstream}".to_owned(),
        format!("refs/remotes/{remote}/HEAD"),
        format!("refs/remotes/{remote}/main"),
        format!("refs/remotes/{remote}/master"),
    ];
    let exists = |name: &String| {
        git.run(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).is_ok()
    };
    candidates.into_iter().find(exists).ok_or_else(|| {
        Error::Failed(format!(
            "git pull: nothing to merge: this branch has no upstream and {remote} no default \
             branch. Run 'git merge {remote}/<branch>'."
        ))
    })
}

fn identity(git: &Git) -> Vec<String> {
    if git.read(&["config", "user.email"]).is_ok_and(|email| !email.is_empty()) {
        return Vec::new();
    }
    let set = |key: &str, value: &str| ["-c".to_owned(), format!("{key}={value}")];
    [set("user.name", FALLBACK_NAME), set("user.email", FALLBACK_EMAIL)].concat()
}
