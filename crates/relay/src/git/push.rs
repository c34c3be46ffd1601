//! A push to a remote: sync, preview, question, push.
//!
//! What is pushed is frozen before it is sent: a box that moves its branch or a tag while a person
//! reads changes nothing about it.

use super::{count, failed, moves, scratch, sync, upstream};
use crate::call::{Call, Origin, Stop, envelope};
use crate::registration::Worktree;
use crate::transfer::{self, Preview, Tag, Transfer};
use approvals::{Draft, Rememberable, Scope};
use connectors::git::Push;
use protocol::ctl::{RefAt, Unbundle};
use protocol::exit;
use protocol::question::{Fact, Tier};
use protocol::rpc::{Envelope, Pushed};
use protocol::text::visible;
use serde_json::json;

/// What a push would do.
struct Prepared {
    push: Push,
    preview: Preview,
    tags: Vec<Tag>,
    args: Vec<String>,
}

pub(super) async fn push(call: &Call, at: usize, push: Push) -> Result<Envelope, Stop> {
    let worktree = &call.reg().worktrees[at];
    let prepared = {
        let _one = call.state.locks[at].lock().await;
        prepare(call, worktree, push).await?
    };
    let Prepared { push, preview, tags, .. } = &prepared;
    if !preview.moves_branch() && tags.is_empty() {
        return Ok(Envelope { stderr: "Everything up-to-date\n".into(), ..Envelope::default() });
    }
    if preview.rewrites && !push.force_with_lease {
        let text = format!(
            "git push: rejected: {}/{} has commits this box does not have; run git pull, or git push --force-with-lease to replace them.",
            push.remote,
            worktree.published()
        );
        return Err(Stop::fail(exit::FAILURE, text));
    }
    let draft = draft(call, worktree, &prepared);
    // The same commits to the same place are one question; newer ones are another.
    let key = format!("{:?} {}", call.origin, draft.fingerprint());
    let later = call.clone();
    let work = move |times| async move {
        let draft = Draft { times, ..draft };
        let pushed = asked(&later, at, prepared, draft).await;
        later.settle(pushed).await
    };
    Ok(call.state.together.run(key, work).await)
}

async fn asked(call: &Call, at: usize, prepared: Prepared, draft: Draft) -> Result<Envelope, Stop> {
    let summary = draft.title.clone();
    let safe = safe(&call.reg().worktrees[at], &prepared);
    call.gate(draft, safe).await?;
    let later = call.clone();
    let work = async move {
        let reply = execute(&later, at, &prepared).await.unwrap_or_else(|stop| stop.envelope);
        let data = json!({ "argv": prepared.args, "oid": prepared.preview.new.as_str() });
        Ok(later.done(summary, data, reply).await)
    };
    call.finish(work).await
}

async fn prepare(call: &Call, worktree: &Worktree, push: Push) -> Result<Prepared, Stop> {
    let failed = failed("git push");
    let transfer = call.shared.transfer(worktree).map_err(&failed)?;
    let tip = sync(&call.shared, &call.state, &transfer).await.map_err(&failed)?;
    let tags = if push.tags { tags(call, &transfer, &push).await? } else { vec![] };
    let preview = transfer.preview(worktree.published(), &push.remote, tip, &tags).await;
    let preview = preview.map_err(&failed)?;
    let tips = transfer::tips(&preview.new, &tags);
    if let Some(path) = transfer.lfs_file(&tips, &push.remote).await.map_err(&failed)? {
        let text = format!(
            "git push: {path} is kept in Git LFS, and a push from a box cannot upload such files. Ask the person to push {} from the host.",
            worktree.branch
        );
        return Err(Stop::fail(exit::REFUSED, text));
    }
    let args = transfer::push_args(&push, &preview, &tags, worktree);
    Ok(Prepared { push, preview, tags, args })
}

/// The box's tags that the remote does not have.
async fn tags(call: &Call, transfer: &Transfer<'_>, push: &Push) -> Result<Vec<Tag>, Stop> {
    let failed = failed("git push");
    let known = transfer.remote_tags(&push.remote).await.map_err(&failed)?;
    let haves = transfer.box_haves(&transfer.worktree.branch).await.map_err(&failed)?;
    let file = scratch(transfer.worktree).map_err(&failed)?;
    let port = &call.shared.deps.port;
    let (id, repo) = (&call.reg().id, &transfer.worktree.container_path);
    let claimed = port.export_tags(id, repo, &known, &haves, file.path()).await;
    let claimed = claimed.map_err(|e| failed(e.into()))?;
    if claimed.more > 0 {
        let text = format!(
            "git push: this box has more than {} tags that {} does not have. Delete some of them, or ask the person to push them from the host.",
            protocol::ctl::MAX_TAGS,
            push.remote
        );
        return Err(Stop::fail(exit::REFUSED, text));
    }
    let tags = transfer.take_in_tags(file.path(), &claimed).await.map_err(&failed)?;
    match transfer::clashes(&tags, &known).first() {
        None => Ok(tags),
        Some(name) => {
            let text = format!(
                "git push: rejected: tag {name} is on {} already, at another object. Rename or delete the box's tag.",
                push.remote
            );
            Err(Stop::fail(exit::FAILURE, text))
        }
    }
}

/// Why a push may pass without a question in safe mode. Tags never do: releases are made of them.
fn safe(worktree: &Worktree, prepared: &Prepared) -> Option<&'static str> {
    let Prepared { push, preview, .. } = prepared;
    let own = worktree.is_on_its_own_branch();
    match (preview.ci.is_empty() && !push.tags, push.force_with_lease, own) {
        (true, _, true) => Some("own-branch push"),
        (true, false, false) => Some("sanctioned-branch push"),
        _ => None,
    }
}

async fn execute(call: &Call, at: usize, prepared: &Prepared) -> Result<Envelope, Stop> {
    let failed = failed("git push");
    let Prepared { push, preview, tags, args } = prepared;
    let worktree = &call.reg().worktrees[at];
    let _one = call.state.locks[at].lock().await;
    let transfer = call.shared.transfer(worktree).map_err(&failed)?;
    // To the addresses the question showed, whatever the box has been given since.
    transfer.ensure().await.map_err(&failed)?;
    transfer.freeze(&worktree.branch, &preview.new).await.map_err(&failed)?;
    transfer.freeze_tags(tags).await.map_err(&failed)?;
    let output = transfer.push(args).await.map_err(&failed)?;
    let done = output.ok() && !push.dry_run && preview.moves_branch();
    let to = worktree.published();
    if done {
        transfer.pushed(to, &push.remote, &preview.new).await.map_err(&failed)?;
        if call.origin == Origin::Person {
            tell_box(call, worktree, prepared).await;
        }
    }
    let pushed = done.then(|| Pushed {
        remote: push.remote.to_string(),
        branch: to.to_string(),
        local: (*to != worktree.branch).then(|| worktree.branch.to_string()),
        oid: preview.new.to_string(),
    });
    Ok(Envelope { pushed, ..envelope(&output) })
}

/// A box that did not ask for the push hears of it all the same: its `git status` knows the remote.
async fn tell_box(call: &Call, worktree: &Worktree, prepared: &Prepared) {
    let remote = &prepared.push.remote;
    let name = format!("refs/remotes/{remote}/{}", worktree.published());
    let refs = vec![RefAt { name, oid: prepared.preview.new.to_string() }];
    let upstream = upstream(worktree, remote, &refs);
    let repo = Some(worktree.container_path.clone());
    let news = Unbundle { repo, refs, upstream, ..Unbundle::default() };
    if let Err(e) = call.shared.deps.port.import_bundle(&call.reg().id, news, None).await {
        tracing::debug!("box {} was not told of a push: {e}", call.reg().name);
    }
}

fn draft(call: &Call, worktree: &Worktree, prepared: &Prepared) -> Draft {
    let Prepared { push, preview, tags, args } = prepared;
    let target =
        worktree.remotes.get(&push.remote).map(crate::RemoteUrls::shown).unwrap_or_default();
    // The whole address, so that a rule for one place never fits another that reads alike.
    let address = worktree.remotes.get(&push.remote).map_or("", |urls| urls.push.as_str());
    let address = secrets::redact(address);
    let branch = worktree.published();
    let lease = push.force_with_lease;
    let tier = match (preview.rewrites, push.tags) {
        (true, _) => Tier::Irreversible,
        (false, true) => Tier::Sensitive,
        (false, false) => Tier::Routine,
    };
    let mut draft = call.draft(tier, title(push, worktree, preview, tags), &target);
    draft.warnings = warnings(preview);
    draft.evidence.facts = facts(worktree, preview, tags);
    draft.evidence.commits.clone_from(&preview.commits);
    let shown = u32::try_from(preview.commits.len()).unwrap_or(0);
    draft.evidence.more_commits = preview.count.saturating_sub(shown);
    draft.evidence.summary = (preview.files > 0).then(|| {
        format!("{}, +{} −{}", count(preview.files, "file"), preview.added, preview.removed)
    });
    // What CI runs with the project's secrets is looked at every time, and so are tags; and a yes
    // to trying is no yes to doing.
    let remembers = preview.ci.is_empty() && !push.dry_run && !push.tags;
    draft.remember = remembers.then(|| Rememberable {
        only: None,
        exact: Scope {
            key: format!("{address} {branch} lease={lease}"),
            what: format!("push to {branch} of {target}"),
        },
        kind: worktree.is_on_its_own_branch().then(|| Scope {
            key: format!("{address} own-branch lease={lease}"),
            what: format!("push to its own branch of {target}"),
        }),
    });
    draft.argv = std::iter::once("git".to_owned()).chain(args.iter().map(|a| visible(a))).collect();
    let tagged: Vec<String> = tags.iter().map(|tag| format!("{} {}", tag.name, tag.oid)).collect();
    draft.plan = format!("{} {:?} {tagged:?}", preview.new, preview.old);
    draft
}

fn facts(worktree: &Worktree, preview: &Preview, tags: &[Tag]) -> Vec<Fact> {
    let fact = |label: String, value: String| Fact { label, value };
    let branch = preview.moves_branch().then(|| {
        let to =
            format!("{} ({})", worktree.published(), moves(preview.old.as_ref(), &preview.new));
        fact("branch".to_owned(), to)
    });
    let tags = tags.iter().map(|tag| fact(visible(&format!("tag {}", tag.name)), tag.shown()));
    branch.into_iter().chain(tags).collect()
}

fn warnings(preview: &Preview) -> Vec<String> {
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
    warnings
}

fn title(push: &Push, worktree: &Worktree, preview: &Preview, tags: &[Tag]) -> String {
    let place = format!("{}/{}", push.remote, worktree.published());
    let tagged = u32::try_from(tags.len()).unwrap_or(u32::MAX);
    let and_tags =
        if tags.is_empty() { String::new() } else { format!(" and push {}", count(tagged, "tag")) };
    let what = match (preview.count, preview.rewrites) {
        _ if !preview.moves_branch() => format!("Push {} to {}", count(tagged, "tag"), push.remote),
        (0, true) => format!("Move {place} back to an older commit{and_tags}"),
        (n, true) => format!("Replace {place} with {}{and_tags}", count(n, "commit")),
        (0, false) => format!("Create {place} without new commits{and_tags}"),
        (n, false) => format!("Push {} to {place}{and_tags}", count(n, "commit")),
    };
    if push.dry_run { format!("{what} (dry run)") } else { what }
}
