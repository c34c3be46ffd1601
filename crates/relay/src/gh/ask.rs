//! What a person is asked before something is written at GitHub.

use super::found::{Found, Seen};
use connectors::connector::{Ask, Scope, Scopes, fact};
use connectors::gh::{Api, Create, How, Place, Pr, RepoSlug, Run, RunRef, Verdict};
use connectors::git::ObjectId;
use protocol::question::{Fact, Tier};

/// Checks named in a question.
const SHOWN_CHECKS: usize = 10;

fn scope(key: String, what: String) -> Scope {
    Scope { key, what }
}

/// A new pull request. `create` is complete.
pub(super) fn create(
    repo: &RepoSlug,
    create: &Create,
    explicit: bool,
    at: Option<&ObjectId>,
) -> Ask {
    let place = repo.shown();
    let base = create.base.as_ref().map(ToString::to_string).unwrap_or_default();
    let head = create.head.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut facts = vec![
        fact("Title", create.title.clone().unwrap_or_default()),
        fact("Branches", branches(&base, &head)),
    ];
    facts.extend(at.map(|oid| fact("Head commit", oid.as_str())));
    facts.extend(create.draft.then(|| fact("Draft", "yes")));
    let lists = [
        ("Labels", &create.labels),
        ("Reviewers", &create.reviewers),
        ("Assignees", &create.assignees),
    ];
    let given = lists.into_iter().filter(|(_, values)| !values.is_empty());
    facts.extend(given.map(|(label, values)| fact(label, values.join(", "))));
    let exact = scope(
        format!("{place} {head} into {base}"),
        format!("open pull requests from {head} into {base} of {place}"),
    );
    let own = scope(
        format!("{place} own-branch"),
        format!("open pull requests from its own branch of {place}"),
    );
    Ask {
        tier: Tier::Routine,
        title: format!("Open a pull request from {head} into {base}"),
        target: place,
        facts,
        body: create.body.clone(),
        warnings: Vec::new(),
        remember: Some(Scopes { exact, kind: (!explicit).then_some(own) }),
    }
}

/// A question that shows a pull request and does not yet say what for.
pub(super) fn shown(repo: &RepoSlug, found: &Found) -> Ask {
    Ask {
        tier: Tier::Sensitive,
        title: format!("Change pull request #{}", found.number),
        target: repo.shown(),
        facts: facts(found),
        body: None,
        warnings: Vec::new(),
        remember: None,
    }
}

/// Something about a pull request that is there.
pub(super) fn on_pr(repo: &RepoSlug, pr: &Pr, found: &Found) -> Ask {
    let (place, n) = (repo.shown(), found.number);
    let mut ask = shown(repo, found);
    let remember = |doing: &str| {
        let exact =
            scope(format!("{place} #{n} {doing}"), format!("{doing} pull request #{n} of {place}"));
        Some(Scopes { exact, kind: None })
    };
    match pr {
        Pr::Comment(_, body) => {
            ask.tier = Tier::Routine;
            ask.title = format!("Comment on pull request #{n}");
            ask.body = Some(body.clone());
            let any =
                scope(format!("{place} any"), format!("comment on any pull request of {place}"));
            ask.remember = remember("comment on").map(|s| Scopes { kind: Some(any), ..s });
        }
        Pr::Review(_, verdict, body) => {
            let (doing, title) = match verdict {
                Verdict::Approve => ("approve", format!("Approve pull request #{n}")),
                Verdict::RequestChanges => {
                    ("request changes on", format!("Request changes on pull request #{n}"))
                }
                Verdict::Comment => ("review", format!("Review pull request #{n} with a comment")),
            };
            ask.title = title;
            ask.body.clone_from(body);
            ask.remember = remember(doing);
            // What was approved may be approved again; what it becomes later may not.
            if let (Verdict::Approve, Some(scopes)) = (verdict, &mut ask.remember) {
                scopes.exact.key.push_str(&format!(" {}", found.head_ref_oid));
                scopes.exact.what.push_str(" at the commit it is at now");
            }
        }
        Pr::Close(_, delete) => {
            ask.title = format!("Close pull request #{n}");
            ask.remember = remember("close");
            if *delete {
                deletes(&mut ask, found);
            }
        }
        Pr::Reopen(_) => {
            ask.title = format!("Reopen pull request #{n}");
            ask.remember = remember("reopen");
        }
        Pr::Merge(_, how, delete) => merge(&mut ask, found, *how, *delete),
        Pr::View(..)
        | Pr::List(_)
        | Pr::Diff(..)
        | Pr::Checks(..)
        | Pr::Create(_)
        | Pr::Checkout(_) => {}
    }
    ask
}

fn facts(found: &Found) -> Vec<Fact> {
    let mut facts = vec![
        fact("Pull request", found.title.clone()),
        fact("Branches", branches(&found.base_ref_name, &found.head())),
        fact("Head commit", found.head_ref_oid.as_str()),
    ];
    if found.state != "OPEN" {
        facts.push(fact("State", found.state.to_lowercase()));
    }
    facts
}

fn branches(base: &str, head: &str) -> String {
    format!("{base} ← {head}")
}

fn deletes(ask: &mut Ask, found: &Found) {
    ask.tier = Tier::Irreversible;
    // gh leaves a fork's branch alone.
    if !found.is_from_a_fork() {
        ask.title.push_str(&format!(" and delete {}", found.head_ref_name));
        ask.warnings.push(format!("deletes the branch {} at {}", found.head_ref_name, ask.target));
    }
}

fn merge(ask: &mut Ask, found: &Found, how: How, delete: bool) {
    ask.tier = Tier::Irreversible;
    ask.title = format!("Merge pull request #{} into {}", found.number, found.base_ref_name);
    let how = match how {
        How::Squash => "squash into one commit",
        How::Merge => "merge commit",
        How::Rebase => "rebase",
    };
    let checks = found.checks();
    ask.facts.push(fact("How", how));
    ask.facts.push(fact("Checks", said(checks.passed, checks.running, checks.failed.len())));
    let states = [("Review", &found.review_decision), ("Merge state", &found.merge_state_status)];
    let known = states.into_iter().filter(|(_, state)| !state.is_empty());
    ask.facts
        .extend(known.map(|(label, state)| fact(label, state.to_lowercase().replace('_', " "))));
    if !checks.failed.is_empty() {
        let names: Vec<String> = checks.failed.iter().take(SHOWN_CHECKS).cloned().collect();
        let more = checks.failed.len().saturating_sub(SHOWN_CHECKS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        ask.warnings.push(format!("checks failed: {}{more}", names.join(", ")));
    }
    if checks.running > 0 {
        ask.warnings.push("checks are still running".to_owned());
    }
    if found.is_draft {
        ask.warnings.push("is still a draft".to_owned());
    }
    if delete {
        deletes(ask, found);
    }
}

fn said(passed: usize, running: usize, failed: usize) -> String {
    let parts = [(passed, "passed"), (failed, "failed"), (running, "running")];
    let some: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    if some.is_empty() { "none".to_owned() } else { some.join(", ") }
}

pub(super) fn rerun(repo: &RepoSlug, run: &Run, seen: &Seen) -> Ask {
    let place = repo.shown();
    let (what, failed) = match run {
        Run::Rerun(RunRef::Run(id), failed) | Run::Rerun(RunRef::Job(id), failed @ true) => {
            (format!("workflow run {id}"), *failed)
        }
        Run::Rerun(RunRef::Job(id), false) => (format!("job {id}"), false),
        Run::List(_) | Run::View(..) => ("a workflow run".to_owned(), false),
    };
    let only = if failed { " (failed jobs)" } else { "" };
    let facts = [
        ("Name", Some(&seen.name)),
        ("Workflow", seen.workflow_name.as_ref()),
        ("Of", seen.display_title.as_ref()),
        ("Branch", seen.head_branch.as_ref()),
        ("Commit", seen.head_sha.as_ref()),
        ("State", seen.conclusion.as_ref().or(seen.status.as_ref())),
    ];
    let facts = facts.into_iter().filter_map(|(label, value)| {
        value.filter(|value| !value.is_empty()).map(|value| fact(label, value.clone()))
    });
    Ask {
        tier: Tier::Routine,
        title: format!("Run {what} again{only}"),
        target: place.clone(),
        facts: facts.collect(),
        body: None,
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(format!("{place} {what}"), format!("run {what} of {place} again")),
            kind: Some(scope(
                format!("{place} any"),
                format!("run any workflow run of {place} again"),
            )),
        }),
    }
}

/// A review comment.
pub(super) fn api(repo: &RepoSlug, api: &Api) -> Ask {
    let (place, n) = (repo.shown(), api.place.pr());
    let title = match api.place {
        Place::Comments { .. } => format!("Comment on the code of pull request #{n}"),
        Place::Replies { to, .. } => format!("Answer review comment {to} of pull request #{n}"),
    };
    let plain = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let facts = api.body.iter().filter(|(key, _)| *key != "body");
    Ask {
        tier: Tier::Routine,
        title,
        target: place.clone(),
        facts: facts.map(|(key, value)| fact(&key.replace('_', " "), plain(value))).collect(),
        body: Some(api.text().to_owned()),
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(
                format!("{place} #{n}"),
                format!("comment on the code of pull request #{n} of {place}"),
            ),
            kind: Some(scope(
                format!("{place} any"),
                format!("comment on the code of any pull request of {place}"),
            )),
        }),
    }
}
