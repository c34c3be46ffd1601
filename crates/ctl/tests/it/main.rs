//! The real binary with real git repositories and a real socket, outside a box.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bridge;
mod bundle;
mod clone_in;
mod commands;
mod egress;
mod files;
mod readiness;
mod relay;
mod rerun;
mod resync;
mod seed;
mod services;
mod shim;
mod strays;
mod supervisor;
mod support;
mod watch;
mod web;
