//! `agentbox egress log`: what boxes sent out, and what they were kept from.

use super::of::name_of;
use super::{back, line};
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::follow::{self, Then};
use crate::json;
use crate::table::{self, cut};
use crate::time;
use crate::ui::Look;
use jiff::{Timestamp, Zoned};
use protocol::boxes::BoxView;
use protocol::control::{HostEvent, Request};
use protocol::egress::{Traffic, TrafficAction, TrafficQuery};

/// Show what boxes sent out
///
/// The newest lines, oldest first: when, which box, what became of it, the method, the answer's status, how
/// many bytes went up and down, and where to. No body, no header's value and no credential is in it, and of
/// a query no value. Boxes that are open are not recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress log fix-login              the last 50
  agentbox egress log -f --denied            what is stopped, as it is
  agentbox egress log --since 1h --grep example.com
  agentbox egress log -f --json              one JSON object per line")]
pub struct Args {
    /// Only this box: number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Stay and show what comes
    #[arg(short, long)]
    follow: bool,

    /// Only what was stopped
    #[arg(long)]
    denied: bool,

    /// Only what happened in the last: 30m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration)]
    since: Option<u64>,

    /// Only lines whose host or path contains this
    #[arg(short = 'g', long, value_name = "TEXT")]
    grep: Option<String>,

    /// How many lines, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: u32,

    /// Print JSON; with --follow, one object per line
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let query = TrafficQuery {
        target: args.which.map(|which| target(Some(which))),
        denied: args.denied,
        since: args.since.map(back),
        before: None,
        text: args.grep,
        limit: args.limit,
    };
    if args.follow {
        return follow(ctx, query, args.json);
    }
    let all: Vec<Traffic> = client.call(&Request::Traffic(query))?;
    if args.json {
        json::print(&ctx.ui, "traffic", &all)?;
    } else if all.is_empty() {
        ctx.ui.say("Nothing of that kind was sent.");
        ctx.ui.hint("boxes that are open are not recorded; agentbox egress mode BOX observe");
    } else {
        let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
        ctx.ui.out(&render(ctx.ui.out, &all, &boxes, &Zoned::now()))?;
    }
    Ok(Exit::OK)
}

/// A line that comes is printed by itself, so its columns are as wide as they usually need.
fn follow(ctx: &Context, query: TrafficQuery, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let mut boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    follow::events(&client, &Request::FollowTraffic(query), |event| {
        let HostEvent::Traffic { line } = event else { return Ok(Then::GoOn) };
        if as_json {
            let told = serde_json::json!({ "schema": json::SCHEMA, "traffic": line });
            ctx.ui.out(&json::line(&told)?)?;
            return Ok(Then::GoOn);
        }
        if !boxes.iter().any(|view| view.id == line.box_id) {
            boxes = client.call(&Request::Boxes)?;
        }
        ctx.ui.out(&one(ctx.ui.out, &line, &boxes, &Zoned::now()))?;
        Ok(Then::GoOn)
    })?;
    Ok(Exit::OK)
}

const HEADER: [&str; 7] = ["TIME", "BOX", "WHAT", "METHOD", "CODE", "UP/DOWN", "WHERE"];
/// Of the same columns where lines come one by one; the last has the rest.
const WIDTHS: [usize; 6] = [8, 12, 8, 7, 3, 9];
const BOX: usize = 1;

fn render(look: Look, all: &[Traffic], boxes: &[BoxView], now: &Zoned) -> String {
    let row = |of: &Traffic| {
        let mut row: Vec<String> = cells(of, boxes, clock(of.at, now, "%m-%d %H:%M")).into();
        // Where to is what people look for; a pipe gets everything.
        if look.width.is_some() {
            row[BOX] = cut(&row[BOX], WIDTHS[BOX]);
        }
        row
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table::render(look, &HEADER, &rows)
}

fn one(look: Look, of: &Traffic, boxes: &[BoxView], now: &Zoned) -> String {
    let [first @ .., place] = cells(of, boxes, clock(of.at, now, "%b %d"));
    let mut text = String::new();
    for (cell, width) in first.iter().zip(WIDTHS) {
        let cell = if look.width.is_some() { cut(cell, width) } else { cell.clone() };
        text.push_str(&format!("{cell:<width$}  "));
    }
    let room = look.width.map_or(usize::MAX, |all| all.saturating_sub(text.chars().count()).max(8));
    format!("{text}{}\n", cut(&place, room))
}

fn cells(of: &Traffic, boxes: &[BoxView], when: String) -> [String; 7] {
    let place = line::place(of);
    let telling = of.action != TrafficAction::Allowed;
    let place = if telling && (of.reason.is_some() || of.detail.is_some()) {
        format!("{place} ({})", line::reason(of)).trim_start().to_owned()
    } else {
        place
    };
    [
        when,
        name_of(boxes, &of.box_id),
        line::verdict(of).to_owned(),
        line::method(of),
        of.status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
        format!("{}/{}", line::size(of.bytes_up), line::size(of.bytes_down)),
        place,
    ]
}

/// The time, and of another day what `form` says.
fn clock(at: protocol::Millis, now: &Zoned, form: &str) -> String {
    let then = i64::try_from(at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let then = then.map(|then| then.to_zoned(now.time_zone().clone()));
    let Some(then) = then else { return "-".to_owned() };
    let form = if then.date() == now.date() { "%H:%M:%S" } else { form };
    then.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use jiff::tz::TimeZone;

    #[test]
    fn traffic_fits_80_columns() {
        let now = samples::now().to_zoned(TimeZone::UTC);
        let (all, boxes) = (samples::traffic(), samples::boxes());
        let table = render(Look::PLAIN, &all, &boxes, &now);
        let lines: String = all.iter().map(|of| one(Look::PLAIN, of, &boxes, &now)).collect();
        let text = format!("{table}\n{lines}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
        insta::assert_snapshot!(text);
        let whole = one(Look { color: false, width: None }, &all[1], &boxes, &now);
        assert!(whole.contains("no_rule_matched"), "{whole}");
    }
}
