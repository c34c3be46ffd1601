//! `agentbox egress use`: how often boxes called agents' APIs.

use super::{back, line};
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::table;
use crate::time;
use crate::ui::Look;
use jiff::Timestamp;
use protocol::control::Request;
use protocol::egress::ApiUse;
use protocol::text::visible;

/// Show how often boxes called agents' APIs
///
/// Calls and bytes, from what was recorded. An estimate of work, not of cost: what a call was worth is only
/// in its body, which nobody reads. Boxes that are open are not recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress use
  agentbox egress use fix-login --since 1d")]
pub struct Args {
    /// Only this box: number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Only what happened in the last: 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration)]
    since: Option<u64>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let target = args.which.map(|which| target(Some(which)));
    let request = Request::ApiUse { target, since: args.since.map(back) };
    let all: Vec<ApiUse> = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "use", &all)?;
    } else if all.is_empty() {
        ctx.ui.say("No call to an agent's API was recorded.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &all, Timestamp::now()))?;
        ctx.ui.say("An estimate of work, not of cost: nobody reads what a call says.");
    }
    Ok(Exit::OK)
}

fn render(look: Look, all: &[ApiUse], now: Timestamp) -> String {
    let row = |of: &ApiUse| {
        vec![
            visible(&of.box_name),
            visible(&of.api),
            of.calls.to_string(),
            of.failed.to_string(),
            format!("{}/{}", line::size(of.bytes_up), line::size(of.bytes_down)),
            time::ago(now, of.last),
            visible(&of.host),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table::render(look, &["BOX", "API", "CALLS", "FAILED", "UP/DOWN", "LAST", "HOST"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn calls_are_counted_by_box_and_api() {
        insta::assert_snapshot!(render(Look::PLAIN, &samples::api_use(), samples::now()));
    }
}
