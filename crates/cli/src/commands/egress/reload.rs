//! `agentbox egress reload`: every layer read again, now.
//!
//! The host follows its files by itself. This waits until it has, and says what came of it.

use super::{count, told_rejected};
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use host::client::ClientError;
use protocol::control::Request;
use protocol::egress::EgressReloaded;

const REJECTED: Exit = Exit(2);
const NO_HOST: Exit = Exit(5);

/// Read policies again and wait until they hold
///
/// Files are followed by themselves; this is for scripts that want to know. A policy that is invalid is not
/// taken, and the one of before holds on. Never starts a host. Exits with 0 when all were taken, 2 when one
/// was not, 5 when no host runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: every box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let target = args.which.map(|which| target(Some(which)));
    let all: Vec<EgressReloaded> =
        match ctx.client_if_running().call(&Request::ReloadEgress { target }) {
            Ok(all) => all,
            Err(error @ ClientError::NotRunning(_)) => {
                ctx.ui.report(&CommandError::from(error));
                return Ok(NO_HOST);
            }
            Err(error) => return Err(error.into()),
        };
    if args.json {
        json::print(&ctx.ui, "reloaded", &all)?;
    } else if all.is_empty() {
        ctx.ui.say("No box has a policy.");
    } else {
        ctx.ui.out(&all.iter().filter(|one| one.applied).map(line).collect::<String>())?;
    }
    Ok(if told_rejected(&ctx.ui, &all) { REJECTED } else { Exit::OK })
}

fn line(of: &EgressReloaded) -> String {
    let exact = count(of.exact_hosts, "host");
    let wild = count(of.wildcard_hosts, "wildcard");
    format!("{}  revision {}, {exact}, {wild}\n", of.box_name, of.revision)
}
