//! `agentbox checkpoint`: boxes as they were, kept for new ones to start from.

use crate::ask;
use crate::context::{Context, current_dir, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::progress::Steps;
use crate::table;
use crate::time::ago;
use crate::ui::Look;
use clap::Subcommand;
use host::client::Client;
use jiff::Timestamp;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{CheckpointKind, CheckpointView, CreateCheckpoint, Request};
use protocol::text::{size, visible};
use std::path::Path;

/// Keep boxes as they are, and start new ones from there
///
/// A checkpoint is a box as it was, kept as an image: tools, caches, node_modules. A new box that
/// starts from it gets the project as it is on this computer, its own branch and an identity of its
/// own; what git tracks is never taken from the checkpoint.
///
/// Not in it: the box's token and keys, logins of agents, .env files (unless --include-env), and what
/// lies on volumes, such as the images and containers of an engine inside the box.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    visible_alias = "checkpoints",
    after_help = "Examples:
  agentbox checkpoint create fix-login --name warm --set-default
  agentbox checkpoint                      all of them
  agentbox create --snapshot warm          a box that starts from one
  agentbox checkpoint rm warm              remove one for good"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Args)]
struct List {
    /// The box they were made of: its number, id or name
    #[arg(value_name = "BOX")]
    of: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(Create),
    /// List checkpoints
    #[command(visible_alias = "list")]
    Ls(List),
    SetDefault(SetDefault),
    /// Remove a checkpoint and its image
    Rm {
        /// Its name, or its id when another has that name
        #[arg(value_name = "REF")]
        id: String,
        /// Don't ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// Keep a box as it is now
///
/// The box freezes for a moment. What it changed is kept on top of what it was made from; after
/// checkpoint.maxLayers of these (3), or with --merged, all of it becomes one layer.
#[derive(Debug, clap::Args)]
struct Create {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Its name: letters, digits, '.', '_' and '-' [default: the box's name and the next number]
    #[arg(long)]
    name: Option<String>,

    /// Make one layer of it
    #[arg(long)]
    merged: bool,

    /// New boxes of the project start from it
    #[arg(long)]
    set_default: bool,

    /// Take the place of the one of that name
    #[arg(long, requires = "name")]
    replace: bool,

    /// Keep .env files and the like in it
    #[arg(long)]
    include_env: bool,

    /// Print the checkpoint as JSON
    #[arg(short, long)]
    json: bool,
}

/// Choose what new boxes of the project start from
///
/// Without a checkpoint it says which one that is.
#[derive(Debug, clap::Args)]
struct SetDefault {
    /// Its name, or its id when another has that name
    #[arg(value_name = "REF", conflicts_with = "clear")]
    id: Option<String>,

    /// Start from the box image again
    #[arg(long)]
    clear: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    match args.action {
        None => list(ctx, &client, args.list),
        Some(Action::Ls(args)) => list(ctx, &client, args),
        Some(Action::Create(args)) => create(ctx, &client, args),
        Some(Action::SetDefault(args)) => set_default(ctx, &client, args),
        Some(Action::Rm { id, yes }) => remove(ctx, &client, &id, yes),
    }
}

fn all(client: &Client) -> Result<Vec<CheckpointView>, CommandError> {
    Ok(client.call(&Request::Checkpoints { target: None })?)
}

fn list(ctx: &Context, client: &Client, args: List) -> Outcome {
    let of = args.of.map(|query| target(Some(query)));
    let all: Vec<CheckpointView> = client.call(&Request::Checkpoints { target: of })?;
    if args.json {
        json::print(&ctx.ui, "checkpoints", &all)?;
    } else if all.is_empty() {
        ctx.ui.say("No checkpoints.");
        ctx.ui.hint("agentbox checkpoint create keeps a box as it is");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &all, Timestamp::now()))?;
    }
    Ok(Exit::OK)
}

fn create(ctx: &Context, client: &Client, args: Create) -> Outcome {
    let target = target(args.which);
    let view: BoxView = client.call(&Request::FindBox { target })?;
    match view.state {
        BoxState::Stopped => ctx.ui.say(&format!("{} is stopped; starting it", view.name)),
        BoxState::Paused => ctx.ui.say(&format!("{} is paused; waking it", view.name)),
        _ => {}
    }
    ctx.ui.say(&format!("{} freezes for a moment", view.name));
    let request = Request::CreateCheckpoint(CreateCheckpoint {
        target: protocol::control::Target::id(&view.id),
        name: args.name,
        merged: args.merged,
        set_default: args.set_default,
        replace: args.replace,
        include_env: args.include_env,
    });
    let interrupt = Interrupt::install()?;
    let made: CheckpointView = {
        let steps = Steps::new(&ctx.ui);
        interrupt.call(client, &request, |incoming| super::create::show_step(&steps, incoming))?
    };
    if args.json {
        json::print(&ctx.ui, "checkpoint", &made)?;
    } else {
        let default = if made.default { ", where new boxes of the project start" } else { "" };
        let (name, kind) = (visible(&made.name), kind(&made));
        ctx.ui
            .out(&format!("saved checkpoint {name} ({kind}, {}){default}\n", size(made.bytes)))?;
        ctx.ui.hint(&format!("agentbox create --snapshot {name}"));
    }
    Ok(Exit::OK)
}

fn set_default(ctx: &Context, client: &Client, args: SetDefault) -> Outcome {
    let cwd = current_dir().map(|dir| dir.to_string_lossy().into_owned());
    if args.clear {
        client.call::<()>(&Request::SetDefaultCheckpoint { id: None, cwd })?;
        ctx.ui.out("new boxes start from the box image\n")?;
        return Ok(Exit::OK);
    }
    let all = all(client)?;
    let Some(id) = args.id else {
        let here = near(&all).into_iter().find(|view| view.default);
        match here {
            Some(view) => ctx.ui.out(&format!("{}\n", visible(&view.name)))?,
            None => ctx.ui.say("No default here: new boxes start from the box image."),
        }
        return Ok(Exit::OK);
    };
    let found = find(&all, &id)?;
    let name = visible(&found.name);
    client.call::<()>(&Request::SetDefaultCheckpoint { id: Some(found.id.clone()), cwd: None })?;
    ctx.ui.out(&format!("new boxes of {} start from {name}\n", visible(&found.project)))?;
    Ok(Exit::OK)
}

fn remove(ctx: &Context, client: &Client, id: &str, yes: bool) -> Outcome {
    let all = all(client)?;
    let found = find(&all, id)?;
    let shown = visible(&found.name);
    let question = format!("Remove checkpoint {shown} of {} for good?", visible(&found.project));
    if !yes && !ctx.ui.interactive {
        let text = "nobody is there to be asked; nothing was removed";
        return Err(CommandError::usage(text).hint(format!("agentbox checkpoint rm {shown} -y")));
    }
    if !yes && !ask::yes(&ctx.ui, &question) {
        ctx.ui.say("Kept.");
        return Ok(Exit::OK);
    }
    client.call::<()>(&Request::RemoveCheckpoint { id: found.id.clone() })?;
    ctx.ui.out(&format!("removed  {shown}\n"))?;
    if found.default {
        ctx.ui.say(&format!("new boxes of {} start from the box image", visible(&found.project)));
    }
    // A setting is the person's own word; it is not changed behind their back.
    let settings = super::config::root_of(Path::new("."))
        .ok()
        .and_then(|root| host::project_settings(&ctx.home, &root).ok());
    if settings.is_some_and(|s| s.boxes.image.as_deref() == Some(&found.id)) {
        ctx.ui.warn(
            "box.image in the settings still names it; new boxes will fail until it does not",
        );
    }
    Ok(Exit::OK)
}

/// Those of the project around the folder the person is in.
fn near(all: &[CheckpointView]) -> Vec<&CheckpointView> {
    let Some(here) = current_dir() else { return Vec::new() };
    let around = |view: &&CheckpointView| here.starts_with(&view.project_root);
    let root = all.iter().filter(around).map(|view| &view.project_root).max_by_key(|r| r.len());
    all.iter().filter(|view| Some(&view.project_root) == root).collect()
}

fn find<'c>(all: &'c [CheckpointView], named: &str) -> Result<&'c CheckpointView, CommandError> {
    if let Some(one) = all.iter().find(|view| view.id == named) {
        return Ok(one);
    }
    if let Some(one) = near(all).into_iter().find(|view| view.name == named) {
        return Ok(one);
    }
    let matching: Vec<_> = all.iter().filter(|view| view.name == named).collect();
    let hint = "`agentbox checkpoint ls --json` lists their ids";
    match matching[..] {
        [one] => Ok(one),
        [] => Err(CommandError::usage(format!("no checkpoint {:?}", visible(named))).hint(hint)),
        _ => {
            let text = format!("{} checkpoints are called {:?}", matching.len(), visible(named));
            Err(CommandError::usage(text).hint(hint))
        }
    }
}

fn kind(view: &CheckpointView) -> &'static str {
    match view.kind {
        CheckpointKind::Layered => "layered",
        CheckpointKind::Flattened => "flattened",
    }
}

fn render(look: Look, all: &[CheckpointView], now: Timestamp) -> String {
    let row = |view: &CheckpointView| {
        let chain: Vec<String> = view.parents.iter().map(|name| visible(name)).collect();
        vec![
            visible(&view.name),
            visible(&view.project),
            visible(&view.box_name),
            ago(now, view.created_at),
            size(view.bytes),
            if view.default { "yes".to_owned() } else { "-".to_owned() },
            if chain.is_empty() {
                kind(view).to_owned()
            } else {
                format!("on {}", chain.join(" < "))
            },
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table::render(look, &["NAME", "PROJECT", "BOX", "MADE", "SIZE", "DEFAULT", "CHAIN"], &rows)
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
            bytes: 3_400_000 * minutes,
            parents: if minutes > 1000 { vec!["base".into(), "first".into()] } else { vec![] },
            ..CheckpointView::default()
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
