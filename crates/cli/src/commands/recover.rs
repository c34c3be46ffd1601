//! `agentbox recover`: boxes back after a restart of the engine or of the computer.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::ui::Look;
use protocol::control::Request;
use protocol::looking::{RecoverOutcome, Recovered, Recovery};
use protocol::text::visible;
use std::fmt::Write;

/// Bring boxes back after a restart
///
/// A box that was stopped because its engine or the computer went down is started, a paused one goes
/// on, a running one is given a new token when it has none. What was left half-made is removed. With
/// --all, a box that you stopped or paused yourself stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox recover fix-login   one box
  agentbox recover --all       every box that you did not put to rest")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX", conflicts_with = "all")]
    which: Option<String>,

    /// All boxes of all projects
    #[arg(short, long)]
    all: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let target = (!args.all).then(|| target(args.which));
    let interrupt = Interrupt::install()?;
    let done: Recovery = interrupt.call(&client, &Request::Recover { target }, |_| {})?;
    if args.json {
        json::print(&ctx.ui, "recovery", &done)?;
    } else if done.boxes.is_empty() && done.taken_back.is_empty() {
        ctx.ui.say("No boxes yet.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &done))?;
    }
    let failed = done.boxes.iter().any(|b| b.outcome == RecoverOutcome::Failed);
    Ok(if failed { Exit::FAILED } else { Exit::OK })
}

fn render(look: Look, done: &Recovery) -> String {
    let mut text = String::new();
    for one in &done.boxes {
        let Recovered { view, outcome, detail } = one;
        let word = match outcome {
            RecoverOutcome::Started => "started",
            RecoverOutcome::Woken => "woken",
            RecoverOutcome::TakenOver => "taken",
            RecoverOutcome::Fine => "runs",
            RecoverOutcome::Left => "left",
            RecoverOutcome::Failed => "failed",
        };
        let word = format!("{word:<7}");
        let word = if *outcome == RecoverOutcome::Failed { look.bad(&word) } else { word };
        let _ = write!(text, "{word}  {}", view.name);
        let why = match outcome {
            RecoverOutcome::TakenOver => Some("it had no token".to_owned()),
            RecoverOutcome::Left => Some(format!("you {} it", view.state.as_str())),
            _ => detail.as_deref().map(visible),
        };
        let _ = writeln!(text, "{}", why.map(|why| format!(": {why}")).unwrap_or_default());
    }
    for id in &done.taken_back {
        let _ = writeln!(text, "removed  {id}: it was never finished");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn what_became_of_each_is_told() {
        let all = samples::boxes();
        let one = |n: usize, outcome, detail: Option<&str>| Recovered {
            view: all[n].clone(),
            outcome,
            detail: detail.map(str::to_owned),
        };
        let done = Recovery {
            boxes: vec![
                one(0, RecoverOutcome::Started, None),
                one(1, RecoverOutcome::Left, None),
                one(2, RecoverOutcome::Failed, Some("the box has no container any more")),
            ],
            taken_back: vec!["b0000000f".parse().unwrap()],
        };
        insta::assert_snapshot!(render(Look::PLAIN, &done));
    }
}
