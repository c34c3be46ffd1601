//! `agentbox doctor`: is everything here that a host needs?
//!
//! With a host running, the host answers: it knows what it sees. Without one the same first
//! questions are asked from this process, so that the command helps most when nothing works.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::ui::Look;
use host::client::ClientError;
use protocol::control::{Check, Level, Request};
use protocol::text::visible;
use std::path::Path;

/// Check what AgentBox needs
///
/// Looks at the home folder, git, the container engine and, when a host runs, the desktop. Each
/// row says what to do about it. Exit code 1 only when a row says FAIL.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox doctor
  agentbox doctor --json")]
pub struct Args {
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let checks = match ctx.client_if_running().call(&Request::Doctor) {
        Err(ClientError::NotRunning(_)) => without_host(&ctx.home)?,
        other => other?,
    };
    if args.json {
        json::print(&ctx.ui, "checks", &checks)?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, &checks))?;
    }
    let failed = checks.iter().any(|c| c.level == Level::Fail);
    Ok(if failed { Exit::FAILED } else { Exit::OK })
}

fn without_host(home: &Path) -> Result<Vec<Check>, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(host::offline_doctor(home)))
}

/// Groups in the order they first appear, each once.
fn render(look: Look, checks: &[Check]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for check in checks {
        if !groups.contains(&check.group.as_str()) {
            groups.push(&check.group);
        }
    }
    let blocks = groups.iter().map(|group| {
        let own: Vec<&Check> = checks.iter().filter(|c| c.group == *group).collect();
        let rows: String = own.iter().map(|c| row(look, c) + "\n").collect();
        let sum = if *group == "integrations" { format!(" {}", sum(&own)) } else { String::new() };
        format!("{}{sum}\n{rows}", look.bold(&visible(group)))
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// Services are many and most are off: one word for all of them.
fn sum(checks: &[&Check]) -> &'static str {
    let any = |level: Level| checks.iter().any(|c| c.level == level);
    match (any(Level::Fail), any(Level::Warn), any(Level::Ok)) {
        (true, ..) => "FAIL",
        (_, true, _) => "check",
        (_, _, true) => "ready",
        _ => "off",
    }
}

fn row(look: Look, check: &Check) -> String {
    let mark = match check.level {
        Level::Ok => look.good("[ ok ]"),
        Level::Info => "[info]".to_owned(),
        Level::Warn => look.warn("[warn]"),
        Level::Fail => look.bad("[FAIL]"),
    };
    let hint = check.hint.as_deref().map(|h| format!("  ({})", visible(h))).unwrap_or_default();
    format!("  {mark} {:<18} {}{hint}", visible(&check.label), visible(&check.detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn rows_by_group() {
        insta::assert_snapshot!(render(Look::PLAIN, &samples::checks()));
    }
}
