//! `agentbox code`: a box's workspace in an editor.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::{ask, json, terminal};
use clap::ValueEnum;
use host::opener;
use protocol::control::Request;
use protocol::links::EditorLink;
use std::path::PathBuf;

const LENDS: &str = "\
While it is attached, the editor lends the box your git logins and your SSH agent, without a question
and without a record. Its settings \"dev.containers.gitCredentialHelperConfigLocation\": \"none\" and
\"dev.containers.copyGitConfig\": false switch the first off; start it without SSH_AUTH_SOCK for the
second.";

/// Open a box in VS Code or Cursor
///
/// You are asked first: while it is attached, the editor lends the box your git logins and SSH agent.
///
/// The editor attaches to the box and opens /workspace; its Dev Containers extension must be
/// installed. A box that is stopped or paused is started first. Exit code 1 when no editor could be
/// started; the address it would have got is printed then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox code                          the project's only box, in the editor that is there
  agentbox code fix-login --ide cursor   in Cursor
  agentbox code --print                  just the address")]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Which editor [default: VS Code, else Cursor]
    #[arg(long, value_name = "EDITOR")]
    ide: Option<Ide>,

    /// Open it without asking
    #[arg(short, long)]
    yes: bool,

    /// Print the address instead of opening it
    #[arg(long)]
    print: bool,

    /// Print the address as JSON and open nothing
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ide {
    Vscode,
    Cursor,
}

impl Ide {
    fn program(self) -> &'static str {
        match self {
            Ide::Vscode => "code",
            Ide::Cursor => "cursor",
        }
    }

    /// In `PATH`, else inside the application where it lies by itself.
    fn find(self) -> Option<PathBuf> {
        let bundle = match self {
            Ide::Vscode => "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
            Ide::Cursor => "/Applications/Cursor.app/Contents/Resources/app/bin/cursor",
        };
        let bundle = PathBuf::from(bundle);
        opener::find(self.program()).or_else(|| bundle.is_file().then_some(bundle))
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let request = Request::EditorLink { target: target(args.which) };
    let link: EditorLink = ctx.client()?.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "link", &link)?;
    } else if args.print {
        ctx.ui.out(&format!("{}\n", link.uri))?;
    } else if args.yes || may_open(ctx)? {
        open(ctx, &link, args.ide)?;
    }
    Ok(Exit::OK)
}

/// An editor that attaches lends a box what the person has: that is theirs to decide.
fn may_open(ctx: &Context) -> Result<bool, CommandError> {
    ctx.ui.say(LENDS);
    if !terminal::both_ends() {
        return Err(CommandError::usage("nobody is here to say yes").hint("--yes opens it"));
    }
    Ok(ask::yes(&ctx.ui, "Open it?"))
}

fn open(ctx: &Context, link: &EditorLink, wanted: Option<Ide>) -> Result<(), CommandError> {
    let choice = wanted.map_or(vec![Ide::Vscode, Ide::Cursor], |ide| vec![ide]);
    let opened = match choice.iter().find_map(|ide| ide.find()) {
        Some(program) => {
            ctx.ui.out(&format!("opening {} in {}\n", link.container, program.display()))?;
            opener::launch(&program, &["--folder-uri", &link.uri])
        }
        None => {
            let names: Vec<&str> = choice.iter().map(|ide| ide.program()).collect();
            Err(format!("no {} in PATH", names.join(" and no ")))
        }
    };
    if let Err(why) = opened {
        ctx.ui.out(&format!("{}\n", link.uri))?;
        let hint = "in the editor, run “Shell Command: Install 'code' command in PATH”";
        return Err(CommandError::failed(why).hint(hint));
    }
    Ok(())
}
