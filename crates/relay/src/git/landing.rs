//! `git push --host-only`: the box's commits on a branch of the user's own repository.
//!
//! Nothing is published. A branch below `agentbox/` that is the box's own, or new, changes without a
//! question, as it does by itself after every commit; every other branch is the user's and asks. A
//! branch somebody has checked out is never moved under them.

use super::{count, failed, moves, sync};
use crate::call::{Call, Stop};
use crate::registration::Worktree;
use crate::transfer::{self, Landing};
use approvals::{Draft, Rememberable, Scope};
use connectors::git::{BranchName, Land};
use protocol::exit;
use protocol::question::{Fact, Tier};
use protocol::rpc::Envelope;
use protocol::text::visible;
use serde_json::json;

pub(super) async fn land(call: &Call, at: usize, land: Land) -> Result<Envelope, Stop> {
    let worktree = &call.reg().worktrees[at];
    let dest = land.name.clone().unwrap_or_else(|| worktree.branch.clone());
    let landing = {
        let _one = call.state.locks[at].lock().await;
        prepare(call, worktree, &dest).await?
    };
    if landing.old.as_ref() == Some(&landing.new) {
        return Ok(available(call, &dest, &land));
    }
    let own = dest == worktree.branch && worktree.has_own_branch();
    if landing.lost > 0 && !land.force && !(own && landing.ours) {
        let text = format!(
            "git push --host-only: rejected: branch {dest} of the host has {} this box does not have; use another name, or --force to replace them.",
            count(landing.lost, "commit")
        );
        return Err(Stop::fail(exit::FAILURE, text));
    }
    let draft = draft(call, worktree, &dest, &land, &landing);
    let summary = draft.title.clone();
    if asks(call, worktree, &dest, &landing) {
        call.gate(draft, None).await?;
    }
    let later = call.clone();
    let work = async move {
        let reply = execute(&later, at, &dest, &land, &landing).await;
        let reply = reply.unwrap_or_else(|stop| stop.envelope);
        let data = json!({ "branch": dest.as_str(), "oid": landing.new.as_str() });
        Ok(later.done(summary, data, reply).await)
    };
    call.finish(work).await
}

async fn prepare(call: &Call, worktree: &Worktree, dest: &BranchName) -> Result<Landing, Stop> {
    let failed = failed("git push --host-only");
    let transfer = call.shared.transfer(worktree).map_err(&failed)?;
    if transfer.in_use(dest).await.map_err(&failed)? {
        return Err(in_use(dest));
    }
    let tip = sync(&call.shared, &call.state, &transfer).await.map_err(&failed)?;
    transfer.landing(dest, tip).await.map_err(&failed)
}

fn in_use(dest: &BranchName) -> Stop {
    let text = format!(
        "git push --host-only: branch {dest} is checked out on the host. Use another name with --as."
    );
    Stop::fail(exit::REFUSED, text)
}

/// Everything but the box's own branch: a new name is the person's to give, and commits that somebody
/// else has put there are not the box's.
fn asks(call: &Call, worktree: &Worktree, dest: &BranchName, landing: &Landing) -> bool {
    let others = call.shared.branches_of_others(&call.reg().id, worktree);
    if *dest != worktree.branch
        || !worktree.has_own_branch()
        || others.iter().any(|other| other.collides(dest))
    {
        return true;
    }
    !(landing.old.is_none() || landing.ours || landing.lost == 0)
}

async fn execute(
    call: &Call,
    at: usize,
    dest: &BranchName,
    land: &Land,
    landing: &Landing,
) -> Result<Envelope, Stop> {
    let failed = failed("git push --host-only");
    let worktree = &call.reg().worktrees[at];
    let _one = call.state.locks[at].lock().await;
    let transfer = call.shared.transfer(worktree).map_err(&failed)?;
    if transfer.in_use(dest).await.map_err(&failed)? {
        return Err(in_use(dest));
    }
    transfer.freeze(&worktree.branch, &landing.new).await.map_err(&failed)?;
    let written = transfer.write_host(dest, &landing.new, landing.old.as_ref()).await;
    if !written.map_err(&failed)? {
        let text = format!(
            "git push --host-only: branch {dest} changed since approval; nothing was done."
        );
        return Err(Stop::denied(text));
    }
    Ok(available(call, dest, land))
}

fn available(call: &Call, dest: &BranchName, land: &Land) -> Envelope {
    let text = format!("branch {dest} available in {}\n", visible(&call.reg().project));
    let stdout = if land.common.quiet { String::new() } else { text };
    Envelope { stdout, ..Envelope::default() }
}

fn draft(
    call: &Call,
    worktree: &Worktree,
    dest: &BranchName,
    land: &Land,
    landing: &Landing,
) -> Draft {
    let repository = visible(&worktree.host_repo.display().to_string());
    let args = transfer::write_args(dest, &landing.new, landing.old.as_ref());
    // The box chose the name; a person must see every sign of it.
    let dest = &visible(dest.as_str());
    let over = land.force && landing.old.is_some();
    let tier = if over || landing.lost > 0 { Tier::Irreversible } else { Tier::Sensitive };
    let mut draft = call.draft(tier, title(dest, landing), &repository);
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    let to = format!("{dest} ({})", moves(landing.old.as_ref(), &landing.new));
    draft.evidence.facts.push(fact("local branch", to));
    for commit in &landing.lost_commits {
        draft.evidence.facts.push(fact("loses", format!("{} {}", commit.oid, commit.subject)));
    }
    if landing.lost > 0 {
        let lost = count(landing.lost, "commit");
        draft.warnings.push(format!("loses {lost} of {dest}"));
    }
    draft.evidence.commits.clone_from(&landing.commits);
    let shown = u32::try_from(landing.commits.len()).unwrap_or(0);
    draft.evidence.more_commits = landing.count.saturating_sub(shown);
    draft.remember = (!land.force).then(|| Rememberable {
        only: None,
        exact: Scope {
            key: format!("{repository} {dest}"),
            what: format!("add its commits to local branch {dest} of {repository}"),
        },
        kind: None,
    });
    let command = ["git".to_owned(), "-C".to_owned(), repository];
    draft.argv = command.into_iter().chain(args.iter().map(|a| visible(a))).collect();
    draft.plan = format!("{} {:?}", landing.new, landing.old);
    draft
}

fn title(dest: &str, landing: &Landing) -> String {
    let commits = count(landing.count, "commit");
    match (&landing.old, landing.count) {
        (None, _) => format!("Make local branch {dest} with {commits}"),
        (Some(_), _) if landing.lost > 0 => format!("Replace local branch {dest} with {commits}"),
        (Some(_), _) => format!("Add {commits} to local branch {dest}"),
    }
}
