//! `agentbox egress ca`: the authority whose certificates boxes trust.

use super::lines;
use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time::exact;
use jiff::tz::TimeZone;
use protocol::control::Request;
use protocol::egress::CaView;
use protocol::text::visible;

/// Show the authority whose certificates boxes trust
///
/// The host looks into requests of boxes that have no network, so it answers them with certificates of its
/// own. Only boxes trust this authority; nothing else on this computer needs to. Its key never leaves the
/// host.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the certificate, as programs read it
    #[arg(long, conflicts_with = "json")]
    pem: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let ca: CaView = ctx.client()?.call(&Request::EgressCa)?;
    if args.json {
        json::print(&ctx.ui, "ca", &ca)?;
    } else if args.pem {
        ctx.ui.out(&lines(&ca.pem))?;
    } else {
        ctx.ui.out(&render(&ca, TimeZone::system()))?;
    }
    Ok(Exit::OK)
}

fn render(ca: &CaView, zone: TimeZone) -> String {
    format!(
        "name         {}\nfingerprint  {}\nvalid until  {}\nfile         {}\n",
        visible(&ca.name),
        visible(&ca.fingerprint),
        exact(ca.not_after, zone),
        visible(&ca.file)
    )
}
