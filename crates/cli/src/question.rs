//! A question in the terminal: who, what, where, the evidence and the exact command, nothing cut.
//!
//! The host made every string visible; it is done again here, because a terminal obeys what it
//! prints and one pass too many costs nothing.

use crate::error::CommandError;
use crate::time::{ago, until};
use crate::ui::Look;
use jiff::Timestamp;
use protocol::question::{Question, Tier};
use protocol::text::{command_line, visible};
use std::fmt::Write;

/// The shortest prefix a person may type, and the one we show: long enough that a box that asks
/// again and again cannot aim at it.
const SHORTEST: usize = 4;
const SHOWN: usize = 8;

/// The whole question, with how to answer it.
pub fn render(look: Look, question: &Question, all: &[Question], now: Timestamp) -> String {
    let mut text = String::new();
    let name = visible(question.box_name.as_str());
    let age = ago(now, question.created_at);
    let _ = writeln!(
        text,
        "■ {} · {}  {}",
        look.bold(&name),
        visible(&question.project),
        look.dim(&age)
    );
    let _ = writeln!(text, "  {}", look.bold(&visible(&question.title)));
    let _ = writeln!(text, "  {}", visible(&question.target));
    evidence(&mut text, look, question);
    let _ = writeln!(text, "\n    {}\n", command_line(&question.argv));
    let id = short_id(question, all);
    let expiry = until(now, question.expires_at);
    let _ = writeln!(
        text,
        "  agentbox approve {id}  or  agentbox deny {id}  {}",
        look.dim(&format!("(expires {expiry})"))
    );
    text
}

fn evidence(text: &mut String, look: Look, question: &Question) {
    if !question.commits.is_empty() {
        text.push('\n');
    }
    for commit in &question.commits {
        let _ =
            writeln!(text, "    {} {}", look.warn(&visible(&commit.oid)), visible(&commit.subject));
    }
    if question.more_commits > 0 {
        let _ = writeln!(text, "    and {} more", question.more_commits);
    }
    if let Some(summary) = &question.summary {
        let _ = writeln!(text, "    {}", visible(summary));
    }
    if question.tier == Tier::Irreversible {
        let _ = writeln!(text, "  {} cannot be undone", look.bad("⚠"));
    }
    for warning in &question.warnings {
        let _ = writeln!(text, "  {} {}", look.bad("⚠"), visible(warning));
    }
}

/// One line: “fix-login: Push 3 commits to origin/fix-login (github.com/acme/shop-api)”.
pub fn one_line(question: &Question) -> String {
    format!("{}: {} ({})", question.box_name, visible(&question.title), visible(&question.target))
}

/// A prefix that names this question and no other open one.
pub fn short_id<'q>(question: &'q Question, all: &[Question]) -> &'q str {
    let id = question.id.as_str();
    let unique =
        |n: &usize| all.iter().filter(|q| q.id.as_str().starts_with(&id[..*n])).count() <= 1;
    (SHOWN..id.len()).find(unique).map_or(id, |n| &id[..n])
}

/// How a question was named.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum NamedBy {
    /// The host chose the id at random: it means what the person saw.
    Id,
    /// A box can withdraw one question and ask another under the same name.
    BoxName,
}

/// The open question a person means by an id, a prefix of it, or the name of a box that asks once.
pub fn find<'q>(
    open: &'q [Question],
    named: &str,
) -> Result<(&'q Question, NamedBy), CommandError> {
    let is_id = |q: &Question| named.len() >= SHORTEST && q.id.as_str().starts_with(named);
    let is_name = |q: &Question| q.box_name.as_str() == named;
    let matching: Vec<_> = open.iter().filter(|q| is_id(q) || is_name(q)).collect();
    match matching[..] {
        [one] => Ok((one, if is_id(one) { NamedBy::Id } else { NamedBy::BoxName })),
        [] if named.len() < SHORTEST => {
            Err(unknown(named).hint(format!("an id needs at least {SHORTEST} characters")))
        }
        [] => Err(unknown(named).hint(
            "it may have been answered elsewhere or expired; `agentbox approvals` lists what is open",
        )),
        _ => Err(several(named, &matching, open)),
    }
}

fn unknown(named: &str) -> CommandError {
    CommandError::usage(format!("no open question matches {:?}", visible(named)))
}

fn several(named: &str, matching: &[&Question], open: &[Question]) -> CommandError {
    let error = CommandError::usage(format!(
        "{:?} matches {} open questions",
        visible(named),
        matching.len()
    ));
    matching.iter().fold(error, |e, q| e.hint(format!("{}  {}", short_id(q, open), one_line(q))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_question_says_all_of_it() {
        let all = samples::questions();
        let text: Vec<_> =
            all.iter().map(|q| render(Look::PLAIN, q, &all, samples::now())).collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn a_hostile_question_cannot_draw() {
        let mut question = samples::questions().remove(0);
        question.title = "Push\n\x1b[2Jnothing".into();
        question.argv = vec!["git".into(), "push\r\u{202e}x".into()];
        let text = render(Look::PLAIN, &question, &[], samples::now());
        assert!(!text.contains(['\x1b', '\r', '\u{202e}']), "{text}");
        assert!(text.contains("Push⏎\\x1b[2Jnothing"), "{text}");
    }

    #[test]
    fn questions_are_found_by_prefix_and_name() {
        let open = samples::questions();
        assert_eq!(find(&open, "3fa9").unwrap().1, NamedBy::Id);
        assert_eq!(find(&open, "docs-bot").unwrap(), (&open[1], NamedBy::BoxName));
        assert_eq!(find(&open, open[0].id.as_str()).unwrap().0, &open[0]);
        for bad in ["3fa", "ffff0", "", "nobody"] {
            assert_eq!(find(&open, bad).unwrap_err().kind, crate::error::Kind::Usage, "{bad}");
        }
        let twice = vec![open[0].clone(), open[0].clone()];
        assert_eq!(find(&twice, "fix-login").unwrap_err().hints.len(), 2);
        assert_eq!(find(&twice, "3fa9").unwrap_err().hints.len(), 2);
    }

    #[test]
    fn short_ids_grow_until_they_are_unique() {
        let mut open = samples::questions();
        assert_eq!(short_id(&open[0], &open).len(), SHOWN);
        let near = format!("{}00000000000000000000", &open[0].id.as_str()[..12]);
        open[1].id = near.parse().unwrap();
        assert!(short_id(&open[0], &open).len() > 12);
    }
}
