//! `agentbox url`: a box's web app.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use host::opener;
use protocol::control::Request;
use protocol::links::{Link, LinkTo};

/// Open a box's web app
///
/// What the box serves on port 80, at an address that stays the same: http://BOX.localhost:1355. A
/// box that is stopped or paused is started first. With --port it is whatever the box serves on that
/// port, also on its own loopback only.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox url                   the web app of the project's only box
  agentbox url fix-login --print just the address
  agentbox url --port 3000       what listens on port 3000 in the box")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print the address instead of opening it
    #[arg(long)]
    print: bool,

    /// The box's own port on 127.0.0.1; another one after every start
    #[arg(long)]
    loopback: bool,

    /// Another port of the box
    #[arg(long, value_name = "PORT", conflicts_with = "loopback", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Print the addresses as JSON and open nothing
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let to = args.port.map_or(LinkTo::Web, |port| LinkTo::Port { port });
    let engine = ctx.engine_kind();
    let request = Request::Link { target: target(args.which), to, loopback: args.loopback, engine };
    let link: Link = ctx.client()?.call(&request)?;
    show(ctx, &link, args.print, args.json)
}

/// Prints an address, or opens it and says so.
pub fn show(ctx: &Context, link: &Link, print: bool, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "link", link)?;
    } else if print {
        ctx.ui.out(&format!("{}\n", link.url))?;
    } else {
        let Some(address) = &link.open else {
            ctx.ui.out(&format!("{}\n", link.url))?;
            ctx.ui.hint("open this address yourself: without the proxy its password would show");
            return Ok(Exit::OK);
        };
        if let Err(why) = opener::open(address) {
            ctx.ui.out(&format!("{}\n", link.url))?;
            return Err(CommandError::failed(why).hint("open the address above yourself"));
        }
        ctx.ui.out(&format!("opened {}\n", link.shown))?;
    }
    Ok(Exit::OK)
}
