//! `agentbox prune`: what is left behind, shown and then removed.

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::size;
use crate::ui::Look;
use protocol::control::Request;
use protocol::looking::{Pruned, Remnant};
use protocol::text::visible;
use std::fmt::Write;

/// Remove what boxes left behind
///
/// Forgets boxes that are gone from their engine. With --all also what this installation has on the
/// engine and no box needs (containers, networks, volumes, checkpoints), box images that are out of
/// date, and folders and pins of boxes that are gone. What is ours is told by labels, never by a name.
/// Shows everything first and asks; does nothing while the engine cannot be asked. A box on another
/// engine than the one in use is never taken for gone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox prune --dry-run       only look
  agentbox prune --all           look everywhere, then ask
  agentbox prune --all -y        do not ask")]
pub struct Args {
    /// Everything of this installation that nobody needs
    #[arg(short, long)]
    all: bool,

    /// Only show it
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let interrupt = Interrupt::install()?;
    let look = Request::Prune { all: args.all, only: None };
    let seen: Pruned = interrupt.call(&client, &look, |_| {})?;
    if args.dry_run || seen.found.is_empty() {
        return told(ctx, &seen, args.json);
    }
    ctx.ui.say(&preview(ctx.ui.err, &seen.found));
    if !args.yes {
        if !ctx.ui.interactive {
            return Err(CommandError::usage("removing needs a yes, and nobody can be asked here")
                .hint("add -y when you are sure, or --dry-run to look"));
        }
        let things = if seen.found.len() == 1 { "this" } else { "these" };
        if !ask::yes(&ctx.ui, &format!("Remove {things}?")) {
            ctx.ui.say("Nothing was removed.");
            return Ok(Exit::OK);
        }
    }
    // What was shown is what is removed.
    let only = seen.found.into_iter().map(|remnant| remnant.key).collect();
    let act = Request::Prune { all: args.all, only: Some(only) };
    let done: Pruned = interrupt.call(&client, &act, |_| {})?;
    told(ctx, &done, args.json)
}

fn told(ctx: &Context, pruned: &Pruned, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "pruned", pruned)?;
    } else if pruned.found.is_empty() {
        ctx.ui.say("nothing to prune");
    } else if pruned.removed.is_empty() && pruned.failed.is_empty() {
        ctx.ui.out(&preview(ctx.ui.out, &pruned.found))?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, pruned))?;
    }
    Ok(if pruned.failed.is_empty() { Exit::OK } else { Exit::FAILED })
}

fn preview(look: Look, found: &[Remnant]) -> String {
    let mut text = String::new();
    for remnant in found {
        let bytes = remnant.bytes.map(|n| format!(", {}", size::bytes(n))).unwrap_or_default();
        let why = look.dim(&format!("({}{bytes})", visible(&remnant.why)));
        let _ = writeln!(text, "{:<10}  {}  {why}", visible(&remnant.kind), visible(&remnant.name));
    }
    text
}

fn render(look: Look, pruned: &Pruned) -> String {
    let mut text = String::new();
    for object in &pruned.removed {
        let _ = writeln!(text, "removed  {}", visible(object));
    }
    for object in &pruned.failed {
        let _ = writeln!(text, "{}   {}", look.bad("failed"), visible(object));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_shown_with_its_reason() {
        let remnant = |kind: &str, name: &str, bytes| Remnant {
            key: String::new(),
            kind: kind.into(),
            name: name.into(),
            why: "its box is gone".into(),
            bytes,
        };
        let found = [
            remnant("container", "agentbox-x", None),
            remnant("image", "a:1", Some(1_500_000_000)),
        ];
        insta::assert_snapshot!(preview(Look::PLAIN, &found));
        let done = Pruned {
            found: found.to_vec(),
            removed: vec!["container agentbox-x".into()],
            failed: vec!["image a:1: in use".into()],
        };
        insta::assert_snapshot!(render(Look::PLAIN, &done));
    }
}
