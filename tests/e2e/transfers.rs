//! Files move between a box and this computer only as shown and agreed.

use crate::channels::over_both_channels;
use crate::world::World;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_go_both_ways_after_a_look() {
    let world = World::headless();
    world.create("fix-login");
    std::fs::write(world.project().join("notes.txt"), "for the box\n").unwrap();
    std::fs::write(world.project().join(".env"), "KEY=value\n").unwrap();

    let (question, copied) =
        world.answered("fix-login", "agentbox-ctl cp fromHost notes.txt /workspace/in/", "approve");
    assert_eq!(copied.code, Some(0), "{}{}", copied.err, world.host_log());
    assert_eq!(question["evidence"]["files"].as_array().unwrap().len(), 1, "{question}");
    assert_eq!(world.box_ok("fix-login", "cat /workspace/in/notes.txt"), "for the box");

    let (question, denied) =
        world.answered("fix-login", "agentbox-ctl cp fromHost . /workspace/all/", "deny");
    assert_eq!(denied.code, Some(10), "{}", denied.err);
    assert!(question.to_string().contains(".env") && question["remember"].is_null(), "{question}");

    let script =
        "mkdir -p out && echo built > out/a.txt && agentbox-ctl cp toHost out/a.txt result.txt";
    let (question, copied) = world.answered("fix-login", script, "approve");
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    assert!(question.to_string().contains("result.txt"), "{question}");
    assert_eq!(std::fs::read_to_string(world.project().join("result.txt")).unwrap(), "built\n");

    let refused = world.in_box("fix-login", "agentbox-ctl cp fromHost /proc/self/environ /tmp/");
    assert_eq!(refused.status.code(), Some(65), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn relay_a18_a_link_in_the_box_leads_nowhere_on_the_host() {
    let world = World::headless();
    world.create("fix-login");
    let script = "mkdir -p t && ln -s /tmp t/link && agentbox-ctl cp toHost t landed";
    let output = world.in_box("fix-login", script);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("link"), "{said}");
    assert!(!world.project().join("landed").exists());
    assert!(world.questions().is_empty());
}

#[test]
fn a_checkpoint_is_made_listed_and_holds_no_token() {
    let world = World::headless();
    world.create("fix-login");
    world.box_ok("fix-login", "echo kept > /home/vscode/kept");
    let token = world.box_ok("fix-login", "cat /run/agentbox/token");
    let (_, made) =
        world.answered("fix-login", "agentbox-ctl checkpoint create --name warm", "approve");
    assert_eq!(made.code, Some(0), "{}{}", made.err, world.host_log());
    let listed = world.json(&["checkpoints"]);
    let image = listed["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["create", "-n", "again", "--image", &image]);
    assert_eq!(world.box_ok("again", "cat /home/vscode/kept"), "kept");
    assert_ne!(world.box_ok("again", "cat /run/agentbox/token"), token);
    world.ok(&["destroy", "-y", "again"]);
    world.ok(&["checkpoints", "rm", &image, "--yes"]);
    assert!(world.json(&["checkpoints"])["checkpoints"].as_array().unwrap().is_empty());
}

over_both_channels! {
    fn a_workspace_comes_back_to_the_project_as_it_was_shown(channel) {
        let world = World::over(channel, "");
        std::fs::write(world.project().join(".gitignore"), "*.log\n").unwrap();
        std::fs::write(world.project().join("mine.txt"), "mine\n").unwrap();
        world.create("fix-login");
        let download = "agentbox-ctl download workspace";
        // The box was made from what is there: nobody is asked about nothing.
        let same = world.box_ok("fix-login", download);
        assert!(same.contains("no changes"), "{same}");

        world.box_ok(
            "fix-login",
            "echo '# Better shop' > README.md && mkdir -p src && echo new > src/new.txt && \
             echo noise > debug.log && rm mine.txt && printf '#!/bin/sh\\n' > run && chmod +x run",
        );
        let (question, denied) = world.answered("fix-login", download, "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        let files = question["evidence"]["files"].as_array().unwrap().len();
        assert_eq!(files, 3, "{question}");
        // What it overwrites may be work of the person's: no rule covers that.
        assert!(question["remember"].is_null(), "{question}");
        let read = |name: &str| std::fs::read_to_string(world.project().join(name)).ok();
        assert_eq!(read("README.md").as_deref(), Some("# Shop\n"));

        let (_, done) = world.answered("fix-login", download, "approve");
        assert_eq!(done.code, Some(0), "{}{}", done.err, world.host_log());
        assert!(done.err.contains("updated 3 files"), "{}", done.err);
        assert_eq!(read("README.md").as_deref(), Some("# Better shop\n"));
        assert_eq!(read("src/new.txt").as_deref(), Some("new\n"));
        let mode = std::fs::metadata(world.project().join("run")).unwrap().permissions().mode();
        assert_eq!(mode & 0o100, 0o100, "{mode:o}");
        // What git ignores stays in the box, and nothing is taken away here.
        assert_eq!(read("debug.log"), None);
        assert_eq!(read("mine.txt").as_deref(), Some("mine\n"));
        let same = world.box_ok("fix-login", download);
        assert!(same.contains("no changes"), "{same}");
    }

    fn a_new_box_starts_from_the_checkpoint_the_person_allowed_as_default(channel) {
        let world = World::over(channel, "");
        let plain = world.create("fix-login")["image"].clone();
        world.box_ok("fix-login", "echo kept > /home/vscode/kept && sudo touch /opt/tool");
        let create = "agentbox-ctl checkpoint create --name warm --set-default";
        let (question, denied) = world.answered("fix-login", create, "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        assert_eq!(question["title"], "Start every new box of shop from checkpoint warm");
        assert_eq!(question["tier"], "irreversible");
        assert!(question["remember"].is_null(), "{question}");
        assert!(question["warnings"].to_string().contains("reaches every new box"), "{question}");
        assert_eq!(world.create("before")["image"], plain);

        let (_, made) = world.answered("fix-login", create, "approve");
        assert_eq!(made.code, Some(0), "{}{}", made.err, world.host_log());
        let listed = world.json(&["checkpoints"])["checkpoints"][0].clone();
        assert_eq!((&listed["name"], &listed["default"]), (&"warm".into(), &true.into()));
        let image = listed["id"].as_str().unwrap();

        // Nobody said from what: it starts there, with the project as it is now.
        std::fs::write(world.project().join("later.txt"), "later\n").unwrap();
        let after = world.create("after");
        assert_eq!(after["image"], image);
        assert_eq!(world.box_ok("after", "cat /home/vscode/kept later.txt && ls /opt/tool"), "kept\nlater\n/opt/tool");
        let token = |name: &str| world.box_ok(name, "cat /run/agentbox/token");
        assert_ne!(token("after"), token("fix-login"));
        // It is a box of its own: its pushes are its own.
        let oid = world.commit("after", "One");
        let (question, pushed) = world.answered("after", "git push", "approve");
        assert_eq!(pushed.code, Some(0), "{}", pushed.err);
        assert_eq!(question["title"], "Push 1 commit to origin/agentbox/after");
        assert_eq!(world.at_remote("agentbox/after"), Some(oid));

        world.ok(&["destroy", "-y", "after"]);
        world.ok(&["checkpoints", "rm", image, "--yes"]);
        assert_eq!(world.create("last")["image"], plain);
    }
}
