//! `agentbox top`: what boxes use, as they use it.

use crate::context::{Context, current_dir, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::follow::{self, Screen, Then};
use crate::json;
use crate::project;
use crate::size;
use crate::table;
use crate::ui::Look;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{HostEvent, Request};
use protocol::looking::{BoxUsage, DiskUsage, Usage};
use protocol::text::visible;
use std::fmt::Write;

/// Show what boxes use
///
/// Processor (of one, so two busy ones are 200 %), memory, processes, own files and network of every
/// box, redrawn until Ctrl-C. The last line is the engine's disk.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox top
  agentbox top fix-login --interval 0.5
  agentbox top -p              boxes of this project
  agentbox top --once --json   for a program")]
pub struct Args {
    /// Only this box: number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Only boxes of the project in this folder
    #[arg(short, long, conflicts_with = "which")]
    project: bool,

    /// Show it once
    #[arg(long)]
    once: bool,

    /// Seconds between two looks, at least 0.25
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = interval)]
    interval: u32,

    /// Print JSON; one object per line unless --once is given
    #[arg(short, long)]
    json: bool,
}

/// In milliseconds.
pub fn interval(text: &str) -> Result<u32, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    if !(0.25..=3600.0).contains(&seconds) {
        return Err("between 0.25 and 3600 seconds".to_owned());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok((seconds * 1000.0) as u32)
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let only = args.which.map(|which| target(Some(which)));
    let request = Request::FollowUsage { target: only, every_ms: args.interval };
    let mut screen = Screen::default();
    let client = ctx.client()?;
    let here = if args.project { Some(here(&client)?) } else { None };
    follow::events(&client, &request, |event| {
        let HostEvent::Usage { mut usage } = event else { return Ok(Then::GoOn) };
        usage.boxes.retain(|of| here.as_ref().is_none_or(|root| of.project_root == *root));
        match (args.json, args.once) {
            (true, true) => json::print(&ctx.ui, "usage", &usage)?,
            (true, false) => {
                let line = serde_json::json!({ "schema": json::SCHEMA, "usage": usage });
                ctx.ui.out(&json::line(&line)?)?;
            }
            (false, true) => ctx.ui.out(&render(ctx.ui.out, &usage))?,
            (false, false) => screen.draw(&ctx.ui, &render(ctx.ui.out, &usage))?,
        }
        Ok(if args.once { Then::Leave } else { Then::GoOn })
    })?;
    Ok(Exit::OK)
}

/// The root of the project in this folder.
fn here(client: &Client) -> Result<String, CommandError> {
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let root = project::around(&boxes, current_dir().as_deref());
    root.map(str::to_owned).ok_or_else(|| {
        CommandError::usage("this folder's project has no box")
            .hint("agentbox top shows what all boxes use")
    })
}

const HEADER: [&str; 8] =
    ["BOX", "STATE", "CPU%", "MEM / LIMIT", "MEM%", "PIDS", "DISK", "NET I/O"];

fn render(look: Look, usage: &Usage) -> String {
    let rows: Vec<_> = usage.boxes.iter().map(row).collect();
    let mut text = table::render(look, &HEADER, &rows);
    text.push_str(&format!("\n{}\n", footer(&usage.disk)));
    for of in usage.boxes.iter().filter(|of| !of.at_limit.is_empty()) {
        let limits = of.at_limit.iter().map(|limit| limit.as_str()).collect::<Vec<_>>().join(", ");
        let _ =
            writeln!(text, "{} {} is at its limit: {limits}", look.warn("⚠"), visible(&of.name));
    }
    text
}

fn row(of: &BoxUsage) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let network = of.received_bytes.zip(of.sent_bytes);
    vec![
        visible(&of.name),
        of.state.as_str().to_owned(),
        or_dash(of.cpu_percent.map(|share| format!("{share:.1}"))),
        or_dash(of.memory_bytes.map(|used| match of.memory_limit {
            Some(limit) => format!("{} / {}", size::bytes(used), size::bytes(limit)),
            None => size::bytes(used),
        })),
        or_dash(of.memory_bytes.zip(of.memory_limit).map(percent)),
        or_dash(of.pids.map(|n| n.to_string())),
        size::known(of.disk_bytes),
        or_dash(network.map(|(i, o)| format!("{} / {}", size::bytes(i), size::bytes(o)))),
    ]
}

#[allow(clippy::cast_precision_loss, reason = "one digit is shown")]
fn percent((part, whole): (u64, u64)) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}", part as f64 / whole as f64 * 100.0) }
}

fn footer(disk: &DiskUsage) -> String {
    let known =
        |amount: Option<u64>, what: &str| amount.map(|n| format!("{what} {}", size::bytes(n)));
    let parts = [
        known(disk.boxes_bytes, "boxes"),
        known(disk.images_bytes, "images"),
        known(disk.free_bytes, "free"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "SYSTEM  -".to_owned()
    } else {
        format!("SYSTEM  {}", parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use protocol::looking::AtLimit;

    #[test]
    fn the_table_fits_and_says_what_is_not_known() {
        let of = |n: usize| {
            let view = &samples::boxes()[n];
            BoxUsage {
                id: view.id.clone(),
                name: view.name.to_string(),
                project: view.project.clone(),
                project_root: view.project_root.clone(),
                state: view.state,
                cpu_percent: None,
                memory_bytes: None,
                memory_limit: None,
                pids: None,
                pids_limit: None,
                at_limit: Vec::new(),
                disk_bytes: None,
                received_bytes: None,
                sent_bytes: None,
            }
        };
        let busy = BoxUsage {
            cpu_percent: Some(187.25),
            memory_bytes: Some(512_000_000),
            memory_limit: Some(2_048_000_000),
            pids: Some(41),
            at_limit: vec![AtLimit::Memory, AtLimit::Processes],
            disk_bytes: Some(1_200_000),
            received_bytes: Some(3_000),
            sent_bytes: Some(0),
            ..of(0)
        };
        let disk = DiskUsage { boxes_bytes: Some(1), images_bytes: None, free_bytes: Some(2_000) };
        let usage = Usage { boxes: vec![busy, of(1)], disk };
        let text = render(Look::PLAIN, &usage);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_interval_is_no_busy_loop() {
        assert_eq!(interval("0.5"), Ok(500));
        for wrong in ["0", "0.1", "-1", "x", "NaN", "1e9"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
