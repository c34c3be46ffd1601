//! `agentbox host`: the host itself, as a thing that is started, ended and looked at.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::ui::Look;
use crate::{ask, json, launch};
use host::client::Client;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use protocol::boxes::BoxView;
use protocol::busy;
use protocol::control::{HostStatus, Request};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an ending host may take: it lets go of every box first.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// Start, end or look at the host
///
/// The host is what looks after boxes and asks you: the desktop app, or `agentbox serve` in the
/// background. Commands that need one start it by themselves. Boxes go on without it, but nothing an
/// agent asks for is done. Without a subcommand it is looked at.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox host                  whether one runs, and where its log is
  agentbox host restart          after changing config.yaml
  agentbox host stop             boxes go on")]
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
}

/// Show whether a host runs
///
/// Starts none; exit code 1 when none runs.
#[derive(Debug, Default, clap::Args)]
struct StatusArgs {
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Start the host when none runs
///
/// The desktop app where there is a desktop, else `agentbox serve` in the background.
#[derive(Debug, clap::Args)]
struct StartArgs {
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// End the host
///
/// Open questions are denied. Boxes go on. At a terminal you are asked first while an agent works or a
/// question is open. Waits until it has ended.
#[derive(Debug, clap::Args)]
struct StopArgs {
    /// End it whatever goes on
    #[arg(short, long)]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// End the host and start one again
#[derive(Debug, clap::Args)]
struct RestartArgs {
    #[command(flatten)]
    stop: StopArgs,
}

/// The host and where its parts are.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    running: bool,
    status: Option<HostStatus>,
    socket: String,
    /// Of one that was started in the background.
    log: String,
}

impl View {
    fn of(home: &Path, status: Option<HostStatus>) -> Self {
        let socket = host::home::control_socket(home).display().to_string();
        let log = home.join("logs/host.log").display().to_string();
        Self { running: status.is_some(), status, socket, log }
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or_else(|| Action::Status(StatusArgs::default())) {
        Action::Status(args) => {
            let view = look(ctx)?;
            let exit = if view.running { Exit::OK } else { Exit::FAILED };
            tell(ctx, &view, args.json)?;
            Ok(exit)
        }
        Action::Start(args) => {
            ctx.client()?;
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
                ctx.client()?;
                tell(ctx, &look(ctx)?, args.json)?;
            }
            Ok(Exit::OK)
        }
    }
}

fn look(ctx: &Context) -> Result<View, CommandError> {
    let running = launch::is_running(&ctx.home);
    let status = running.then(|| ctx.client_if_running().call(&Request::Status)).transpose()?;
    Ok(View::of(&ctx.home, status))
}

fn tell(ctx: &Context, view: &View, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        return json::print(&ctx.ui, "host", view);
    }
    ctx.ui.out(&render(ctx.ui.out, view, Timestamp::now()))?;
    if !view.running {
        ctx.ui.hint("agentbox host start starts one");
    }
    Ok(())
}

fn render(look: Look, view: &View, now: Timestamp) -> String {
    let state = match &view.status {
        Some(status) => super::status::render(look, status, now),
        None => "host       none runs\n".to_owned(),
    };
    format!("{state}socket     {}\nlog        {}\n", view.socket, view.log)
}

/// Ends the host and waits for that. False when the person would rather not.
pub fn end(ctx: &Context, yes: bool) -> Result<bool, CommandError> {
    if !launch::is_running(&ctx.home) {
        return Ok(true);
    }
    let client = ctx.client_if_running();
    if !yes && ctx.ui.interactive && !may_end(ctx, &client)? {
        return Ok(false);
    }
    let status: HostStatus = client.call(&Request::Status)?;
    client.call::<()>(&Request::Stop)?;
    let pid = i32::try_from(status.pid).ok().filter(|pid| *pid > 0).map(Pid::from_raw);
    let deadline = Instant::now() + PATIENCE;
    while launch::is_running(&ctx.home) || !pid.is_none_or(has_ended) {
        if Instant::now() >= deadline {
            let text = format!("the host, pid {}, is still ending", status.pid);
            return Err(CommandError::failed(text)
                .hint(format!("look at {}", ctx.home.join("logs/host.log").display())));
        }
        std::thread::sleep(POLL);
    }
    Ok(true)
}

/// One that nobody has asked after yet has ended, too.
fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with('Z') || kill(pid, None) == Err(Errno::ESRCH)
}

/// Asked while something would be lost.
pub fn may_end(ctx: &Context, client: &Client) -> Result<bool, CommandError> {
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let reasons = busy::reasons(&boxes);
    if reasons.is_empty() {
        return Ok(true);
    }
    ctx.ui.say(&reasons.join("\n"));
    Ok(ask::yes(&ctx.ui, "End the host anyway?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_process_is_there_until_it_has_ended() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert!(!has_ended(pid));
        drop(child.stdin.take());
        let end = Instant::now() + Duration::from_secs(30);
        while !has_ended(pid) {
            assert!(Instant::now() < end, "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
        assert!(has_ended(pid));
    }

    #[test]
    fn a_host_and_none() {
        let home = Path::new("/home/ada/.agentbox");
        let some = render(Look::PLAIN, &View::of(home, Some(samples::status())), samples::now());
        assert!(some.starts_with("host       "), "{some}");
        assert!(some.ends_with("log        /home/ada/.agentbox/logs/host.log\n"), "{some}");
        let none = render(Look::PLAIN, &View::of(home, None), samples::now());
        assert!(none.starts_with("host       none runs\nsocket     /home/ada/"), "{none}");
    }
}
