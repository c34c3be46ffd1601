//! `agentbox-desktop`: the host with a face. The tray, and the dialogs and notifications of questions.
//!
//! The window is a program of its own, `agentbox-window`: nothing here may use `tauri`, because a process that
//! only has a webview's library in it is twice as large (docs/adr/0009). This file only decides what is wanted.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod actions;
mod args;
mod image;
mod keyring;
mod link;
mod live;
mod main_thread;
mod menu;
mod places;
mod terminal;
mod tray;
mod tray_app;
mod tray_picture;
mod watch;
mod window_child;

#[cfg(target_os = "linux")]
mod appearance;
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
#[path = "confirm_elsewhere.rs"]
mod confirm;
#[cfg(not(target_os = "linux"))]
#[path = "notifications_elsewhere.rs"]
mod notifications;

#[cfg(target_os = "linux")]
use agentbox_desktop::icon;
use agentbox_desktop::{Failure, display, home, logging, page, place, programs};
use args::Mode;
use page::Page;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let done = match args::parse(std::env::args().skip(1)) {
        Ok(Mode::Tray { open }) => tray_app::run(open),
        Ok(Mode::Window { page }) => Err(become_the_window(&page)),
        Ok(Mode::Say(text)) => {
            println!("{text}");
            Ok(())
        }
        Err(bad) => Err(Failure::usage(bad.to_string()).hint("See: agentbox-desktop --help")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("agentbox-desktop"),
    }
}

/// Comes back only with why it cannot be.
fn become_the_window(page: &Page) -> Failure {
    let why = match programs::window() {
        Ok(window) => Command::new(window).args(["--page", &page.to_string()]).exec().to_string(),
        Err(why) => why,
    };
    Failure::new(format!("the window cannot be opened: {why}."))
}
