//! `agentbox install`: what it writes, what it leaves alone, and that it takes away exactly its own.

use crate::support::{Ended, Home, Output};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const BASH: &str = ".local/share/bash-completion/completions/agentbox";
const PAGE: &str = ".local/share/man/man1/agentbox-create.1";
const CLAUDE: &str = ".claude/skills/agentbox/SKILL.md";
const SHARED: &str = ".agents/skills/agentbox/SKILL.md";

/// A person with Claude Code and Codex.
fn person() -> (Home, PathBuf) {
    let home = Home::new();
    let dir = home.path().parent().unwrap().canonicalize().unwrap();
    for folder in [".claude", ".codex"] {
        std::fs::create_dir(dir.join(folder)).unwrap();
    }
    (home, dir)
}

#[track_caller]
fn shows(output: &Output, texts: &[&str]) {
    for text in texts {
        assert!(output.stdout.contains(text), "no {text:?} in {output:#?}");
    }
}

/// Every file and link below a folder, but for AgentBox's own state.
fn everything(dir: &Path) -> Vec<String> {
    let found = std::process::Command::new("find")
        .args([".", "-path", "./home", "-prune", "-o", "-print"])
        .current_dir(dir)
        .output()
        .unwrap();
    let mut all: Vec<String> =
        String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect();
    all.sort();
    all
}

fn actions(json: &Value) -> Vec<(String, String)> {
    let files = json["install"]["files"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    files.iter().map(|file| (text(&file["path"]), text(&file["action"]))).collect()
}

fn action_of(json: &Value, end: &str) -> String {
    let all = actions(json);
    all.into_iter().find(|(path, _)| path.ends_with(end)).map(|(_, action)| action).unwrap()
}

fn json(home: &Home, more: &[&str]) -> Value {
    home.run(&[&["install", "--json"], more].concat()).exits(0).json()
}

#[test]
fn what_is_written_is_shown_first_and_taken_away_again_whole() {
    let (home, dir) = person();
    let before = everything(&dir);
    let shown = home.run(&["install", "--dry-run"]).exits(0);
    let shown = shown.says("Nothing was done.");
    let pages = "~/.local/share/man/man1/agentbox*.1 (";
    shows(&shown, &["new       ~/.claude/skills/agentbox/SKILL.md", pages, SHARED, BASH]);
    assert_eq!(everything(&dir), before);
    // Nobody can be asked here.
    home.run(&["install"]).exits(2).says("--yes");
    home.run(&["install", "--json"]).exits(2);
    assert_eq!(everything(&dir), before);

    home.run(&["install", "-y"]).exits(0).says("Done.");
    let read = |path: &str| std::fs::read_to_string(dir.join(path)).unwrap();
    assert!(read(BASH).contains("__complete-boxes"));
    assert!(read(PAGE).contains(".SH NAME"));
    assert!(read(CLAUDE).starts_with("---\nname: agentbox\n"));
    assert_eq!(read(CLAUDE), read(SHARED));
    let again = json(&home, &["-y"]);
    assert!(actions(&again).iter().all(|(_, action)| action == "same"), "{again}");
    home.run(&["install", "-y"]).exits(0).says("Nothing to do.");

    home.run(&["install", "--remove", "-y"]).exits(0);
    assert_eq!(everything(&dir), before);
    assert!(!home.path().join("installed.json").exists());
    home.run(&["install", "--remove", "-y"]).exits(0).prints("nothing\n").says("Nothing to do.");
}

#[test]
fn what_somebody_else_wrote_stays() {
    let (home, dir) = person();
    let skill = dir.join(CLAUDE);
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    std::fs::write(&skill, "mine").unwrap();
    let done = json(&home, &["-y"]);
    assert_eq!(action_of(&done, CLAUDE), "leave");
    assert_eq!(std::fs::read_to_string(&skill).unwrap(), "mine");
    // A file of ours that was changed is not ours any more.
    std::fs::write(dir.join(SHARED), "changed").unwrap();
    assert_eq!(action_of(&json(&home, &["-y"]), SHARED), "leave");
    let gone = home.run(&["install", "--remove", "-y"]).exits(0);
    shows(&gone, &["left      ~/.agents/skills/agentbox/SKILL.md: it was changed"]);
    assert_eq!(std::fs::read_to_string(dir.join(SHARED)).unwrap(), "changed");
    assert_eq!(std::fs::read_to_string(&skill).unwrap(), "mine");
    assert!(!dir.join(BASH).exists());

    let forced = json(&home, &["-y", "--force", "--skills-only"]);
    assert_eq!(action_of(&forced, CLAUDE), "replace");
    assert!(std::fs::read_to_string(&skill).unwrap().starts_with("---"));
    assert!(!dir.join(BASH).exists());
}

#[test]
fn no_link_is_followed() {
    let (home, dir) = person();
    let outside = home.tmp();
    std::fs::create_dir_all(dir.join(".agents/skills/agentbox")).unwrap();
    std::fs::write(outside.join("victim"), "theirs").unwrap();
    symlink(outside.join("victim"), dir.join(SHARED)).unwrap();
    symlink(&outside, dir.join(".claude/skills")).unwrap();
    symlink(&outside, dir.join(".local")).unwrap();
    let done = json(&home, &["-y", "--force"]);
    assert!(
        actions(&done).iter().all(|(path, action)| action == "leave"
            || path.contains(".zfunc")
            || path.contains("fish")),
        "{done}"
    );
    assert_eq!(std::fs::read_to_string(outside.join("victim")).unwrap(), "theirs");
    assert_eq!(everything(&outside), [".", "./victim"]);
    let shown = home.run(&["install", "--dry-run"]).exits(0);
    shows(&shown, &["a folder on the way is a link"]);
}

#[test]
fn a_newer_version_brings_its_own_files_and_takes_old_pages_away() {
    let (home, dir) = person();
    home.run(&["install", "-y"]).exits(0);
    // As an older version would have left it.
    let record = home.path().join("installed.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    let old = "3e9d9a6b5a3d0ff2e1a3f4cd26a3da5cbe0d25ae8ce8b6ec1bc8fb4d3ac9d3a1";
    let page = dir.join(".local/share/man/man1/agentbox-gone.1");
    for path in [dir.join(CLAUDE), page.clone()] {
        std::fs::write(&path, "an older text").unwrap();
        let key = path.to_str().unwrap();
        kept["files"][key] = serde_json::json!([old, sum("an older text")]);
    }
    std::fs::write(&record, kept.to_string()).unwrap();
    let skipped = home.run(&["self-update", "--skip-skills", "--json"]).exits(0).json();
    assert_eq!(skipped["update"]["skillsRefreshed"], Value::Null);
    home.run(&["self-update", "--check"]).exits(0);
    assert_eq!(std::fs::read_to_string(dir.join(CLAUDE)).unwrap(), "an older text");
    let fresh = home.run(&["self-update"]).exits(0);
    shows(&fresh, &["skills   1 brought to this version"]);
    assert!(std::fs::read_to_string(dir.join(CLAUDE)).unwrap().starts_with("---"));
    assert!(page.exists());
    let done = json(&home, &["-y"]);
    assert_eq!(action_of(&done, "agentbox-gone.1"), "remove");
    assert!(!page.exists());
}

fn sum(text: &str) -> String {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    said.split(' ').next().unwrap().to_owned()
}

#[test]
fn a_person_without_agents_gets_no_skills() {
    let home = Home::new();
    let dir = home.path().parent().unwrap().to_owned();
    let mut command = home.command(&["install", "-y", "--json"]);
    command.env("PATH", dir.join("nothing"));
    let done = Ended::of(command.spawn().unwrap()).exits(0).json();
    let paths = actions(&done);
    assert!(paths.len() > 60 && paths.iter().all(|(path, _)| path.ends_with(".1")), "{paths:?}");
}
