//! `agentbox-ctl editor-tasks [--regenerate]` (run by the host as the box user): a terminal in the
//! editor for the log of each service.
//!
//! Writes `.vscode/tasks.json` in the workspace, which VS Code and Cursor run when the folder is opened.
//! Our own file is known by its first line and follows the services; one somebody else wrote is left
//! alone unless the person says otherwise. It is nothing to commit, so the box user's own list of what
//! git ignores names it: not the repository's, which the next box would not have.

use crate::error::{Doing, Error, Result};
use crate::places;
use crate::real_git::Git;
use project::Project;
use protocol::ctl::paths;
use protocol::links::TasksFile;
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The first line of a file that is ours.
const OURS: &str =
    "// Made by AgentBox: the log of each service. Remove this line to keep changes of yours.";
/// As git's lists of ignored files name it.
const IGNORED: &str = "/.vscode/tasks.json";
/// A file of tasks longer than this is nobody's.
const MAX_FILE: u64 = 1024 * 1024;

pub fn run(args: &[OsString]) -> Result<i32> {
    let regenerate = match args {
        [] => false,
        [word] if word == "--regenerate" => true,
        _ => return Err(Error::Usage("editor-tasks takes --regenerate or nothing.".into())),
    };
    let workspace = places::workspace();
    let done = bring(&workspace, &services(&workspace)?, regenerate)?;
    crate::say(&serde_json::to_string(&done).unwrap_or_default());
    Ok(protocol::exit::OK)
}

/// The services whose logs the project wants to see in an editor.
fn services(workspace: &Path) -> Result<Vec<String>> {
    let file = workspace.join(project::FILE_NAME);
    let doing = || format!("read {}", file.display());
    let mut text = String::new();
    match fs::File::open(&file) {
        Ok(open) => open.take(MAX_FILE).read_to_string(&mut text).doing(doing)?,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::Io(doing(), e)),
    };
    let project = Project::parse_in_box(&text).project;
    let project =
        project.ok_or_else(|| Error::Failed(format!("{} has mistakes.", project::FILE_NAME)))?;
    if project.auto_open_terminals == Some(false) {
        return Ok(Vec::new());
    }
    let shown = project.services.iter().filter(|service| service.tail != Some(false));
    Ok(shown.map(|service| service.name.as_str().to_owned()).collect())
}

/// Makes the file what it should be.
fn bring(workspace: &Path, services: &[String], regenerate: bool) -> Result<TasksFile> {
    let file = workspace.join(".vscode/tasks.json");
    let is_ours = match fs::symlink_metadata(&file) {
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(Error::Io(format!("look at {}", file.display()), e)),
        Ok(data) => Some(data.is_file() && data.len() <= MAX_FILE && begins_as_ours(&file)),
    };
    if services.is_empty() {
        if is_ours == Some(true) {
            fs::remove_file(&file).doing(|| format!("remove {}", file.display()))?;
        }
        return Ok(TasksFile::NoServices);
    }
    if is_ours == Some(false) && !regenerate {
        return Ok(TasksFile::Kept);
    }
    ignore(workspace)?;
    write(&file, &text(services))?;
    Ok(TasksFile::Written)
}

fn begins_as_ours(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.lines().next() == Some(OURS))
}

fn text(services: &[String]) -> String {
    let task = |name: &String| {
        json!({
            "label": format!("{name}: log"),
            "type": "shell",
            "command": paths::CTL,
            "args": ["logs", "-f", name],
            "isBackground": true,
            "problemMatcher": [],
            "presentation": { "panel": "dedicated", "reveal": "silent", "showReuseMessage": false },
            "runOptions": { "runOn": "folderOpen" },
        })
    };
    let tasks: Vec<_> = services.iter().map(task).collect();
    let body = json!({ "version": "2.0.0", "tasks": tasks });
    format!("{OURS}\n{body:#}\n")
}

/// Whole or not at all; what is right already stays as it is.
fn write(file: &Path, text: &str) -> Result<()> {
    let doing = || format!("write {}", file.display());
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let fresh = file.with_extension("json.new");
    fs::write(&fresh, text).doing(doing)?;
    fs::rename(&fresh, file).doing(doing)
}

/// Names the file in the list of the box user's own.
fn ignore(workspace: &Path) -> Result<()> {
    let list = ignore_list(workspace)?;
    let doing = || format!("write {}", list.display());
    let old = match fs::read_to_string(&list) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::Io(doing(), e)),
    };
    if old.lines().any(|line| line == IGNORED) {
        return Ok(());
    }
    if let Some(folder) = list.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    fs::write(&list, format!("{old}{gap}{IGNORED}\n")).doing(doing)
}

/// Where git looks: a setting, or else its usual place.
fn ignore_list(workspace: &Path) -> Result<PathBuf> {
    let set = Git::at(workspace).read(&["config", "--type=path", "core.excludesFile"]);
    if let Ok(path) = set.map(PathBuf::from)
        && path.is_absolute()
    {
        return Ok(path);
    }
    let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let config = config.ok_or_else(|| Error::Failed("there is no home folder.".into()))?;
    Ok(config.join("git/ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_project_says_which_logs_it_wants_to_see() {
        let dir = tempfile::tempdir().unwrap();
        let with = |text: &str| {
            fs::write(dir.path().join(project::FILE_NAME), text).unwrap();
            services(dir.path())
        };
        assert_eq!(services(dir.path()).unwrap(), names(&[]));
        let two = "services:\n  web: {command: a, ide: {tail: true}}\n  db: {command: b}\n";
        assert_eq!(with(two).unwrap(), ["web", "db"]);
        let one = "services:\n  web: {command: a}\n  db: {command: b, ide: {tail: false}}\n";
        assert_eq!(with(one).unwrap(), ["web"]);
        assert_eq!(
            with(&format!("{two}ide: {{auto_open_terminals: false}}\n")).unwrap(),
            names(&[])
        );
        assert!(with("services: 3\n").unwrap_err().to_string().contains("agentbox.yaml"));
    }

    #[test]
    fn each_service_has_a_terminal() {
        let text = text(&names(&["web", "db"]));
        let (first, body) = text.split_once('\n').unwrap();
        assert_eq!(first, OURS);
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["version"], "2.0.0");
        let tasks = body["tasks"].as_array().unwrap();
        let labels: Vec<_> = tasks.iter().map(|task| task["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["web: log", "db: log"]);
        assert_eq!(tasks[1]["args"], json!(["logs", "-f", "db"]));
        assert_eq!(tasks[1]["runOptions"]["runOn"], "folderOpen");
        assert_eq!(tasks[1]["presentation"]["panel"], "dedicated");
        assert_eq!(tasks[1]["isBackground"], true);
    }
}
