//! `agentbox --help`: what there is, by what one wants to do.

use crate::args::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;

const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Make boxes and put agents to work",
        &["create", "claude", "codex", "opencode", "fork", "queue"],
    ),
    (
        "Work in a box",
        &["shell", "attach", "agent", "drive", "code", "open", "url", "screen", "ssh-config"],
    ),
    (
        "See what goes on",
        &["list", "dashboard", "status", "inspect", "top", "logs", "services", "wait", "events"],
    ),
    (
        "Let boxes rest, and go",
        &["pause", "unpause", "stop", "start", "limits", "recover", "destroy", "prune"],
    ),
    ("Files, commits and checkpoints", &["cp", "download", "git", "checkpoint"]),
    ("Answer boxes", &["approvals", "approve", "deny", "grants", "mute", "quiet", "audit"]),
    (
        "Set it up",
        &[
            "init",
            "config",
            "secrets",
            "egress",
            "integrations",
            "validate",
            "prepare",
            "doctor",
            "demo",
            "app",
            "host",
            "serve",
            "quit",
            "install",
            "self-update",
            "completions",
            "man",
        ],
    ),
];

/// The command line, with its commands in groups.
pub fn command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&command)
    );
    command.help_template(template)
}

/// Every command that is not hidden, once.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    let mut put = |title: &str, commands: &[&Command]| {
        if commands.is_empty() {
            return;
        }
        let _ = writeln!(text, "{title}:");
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<13}{about}", command.get_name());
        }
        text.push('\n');
    };
    for (title, names) in GROUPS {
        let found: Vec<&Command> =
            names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        put(title, &found);
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others =
        command.get_subcommands().filter(|c| !c.is_hide_set() && !is_grouped(c.get_name()));
    put("More", &others.collect::<Vec<_>>());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let root = Cli::command();
        let text = groups(&root);
        assert!(!text.contains("More:"), "{text}");
        for command in root.get_subcommands().filter(|c| !c.is_hide_set()) {
            let line = format!("  {:<13}", command.get_name());
            assert_eq!(text.matches(&line).count(), 1, "{}", command.get_name());
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn help_begins_with_what_one_wants_to_do() {
        insta::assert_snapshot!(command().term_width(80).render_help().to_string());
    }
}
