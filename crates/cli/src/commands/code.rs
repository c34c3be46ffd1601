//! `agentbox code`: a box's workspace in an editor.

use crate::commands::wait::until_ready;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Kind, Outcome};
use crate::interrupt::Interrupt;
use crate::time::{parse_timeout, seconds_of};
use crate::{ask, json, terminal};
use clap::ValueEnum;
use host::client::Client;
use host::opener;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::links::{EditorLink, TasksFile};
use protocol::text::visible;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
/// installed. A box that is stopped or paused is started first, and waited for until it is ready and its
/// tasks are done and services up; one that failed ends that, and the editor opens all the same.
/// When the project has services, .vscode/tasks.json in the box opens a terminal with the log of each;
/// one of your own is left alone. Exit code 1 when no editor could be started; the address it would
/// have got is printed then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox code                          the project's only box, in the editor that is there
  agentbox code fix-login --ide cursor   in Cursor
  agentbox code --print                  just the address
  agentbox code --regen-tasks            with terminals for services instead of your own tasks")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Which editor [default: what code.ide says: VS Code, else Cursor]
    #[arg(long, value_name = "EDITOR")]
    ide: Option<Ide>,

    /// Open it although the box, its tasks or its services are not ready
    #[arg(long)]
    no_wait: bool,

    /// How long to wait at most: 30s, 2m, or milliseconds; then it is opened all the same [default:
    /// what code.timeoutMs says: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, conflicts_with = "no_wait")]
    timeout: Option<u64>,

    /// Without terminals for the logs of services
    #[arg(long)]
    no_auto_terminals: bool,

    /// Replace a tasks.json in the box that is not AgentBox's
    #[arg(long, conflicts_with = "no_auto_terminals")]
    regen_tasks: bool,

    /// Open it without asking
    #[arg(short, long)]
    yes: bool,

    /// Print the address instead of opening it
    #[arg(long)]
    print: bool,

    /// Print the address as JSON and open nothing
    #[arg(short, long)]
    json: bool,
}

impl Args {
    /// As usual, in this editor.
    pub fn usual(which: Option<String>, ide: Ide, yes: bool) -> Self {
        Self {
            which,
            ide: Some(ide),
            no_wait: false,
            timeout: None,
            no_auto_terminals: false,
            regen_tasks: false,
            yes,
            print: false,
            json: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ide {
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

    /// What the setting names; none is whichever is there.
    fn set(ide: settings::Ide) -> Option<Self> {
        match ide {
            settings::Ide::Auto => None,
            settings::Ide::Vscode => Some(Ide::Vscode),
            settings::Ide::Cursor => Some(Ide::Cursor),
        }
    }

    /// In `PATH`, else inside the application where it lies by itself.
    pub fn find(self) -> Option<PathBuf> {
        let bundle = match self {
            Ide::Vscode => "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
            Ide::Cursor => "/Applications/Cursor.app/Contents/Resources/app/bin/cursor",
        };
        let bundle = PathBuf::from(bundle);
        opener::find(self.program()).or_else(|| bundle.is_file().then_some(bundle))
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let (client, target) = (ctx.client()?, target(args.which));
    let view: BoxView = client.call(&Request::FindBox { target: target.clone() })?;
    let set = ctx.settings_of(Path::new(&view.project_root))?.code;
    if !args.json && !args.print && !args.yes && !may_open(ctx)? {
        return Ok(Exit::OK);
    }
    let link: EditorLink = client.call(&Request::EditorLink { target: target.clone() })?;
    if !args.no_wait && (set.wait || args.timeout.is_some()) {
        wait(ctx, &client, &target, args.timeout.unwrap_or(set.timeout_ms))?;
    }
    if args.regen_tasks || (!args.no_auto_terminals && set.auto_terminals) {
        terminals(ctx, &client, target, args.regen_tasks);
    }
    if args.json {
        json::print(&ctx.ui, "link", &link)?;
    } else if args.print {
        ctx.ui.out(&format!("{}\n", link.uri))?;
    } else {
        open(ctx, &link, args.ide.or(Ide::set(set.ide)))?;
    }
    Ok(Exit::OK)
}

/// Until the box, its tasks and its services are ready, or for as long as the person wants; then it goes
/// on all the same, and so it does when nobody can say.
fn wait(ctx: &Context, client: &Client, target: &Target, limit: u64) -> Result<(), CommandError> {
    let interrupt = Interrupt::install()?;
    let until = |limit| until_ready(&interrupt, client, target, &[], limit);
    // Only who has to wait is told so.
    let waited = until(Duration::ZERO).and_then(|now| {
        if now.ready || limit == 0 {
            return Ok(now);
        }
        let most = match limit {
            1000.. => format!("{} s", seconds_of(limit)),
            _ => format!("{limit} ms"),
        };
        ctx.ui.say(&format!("waiting until the box is ready, at most {most}…"));
        until(Duration::from_millis(limit))
    });
    let why = match waited {
        Ok(waited) if waited.ready => return Ok(()),
        Ok(waited) => waited.why.map(|why| visible(&why)),
        Err(error) if error.kind == Kind::Interrupted => return Err(error),
        Err(error) => Some(error.error),
    };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    ctx.ui.warn(&format!("the box is not ready{why}"));
    Ok(())
}

/// A convenience: without it the editor opens all the same.
fn terminals(ctx: &Context, client: &Client, target: Target, regenerate: bool) {
    match client.call(&Request::EditorTasks { target, regenerate }) {
        Ok(TasksFile::Written | TasksFile::NoServices) => {}
        Ok(TasksFile::Kept) => {
            ctx.ui.hint(".vscode/tasks.json is your own; --regen-tasks replaces it");
        }
        Err(e) => {
            let why = protocol::text::visible(&e.to_string());
            ctx.ui.warn(&format!("no terminals for services: {why}"));
        }
    }
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
