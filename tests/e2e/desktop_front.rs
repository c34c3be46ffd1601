//! What happens to a box while its page is before the person is not told as a notification as well.

use crate::world::{SOON, World};
use agentbox_e2e::session::Options;
use agentbox_e2e::tray::outline;
use agentbox_e2e::wait::{eventually, eventually_or};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether the host takes the box's page for one that is looked at, by its own log.
fn is_in_front(world: &World, id: &str) -> bool {
    let (log, came) = (world.host_log(), format!("the page of box {id} came to the front"));
    let left = format!("the page of box {id} left the front");
    let count = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    count(&came) > count(&left)
}

#[track_caller]
fn xdotool(world: &World, args: &[&str]) -> String {
    let output = world.session().command("xdotool").args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Brings the window to the front, as a click on it would.
#[track_caller]
fn look_at(world: &World, id: &str) {
    eventually_or(SOON, "the page before the person", || {
        let _ = world.session().command("wmctrl").args(["-a", "AgentBox"]).status();
        if is_in_front(world, id) { Ok(()) } else { Err(world.host_log()) }
    });
}

#[track_caller]
fn looked_away(world: &World, id: &str) {
    eventually_or(SOON, "nobody before the page", || {
        if is_in_front(world, id) { Err(world.host_log()) } else { Ok(()) }
    });
}

fn told(world: &World, what: &str) -> usize {
    world.notifications().ever_shown().iter().filter(|one| one.summary.contains(what)).count()
}

#[track_caller]
fn kill_box(world: &World) {
    let container = world.json(&["inspect", "fix-login"])["details"]["container"].clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let docker = world.docker().await.unwrap();
        docker.kill_container(container.as_str().unwrap(), None).await.unwrap();
    });
    eventually(SOON, "the box being down", || {
        (world.json(&["list"])["boxes"][0]["state"] == "stopped").then_some(())
    });
}

#[test]
fn nothing_is_told_of_a_box_whose_page_is_before_the_person_but_it_still_asks() {
    let mut world = World::desktop_before(Options::default());
    world.set("AGENTBOX_LOG", "info,zbus=warn,agentbox_host=debug");
    world.start_desktop();
    let id = world.create("fix-login")["id"].as_str().unwrap().to_owned();
    let tray = world.tray();
    let entry = eventually_or(SOON, "the box in the menu", || {
        let menu = tray.menu();
        let found = menu.iter().map(|e| e.label.clone()).find(|l| l.contains("fix-login"));
        found.ok_or_else(|| outline(&menu))
    });
    tray.click(&[&entry, "Open"], SOON);
    look_at(&world, &id);

    world.box_ok("fix-login", "agentbox-ctl agent-state claude waiting");
    eventually_or(SOON, "the agent in the tray", || {
        let title = tray.title();
        if title == "AgentBox needs you: 1 waiting agent" { Ok(()) } else { Err(title) }
    });
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    world.notifications().wait_for("fix-login asks", SOON);
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
    assert_eq!(told(&world, "waits for you"), 0, "{:?}", world.notifications().ever_shown());

    // Put aside, it is not looked at.
    xdotool(&world, &["search", "--name", "^AgentBox$", "windowminimize"]);
    looked_away(&world, &id);
    world.box_ok("fix-login", "agentbox-ctl agent-state codex waiting");
    let toast = world.notifications().wait_for("fix-login waits for you", SOON);
    assert!(toast.body.contains("Codex"), "{}", toast.body);
    assert_eq!(told(&world, "waits for you"), 1);

    look_at(&world, &id);
    kill_box(&world);
    // A window that is killed cannot say that it goes.
    let pid = xdotool(&world, &["search", "--name", "^AgentBox$", "getwindowpid"]);
    kill(Pid::from_raw(pid.lines().next().unwrap().parse().unwrap()), Signal::SIGKILL).unwrap();
    looked_away(&world, &id);
    world.ok(&["start", "fix-login"]);
    kill_box(&world);
    world.notifications().wait_for("fix-login stopped", SOON);
    assert_eq!(told(&world, "stopped"), 1, "{:?}", world.notifications().ever_shown());
}
