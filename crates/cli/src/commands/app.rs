//! `agentbox app`: the desktop app, as a thing that is started, ended and looked at.

use super::host;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::{json, launch};
use protocol::control::{HostStatus, Notice, Request};
use protocol::text::visible;
use serde::Serialize;
use std::io::{Read as _, Seek as _, SeekFrom};

/// How much of the log is shown.
const TAIL: u64 = 64 * 1024;

/// Start, end or look at the desktop app
///
/// The app in the tray, which asks you and looks after boxes. Started while a host without a desktop
/// runs, it takes over from that. Without a subcommand it is looked at.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox app start        in the tray, and its window; --no-open: without it
  agentbox app status       whether it runs, and what its desktop lacks
  agentbox app log          what it wrote lately")]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Status(StatusArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Restart(RestartArgs),
    /// Show what it wrote lately
    Log,
}

/// Show whether the desktop app runs
///
/// Starts nothing; exit code 1 when it does not run.
#[derive(Debug, Default, clap::Args)]
struct StatusArgs {
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Start the desktop app and open its window
#[derive(Debug, clap::Args)]
struct StartArgs {
    /// Start it without opening a window
    #[arg(long)]
    no_open: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// End the desktop app
///
/// Open questions are denied. Boxes go on. At a terminal you are asked first while an agent works or a
/// question is open.
#[derive(Debug, clap::Args)]
struct StopArgs {
    /// End it whatever goes on
    #[arg(short, long)]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// End the desktop app and start it again
#[derive(Debug, clap::Args)]
struct RestartArgs {
    #[command(flatten)]
    stop: StopArgs,
}

/// The desktop app as it is.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    running: bool,
    pid: Option<u32>,
    version: Option<String>,
    /// Another kind of host runs instead.
    headless: bool,
    /// What its desktop lacks.
    notices: Vec<Notice>,
    log: String,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or_else(|| Action::Status(StatusArgs::default())) {
        Action::Status(args) => {
            let view = look(ctx)?;
            tell(ctx, &view, args.json)?;
            Ok(if view.running { Exit::OK } else { Exit::FAILED })
        }
        Action::Start(args) => {
            let ran = look(ctx)?.running;
            let client = ctx.client_if_running();
            if !ran {
                launch::start_app(&ctx.home, &client)?;
            }
            if !args.no_open {
                client.call::<()>(&Request::ShowWindow { page: "inbox".into() })?;
            }
            tell(ctx, &look(ctx)?, args.json)?;
            Ok(Exit::OK)
        }
        Action::Stop(args) => {
            if end(ctx, args.yes)? {
                tell(ctx, &look(ctx)?, args.json)?;
            }
            Ok(Exit::OK)
        }
        Action::Restart(RestartArgs { stop: args }) => {
            if end(ctx, args.yes)? {
                launch::start_app(&ctx.home, &ctx.client_if_running())?;
                tell(ctx, &look(ctx)?, args.json)?;
            }
            Ok(Exit::OK)
        }
        Action::Log => log(ctx),
    }
}

/// False when the person would rather not, or another kind of host runs, which is left alone.
fn end(ctx: &Context, yes: bool) -> Result<bool, CommandError> {
    let view = look(ctx)?;
    if view.headless {
        return Err(CommandError::failed("the desktop app does not run; a host without one does")
            .hint("agentbox host stop ends that"));
    }
    if view.running { host::end(ctx, yes) } else { Ok(true) }
}

fn look(ctx: &Context) -> Result<View, CommandError> {
    let runs = launch::is_running(&ctx.home);
    let status: Option<HostStatus> =
        runs.then(|| ctx.client_if_running().call(&Request::Status)).transpose()?;
    Ok(view(status, &ctx.home.join("logs/desktop.log").display().to_string()))
}

fn view(status: Option<HostStatus>, log: &str) -> View {
    let headless = status.as_ref().is_some_and(|status| status.kind != "desktop");
    let app = status.filter(|_| !headless);
    View {
        running: app.is_some(),
        pid: app.as_ref().map(|status| status.pid),
        version: app.as_ref().map(|status| status.version.clone()),
        headless,
        notices: app.map(|status| status.notices).unwrap_or_default(),
        log: log.to_owned(),
    }
}

fn tell(ctx: &Context, view: &View, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        return json::print(&ctx.ui, "app", view);
    }
    ctx.ui.out(&render(view))?;
    if !view.running {
        ctx.ui.hint("agentbox app start starts it");
    }
    Ok(())
}

fn render(view: &View) -> String {
    let state = match (&view.version, view.pid) {
        (Some(version), Some(pid)) => format!("runs, version {}, pid {pid}", visible(version)),
        _ if view.headless => "does not run; a host without a desktop does".to_owned(),
        _ => "does not run".to_owned(),
    };
    let mut text = format!("app        {state}\n");
    for notice in &view.notices {
        text.push_str(&format!("notice     {}\n", visible(&notice.message)));
    }
    text + &format!("log        {}\n", view.log)
}

/// The end of what it wrote.
fn log(ctx: &Context) -> Outcome {
    let path = ctx.home.join("logs/desktop.log");
    let unreadable = |e: std::io::Error| {
        CommandError::failed(format!("{} cannot be read: {e}", path.display()))
            .hint("it is there when the app has run")
    };
    let mut file = std::fs::File::open(&path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be half of one.
    let cut =
        if length > TAIL { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    for line in cut.lines() {
        ctx.ui.out(&format!("{}\n", visible(line)))?;
    }
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn another_kind_of_host_is_not_the_app() {
        let status = |kind: &str| HostStatus { kind: kind.into(), ..samples::status() };
        let app = view(Some(status("desktop")), "/l");
        assert!(
            app.running && !app.headless && render(&app).starts_with("app        runs, version")
        );
        let other = view(Some(status("headless")), "/l");
        assert!(!other.running && other.headless);
        assert_eq!(
            render(&other),
            "app        does not run; a host without a desktop does\nlog        /l\n"
        );
        assert_eq!(render(&view(None, "/l")), "app        does not run\nlog        /l\n");
    }
}
