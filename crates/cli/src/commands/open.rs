//! `agentbox open`: a box's workspace as a folder of this computer.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::{json, mounts};
use clap::ValueEnum;
use host::opener;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::links::SshHost;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Open a box's files as a folder
///
/// The box's /workspace, mounted by sshfs below AgentBox's own folder and shown in your file manager.
/// What you change there changes in the box. A box that is stopped or paused is started first. The
/// folder is there until --unmount, or until the box stops. Its files look as if they were somebody
/// else's, so git on this computer does not work in it: use agentbox git. Exit code 1 without sshfs, or
/// when the box has no ssh server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox open fix-login             in the file manager
  agentbox open fix-login --in vscode in an editor of this computer
  agentbox open fix-login --print     where the folder is
  agentbox open fix-login --unmount   take it away again")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print where the folder is and mount nothing
    #[arg(long, visible_alias = "path", conflicts_with_all = ["unmount", "app", "targets"])]
    print: bool,

    /// Take the folder away; the files stay in the box
    #[arg(long, conflicts_with_all = ["app", "targets"])]
    unmount: bool,

    /// What to open it in
    #[arg(long = "in", value_name = "APP", conflicts_with = "targets")]
    app: Option<App>,

    /// List what it can be opened in
    #[arg(long)]
    targets: bool,

    /// Print JSON, with --print or --targets
    #[arg(short, long, conflicts_with_all = ["unmount", "app"])]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum App {
    /// The file manager
    #[value(alias = "finder")]
    Files,
    Vscode,
    Cursor,
}

impl App {
    fn name(self) -> &'static str {
        match self {
            App::Files => "files",
            App::Vscode => "vscode",
            App::Cursor => "cursor",
        }
    }

    fn program(self) -> &'static str {
        match self {
            App::Files => opener::OPENER,
            App::Vscode => "code",
            App::Cursor => "cursor",
        }
    }
}

#[derive(Serialize)]
struct Found {
    name: &'static str,
    program: Option<PathBuf>,
}

#[derive(Serialize)]
struct Mount {
    path: PathBuf,
    mounted: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.targets {
        return list(ctx, args.json);
    }
    if args.json && !args.print {
        return Err(CommandError::usage("--json goes with --print or --targets"));
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
        show(ctx, &folder, args.app.unwrap_or(App::Files))?;
        ctx.ui.hint(&format!("agentbox open {} --unmount takes it away again", view.name));
    }
    Ok(Exit::OK)
}

fn show(ctx: &Context, folder: &Path, app: App) -> Result<(), CommandError> {
    let opened = match opener::find(app.program()) {
        Some(program) => opener::launch(&program, &[&folder.to_string_lossy()]),
        None => Err(format!("{} is not installed", app.program())),
    };
    if let Err(why) = opened {
        ctx.ui.out(&format!("{}\n", folder.display()))?;
        return Err(CommandError::failed(why).hint("it is mounted: open the folder above yourself"));
    }
    ctx.ui.out(&format!("opened {}\n", folder.display()))
}

fn list(ctx: &Context, as_json: bool) -> Outcome {
    let all = App::value_variants().iter();
    let found = all.map(|app| Found { name: app.name(), program: opener::find(app.program()) });
    let found: Vec<Found> = found.collect();
    if as_json {
        json::print(&ctx.ui, "targets", &found)?;
        return Ok(Exit::OK);
    }
    for Found { name, program } in found {
        let place = program.map_or("not installed".to_owned(), |p| p.display().to_string());
        ctx.ui.out(&format!("{name:8}{place}\n"))?;
    }
    Ok(Exit::OK)
}
