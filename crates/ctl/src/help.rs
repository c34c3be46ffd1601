//! What `agentbox-ctl help` says.

use crate::error::{Error, Result};
use std::ffi::OsString;

pub const OVERVIEW: &str = "\
agentbox-ctl: the box's side of AgentBox.

Commands for people and agents:
  git push|fetch|pull [flags]   ask the host to do it with its credentials
  rpc <method> [json]           one raw call to the host
  help [command]                this text, or more about one command
  --version                     print the version

Commands the host runs:
  init, go, seed, bundle, unbundle, watch

In a box, plain 'git push', 'git fetch' and 'git pull' do the same as 'agentbox-ctl git'.
";

const COMMANDS: &[(&str, &str)] = &[
    (
        "git",
        "\
agentbox-ctl git [--remote <name>] push|fetch|pull [flags]

The host runs the command with its own credentials; a push may ask a person first. Remote and
branch are the host's choice, so there are no arguments beside flags. Other git commands run the
box's own git.

  push    --force-with-lease --dry-run
  fetch   --prune --prune-tags --tags --no-tags --force --dry-run
  pull    --ff-only --prune --tags --no-tags
  all     --quiet --verbose --progress --no-progress

Exit codes: the command's own; 2 refused in the box, 10 denied, 64 and 65 refused by the host,
124 took too long, 126 the host cannot be reached.
",
    ),
    (
        "rpc",
        "\
agentbox-ctl rpc <method> [json]

Posts {method, params} to the host, prints what the command said there and ends with its exit code.
",
    ),
    (
        "init",
        "\
agentbox-ctl init

PID 1 of a box: gives the box user its ids, waits for 'go', watches branches, reaps processes and
stops the box in order.
",
    ),
    (
        "go",
        "\
agentbox-ctl go < {\"token\": …}

Run by the host as root at every start: stores the box's token and releases PID 1.
",
    ),
    (
        "seed",
        "\
agentbox-ctl seed < plan, tar

Run by the host once: lays out the workspace as it is on the host.
",
    ),
    (
        "bundle",
        "\
agentbox-ctl bundle <branch> [have…]

Run by the host: writes where the branch is and a bundle of the commits the host does not have.
",
    ),
    (
        "unbundle",
        "\
agentbox-ctl unbundle < refs, bundle

Run by the host: takes in fetched commits and sets remote-tracking refs.
",
    ),
    (
        "watch",
        "\
agentbox-ctl watch

Run by PID 1: tells the host when a branch of the workspace's repository moves.
",
    ),
];

pub fn run(args: &[OsString]) -> Result<i32> {
    let Some(topic) = args.first() else {
        crate::say(OVERVIEW);
        return Ok(protocol::exit::OK);
    };
    let found = COMMANDS.iter().find(|(name, _)| topic == name);
    let (_, text) = found.ok_or_else(|| {
        let shown = protocol::text::visible(&topic.to_string_lossy());
        Error::Usage(format!("no command '{shown}'. Run 'agentbox-ctl help' for the list."))
    })?;
    crate::say(text);
    Ok(protocol::exit::OK)
}
