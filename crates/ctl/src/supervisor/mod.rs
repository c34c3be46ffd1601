//! The supervisor: runs the tasks and services of `agentbox.yaml` in the box.
//!
//! PID 1 starts it as the box user once the workspace is in place, and again when it dies. What is
//! to be done is decided by one thread ([`engine`]) that owns all units and hears of everything
//! through one channel: ends of processes, probes, requests, the clock. Whatever may block has a
//! small thread of its own. Nothing polls, so an idle supervisor sleeps.

mod backoff;
mod cgroup;
pub mod client;
pub mod config;
pub mod container;
pub mod daemon;
mod ends;
mod engine;
mod environment;
mod launch;
mod lines;
mod listeners;
mod log;
mod marker;
mod probe;
mod process;
mod push;
mod reader;
pub mod recreate;
mod reload;
mod requests;
mod schedule;
mod server;
mod show;
mod shutdown;
mod state_dir;
mod status;
mod time;
mod unit;
pub mod validate;
mod web;

/// Enough for everything done beside the main thread.
const STACK: usize = 128 * 1024;

/// A thread for something that blocks.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work).map(|_| ())
}
