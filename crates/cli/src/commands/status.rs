//! `agentbox status`: the host itself, or one box. Never starts a host, so that asking changes nothing.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::size;
use crate::time::{ago, rough, seconds_since};
use crate::ui::Look;
use jiff::Timestamp;
use protocol::boxes::BoxState;
use protocol::control::{HostStatus, Request};
use protocol::looking::{BoxDetails, BoxProcess};
use protocol::text::visible;
use std::fmt::Write;

/// Lines of the process list; the rest is counted.
const LISTED: usize = 15;

/// Show the state of the host, or of a box
///
/// Says whether a host runs, which engine it uses, what waits for you, and what is missing on
/// this machine. With a box: its state, image, branch, limits, what it uses, its tasks and
/// services, and what runs in it. Does not start a host; exit code 1 when none runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox status
  agentbox status fix-login
  agentbox status --json")]
pub struct Args {
    /// A box: number, name, id or unique id prefix [default: the host]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.which.is_some() {
        let request = Request::Details { target: target(args.which) };
        let details: BoxDetails = ctx.client_if_running().call(&request)?;
        if args.json {
            json::print(&ctx.ui, "details", &details)?;
        } else {
            ctx.ui.out(&render_box(ctx.ui.out, &details, Timestamp::now()))?;
        }
        return Ok(Exit::OK);
    }
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

fn render_box(look: Look, of: &BoxDetails, now: Timestamp) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11}{value}");
    };
    let view = &of.view;
    row(
        "box",
        format!("{}, {} of {}", look.bold(view.name.as_str()), view.id, visible(&view.project)),
    );
    row("state", state(of, now));
    row("image", visible(&view.image));
    if let Some(branch) = &view.branch {
        row("branch", visible(branch));
    }
    row("workspace", visible(&of.workspace));
    if view.questions > 0 {
        row("questions", view.questions.to_string());
    }
    let limits = &of.limits;
    let limits: Vec<String> = [
        limits.memory_bytes.map(|n| format!("memory {}", size::bytes(n))),
        limits.cpus.map(|n| format!("processors {n}")),
        limits.pids.map(|n| format!("processes {n}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    row("limits", if limits.is_empty() { "none".to_owned() } else { limits.join(", ") });
    if let Some(usage) = &of.usage {
        if let Some(share) = usage.cpu_percent {
            row("processor", format!("{share:.1} %"));
        }
        row("memory", size::known(usage.memory_bytes));
        row("disk", size::known(usage.disk_bytes));
    }
    if let Some(units) = &of.units {
        text.push_str(&super::services::units(look, units));
    }
    let mut row = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11}{value}");
    };
    if let Some(processes) = &of.processes {
        row("processes", processes.len().to_string());
        text.push_str(&listed(processes));
    }
    text
}

fn state(of: &BoxDetails, now: Timestamp) -> String {
    let word = of.view.state.as_str();
    let since = |at: Option<u64>| at.map(|at| rough(seconds_since(now, at)));
    match of.view.state {
        BoxState::Running if !of.ready => format!("{word}, but not ready"),
        BoxState::Running => match since(of.started_at) {
            Some(time) => format!("{word} for {time}"),
            None => word.to_owned(),
        },
        BoxState::Stopped => {
            let mut text = word.to_owned();
            if let Some(time) = since(of.ended_at) {
                let _ = write!(text, " {time} ago");
            }
            if of.out_of_memory {
                text.push_str(", it had used up its memory");
            } else if let Some(code) = of.exit_code.filter(|code| *code != 0) {
                let _ = write!(text, " with exit code {code}");
            }
            text
        }
        _ => word.to_owned(),
    }
}

fn listed(processes: &[BoxProcess]) -> String {
    let mut text = String::new();
    for process in processes.iter().take(LISTED) {
        let (user, time) = (visible(&process.user), visible(&process.time));
        let _ = writeln!(text, "  {user:<10} {time:>9}  {}", visible(&process.command));
    }
    if processes.len() > LISTED {
        let _ = writeln!(text, "  and {} more", processes.len() - LISTED);
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
    fn boxes_as_they_are() {
        let details = |state: BoxState| BoxDetails {
            view: protocol::boxes::BoxView { state, ..samples::boxes().remove(0) },
            ready: state == BoxState::Running,
            workspace: "/home/ada/shop-api".into(),
            base: None,
            container: "c0ffee".into(),
            started_at: Some(samples::boxes()[0].created_at),
            ended_at: Some(samples::boxes()[0].created_at),
            exit_code: Some(137),
            out_of_memory: false,
            limits: protocol::looking::BoxLimits {
                memory_bytes: Some(2_000_000_000),
                cpus: Some(1.5),
                pids: Some(4096),
            },
            usage: None,
            processes: (state == BoxState::Running).then(|| {
                let one = |command: &str| BoxProcess {
                    pid: "7".into(),
                    user: "vscode".into(),
                    time: "00:00:01".into(),
                    command: command.into(),
                };
                std::iter::once(one("evil\x1b[2K")).chain((0..20).map(|_| one("sleep"))).collect()
            }),
            mounts: vec![],
            carried: vec![],
            units: Some(crate::commands::services::sample()),
        };
        let texts = [BoxState::Running, BoxState::Stopped, BoxState::Missing]
            .map(|state| render_box(Look::PLAIN, &details(state), samples::now()));
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn a_host_with_trouble() {
        insta::assert_snapshot!(render(Look::PLAIN, &samples::status(), samples::now()));
    }
}
