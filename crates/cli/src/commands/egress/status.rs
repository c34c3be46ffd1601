//! `agentbox egress status`: how one box stands with the network.

use super::{count, in_words, line};
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time::{ago, until};
use crate::ui::Look;
use jiff::Timestamp;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::egress::{EgressMode, EgressView, LayerState, RepositoryPolicy};
use protocol::text::visible;
use std::fmt::Write;

/// Show how a box gets out, and what it was kept from
///
/// Its mode, whether its policy holds, what was last stopped, which credentials were put into its requests
/// in the last day, the rules you made at its questions, and what its repository asks for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress status fix-login
  agentbox egress status fix-login --json")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(args.which) })?;
    let egress: EgressView = client.call(&Request::Egress { target: Target::id(&view.id) })?;
    if args.json {
        json::print(&ctx.ui, "egress", &egress)?;
        return Ok(Exit::OK);
    }
    ctx.ui.out(&render(ctx.ui.out, &view, &egress, Timestamp::now()))?;
    for hint in hints(&view, &egress) {
        ctx.ui.hint(&hint);
    }
    Ok(Exit::OK)
}

fn render(look: Look, view: &BoxView, of: &EgressView, now: Timestamp) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<11} {value}");
    };
    row("box", &format!("{} of {}", look.bold(view.name.as_str()), visible(&view.project)));
    row("mode", &format!("{}: {}", of.mode.as_str(), in_words(of.mode)));
    if of.mode.is_controlled() {
        let policy = match &of.unavailable {
            Some(why) => format!("{} nothing passes: {}", look.bad("✗"), visible(why)),
            None => format!("revision {}, {}", of.revision, count(of.hosts, "host")),
        };
        row("policy", &policy);
    }
    if let Some(stopped) = &of.last_blocked {
        let what = format!("{}, {}", line::request(stopped), line::reason(stopped));
        row("stopped", &format!("{what}, {}", ago(now, stopped.at)));
    }
    for (nth, one) in of.injected.iter().enumerate() {
        let label = if nth == 0 { "put in" } else { "" };
        row(label, &format!("{} {}", one.secret, count(one.count, "time")));
    }
    for (nth, grant) in of.grants.iter().enumerate() {
        let label = if nth == 0 { "rules" } else { "" };
        let ends = if grant.is_endless() {
            "until you remove it".to_owned()
        } else {
            format!("ends {}", until(now, grant.expires_at))
        };
        row(label, &format!("{}, {ends}", visible(&grant.sentence)));
    }
    if let Some(asked) = &of.repository {
        row("repository", &format!("{} {}", visible(&asked.file), stands(asked)));
    }
    text
}

/// How a repository's file stands.
pub fn stands(of: &RepositoryPolicy) -> &'static str {
    match of.state {
        LayerState::InForce => "is in force, as you accepted it",
        LayerState::Waiting => "waits for your yes, and has no effect",
        LayerState::Refused => "was refused, and has no effect",
        LayerState::Invalid => "has mistakes, and no effect",
        LayerState::Absent => "is not there",
    }
}

fn hints(view: &BoxView, of: &EgressView) -> Vec<String> {
    let name = &view.name;
    let mut all = Vec::new();
    if of.mode == EgressMode::Open {
        all.push(format!("agentbox egress mode {name} observe records what it sends"));
    }
    if of.unavailable.is_some() {
        all.push(format!("agentbox egress policy lint {name}"));
    }
    if let Some(stopped) = &of.last_blocked {
        all.push(format!("agentbox egress explain {}", visible(&stopped.id)));
    }
    if of.repository.as_ref().is_some_and(|asked| asked.state == LayerState::Waiting) {
        all.push(format!("agentbox egress repository {name} shows what it asks for"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_box_and_the_network() {
        let view = samples::boxes().remove(0);
        let egress = samples::egress();
        let open = EgressView {
            mode: EgressMode::Open,
            last_blocked: None,
            injected: vec![],
            grants: vec![],
            repository: None,
            ..egress.clone()
        };
        let broken = EgressView {
            mode: EgressMode::Locked,
            unavailable: Some("project: domains: must be a list (egress.yaml:1:10)\x1b".into()),
            ..open.clone()
        };
        let text = [egress, open, broken].map(|of| {
            let hints: Vec<_> =
                hints(&view, &of).into_iter().map(|hint| format!("hint: {hint}\n")).collect();
            render(Look::PLAIN, &view, &of, samples::now()) + &hints.concat()
        });
        insta::assert_snapshot!(text.join("\n"));
    }
}
