//! `agentbox egress`: what boxes may reach on the network, and what they did.
//!
//! The host decides and records; this shows it and brings a person's changes. Names, hosts and paths come
//! from boxes: each passes through `visible` before it is shown.

mod acknowledge;
mod ca;
mod change;
mod check;
mod edit;
mod explain;
mod line;
mod log;
mod mode;
mod of;
mod policy;
mod reload;
mod repository;
mod status;
mod suggest;
mod usage;

use crate::context::Context;
use crate::error::Outcome;
use crate::ui::Ui;
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use protocol::Millis;
use protocol::egress::{EgressAction, EgressMode, EgressReloaded};
use protocol::sessions::Agent;
use protocol::text::visible;

/// Say what boxes may reach, and see what they did
///
/// A box whose mode is not open has no network: every request passes through the host, which lets it
/// through, asks you or stops it, by the policies you wrote, and records it. Only HTTP leaves such a box.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress mode fix-login balanced    no network; what no rule allows asks you
  agentbox egress log fix-login -f           what it sends, as it does
  agentbox egress explain                    why the last request was stopped
  agentbox egress allow api.example.com --method GET --path /v1/ --project
  agentbox egress edit --global              your policy for every project")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Status(status::Args),
    Mode(mode::Args),
    Policy(policy::Args),
    Check(check::Args),
    Explain(explain::Args),
    /// Allow a host, or a part of it
    ///
    /// Shows the rule and what it lets through that was not let through before, asks you, and adds it: to
    /// one box, for good or for --ttl, to your file for the project, or to the one for every project. Boxes follow at once. Exits with 2 when the rule is refused, or nobody can be asked and
    /// --yes is not given.
    #[command(after_help = "Examples:
  agentbox egress allow api.example.com --box fix-login --ttl 1h
  agentbox egress allow api.example.com --method GET --path /v1/ --project
  agentbox egress allow '*.example.com' --global --dry-run")]
    Allow(change::Args),
    /// Have a host, or a part of it, ask you each time
    ///
    /// As `agentbox egress allow`, but that every request that fits becomes a question. It is added without
    /// asking you when it opens nothing.
    Ask(change::Args),
    /// Forbid a host, or a part of it
    ///
    /// As `agentbox egress allow`, but that it never asks: a rule that denies wins over all that allow,
    /// whoever wrote them.
    Deny(change::Args),
    Edit(edit::Args),
    Reload(reload::Args),
    Log(log::Args),
    Suggest(suggest::Args),
    #[command(name = "use")]
    Usage(usage::Args),
    Ca(ca::Args),
    Repository(repository::Args),
    Acknowledge(acknowledge::Args),
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Status(args) => status::run(ctx, args),
        Action::Mode(args) => mode::run(ctx, args),
        Action::Policy(args) => policy::run(ctx, args),
        Action::Check(args) => check::run(ctx, args),
        Action::Explain(args) => explain::run(ctx, args),
        Action::Allow(args) => change::run(ctx, EgressAction::Allow, args),
        Action::Ask(args) => change::run(ctx, EgressAction::Ask, args),
        Action::Deny(args) => change::run(ctx, EgressAction::Deny, args),
        Action::Edit(args) => edit::run(ctx, args),
        Action::Reload(args) => reload::run(ctx, args),
        Action::Log(args) => log::run(ctx, args),
        Action::Suggest(args) => suggest::run(ctx, args),
        Action::Usage(args) => usage::run(ctx, args),
        Action::Ca(args) => ca::run(ctx, args),
        Action::Repository(args) => repository::run(ctx, args),
        Action::Acknowledge(args) => acknowledge::run(ctx, args),
    }
}

/// `open`, `observe`, `balanced` or `locked`.
pub fn modes() -> impl TypedValueParser<Value = EgressMode> {
    PossibleValuesParser::new(EgressMode::ALL.map(EgressMode::as_str))
        .try_map(|name| name.parse::<EgressMode>())
}

fn agents() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::as_str))
        .try_map(|name| Agent::named(&name).ok_or("no such agent"))
}

/// What becomes of a request that no rule speaks of.
fn in_words(mode: EgressMode) -> &'static str {
    match mode {
        EgressMode::Open => "it has a network of its own, and nothing is recorded",
        EgressMode::Observe => "everything passes and is recorded",
        EgressMode::Balanced => "what no rule allows asks you",
        EgressMode::Locked => "what no rule allows is refused",
    }
}

/// A moment so many seconds ago.
fn back(seconds: u64) -> Millis {
    let now = Millis::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    now.saturating_sub(seconds.saturating_mul(1000))
}

/// A text of several lines, each of them harmless.
fn lines(text: &str) -> String {
    text.lines().map(|line| visible(line) + "\n").collect()
}

/// “1 host”, “3 hosts”.
fn count(n: impl Into<u64>, one: &str) -> String {
    match n.into() {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// Says which boxes go on with the policy of before, and why. Whether there are any.
fn told_rejected(ui: &Ui, all: &[EgressReloaded]) -> bool {
    let rejected: Vec<_> = all.iter().filter(|one| !one.applied).collect();
    for one in &rejected {
        ui.say(&format!("{} goes on as before: its new policy is refused", one.box_name));
        for problem in &one.problems {
            ui.say(&format!("  {}", visible(&problem.to_string())));
        }
    }
    !rejected.is_empty()
}
