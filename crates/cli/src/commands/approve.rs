//! `agentbox approve`, and the answering that `deny` shares.
//!
//! An id was chosen by the host at random, so it means what the person saw. A box's name does not:
//! a box can withdraw one question and ask another between looking and typing. Named that way on a
//! terminal, the question is therefore shown and asked again; a program says what it means with
//! the digest.

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::question::{self, NamedBy};
use crate::time;
use jiff::Timestamp;
use protocol::control::{ErrorCode, Request};
use protocol::question::{Question, Surface, Verdict};
use protocol::text::visible;

/// Allow what a box asks for
///
/// Allows exactly what the question shows, once, or the same again for a while with --for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox approve 3fa9c1d2            once
  agentbox approve 3fa9c1d2 --for 1h   and the same again for an hour
  agentbox approve                     the only open question, shown first")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Remember the answer for this long: 30m, 1h, 2d
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse_duration)]
    remember: Option<u64>,
}

/// Which question is answered.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The question's id or its first characters, or the name of the box that asks
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// Answer only if the question still has this digest (from `approvals --json`)
    #[arg(long)]
    digest: Option<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let verdict = match args.remember {
        Some(seconds) => Verdict::AllowFor { seconds },
        None => Verdict::AllowOnce,
    };
    answer(ctx, &args.which, verdict)
}

/// Finds the question, asks where the name alone is not enough, answers and says what it did.
pub fn answer(ctx: &Context, which: &Which, verdict: Verdict) -> Outcome {
    let client = ctx.client()?;
    let open: Vec<Question> = client.call(&Request::Questions)?;
    let (question, named_by) = match &which.id {
        Some(named) => question::find(&open, named)?,
        None => (only(ctx, &open)?, NamedBy::BoxName),
    };
    let sure = named_by == NamedBy::Id || which.digest.is_some();
    if !sure && ctx.ui.interactive && !asked(ctx, question, &open, verdict) {
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
    ctx.ui.out(&said(question, verdict))?;
    Ok(Exit::OK)
}

/// The one open question, for somebody who can be shown it.
fn only<'q>(ctx: &Context, open: &'q [Question]) -> Result<&'q Question, CommandError> {
    let error = match open {
        [] => return Err(CommandError::usage("no question is open")),
        [one] if ctx.ui.interactive => return Ok(one),
        [_] => CommandError::usage("say which question: nobody can be shown it here"),
        _ => CommandError::usage(format!("{} questions are open; say which", open.len())),
    };
    let lines =
        open.iter().map(|q| format!("{}  {}", question::short_id(q, open), question::one_line(q)));
    Err(lines.fold(error, CommandError::hint))
}

fn asked(ctx: &Context, question: &Question, open: &[Question], verdict: Verdict) -> bool {
    ctx.ui.say(&question::render(ctx.ui.err, question, open, Timestamp::now()));
    let text = match verdict {
        Verdict::AllowOnce => "Allow this once?".to_owned(),
        Verdict::AllowFor { seconds } => format!("Allow this for {}?", length(seconds)),
        Verdict::Deny => "Deny this?".to_owned(),
    };
    ask::yes(&ctx.ui, &text)
}

fn said(question: &Question, verdict: Verdict) -> String {
    let what = match verdict {
        Verdict::AllowOnce => "allowed once".to_owned(),
        Verdict::AllowFor { seconds } => format!("allowed for {}", length(seconds)),
        Verdict::Deny => "denied".to_owned(),
    };
    format!("{what}  {}\n", question::one_line(question))
}

fn length(seconds: u64) -> String {
    time::rough(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn explain(error: host::client::ClientError) -> CommandError {
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
        let all = [Verdict::AllowOnce, Verdict::AllowFor { seconds: 3600 }, Verdict::Deny]
            .map(|verdict| said(&question, verdict));
        insta::assert_snapshot!(all.concat());
    }
}
