//! `agentbox egress explain`: why a request was stopped, and what to do about it.

use super::line;
use super::of::name_of;
use crate::commands::shell::names_a_box;
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time::{ago, exact};
use crate::ui::Look;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::egress::EgressExplained;
use protocol::text::visible;
use std::fmt::Write;

/// Say why a request was stopped
///
/// The last that was stopped, or the one with this id: it is in the answer the box got
/// (X-AgentBox-Event) and in `agentbox egress log --json`. A single word that names a box is the box.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress explain                    the last of the project's only box
  agentbox egress explain fix-login          the last of that one
  agentbox egress explain 01JQ3V7M0K0000000000000002 fix-login")]
pub struct Args {
    /// The request's id [default: the last that was stopped]
    #[arg(value_name = "EVENT")]
    event: Option<String>,

    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let (event, which) = match (args.event, args.which) {
        (Some(word), None) if names_a_box(&client, &word)? => (None, Some(word)),
        other => other,
    };
    let request = Request::ExplainEgress { target: target(which), event };
    let told: EgressExplained = client.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "explained", &told)?;
        return Ok(Exit::OK);
    }
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let name = name_of(&boxes, &told.line.box_id);
    ctx.ui.out(&render(ctx.ui.out, &name, &told, Timestamp::now(), &TimeZone::system()))?;
    if let Some(hint) = &told.hint {
        ctx.ui.hint(&visible(hint));
    }
    Ok(Exit::OK)
}

fn render(
    look: Look,
    name: &str,
    told: &EgressExplained,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    let of = &told.line;
    let mut text = format!("{}  {}\n", look.bold(line::verdict(of)), line::request(of));
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:<7} {value}");
    };
    row("why", &visible(&told.why));
    row("reason", &line::reason(of));
    if let Some(rule) = &of.rule {
        row("rule", &format!("{} ({})", visible(&rule.host), visible(&rule.origin)));
    }
    row("box", name);
    row("when", &format!("{} ({})", exact(of.at, zone.clone()), ago(now, of.at)));
    row("id", &visible(&of.id));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_stopped_request_says_why() {
        let told = EgressExplained {
            line: samples::traffic().remove(1),
            why: "no rule for the host fits".into(),
            hint: None,
        };
        let text = render(Look::PLAIN, "fix-login", &told, samples::now(), &TimeZone::UTC);
        insta::assert_snapshot!(text);
    }
}
