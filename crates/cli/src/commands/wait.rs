//! `agentbox wait`.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::in_box;
use crate::interrupt::Interrupt;
use crate::json;
use crate::time::{parse_timeout, seconds_of};
use host::client::Client;
use protocol::control::{Request, Target};
use protocol::looking::Waited;
use protocol::supervisor::WaitReady;
use protocol::text::{shortened, visible};
use std::time::{Duration, Instant};

/// Wait until a box is ready
///
/// Ready is a box that runs, has what it needs from the host, and whose tasks are done and services
/// up. A paused one is woken for it. Exit code 1 when it is not ready in time, and as soon as a task or
/// service it waits for has failed; 2 when there is no such task or service.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox wait fix-login
  agentbox wait fix-login --units db,web
  agentbox wait fix-login --timeout 10s && agentbox shell fix-login -- npm test")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Only these tasks and services [default: all that start by themselves]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    units: Vec<String>,

    /// How long at most: 30s, 2m, or milliseconds
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_timeout)]
    timeout: u64,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let limit = Duration::from_millis(args.timeout);
    let waited =
        until_ready(&Interrupt::install()?, &client, &target(args.which), &args.units, limit)?;
    if args.json {
        json::print(&ctx.ui, "waited", &waited)?;
    } else if waited.ready {
        ctx.ui.out("ready\n")?;
    } else {
        let why = waited.why.as_deref().map(|why| format!(": {}", visible(why)));
        ctx.ui.out(&format!("not ready{}\n", why.unwrap_or_default()))?;
    }
    Ok(if waited.ready { Exit::OK } else { Exit::FAILED })
}

/// Until the box runs and its tasks and services are ready, all of them or these, at most so long. One
/// that failed ends it.
pub fn until_ready(
    interrupt: &Interrupt,
    client: &Client,
    target: &Target,
    names: &[String],
    limit: Duration,
) -> Result<Waited, CommandError> {
    let begun = Instant::now();
    let seconds = seconds_of(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let request = Request::WaitFor { target: target.clone(), seconds };
    let mut waited: Waited = interrupt.call(client, &request, |_| {})?;
    if waited.ready {
        let left = limit.saturating_sub(begun.elapsed());
        waited.why = units(interrupt, client, target.clone(), names, left)?;
        waited.ready = waited.why.is_none();
    }
    Ok(waited)
}

/// An image from before there was a supervisor does not know the word.
const UNKNOWN_COMMAND: i32 = 64;
const BAD_NAME: i32 = 2;

/// Why the box's tasks and services are not ready; none when they are.
fn units(
    interrupt: &Interrupt,
    client: &Client,
    target: Target,
    names: &[String],
    left: Duration,
) -> Result<Option<String>, CommandError> {
    let timeout = left.as_millis().max(1).to_string();
    let mut words = vec!["wait-ready", "--json", "--timeout", &timeout];
    if !names.is_empty() {
        words.push("--units");
        words.extend(names.iter().map(String::as_str));
    }
    let said = in_box::run(interrupt, client, target, &words)?;
    match said.exit_code {
        UNKNOWN_COMMAND if names.is_empty() => return Ok(None),
        BAD_NAME => {
            return Err(CommandError::usage(said.complaint())
                .hint("agentbox services list shows the tasks and services there are"));
        }
        0 | 1 => {}
        _ => return Err(unanswered(said.complaint())),
    }
    let Ok(waited) = serde_json::from_slice::<WaitReady>(&said.stdout) else {
        return Err(unanswered(said.complaint()));
    };
    if waited.ready {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (what, names) in [("failed", &waited.failed), ("not up in time", &waited.timed_out)] {
        let names: Vec<String> = names.iter().take(20).map(|name| shortened(name, 100)).collect();
        if !names.is_empty() {
            parts.push(format!("{what}: {}", names.join(", ")));
        }
    }
    Ok(Some(parts.join("; ")))
}

fn unanswered(why: String) -> CommandError {
    CommandError::failed(why).hint("agentbox logs BOX shows what the box's first process says")
}
