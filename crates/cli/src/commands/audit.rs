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
use protocol::control::{AuditQuery, Request};
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
  agentbox audit --kind refused --since 2h
  agentbox audit export > trail.jsonl
  agentbox audit verify           is the trail whole?"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Only this box: number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// How many records, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: u32,

    /// Only records of this kind: asked, answered, executed, refused, …; may be given again
    #[arg(short, long = "kind", value_name = "KIND")]
    kinds: Vec<String>,

    /// Only what happened in the last: 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration)]
    since: Option<u64>,

    /// Only what happened before the last: 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration)]
    before: Option<u64>,

    /// Only records whose summary contains this
    #[arg(short = 'g', long, value_name = "TEXT")]
    grep: Option<String>,

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
    /// Print the whole trail, one JSON object per line, hashes included
    Export {
        /// Only records after this number
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    match args.action {
        Some(Action::Verify { json }) => {
            return verify(ctx, &client.call(&Request::AuditVerify)?, json);
        }
        Some(Action::Export { after }) => return export(ctx, &client, after),
        None => {}
    }
    let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let back = |seconds: u64| now.saturating_sub(seconds.saturating_mul(1000));
    let query = AuditQuery {
        target: args.which.map(|which| target(Some(which))),
        kinds: args.kinds,
        since: args.since.map(back),
        until: args.before.map(back),
        text: args.grep,
        after: None,
        limit: args.limit,
    };
    let records: Vec<AuditRecord> = client.call(&Request::Audit(query))?;
    if args.json {
        json::print(&ctx.ui, "records", &records)?;
    } else if records.is_empty() {
        ctx.ui.say("Nothing of that kind has happened.");
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

/// In pieces: a trail of years does not fit one answer.
fn export(ctx: &Context, client: &host::client::Client, after: u64) -> Outcome {
    let mut after = after;
    loop {
        let query = AuditQuery { after: Some(after), limit: 500, ..AuditQuery::default() };
        let records: Vec<AuditRecord> = client.call(&Request::Audit(query))?;
        let Some(last) = records.last() else { return Ok(Exit::OK) };
        after = last.seq;
        for record in &records {
            ctx.ui.out(&json::line(record)?)?;
        }
    }
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
