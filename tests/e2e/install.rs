//! `agentbox install`: what it puts in place works with the programs it is for.

use crate::world::{World, text};
use std::path::PathBuf;

#[test]
fn completions_and_manual_pages_work_where_install_puts_them() {
    let mut world = World::bare();
    let person = world.dir().join("person");
    std::fs::create_dir_all(person.join(".claude")).unwrap();
    world.set("HOME", person.to_str().unwrap());
    let home = world.dir().join("state");
    world.set("AGENTBOX_HOME", home.to_str().unwrap());
    // Nothing is started for it.
    let done = world.json(&["install", "-y"]);
    assert_eq!(done["install"]["done"], true, "{done}");
    assert!(!home.join("run").exists());
    let at = |path: &str| -> PathBuf { person.join(".local/share").join(path) };

    let completions = at("bash-completion/completions/agentbox");
    let script = format!(
        ". '{}'; COMP_WORDS=(agentbox inst); COMP_CWORD=1; _agentbox_with_boxes agentbox inst agentbox; \
         echo \"${{COMPREPLY[@]}}\"",
        completions.display()
    );
    let completed = world.command("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert!(text(&completed.stdout).contains("install"), "{completed:?}");

    let page = at("man/man1/agentbox-install.1");
    let shown = world.command("groff").args(["-man", "-Tascii"]).arg(&page).output().unwrap();
    assert!(text(&shown.stdout).contains("--skills-only"), "{shown:?}");

    let skill = std::fs::read_to_string(person.join(".claude/skills/agentbox/SKILL.md")).unwrap();
    assert!(skill.starts_with("---\nname: agentbox\ndescription: "));
    world.ok(&["install", "--remove", "-y"]);
    let left: Vec<_> =
        std::fs::read_dir(&person).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [".claude"]);
    assert_eq!(std::fs::read_dir(person.join(".claude")).unwrap().count(), 0);
}
