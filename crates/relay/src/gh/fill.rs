//! Title and body of a new pull request from its commits, for `--fill`.
//!
//! They are read from the transfer repository, as the remote had them after the last push or fetch.
//! `gh` would read them from a repository it runs in, and there is none it may run in.

use crate::call::{Call, Stop};
use crate::process::Limit;
use crate::transfer::{Transfer, TransferError};
use connectors::gh::{Head, PrOp};
use connectors::git::{BranchName, RemoteName};
use protocol::exit;
use std::ffi::OsString;

/// More commits than this are not told one by one.
const MOST_COMMITS: usize = 100;
/// GitHub takes no longer ones.
const MOST_TITLE: usize = 250;
const MOST_BODY: usize = 60_000;

pub(super) async fn from_commits(
    call: &Call,
    at: usize,
    base: &BranchName,
    head: &Head,
) -> Result<(String, String), Stop> {
    let surface = PrOp::Create.surface();
    let failed = |e: TransferError| Stop::fail(exit::FAILURE, format!("{surface}: {e}"));
    let messages = {
        let _one = call.state.locks[at].lock().await;
        let transfer = call.shared.transfer(&call.reg().worktrees[at]).map_err(failed)?;
        transfer.ensure().await.map_err(failed)?;
        messages(&transfer, base, &head.branch).await.map_err(failed)?
    };
    if messages.is_empty() {
        let text = format!(
            "{surface}: no commit of {head} beyond {base} is known here; run 'git push', or give '--title' and '--body'."
        );
        return Err(Stop::fail(exit::FAILURE, text));
    }
    Ok(said(&head.branch, &messages))
}

/// Subject and body of each commit, oldest first.
async fn messages(
    transfer: &Transfer<'_>,
    base: &BranchName,
    head: &BranchName,
) -> Result<Vec<(String, String)>, TransferError> {
    let origin = RemoteName::default();
    let seen = |branch: &BranchName| format!("refs/remotes/{origin}/{branch}");
    let Some(tip) = transfer.resolve(&seen(head)).await? else { return Ok(Vec::new()) };
    let from = transfer.resolve(&seen(base)).await?.or_else(|| transfer.worktree.base.clone());
    let most = format!("-n{MOST_COMMITS}");
    let mut args = vec![
        "log",
        "-z",
        "--reverse",
        "--no-show-signature",
        "--format=%s%x0a%b",
        &most,
        tip.as_str(),
    ];
    if let Some(from) = &from {
        args.extend(["--not", from.as_str()]);
    }
    let args: Vec<OsString> = args.into_iter().map(OsString::from).collect();
    let output = transfer.run(&args, Limit::LOCAL).await?;
    let text = output.out();
    let split = |record: &str| {
        let (subject, body) = record.split_once('\n').unwrap_or((record, ""));
        (line(subject), body.trim().to_owned())
    };
    Ok(text.split('\0').filter(|r| !r.trim().is_empty()).map(split).collect())
}

/// One commit speaks for itself; of several the branch gives the name and they make the list.
fn said(branch: &BranchName, messages: &[(String, String)]) -> (String, String) {
    if let [(subject, body)] = messages {
        return (cut(subject, MOST_TITLE), cut(body, MOST_BODY));
    }
    let name = branch.as_str();
    let name = name.strip_prefix("agentbox/").unwrap_or(name).replace(['-', '_'], " ");
    let list: String = messages.iter().map(|(subject, _)| format!("- {subject}\n")).collect();
    (cut(&name, MOST_TITLE), cut(&list, MOST_BODY))
}

fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_or_a_list() {
        let branch = "agentbox/fix-the_login".parse().unwrap();
        let one = [("Fix it".to_owned(), "Because.".to_owned())];
        assert_eq!(said(&branch, &one), ("Fix it".into(), "Because.".into()));
        let two = [one[0].clone(), ("Test it".to_owned(), String::new())];
        assert_eq!(said(&branch, &two), ("fix the login".into(), "- Fix it\n- Test it\n".into()));
    }

    #[test]
    fn endless_messages_end() {
        let long = [("ü".repeat(300_000), "x".repeat(300_000))];
        let (title, body) = said(&"b".parse().unwrap(), &long);
        assert_eq!((title.chars().count(), body.len()), (251, 60_003));
        assert_eq!(line("a\x1b[2J\u{7}b"), "a [2J b");
    }
}
