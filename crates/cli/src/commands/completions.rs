//! `agentbox completions`: for the person's shell.

use crate::args::Cli;
use crate::context::Context;
use crate::error::{Exit, Outcome};
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell
///
/// Needs no host.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox completions bash > ~/.local/share/bash-completion/completions/agentbox
  agentbox completions zsh > ~/.zfunc/_agentbox
  agentbox completions fish > ~/.config/fish/completions/agentbox.fish")]
pub struct Args {
    /// Which shell
    shell: Shell,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    ctx.ui.out(&generate(args.shell))?;
    Ok(Exit::OK)
}

fn generate(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agentbox", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = generate(shell);
            for command in Cli::command().get_subcommands().filter(|c| !c.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
