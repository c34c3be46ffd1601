//! `agentbox-ctl egress …`: the way out of a box that has no network.
//!
//! Such a box has loopback and the host's sockets, nothing else. Here is what its programs meet: a proxy
//! on the loopback, whose every byte goes to the host. What may go out is decided there; nothing in here
//! allows or denies anything.

mod ask;
pub mod askpass;
mod client;
mod listen;
mod selftest;
pub mod trust;

use crate::error::{Error, Result};
use std::ffi::OsString;

pub fn run(args: &[OsString]) -> Result<i32> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.to_str().unwrap_or_default(), rest),
        None => return crate::help::run(&["egress".into()]),
    };
    match (command, rest) {
        ("policy", []) => ask::policy(),
        ("why", rest) => ask::why(rest),
        ("check", rest) => ask::check(rest),
        ("request", rest) => ask::request(rest),
        ("serve", []) => listen::run(),
        ("selftest", []) => selftest::run(),
        ("trust", []) => trust::run(),
        _ => Err(Error::Usage(format!(
            "unknown: egress {}. Run 'agentbox-ctl help egress'.",
            protocol::text::visible(command)
        ))),
    }
}
