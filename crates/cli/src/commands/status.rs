//! `agentbox status`: the host itself, or one box. Never starts a host, so that asking changes nothing.

mod details;

pub use details::limits;

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::follow::Screen;
use crate::json;
use crate::time::ago;
use crate::ui::Look;
use jiff::Timestamp;
use protocol::boxes::BoxView;
use protocol::control::{HostStatus, Request};
use protocol::looking::BoxDetails;
use protocol::text::visible;
use std::fmt::Write;
use std::time::Duration;

/// Show the state of the host, or of a box
///
/// Says whether a host runs, which engine it uses, what waits for you, and what is missing on
/// this machine. With a box: where it is reached, what it uses and may use, its agents, shells,
/// ports, tasks and services. Does not start a host; exit code 1 when none runs.
///
/// With --set-name a box is shown by another name as well. That changes neither its own name nor its
/// branch or addresses.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox status
  agentbox status fix-login
  agentbox status fix-login --inspect               and its mounts, image and processes
  agentbox status fix-login --set-name 'The login'
  agentbox status --json")]
pub struct Args {
    /// A box: number, name, id, unique id prefix, project/name or @project [default: the host]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Show its mounts, processes and where it came from as well
    #[arg(long, requires = "which")]
    inspect: bool,

    /// Show the box by this name as well, at most 60 characters
    #[arg(long, value_name = "NAME", requires = "which", conflicts_with_all = ["inspect", "watch"])]
    set_name: Option<String>,

    /// Show the box by its own name alone
    #[arg(long, requires = "which", conflicts_with_all = ["set_name", "inspect", "watch"])]
    clear_name: bool,

    /// Stay and show it again and again
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,

    /// Seconds between two looks, at least 0.25
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = super::top::interval)]
    interval: u32,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.set_name.is_some() || args.clear_name {
        return name(ctx, args);
    }
    if !args.watch {
        ctx.ui.out(&look(ctx, &args)?)?;
        return Ok(Exit::OK);
    }
    let mut screen = Screen::default();
    loop {
        let text = look(ctx, &args)?;
        screen.draw(&ctx.ui, &text)?;
        std::thread::sleep(Duration::from_millis(u64::from(args.interval)));
    }
}

fn name(ctx: &Context, args: Args) -> Outcome {
    let request = Request::SetDisplayName { target: target(args.which), name: args.set_name };
    let view: BoxView = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "box", &view)?;
    } else {
        ctx.ui.out(&match &view.display_name {
            Some(name) => format!("{} is shown as {}\n", view.name, visible(name)),
            None => format!("{} is shown by its name\n", view.name),
        })?;
    }
    Ok(Exit::OK)
}

/// What is to be printed now.
fn look(ctx: &Context, args: &Args) -> Result<String, CommandError> {
    let client = ctx.client_if_running();
    let now = Timestamp::now();
    let bad = |e: serde_json::Error| CommandError::failed(e.to_string());
    if args.which.is_some() {
        let request = Request::Details { target: target(args.which.clone()) };
        let details: BoxDetails = client.call(&request)?;
        if args.json {
            return json::envelope("details", &details).map_err(bad);
        }
        return Ok(details::render(ctx.ui.out, &details, args.inspect, now));
    }
    let status: HostStatus = client.call(&Request::Status)?;
    if status.proto != protocol::PROTO {
        ctx.ui.warn(&format!(
            "the host speaks version {}, this program version {}: restart the host",
            status.proto,
            protocol::PROTO
        ));
    }
    if args.json {
        return json::envelope("status", &status).map_err(bad);
    }
    Ok(render(ctx.ui.out, &status, now))
}

pub(super) fn render(look: Look, status: &HostStatus, now: Timestamp) -> String {
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
    if let Some(jobs) = status.jobs.in_words() {
        row("jobs", &jobs);
    }
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
