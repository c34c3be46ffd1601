//! What the end-to-end tests stand on: a desktop without a screen, and hands and eyes for it.
//!
//! [`session`] brings up the real parts; [`atspi`], [`tray`], [`notify`] and [`webdriver`] use them as a
//! person would; [`drag`] brings files along; [`rfb`] looks at a box's screen; [`screen`] keeps pictures; [`wait`] is how tests wait.
//! Nothing in here knows AgentBox.
//! A part that is missing is a panic: a test on real parts must not pass without them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // everything here runs in tests

pub mod atspi;
pub mod crowd;
pub mod drag;
pub mod notify;
pub mod page;
pub mod pty;
pub mod rfb;
pub mod screen;
pub mod session;
pub mod tray;
pub mod wait;
pub mod webdriver;
