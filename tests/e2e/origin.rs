//! One address on both sides: what a person's browser shows is what a browser in the box shows.

use crate::urls::{ask, expect, free_port, serve, world};
use crate::world::{SOON, World, text};
use agentbox_e2e::session::Options;
use agentbox_e2e::wait::eventually_or;
use agentbox_e2e::webdriver::Browser;

/// What a program in the box gets at an address.
#[track_caller]
fn inside(world: &World, name: &str, url: &str, body: &str) {
    eventually_or(SOON, &format!("“{body}” at {url} in {name}"), || {
        let output = world.in_box(name, &format!("curl -sm 5 {url}"));
        let said = text(&output.stdout);
        if said.trim_end() == body { Ok(()) } else { Err(format!("{said}{}", output.status)) }
    });
}

#[test]
fn a_box_reaches_its_own_web_app_at_the_address_a_person_has() {
    let (mut world, port) = world("");
    world.create("mirror");
    world.create("away");
    serve(&world, "mirror", "0.0.0.0", 80, "app");
    serve(&world, "mirror", "127.0.0.1", 3000, "dev");
    serve(&world, "away", "0.0.0.0", 80, "away");
    for (host, says) in [("mirror.localhost", "app"), ("3000-mirror.localhost", "dev")] {
        let host = format!("{host}:{port}");
        let body = format!("{says} for {host}");
        expect(port, &host, &body);
        inside(&world, "mirror", &format!("http://{host}"), &body);
    }
    // By whatever looks names up, too.
    let url = format!("http://mirror.localhost:{port}/");
    let by_perl = "use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0]) or die $@; print \"in\"";
    let there = format!("perl -e '{by_perl}' mirror.localhost:{port}");
    assert_eq!(world.box_ok("mirror", &there), "in");
    // Nobody else's: not another box's, not the host's, and not from outside.
    let code = "curl -sm 5 -o /dev/null -w '%{http_code}'";
    assert_eq!(world.box_ok("mirror", &format!("{code} http://away.localhost:{port}")), "421");
    assert_eq!(world.box_ok("mirror", &format!("{code} http://localhost:{port}")), "421");
    assert_eq!(
        world.box_ok("mirror", &format!("{code} http://4999-mirror.localhost:{port}")),
        "502"
    );
    let listening = world.box_ok("mirror", "cat /proc/net/tcp");
    let local = format!("0100007F:{port:04X} 00000000");
    let any = format!("00000000:{port:04X} 00000000");
    assert!(listening.contains(&local) && !listening.contains(&any), "{listening}");

    // A host that comes back on another port brings the address along.
    let moved = free_port();
    world.kill_host();
    world.configure(&format!("proxy: {{port: {moved}}}\n"));
    world.start_serve();
    let host = format!("mirror.localhost:{moved}");
    expect(moved, &host, &format!("app for {host}"));
    inside(&world, "mirror", &format!("http://{host}"), &format!("app for {host}"));
    eventually_or(SOON, "the old address being gone", || {
        let old = world.in_box("mirror", &format!("curl -sm 5 {url}"));
        if old.status.success() { Err(text(&old.stdout)) } else { Ok(()) }
    });
}

#[test]
fn two_names_that_would_share_an_address_are_not_given() {
    let (world, port) = world("");
    world.create("tax");
    for taken in ["3000-tax", "vnc-tax"] {
        let refused = world.agentbox(&["create", "-n", taken]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("the box tax") && said.contains("--name"), "{said}");
    }
    // A number is a name like another where nobody has that address.
    world.create("123-login");
    let refused = world.agentbox(&["create", "-n", "login"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    serve(&world, "123-login", "0.0.0.0", 80, "numbered");
    let host = format!("123-login.localhost:{port}");
    expect(port, &host, &format!("numbered for {host}"));
}

#[test]
fn a_box_that_is_gone_leaves_nothing_in_the_browser_for_the_next_of_its_name() {
    let port = free_port();
    let mut world = World::desktop_before(Options::default());
    world.configure(&format!("proxy: {{port: {port}}}\n"));
    world.start_serve();
    let (host, browser) = (format!("ghost.localhost:{port}"), Browser::plain(world.session()));
    let visit = |says: &str| {
        world.create("ghost");
        serve(&world, "ghost", "0.0.0.0", 80, says);
        expect(port, &host, &format!("{says} for {host}"));
        browser.go_to(&format!("http://{host}/"));
        let kept = browser.execute("return localStorage.getItem('kept')", &[]);
        browser.execute("localStorage.setItem('kept', 'by the first')", &[]);
        kept
    };
    assert_eq!(visit("first"), serde_json::Value::Null);
    browser.go_to(&format!("http://{host}/again"));
    assert_eq!(browser.execute("return localStorage.getItem('kept')", &[]), "by the first");
    world.ok(&["destroy", "ghost", "--yes"]);
    let gone = ask(port, &host, "");
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    assert!(gone.to_lowercase().contains("\r\nclear-site-data: \"*\"\r\n"), "{gone}");
    browser.go_to(&format!("http://{host}/"));
    assert_eq!(browser.title(), "No box of that name");
    assert_eq!(visit("second"), serde_json::Value::Null, "what the first box kept is still there");
}

/// A page in the box's own browser has the origin it has on the host.
#[test]
fn the_browser_in_a_box_shows_the_web_app_under_the_same_origin() {
    let port = free_port();
    let mut world = World::bare();
    world.configure(&format!("box: {{stage: full}}\nproxy: {{port: {port}}}\n"));
    world.start_serve();
    world.create("viewer");
    let page = "<!doctype html><title>x</title><script>document.title = location.origin + ' ' + (window.isSecureContext ? 'secure' : 'plain')</script>";
    world.box_ok("viewer", &format!("mkdir -p /tmp/site && cat > /tmp/site/index.html <<'E'\n{page}\nE\ncd /tmp/site && setsid python3 -m http.server 80 >/dev/null 2>&1 &"));
    let install = "sudo apt-get -qq update && sudo DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1";
    world.box_ok("viewer", install);
    let url = world.ok(&["url", "viewer", "--print"]);
    assert_eq!(url, format!("http://viewer.localhost:{port}\n"));
    let dump = format!(
        "chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom {}",
        url.trim()
    );
    let shown = format!("<title>http://viewer.localhost:{port} secure</title>");
    eventually_or(4 * SOON, "the page", || {
        let output = world.in_box("viewer", &dump);
        let dom = text(&output.stdout);
        if dom.contains(&shown) { Ok(()) } else { Err(dom + &text(&output.stderr)) }
    });
}
