//! A person's copies between a box and this computer.

use crate::world::{World, text};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

fn said(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn cp_renames_or_goes_into_as_people_know_it() {
    let world = World::headless();
    world.create("fix");
    let here = world.project();
    std::fs::create_dir_all(here.join("assets/deep")).unwrap();
    std::fs::write(here.join("assets/deep/run"), "#!/bin/sh\necho hi\n").unwrap();
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(here.join("assets/deep/run"), runs).unwrap();
    std::os::unix::fs::symlink("deep/run", here.join("assets/link")).unwrap();

    assert_eq!(world.ok(&["cp", "assets", "fix:/workspace/"]), "copied to fix:/workspace/\n");
    world.ok(&["cp", "assets", "fix:renamed"]);
    world.ok(&["cp", "README.md", "fix:/tmp/notes.md"]);
    world.ok(&["cp", "README.md", "assets", "fix:~/both/"]);
    let script = "sh assets/link && stat -c '%U %a' renamed/deep/run && cat /tmp/notes.md && \
                  ls ~/both && stat -c %U ~/both";
    assert_eq!(world.box_ok("fix", script), "hi\nvscode 755\n# Shop\nREADME.md\nassets\nvscode");

    world.box_ok(
        "fix",
        "mkdir -p out/sub && printf new > out/sub/a && ln -s sub/a out/l && chmod +x out/sub/a",
    );
    assert!(world.ok(&["cp", "fix:out"]).starts_with("copied to "));
    assert_eq!(std::fs::read_to_string(here.join("out/l")).unwrap(), "new");
    assert!(here.join("out/sub/a").metadata().unwrap().permissions().mode() & 0o111 != 0);
    world.ok(&["cp", "fix:out/sub/a", "fix:/tmp/notes.md", "out"]);
    assert_eq!(std::fs::read_to_string(here.join("out/notes.md")).unwrap(), "# Shop\n");
    world.ok(&["cp", "fix:out", "other"]);
    assert_eq!(std::fs::read_to_string(here.join("other/sub/a")).unwrap(), "new");
    world.ok(&["cp", "fix:/tmp/notes.md", "other/sub/a"]);
    assert_eq!(std::fs::read_to_string(here.join("other/sub/a")).unwrap(), "# Shop\n");

    let missing = world.agentbox(&["cp", "fix:/no/such", "."]);
    assert_eq!(missing.status.code(), Some(1), "{}", said(&missing));
    assert!(said(&missing).contains("/no/such"), "{}", said(&missing));
    assert_eq!(world.agentbox(&["cp", "nothere", "fix:"]).status.code(), Some(1));
    assert_eq!(world.agentbox(&["cp", "README.md", "nobox:"]).status.code(), Some(2));
}

#[test]
fn cp_leaves_out_what_is_made_again_and_says_so() {
    let world = World::headless();
    let here = world.project();
    for file in
        ["app/packages/a/index.js", "app/packages/a/node_modules/m", "app/bin/x", "app/a.log"]
    {
        std::fs::create_dir_all(here.join(file).parent().unwrap()).unwrap();
        std::fs::write(here.join(file), file).unwrap();
    }
    std::fs::write(here.join(".gitignore"), "node_modules\nbin\n*.log\n").unwrap();
    world.git(&here, &["add", "."]);
    world.git(&here, &["commit", "-qm", "App"]);
    world.create("fix");
    let copied = world.agentbox(&["cp", "app", "fix:/tmp/", "--exclude", "*.log"]);
    assert!(copied.status.success(), "{}", said(&copied));
    for left in ["app/bin", "app/packages/a/node_modules", "app/a.log"] {
        assert!(said(&copied).contains(left), "{}", said(&copied));
    }
    assert_eq!(world.box_ok("fix", "cd /tmp/app && find . -type f"), "./packages/a/index.js");
    // The other way the box's own git is asked.
    world.box_ok("fix", "mkdir -p app/bin app/packages/a/node_modules && touch app/bin/y app/packages/a/node_modules/z");
    let copied = world.agentbox(&["cp", "fix:app", "../elsewhere/", "--json"]);
    assert!(world.dir().join("elsewhere/app/packages/a/index.js").exists());
    let json: serde_json::Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!((&json["schema"], &json["copied"]["files"]), (&1.into(), &1.into()), "{json}");
    assert!(json["copied"]["leftOut"].to_string().contains("app/bin"), "{json}");
    world.ok(&["cp", "fix:app", "all", "--no-default-excludes"]);
    // Git's own folder never comes from a box: git would run what is in it.
    world.box_ok("fix", "git init -q app/evil && cp -r app/evil/.git app/.git");
    world.ok(&["cp", "fix:app", "again", "--no-default-excludes"]);
    assert!(here.join("again/bin/y").exists() && !here.join("again/.git").exists());
    assert!(!here.join("again/evil/.git").exists());
    assert!(here.join("all/bin/y").exists() && here.join("all/packages/a/node_modules/z").exists());
}

#[test]
fn boxes_16_38_a_large_upload_has_to_be_insisted_on() {
    let world = World::headless();
    world.create("fix");
    let dir = world.project().join("dir");
    std::fs::create_dir_all(dir.join("data/raw")).unwrap();
    std::fs::create_dir_all(dir.join("node_modules")).unwrap();
    let make = |name: &str, size: u64| {
        std::fs::File::create(dir.join(name)).unwrap().set_len(size).unwrap();
    };
    make("data/raw/big", 140 << 20);
    make("small", 10 << 20);
    make("node_modules/huge", 500 << 20);
    let refused = world.agentbox(&["cp", "./dir", "fix:/workspace/"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = said(&refused);
    for word in ["157.3 MB", "104.9 MB", "box.cpMaxBytes", "data/", "raw/", "--yes", "--exclude"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(world.box_ok("fix", "ls"), "README.md");
    let copied = world.agentbox(&["cp", "./dir", "fix:/workspace/", "--yes"]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    let script =
        "cd dir && stat -c '%U %s' data/raw/big && ls && [ $(stat -c %u small) = $(id -u) ]";
    assert_eq!(world.box_ok("fix", script), "vscode 146800640\ndata\nsmall");
}

/// An archive as an enemy would send it.
fn hostile() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, link: &str, data: &str| {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(data.len() as u64);
        if !link.is_empty() {
            header.set_link_name_literal(link).unwrap();
        }
        header.set_cksum();
        tar.append(&header, data.as_bytes()).unwrap();
    };
    let (dir, file, link) =
        (tar::EntryType::Directory, tar::EntryType::Regular, tar::EntryType::Symlink);
    add("x", dir, "", "");
    add("x/good", file, "", "fine");
    add("../evil", file, "", "evil");
    add(".git/hooks/h", file, "", "evil");
    add("x/l", link, "/etc", "");
    add("x/l/p", file, "", "evil");
    add("x/.git/hooks/post-checkout", file, "", "evil");
    tar.into_inner().unwrap()
}

#[test]
fn boxes_16_39_a_hostile_archive_writes_only_what_was_asked_for() {
    let world = World::headless();
    world.create("fix");
    std::fs::write(world.dir().join("evil.tar"), hostile()).unwrap();
    world.ok(&["cp", "../evil.tar", "fix:/tmp/evil.tar"]);
    world.box_ok(
        "fix",
        "mkdir -p x && cd /usr/local/bin && sudo mv agentbox-ctl real-ctl && \
         printf '#!/bin/sh\\n[ \"$1\" = pack ] && exec cat /tmp/evil.tar\\nexec /usr/local/bin/real-ctl \"$@\"\\n' | \
         sudo tee agentbox-ctl >/dev/null && sudo chmod 755 agentbox-ctl",
    );
    let before = world.git(&world.project(), &["status", "--porcelain"]);
    let output = world.agentbox(&["cp", "fix:/x", "./out"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for name in ["../evil", ".git/hooks/h", "x/l", "x/l/p", "post-checkout"] {
        assert!(said(&output).contains(name), "{name}: {}", said(&output));
    }
    let out = world.project().join("out");
    let names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["good"]);
    assert!(!world.dir().join("evil").exists());
    assert!(!world.project().join(".git/hooks/h").exists());
    // The workspace is not taken from it either.
    std::fs::remove_dir_all(&out).unwrap();
    let output = world.agentbox(&["download", "-y"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.git(&world.project(), &["status", "--porcelain"]), format!("{before}?? x/"));
}

#[test]
fn boxes_16_40_several_sources_need_a_folder_and_one_side() {
    let world = World::headless();
    world.create("fix");
    for file in ["a", "b"] {
        std::fs::write(world.project().join(file), file).unwrap();
    }
    let refused = world.agentbox(&["cp", "a", "b", "fix:/workspace/new"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("end it with '/'"), "{}", said(&refused));
    assert_eq!(world.box_ok("fix", "ls"), "README.md");
    world.ok(&["cp", "a", "b", "fix:/workspace/new/"]);
    assert_eq!(world.box_ok("fix", "ls new"), "a\nb");
    let refused = world.agentbox(&["cp", "fix:new/a", "fix:new/b", "new"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("end it with '/'"), "{}", said(&refused));
    for mixed in [
        &["cp", "a", "fix:b", "fix:/c"][..],
        &["cp", "fix:a", "fix:b"],
        &["cp", "a", "b"],
        &["cp", "a"],
    ] {
        assert_eq!(world.agentbox(mixed).status.code(), Some(1), "{mixed:?}");
    }
}

#[test]
fn boxes_16_41_a_download_shows_first_and_takes_nothing_away() {
    let world = World::headless();
    let here = world.project();
    std::fs::write(here.join(".gitignore"), ".env\n").unwrap();
    std::fs::write(here.join("mine"), "only here\n").unwrap();
    world.create("fix");
    world.box_ok("fix", "rm mine; echo changed >> README.md; echo KEY=1 > .env; touch .gitignore");
    let listed = world.ok(&["download", "--dry-run"]);
    assert_eq!(listed, "README.md\n[dry-run] 1 file(s) would change\n");
    assert_eq!(std::fs::read_to_string(here.join("README.md")).unwrap(), "# Shop\n");

    let nobody = world.agentbox(&["download"]);
    assert_eq!(nobody.status.code(), Some(2), "{}", said(&nobody));
    let done = world.ok(&["download", "-y"]);
    assert_eq!(done, format!("updated 1 file(s) in {}\n", here.display()));
    assert_eq!(std::fs::read_to_string(here.join("README.md")).unwrap(), "# Shop\nchanged\n");
    assert_eq!(std::fs::read_to_string(here.join("mine")).unwrap(), "only here\n");
    assert!(!here.join(".env").exists());
    assert!(world.ok(&["download", "-y"]).starts_with("no changes"));

    let env = world.ok(&["download", "env", "--dry-run"]);
    assert_eq!(env, ".env (new)\n[dry-run] 1 file(s) would change\n");
    world.ok(&["download", "--with-env", "-y"]);
    assert_eq!(std::fs::read_to_string(here.join(".env")).unwrap(), "KEY=1\n");
    world.box_ok("fix", "echo KEY=2 > .env; echo '{}' > agentbox.yaml; mkdir -p node_modules/m && touch node_modules/m/f x.log; printf 'node_modules\\n*.log\\n' >> .gitignore");
    let json = world.json(&["download", "env", "-y"]);
    assert_eq!(
        (&json["download"]["updated"], &json["download"]["files"][0]["new"]),
        (&1.into(), &false.into())
    );
    assert_eq!(
        world.ok(&["download", "config", "--dry-run"]),
        "agentbox.yaml (new)\n[dry-run] 1 file(s) would change\n"
    );
    let all = world.ok(&["download", "--dry-run", "--pattern", "*.log", "--include-node-modules"]);
    assert_eq!(
        all,
        ".gitignore\nagentbox.yaml\nnode_modules/m/f\nx.log\n[dry-run] 4 file(s) would change\n"
    );
}

#[test]
fn an_agents_own_things_come_home_and_replace_nothing() {
    let world = World::headless();
    world.create("fix");
    world.box_ok(
        "fix",
        "mkdir -p ~/.claude/skills/review ~/.claude/skills/agentbox-help ~/.claude/commands && \
         echo theirs > ~/.claude/skills/review/SKILL.md && touch ~/.claude/skills/agentbox-help/SKILL.md && \
         echo new > ~/.claude/commands/ship.md && echo '{}' > ~/.claude/settings.json",
    );
    let home = world.home().parent().unwrap().join(".claude");
    std::fs::create_dir_all(home.join("skills/review")).unwrap();
    std::fs::write(home.join("skills/review/SKILL.md"), "mine\n").unwrap();
    let done = world.ok(&["download", "claude", "-y"]);
    assert_eq!(done, "downloaded 1 file(s) in ~ for Claude\n");
    assert_eq!(std::fs::read_to_string(home.join("skills/review/SKILL.md")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_to_string(home.join("commands/ship.md")).unwrap(), "new\n");
    assert!(!home.join("skills/agentbox-help").exists() && !home.join("settings.json").exists());
    assert!(world.ok(&["download", "codex", "-y"]).starts_with("no changes"));
}

#[test]
fn settings_a_box_has_written_run_nothing_on_this_computer() {
    let world = World::headless();
    world.create("evil-settings");
    world.box_ok(
        "evil-settings",
        r#"mkdir -p ~/.codex/prompts ~/.config/opencode ~/.local/share/opencode
        printf 'model = "m"\nnotify = ["touch", "/tmp/owned"]\n[mcp_servers.x]\ncommand = "sh"\n' > ~/.codex/config.toml
        echo 'say hello' > ~/.codex/prompts/hi.md
        echo '{"theme": "t", "mcp": {"x": {"command": ["sh"]}}, "plugin": ["evil"]}' > ~/.config/opencode/opencode.json
        echo '{"https://evil.example": {"type": "wellknown", "key": "PATH", "token": "t"}}' > ~/.local/share/opencode/auth.json"#,
    );
    let home = world.home().parent().unwrap().to_owned();
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap();
    let done = world.ok(&["download", "codex", "-y"]);
    assert_eq!(done, "downloaded 2 file(s) in ~ for Codex\n");
    assert_eq!(read(".codex/config.toml"), "model = \"m\"\n");
    assert_eq!(read(".codex/prompts/hi.md"), "say hello\n");
    let done = world.ok(&["download", "opencode", "-y"]);
    assert_eq!(done, "downloaded 1 file(s) in ~ for OpenCode\n");
    assert_eq!(read(".config/opencode/opencode.json"), "{\n  \"theme\": \"t\"\n}\n");
    assert!(!home.join(".local/share/opencode/auth.json").exists());
    // A link in the place of a file is no way around it: what it leads to is read and written anew.
    std::fs::remove_file(home.join(".codex/config.toml")).unwrap();
    world.box_ok(
        "evil-settings",
        "cd ~/.codex && mv config.toml prompts/c && ln -s prompts/c config.toml",
    );
    world.ok(&["download", "codex", "-y"]);
    assert!(!home.join(".codex/config.toml").is_symlink());
    assert_eq!(read(".codex/config.toml"), "model = \"m\"\n");
}

#[test]
fn a_box_that_sleeps_is_woken_for_a_copy() {
    let world = World::headless();
    world.create("fix");
    world.ok(&["stop", "fix"]);
    let copied = world.agentbox(&["cp", "README.md", "fix:/tmp/"]);
    assert!(copied.status.success(), "{}", said(&copied));
    assert!(said(&copied).contains("fix is stopped; starting it"), "{}", said(&copied));
    assert_eq!(world.box_ok("fix", "cat /tmp/README.md"), "# Shop");
}
