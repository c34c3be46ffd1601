//! The command part of `docs/reference.md`, written from the command line's own definition.
//!
//! `AGENTBOX_UPDATE_REFERENCE=1 cargo test -p agentbox-cli reference` writes it; without the
//! variable the test fails when the page and the program differ.

use crate::args::Cli;
use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;
use std::path::PathBuf;

const BEGIN: &str = "<!-- commands: written from the program, do not edit -->\n";
const END: &str = "<!-- end of commands -->\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md")
}

fn generate() -> String {
    let mut root = Cli::command().term_width(80);
    root.build();
    let mut text = String::new();
    options(&mut text, "Everywhere", &root, Arg::is_global_set);
    for command in root.get_subcommands().filter(|c| visible(c)) {
        section(&mut text, command, "agentbox", 3);
    }
    text
}

fn visible(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn section(text: &mut String, command: &Command, parent: &str, depth: usize) {
    let path = format!("{parent} {}", command.get_name());
    let _ = writeln!(text, "{} {path}\n", "#".repeat(depth));
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<_> = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect();
    let _ = writeln!(text, "{about}\n\n```\n{}\n```\n", usage.join("\n"));
    let aliases: Vec<_> = command.get_visible_aliases().map(|a| format!("`{a}`")).collect();
    if !aliases.is_empty() {
        let _ = writeln!(text, "Also: {}\n", aliases.join(", "));
    }
    let own = |arg: &Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
    options(text, "", command, own);
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let examples = examples.trim_start_matches("Examples:\n");
        let _ = writeln!(text, "```console\n{}\n```\n", unindent(examples));
    }
    for sub in command.get_subcommands().filter(|c| visible(c)) {
        section(text, sub, &path, depth + 1);
    }
}

fn options(text: &mut String, title: &str, command: &Command, wanted: impl Fn(&Arg) -> bool) {
    let args: Vec<_> = command.get_arguments().filter(|a| wanted(a)).collect();
    if args.is_empty() {
        return;
    }
    if !title.is_empty() {
        let _ = writeln!(text, "### {title}\n");
    }
    for arg in args {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "- `{}`: {help}{}{}", spelling(arg), values(arg), default(arg));
    }
    text.push('\n');
}

/// `-n, --name <NAME>` or `[BOX]`, as the program's help spells it.
fn spelling(arg: &Arg) -> String {
    let long = arg.get_long().map(|l| format!("--{l}"));
    let short = arg.get_short().map(|s| format!("-{s}"));
    let names: Vec<_> = [short, long].into_iter().flatten().collect();
    if names.is_empty() {
        return arg.to_string();
    }
    let takes_value = arg.get_action().takes_values();
    let value = arg.get_value_names().and_then(|v| v.first()).filter(|_| takes_value);
    names.join(", ") + &value.map(|v| format!(" <{v}>")).unwrap_or_default()
}

/// What may be given, where that is a list.
fn values(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let names: Vec<_> =
        possible.iter().filter(|v| !v.is_hide_set()).map(PossibleValue::get_name).collect();
    if names.is_empty() || !arg.get_action().takes_values() {
        String::new()
    } else {
        format!(" [{}]", names.join(", "))
    }
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let takes_value = arg.get_action().takes_values();
    if values.is_empty() || !takes_value {
        String::new()
    } else {
        format!(" [default: {}]", values.join(" "))
    }
}

fn unindent(text: &str) -> String {
    text.lines().map(|l| l.strip_prefix("  ").unwrap_or(l)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reference_is_what_the_program_says() {
    let before = std::fs::read_to_string(page()).unwrap();
    let (head, rest) = before.split_once(BEGIN).expect("the page has its begin mark");
    let (_, tail) = rest.split_once(END).expect("the page has its end mark");
    let wanted = format!("{head}{BEGIN}\n{}{END}{tail}", generate());
    if std::env::var_os("AGENTBOX_UPDATE_REFERENCE").is_some() {
        std::fs::write(page(), wanted).unwrap();
        return;
    }
    assert!(
        before == wanted,
        "docs/reference.md drifted; run AGENTBOX_UPDATE_REFERENCE=1 cargo test -p agentbox-cli reference"
    );
}

#[test]
fn the_schema_of_agentbox_yaml_is_what_the_program_says() {
    let file = page().with_file_name("schema").join("agentbox.schema.json");
    let wanted = crate::commands::validate::schema().unwrap();
    if std::env::var_os("AGENTBOX_UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == wanted,
        "{} drifted; run AGENTBOX_UPDATE_REFERENCE=1 cargo test -p agentbox-cli reference",
        file.display()
    );
}

#[test]
fn the_exit_codes_are_all_in_the_reference() {
    use crate::error::Kind;
    use protocol::exit;
    let text = std::fs::read_to_string(page()).unwrap();
    for kind in [Kind::Failed, Kind::Usage, Kind::NoBaseImage, Kind::Interrupted] {
        assert!(text.contains(&format!("| {} |", kind.exit_code())), "{kind:?}");
    }
    for code in [
        exit::OK,
        exit::FAILURE,
        exit::SHIM_REFUSED,
        exit::NOT_LOGGED_IN,
        exit::DENIED,
        exit::CHECKOUT_UNSAFE,
        exit::CHECKOUT_OFF,
        exit::UNADDRESSABLE,
        exit::REFUSED,
        exit::BAD_ENVIRONMENT,
        exit::TIMED_OUT,
        exit::UNREACHABLE,
        exit::NO_PROGRAM,
    ] {
        assert!(text.contains(&format!("| {code} |")), "{code}");
    }
}
