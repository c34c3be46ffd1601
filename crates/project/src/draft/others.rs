//! What is of no one language: example settings, process lists, make.

use super::{Folder, Found, Unit};
use crate::UnitName;

/// More than anybody lists.
const MOST: usize = 20;

/// Comes first: whatever is installed or started may look at it.
pub(super) fn env_file(folder: &Folder, found: &mut Found) {
    let example = folder.first(&[".env.example", ".env.sample", ".env.template"]);
    if let Some(example) = example {
        found.from(example);
        found.tasks.push(Unit {
            name: "env".to_owned(),
            comment: "A file with settings to start with; one that is there stays.".to_owned(),
            command: format!("test -e .env || cp {example} .env"),
            ..Unit::default()
        });
    }
    if folder.has(".env") {
        found.notes.push(
            "Your own .env, copied into a new box once you agree.\ncarry:\n  - {src: ./.env, dest: /workspace/.env, mode: \"0600\", optional: true}"
                .to_owned(),
        );
    }
}

pub(super) fn look(folder: &Folder, found: &mut Found) {
    processes(folder, found);
    make(folder, found);
}

/// `web: bundle exec …`, one line each; only where nothing else says what runs.
fn processes(folder: &Folder, found: &mut Found) {
    let Some(file) = folder.first(&["Procfile.dev", "Procfile"]) else { return };
    if !found.services.is_empty() {
        return;
    }
    let lines = folder.text(file).lines().filter(|line| !line.trim_start().starts_with('#'));
    let units = lines.filter_map(|line| {
        let (name, command) = line.split_once(':')?;
        let (name, command) = (name.trim(), command.trim());
        let fits = name.parse::<UnitName>().is_ok() && !command.is_empty();
        (fits && !command.contains('\0')).then_some((name, command))
    });
    for (name, command) in units.take(MOST).collect::<Vec<_>>() {
        found.from(file);
        found.serve(&[name], "", command, None);
    }
}

/// Its usual targets, where nothing else installs or serves.
fn make(folder: &Folder, found: &mut Found) {
    let text = folder.text("Makefile");
    let targets: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '.']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, rest)| !rest.starts_with('='))
        .flat_map(|(names, _)| names.split_whitespace())
        .collect();
    let first = |wanted: &[&'static str]| wanted.iter().copied().find(|t| targets.contains(t));
    let installs = found.tasks.iter().any(|task| !task.inputs.is_empty());
    if let Some(target) = first(&["setup", "bootstrap", "deps", "install"]).filter(|_| !installs) {
        found.from("Makefile");
        found.install(&["setup"], "", &format!("make {target}"), &["Makefile"]);
    }
    if let Some(target) = first(&["dev", "serve", "run"]).filter(|_| found.services.is_empty()) {
        found.from("Makefile");
        found.serve(&["web"], "", &format!("make {target}"), None);
    }
}
