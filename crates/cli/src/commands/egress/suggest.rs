//! `agentbox egress suggest`: the least policy under which what a box sent would have passed.

use super::{back, count, lines};
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time;
use protocol::control::Request;
use protocol::egress::EgressSuggested;
use protocol::text::visible;

/// Suggest a policy from what a box sent
///
/// The least under which its recorded traffic would have passed, as YAML on standard output. Read it before
/// you use it: it allows whatever the box did. Let a box work in the mode observe for a while first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress suggest fix-login
  agentbox egress suggest fix-login --since 2h > egress.yaml")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// Only from what it sent in the last: 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration)]
    since: Option<u64>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let since = args.since.map(back);
    let request = Request::SuggestEgress { target: target(Some(args.which)), since };
    let made: EgressSuggested = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "suggestion", &made)?;
        return Ok(Exit::OK);
    }
    if made.lines == 0 {
        ctx.ui.say("It has sent nothing that was recorded.");
        ctx.ui.hint("boxes that are open are not recorded; agentbox egress mode BOX observe");
        return Ok(Exit::OK);
    }
    ctx.ui.say(&format!("From {} of traffic:", count(made.lines, "line")));
    ctx.ui.out(&lines(&made.text))?;
    for note in &made.notes {
        ctx.ui.warn(&visible(note));
    }
    ctx.ui.hint("agentbox egress edit opens your file for this project");
    Ok(Exit::OK)
}
