//! `git.push`, `git.fetch` and `git.clone`: from a request to a plan, and what happens then.
//!
//! A box's commits come in by a bundle and go out from the transfer repository; what was fetched
//! goes back the same way. Git never runs in a folder a box can write.

mod clone;
mod landing;
mod push;

use crate::call::{Call, Stop, envelope};
use crate::decide::{Refusal, Request, known_remote, rule};
use crate::process::ProcessError;
use crate::registration::Worktree;
use crate::server::{BoxState, Shared};
use crate::transfer::{Transfer, TransferError};
use connectors::clone::Cloning;
use connectors::git::{Fetch, Land, ObjectId, Outgoing, Push, RemoteName};
use connectors::worktree::{self, BoxPath};
use protocol::ctl::{RefAt, Unbundle, Upstream};
use protocol::exit;
use protocol::rpc::{ArgsParams, Envelope, GitParams};
use serde_json::json;

/// The number is the worktree's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Push(usize, Push),
    /// A push that stays on this host.
    Land(usize, Land),
    Fetch(usize, Fetch),
    /// Into a folder of the box.
    Clone(Cloning, BoxPath),
}

impl Plan {
    /// A push finds out by itself whether it is the same: by its commits, not by its words.
    pub fn joins(&self) -> bool {
        matches!(self, Plan::Land(..) | Plan::Clone(..))
    }
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    match request.method {
        "git.push" => {
            let params: GitParams = request.params("git push")?;
            let at = request.worktree("git push", params.path.as_deref())?;
            match Outgoing::parse(&params).map_err(|e| rule(e.exit_code(), e))? {
                Outgoing::Host(land) => Ok(Plan::Land(at, land)),
                Outgoing::Remote(push) => {
                    known_remote("git push", &request.reg.worktrees[at], &push.remote)?;
                    Ok(Plan::Push(at, push))
                }
            }
        }
        "git.fetch" => {
            let params: GitParams = request.params("git fetch")?;
            let at = request.worktree("git fetch", params.path.as_deref())?;
            let fetch = Fetch::parse(&params).map_err(|e| rule(e.exit_code(), e))?;
            known_remote("git fetch", &request.reg.worktrees[at], &fetch.remote)?;
            Ok(Plan::Fetch(at, fetch))
        }
        "git.clone" => {
            let params: ArgsParams = request.params("git clone")?;
            if params.stdin.is_some() {
                return Err(rule(exit::UNADDRESSABLE, "git clone: it takes no input."));
            }
            let bad = |e: worktree::BadPath| rule(e.exit_code(), format!("git clone: {e}"));
            let from = params.path.as_deref().map(worktree::normalise).transpose().map_err(bad)?;
            let cloning = Cloning::parse(&params.args)?;
            let into = from.unwrap_or_default().join(cloning.folder()).map_err(bad)?;
            Ok(Plan::Clone(cloning, into))
        }
        _ => Err(Refusal::Unknown),
    }
}

pub(crate) async fn execute(call: &Call, plan: Plan) -> Result<Envelope, Stop> {
    match plan {
        Plan::Push(at, plan) => push::push(call, at, plan).await,
        Plan::Land(at, plan) => landing::land(call, at, plan).await,
        Plan::Fetch(at, plan) => fetch(call, at, plan).await,
        Plan::Clone(plan, into) => clone::clone(call, plan, into).await,
    }
}

/// A failure of the host's part, named after the command.
fn failed(what: &'static str) -> impl Fn(TransferError) -> Stop {
    move |e| {
        let code = match &e {
            TransferError::Process(ProcessError::Missing(_)) => exit::NO_PROGRAM,
            TransferError::BadTag(_) => exit::REFUSED,
            _ => exit::FAILURE,
        };
        Stop::fail(code, format!("{what}: {e}"))
    }
}

/// Fetches a remote and tells the box what is there.
async fn fetch(call: &Call, at: usize, fetch: Fetch) -> Result<Envelope, Stop> {
    let failed = failed("git fetch");
    let worktree = &call.reg().worktrees[at];
    let _one = call.state.locks[at].lock().await;
    let transfer = call.shared.transfer(worktree).map_err(&failed)?;
    transfer.ensure().await.map_err(&failed)?;
    let mut flags = fetch.to_argv();
    if fetch.tags.is_none() {
        flags.push("--no-tags");
    }
    let output = transfer.fetch(&flags, &fetch.remote).await.map_err(&failed)?;
    if output.ok() && !fetch.dry_run {
        deliver(call, &transfer, &fetch).await.map_err(&failed)?;
    }
    let summary = format!("Fetch {}", fetch.remote);
    Ok(call.read(summary, json!({ "flags": flags }), envelope(&output)).await)
}

async fn deliver(call: &Call, transfer: &Transfer<'_>, fetch: &Fetch) -> Result<(), TransferError> {
    let refs = transfer.known(&fetch.remote, fetch.tags == Some(true)).await?;
    let file = scratch(transfer.worktree)?;
    let bundle = transfer.bundle_for_box(&refs, &fetch.remote, file.path()).await?;
    let prune = fetch.prune.then(|| format!("refs/remotes/{}/", fetch.remote));
    let upstream = upstream(transfer.worktree, &fetch.remote, &refs);
    let repo = Some(transfer.worktree.container_path.clone());
    let unbundle = Unbundle { repo, refs: refs.clone(), prune, bundle, upstream };
    let id = &call.reg().id;
    let sent = call.shared.deps.port.import_bundle(id, unbundle, bundle.then_some(file.path()));
    sent.await?;
    transfer.delivered(&refs, &fetch.remote).await
}

/// The box's branch belongs to the one its pushes go to, once that is there.
fn upstream(worktree: &Worktree, remote: &RemoteName, refs: &[RefAt]) -> Option<Upstream> {
    let merge = worktree.published();
    let there = format!("refs/remotes/{remote}/{merge}");
    refs.iter().any(|at| at.name == there).then(|| Upstream {
        branch: worktree.branch.to_string(),
        remote: remote.to_string(),
        merge: merge.to_string(),
    })
}

/// Brings the box's branch into the transfer repository; its tip.
async fn sync(
    shared: &Shared,
    state: &BoxState,
    transfer: &Transfer<'_>,
) -> Result<ObjectId, TransferError> {
    transfer.ensure().await?;
    let branch = &transfer.worktree.branch;
    let haves = transfer.box_haves(branch).await?;
    let file = scratch(transfer.worktree)?;
    let port = &shared.deps.port;
    let (id, repo) = (&state.registration.id, &transfer.worktree.container_path);
    let claimed = port.export_bundle(id, repo, branch.as_str(), &haves, file.path()).await?;
    let none = || TransferError::NoCommit(branch.clone());
    transfer.take_in(branch, file.path(), &claimed.ok_or_else(none)?).await?;
    transfer.tip(branch).await?.ok_or_else(none)
}

/// Brings the box's branch to the user's repository.
pub(crate) async fn land(shared: &Shared, state: &BoxState, at: usize) -> Result<bool, String> {
    let _one = state.locks[at].lock().await;
    let worktree = &state.registration.worktrees[at];
    let landed = async {
        let transfer = shared.transfer(worktree)?;
        sync(shared, state, &transfer).await?;
        transfer.land(&worktree.branch).await
    };
    landed.await.map_err(|e: TransferError| e.to_string())
}

/// Keeps what the box has committed and its branch on the host does not have; the branch it is on.
pub(crate) async fn rescue(
    shared: &Shared,
    state: &BoxState,
    at: usize,
) -> Result<Option<String>, String> {
    let _one = state.locks[at].lock().await;
    let worktree = &state.registration.worktrees[at];
    let rescued = async { shared.transfer(worktree)?.rescue(&worktree.branch).await };
    rescued.await.map_err(|e: TransferError| e.to_string())
}

/// A file for a bundle, beside the repository, gone when dropped.
fn scratch(worktree: &Worktree) -> Result<tempfile::NamedTempFile, TransferError> {
    let dir = worktree.transfer.parent().unwrap_or(&worktree.transfer);
    tempfile::Builder::new()
        .suffix(".bundle")
        .tempfile_in(dir)
        .map_err(|source| TransferError::Write { path: dir.display().to_string(), source })
}

fn count(n: u32, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// “9f31c02 → 1a77be4”, or where something new begins.
fn moves(old: Option<&ObjectId>, new: &ObjectId) -> String {
    match old {
        Some(old) => format!("{} → {}", old.short(), new.short()),
        None => format!("new, at {}", new.short()),
    }
}
