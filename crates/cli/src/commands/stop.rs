//! `agentbox stop`.

use crate::ask;
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::several::{self, Which};
use protocol::boxes::BoxView;
use protocol::busy;
use protocol::control::{Request, Target};

/// Stop a box
///
/// Everything in it ends; its files stay. `agentbox start` brings it back. At a terminal you are asked
/// first while an agent works in it or waits for an answer of yours.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox stop             the only box of the project in this folder
  agentbox stop fix-login   the box of that name")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Stop it whatever goes on in it
    #[arg(short, long)]
    yes: bool,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if !args.yes && ctx.ui.interactive && !may_stop(ctx, &args.which)? {
        return Ok(Exit::OK);
    }
    let say = |view: &BoxView| format!("stopped {}\n", view.name);
    several::each(ctx, args.which, args.json, |target| Request::StopBox { target }, say)
}

/// Whether nothing goes on, or the person does not mind.
fn may_stop(ctx: &Context, which: &Which) -> Result<bool, crate::error::CommandError> {
    let client = ctx.client()?;
    let targets: Vec<Target> = match which.which.as_slice() {
        [] => vec![target(None)],
        words => words.iter().map(|word| target(Some(word.clone()))).collect(),
    };
    // Whatever names no box is complained about by the one who stops it.
    let find = |target| client.call::<BoxView>(&Request::FindBox { target }).ok();
    let views: Vec<BoxView> = targets.into_iter().filter_map(find).collect();
    let reasons = busy::reasons(&views);
    if reasons.is_empty() {
        return Ok(true);
    }
    ctx.ui.say(&reasons.join("\n"));
    Ok(ask::yes(&ctx.ui, "Stop anyway?"))
}
