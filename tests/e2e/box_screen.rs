//! A box's screen as a person sees it: the page of its address, drawn by a real browser.

use crate::image::{full, inspect, published};
use crate::urls::free_port;
use crate::world::{SOON, World, text};
use agentbox_e2e::screen::colour;
use agentbox_e2e::session::Options;
use agentbox_e2e::wait::eventually_or;
use agentbox_e2e::webdriver::Browser;

/// A program of the box that draws on its display: the background in one colour, and a rectangle in
/// the upper left quarter in another. It speaks to the display's server by itself.
const DRAW: &str = r"
import socket, struct, sys
back, front = (int(c, 16) for c in sys.argv[1:3])
s = socket.socket(socket.AF_UNIX); s.connect('/tmp/.X11-unix/X1')
def read(n):
    data = b''
    while len(data) < n: data += s.recv(n - len(data)) or sys.exit('the display hung up')
    return data
s.sendall(struct.pack('<BxHHHHxx', 0x6c, 11, 0, 0, 0))
head = read(8); setup = read(4 * struct.unpack('<H', head[6:8])[0])
assert head[0] == 1, setup
base = struct.unpack('<I', setup[4:8])[0]
vendor = struct.unpack('<H', setup[16:18])[0]
at = 32 + (vendor + 3) // 4 * 4 + 8 * setup[21]
root = struct.unpack('<I', setup[at:at + 4])[0]
s.sendall(struct.pack('<BxHIII', 2, 4, root, 2, back))
s.sendall(struct.pack('<BBHIhhHH', 61, 0, 4, root, 0, 0, 0, 0))
s.sendall(struct.pack('<BxHIIII', 55, 5, base, root, 4, front))
s.sendall(struct.pack('<BxHIIhhHH', 70, 5, root, base, 0, 0, 640, 400))
s.sendall(struct.pack('<BxH', 43, 1)); read(32)
";

fn draw(world: &World, name: &str, back: &str, front: &str) {
    world.box_ok(
        name,
        &format!("cat > /tmp/draw.py <<'E'\n{DRAW}\nE\npython3 /tmp/draw.py {back} {front}"),
    );
}

/// Waits until the canvas shows the rectangle and the background around it.
#[track_caller]
fn shows(browser: &Browser, back: &str, front: &str, picture: &str) {
    eventually_or(2 * SOON, &format!("{front} on {back}"), || {
        let canvas = browser.find("canvas", SOON);
        let [left, top, width, height] = browser.place(&canvas);
        let shot = browser.shoot(picture);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a page's dots")]
        let at =
            |x: f64, y: f64| colour(&shot, (left + width * x) as u32, (top + height * y) as u32);
        let seen = [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)];
        let wanted = [front, back, back, back].map(|colour| format!("#{colour}"));
        if seen == wanted { Ok(()) } else { Err(format!("{seen:?} at {width}x{height}")) }
    });
}

#[test]
fn a_screen_is_drawn_by_a_browser_at_the_address_that_is_printed() {
    let port = free_port();
    let mut world = World::desktop_before(Options::default());
    world.configure(&format!("box: {{stage: desktop}}\nproxy: {{port: {port}}}\n"));
    world.start_serve();
    world.create("canvas");
    draw(&world, "canvas", "ff7700", "0044aa");
    let url = world.ok(&["screen", "canvas", "--print"]);
    assert!(url.starts_with(&format!("http://canvas.vnc.localhost:{port}/vnc.html#")), "{url}");
    let browser = Browser::plain(world.session());
    browser.go_to(url.trim());
    shows(&browser, "ff7700", "0044aa", "box-screen");
    // It is alive: what the box draws next is seen without doing anything.
    draw(&world, "canvas", "117733", "eecc66");
    shows(&browser, "117733", "eecc66", "box-screen-later");

    // What a browser is given as an argument is a ticket, and it is good for one visit.
    let log = world.dir().join("opened");
    world.host_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" > {}\n", log.display()));
    world.ok(&["screen", "canvas"]);
    let ticket = std::fs::read_to_string(&log).unwrap().trim().to_owned();
    assert!(!ticket.contains('#') && !ticket.contains("password"), "{ticket}");
    browser.go_to("about:blank");
    browser.go_to(&ticket);
    shows(&browser, "117733", "eecc66", "box-screen-by-ticket");
    browser.go_to("about:blank");
    browser.go_to(&ticket);
    eventually_or(SOON, "the page about a used link", || {
        let title = browser.title();
        if title == "This link has been used" { Ok(()) } else { Err(title) }
    });
}

/// Nothing is published of such a box: the screen comes by the channel.
#[test]
fn a_screen_of_a_box_without_a_network_is_drawn_all_the_same() {
    let port = free_port();
    let mut world = World::desktop_before(Options::default());
    let settings = "box: {stage: desktop}\negress: {mode: locked}\n";
    world.configure(&format!("{settings}proxy: {{port: {port}}}\n"));
    world.start_serve();
    world.create("shut");
    assert!(published(&inspect("shut")).is_empty());
    draw(&world, "shut", "ff7700", "0044aa");
    let url = world.ok(&["screen", "shut", "--print"]);
    let browser = Browser::plain(world.session());
    browser.go_to(url.trim());
    shows(&browser, "ff7700", "0044aa", "box-screen-shut");
}

#[track_caller]
fn has_no_screen(world: &World, name: &str) {
    for args in [&["screen", name][..], &["screen", name, "--print"]] {
        let refused = world.agentbox(args);
        assert_eq!(refused.status.code(), Some(1));
        assert!(refused.stdout.is_empty(), "{refused:?}");
        let said = text(&refused.stderr);
        assert!(said.contains("VNC is disabled") && said.contains("hint: "), "{said}");
    }
}

/// Nor has a box of an image that has no screen for any box.
#[test]
fn boxes_16_48_a_box_of_the_smallest_image_has_no_screen_and_says_so() {
    let world = World::headless();
    world.create("eyeless");
    has_no_screen(&world, "eyeless");
    let ports = published(&inspect("eyeless"));
    assert!(!ports.iter().any(|(inner, _, _)| inner == "6080/tcp"), "{ports:?}");
    world.ok(&["stop", "eyeless"]);
    has_no_screen(&world, "eyeless");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "stopped", "it is not started for that");
}

#[test]
fn boxes_16_48_a_box_without_a_screen_says_so() {
    let world = full("");
    world.json(&["create", "-n", "sightless", "--no-vnc"]);
    has_no_screen(&world, "sightless");
    world.ok(&["stop", "sightless"]);
    has_no_screen(&world, "sightless");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "stopped", "it is not started for that");
}

/// In the window itself, which decodes it without a browser's help.
#[test]
fn a_screen_is_drawn_in_the_window() {
    let mut world = World::desktop_before(Options::default());
    world.configure("box: {stage: desktop}\n");
    world.start_serve();
    let made = world.create("inwin");
    draw(&world, "inwin", "ff7700", "0044aa");
    let page = format!("box/{}/screen", made["id"].as_str().unwrap());
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", &page]);
    shows(&window, "ff7700", "0044aa", "window-box-screen");
    draw(&world, "inwin", "117733", "eecc66");
    shows(&window, "117733", "eecc66", "window-box-screen-later");
}
