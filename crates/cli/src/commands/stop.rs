//! `agentbox stop`.

use crate::context::Context;
use crate::error::Outcome;
use crate::several::{self, Which};
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
    #[command(flatten)]
    which: Which,

    /// Print the box as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let say = |view: &BoxView| format!("stopped {}\n", view.name);
    several::each(ctx, args.which, args.json, |target| Request::StopBox { target }, say)
}
