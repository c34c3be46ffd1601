//! `agentbox egress mode`: another way out for a box.
//!
//! A box that gets or loses its network is made anew, which ends what runs in it; and a looser mode lets
//! more out. Both ask. A stricter one holds at once.

use super::{in_words, modes};
use crate::ask;
use crate::commands::create::show_step;
use crate::commands::start::relaunch;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::progress::Steps;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{Request, Target};
use protocol::egress::EgressMode;

/// Change how a box gets out
///
/// Between open and the others the box gets or loses its network: it is stopped, made anew from its files
/// and started again, and what runs in it ends; agents go on with what they were at. That is asked first,
/// and so is a looser mode. A stricter one without a restart holds at once. Exits with 2 when nobody can
/// be asked and --yes is not given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress mode fix-login observe     let everything pass, and record it
  agentbox egress mode fix-login locked
  agentbox egress mode fix-login open -y     a network again, without a question")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// How it is to get out
    #[arg(value_name = "MODE", value_parser = modes())]
    mode: EgressMode,

    /// Don't ask
    #[arg(short, long)]
    yes: bool,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(Some(args.which)) })?;
    let (was, mode) = (view.egress, args.mode);
    if was == mode {
        ctx.ui.say(&format!("{} is {} already", view.name, mode.as_str()));
        return told(ctx, &view, args.json);
    }
    if let Some(what) = consequence(&view, mode) {
        ctx.ui.say(&what);
        if !args.yes && !ctx.ui.interactive {
            return Err(CommandError::usage("nobody is there to be asked; nothing was changed")
                .hint(format!("agentbox egress mode {} {} -y", view.name, mode.as_str())));
        }
        let question = format!("Make {} {}?", view.name, mode.as_str());
        if !args.yes && !ask::yes(&ctx.ui, &question) {
            ctx.ui.say("Nothing was changed.");
            return Ok(Exit::OK);
        }
    }
    let request = Request::SwitchEgress { target: Target::id(&view.id), mode };
    let now: BoxView = {
        let interrupt = Interrupt::install()?;
        let steps = Steps::new(&ctx.ui);
        interrupt.call(&client, &request, |incoming| show_step(&steps, incoming))?
    };
    if was.is_controlled() != mode.is_controlled() && view.state == BoxState::Running {
        relaunch(ctx, &client, &now, false);
    }
    told(ctx, &now, args.json)
}

fn told(ctx: &Context, view: &BoxView, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "box", view)?;
    } else {
        let mode = view.egress;
        ctx.ui.out(&format!("{}  {}: {}\n", view.name, mode.as_str(), in_words(mode)))?;
    }
    Ok(Exit::OK)
}

/// What a person has to know beforehand; none when nothing is lost and nothing gets looser.
fn consequence(view: &BoxView, mode: EgressMode) -> Option<String> {
    let (name, was) = (&view.name, view.egress);
    let ends = match view.state {
        BoxState::Running | BoxState::Paused => {
            "it is stopped, made anew from its files and started again. What runs in it ends."
        }
        _ => "it is made anew from its files.",
    };
    match (was.is_controlled(), mode.is_controlled()) {
        (false, true) => Some(format!("{name} loses its network: {ends}")),
        (true, false) => Some(format!(
            "{name} gets a network, and nothing stands between it and the internet: {ends}"
        )),
        _ if strictness(mode) < strictness(was) => Some(format!(
            "{name} gets looser: {} instead of {} ({})",
            mode.as_str(),
            was.as_str(),
            in_words(mode)
        )),
        _ => None,
    }
}

fn strictness(mode: EgressMode) -> usize {
    EgressMode::ALL.iter().position(|one| *one == mode).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use BoxState::{Running, Stopped};
    use EgressMode::{Balanced, Locked, Observe, Open};

    #[test]
    fn only_what_is_lost_or_looser_is_asked() {
        let said = |was, state, mode| {
            let view = BoxView { egress: was, state, ..samples::boxes().remove(0) };
            consequence(&view, mode)
        };
        assert_eq!(said(Observe, Running, Balanced), None);
        assert_eq!(said(Balanced, Running, Locked), None);
        let loses = said(Open, Running, Locked).unwrap();
        assert!(loses.contains("loses its network") && loses.contains("ends."), "{loses}");
        let gets = said(Locked, Stopped, Open).unwrap();
        assert!(gets.contains("gets a network") && !gets.contains("What runs"), "{gets}");
        assert!(said(Locked, Running, Observe).unwrap().contains("looser"));
    }
}
