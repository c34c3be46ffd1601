//! A page of boxes in a terminal: what it shows comes from the host's events, and its keys do what the
//! commands do.

use crate::world::{SOON, World};
use agentbox_e2e::pty::Terminal;
use agentbox_e2e::wait::eventually;

fn state(world: &World, name: &str) -> String {
    let boxes = world.json(&["list"])["boxes"].clone();
    let found = boxes.as_array().unwrap().iter().find(|b| b["name"] == name).unwrap().clone();
    found["state"].as_str().unwrap().to_owned()
}

fn is(world: &World, name: &str, wanted: &str) {
    eventually(SOON, wanted, || (state(world, name) == wanted).then_some(()));
}

#[test]
fn boxes_are_watched_and_worked_with_on_one_page() {
    let world = World::headless();
    world.create("page-one");
    let mut terminal = Terminal::start(world.agentbox_command(&["dashboard"]));
    terminal.shows("› 1  page-one  running");

    // What happens elsewhere shows without a key.
    world.create("page-two");
    terminal.shows("page-two  running");
    terminal.keys("j");
    terminal.shows("› 2  page-two  running");
    terminal.keys("p");
    terminal.shows("› 2  page-two  paused");
    is(&world, "page-two", "paused");

    // A shell has the terminal to itself, and the page comes back when it is left.
    terminal.keys("k\r");
    terminal.shows("vscode@");
    terminal.keys("echo here-$((20 + 3))\r");
    terminal.shows("here-23");
    terminal.keys("exit\r");
    // The page is drawn a second time on the other screen.
    eventually(SOON, "the page again", || {
        let text = terminal.text();
        let after = text.rsplit("here-23").next()?;
        (after.contains("\x1b[?1049h") && after.contains("page-one  running")).then_some(())
    });

    // Stopping takes a second key.
    terminal.keys("x");
    terminal.shows("Stop page-one, and whatever runs in it?");
    assert_eq!(state(&world, "page-one"), "running");
    terminal.keys("y");
    is(&world, "page-one", "stopped");
    terminal.shows("› 1  page-one  stopped");

    terminal.keys("q");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{status}");
    assert!(shown.ends_with("\x1b[?25h\x1b[?1049l"), "the terminal is as it was");
}

#[test]
fn a_dashboard_needs_a_terminal_and_says_what_does_not() {
    let world = World::headless();
    let output = world.agentbox(&["dashboard"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("needs a terminal") && said.contains("agentbox list -w"), "{said}");
}
