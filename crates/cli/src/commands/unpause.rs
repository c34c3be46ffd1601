//! `agentbox unpause`.

use crate::context::Context;
use crate::error::Outcome;
use crate::several::{self, Which};
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Let a paused box go on
///
/// Its programs go on where they stood. One that runs already is left as it is.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "resume",
    after_help = "Examples:
  agentbox unpause             the only box of the project in this folder
  agentbox unpause fix-login   the box of that name"
)]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let say = |view: &BoxView| format!("running {}\n", view.name);
    several::each(ctx, args.which, args.json, |target| Request::UnpauseBox { target }, say)
}
