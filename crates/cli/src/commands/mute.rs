//! `agentbox mute`: a box that asks too much is not heard for a while.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::time;
use jiff::Zoned;
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Deny a box's questions without asking you
///
/// What it asks meanwhile ends with exit code 10, open questions included. Rules you made still
/// hold. It is on record like any other answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox mute fix-login            for an hour
  agentbox mute fix-login --for 1d
  agentbox mute fix-login --off      hear it again")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// How long: 30m, 1h, 2d
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = time::parse_duration)]
    time: u64,

    /// Hear it again
    #[arg(long, conflicts_with = "time")]
    off: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let seconds = (!args.off).then_some(args.time);
    let request = Request::Mute { target: target(args.which), seconds };
    let view: BoxView = ctx.client()?.call(&request)?;
    ctx.ui.out(&said(&view, &Zoned::now()))?;
    Ok(Exit::OK)
}

fn said(view: &BoxView, now: &Zoned) -> String {
    match view.muted_until {
        None => format!("{} is heard.\n", view.name),
        Some(until) => {
            let left = time::seconds_until(now.timestamp(), until);
            format!("{} is muted {}: what it asks is denied.\n", view.name, time::ends(now, left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn what_holds_now_is_told() {
        let now = samples::now().to_zoned(jiff::tz::TimeZone::UTC);
        let mut view = samples::boxes().remove(0);
        assert_eq!(said(&view, &now), "fix-login is heard.\n");
        view.muted_until =
            Some(u64::try_from(now.timestamp().as_millisecond()).unwrap() + 3_600_000);
        assert!(said(&view, &now).starts_with("fix-login is muted until 01:00"));
    }
}
