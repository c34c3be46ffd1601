//! `agentbox audit`: what happened, and the proof that nothing was changed since.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time;
use crate::ui::Look;
use clap::Subcommand;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use protocol::BoxId;
use protocol::audit::{AuditRecord, AuditVerdict};
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::text::visible;
use std::collections::HashMap;

/// Show what happened
///
/// Every question, answer, refusal and execution, oldest first. Records are chained by hash;
/// `agentbox audit verify` walks the chain.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox audit                  the last 50 records
  agentbox audit fix-login -n 5   the last 5 of one box
  agentbox audit verify           is the trail whole?"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Only this box: number, name, id or unique id prefix
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// How many records, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: u32,

    /// Times to the second instead of ages
    #[arg(long)]
    exact: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Walk the chain of records; exit code 1 when it is broken
    Verify {
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    if let Some(Action::Verify { json }) = args.action {
        return verify(ctx, &client.call(&Request::AuditVerify)?, json);
    }
    let only = args.which.map(|which| target(Some(which)));
    let records: Vec<AuditRecord> =
        client.call(&Request::Audit { target: only, limit: args.limit })?;
    if args.json {
        json::print(&ctx.ui, "records", &records)?;
    } else if records.is_empty() {
        ctx.ui.say("Nothing has happened yet.");
    } else {
        let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
        let now = Timestamp::now();
        let when = |at| {
            if args.exact { time::exact(at, TimeZone::system()) } else { time::ago(now, at) }
        };
        ctx.ui.out(&render(ctx.ui.out, &records, &boxes, when))?;
    }
    Ok(Exit::OK)
}

fn verify(ctx: &Context, verdict: &AuditVerdict, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "verdict", verdict)?;
    } else {
        ctx.ui.out(&render_verdict(ctx.ui.out, verdict))?;
    }
    Ok(if verdict.broken.is_none() { Exit::OK } else { Exit::FAILED })
}

fn render_verdict(look: Look, verdict: &AuditVerdict) -> String {
    let records = verdict.records;
    match &verdict.broken {
        None => format!("{} {records} records, the chain is whole\n", look.good("✓")),
        Some(why) => {
            format!(
                "{} the chain is broken: {} (of {records} records)\n",
                look.bad("✗"),
                visible(why)
            )
        }
    }
}

/// Records of the trail as rows that may wrap: a summary is evidence and is never cut.
pub fn render(
    look: Look,
    records: &[AuditRecord],
    boxes: &[BoxView],
    when: impl Fn(protocol::Millis) -> String,
) -> String {
    let names: HashMap<&BoxId, &str> = boxes.iter().map(|b| (&b.id, b.name.as_str())).collect();
    // A destroyed box has lost its name; its id remains.
    let shown = |id: &BoxId| names.get(id).map_or_else(|| id.to_string(), |n| (*n).to_owned());
    let rows: Vec<Vec<String>> = records
        .iter()
        .map(|r| {
            vec![
                when(r.at),
                r.box_id.as_ref().map_or_else(|| "-".to_owned(), shown),
                visible(&r.kind),
                visible(&r.summary),
            ]
        })
        .collect();
    crate::table::render(Look { width: None, ..look }, &["WHEN", "BOX", "WHAT", "SUMMARY"], &rows)
}

/// For callers that show a short trail of one box.
pub fn render_ages(
    look: Look,
    records: &[AuditRecord],
    boxes: &[BoxView],
    now: Timestamp,
) -> String {
    render(look, records, boxes, |at| time::ago(now, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_trail_with_ages_and_times() {
        let (records, boxes) = (samples::audit(), samples::boxes());
        let ages = render_ages(Look::PLAIN, &records, &boxes, samples::now());
        let times = render(Look::PLAIN, &records, &boxes, |at| time::exact(at, TimeZone::UTC));
        insta::assert_snapshot!(format!("{ages}\n{times}"));
    }

    #[test]
    fn a_broken_chain_says_where() {
        let whole = AuditVerdict { records: 4, broken: None };
        let broken = AuditVerdict { records: 4, broken: Some("record 3 was changed".into()) };
        let text = [whole, broken].map(|v| render_verdict(Look::PLAIN, &v)).concat();
        insta::assert_snapshot!(text);
    }
}
