//! A box whose sockets cannot be mounted reaches the host through the engine's exec stream, and
//! notices no difference.

use crate::world::{SOON, World};
use agentbox_e2e::wait::eventually_or;

fn world() -> World {
    let mut world = World::bare();
    world.configure("engine: {channel: exec}\n");
    world.start_serve();
    world
}

#[test]
fn everything_works_without_a_mounted_socket() {
    let world = world();
    let made = world.create("fix-login");
    assert_eq!(made["channel"], "exec");
    let mounts = world.box_ok("fix-login", "grep ' /run/agentbox/host ' /proc/mounts || true");
    assert_eq!(mounts, "");
    let oid = world.commit("fix-login", "One");
    eventually_or(SOON, "the commit on the host", || {
        let seen = world.git(
            &world.project(),
            &["for-each-ref", "--format=%(objectname)", "refs/heads/agentbox/"],
        );
        if seen == oid { Ok(()) } else { Err(seen) }
    });
    let (question, pushed) = world.answered("fix-login", "git push", "approve");
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    assert_eq!(question["title"], "Push 1 commit to origin/agentbox/fix-login");
    assert_eq!(world.at_remote("agentbox/fix-login"), Some(oid));
    world.ok(&["stop", "fix-login"]);
    world.ok(&["start", "fix-login"]);
    assert_eq!(world.in_box("fix-login", "git fetch").status.code(), Some(0));
}

#[test]
fn a_caller_that_leaves_takes_its_question_with_it_over_the_bridge_too() {
    let world = world();
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    world.question_of("fix-login");
    world.box_ok("fix-login", "pkill -x git");
    drop(push.end());
    eventually_or(SOON, "the question being withdrawn", || {
        let open = world.questions();
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
    });
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
}

#[test]
fn a_restarted_host_takes_both_kinds_of_boxes_back_without_restarting_them() {
    let mut world = world();
    world.create("by-exec");
    world.kill_host();
    world.configure("");
    world.start_serve();
    world.create("by-socket");
    let started = |name: &str| world.box_ok(name, "stat -c %Y /proc/1");
    let before = (started("by-exec"), started("by-socket"));
    for round in 0..2 {
        world.kill_host();
        world.start_serve();
        for name in ["by-exec", "by-socket"] {
            let oid = world.commit(name, &format!("Round {round}"));
            let (_, pushed) = world.answered(name, "git push", "approve");
            assert_eq!(pushed.code, Some(0), "{}", pushed.err);
            assert_eq!(world.at_remote(&format!("agentbox/{name}")), Some(oid));
        }
    }
    let started = |name: &str| world.box_ok(name, "stat -c %Y /proc/1");
    assert_eq!((started("by-exec"), started("by-socket")), before);
}
