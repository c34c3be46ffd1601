//! `agentbox pause`.

use crate::context::Context;
use crate::error::Outcome;
use crate::several::{self, Which};
use protocol::boxes::{BoxState, BoxView};
use protocol::control::Request;

/// Freeze a box
///
/// Its programs stand still where they are, in memory, and use no processor time. It goes on when
/// somebody opens a shell in it, runs a command in it, or with `agentbox unpause`. An engine that
/// cannot freeze a box stops it instead, and that is said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox pause             the only box of the project in this folder
  agentbox pause a b         several boxes")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let say = |view: &BoxView| {
        if view.state == BoxState::Stopped {
            ctx.ui.warn("this engine cannot pause a box, so it was stopped");
            return format!("stopped {}\n", view.name);
        }
        format!("paused {}\n", view.name)
    };
    several::each(ctx, args.which, args.json, |target| Request::PauseBox { target }, say)
}
