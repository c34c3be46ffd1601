//! `agentbox events`: what boxes told.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use crate::time;
use crate::ui::Look;
use host::client::Incoming;
use jiff::Timestamp;
use protocol::BoxId;
use protocol::boxes::BoxView;
use protocol::control::{HostEvent, Request};
use protocol::events::BoxEvent;
#[cfg(test)]
use protocol::events::JsonText;
use protocol::text::visible;
use std::collections::HashMap;

/// Show what boxes told
///
/// Programs in a box can tell the host something (`agentbox-ctl event`); the newest thousand events
/// of all boxes are kept, restarts included. A box's words are its own: nothing here was checked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox events                the last 50
  agentbox events fix-login -f   one box, and what comes, until Ctrl-C
  agentbox events -f --json      one JSON object per line")]
pub struct Args {
    /// Only this box: number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// How many events, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: u32,

    /// Only events with a higher number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    since: u64,

    /// Stay and show events as they come
    #[arg(short, long)]
    follow: bool,

    /// Print JSON; with --follow, one object per line
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let only = args.which.clone().map(|which| target(Some(which)));
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let (since, limit) = (args.since, args.limit);
    if args.follow {
        let request = Request::FollowEvents { target: only, since, limit };
        return follow(ctx, &client, &request, &boxes, args.json);
    }
    let events: Vec<BoxEvent> = client.call(&Request::Events { target: only, since, limit })?;
    if args.json {
        json::print(&ctx.ui, "events", &events)?;
    } else if events.is_empty() {
        ctx.ui.say("No box has told anything.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &events, &boxes, Timestamp::now()))?;
    }
    Ok(Exit::OK)
}

fn follow(
    ctx: &Context,
    client: &host::client::Client,
    request: &Request,
    boxes: &[BoxView],
    as_json: bool,
) -> Outcome {
    let print = |event: &BoxEvent| {
        if as_json {
            let told = serde_json::json!({ "schema": json::SCHEMA, "event": event });
            ctx.ui.out(&json::line(&told)?)
        } else {
            ctx.ui.out(&line(event, boxes))
        }
    };
    let mut failed = None;
    let conversation = client.open(request)?;
    let hang_up = conversation.writer()?;
    let ended = conversation.finish::<()>(|incoming| {
        let Incoming::Event(event) = incoming else { return };
        let HostEvent::Told { event } = *event else { return };
        if let Err(error) = print(&event) {
            hang_up.hang_up();
            failed = Some(error);
        }
    });
    match (failed, ended) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(Exit::OK),
        (None, Err(error)) => Err(CommandError::from(error)),
    }
}

fn names(boxes: &[BoxView]) -> HashMap<&BoxId, &str> {
    boxes.iter().map(|b| (&b.id, b.name.as_str())).collect()
}

fn line(event: &BoxEvent, boxes: &[BoxView]) -> String {
    let name = names(boxes).get(&event.box_id).map_or(event.box_id.as_str(), |n| *n).to_owned();
    format!("{}  {name}  {}  {}\n", event.id, visible(&event.kind), payload(event))
}

fn payload(event: &BoxEvent) -> String {
    event.payload.as_ref().map(|p| visible(p.as_str())).unwrap_or_default()
}

fn render(look: Look, events: &[BoxEvent], boxes: &[BoxView], now: Timestamp) -> String {
    let names = names(boxes);
    let row = |e: &BoxEvent| {
        vec![
            e.id.to_string(),
            time::ago(now, e.received_at),
            names.get(&e.box_id).map_or(e.box_id.as_str(), |n| *n).to_owned(),
            visible(&e.kind),
            payload(e),
        ]
    };
    let rows: Vec<_> = events.iter().map(row).collect();
    table::render(Look { width: None, ..look }, &["NUMBER", "WHEN", "BOX", "EVENT", "SAYS"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_boxs_words_cannot_disturb_the_table() {
        let events = [BoxEvent {
            id: 7,
            box_id: "b0000000a".parse().unwrap(),
            kind: "agent-done".into(),
            received_at: 0,
            ts: None,
            payload: JsonText::parse("{\"text\":\"done\u{202e}\\u001b[2J\\n\"}".into()),
        }];
        insta::assert_snapshot!(render(Look::PLAIN, &events, &samples::boxes(), samples::now()));
    }
}
