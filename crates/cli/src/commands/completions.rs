//! `agentbox completions`: for the person's shell.
//!
//! The commands and flags come from the command line's own definition. Where a box is named, the
//! script asks [`super::complete_boxes`] for the boxes there are.

use crate::args::Cli;
use crate::context::Context;
use crate::error::{Exit, Outcome};
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use std::fmt::Write;

/// Print completions for a shell
///
/// Needs no host. Names of boxes are completed while one runs.
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

pub fn generate(shell: Shell) -> String {
    let mut command = marked(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "agentbox", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let of_boxes = with_box(&Cli::command(), "");
    match shell {
        Shell::Bash => script + &bash(&of_boxes),
        Shell::Zsh => zsh(&script),
        Shell::Fish => script + &fish(&of_boxes),
        _ => script,
    }
}

fn names_a_box(arg: &Arg) -> bool {
    arg.is_positional()
        && arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "BOX"))
}

/// Every place where a box is named carries a mark that no other argument has.
fn marked(command: Command) -> Command {
    let mark = |arg: Arg| if names_a_box(&arg) { arg.value_hint(ValueHint::Username) } else { arg };
    command.mut_args(mark).mut_subcommands(marked)
}

/// The commands, by their words, that take a box.
fn with_box(command: &Command, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        for name in std::iter::once(sub.get_name()).chain(sub.get_visible_aliases()) {
            let words = format!("{path} {name}").trim_start().to_owned();
            if sub.get_arguments().any(names_a_box) {
                found.push(words.clone());
            }
            found.extend(with_box(sub, &words));
        }
    }
    found
}

/// The names are added to what the script finds by itself.
fn bash(of_boxes: &[String]) -> String {
    let cases = of_boxes.iter().map(|words| format!("'{words}'")).collect::<Vec<_>>().join("|");
    format!(
        "
_agentbox_with_boxes() {{
    _agentbox \"$@\"
    local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" word words=''
    [[ $cur == -* ]] && return
    for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do
        [[ $word == -- ]] && return
        [[ $word == -* ]] && continue
        case \"${{words:+$words }}$word\" in
            {cases}) words=\"${{words:+$words }}$word\"; break ;;
            *) words=\"${{words:+$words }}$word\" ;;
        esac
    done
    case \"$words\" in
        {cases})
            COMPREPLY+=($(compgen -W \"$(\"${{COMP_WORDS[0]}}\" __complete-boxes 2>/dev/null)\" -- \"$cur\"))
            ;;
    esac
}}
complete -F _agentbox_with_boxes -o nosort -o bashdefault -o default agentbox 2>/dev/null ||
    complete -F _agentbox_with_boxes -o bashdefault -o default agentbox
"
    )
}

fn zsh(script: &str) -> String {
    let own = "
_agentbox_boxes() {
    local -a boxes
    boxes=(${(f)\"$(agentbox __complete-boxes 2>/dev/null)\"})
    _describe -t boxes 'box' boxes
}
";
    let script = script.replace(":_users", ":_agentbox_boxes");
    // The first line names the command the script is for, and has to stay the first.
    match script.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{own}{rest}"),
        None => script,
    }
}

fn fish(of_boxes: &[String]) -> String {
    let mut text = String::new();
    for words in of_boxes {
        let seen: Vec<String> =
            words.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
        let _ = writeln!(
            text,
            "complete -c agentbox -n \"{}\" -f -a \"(agentbox __complete-boxes 2>/dev/null)\"",
            seen.join("; and ")
        );
    }
    text
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

    #[test]
    fn boxes_are_completed_where_they_are_named() {
        let found = with_box(&Cli::command(), "");
        for words in ["start", "rm", "git push", "logs", "shell"] {
            assert!(found.iter().any(|f| f == words), "{words}: {found:?}");
        }
        assert!(!found.iter().any(|f| f == "list" || f == "create"));
        assert!(generate(Shell::Zsh).starts_with("#compdef agentbox"));
        assert!(generate(Shell::Zsh).contains(":_agentbox_boxes"));
        assert!(generate(Shell::Fish).contains("__complete-boxes"));
    }
}
