//! The real binary with real git repositories and a real socket, outside a box.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bundle;
mod commands;
mod relay;
mod seed;
mod shim;
mod support;
mod watch;
