//! Files move between a box and this computer only as shown and agreed.

use crate::world::World;

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
