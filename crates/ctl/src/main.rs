//! `agentbox-ctl`: the one binary inside a box.
//!
//! PID 1 of the container, the host's hand for seeding and moving commits, the client of the
//! relay, and `git`, `gh` and others when called by those names. Everything blocks and nothing
//! stays in memory but what it needs: a shim runs before every git command and must not be felt.
//! It holds no secret but the box's own token and decides nothing; whatever it refuses, the relay
//! refuses too.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent_config;
mod agent_state;
mod begin;
mod bridge;
mod bundle;
mod carry;
mod checkpoint;
mod client;
mod clone_in;
mod conversation;
mod cp;
mod daemon_log;
mod daemons;
mod dockerd;
mod drive;
mod editor_tasks;
mod egress;
mod error;
mod event;
mod forward;
mod front;
mod git;
mod git_config;
mod go;
mod help;
mod hold;
mod hook;
mod identity;
mod init;
mod input;
mod ls;
mod open;
mod pack;
mod passwd;
mod paste;
mod places;
mod real_git;
mod refs_watch;
mod render;
mod resume;
mod resync;
mod rpc;
mod secret;
mod seed;
mod session;
mod shim;
mod signals;
mod stop;
mod supervise;
mod supervisor;
mod unbundle;
mod unpack;
mod unpack_into;
mod watch;

use error::{Error, Result};
use std::ffi::OsString;
use std::io::Write;

fn main() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let args: Vec<OsString> = words.collect();
    let outcome = if shims::git::is_called(&name) {
        git::shim(&args)
    } else if shims::open::is_called(&name) {
        open::run(&args)
    } else if egress::askpass::is_called(&name) {
        Ok(egress::askpass::run(&args))
    } else if let Some(shim) = shim::Shim::named(&name) {
        shim.run(&args)
    } else {
        run(&args)
    };
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
    // The commands people know have a help of their own.
    let known = matches!(command.to_str(), Some("git" | "integration"));
    let asks = rest.first().is_some_and(|word| word == "--help" || word == "-h");
    if asks && !known && help::knows(command) {
        return help::run(std::slice::from_ref(command));
    }
    match command.to_str().unwrap_or_default() {
        "init" => init::run(),
        "begin" => begin::run(rest),
        "carry" => carry::run(),
        "go" => go::run(),
        "daemon" if rest.first().is_none_or(|word| word.as_encoded_bytes().starts_with(b"-")) => {
            supervisor::daemon::run(rest)
        }
        "daemon" => daemons::run(rest),
        "bridge" => bridge::run(rest),
        "egress" => egress::run(rest),
        "forward" => forward::run(rest),
        "front" => front::run(rest),
        "editor-tasks" => editor_tasks::run(rest),
        "seed" => seed::run(),
        "bundle" => bundle::run(rest),
        "unbundle" => unbundle::run(),
        "clone-in" => clone_in::run(),
        "ls" => ls::run(rest),
        "pack" => pack::run(),
        "hold" => hold::run(),
        "unpack-into" => unpack_into::run(rest),
        "keep-paste" => paste::run(rest),
        "watch" => watch::run(),
        "rpc" => rpc::run(rest),
        "event" => event::run(rest),
        "session" => session::run(rest),
        "drive" => drive::run(),
        "agent-state" => agent_state::run(rest),
        "agent-config" => agent_config::run(rest),
        "conversation" => conversation::run(rest),
        "resync" => resync::run(),
        "git" => git::command(rest),
        "integration" => shim::integration(rest),
        "cp" => cp::run(rest),
        "download" => cp::download(rest),
        "open" => open::run(rest),
        "checkpoint" => checkpoint::run(rest),
        "merge" => git::merge_command(rest),
        "container-unit" => supervisor::container::run(),
        "recreate" => supervisor::recreate::run(rest),
        "render" => render::run(rest),
        "secret" => secret::run(rest),
        "validate" => Ok(supervisor::validate::run(rest)),
        name if supervisor::client::COMMANDS.contains(&name) => supervisor::client::run(name, rest),
        "help" | "--help" | "-h" => help::run(rest),
        "--version" | "-V" => {
            say(concat!("agentbox-ctl ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(protocol::exit::OK)
        }
        _ => match shim::Shim::named(command) {
            Some(shim) => shim.run(rest),
            None => Err(Error::Usage(format!(
                "unknown command '{}'. Run 'agentbox-ctl help' for the list.",
                protocol::text::visible(&command.to_string_lossy())
            ))),
        },
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
