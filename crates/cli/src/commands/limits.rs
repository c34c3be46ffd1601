//! `agentbox limits`: how much of the computer a box may use, shown and changed while it runs.

use super::status::limits as shown;
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use protocol::Limits;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::limits::{parse_cpus, parse_size};
use protocol::looking::BoxDetails;

/// Show or change how much a box may use
///
/// Holds at once, running or not, and for good; nothing in the box is restarted. Without a flag the
/// limits are shown. 0 takes a limit away: all the memory and all the processors there are, and for
/// processes the usual 8192, because a box always has some end. Less memory than it uses now is refused by most engines.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox limits fix-login
  agentbox limits fix-login --memory 4g --cpus 2
  agentbox limits fix-login --memory 0              as much as there is")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// How much of the computer a box may use, as far as that can be changed later.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct LimitArgs {
    /// Memory the box may use, such as 512m or 4g
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,

    /// Processors the box may use, such as 2 or 1.5
    #[arg(long, value_name = "N", value_parser = cpus)]
    cpus: Option<u64>,

    /// Processes the box may have at once; 8192 unless set
    #[arg(long, value_name = "N")]
    pids_limit: Option<u64>,
}

impl LimitArgs {
    pub fn limits(self) -> Limits {
        let Self { memory, cpus, pids_limit } = self;
        Limits { memory_bytes: memory, nano_cpus: cpus, pids: pids_limit, disk_bytes: None }
    }
}

pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "not a size such as 512m or 4g".to_owned())
}

fn cpus(text: &str) -> Result<u64, String> {
    parse_cpus(text).ok_or_else(|| "not a number of processors such as 2 or 1.5".to_owned())
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let wanted = args.limits.limits();
    let mut of = target(args.which);
    if wanted != Limits::default() {
        let view: BoxView = client.call(&Request::SetLimits { target: of, limits: wanted })?;
        of = Target::id(&view.id);
    }
    // What holds is what the engine says, not what was asked for.
    let details: BoxDetails = client.call(&Request::Details { target: of })?;
    if args.json {
        json::print(&ctx.ui, "limits", &details.limits)?;
    } else {
        ctx.ui.out(&format!("{}  {}\n", details.view.name, shown(&details.limits)))?;
    }
    Ok(Exit::OK)
}
