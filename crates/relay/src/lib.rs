//! The box-facing server: authenticate, decide, gate, execute, answer.
//!
//! Each box has one Unix socket. What arrives on it is hostile: it is bounded, parsed into types
//! and refused before anything is spawned or anyone is asked. [`decide`] is pure; [`git`] does.
//!
//! The surprising thing: host programs never run in a folder a box can write. A push goes through
//! a clean transfer repository ([`transfer`]) that holds no hook and no setting of the box's.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod decide;
mod git;
mod limits;
mod ports;
pub mod process;
mod registration;
mod server;
mod token;
pub mod transfer;

pub use ports::{BoxPort, Entry, PortError, Trail, TrailError};
pub use registration::{Registration, RemoteUrls, Worktree};
pub use server::{Deps, Relay};
pub use token::{Token, TokenHash};
