//! `agentbox __complete-boxes`: the names of boxes, for shells that complete a line.
//!
//! Called at every press of a key: it asks a host that runs and never starts one, and says nothing
//! when something is wrong.

use crate::context::Context;
use crate::error::{Exit, Outcome};
use protocol::boxes::BoxView;
use protocol::control::Request;

/// Print the names of boxes
///
/// For completions: one name per line, nothing when no host runs.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(ctx: &Context, _args: Args) -> Outcome {
    let boxes: Vec<BoxView> = ctx.client_if_running().call(&Request::Boxes).unwrap_or_default();
    let names: String = boxes.iter().map(|view| format!("{}\n", view.name)).collect();
    ctx.ui.out(&names)?;
    Ok(Exit::OK)
}
