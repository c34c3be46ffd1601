//! `agentbox-window`: one webview, a client of the control socket like any other, gone when closed.
//!
//! The tray starts it when somebody wants to see it; people type `agentbox-desktop --window`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod chooser;
mod commands;
#[cfg(target_os = "linux")]
mod confirm;
mod copies;
mod links;
mod person;
mod subscription;
mod tray_end;
mod window;
mod window_state;

#[cfg(target_os = "linux")]
use agentbox_desktop::icon;
use agentbox_desktop::{Failure, display, home, logging, page, place, programs};
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match args::parse(std::env::args().skip(1)) {
        Ok(wanted) => window::run(wanted),
        Err(bad) => Err(Failure::usage(bad).hint("See: agentbox-desktop --help")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("agentbox-window"),
    }
}
