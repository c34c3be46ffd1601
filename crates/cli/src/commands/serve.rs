//! `agentbox serve`: the host without a desktop, in the foreground.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::ui::Ui;
use host::{Host, Kind, Options, StartError};
use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Run the host without a desktop
///
/// For servers and terminals: questions are answered with `agentbox approvals --answer` or
/// `agentbox approve`. Runs until Ctrl-C or SIGTERM; boxes go on without it. Other commands start
/// one in the background when they need it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox serve
  AGENTBOX_LOG=debug agentbox serve   with more to read on standard error")]
pub struct Args {
    /// Leave the terminal's session; another running host is no failure
    #[arg(long, hide = true)]
    detached: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.detached {
        // A host without a terminal: no program it starts can ask for a password on one. It fails
        // only when we already lead a session, which is as good.
        let _ = nix::unistd::setsid();
    }
    log_to_stderr();
    let settings =
        settings::Settings::load(&ctx.home).map_err(|e| CommandError::usage(e.to_string()))?;
    let options = Options { home: ctx.home.clone(), kind: Kind::Headless, settings };
    match host::runtime()?.block_on(serve(&ctx.ui, options)) {
        Ok(()) => Ok(Exit::OK),
        Err(StartError::AlreadyRunning { .. }) if args.detached => Ok(Exit::OK),
        Err(error) => Err(explain(&error)),
    }
}

async fn serve(ui: &Ui, options: Options) -> Result<(), StartError> {
    let home = options.home.clone();
    let host = Host::start(options).await?;
    ui.say(&greeting(&home));
    tokio::select! {
        () = host.stopped() => {}
        () = told_to_stop() => {}
    }
    host.shutdown().await;
    Ok(())
}

fn greeting(home: &Path) -> String {
    format!(
        "AgentBox host is ready, home {}. Keep `agentbox approvals --answer` open in another \
         terminal: a question that nobody could see is a no.",
        home.display()
    )
}

/// SIGTERM, SIGINT or SIGHUP. Without handlers the process would end without an orderly shutdown,
/// so one that cannot be installed counts as a signal.
async fn told_to_stop() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [Ok(mut term), Ok(mut int), Ok(mut hup)] = kinds.map(signal) else { return };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("AGENTBOX_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

fn explain(error: &StartError) -> CommandError {
    let failed = CommandError::failed(error.to_string());
    match error {
        StartError::AlreadyRunning { .. } => {
            failed.hint("`agentbox status` shows it; other commands already use it")
        }
        StartError::Store(e) if e.to_string().contains("is full") => {
            failed.hint("make room on that disk and start it again; boxes go on meanwhile")
        }
        _ => failed,
    }
}
