//! `agentbox start`.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Start a stopped box
///
/// Its files are as they were; programs that ran in it are not started again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox start             the only box of the project in this folder
  agentbox start fix-login   the box of that name")]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print the box as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let request = Request::StartBox { target: target(args.which) };
    let view: BoxView = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "box", &view)?;
    } else {
        ctx.ui.out(&format!("started {}\n", view.name))?;
    }
    Ok(Exit::OK)
}
