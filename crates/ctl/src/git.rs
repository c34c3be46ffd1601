//! `git`, as a shim and as `agentbox-ctl git …`: carries out what [`shims::git`] planned.
//!
//! A push or fetch happens on the host. What changes in the box afterwards is noted by the box's
//! own git: the tracking ref and upstream after a push, the merge of a pull. The host delivers a
//! fetch's commits itself before it answers.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::real_git::Git;
use crate::rpc::{exit_code, print};
use connectors::git::{BranchName, ObjectId, RemoteName};
use protocol::ctl::paths::GIT;
use protocol::exit;
use protocol::rpc::{Envelope, Pushed};
use shims::git::{Plan, Request, plan, plan_with_remote};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Who merges when the box has no identity.
const FALLBACK_NAME: &str = "agentbox";
const FALLBACK_EMAIL: &str = "agentbox@users.noreply.github.com";

/// `git <args>`.
pub fn shim(args: &[OsString]) -> Result<i32> {
    carry_out(plan(args, &current_dir()), args)
}

/// `agentbox-ctl git [--remote <name>] <args>`.
pub fn command(args: &[OsString]) -> Result<i32> {
    let [flag, name, rest @ ..] = args else { return shim(args) };
    if flag != "--remote" {
        return shim(args);
    }
    let remote: RemoteName = name.to_string_lossy().parse().map_err(|e| {
        Error::Usage(format!("{e}. Use the name of a remote the project has, such as origin."))
    })?;
    carry_out(plan_with_remote(rest, &current_dir(), &remote), rest)
}

fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| crate::places::workspace())
}

fn carry_out(plan: Plan, args: &[OsString]) -> Result<i32> {
    match plan {
        Plan::Exec => Err(Error::Program(GIT, Command::new(GIT).args(args).exec())),
        Plan::Refuse(line) => {
            crate::complain(&line);
            Ok(exit::SHIM_REFUSED)
        }
        Plan::Push(request) => push(&request),
        Plan::Fetch(request) => ask("git.fetch", &request).map(|e| exit_code(&e)),
        Plan::Pull { fetch, merge } => pull(&fetch, &merge),
    }
}

fn ask(method: &str, request: &Request) -> Result<Envelope> {
    let params = serde_json::to_value(&request.params).map_err(|e| Error::Failed(e.to_string()))?;
    let envelope = Relay::open()?.call(method, params)?;
    print(&envelope);
    Ok(envelope)
}

fn push(request: &Request) -> Result<i32> {
    let envelope = ask("git.push", request)?;
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
    let oid: ObjectId = pushed.oid.parse().map_err(bad)?;
    let tracking = format!("refs/remotes/{remote}/{branch}");
    git.run(&["update-ref", "--no-deref", &tracking, oid.as_str()])?;
    git.run(&["config", &format!("branch.{branch}.remote"), remote.as_str()])?;
    git.run(&["config", &format!("branch.{branch}.merge"), branch.to_ref().as_str()])?;
    Ok(())
}

fn pull(fetch: &Request, merge: &[&str]) -> Result<i32> {
    let envelope = ask("git.fetch", fetch)?;
    let code = exit_code(&envelope);
    if code != exit::OK {
        return Ok(code);
    }
    let git = Git::for_person(&fetch.dir);
    let remote = fetch.params.remote.as_deref().unwrap_or("origin");
    let target = merge_target(&git, remote)?;
    let mut args = identity(&git);
    args.push("merge".to_owned());
    // A merge in a box is mostly an agent's; an editor would wait for nobody.
    args.push("--no-edit".to_owned());
    args.extend(merge.iter().map(ToString::to_string));
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
