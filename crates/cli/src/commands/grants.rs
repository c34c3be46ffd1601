//! `agentbox grants`: answers that are remembered, and how to forget them.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::time::until;
use crate::ui::Look;
use clap::Subcommand;
use jiff::Timestamp;
use protocol::control::Request;
use protocol::question::{Grant, Reach};
use protocol::text::visible;
use std::fmt::Write;

const SHORTEST: usize = 4;
const SHOWN: usize = 8;

/// Show and remove remembered answers
///
/// A rule lets a box, the boxes of a project or every box do what its sentence says until it
/// ends. You made it at a question.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox grants               the rules in force
  agentbox grants rm abcdef01   forget one; the box has to ask again"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a rule
    Rm {
        /// The rule's id or its first characters
        id: String,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let grants: Vec<Grant> = client.call(&Request::Grants)?;
    match args.action {
        Some(Action::Rm { id }) => {
            let grant = find(&grants, &id)?;
            client.call::<()>(&Request::RevokeGrant { id: grant.id.clone() })?;
            ctx.ui.out(&format!("removed  {}\n", visible(&grant.sentence)))?;
        }
        None if args.json => json::print(&ctx.ui, "grants", &grants)?,
        None if grants.is_empty() => ctx.ui.say("No rules."),
        None => ctx.ui.out(&render(ctx.ui.out, &grants, Timestamp::now()))?,
    }
    Ok(Exit::OK)
}

fn find<'g>(grants: &'g [Grant], named: &str) -> Result<&'g Grant, CommandError> {
    let matching: Vec<_> = grants
        .iter()
        .filter(|g| named.len() >= SHORTEST && g.id.as_str().starts_with(named))
        .collect();
    match matching[..] {
        [one] => Ok(one),
        [] => Err(CommandError::usage(format!("no rule matches {:?}", visible(named)))
            .hint(format!("`agentbox grants` lists them; {SHORTEST} characters are enough"))),
        _ => Err(CommandError::usage(format!(
            "{:?} matches {} rules",
            visible(named),
            matching.len()
        ))
        .hint("type more of the id")),
    }
}

/// Two lines each: a rule that is cut could hide what it allows.
fn render(look: Look, grants: &[Grant], now: Timestamp) -> String {
    let mut text = String::new();
    for grant in grants {
        let id = look.bold(&grant.id.as_str()[..SHOWN]);
        let ends = if grant.is_endless() {
            "until you remove it".to_owned()
        } else {
            format!("ends {}", until(now, grant.expires_at))
        };
        let about = look.dim(&format!("for {}, {ends}", reach(grant)));
        let _ = writeln!(text, "{id}  {}\n{:SHOWN$}  {about}", visible(&grant.sentence), "");
    }
    text
}

fn reach(grant: &Grant) -> String {
    match grant.reach {
        Reach::Box => grant.box_name.to_string(),
        Reach::Project => format!("every box of {}", visible(&grant.project)),
        Reach::Everywhere => "every box".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn rules_are_listed_and_found() {
        let grants = samples::grants();
        insta::assert_snapshot!(render(Look::PLAIN, &grants, samples::now()));
        assert_eq!(find(&grants, "abcd").unwrap(), &grants[0]);
        assert!(find(&grants, "abc").is_err());
        assert!(find(&grants, "ffff").is_err());
        assert!(find(&[grants.clone(), grants].concat(), "abcd").is_err());
    }
}
