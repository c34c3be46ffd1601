//! `agentbox man`: the manual pages, written from the command line's own definition.

use crate::args::Cli;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Write the manual pages
///
/// One page for each command, such as agentbox-git-push.1. Pages of commands that are no more are
/// removed from the folder. Needs no host. Building AgentBox writes them to target/man.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox man --dir ~/.local/share/man/man1
  man agentbox-create")]
pub struct Args {
    /// The folder they go to; it is made when it is not there
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Print the files' names as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let pages = pages()?;
    let failed = |path: &Path, e: std::io::Error| {
        CommandError::failed(format!("cannot write {}: {e}", path.display()))
            .hint("name a folder of yours with --dir")
    };
    std::fs::create_dir_all(&args.dir).map_err(|e| failed(&args.dir, e))?;
    remove_old(&args.dir);
    for (name, text) in &pages {
        let path = args.dir.join(name);
        std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
    }
    if args.json {
        let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
        json::print(&ctx.ui, "pages", &names)?;
    } else {
        ctx.ui.out(&format!("{} pages in {}\n", pages.len(), args.dir.display()))?;
    }
    Ok(Exit::OK)
}

/// Ours are known by their names; nothing else in the folder is touched.
fn remove_old(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == "agentbox.1" || (name.starts_with("agentbox-") && name.ends_with(".1")) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Every page with its file name.
pub fn pages() -> Result<Vec<(String, String)>, CommandError> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    collect(&root, "agentbox", None, &mut all)?;
    Ok(all)
}

fn collect(
    command: &Command,
    name: &str,
    parent: Option<&str>,
    into: &mut Vec<(String, String)>,
) -> Result<(), CommandError> {
    into.push((format!("{name}.1"), page(command, name, parent)?));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &format!("{name}-{}", sub.get_name()), Some(name), into)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> Result<String, CommandError> {
    // Static, because clap keeps names that way; a few kilobytes once.
    let fixed: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let man = Man::new(command.clone().name(fixed).after_help("").after_long_help(""));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if let Some(help) = command.get_after_help() {
        text.push_str(&examples(&help.to_string()));
    }
    text.push_str(&see_also(command, name, parent));
    Ok(text)
}

/// As they are typed, line by line.
fn examples(help: &str) -> String {
    let body = help.strip_prefix("Examples:\n").unwrap_or(help);
    let mut text = ".SH EXAMPLES\n.nf\n".to_owned();
    for line in body.lines() {
        let line = line.strip_prefix("  ").unwrap_or(line);
        let _ = writeln!(text, "{}", escaped(line));
    }
    text.push_str(".fi\n");
    text
}

/// The page above, those below, and where exit codes stand.
fn see_also(command: &Command, name: &str, parent: Option<&str>) -> String {
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let below = below.map(|sub| format!("{name}-{}", sub.get_name()));
    let pages: Vec<String> = parent
        .map(str::to_owned)
        .into_iter()
        .chain(below)
        .map(|page| format!("\\fB{}\\fR(1)", escaped(&page)))
        .collect();
    let codes = "0 on success, 1 when it failed, 2 when the command line or the name of a box is \
                 wrong, 130 when interrupted; the reference lists all.";
    let mut text = format!(".SH \"EXIT STATUS\"\n{}\n", escaped(codes));
    if !pages.is_empty() {
        let _ = writeln!(text, ".SH \"SEE ALSO\"\n{}", pages.join(", "));
    }
    text
}

/// A line that the formatter prints as it stands.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command as Process, Stdio};

    #[test]
    fn every_command_has_a_page() {
        fn names(command: &Command, name: &str, into: &mut Vec<String>) {
            into.push(format!("{name}.1"));
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                names(sub, &format!("{name}-{}", sub.get_name()), into);
            }
        }
        let mut wanted = Vec::new();
        names(&Cli::command(), "agentbox", &mut wanted);
        let pages = pages().unwrap();
        let written: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
        assert_eq!(written, wanted.iter().collect::<Vec<_>>());
        assert!(written.len() > 60, "{}", written.len());
        for (name, text) in &pages {
            for part in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH \"EXIT STATUS\""] {
                assert!(text.contains(part), "{name} has no {part}");
            }
        }
        let push = pages.iter().find(|(name, _)| name == "agentbox-git-push.1").unwrap();
        assert!(push.1.contains("agentbox git push fix\\-login \\-\\-tags"), "{}", push.1);
    }

    #[test]
    fn the_formatter_has_nothing_to_say_about_any_page() {
        for (name, text) in pages().unwrap() {
            let mut groff = Process::new("groff")
                .args(["-man", "-ww", "-Kutf8", "-Tutf8", "-rLL=100n"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("groff, which scripts/deps test installs");
            groff.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let said = groff.wait_with_output().unwrap();
            let complaints = String::from_utf8_lossy(&said.stderr);
            assert!(said.status.success() && complaints.is_empty(), "{name}: {complaints}");
            assert!(!said.stdout.is_empty());
        }
    }

    #[test]
    fn a_line_stays_as_it_is() {
        assert_eq!(escaped(".x"), "\\&.x");
        assert_eq!(escaped("a\\b -c"), "a\\eb \\-c");
    }
}
