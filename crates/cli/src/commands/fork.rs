//! `agentbox fork`: what you talk about with an agent here goes on in a box of its own.

use crate::carry;
use crate::commands::agent::{self, How};
use crate::commands::create;
use crate::context::Context;
use crate::conversations;
use crate::error::{CommandError, Outcome};
use crate::place::Where;
use crate::time::seconds_since;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{Timestamp, Zoned};
use protocol::conversations::ConversationView;
use protocol::sessions::Agent;
use std::path::PathBuf;

/// What was said within this time is what somebody is at now.
const RECENT: i64 = 5 * 60;

/// Go on with a conversation in a box of its own
///
/// Takes the conversation you are having with Claude or Codex in this folder, makes a box for the
/// project and goes on there, from where the conversation is now. The one here stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox fork                     the conversation of the last five minutes
  agentbox fork --session 0f3c1a52  that one, however old
  agentbox fork -n try-redis -d     in a box of that name, without showing it

Exit codes: 2 when there is no such conversation, several could be meant, or this is a box.")]
pub struct Args {
    /// The project's folder [default: this one]
    #[arg(short = 'C', long, value_name = "PATH")]
    workspace: Option<PathBuf>,

    /// Only conversations with this agent
    #[arg(long, value_name = "AGENT", value_parser = movable())]
    agent: Option<Agent>,

    /// This conversation; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// The box's name [default: fork- and the time]
    #[arg(short, long)]
    name: Option<String>,

    /// Give Claude a plan to go on with, in plan mode
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    /// Start it and come back; `agentbox attach` shows it
    #[arg(short = 'd', long = "no-attach", conflicts_with_all = ["attach_in", "inline"])]
    detached: bool,

    #[command(flatten)]
    place: Where,

    /// Copy the files that agentbox.yaml wants from this computer, or make the box without them, both
    /// without asking [default: ask]
    #[arg(long, value_name = "HOW")]
    carry: Option<Carry>,

    /// Print the box as JSON; does not attach
    #[arg(short, long, conflicts_with_all = ["attach_in", "inline"])]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Carry {
    /// Copy them
    Send,
    /// Without them
    Skip,
}

impl Carry {
    fn flags(self) -> carry::Flags {
        match self {
            Carry::Send => carry::Flags::send(),
            Carry::Skip => carry::Flags::skip(),
        }
    }
}

/// Agents whose conversations can be forked, by name.
fn movable() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new([Agent::Claude, Agent::Codex].map(Agent::as_str))
        .try_map(|name| Agent::named(&name).ok_or("no such agent"))
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if std::env::var_os("AGENTBOX").is_some_and(|v| v == "1") {
        return Err(CommandError::usage("this is a box; a box cannot make another")
            .hint("fork on the computer the box is on"));
    }
    let name = args.name.unwrap_or_else(|| format!("fork-{}", Zoned::now().strftime("%H%M%S")));
    let carry = args.carry.map(Carry::flags).unwrap_or_default();
    let options = create::Options::named(args.workspace, create::checked_name(&name)?, carry);
    let folder = options.folder()?;
    let found = conversations::find(&ctx.client()?, args.agent, &folder, args.session.clone())?;
    let one = match &args.session {
        Some(id) => conversations::the_one(found, id, &folder)?,
        None => recent(found, Timestamp::now(), args.agent, &folder)?,
    };
    let plan = args.plan.map(|file| conversations::plan(one.agent, &file)).transpose()?;
    let (agent, begin) = (one.agent, conversations::begin(one, plan)?);
    agent::begin_in_new_box(
        ctx,
        agent,
        options,
        begin,
        How::usual(args.detached, args.place),
        args.json,
    )
}

/// The conversation somebody is at.
fn recent(
    found: Vec<ConversationView>,
    now: Timestamp,
    agent: Option<Agent>,
    folder: &str,
) -> Result<ConversationView, CommandError> {
    let (mut recent, older): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|view| seconds_since(now, view.changed_at) <= RECENT);
    let named = |error: CommandError| error.hint("agentbox fork --session ID");
    match recent.len() {
        1 => Ok(recent.remove(0)),
        0 if older.is_empty() => Err(conversations::none_in(agent, folder)),
        0 => {
            let text = "nothing was said here in the last 5 minutes";
            Err(named(conversations::ambiguous(text, &older)))
        }
        _ => Err(named(conversations::ambiguous("several conversations go on here", &recent))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn view(id: u8, age: u64) -> ConversationView {
        ConversationView {
            agent: Agent::Codex,
            id: format!("0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a{id:02}").parse().unwrap(),
            folder: "/p".into(),
            changed_at: 10_000_000 - age * 1000,
            bytes: 1,
            title: None,
        }
    }

    #[test]
    fn what_somebody_is_at_was_said_just_now() {
        let now = Timestamp::from_millisecond(10_000_000).unwrap();
        let chosen = |views: Vec<ConversationView>| recent(views, now, None, "/p");
        assert_eq!(chosen(vec![view(1, 299), view(2, 301)]).unwrap().id, view(1, 0).id);
        let several = chosen(vec![view(1, 1), view(2, 2)]).unwrap_err();
        assert!(several.error.contains("8a01") && several.error.contains("8a02"));
        let old = chosen(vec![view(3, 400)]).unwrap_err();
        assert!(old.error.contains("8a03"), "{}", old.error);
        let none = chosen(vec![]).unwrap_err();
        for error in [several, old, none] {
            assert_eq!((error.kind, error.hints.is_empty()), (Kind::Usage, false));
        }
    }

    #[test]
    fn only_agents_whose_conversations_move_are_named() {
        #[derive(clap::Parser)]
        struct Fork {
            #[command(flatten)]
            args: Args,
        }
        let agent = |name: &str| {
            <Fork as clap::Parser>::try_parse_from(["fork", "--agent", name]).map(|f| f.args.agent)
        };
        assert_eq!(agent("codex").unwrap(), Some(Agent::Codex));
        assert!(agent("opencode").is_err() && agent("x").is_err());
    }
}
