//! `agentbox git status`: what is changed in a box, in its own git's words.

use super::{Which, check_repo, in_workspace, tell};
use crate::context::{Context, target};
use crate::error::Outcome;
use crate::in_box::in_box;
use protocol::ctl::paths::WORKSPACE;

/// Show what is changed in a box
///
/// What git says there: the branch, what is staged, changed and new. The box is brought up for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git status fix-login
  agentbox git status fix-login --short
  agentbox git status fix-login --repo api   of a repository below the workspace")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// A repository below the workspace, by its folder [default: the workspace's own]
    #[arg(long, value_name = "FOLDER")]
    repo: Option<String>,

    /// One line for each file
    #[arg(short, long)]
    short: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let (client, target) = (ctx.client()?, target(args.which.which));
    check_repo(&client, &target, args.repo.as_deref())?;
    let folder = args.repo.as_deref().map_or_else(|| WORKSPACE.to_owned(), in_workspace);
    // Whatever the box's own settings say, a person reads plain text.
    let words = ["git", "-C", &folder, "-c", "color.ui=never", "status"].map(str::to_owned);
    let flags = args.short.then(|| ["--short", "--branch"].map(str::to_owned));
    let argv = words.into_iter().chain(flags.into_iter().flatten()).collect();
    let said = in_box(&client, target, argv, &[])?;
    tell(ctx, &said, args.which.json)
}
