//! `agentbox inspect`: everything about a box, for programs.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use protocol::control::Request;
use protocol::looking::BoxDetails;

/// Print everything about a box as JSON
///
/// State, image, branch, limits, what it uses, its processes and mounts. No credential and no token is
/// among it. `agentbox status <box>` shows the same to people.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox inspect fix-login
  agentbox inspect fix-login | jq .details.usage")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON, as without it: for scripts that always say so
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let request = Request::Details { target: target(args.which) };
    let details: BoxDetails = ctx.client()?.call(&request)?;
    json::print(&ctx.ui, "details", &details)?;
    Ok(Exit::OK)
}
