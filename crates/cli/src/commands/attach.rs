//! `agentbox attach`: the terminal of an agent that runs in a box.

use crate::ask;
use crate::attach;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::place::Where;
use crate::terminal;
use protocol::control::Request;
use protocol::sessions::{Agent, SessionView};
use protocol::text::visible;

/// Show the agent that runs in a box
///
/// Leave it with Ctrl-a d; it goes on. Ctrl-a alone opens a menu. An image whose path you paste, or
/// that is on your clipboard when you press Ctrl-v, is copied into the box. With several agents in the box you are asked which one. No
/// agent is started: that is `agentbox claude start` and its like.
#[derive(Debug, clap::Args)]
#[command(after_help = "Keys after Ctrl-a:
  c   the box in your editor             s   its screen
  u   its web app                        t   another shell, in a tab of its own
  k   destroy it, after a question       d   leave; it goes on
  Ctrl-a   one Ctrl-a for the program    Esc   back; other keys are tmux's

Examples:
  agentbox attach             the agent in the project's only box
  agentbox attach fix-login   the one in that box
  agentbox attach fix-login --attach-in split   beside this one")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The session of exactly this name
    #[arg(long, value_name = "NAME")]
    session_name: Option<String>,

    #[command(flatten)]
    place: Where,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let place = args.place.elsewhere(ctx)?;
    let client = ctx.client()?;
    let request = Request::Sessions { target: target(args.which.clone()) };
    let all: Vec<SessionView> = client.call(&request)?;
    let fits = |s: &SessionView| match &args.session_name {
        Some(name) => s.name == *name,
        None => s.agent.is_some(),
    };
    let mut found: Vec<SessionView> = all.into_iter().filter(fits).collect();
    sort(&mut found);
    let chosen = match found.as_slice() {
        [] => return Err(none_running(&client, args.which)),
        [one] => one,
        several if terminal::both_ends() => match choose(ctx, several) {
            Some(chosen) => chosen,
            None => return Ok(Exit::OK),
        },
        several => latest(several),
    };
    attach::show_in(ctx, &client, place.as_ref(), args.which, &chosen.name)
}

fn order(session: &SessionView) -> usize {
    let at = |agent| Agent::ALL.iter().position(|a| *a == agent);
    session.agent.and_then(at).unwrap_or(Agent::ALL.len())
}

fn sort(sessions: &mut [SessionView]) {
    sessions.sort_by(|a, b| (order(a), &a.name).cmp(&(order(b), &b.name)));
}

/// The one started last; of those started at once, the first in their order.
fn latest(sessions: &[SessionView]) -> &SessionView {
    let newer = |best, next: _| -> &SessionView {
        let (best, next): (&SessionView, &SessionView) = (best, next);
        if next.created_at > best.created_at { next } else { best }
    };
    sessions.iter().skip(1).fold(&sessions[0], newer)
}

fn choose<'a>(ctx: &Context, several: &'a [SessionView]) -> Option<&'a SessionView> {
    let lines: Vec<String> = several.iter().map(|s| s.name.clone()).collect();
    ask::one_of(&ctx.ui, "Which agent", &lines).map(|at| &several[at])
}

fn none_running(client: &host::client::Client, which: Option<String>) -> CommandError {
    let request = Request::FindBox { target: target(which) };
    let name = client.call::<protocol::boxes::BoxView>(&request);
    let name = name.map_or_else(|_| "the box".to_owned(), |view| view.name.to_string());
    CommandError::failed(format!("no agent session running in {}", visible(&name)))
        .hint(format!("agentbox claude start {name} starts one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(agent: Agent, created_at: u64) -> SessionView {
        let name = agent.as_str().to_owned();
        SessionView { name, agent: Some(agent), attached: 0, created_at }
    }

    #[test]
    fn boxes_16_31_without_a_terminal_the_newest_is_taken() {
        let mut all =
            [session(Agent::Opencode, 5), session(Agent::Codex, 9), session(Agent::Claude, 9)];
        sort(&mut all);
        assert_eq!(latest(&all).name, "claude");
        all[1].created_at = 10;
        assert_eq!(latest(&all).name, "codex");
    }
}
