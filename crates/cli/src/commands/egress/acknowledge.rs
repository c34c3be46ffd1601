//! `agentbox egress acknowledge`: a host that sent credentials back may have them again.

use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::json;
use protocol::control::Request;
use protocol::text::visible;

/// Put credentials into requests to a host again
///
/// A host that answers with the credential it got, three times within an hour, gets none any more until you
/// say so. What it sent back was not shown to the box.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress acknowledge api.example.com")]
pub struct Args {
    /// The host
    #[arg(value_name = "HOST")]
    host: String,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let request = Request::AcknowledgeEcho { host: args.host.clone() };
    let held: bool = ctx.client()?.call(&request)?;
    let host = visible(&args.host);
    if args.json {
        json::print(&ctx.ui, "acknowledged", &held)?;
    } else if held {
        ctx.ui.out(&format!("{host}  gets credentials again\n"))?;
    } else {
        ctx.ui.say(&format!("Nothing was held back from {host}."));
    }
    Ok(Exit::OK)
}
