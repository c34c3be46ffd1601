//! `agentbox stop`.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Stop a box
///
/// Everything in it ends; its files stay. `agentbox start` brings it back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox stop             the only box of the project in this folder
  agentbox stop fix-login   the box of that name")]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print the box as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let request = Request::StopBox { target: target(args.which) };
    let view: BoxView = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "box", &view)?;
    } else {
        ctx.ui.out(&format!("stopped {}\n", view.name))?;
    }
    Ok(Exit::OK)
}
