//! `agentbox deny`.

use super::approve;
use crate::context::Context;
use crate::error::Outcome;
use protocol::question::Verdict;

/// Deny what a box asks for
///
/// The command in the box ends with exit code 10.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox deny 3fa9c1d2
  agentbox deny fix-login   the only question of that box")]
pub struct Args {
    #[command(flatten)]
    which: approve::Which,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    approve::answer(ctx, &args.which, |_| Verdict::Deny)
}
