//! A question in the terminal: who, what, where, the evidence and the exact command, nothing cut.
//!
//! The host made every string visible; it is done again here, because a terminal obeys what it
//! prints and one pass too many costs nothing.

use crate::error::CommandError;
pub use crate::size::bytes as size;
use crate::time::{ago, ends, until};
use crate::ui::Look;
use jiff::{Timestamp, Zoned};
use protocol::question::{Breadth, Commit, Evidence, Fact, Question, Reach, Tier};
use protocol::text::{command_line, visible};
use std::fmt::Write;

/// The shortest prefix a person may type, and the one we show: long enough that a box that asks
/// again and again cannot aim at it.
const SHORTEST: usize = 4;
const SHOWN: usize = 8;

/// The whole question, with how to answer it.
pub fn render(look: Look, question: &Question, all: &[Question], now: Timestamp) -> String {
    let mut text = shown(look, question, now);
    let id = short_id(question, all);
    let expiry = until(now, question.expires_at);
    let without = match question.answers.without {
        Some(_) => format!("  or  agentbox approve {id} --without"),
        None => String::new(),
    };
    let _ = writeln!(
        text,
        "  agentbox approve {id}{without}  or  agentbox deny {id}  {}",
        look.dim(&format!("(expires {expiry})"))
    );
    text
}

/// The whole question.
pub fn shown(look: Look, question: &Question, now: Timestamp) -> String {
    let mut text = String::new();
    let name = visible(question.box_name.as_str());
    let mut age = ago(now, question.created_at);
    age.extend(question.repeated().map(|times| format!(", {times}")));
    let _ = writeln!(
        text,
        "■ {} · {}  {}",
        look.bold(&name),
        visible(&question.project),
        look.dim(&age)
    );
    let _ = writeln!(text, "  {}", look.bold(&visible(&question.title)));
    let _ = writeln!(text, "  {}", visible(&question.target));
    facts(&mut text, look, &question.evidence.facts);
    evidence(&mut text, look, &question.evidence);
    if question.tier == Tier::Irreversible {
        let _ = writeln!(text, "  {} cannot be undone", look.bad("⚠"));
    }
    for warning in &question.warnings {
        let _ = writeln!(text, "  {} {}", look.bad("⚠"), visible(warning));
    }
    let _ = writeln!(text, "\n    {}\n", command_line(&question.argv));
    text
}

/// Labels stand in a column of their own, so that no value can pass for another fact.
fn facts(text: &mut String, look: Look, facts: &[Fact]) {
    let width = facts.iter().map(|f| visible(&f.label).chars().count()).max().unwrap_or(0);
    if width > 0 {
        text.push('\n');
    }
    for fact in facts {
        let label = format!("{:<width$}", visible(&fact.label));
        let _ = writeln!(text, "    {}  {}", look.dim(&label), visible(&fact.value));
    }
}

fn evidence(text: &mut String, look: Look, evidence: &Evidence) {
    let Evidence { commits, body, files, .. } = evidence;
    if !commits.is_empty() {
        text.push('\n');
    }
    for Commit { oid, subject } in commits {
        let _ = writeln!(text, "    {} {}", look.warn(&visible(oid)), visible(subject));
    }
    more(text, evidence.more_commits, "commit");
    if !body.is_empty() {
        text.push('\n');
    }
    for line in body {
        let _ = writeln!(text, "    {} {}", look.dim("│"), visible(line));
    }
    more(text, evidence.more_body, "line");
    if !files.is_empty() {
        text.push('\n');
    }
    for file in files {
        let note = file.note.as_ref().map(|n| look.warn(&format!("  ⚠ {}", visible(n))));
        let size = look.dim(&size(file.bytes));
        let _ = writeln!(text, "    {}  {size}{}", visible(&file.path), note.unwrap_or_default());
    }
    more(text, evidence.more_files, "file");
    if let Some(summary) = &evidence.summary {
        let _ = writeln!(text, "    {}", visible(summary));
    }
}

fn more(text: &mut String, count: u32, what: &str) {
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let _ = writeln!(text, "    and {count} more {what}{plural}");
    }
}

/// What a rule made at this question would let happen, with its end: “Let fix-login push to
/// fix-login of github.com/acme/shop-api until 15:20”. None when there can be no such rule.
pub fn rule(
    question: &Question,
    reach: Reach,
    breadth: Breadth,
    seconds: u64,
    now: &Zoned,
) -> Option<String> {
    let remember = question.remember.as_ref()?;
    if !remember.allows(reach) || breadth == Breadth::Kind && remember.kind.is_none() {
        return None;
    }
    let name = question.box_name.as_str();
    let sentence = remember.sentence(name, &question.project, reach, breadth);
    Some(format!("{} {}", visible(&sentence), ends(now, seconds)))
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
        .hint("agentbox approvals lists those that are open")
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
    fn relay_19_54_relay_a24_a_hostile_question_cannot_draw() {
        let evil = "x\n\x1b[2J\r\u{202e}y";
        let mut question = samples::questions().remove(2);
        question.title = evil.into();
        question.target = evil.into();
        question.project = evil.into();
        question.argv = vec!["git".into(), evil.into()];
        question.warnings = vec![evil.into()];
        question.evidence.facts[0].label = evil.into();
        question.evidence.facts[0].value = evil.into();
        question.evidence.body = vec![evil.into()];
        question.evidence.files[0].path = evil.into();
        question.evidence.files[0].note = Some(evil.into());
        question.evidence.commits = vec![Commit { oid: evil.into(), subject: evil.into() }];
        question.evidence.summary = Some(evil.into());
        let text = render(Look::PLAIN, &question, &[], samples::now());
        assert!(!text.contains(['\x1b', '\r', '\u{202e}']), "{text}");
        assert_eq!(text.matches("x⏎\\x1b[2J").count(), 13, "{text}");
    }

    #[test]
    fn relay_19_55_the_end_of_a_long_argument_is_there() {
        let mut question = samples::questions().remove(0);
        question.argv.push(format!("{}--admin", "x".repeat(5000)));
        let text = render(Look::PLAIN, &question, &[], samples::now());
        assert!(text.contains("--admin"));
    }

    #[test]
    fn sizes_are_short() {
        let said = [0, 999, 1000, 1234, 34_567, 1_000_000, 3_400_000_000].map(size);
        let wanted = ["0 bytes", "999 bytes", "1.0 KB", "1.2 KB", "34 KB", "1.0 MB", "3.4 GB"];
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_rule_is_one_sentence_with_its_end() {
        let question = samples::questions().remove(0);
        let now = samples::now().to_zoned(jiff::tz::TimeZone::UTC);
        let of = |reach, breadth, seconds| rule(&question, reach, breadth, seconds, &now);
        assert_eq!(
            of(Reach::Box, Breadth::Exact, 3600).unwrap(),
            "Let fix-login push to fix-login of github.com/acme/shop-api until 01:00"
        );
        assert_eq!(
            of(Reach::Project, Breadth::Kind, 86_400).unwrap(),
            "Let every box of shop-api push to any branch of github.com/acme/shop-api until \
             tomorrow 00:00"
        );
        let never = samples::questions().remove(1);
        assert_eq!(rule(&never, Reach::Box, Breadth::Exact, 60, &now), None);
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
