//! Wire types shared by the host, the CLI, `agentbox-ctl` and the webview.
//!
//! No I/O, no policy. A type here can hold only what its wire form allows: parse once at the edge,
//! then stop checking. Everything a box sends is parsed by [`rpc`] with unknown fields refused.
//! TypeScript bindings are generated from these types (feature `bindings`).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod asks;
pub mod audit;
pub mod boxes;
pub mod bridge;
pub mod busy;
pub mod carry;
pub mod control;
pub mod conversations;
pub mod ctl;
pub mod drive;
pub mod egress;
pub mod egress_env;
pub mod events;
pub mod exit;
pub mod frame;
pub mod ids;
pub mod integrations;
pub mod limits;
pub mod links;
pub mod looking;
pub mod projects;
pub mod question;
pub mod queue;
pub mod resync;
pub mod rpc;
pub mod sessions;
pub mod similar;
pub mod supervisor;
pub mod text;
pub mod web;
pub mod window;

pub use ids::{BoxId, BoxName, GrantId, JobId, QuestionId, SecretId};
pub use limits::Limits;

/// The version of the control and box planes; a mismatch is reported, never guessed around.
pub const PROTO: u32 = 1;

/// Milliseconds since the Unix epoch.
pub type Millis = u64;
