//! `agentbox-ctl`: the one binary inside a box.
//!
//! PID 1 of the container, the host's hand for seeding and moving commits, the client of the
//! relay, and `git` when called by that name. Everything blocks and nothing stays in memory but
//! what it needs: a shim runs before every git command and must not be felt. It holds no secret
//! but the box's own token and decides nothing; whatever it refuses, the relay refuses too.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bundle;
mod client;
mod error;
mod git;
mod git_config;
mod go;
mod help;
mod init;
mod input;
mod passwd;
mod places;
mod real_git;
mod refs_watch;
mod rpc;
mod seed;
mod signals;
mod unbundle;
mod unpack;
mod watch;

use error::{Error, Result};
use std::ffi::OsString;
use std::io::Write;

fn main() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let args: Vec<OsString> = words.collect();
    let outcome = if shims::git::is_called(&name) { git::shim(&args) } else { run(&args) };
    std::process::exit(outcome.unwrap_or_else(|e| {
        complain(&e.to_string());
        e.exit_code()
    }));
}

fn run(args: &[OsString]) -> Result<i32> {
    let Some((command, rest)) = args.split_first() else {
        say(help::OVERVIEW);
        return Ok(protocol::exit::OK);
    };
    match command.to_str().unwrap_or_default() {
        "init" => init::run(),
        "go" => go::run(),
        "seed" => seed::run(),
        "bundle" => bundle::run(rest),
        "unbundle" => unbundle::run(),
        "watch" => watch::run(),
        "rpc" => rpc::run(rest),
        "git" => git::command(rest),
        "help" | "--help" | "-h" => help::run(rest),
        "--version" | "-V" => {
            say(concat!("agentbox-ctl ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(protocol::exit::OK)
        }
        _ => Err(Error::Usage(format!(
            "unknown command '{}'. Run 'agentbox-ctl help' for the list.",
            protocol::text::visible(&command.to_string_lossy())
        ))),
    }
}

/// Standard output; a reader that left early is no error.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// One line on standard error.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
