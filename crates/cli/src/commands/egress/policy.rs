//! `agentbox egress policy`: the rules all layers come to, and what is wrong with them.

use super::lines;
use super::of::Of;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::ui::Ui;
use clap::Subcommand;
use protocol::control::Request;
use protocol::egress::{EgressMode, LayerState, PolicyForm, PolicyProblem, PolicyView};
use protocol::text::visible;

/// A layer cannot be read, or says what cannot be.
const INVALID: Exit = Exit(2);
/// Valid, and probably not meant.
const WARNINGS: Exit = Exit(6);

/// Show and check the policy of a box
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show every rule there is when all layers were read and merged
    ///
    /// It is what the host decides by: what the mode brings along, your files, the repository's at the text
    /// you accepted, and rules you made for the box. Warnings go to standard error. Exits with 2 when a
    /// layer is invalid.
    #[command(after_help = "Examples:
  agentbox egress policy show fix-login --origin   and the line each rule is from
  agentbox egress policy show --mode locked --agent claude")]
    Show {
        #[command(flatten)]
        of: Of,
        /// Each rule with the layer, file and line that made it
        #[arg(long)]
        origin: bool,
        /// What the box itself may read of it: no credentials, no files
        #[arg(long, conflicts_with = "origin")]
        public: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Check a policy for mistakes, and for what is probably not meant
    ///
    /// Such as a rule that defeats a narrower one, a credential that goes into every request of a host, or
    /// one that is not stored. Exits with 0 when nothing is wrong, 2 when a layer is invalid, 6 when there
    /// are warnings.
    Lint {
        #[command(flatten)]
        of: Of,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Show { of, origin, public, json } => {
            let form = match (origin, public) {
                (true, _) => PolicyForm::Origins,
                (_, true) => PolicyForm::Public,
                _ => PolicyForm::Rendered,
            };
            show(ctx, of, form, json)
        }
        Action::Lint { of, json } => lint(ctx, of, json),
    }
}

fn show(ctx: &Context, of: Of, form: PolicyForm, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let (of, whose) = of.find(&client)?;
    let view: PolicyView = client.call(&Request::EgressPolicy { of, form })?;
    if as_json {
        json::print(&ctx.ui, "policy", &view)?;
        return Ok(if view.problems.is_empty() { Exit::OK } else { INVALID });
    }
    ctx.ui.say(&format!("Policy of {}", whose.in_words(Some(view.mode))));
    told(&ctx.ui, &view)?;
    ctx.ui.out(&lines(&view.text))?;
    if view.mode == EgressMode::Open {
        ctx.ui.hint("an open box follows no policy; --mode shows what it would be in another");
    }
    Ok(Exit::OK)
}

/// Says what is not in force and what is probably not meant; fails with why there is no policy.
fn told(ui: &Ui, view: &PolicyView) -> Result<(), CommandError> {
    for layer in &view.layers {
        let what = match layer.state {
            LayerState::Waiting => "waits for your yes, and has no effect",
            LayerState::Refused => "was refused, and has no effect",
            LayerState::InForce | LayerState::Absent | LayerState::Invalid => continue,
        };
        let file = layer.file.as_deref().map(|file| format!(" ({})", visible(file)));
        ui.warn(&format!("{}{}: {what}", visible(&layer.layer), file.unwrap_or_default()));
    }
    for warning in &view.warnings {
        ui.warn(&problem(warning));
    }
    if view.problems.is_empty() {
        return Ok(());
    }
    let all: Vec<_> = view.problems.iter().map(problem).collect();
    let text = format!("there is no policy: {}", all.join("\n  "));
    let error = CommandError::usage(text);
    // The other layers are the person's to mend nowhere, or by words of their own.
    Err(match view.problems.first().map_or("", |one| one.layer.as_str()) {
        layer if layer.starts_with("global") => error.hint("agentbox egress edit --global"),
        layer if layer.starts_with("project") => error.hint("agentbox egress edit"),
        _ => error,
    })
}

fn lint(ctx: &Context, of: Of, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let (of, whose) = of.find(&client)?;
    let request = Request::EgressPolicy { of, form: PolicyForm::Rendered };
    let view: PolicyView = client.call(&request)?;
    if as_json {
        // The rules themselves are `policy show`'s.
        json::print(&ctx.ui, "policy", &PolicyView { text: String::new(), ..view.clone() })?;
    } else {
        ctx.ui.say(&format!("Policy of {}", whose.in_words(Some(view.mode))));
        ctx.ui.out(&found(&view))?;
        if view.problems.is_empty() && view.warnings.is_empty() {
            ctx.ui.say("Nothing is wrong with it.");
        }
    }
    Ok(match (view.problems.is_empty(), view.warnings.is_empty()) {
        (false, _) => INVALID,
        (_, false) => WARNINGS,
        _ => Exit::OK,
    })
}

fn found(view: &PolicyView) -> String {
    let error = |one: &PolicyProblem| format!("error: {}\n", problem(one));
    let warning = |one: &PolicyProblem| format!("warning: {}\n", problem(one));
    view.problems.iter().map(error).chain(view.warnings.iter().map(warning)).collect()
}

/// `scope_defeated: project: domains[0]: … (egress.yaml:2:3)`.
fn problem(of: &PolicyProblem) -> String {
    let code = if of.code.is_empty() { String::new() } else { format!("{}: ", of.code) };
    // What is not about a file names no layer.
    let text = of.to_string();
    visible(&format!("{code}{}", text.strip_prefix(": ").unwrap_or(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_says_where() {
        let one = |code: &str, layer: &str, path: &str, message: &str| PolicyProblem {
            code: code.into(),
            layer: layer.into(),
            file: if layer.is_empty() { "" } else { "egress.yaml" }.into(),
            path: path.into(),
            line: if layer.is_empty() { 0 } else { 7 },
            column: 15,
            message: message.into(),
        };
        let view = PolicyView {
            problems: vec![one("", "project", "domains[2].rules[0].path", "must start with /\x1b")],
            warnings: vec![
                one("scope_defeated", "global", "domains[0]", "allows all of github.com"),
                one("unused_secret", "", "", "shop.key is bound to hosts, and no rule puts it in"),
            ],
            ..PolicyView::default()
        };
        insta::assert_snapshot!(found(&view));
    }
}
