//! `gh pr checkout`: a pull request in the user's own work tree, when they have switched that on.
//!
//! `gh` itself would run git in the work tree and go by its configuration. Here the pull request's
//! head comes into the transfer repository from the remote the box was made with, becomes the branch
//! `pr-<number>` of the user's repository if that is new or moves forward, and is switched to. Hooks
//! and file monitors stay out of all of it. It is asked every time.
//!
//! The surprising thing: the guards run twice, before the question and after the yes; minutes may
//! lie between, and the user works in that tree.

use super::ask;
use super::found::Found;
use super::login::Gh;
use crate::call::{Call, Stop};
use crate::integration;
use crate::process::{Limit, Output};
use crate::transfer::{Transfer, TransferError};
use connectors::connector::{Ask, fact};
use connectors::gh::{PrOp, PrRef};
use connectors::git::{ObjectId, RemoteName};
use protocol::exit;
use protocol::question::Tier;
use protocol::rpc::Envelope;
use protocol::text::{shortened, visible};
use serde_json::json;
use std::ffi::OsString;

fn failed(e: TransferError) -> Stop {
    Stop::fail(exit::FAILURE, format!("gh pr checkout: {e}"))
}

/// The work tree has nothing to lose, and no box's branch is checked out in it.
pub(super) async fn guard(call: &Call, at: usize) -> Result<(), Stop> {
    let unsafe_now =
        |why: String| Stop::fail(exit::CHECKOUT_UNSAFE, format!("gh pr checkout: {why}"));
    let worktree = &call.reg().worktrees[at];
    let transfer = call.shared.transfer(worktree).map_err(failed)?;
    let status = in_host(&transfer, &["status", "--porcelain"]).await?;
    if !status.ok() {
        let said = shortened(status.err().trim(), 300);
        return Err(unsafe_now(format!("the person's work tree cannot be looked at: {said}")));
    }
    if !status.stdout.is_empty() {
        let text = "the person's work tree has changes that are not committed; they come first.";
        return Err(unsafe_now(text.to_owned()));
    }
    let head = in_host(&transfer, &["symbolic-ref", "--quiet", "--short", "HEAD"]).await?.out();
    let head = head.trim();
    let of_a_box = call.shared.branches_at(&worktree.host_repo).iter().any(|b| b.as_str() == head);
    if of_a_box {
        let text = format!("the person's work tree is on {}, a box's branch.", visible(head));
        return Err(unsafe_now(text));
    }
    Ok(())
}

pub(super) async fn execute(
    call: &Call,
    gh: &Gh,
    at: usize,
    target: &PrRef,
) -> Result<Envelope, Stop> {
    let found = Found::find(call, gh, target, PrOp::Checkout).await?;
    let branch = format!("pr-{}", found.number);
    let folder = call.reg().worktrees[at].host_repo.display().to_string();
    let mut ask: Ask = ask::shown(gh.repo(), &found);
    ask.title = format!("Check out pull request #{} as {branch}", found.number);
    ask.facts.push(fact("Folder", folder));
    ask.tier = Tier::Sensitive;
    ask.warnings.push("puts the pull request's files into your own work tree".to_owned());
    let argv = ["git", "switch", &branch].map(str::to_owned);
    let draft = integration::draft(call, ask, &argv, found.head_ref_oid.to_string());
    let title = draft.title.clone();
    call.gate(draft, None).await?;
    let later = call.clone();
    let work = async move {
        let _one = later.state.locks[at].lock().await;
        guard(&later, at).await?;
        let transfer = later.shared.transfer(&later.reg().worktrees[at]).map_err(failed)?;
        let output = switch(&transfer, found.number, &found.head_ref_oid, &branch).await?;
        let reply = crate::call::envelope(&output);
        let data = json!({ "branch": branch, "oid": found.head_ref_oid.as_str() });
        Ok(later.done(title, data, reply).await)
    };
    call.finish(work).await
}

async fn switch(
    transfer: &Transfer<'_>,
    number: u64,
    shown: &ObjectId,
    branch: &str,
) -> Result<Output, Stop> {
    transfer.ensure().await.map_err(failed)?;
    let kept = format!("refs/pull/{number}");
    let from = format!("+refs/pull/{number}/head:{kept}");
    let flags = ["--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc"];
    let origin = RemoteName::default();
    let fetch = [&["fetch", "--quiet"], &flags[..], &["--", origin.as_str(), &from]].concat();
    let fetch: Vec<OsString> = fetch.into_iter().map(OsString::from).collect();
    let fetched = transfer.run(&fetch, Limit::NETWORK).await?;
    if !fetched.ok() {
        return Ok(fetched);
    }
    if transfer.resolve(&kept).await.map_err(failed)?.as_ref() != Some(shown) {
        let text = "gh pr checkout: changed since approval: the pull request has other commits now. Run it again.";
        return Err(Stop::denied(text));
    }
    let place = transfer.worktree.transfer.display().to_string();
    let to = format!("{kept}:refs/heads/{branch}");
    let local =
        ["-c", "protocol.allow=never", "-c", "protocol.file.allow=always", "fetch", "--quiet"];
    let take = [&local[..], &flags[..], &["--", &place, &to]].concat();
    let taken = in_host(transfer, &take).await?;
    if !taken.ok() {
        return Ok(taken);
    }
    // Large work trees take their time, and one half switched is worse than a long wait.
    let switch = ["switch", "--no-guess", "--no-recurse-submodules", branch].map(OsString::from);
    Ok(transfer.in_host_within(Limit::NETWORK, &switch).await?)
}

async fn in_host(transfer: &Transfer<'_>, args: &[&str]) -> Result<Output, Stop> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    Ok(transfer.in_host(&args).await?)
}
