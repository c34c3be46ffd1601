//! `agentbox quit`.

use crate::commands::host;
use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::launch;
use protocol::control::Request;

/// End the host
///
/// Open questions are denied. Boxes go on; the next command, or agentbox-desktop, starts a host
/// again. At a terminal you are asked first while an agent works or a question is open: without a host
/// nothing an agent asks for is done.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// End it whatever goes on
    #[arg(short, long)]
    yes: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if !launch::is_running(&ctx.home) {
        ctx.ui.out("no host is running\n")?;
        return Ok(Exit::OK);
    }
    let client = ctx.client_if_running();
    if !args.yes && ctx.ui.interactive && !host::may_end(ctx, &client)? {
        return Ok(Exit::OK);
    }
    client.call::<()>(&Request::Stop)?;
    ctx.ui.out("the host ends; boxes go on\n")?;
    Ok(Exit::OK)
}
