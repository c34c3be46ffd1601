//! `agentbox quit`.

use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::launch;
use protocol::control::Request;

/// End the host
///
/// Open questions are denied. Boxes go on; the next command, or agentbox-desktop, starts a host
/// again.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(ctx: &Context, _: Args) -> Outcome {
    if !launch::is_running(&ctx.home) {
        ctx.ui.out("no host is running\n")?;
        return Ok(Exit::OK);
    }
    ctx.client_if_running().call::<()>(&Request::Stop)?;
    ctx.ui.out("the host ends; boxes go on\n")?;
    Ok(Exit::OK)
}
