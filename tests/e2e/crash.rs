//! Killing the host at the worst moment loses nothing and allows nothing.

use crate::desktop::pages;
use crate::world::{APP, SOON, World};
use agentbox_e2e::wait::{eventually, eventually_or};
use std::time::Duration;

#[test]
fn kill_9_during_a_question_ends_the_command_and_pushes_nothing() {
    let mut world = World::headless();
    world.create("fix-login");
    world.commit("fix-login", "One");
    // In the background of the box, with its output kept there: the host's death ends the exec
    // stream, not the command.
    world.box_ok(
        "fix-login",
        "nohup sh -c 'git push > /tmp/out 2>&1; echo $? > /tmp/code' > /dev/null 2>&1 &",
    );
    world.question_of("fix-login");
    world.kill_host();
    world.start_serve();
    let code = eventually_or(Duration::from_secs(5), "the command in the box ending", || {
        let output = world.in_box("fix-login", "cat /tmp/code");
        let code = String::from_utf8_lossy(&output.stdout).into_owned();
        if code.ends_with('\n') { Ok(code) } else { Err("no code yet") }
    });
    assert_eq!(code.trim(), "126");
    let said = world.box_ok("fix-login", "cat /tmp/out");
    assert!(said.contains("the host went away before it answered"), "{said}");
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
    assert!(world.questions().is_empty());
    world.ok(&["audit", "verify"]);
    let trail = world.json(&["audit", "fix-login"]).to_string();
    assert!(trail.contains("the host stopped, denied"), "{trail}");
    let list = world.json(&["list"]);
    assert_eq!(list["boxes"][0]["state"], "running", "{list}");
    // And it goes on working.
    let push = world.push("fix-login");
    world.question_of("fix-login");
    world.approve("fix-login", &[]);
    assert_eq!(push.end().code, Some(0));
}

#[test]
fn an_orderly_stop_denies_what_is_open() {
    let mut world = World::headless();
    world.create("fix-login");
    world.commit("fix-login", "One");
    world.box_ok(
        "fix-login",
        "nohup sh -c 'git push > /tmp/out 2>&1; echo $? > /tmp/code' > /dev/null 2>&1 &",
    );
    world.question_of("fix-login");
    nix::sys::signal::kill(world.host_pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    world.await_host_end();
    world.start_serve();
    let code = eventually_or(SOON, "the command in the box ending", || {
        let output = world.in_box("fix-login", "cat /tmp/code");
        let code = String::from_utf8_lossy(&output.stdout).into_owned();
        if code.ends_with('\n') { Ok(code) } else { Err(format!("{output:?}")) }
    });
    assert_eq!(code, "10\n");
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
}

/// How many windows of the app there are for the window manager.
fn windows(world: &World) -> usize {
    let list = world.session().command("wmctrl").arg("-l").output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    list.lines().filter(|line| line.ends_with(" AgentBox")).count()
}

/// A desktop that is killed takes its dialog and its window along, so that the next one has the only ones.
#[test]
fn kill_9_of_the_desktop_leaves_no_dialog_and_no_window_and_allows_nothing() {
    let mut world = World::desktop();
    world.create("fix-login");
    world.commit("fix-login", "One");
    world.box_ok(
        "fix-login",
        "nohup sh -c 'git push > /tmp/out 2>&1; echo $? > /tmp/code' > /dev/null 2>&1 &",
    );
    world.question_of("fix-login");
    world.tray().click(&["Open AgentBox"], SOON);
    eventually(SOON, "the window", || (windows(&world) == 1).then_some(()));
    eventually(SOON, "the dialog, ready", || {
        world.screen().exists(APP, "fix-login asks", "Allow once").then_some(())
    });
    world.kill_host();
    eventually_or(SOON, "no window left", || {
        let left = pages(&world);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    world.screen().gone(APP, "fix-login asks", SOON);

    world.start_desktop();
    let code = eventually_or(SOON, "the command in the box ending", || {
        let output = world.in_box("fix-login", "cat /tmp/code");
        let code = String::from_utf8_lossy(&output.stdout).into_owned();
        if code.ends_with('\n') { Ok(code) } else { Err(format!("{output:?}")) }
    });
    assert_eq!(code.trim(), "126");
    let said = world.box_ok("fix-login", "cat /tmp/out");
    assert!(said.contains("the host went away before it answered"), "{said}");
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
    assert!(world.questions().is_empty());
    let dialogs = world.screen().windows(APP);
    assert!(dialogs.iter().all(|title| !title.contains("asks")), "{dialogs:?}");
    world.tray().click(&["Open AgentBox"], SOON);
    eventually(SOON, "the new window", || (windows(&world) == 1).then_some(()));
    assert_eq!(pages(&world).len(), 1);
}
