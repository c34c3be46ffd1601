//! `agentbox screen`: what a box draws on its screen, in a browser.

use crate::context::{Context, target};
use crate::error::Outcome;
use protocol::control::Request;
use protocol::links::{Link, LinkTo};

/// Open a box's screen
///
/// The box's desktop in your browser, with mouse, keys and clipboard. A box that is stopped or paused
/// is started first. The address that is opened works once; the one --print shows ends with the
/// screen's password, so treat it as one. Exit code 1 when the box has no screen.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox screen                   the screen of the project's only box
  agentbox screen fix-login --print the address with its password")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print the address, with the password, instead of opening it
    #[arg(long)]
    print: bool,

    /// The box's own port on 127.0.0.1; another one after every start
    #[arg(long)]
    loopback: bool,

    /// Print the addresses as JSON, with the password, and open nothing
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let (target, to) = (target(args.which), LinkTo::Screen);
    let (loopback, engine) = (args.loopback, ctx.engine_kind());
    let link: Link = ctx.client()?.call(&Request::Link { target, to, loopback, engine })?;
    super::url::show(ctx, &link, args.print, args.json)
}
