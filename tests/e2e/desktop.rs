//! The tray app among people's desktops: complete ones and bare ones.

use crate::world::{APP, SOON, World};
use agentbox_e2e::screen;
use agentbox_e2e::session::Options;
use agentbox_e2e::tray::outline;
use agentbox_e2e::wait::{eventually, eventually_or, try_eventually};

fn notices(world: &World) -> Vec<String> {
    let status = world.json(&["status"]);
    let notices = status["status"]["notices"].as_array().unwrap().clone();
    notices.iter().map(|n| n["part"].as_str().unwrap().to_owned()).collect()
}

/// Processes of this session that run the app's window.
fn window_processes(world: &World) -> usize {
    let marker = format!("HOME={}", world.session().home().display());
    let runs = |entry: &std::fs::DirEntry| {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let is_window = read("cmdline").split(|b| *b == 0).any(|arg| arg == b"--window");
        is_window && String::from_utf8_lossy(&read("environ")).contains(&marker)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(runs).count()
}

/// Waits until the window shows more than an empty page. What it says is read by WebDriver.
#[track_caller]
fn page_is_drawn(world: &World, name: &str) {
    eventually_or(SOON, "a page in the window", || {
        let shot = screen::shoot(world.session(), name);
        let inside = format!("{}[900x600+180+120]", shot.display());
        let colours = world.session().command("identify").args(["-format", "%k", &inside]).output();
        let colours: u32 = String::from_utf8_lossy(&colours.unwrap().stdout).parse().unwrap_or(0);
        if colours > 300 { Ok(()) } else { Err(format!("{colours} colours")) }
    });
}

/// The picture in the README: what a person sees when an agent asks.
#[test]
fn a_picture_of_the_app_at_work() {
    let world = World::desktop();
    for name in ["fix-login", "docs-bot"] {
        world.create(name);
    }
    for subject in
        ["Check token expiry before refresh", "Add test for clock skew", "Log refresh failures"]
    {
        world.commit("fix-login", subject);
    }
    world.ok(&["stop", "docs-bot"]);
    world.tray().click(&["Open AgentBox"], SOON);
    page_is_drawn(&world, "agentbox");
    let push = world.push("fix-login");
    eventually(SOON, "the dialog, ready", || {
        world.screen().exists(APP, "fix-login asks", "Allow once").then_some(())
    });
    // Side by side, so that both can be seen. The new size makes the window draw itself anew.
    let place = |title: &str, place: &str| {
        let moved = world.session().command("wmctrl").args(["-r", title, "-e", place]).status();
        assert!(moved.unwrap().success());
    };
    place("fix-login asks", "0,650,430,-1,-1");
    place("AgentBox", "0,12,44,860,640");
    // One that has settled, if the machine is quick enough for that: ages tick every second, in the
    // dialog and in the window.
    let _ = try_eventually(SOON / 2, || {
        let one = std::fs::read(screen::shoot(world.session(), "agentbox")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let two = std::fs::read(screen::shoot(world.session(), "agentbox")).unwrap();
        if one == two { Ok(()) } else { Err(()) }
    });
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn the_tray_shows_boxes_and_starts_and_stops_them() {
    let world = World::desktop();
    world.create("fix-login");
    let tray = world.tray();
    let lines = |wanted: &str| {
        eventually_or(SOON, wanted, || {
            let menu = outline(&tray.menu());
            if menu.contains(wanted) { Ok(()) } else { Err(menu) }
        });
    };
    lines("fix-login   running");
    let running = tray.icon_hash();
    let label = |state: &str| {
        let menu = tray.menu();
        menu.iter()
            .map(|e| e.label.clone())
            .find(|l| l.contains("fix-login") && l.contains(state))
            .unwrap()
    };
    tray.click(&[&label("running"), "Stop"], SOON);
    lines("fix-login   stopped");
    eventually(SOON, "another icon when nothing runs", || {
        (tray.icon_hash() != running).then_some(())
    });
    tray.click(&[&label("stopped"), "Start"], SOON);
    lines("fix-login   running");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "running");
    assert_eq!(notices(&world), Vec::<String>::new());
}

#[test]
fn the_window_is_a_process_of_its_own_and_the_tray_outlives_it() {
    let world = World::desktop();
    world.create("fix-login");
    assert_eq!(window_processes(&world), 0, "a window nobody opened");
    world.tray().click(&["Open AgentBox"], SOON);
    eventually(SOON, "the window", || {
        world.screen().windows(APP).iter().any(|w| w.contains("AgentBox")).then_some(())
    });
    eventually(SOON, "one window process", || (window_processes(&world) == 1).then_some(()));
    page_is_drawn(&world, "window-boxes");
    // A second wish to see it brings no second window.
    world.tray().click(&["Open AgentBox"], SOON);
    assert_eq!(window_processes(&world), 1, "a second window");
    // A wish that is heard only after the window has gone opens it once more.
    eventually(SOON, "no window process", || {
        let _ = world.session().command("wmctrl").args(["-c", "AgentBox"]).output();
        (window_processes(&world) == 0).then_some(())
    });
    assert_eq!(world.json(&["status"])["status"]["kind"], "desktop");
    world.tray();
}

#[test]
fn a_bare_desktop_is_told_what_is_missing_and_everything_else_works() {
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    eventually_or(SOON, "notices for what is missing", || {
        let mut parts = notices(&world);
        parts.sort();
        if parts == ["keyring", "notifications", "tray"] {
            Ok(())
        } else {
            Err(format!("{parts:?}{}", world.host_log()))
        }
    });
    let status = world.json(&["status"]);
    for notice in status["status"]["notices"].as_array().unwrap() {
        assert!(notice["hint"].is_string(), "no way out: {notice}");
    }
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    assert_eq!(push.end().code, Some(0));
    let doctor = world.agentbox(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("[warn]"));
}

#[test]
fn a_desktop_takes_over_from_a_headless_host_without_touching_boxes() {
    let mut world = World::desktop();
    nix::sys::signal::kill(world.host_pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    world.await_host_end();
    world.start_serve();
    assert_eq!(world.json(&["status"])["status"]["kind"], "headless");
    world.create("fix-login");
    world.commit("fix-login", "One");
    let started = world.box_ok("fix-login", "stat -c %Y /proc/1");
    let mut headless = world.take_host();
    world.start_desktop();
    eventually(SOON, "the headless host making room", || headless.try_wait().unwrap());
    assert_eq!(world.json(&["status"])["status"]["kind"], "desktop");
    assert_eq!(world.box_ok("fix-login", "stat -c %Y /proc/1"), started, "the box was restarted");
    let push = world.push("fix-login");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    assert_eq!(push.end().code, Some(0));
    // A second desktop finds the first, and leaves.
    let second = world.command(world.program("agentbox-desktop")).status().unwrap();
    assert_eq!(second.code(), Some(0));
}

#[test]
fn quit_in_the_tray_ends_the_host_and_leaves_the_boxes() {
    let mut world = World::desktop();
    world.create("fix-login");
    world.tray().click(&["Quit AgentBox"], SOON);
    world.await_host_end();
    world.start_desktop();
    eventually(SOON, "the box still running", || {
        (world.json(&["list"])["boxes"][0]["state"] == "running").then_some(())
    });
}
