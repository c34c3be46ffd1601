//! `agentbox approve`, and the answering that `deny` shares.
//!
//! An id was chosen by the host at random, so it means what the person saw. A box's name does not:
//! a box can withdraw one question and ask another between looking and typing. Named that way on a
//! terminal, the question is therefore shown and asked again. A program has seen nothing at all:
//! its yes counts only with the digest of what it read.

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::offers::Offer;
use crate::question::{self, NamedBy};
use crate::time;
use clap::ValueEnum;
use jiff::{Timestamp, Zoned};
use protocol::control::{ErrorCode, Request};
use protocol::question::{Breadth, Question, Reach, Remember, Surface, Verdict};
use protocol::text::visible;

/// Allow what a box asks for
///
/// Allows exactly what the question shows, once, or the same again for a while with --for. A rule
/// made that way covers this box and exactly this, unless --reach or --kind widen it; the rule is
/// shown as one sentence, and `agentbox grants` lists and removes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox approve 3fa9c1d2            once
  agentbox approve 3fa9c1d2 --for 1h   and the same again for an hour
  agentbox approve 3fa9c1d2 --for 30d --reach project
  agentbox approve 3fa9c1d2 --without  the box, but not the files that it lists
  agentbox approve                     the only open question, shown first
  agentbox approve 3fa9c1d2 --digest $DIGEST   from a program that has read it")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Remember the answer for this long: 30m, 1h, 2d, or always
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse_remembered)]
    remember: Option<u64>,

    /// Whom the rule covers; without it, the box that asks, or the project where a rule can be for
    /// nothing less
    #[arg(long, value_name = "WHO", requires = "remember")]
    reach: Option<Who>,

    /// Let the rule cover everything of this kind, not only exactly this
    #[arg(long, requires = "remember")]
    kind: bool,

    /// Make the new box, without the files of this computer that the question lists
    #[arg(long, conflicts_with_all = ["remember", "reach", "kind"])]
    without: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// The box that asks
    Box,
    /// Every box of its project
    Project,
    /// Every box
    Everywhere,
}

impl From<Who> for Reach {
    fn from(who: Who) -> Self {
        match who {
            Who::Box => Reach::Box,
            Who::Project => Reach::Project,
            Who::Everywhere => Reach::Everywhere,
        }
    }
}

/// Which question is answered.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The question's id or its first characters, or the name of the box that asks
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// Answer only if the question still has this digest (from `approvals --json`); a program
    /// must say it in order to allow
    #[arg(long)]
    digest: Option<String>,
}

impl Args {
    /// The other answer to the same question.
    pub fn deny(self, ctx: &Context) -> Outcome {
        answer(ctx, &self.which, |_| Verdict::Deny)
    }

    /// One of the answers it offers.
    pub fn choose(self, ctx: &Context, offer: Offer) -> Outcome {
        if self.remember.is_some() && !matches!(offer, Offer::Remember(_)) {
            return Err(CommandError::usage(
                "only an answer that is remembered can be so --for long",
            )
            .hint("--option box remembers it for this box"));
        }
        answer(ctx, &self.which, |_| offer.verdict(self.remember))
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let breadth = if args.kind { Breadth::Kind } else { Breadth::Exact };
    answer(ctx, &args.which, |question| {
        if args.without {
            return Verdict::Without;
        }
        let Some(seconds) = args.remember else { return Verdict::AllowOnce };
        let least = || question.remember.as_ref().map(Remember::least).unwrap_or_default();
        Verdict::Remember { reach: args.reach.map_or_else(least, Reach::from), breadth, seconds }
    })
}

/// Finds the question, asks where the name alone is not enough, answers and says what it did.
pub fn answer(ctx: &Context, which: &Which, verdict: impl Fn(&Question) -> Verdict) -> Outcome {
    let client = ctx.client()?;
    let open: Vec<Question> = client.call(&Request::Questions)?;
    let (question, named_by) = match &which.id {
        Some(named) => question::find(&open, named)?,
        None => (only(ctx, &open)?, NamedBy::BoxName),
    };
    let verdict = verdict(question);
    offered(question, verdict)?;
    let rule = rule(question, verdict)?;
    if verdict.lets_go_on() && !ctx.ui.interactive && which.digest.is_none() {
        return Err(unread(question, &open));
    }
    let sure = named_by == NamedBy::Id || which.digest.is_some();
    if !sure && ctx.ui.interactive && !asked(ctx, question, &open, verdict, rule.as_deref()) {
        ctx.ui.say("Not answered; the question stays open.");
        return Ok(Exit::OK);
    }
    let request = Request::Answer {
        id: question.id.clone(),
        digest: which.digest.clone().unwrap_or_else(|| question.digest.clone()),
        verdict,
        surface: Surface::Cli,
    };
    client.call::<()>(&request).map_err(explain)?;
    ctx.ui.out(&said(question, verdict, rule.as_deref()))?;
    Ok(Exit::OK)
}

/// The host refuses it, too; here somebody is told what else there is.
fn offered(question: &Question, verdict: Verdict) -> Result<(), CommandError> {
    if verdict != Verdict::Without || question.answers.without.is_some() {
        return Ok(());
    }
    Err(CommandError::usage("this question lists no files to go on without")
        .hint("it can be allowed or denied"))
}

/// The rule this answer makes, as a sentence.
fn rule(question: &Question, verdict: Verdict) -> Result<Option<String>, CommandError> {
    let Verdict::Remember { reach, breadth, seconds } = verdict else { return Ok(None) };
    match question::rule(question, reach, breadth, seconds, &Zoned::now()) {
        Some(rule) => Ok(Some(rule)),
        None if question.remember.is_none() => {
            Err(CommandError::usage("this is asked every time and cannot be remembered")
                .hint("it can be allowed once"))
        }
        None if question.remember.as_ref().is_some_and(|r| !r.allows(reach)) => {
            let least =
                question::rule(question, Reach::Project, Breadth::Exact, seconds, &Zoned::now());
            let error =
                CommandError::usage("there can be no rule for these boxes at this question");
            let error = least
                .into_iter()
                .fold(error, |e, rule| e.hint(format!("there can be this one: {rule}")));
            Err(error.hint("choose the project instead"))
        }
        None => {
            Err(CommandError::usage("there is no wider kind of this question")
                .hint("leave --kind out"))
        }
    }
}

/// A yes of a program that does not say what it has read.
fn unread(question: &Question, open: &[Question]) -> CommandError {
    let id = question::short_id(question, open);
    CommandError::usage(
        "nobody has seen this question: without a terminal, allowing it needs --digest",
    )
    .hint(format!("`agentbox approvals --json` has the digest of {id} beside all that is asked"))
}

/// The one open question, for somebody who can be shown it.
fn only<'q>(ctx: &Context, open: &'q [Question]) -> Result<&'q Question, CommandError> {
    let error = match open {
        [] => {
            return Err(CommandError::usage("no question is open")
                .hint("agentbox approvals --watch shows them as they come"));
        }
        [one] if ctx.ui.interactive => return Ok(one),
        [_] => CommandError::usage("say which question: nobody can be shown it here"),
        _ => CommandError::usage(format!("{} questions are open; say which", open.len())),
    };
    let lines =
        open.iter().map(|q| format!("{}  {}", question::short_id(q, open), question::one_line(q)));
    Err(lines.fold(error, CommandError::hint))
}

fn asked(
    ctx: &Context,
    question: &Question,
    open: &[Question],
    verdict: Verdict,
    rule: Option<&str>,
) -> bool {
    ctx.ui.say(&question::render(ctx.ui.err, question, open, Timestamp::now()));
    let text = match (verdict, rule) {
        (Verdict::Deny, _) => "Deny this?".to_owned(),
        (Verdict::Without, _) => "Go on without these files?".to_owned(),
        (_, Some(rule)) => format!("Allow this, and keep the rule “{rule}”?"),
        (_, None) => "Allow this once?".to_owned(),
    };
    ask::yes(&ctx.ui, &text)
}

fn said(question: &Question, verdict: Verdict, rule: Option<&str>) -> String {
    let what = match verdict {
        Verdict::AllowOnce => "allowed once",
        Verdict::Remember { .. } => "allowed",
        Verdict::Without => "without these files",
        Verdict::Deny => "denied",
    };
    let rule = rule.map(|rule| format!("rule  {rule}\n")).unwrap_or_default();
    format!("{what}  {}\n{rule}", question::one_line(question))
}

/// What to do when an answer was not taken.
pub fn explain(error: host::client::ClientError) -> CommandError {
    let code = error.code();
    let error = CommandError::from(error);
    if !error.hints.is_empty() {
        return error;
    }
    match code {
        Some(ErrorCode::NotPending) => {
            error.hint("it was answered elsewhere, withdrawn or expired")
        }
        Some(ErrorCode::DigestMismatch) => {
            error.hint("look at it again with `agentbox approvals` before you answer")
        }
        Some(ErrorCode::NotRememberable) => error.hint("leave --for out to allow it once"),
        _ => CommandError { error: visible(&error.error), ..error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_answer_is_told() {
        let question = samples::questions().remove(0);
        let hour = Verdict::Remember { reach: Reach::Box, breadth: Breadth::Exact, seconds: 3600 };
        let all = [
            (Verdict::AllowOnce, None),
            (hour, Some("Let it until 01:00")),
            (Verdict::Without, None),
            (Verdict::Deny, None),
        ]
        .map(|(verdict, rule)| said(&question, verdict, rule));
        insta::assert_snapshot!(all.concat());
    }

    #[test]
    fn what_cannot_be_remembered_is_said_before_anything_is_answered() {
        let open = samples::questions();
        let of = |question, breadth| {
            let verdict = Verdict::Remember { reach: Reach::Box, breadth, seconds: 60 };
            rule(question, verdict).map_err(|e| e.error)
        };
        assert!(of(&open[0], Breadth::Kind).unwrap().unwrap().starts_with("Let fix-login"));
        assert!(of(&open[1], Breadth::Exact).unwrap_err().contains("asked every time"));
        let mut narrow = open[0].clone();
        narrow.remember.as_mut().unwrap().kind = None;
        assert!(of(&narrow, Breadth::Kind).unwrap_err().contains("no wider kind"));
        let mut project = narrow.clone();
        project.remember.as_mut().unwrap().only = Some(Reach::Project);
        assert!(of(&project, Breadth::Exact).unwrap_err().contains("no rule for these boxes"));
    }
}
