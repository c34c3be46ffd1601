//! `agentbox start`.

use crate::commands::agent;
use crate::context::{Context, target};
use crate::error::Outcome;
use crate::resync;
use crate::several::{self, Which};
use crate::terminal;
use host::client::Client;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{Request, Target};
use protocol::conversations::{Relaunch, RelaunchAgents, Relaunched};
use protocol::sessions::Agent;
use protocol::text::visible;
use std::cell::RefCell;

/// Start a stopped box
///
/// A paused one goes on. Its files are as they were. Agents that ran when the box went down are
/// started again and go on with what they were at; other programs are not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox start                         the only box of the project in this folder
  agentbox start fix-login               the box of that name
  agentbox start fix-login --no-agents   and leave its agents ended")]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Start no agents
    #[arg(long)]
    no_agents: bool,

    /// Leave the box without what is new here since it was down
    #[arg(long)]
    no_resync: bool,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let down = RefCell::new(Vec::new());
    let request = |target: Target| {
        let found = client.call::<BoxView>(&Request::FindBox { target: target.clone() });
        down.borrow_mut().extend(found.ok().filter(|view| view.state == BoxState::Stopped));
        Request::StartBox { target }
    };
    let say = |view: &BoxView| format!("started {}\n", view.name);
    let done = several::each(ctx, args.which, args.json, request, say);
    if !args.no_agents {
        for view in down.take() {
            relaunch(ctx, &client, &view, !args.no_resync);
        }
    }
    done
}

/// The box runs, whatever becomes of its agents.
pub(super) fn relaunch(ctx: &Context, client: &Client, view: &BoxView, resync: bool) {
    let env = Agent::ALL.into_iter().map(|agent| (agent, agent::variables(agent))).collect();
    let (cols, rows) = terminal::size();
    let target = target(Some(view.id.to_string()));
    let request = Request::RelaunchAgents(RelaunchAgents { target, env, cols, rows, resync });
    match client.call::<Relaunch>(&request) {
        Ok(done) => {
            for line in resync::lines(&done.resynced) {
                ctx.ui.say(&line);
            }
            for one in &done.agents {
                ctx.ui.say(&line(one));
            }
        }
        Err(error) => {
            let why = visible(&error.to_string());
            ctx.ui.say(&format!("its agents were not started again: {why}"));
        }
    }
}

fn line(one: &Relaunched) -> String {
    let (title, name) = (one.agent.title(), visible(&one.name));
    match &one.failed {
        None => format!("{title} goes on in the session {name}"),
        Some(why) => format!("{title} was not started again: {}", visible(why)),
    }
}
