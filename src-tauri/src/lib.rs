//! What the two programs of the desktop share: `agentbox-desktop`, which is the tray and runs the host, and
//! `agentbox-window`, which shows the page.
//!
//! Nothing in here may use `tauri`: a program that is linked with a webview's library pays for it in memory
//! even if it never makes a webview, and the tray is there all day.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod display;
pub mod failure;
pub mod home;
pub mod icon;
#[cfg(target_os = "linux")]
pub mod labels;
pub mod logging;
#[cfg(target_os = "linux")]
pub mod on_screen;
pub mod page;
pub mod place;
pub mod programs;
#[cfg(target_os = "linux")]
pub mod readers;

pub use failure::Failure;
