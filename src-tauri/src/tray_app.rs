//! The tray process: the host with a face.
//!
//! It never makes a webview (the window is a process of its own) and holds no gate: questions are
//! decided by the host's broker, this only shows them. The host starts before the desktop parts,
//! so a second start finds out that it is one before anything is drawn.

use crate::actions::Actions;
use crate::link::Link;
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use crate::{Failure, display, keyring, logging, page::Page, tray, watch};
use host::client::Client;
use host::{Api, Host, Kind, Options, StartError};
use protocol::boxes::BoxView;
use protocol::control::{HostStatus, Request};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tauri::{AppHandle, RunEvent};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Longer than the host gives work that was allowed already; then the process leaves anyway.
const ENDING: Duration = Duration::from_secs(15);

/// `open` is where the window is wanted, if it is.
pub fn run(open: Option<Link>) -> Result<(), Failure> {
    display::require()?;
    let home = home()?;
    logging::start(&home, "desktop.log");
    let settings = settings::Settings::load(&home).map_err(|e| Failure::new(e.to_string()))?;
    let runtime = runtime()?;
    tauri::async_runtime::set(runtime.handle().clone());
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
    desktop(home, host, signals, open)
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
    let wanted = home().ok().and_then(|home| settings::Settings::load(&home).ok());
    let wanted = wanted.is_some_and(|settings| settings.desktop.launch_at_login);
    match host::autostart::set(wanted, &app) {
        Ok(true) => tracing::info!("starting at login is {}", if wanted { "on" } else { "off" }),
        Ok(false) => {}
        Err(e) => tracing::warn!("starting at login cannot be set: {e}"),
    }
}

/// `$AGENTBOX_HOME`, with its folders made.
pub fn home() -> Result<PathBuf, Failure> {
    let home = host::home::default_home().ok_or_else(|| {
        Failure::new("there is no home folder to keep anything in.")
            .hint("Set AGENTBOX_HOME to a folder of yours.")
    })?;
    host::home::prepare(&home)
        .map_err(|e| Failure::new(format!("{} cannot be used: {e}.", home.display())))?;
    Ok(home)
}

pub fn runtime() -> Result<Runtime, Failure> {
    host::runtime().map_err(|e| Failure::new(format!("no threads to work with: {e}.")))
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

/// Runs until the app is told to end; the event loop then leaves the process.
fn desktop(home: PathBuf, host: Host, signals: Signals, open: Option<Link>) -> Result<(), Failure> {
    let mut host = Some((host, signals, open));
    let app = tauri::Builder::default()
        .setup(move |app| {
            if let Some((host, signals, open)) = host.take() {
                let api = host.api().clone();
                start_parts(app.handle(), home.clone(), host, signals);
                if let Some(link) = open {
                    tauri::async_runtime::spawn(async move { show(&api, link).await });
                }
            }
            Ok(())
        })
        .build(crate::context())
        .map_err(|e| Failure::new(format!("the desktop cannot be used: {e}.")))?;
    app.run(|_, event| {
        // Without windows the event loop would end; only `exit` with a code may end it.
        if let RunEvent::ExitRequested { api, code: None, .. } = event {
            api.prevent_exit();
        }
    });
    Ok(())
}

async fn show(api: &Api, link: Link) {
    let page = link.page(&api.boxes().await);
    if let Err(e) = api.show_window(&page.to_string()) {
        tracing::warn!("the window cannot be opened: {e}");
    }
}

fn start_parts(app: &AppHandle, home: PathBuf, host: Host, signals: Signals) {
    let api = host.api().clone();
    let window = WindowChild::new(home);
    let notifier = Notifier::start(&api);
    #[cfg(target_os = "linux")]
    crate::dialog::add_to(app, &api);

    let actions = Actions::new(api.clone(), notifier.clone());
    let views = watch::start(api.clone(), window.clone(), notifier.clone());
    tauri::async_runtime::spawn(tray::keep(app.clone(), api.clone(), actions, views));
    tauri::async_runtime::spawn(keyring::watch(api.clone()));
    #[cfg(target_os = "linux")]
    tauri::async_runtime::spawn(crate::screen_lock::watch(api));
    tauri::async_runtime::spawn(until_the_end(app.clone(), host, signals, window, notifier));
}

/// Waits for Quit, a hand-over or a signal, then leaves nothing behind.
async fn until_the_end(
    app: AppHandle,
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
    app.exit(0);
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
