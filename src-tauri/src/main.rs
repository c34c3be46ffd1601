//! `agentbox-desktop`: the tray, the dialogs and notifications of questions, and the window.
//!
//! One binary, two processes. Without arguments it is the tray process, which runs the host and
//! never makes a webview. With `--window` it is the window: a webview that is a client of the
//! control socket like any other, and gone when closed. This file only decides which one it is.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod actions;
mod args;
mod chooser;
mod commands;
mod copies;
mod display;
mod keyring;
mod link;
mod links;
mod live;
mod logging;
mod menu;
mod page;
mod subscription;
mod terminal;
mod tray;
mod tray_app;
mod tray_icon;
mod watch;
mod window;
mod window_child;
mod window_state;

#[cfg(target_os = "linux")]
mod colour;
#[cfg(target_os = "linux")]
mod dialog;
#[cfg(target_os = "linux")]
mod notifications;
#[cfg(target_os = "linux")]
mod panel;
#[cfg(target_os = "linux")]
mod screen_lock;
#[cfg(target_os = "linux")]
mod tray_host;

#[cfg(not(target_os = "linux"))]
#[path = "notifications_elsewhere.rs"]
mod notifications;

use args::Mode;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match args::parse(std::env::args().skip(1)) {
        Ok(Mode::Tray { open }) => tray_app::run(open),
        Ok(Mode::Window { page }) => window::run(page),
        Ok(Mode::Say(text)) => {
            println!("{text}");
            Ok(())
        }
        Err(bad) => Err(Failure::usage(&bad)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The app's configuration and the built pages. Made in one place: each use of the macro would
/// embed the pages once more.
fn context() -> tauri::Context {
    tauri::generate_context!()
}

/// Why the process ends before it does anything, as told on stderr.
struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    fn usage(bad: &args::BadArgs) -> Self {
        Self { code: 2, ..Self::new(bad.to_string()) }.hint("See: agentbox-desktop --help")
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn report(self) -> ExitCode {
        eprintln!("agentbox-desktop: {}", self.message);
        if let Some(hint) = self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}
