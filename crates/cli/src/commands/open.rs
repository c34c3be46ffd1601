//! `agentbox open`: a box's workspace as a folder of this computer, or the box in another program.

mod app;

use super::{agent, code, shell};
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::place::Elsewhere;
use crate::{json, mounts, table};
use app::{App, How};
use host::opener;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::links::SshHost;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Open a box's files as a folder, or the box in another program
///
/// The box's /workspace, mounted by sshfs below AgentBox's own folder and shown in your file manager.
/// What you change there changes in the box. A box that is stopped or paused is started first. The
/// folder is there until --unmount, or until the box stops. Its files look as if they were somebody
/// else's, so git on this computer does not work in it: use agentbox git. An editor of this computer
/// would run what the box has put there: use agentbox code. Exit code 1 without sshfs, or when the box
/// has no ssh server.
///
/// With --in it is another program: an editor attached to the box, an agent of the box, or a shell of the
/// box in a window of your terminal. None of them runs anything of yours in the box's files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox open fix-login             in the file manager
  agentbox open fix-login --print     where the folder is
  agentbox open fix-login --unmount   take it away again
  agentbox open fix-login --in tmux   a shell of the box in a window of tmux
  agentbox open --targets             what there is on this computer")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print where the folder is and mount nothing
    #[arg(long, visible_alias = "path", conflicts_with = "unmount")]
    print: bool,

    /// Take the folder away; the files stay in the box
    #[arg(long)]
    unmount: bool,

    /// The program it is opened in
    #[arg(long = "in", value_name = "APP", conflicts_with_all = ["print", "unmount"])]
    app: Option<App>,

    /// Open an editor without asking; see `agentbox code`
    #[arg(short, long, requires = "app")]
    yes: bool,

    /// Show the programs, and which of them can be used here
    #[arg(long, conflicts_with_all = ["which", "print", "unmount", "app"])]
    targets: bool,

    /// Print JSON, with --print or --targets
    #[arg(short, long, conflicts_with_all = ["unmount", "app"])]
    json: bool,
}

#[derive(Serialize)]
struct Mount {
    path: PathBuf,
    mounted: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.targets {
        return targets(ctx, args.json);
    }
    if args.json && !args.print {
        return Err(CommandError::usage("--json goes with --print or --targets"));
    }
    match args.app {
        None => {}
        Some(app) => match app.how() {
            How::Files => {}
            How::Editor(ide) => {
                return code::run(ctx, code::Args::usual(args.which, ide, args.yes));
            }
            How::Agent(of) => return agent::show(ctx, of, args.which),
            How::Shell(terminal) => {
                let place = Elsewhere::window_of(terminal).ok_or_else(|| {
                    CommandError::failed(format!("no {} is around this terminal", app.name()))
                        .hint("agentbox open --targets shows what there is")
                })?;
                let kind = shell::Kind::default();
                return shell::session(ctx, &ctx.client()?, args.which, &kind, Some(&place));
            }
        },
    }
    let (client, target) = (ctx.client()?, target(args.which));
    let view: BoxView = client.call(&Request::FindBox { target: target.clone() })?;
    let folder = mounts::place(&ctx.home, view.name.as_str());
    if args.print && args.json {
        let mounted = mounts::is_mounted(&folder);
        json::print(&ctx.ui, "mount", &Mount { path: folder, mounted })?;
    } else if args.print {
        ctx.ui.out(&format!("{}\n", folder.display()))?;
    } else if args.unmount {
        if mounts::is_mounted(&folder) {
            mounts::unmount(&folder)?;
            ctx.ui.out(&format!("unmounted {}\n", folder.display()))?;
        } else {
            ctx.ui.say(&format!("{} is not mounted.", folder.display()));
        }
    } else {
        let sshfs = mounts::sshfs()?;
        let at: SshHost = client.call(&Request::SshHost { target })?;
        mounts::mount(&sshfs, &at, &folder)?;
        show(ctx, &folder)?;
        ctx.ui.hint(&format!("agentbox open {} --unmount takes it away again", view.name));
    }
    Ok(Exit::OK)
}

fn targets(ctx: &Context, as_json: bool) -> Outcome {
    let all = app::choices();
    if as_json {
        json::print(&ctx.ui, "targets", &all)?;
        return Ok(Exit::OK);
    }
    let row = |one: &app::Choice| {
        let there = if one.available { "yes" } else { "no" };
        vec![one.app.clone(), there.to_owned(), one.shows.to_owned()]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    ctx.ui.out(&table::render(ctx.ui.out, &["APP", "HERE", "SHOWS"], &rows))?;
    Ok(Exit::OK)
}

fn show(ctx: &Context, folder: &Path) -> Result<(), CommandError> {
    if let Err(why) = opener::open(&folder.to_string_lossy()) {
        ctx.ui.out(&format!("{}\n", folder.display()))?;
        return Err(CommandError::failed(why).hint("it is mounted: open the folder above yourself"));
    }
    ctx.ui.out(&format!("opened {}\n", folder.display()))
}
