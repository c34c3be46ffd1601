//! `agentbox`: the command line.
//!
//! A thin client of the control socket: it parses, asks the host and renders. It decides nothing a
//! box could profit from, and holds no state of its own. The surprising thing: two commands do not
//! need a host (`prepare` and, when none runs, `doctor`) and talk to the engine themselves.
//!
//! Data goes to standard output, talk to standard error; see `docs/reference.md` for exit codes.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod ask;
mod attach;
mod carry;
mod commands;
mod context;
mod conversations;
mod copying;
mod editor;
mod error;
mod exec;
mod follow;
mod in_box;
mod interrupt;
mod json;
mod launch;
mod mounts;
mod offers;
mod overview;
mod place;
mod progress;
mod project;
mod question;
#[cfg(test)]
mod reference;
mod resync;
#[cfg(test)]
mod samples;
mod several;
mod size;
mod table;
mod terminal;
mod time;
mod ui;
mod wrapper;

use args::Cli;
use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::from_arg_matches(&overview::command().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let ui = ui::Ui::from_environment(cli.color);
    let Some(command) = cli.command else {
        return help(&ui);
    };
    let result =
        context::Context::new(cli.home, &cli.set, ui.clone()).and_then(|ctx| command.run(&ctx));
    match result {
        Ok(exit) => ExitCode::from(exit.0),
        Err(error) => {
            ui.report(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Without a command there is nothing wrong: the person wants to know what there is.
fn help(ui: &ui::Ui) -> ExitCode {
    let _ = ui.out(&overview::command().render_help().to_string());
    ExitCode::SUCCESS
}
