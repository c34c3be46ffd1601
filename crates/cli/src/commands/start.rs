//! `agentbox start`.

use crate::context::Context;
use crate::error::Outcome;
use crate::several::{self, Which};
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Start a stopped box
///
/// A paused one goes on. Its files are as they were; programs that ran in it are not started again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox start             the only box of the project in this folder
  agentbox start fix-login   the box of that name")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Print the box as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let say = |view: &BoxView| format!("started {}\n", view.name);
    several::each(ctx, args.which, args.json, |target| Request::StartBox { target }, say)
}
