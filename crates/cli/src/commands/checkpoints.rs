//! `agentbox checkpoints`: captured states of boxes, and how to get rid of them.

use crate::ask;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use crate::time::ago;
use crate::ui::Look;
use clap::Subcommand;
use jiff::Timestamp;
use protocol::control::{CheckpointView, Request};
use protocol::text::visible;

/// Show and remove captured states of boxes
///
/// A checkpoint is a box as it was, kept as an image that new boxes can start from. A box asks for
/// one; yours is the yes.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    visible_alias = "checkpoint",
    after_help = "Examples:
  agentbox checkpoints                      all of them
  agentbox checkpoints fix-login            those of one box
  agentbox create --image <id>              a box that starts from one
  agentbox checkpoints rm base              remove one for good"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// The box they were made of: its number, id or name
    #[arg(value_name = "BOX")]
    of: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a checkpoint and its image
    Rm {
        /// Its id, or its name when no other has that
        id: String,
        /// Don't ask
        #[arg(short, long)]
        yes: bool,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let of = args.of.map(|query| target(Some(query)));
    let all: Vec<CheckpointView> = client.call(&Request::Checkpoints { target: of })?;
    match args.action {
        Some(Action::Rm { id, yes }) => {
            let found = find(&all, &id)?;
            let shown = visible(&found.id);
            let question = format!("Remove {shown} for good?");
            if !yes && !ctx.ui.interactive {
                let text = "nobody is there to be asked; nothing was removed";
                return Err(
                    CommandError::usage(text).hint(format!("agentbox checkpoints rm {shown} -y"))
                );
            }
            if !yes && !ask::yes(&ctx.ui, &question) {
                ctx.ui.say("Kept.");
                return Ok(Exit::OK);
            }
            client.call::<()>(&Request::RemoveCheckpoint { id: found.id.clone() })?;
            ctx.ui.out(&format!("removed  {shown}\n"))?;
        }
        None if args.json => json::print(&ctx.ui, "checkpoints", &all)?,
        None if all.is_empty() => ctx.ui.say("No checkpoints."),
        None => ctx.ui.out(&render(ctx.ui.out, &all, Timestamp::now()))?,
    }
    Ok(Exit::OK)
}

fn find<'c>(all: &'c [CheckpointView], named: &str) -> Result<&'c CheckpointView, CommandError> {
    if let Some(one) = all.iter().find(|view| view.id == named) {
        return Ok(one);
    }
    let matching: Vec<_> = all.iter().filter(|view| view.name == named).collect();
    let hint = "`agentbox checkpoints` lists their ids";
    match matching[..] {
        [one] => Ok(one),
        [] => Err(CommandError::usage(format!("no checkpoint {:?}", visible(named))).hint(hint)),
        _ => {
            let text = format!("{} checkpoints are called {:?}", matching.len(), visible(named));
            Err(CommandError::usage(text).hint(hint))
        }
    }
}

fn render(look: Look, all: &[CheckpointView], now: Timestamp) -> String {
    let row = |view: &CheckpointView| {
        vec![
            visible(&view.name),
            visible(&view.project),
            visible(&view.box_name),
            ago(now, view.created_at),
            if view.default { "yes".to_owned() } else { "-".to_owned() },
            visible(&view.id),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table::render(look, &["NAME", "PROJECT", "BOX", "MADE", "DEFAULT", "ID"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn views() -> Vec<CheckpointView> {
        let now = u64::try_from(samples::now().as_millisecond()).unwrap();
        let view = |name: &str, project: &str, minutes: u64, default: bool| CheckpointView {
            id: format!("agentbox/checkpoint:{project}-{name}-0123abcd"),
            name: name.into(),
            project: project.into(),
            project_root: format!("/home/ada/{project}"),
            box_name: "fix-login".into(),
            created_at: now - minutes * 60_000,
            default,
        };
        vec![
            view("base", "shop-api", 5, true),
            view("base", "web", 90, false),
            view("x", "web", 3000, false),
        ]
    }

    #[test]
    fn checkpoints_are_listed() {
        let wide = Look { color: false, width: None };
        insta::assert_snapshot!(render(wide, &views(), samples::now()));
        let text = render(Look::PLAIN, &views(), samples::now());
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn one_is_found_by_its_id_or_a_name_of_its_own() {
        let all = views();
        assert_eq!(find(&all, "x").unwrap(), &all[2]);
        assert_eq!(find(&all, "agentbox/checkpoint:web-base-0123abcd").unwrap(), &all[1]);
        assert!(find(&all, "base").unwrap_err().error.contains("2 checkpoints"));
        assert!(find(&all, "y").is_err());
    }
}
