//! `agentbox wait`.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::time::parse_duration;
use protocol::control::Request;
use protocol::looking::Waited;
use protocol::text::visible;

/// Wait until a box is ready
///
/// Ready is a box that runs and has what it needs from the host. A paused one is woken for it. Exit
/// code 1 when it is not ready in time.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox wait fix-login
  agentbox wait fix-login --timeout 10s && agentbox shell fix-login -- make test")]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// How long at most: 10s, 5m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
    timeout: u64,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let seconds = u32::try_from(args.timeout).unwrap_or(u32::MAX);
    let request = Request::WaitFor { target: target(args.which), seconds };
    let waited: Waited = Interrupt::install()?.call(&client, &request, |_| {})?;
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
