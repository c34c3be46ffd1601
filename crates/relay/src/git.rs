//! `git.push` and `git.fetch`: what happens once a request has become a plan.

use crate::ports::Entry;
use crate::process::ProcessError;
use crate::registration::Worktree;
use crate::server::{BoxState, Shared};
use crate::transfer::{self, Preview, Transfer, TransferError};
use approvals::{Draft, Rememberable};
use connectors::git::{Fetch, ObjectId, Push};
use protocol::ctl::Unbundle;
use protocol::exit;
use protocol::question::{Outcome, Tier};
use protocol::rpc::{Envelope, Pushed};
use serde_json::json;
use std::sync::Arc;

/// Why an operation ended early.
enum Stop {
    /// The host could not do its part.
    Failed(i32, String),
}

impl From<TransferError> for Stop {
    fn from(e: TransferError) -> Self {
        match &e {
            TransferError::Process(ProcessError::Missing(_)) => {
                Stop::Failed(exit::NO_PROGRAM, e.to_string())
            }
            _ => Stop::Failed(exit::FAILURE, e.to_string()),
        }
    }
}

/// Pushes the box's branch: sync, preview, question, push.
pub(crate) async fn push(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    at: usize,
    push: Push,
) -> Envelope {
    match try_push(shared, state, at, push).await {
        Ok(envelope) => envelope,
        Err(Stop::Failed(code, why)) => Envelope::fail(code, format!("git push: {why}")),
    }
}

async fn try_push(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    at: usize,
    push: Push,
) -> Result<Envelope, Stop> {
    let worktree = &state.registration.worktrees[at];
    let preview = {
        let _one = state.locks[at].lock().await;
        let transfer = shared.transfer(worktree);
        let tip = sync(shared, state, &transfer).await?;
        transfer.preview(&worktree.branch, &push.remote, tip).await?
    };
    if preview.old.as_ref() == Some(&preview.new) {
        return Ok(Envelope { stderr: "Everything up-to-date\n".into(), ..Envelope::default() });
    }
    if preview.rewrites && !push.force_with_lease {
        let text = format!(
            "git push: rejected: {}/{} has commits this box does not have; run git pull, or git push --force-with-lease to replace them.",
            push.remote, worktree.branch
        );
        return Ok(Envelope::fail(exit::FAILURE, text));
    }
    let lease = push.force_with_lease.then_some(preview.old.as_ref());
    let args = transfer::push_args(&push.to_argv(), lease, &push.remote, &worktree.branch);
    let draft = draft(state, worktree, &push, &preview, &args);
    let summary = draft.title.clone();
    match shared.deps.broker.ask(draft).await {
        Ok(outcome) if outcome.is_yes() => {}
        Ok(outcome) => return Ok(denied(&outcome, shared.deps.question_timeout)),
        Err(e) => return Ok(Envelope::fail(exit::DENIED, format!("git push: {e}; denied."))),
    }
    // From here on the person has said yes: the box leaving must not leave a push half done.
    let (shared, state) = (shared.clone(), state.clone());
    let tasks = shared.tasks.clone();
    let task = tasks.spawn(async move {
        execute_push(&shared, &state, at, &push, &preview.new, args, summary).await
    });
    task.await
        .unwrap_or_else(|e| Err(Stop::Failed(exit::FAILURE, format!("the push broke off: {e}"))))
}

async fn execute_push(
    shared: &Shared,
    state: &BoxState,
    at: usize,
    push: &Push,
    oid: &ObjectId,
    args: Vec<String>,
    summary: String,
) -> Result<Envelope, Stop> {
    let worktree = &state.registration.worktrees[at];
    let _one = state.locks[at].lock().await;
    let transfer = shared.transfer(worktree);
    transfer.freeze(&worktree.branch, oid).await?;
    let output = transfer.push(&args).await?;
    let done = output.ok() && !push.dry_run;
    if done {
        transfer.pushed(&worktree.branch, &push.remote, oid).await?;
    }
    let entry = Entry {
        box_id: Some(state.registration.id.clone()),
        kind: "executed",
        summary: format!("{summary}: {}", if output.ok() { "done" } else { "failed" }),
        data: json!({ "method": "git.push", "argv": args, "oid": oid.as_str(), "exitCode": output.code }),
    };
    // The push has happened; a trail that cannot be written is told, not hidden.
    let untold = shared.deps.trail.record(entry).await.err();
    let mut stderr = secrets::redact(&output.err());
    if let Some(e) = untold {
        stderr.push_str(&format!("relay: {e}\n"));
    }
    let pushed = done.then(|| Pushed {
        remote: push.remote.to_string(),
        branch: worktree.branch.to_string(),
        oid: oid.to_string(),
    });
    Ok(Envelope { exit_code: output.code, stdout: secrets::redact(&output.out()), stderr, pushed })
}

/// Fetches a remote and tells the box what is there.
pub(crate) async fn fetch(shared: &Shared, state: &BoxState, at: usize, fetch: Fetch) -> Envelope {
    match try_fetch(shared, state, at, fetch).await {
        Ok(envelope) => envelope,
        Err(Stop::Failed(code, why)) => Envelope::fail(code, format!("git fetch: {why}")),
    }
}

async fn try_fetch(
    shared: &Shared,
    state: &BoxState,
    at: usize,
    fetch: Fetch,
) -> Result<Envelope, Stop> {
    let worktree = &state.registration.worktrees[at];
    let _one = state.locks[at].lock().await;
    let transfer = shared.transfer(worktree);
    transfer.ensure().await?;
    let mut flags = fetch.to_argv();
    if fetch.tags.is_none() {
        flags.push("--no-tags");
    }
    let output = transfer.fetch(&flags, &fetch.remote).await?;
    if output.ok() && !fetch.dry_run {
        deliver(shared, state, &transfer, &fetch).await?;
    }
    let entry = Entry {
        box_id: Some(state.registration.id.clone()),
        kind: "executed",
        summary: format!("Fetch {}", fetch.remote),
        data: json!({ "method": "git.fetch", "flags": flags, "exitCode": output.code }),
    };
    shared
        .deps
        .trail
        .record(entry)
        .await
        .map_err(|e| Stop::Failed(exit::FAILURE, e.to_string()))?;
    Ok(Envelope {
        exit_code: output.code,
        stdout: secrets::redact(&output.out()),
        stderr: secrets::redact(&output.err()),
        pushed: None,
    })
}

async fn deliver(
    shared: &Shared,
    state: &BoxState,
    transfer: &Transfer<'_>,
    fetch: &Fetch,
) -> Result<(), Stop> {
    let refs = transfer.known(&fetch.remote, fetch.tags == Some(true)).await?;
    let file = scratch(transfer.worktree)?;
    let bundle = transfer.bundle_for_box(&refs, &fetch.remote, file.path()).await?;
    let prune = fetch.prune.then(|| format!("refs/remotes/{}/", fetch.remote));
    let unbundle = Unbundle { refs: refs.clone(), prune, bundle };
    let id = &state.registration.id;
    let sent = shared.deps.port.import_bundle(id, unbundle, bundle.then_some(file.path()));
    sent.await.map_err(|e| Stop::Failed(exit::FAILURE, e.to_string()))?;
    transfer.delivered(&refs, &fetch.remote).await?;
    Ok(())
}

/// Brings the box's branch into the transfer repository; its tip.
async fn sync(
    shared: &Shared,
    state: &BoxState,
    transfer: &Transfer<'_>,
) -> Result<ObjectId, Stop> {
    transfer.ensure().await?;
    let branch = &transfer.worktree.branch;
    let haves = transfer.box_haves(branch).await?;
    let file = scratch(transfer.worktree)?;
    let port = &shared.deps.port;
    let claimed = port.export_bundle(&state.registration.id, branch.as_str(), &haves, file.path());
    let claimed = claimed.await.map_err(|e| Stop::Failed(exit::FAILURE, e.to_string()))?;
    let none = || Stop::Failed(exit::FAILURE, format!("the box has no commit on {branch} yet."));
    transfer.take_in(branch, file.path(), &claimed.ok_or_else(none)?).await?;
    transfer.tip(branch).await?.ok_or_else(none)
}

/// Brings the box's branch to the user's repository.
pub(crate) async fn land(shared: &Shared, state: &BoxState, at: usize) -> Result<bool, String> {
    let _one = state.locks[at].lock().await;
    let worktree = &state.registration.worktrees[at];
    let transfer = shared.transfer(worktree);
    let landed = async {
        sync(shared, state, &transfer).await?;
        Ok(transfer.land(&worktree.branch).await?)
    };
    landed.await.map_err(|Stop::Failed(_, why)| why)
}

/// A file for a bundle, beside the repository, gone when dropped.
fn scratch(worktree: &Worktree) -> Result<tempfile::NamedTempFile, Stop> {
    let dir = worktree.transfer.parent().unwrap_or(&worktree.transfer);
    tempfile::Builder::new()
        .suffix(".bundle")
        .tempfile_in(dir)
        .map_err(|e| Stop::Failed(exit::FAILURE, format!("cannot write in {}: {e}", dir.display())))
}

fn draft(
    state: &BoxState,
    worktree: &Worktree,
    push: &Push,
    preview: &Preview,
    args: &[String],
) -> Draft {
    let reg = &state.registration;
    let target =
        worktree.remotes.get(&push.remote).map(crate::RemoteUrls::shown).unwrap_or_default();
    // The whole address, so that a rule for one place never fits another that reads alike.
    let address = worktree.remotes.get(&push.remote).map_or("", |urls| urls.push.as_str());
    let address = secrets::redact(address);
    let mut warnings = Vec::new();
    if preview.rewrites {
        warnings.push("rewrites history: commits on the remote branch are replaced".to_owned());
    }
    if !preview.ci.is_empty() {
        let more = if preview.more_ci > 0 {
            format!(" and {} more", preview.more_ci)
        } else {
            String::new()
        };
        warnings.push(format!("changes CI: {}{more}", preview.ci.join(", ")));
    }
    let summary = (preview.files > 0).then(|| {
        format!("{}, +{} −{}", count(preview.files, "file"), preview.added, preview.removed)
    });
    let shown = u32::try_from(preview.commits.len()).unwrap_or(0);
    let branch = &worktree.branch;
    Draft {
        box_id: reg.id.clone(),
        box_name: reg.name.clone(),
        project: reg.project.clone(),
        method: "git.push".into(),
        tier: if preview.rewrites { Tier::Irreversible } else { Tier::Normal },
        title: title(push, worktree, preview),
        // What CI runs with the project's secrets is looked at every time; and a yes to trying is
        // no yes to doing.
        remember: (preview.ci.is_empty() && !push.dry_run).then(|| Rememberable {
            scope: format!("{address} {branch} lease={}", push.force_with_lease),
            what: format!("push to {branch} of {target}"),
        }),
        target,
        commits: preview.commits.clone(),
        more_commits: preview.count.saturating_sub(shown),
        summary,
        warnings,
        argv: std::iter::once("git".to_owned()).chain(args.iter().cloned()).collect(),
        plan: format!("{} {:?}", preview.new, preview.old),
    }
}

fn title(push: &Push, worktree: &Worktree, preview: &Preview) -> String {
    let place = format!("{}/{}", push.remote, worktree.branch);
    let what = match (preview.count, preview.rewrites) {
        (0, true) => format!("Move {place} back to an older commit"),
        (n, true) => format!("Replace {place} with {}", count(n, "commit")),
        (0, false) => format!("Create {place} without new commits"),
        (n, false) => format!("Push {} to {place}", count(n, "commit")),
    };
    if push.dry_run { format!("{what} (dry run)") } else { what }
}

fn count(n: u32, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn denied(outcome: &Outcome, timeout: std::time::Duration) -> Envelope {
    let text = match outcome {
        Outcome::Expired => format!("no answer within {} — denied", minutes(timeout)),
        Outcome::TooMany => "too many approval requests from this box; wait and retry".to_owned(),
        Outcome::HostStopped => {
            "the host is stopping; nothing was pushed. Run the command again.".to_owned()
        }
        _ => "denied by user".to_owned(),
    };
    Envelope::fail(exit::DENIED, text)
}

fn minutes(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}
