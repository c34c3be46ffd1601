//! `agentbox status`: the host itself. Never starts one, so that asking changes nothing.

use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time::ago;
use crate::ui::Look;
use jiff::Timestamp;
use protocol::control::{HostStatus, Request};
use protocol::text::visible;
use std::fmt::Write;

/// Show the host's state
///
/// Says whether a host runs, which engine it uses, what waits for you, and what is missing on
/// this machine. Does not start a host; exit code 1 when none runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox status
  agentbox status --json")]
pub struct Args {
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let status: HostStatus = ctx.client_if_running().call(&Request::Status)?;
    if args.json {
        json::print(&ctx.ui, "status", &status)?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, &status, Timestamp::now()))?;
    }
    if status.proto != protocol::PROTO {
        ctx.ui.warn(&format!(
            "the host speaks version {}, this program version {}: restart the host",
            status.proto,
            protocol::PROTO
        ));
    }
    Ok(Exit::OK)
}

fn render(look: Look, status: &HostStatus, now: Timestamp) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<11}{value}");
    };
    let started = ago(now, status.started_at);
    row(
        "host",
        &format!(
            "{} {}, pid {}, started {started}",
            visible(&status.kind),
            visible(&status.version),
            status.pid
        ),
    );
    row("home", &visible(&status.home));
    let mark = if status.engine.reachable { look.good("✓") } else { look.bad("✗") };
    row(
        "engine",
        &format!(
            "{mark} {}{}",
            visible(&status.engine.detail),
            in_brackets(status.engine.hint.as_deref())
        ),
    );
    row("boxes", &status.boxes.to_string());
    row("questions", &status.questions.to_string());
    if let Some(until) = status.quiet_until {
        row("quiet", &super::quiet::row(until, now));
    }
    for notice in &status.notices {
        let hint = in_brackets(notice.hint.as_deref());
        row(
            &format!("{} ", visible(&notice.part)),
            &format!("{} {}{hint}", look.warn("⚠"), visible(&notice.message)),
        );
    }
    text
}

fn in_brackets(hint: Option<&str>) -> String {
    hint.map(|h| format!("  ({})", visible(h))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_host_with_trouble() {
        insta::assert_snapshot!(render(Look::PLAIN, &samples::status(), samples::now()));
    }
}
