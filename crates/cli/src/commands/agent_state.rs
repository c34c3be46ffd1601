//! `agentbox agent`: what agents in a box are doing.

use crate::commands::{approvals, approve, plan_question};
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::offers::Offer;
use crate::time::parse_timeout;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::queue::{Awaited, Until};
use protocol::sessions::{Agent, AgentState, AgentView};

/// See what agents are doing or ask, or wait for it
///
/// It is what the agent in the box says of itself, by its own hooks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox agent state fix-login
  agentbox agent wait-for done fix-login --timeout 30m && agentbox git push fix-login
  agentbox agent wait-for input-needed fix-login && agentbox agent get-plan-question fix-login
  agentbox agent approvals fix-login --json   what the box asks of you
  agentbox agent approve 3fa9c1d2 --deny")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

/// Milliseconds to wait for a question.
const WAIT: u64 = 5 * 60 * 1000;

#[derive(Debug, clap::Subcommand)]
enum Action {
    State(StateArgs),
    WaitFor(WaitForArgs),
    GetPlanQuestion(plan_question::Args),
    Approvals(ApprovalsArgs),
    Approve(ApproveArgs),
}

/// Show what one box asks of you
///
/// As `agentbox approvals` does for all of them. With --wait, exit code 1 when the time is up.
#[derive(Debug, clap::Args)]
struct ApprovalsArgs {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Wait until there is one
    #[arg(long)]
    wait: bool,

    /// With --wait, how long at most: 30s, 2m, or milliseconds [default: 5m]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = parse_timeout)]
    timeout: Option<u64>,

    /// Print JSON; each question has the answers it offers as options
    #[arg(short, long)]
    json: bool,
}

/// Answer a question of a box
///
/// As `agentbox approve` and `agentbox deny` do. Answers are given on this computer only; nothing in a
/// box can.
#[derive(Debug, clap::Args)]
struct ApproveArgs {
    #[command(flatten)]
    yes: approve::Args,

    /// Say no
    #[arg(long, conflicts_with_all = ["remember", "reach", "kind", "without"])]
    deny: bool,

    /// The same as --deny: the command in the box ends, and a no is never remembered
    #[arg(long, conflicts_with_all = ["deny", "remember", "reach", "kind", "without"])]
    cancel: bool,

    /// Choose one of the answers it offers, as `approvals --json` names them: 1 or deny, 2 or once,
    /// 3 or box, 4 or project, 5 or everywhere, 6 or without. 3 to 5 are remembered, for an hour or for
    /// as long as --for says; 6 makes a box without the files that its question lists
    #[arg(
        long,
        value_name = "ANSWER",
        value_parser = Offer::parse,
        conflicts_with_all = ["deny", "cancel", "reach", "kind", "without"]
    )]
    option: Option<Offer>,
}

/// Show what the agents of a box are doing
///
/// One line per agent that runs: its name and ready, working, waiting, done, end-plan (it has a plan
/// for you), question (it asks you something), compacting or error. The word none when none runs.
#[derive(Debug, clap::Args)]
struct StateArgs {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Wait until an agent of a box is in a state
///
/// Ends at once when it is already. Exit code 1 when the time is up.
#[derive(Debug, clap::Args)]
struct WaitForArgs {
    /// The state
    #[arg(value_name = "STATE")]
    state: Wanted,

    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Only this agent [default: any]
    #[arg(long, value_name = "NAME", value_parser = agent_names())]
    agent: Option<Agent>,

    /// How long at most: 30s, 2m, or milliseconds
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_timeout)]
    timeout: u64,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// Started; it has not said more yet
    Ready,
    /// At work
    Working,
    /// It waits for an answer or a permission
    Waiting,
    /// It has finished what it was told to do
    Done,
    /// Ready, waiting or done
    Idle,
    /// It has a plan and wants it agreed to
    EndPlan,
    /// It asks you something and offers options
    Question,
    /// It makes its conversation shorter
    Compacting,
    /// It gave up what it was told to do
    Error,
    /// Waiting, end-plan or question
    InputNeeded,
    /// The box asks something of this computer: `agentbox agent approvals` shows it
    Prompt,
}

impl Wanted {
    fn states(self) -> Vec<AgentState> {
        match self {
            Wanted::Ready => vec![AgentState::Ready],
            Wanted::Working => vec![AgentState::Working],
            Wanted::Waiting => vec![AgentState::Waiting],
            Wanted::Done => vec![AgentState::Done],
            Wanted::Idle => vec![AgentState::Ready, AgentState::Waiting, AgentState::Done],
            Wanted::EndPlan => vec![AgentState::EndPlan],
            Wanted::Question => vec![AgentState::Question],
            Wanted::Compacting => vec![AgentState::Compacting],
            Wanted::Error => vec![AgentState::Error],
            Wanted::InputNeeded => {
                AgentState::ALL.into_iter().filter(|state| state.needs_input()).collect()
            }
            Wanted::Prompt => vec![],
        }
    }

    fn until(self, target: Target, agent: Option<Agent>) -> Result<Until, CommandError> {
        match (self, agent) {
            (Wanted::Prompt, None) => Ok(Until::Asked { target }),
            (Wanted::Prompt, Some(_)) => {
                Err(CommandError::usage("a box asks; which agent of it does is not known")
                    .hint("leave --agent out"))
            }
            (_, agent) => Ok(Until::Agent { target, agent, states: self.states() }),
        }
    }
}

/// The agents there are, by name.
fn agent_names() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::as_str))
        .try_map(|name| Agent::named(&name).ok_or("no such agent"))
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::State(args) => {
            let request = Request::FindBox { target: target(args.which) };
            let view: BoxView = ctx.client()?.call(&request)?;
            tell(ctx, args.json, &view.agents)
        }
        Action::WaitFor(args) => wait_for(ctx, args),
        Action::GetPlanQuestion(args) => plan_question::run(ctx, args),
        Action::Approvals(args) => questions(ctx, args),
        Action::Approve(args) => match args.option {
            _ if args.deny || args.cancel => args.yes.deny(ctx),
            Some(offer) => args.yes.choose(ctx, offer),
            None => approve::run(ctx, args.yes),
        },
    }
}

fn questions(ctx: &Context, args: ApprovalsArgs) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(args.which) })?;
    if args.wait {
        let until = Until::Asked { target: Target::id(&view.id) };
        let request = Request::Await { until, timeout_ms: args.timeout.unwrap_or(WAIT) };
        let awaited: Awaited = Interrupt::install()?.call(&client, &request, |_| {})?;
        if !awaited.met {
            approvals::of_box(ctx, &client, &view, args.json)?;
            ctx.ui.hint("--timeout waits longer");
            return Ok(Exit::FAILED);
        }
    }
    approvals::of_box(ctx, &client, &view, args.json)
}

fn wait_for(ctx: &Context, args: WaitForArgs) -> Outcome {
    let until = args.state.until(target(args.which), args.agent)?;
    let request = Request::Await { until, timeout_ms: args.timeout };
    let awaited: Awaited = Interrupt::install()?.call(&ctx.client()?, &request, |_| {})?;
    if args.json {
        json::print(&ctx.ui, "awaited", &awaited)?;
    } else if let Some(view) = awaited.view.as_ref().filter(|_| awaited.met) {
        tell(ctx, false, &view.agents)?;
    } else {
        ctx.ui.say("not in time");
        ctx.ui.hint("agentbox agent state shows what it is doing; --timeout waits longer");
    }
    Ok(if awaited.met { Exit::OK } else { Exit::FAILED })
}

fn tell(ctx: &Context, as_json: bool, agents: &[AgentView]) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "agents", &agents)?;
    } else {
        ctx.ui.out(&render(agents))?;
    }
    Ok(Exit::OK)
}

fn render(agents: &[AgentView]) -> String {
    if agents.is_empty() {
        return "none\n".to_owned();
    }
    let line = |a: &AgentView| format!("{} {}\n", a.agent.as_str(), a.state.as_str());
    agents.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_agent() {
        let view = |agent, state| AgentView { agent, state, since: 0, has_login: false };
        let agents =
            [view(Agent::Claude, AgentState::Waiting), view(Agent::Codex, AgentState::Done)];
        assert_eq!(render(&agents), "claude waiting\ncodex done\n");
        assert_eq!(render(&[]), "none\n");
    }
}
