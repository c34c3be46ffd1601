//! The tray process: the host with a face.
//!
//! It never makes a webview (the window is a process of its own) and holds no gate: questions are
//! decided by the host's broker, this only shows them. The host starts before the desktop parts,
//! so a second start finds out that it is one before anything is drawn.

use crate::actions::Actions;
use crate::link::Link;
use crate::main_thread::{self, MainThread};
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use crate::{Failure, display, home, keyring, logging, page::Page, tray, watch};
use host::client::Client;
use host::{Api, Host, Kind, Options, StartError};
use protocol::boxes::BoxView;
use protocol::control::{HostStatus, Request};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Longer than the host gives work that was allowed already; then the process leaves anyway.
const ENDING: Duration = Duration::from_secs(15);

/// `open` is where the window is wanted, if it is.
pub fn run(open: Option<Link>) -> Result<(), Failure> {
    display::require()?;
    let home = home::prepared()?;
    logging::start(&home, "desktop.log");
    let settings = settings::Settings::load(&home).map_err(|e| Failure::new(e.to_string()))?;
    let runtime = home::runtime()?;
    if open.is_some() {
        may_follow_a_link(&home)?;
    }
    let signals = runtime.block_on(async { Signals::listen() })?;
    let options = Options { home: home.clone(), kind: Kind::Desktop, settings };
    let host = match runtime.block_on(Host::start(options)) {
        Ok(host) => host,
        Err(StartError::AlreadyRunning { .. }) => return show_the_running_one(&home, open),
        Err(e) => return Err(Failure::new(e.to_string())),
    };
    tracing::info!(home = %home.display(), "the desktop host runs");
    start_at_login();
    {
        // What is clicked starts tasks from the main thread.
        let _entered = runtime.enter();
        desktop(home, host, signals, open);
    }
    // Not by waiting for what still works: it had its time.
    runtime.shutdown_background();
    Ok(())
}

/// A link may come from anywhere, and taking over from a host without a desktop denies its open questions.
fn may_follow_a_link(home: &Path) -> Result<(), Failure> {
    let status = Client::new(home).call::<HostStatus>(&Request::Status);
    if status.is_ok_and(|status| status.kind == "headless") {
        return Err(Failure::new(
            "AgentBox runs without a desktop, so there is no window to open.",
        )
        .hint("agentbox app start brings it to this desktop."));
    }
    Ok(())
}

/// As the settings say; the program may lie elsewhere since they were made.
fn start_at_login() {
    let Ok(app) = std::env::current_exe() else { return };
    let wanted = home::prepared().ok().and_then(|home| settings::Settings::load(&home).ok());
    let wanted = wanted.is_some_and(|settings| settings.desktop.launch_at_login);
    match host::autostart::set(wanted, &app) {
        Ok(true) => tracing::info!("starting at login is {}", if wanted { "on" } else { "off" }),
        Ok(false) => {}
        Err(e) => tracing::warn!("starting at login cannot be set: {e}"),
    }
}

fn show_the_running_one(home: &Path, open: Option<Link>) -> Result<(), Failure> {
    let client = Client::new(home);
    let page = match open {
        Some(link) => link.page(&client.call::<Vec<BoxView>>(&Request::Boxes).unwrap_or_default()),
        None => Page::Inbox,
    };
    client.call::<()>(&Request::ShowWindow { page: page.to_string() }).map_err(|e| {
        Failure::new(format!("AgentBox already runs, but its window cannot be opened: {e}."))
    })
}

/// Runs until the app is told to end.
fn desktop(home: PathBuf, host: Host, signals: Signals, open: Option<Link>) {
    main_thread::run(move |main| {
        let api = host.api().clone();
        start_parts(main, home, host, signals);
        if let Some(link) = open {
            tokio::spawn(async move { show(&api, link).await });
        }
    });
}

async fn show(api: &Api, link: Link) {
    let page = link.page(&api.boxes().await);
    if let Err(e) = api.show_window(&page.to_string()) {
        tracing::warn!("the window cannot be opened: {e}");
    }
}

fn start_parts(main: &MainThread, home: PathBuf, host: Host, signals: Signals) {
    let api = host.api().clone();
    let window = WindowChild::new(home);
    let notifier = Notifier::start(&api);
    #[cfg(target_os = "linux")]
    crate::dialog::add_to(&api);

    let actions = Actions::new(api.clone(), notifier.clone());
    let views = watch::start(api.clone(), window.clone(), notifier.clone());
    tokio::spawn(tray::keep(main.clone(), api.clone(), actions, views));
    tokio::spawn(keyring::watch(api.clone()));
    #[cfg(target_os = "linux")]
    {
        tokio::spawn(crate::appearance::follow(main.clone()));
        tokio::spawn(crate::screen_lock::watch(api));
    }
    tokio::spawn(until_the_end(main.clone(), host, signals, window, notifier));
}

/// Waits for Quit, a hand-over or a signal, then leaves nothing behind.
async fn until_the_end(
    main: MainThread,
    host: Host,
    mut signals: Signals,
    window: WindowChild,
    notifier: Notifier,
) {
    tokio::select! {
        () = host.stopped() => {}
        () = signals.any() => {}
    }
    tracing::info!("the desktop host ends");
    window.end().await;
    if tokio::time::timeout(ENDING, host.shutdown()).await.is_err() {
        tracing::warn!("the host did not end within {} s", ENDING.as_secs());
    }
    // Questions were withdrawn just now: no notification may stay whose buttons do nothing.
    notifier.emptied().await;
    main.end();
}

/// What ends a desktop app from outside.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Needs a runtime.
    fn listen() -> Result<Self, Failure> {
        let of = |kind| {
            signal(kind).map_err(|e| Failure::new(format!("signals cannot be received: {e}.")))
        };
        Ok(Self {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
            hang_up: of(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
