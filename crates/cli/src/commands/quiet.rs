//! `agentbox quiet`: no dialogs and notifications for a while.

use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::time;
use jiff::{Timestamp, Zoned};
use protocol::Millis;
use protocol::control::{HostStatus, Request};

/// Hold dialogs and notifications back for a while
///
/// Questions still wait in the inbox, the tray's menu and `agentbox approvals`. One that would
/// run out of time meanwhile is still shown as a notification. Without a time it says how it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox quiet 1h    for an hour
  agentbox quiet off   no longer, quiet hours that run now included
  agentbox quiet       is it quiet?")]
pub struct Args {
    /// How long, such as 30m or 1h; off ends it
    #[arg(value_name = "TIME", value_parser = parse)]
    time: Option<Wish>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    For(u64),
    Off,
}

fn parse(text: &str) -> Result<Wish, String> {
    if text == "off" { Ok(Wish::Off) } else { time::parse_duration(text).map(Wish::For) }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let request = match args.time {
        None => Request::Status,
        Some(Wish::Off) => Request::Quiet { seconds: None },
        Some(Wish::For(seconds)) => Request::Quiet { seconds: Some(seconds) },
    };
    let status: HostStatus = client.call(&request)?;
    ctx.ui.out(&said(status.quiet_until, &Zoned::now()))?;
    Ok(Exit::OK)
}

fn said(until: Option<Millis>, now: &Zoned) -> String {
    match until {
        None => "Not quiet: questions come as dialogs and notifications.\n".into(),
        Some(until) => {
            let left = time::seconds_until(now.timestamp(), until);
            format!("Quiet {}: questions wait in the inbox.\n", time::ends(now, left))
        }
    }
}

/// For the list of what a host is like.
pub fn row(until: Millis, now: Timestamp) -> String {
    let now = now.to_zoned(jiff::tz::TimeZone::system());
    time::ends(&now, time::seconds_until(now.timestamp(), until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_off() {
        assert_eq!(parse("1h"), Ok(Wish::For(3600)));
        assert_eq!(parse("off"), Ok(Wish::Off));
        assert!(parse("no").is_err() && parse("0m").is_err());
    }

    #[test]
    fn the_end_is_told() {
        let morning = jiff::civil::date(2026, 1, 1).at(10, 0, 0, 0);
        let now = morning.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        let at = |seconds: i64| {
            Some(u64::try_from(now.timestamp().as_millisecond() + seconds * 1000).unwrap())
        };
        assert!(said(at(3600), &now).starts_with("Quiet until 11:00:"));
        assert!(said(None, &now).starts_with("Not quiet"));
    }
}
