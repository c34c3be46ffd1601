//! Boxes by name in a browser, over ssh, and in an editor.

use crate::world::{SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A web server in a box: it says its own name and the Host header, and echoes what it is sent.
const SERVER: &str = r#"
use IO::Socket::INET; $SIG{CHLD} = 'IGNORE';
my $s = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => $ARGV[1], Listen => 50, ReuseAddr => 1) or die $!;
while (1) { my $c = $s->accept or next; next if fork; my ($host, $length) = ('', 0);
  while (my $l = <$c>) { $l =~ s/\r?\n//; last if $l eq ''; $host = $1 if $l =~ /^host: (.*)/i; $length = $1 if $l =~ /^content-length: (\d+)/i }
  read $c, my $body, $length if $length; my $t = "$ARGV[2] for $host" . ($body // '');
  print $c "HTTP/1.1 200 OK\r\nConnection: close\r\nSet-Cookie: a=1; Domain=localhost\r\nContent-Length: " . length($t) . "\r\n\r\n$t"; exit }
"#;

/// A host whose proxy listens on a port of its own.
pub fn world(more: &str) -> (World, u16) {
    let port = free_port();
    let mut world = World::bare();
    world.configure(&format!("proxy: {{port: {port}}}\n{more}"));
    world.start_serve();
    (world, port)
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts the web server in a box.
#[track_caller]
pub fn serve(world: &World, name: &str, address: &str, port: u16, says: &str) {
    world.box_ok(
        name,
        &format!(
            "cat > /tmp/server.pl <<'E'\n{SERVER}\nE\nsetsid perl /tmp/server.pl {address} {port} '{says}' >/dev/null 2>&1 &"
        ),
    );
}

/// One request; the whole answer.
pub fn ask(port: u16, host: &str, more: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    stream.set_read_timeout(Some(SOON)).unwrap();
    // Whoever passes connections on may take one before anybody listens behind it.
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return String::new();
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

#[track_caller]
pub fn expect(port: u16, host: &str, body: &str) -> String {
    eventually_or(SOON, &format!("“{body}” of {host}"), || {
        let answer = ask(port, host, "");
        if answer.ends_with(body) { Ok(answer) } else { Err(answer) }
    })
}

#[test]
fn boxes_16_21_a_web_app_has_one_address_for_as_long_as_its_box() {
    let (world, port) = world("");
    world.create("fix");
    let host = format!("fix.localhost:{port}");
    let url = world.ok(&["url", "fix", "--print"]);
    assert_eq!(url, format!("http://{host}\n"));
    assert!(ask(port, &host, "").starts_with("HTTP/1.1 502"), "nothing listens yet");
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    let answer = expect(port, &host, &format!("hello for {host}"));
    assert!(answer.to_lowercase().contains("set-cookie: a=1\r\n"), "{answer}");
    let listed = world.json(&["list"]);
    assert_eq!(listed["boxes"][0]["web"], url.trim());

    world.ok(&["stop", "fix"]);
    let stopped = ask(port, &host, "Accept: text/html\r\n");
    assert!(stopped.starts_with("HTTP/1.1 503"), "{stopped}");
    assert!(stopped.contains("agentbox start fix"), "{stopped}");
    // Asking for the address brings the box up.
    assert_eq!(world.ok(&["url", "fix", "--print"]), url);
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "running");
    serve(&world, "fix", "0.0.0.0", 80, "again");
    expect(port, &host, &format!("again for {host}"));
}

#[test]
fn a_box_without_a_network_has_its_web_app_at_the_same_address() {
    let (world, port) = world("egress: {mode: locked}\n");
    world.create("shut");
    let host = format!("shut.localhost:{port}");
    assert_eq!(world.ok(&["url", "shut", "--print"]), format!("http://{host}\n"));
    serve(&world, "shut", "0.0.0.0", 80, "hello");
    expect(port, &host, &format!("hello for {host}"));
    world.ok(&["stop", "shut"]);
    world.ok(&["start", "shut"]);
    serve(&world, "shut", "127.0.0.1", 80, "again");
    expect(port, &host, &format!("again for {host}"));
}

#[test]
fn any_port_of_a_box_has_an_address_also_on_its_own_loopback() {
    let (world, port) = world("");
    world.create("fix");
    serve(&world, "fix", "127.0.0.1", 3000, "dev");
    let url = world.ok(&["url", "fix", "--port", "3000", "--print"]);
    let host = format!("3000-fix.localhost:{port}");
    assert_eq!(url, format!("http://{host}\n"));
    expect(port, &host, &format!("dev for {host}"));
    let wrong = world.agentbox(&["url", "fix", "--port", "3000", "--loopback"]);
    assert_eq!(wrong.status.code(), Some(2));
    // A body of some size goes through the engine, too.
    let body = "x".repeat(3_000_000);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(&format!("dev for {host}{body}")), "{} bytes", answer.len());
}

#[test]
fn the_proxy_answers_for_boxes_and_for_nothing_else() {
    let (world, port) = world("");
    world.create("fix");
    world.create("other");
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    let host = format!("fix.localhost:{port}");
    expect(port, &host, &format!("hello for {host}"));
    for foreign in ["localhost", "127.0.0.1", "evil.example", "fix.localhost.evil.example"] {
        let answer = ask(port, foreign, "");
        assert!(answer.starts_with("HTTP/1.1 421"), "{foreign}: {answer}");
    }
    let unknown = ask(port, "nobody.localhost", "Accept: text/html\r\n");
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
    assert!(!unknown.contains("fix") && !unknown.contains("other"), "{unknown}");
    let page = format!("Origin: http://other.localhost:{port}\r\n");
    assert!(ask(port, &host, &page).starts_with("HTTP/1.1 403"), "a page of another box");
    for site in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
    ] {
        let answer = ask(port, &host, site);
        assert!(answer.starts_with("HTTP/1.1 403"), "{site}{answer}");
        assert!(!answer.to_lowercase().contains("access-control-"), "{answer}");
    }
    // Only this computer, and only by names of boxes: nothing of the host's own is there.
    let listening =
        world.command("ss").args(["-Hltn", &format!("sport = :{port}")]).output().unwrap();
    let listening = text(&listening.stdout);
    let local = |line: &str| line.contains("127.0.0.1:") || line.contains("[::1]:");
    assert!(!listening.is_empty() && listening.lines().all(local), "{listening}");
    let reached = world.in_box("fix", &format!("curl -sm 3 http://172.17.0.1:{port}/"));
    assert!(!reached.status.success(), "{}", text(&reached.stdout));
}

#[test]
fn a_paused_box_is_woken_by_a_request() {
    let (world, port) = world("");
    world.create("fix");
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    let host = format!("fix.localhost:{port}");
    expect(port, &host, &format!("hello for {host}"));
    world.ok(&["pause", "fix"]);
    let answer = ask(port, &host, "");
    assert!(answer.ends_with(&format!("hello for {host}")), "{answer}");
    eventually(SOON, "the box running", || {
        (world.json(&["list"])["boxes"][0]["state"] == "running").then_some(())
    });
}

#[test]
fn a_busy_port_is_told_and_the_host_goes_on() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut world = World::bare();
    world.configure(&format!("proxy: {{port: {port}}}\n"));
    world.start_serve();
    let notices = world.json(&["status"])["status"]["notices"].clone();
    let notice = notices.as_array().unwrap().iter().find(|n| n["part"] == "proxy").cloned();
    let notice = notice.unwrap_or_else(|| panic!("{notices}"));
    assert!(notice["message"].as_str().unwrap().contains(&format!("port {port} cannot be used")));
    assert!(notice["hint"].as_str().unwrap().contains("proxy.port"), "{notice}");
    let doctor = text(&world.agentbox(&["doctor"]).stdout);
    assert!(doctor.contains("proxy") && doctor.contains("proxy.port"), "{doctor}");
    world.create("fix");
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    let url = world.ok(&["url", "fix", "--print"]);
    let host = url.trim().strip_prefix("http://").unwrap().to_owned();
    let other: u16 = host.rsplit_once(':').unwrap().1.parse().unwrap();
    assert_ne!(other, port);
    expect(other, &host, &format!("hello for {host}"));
}

#[test]
fn an_address_is_opened_by_the_systems_opener() {
    let (world, port) = world("");
    let log = world.dir().join("opened");
    let script = format!("#!/bin/sh\necho \"$#:$1\" >> {}\n", log.display());
    world.host_program("xdg-open", &script);
    world.create("fix");
    assert_eq!(world.ok(&["url", "fix"]), format!("opened http://fix.localhost:{port}\n"));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), format!("1:http://fix.localhost:{port}\n"));
    world.host_program("xdg-open", "#!/bin/sh\nexit 3\n");
    let failed = world.agentbox(&["url", "fix"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stdout), format!("http://fix.localhost:{port}\n"));
}

#[test]
fn boxes_16_49_an_editor_gets_the_container_and_the_context() {
    let (world, _) = world("");
    world.create("fix");
    let before = world.box_ok("fix", "git status --porcelain");
    let uri = world.ok(&["code", "fix", "--print"]);
    let hex = uri.trim().strip_prefix("vscode-remote://attached-container+").unwrap();
    let hex = hex.strip_suffix("/workspace").unwrap();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let json: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["containerName"], "/agentbox-fix");
    // Tests name their engine by its address, which is in no context; see the unit test for one.
    let named = std::env::var_os("DOCKER_HOST").is_some();
    assert_eq!(json["settings"]["context"].is_null(), named, "{json}");

    let log = world.dir().join("editor");
    world
        .host_program("cursor", &format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", log.display()));
    let unasked = world.agentbox(&["code", "fix", "--ide", "cursor"]);
    assert_eq!(unasked.status.code(), Some(2), "an editor lends a box what the person has");
    assert!(!log.exists());
    world.ok(&["code", "fix", "--ide", "cursor", "--yes"]);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), format!("--folder-uri\n{uri}"));
    world.host_program("code", "#!/bin/sh\nexit 1\n");
    let failed = world.agentbox(&["code", "fix", "-y"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stdout).ends_with(&uri), "{}", text(&failed.stdout));
    assert_eq!(world.box_ok("fix", "git status --porcelain"), before);
}

/// Portless as people have it; its proxy runs until this is dropped.
struct Portless {
    stop: std::process::Command,
    list: std::process::Command,
}

impl Portless {
    #[track_caller]
    fn start(world: &World, port: u16) -> Self {
        let portless = |args: &[&str]| {
            let mut command = world.command("portless");
            command.args(args);
            command
        };
        let start = ["proxy", "start", "--no-tls", "-p", &port.to_string()];
        let output = portless(&start).output().expect("portless; run scripts/deps test");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        Self { stop: portless(&["proxy", "stop"]), list: portless(&["list"]) }
    }

    fn routes(&mut self) -> String {
        text(&self.list.output().unwrap().stdout)
    }
}

impl Drop for Portless {
    fn drop(&mut self) {
        let _ = self.stop.output();
    }
}

#[test]
fn boxes_16_47_portless_gets_routes_when_its_proxy_runs() {
    let (port, outer) = (free_port(), free_port());
    let mut world = World::bare();
    let state = world.dir().join("portless");
    world.set("PORTLESS_STATE_DIR", &state.display().to_string());
    world.configure(&format!("proxy: {{port: {port}}}\n"));
    let mut portless = Portless::start(&world, outer);
    // Somebody's own route of the name of a box to come is left alone.
    assert!(world.command("portless").args(["alias", "mine", "9"]).status().unwrap().success());
    world.start_serve();
    world.create("fix");
    world.create("mine");
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    let host = format!("fix.localhost:{outer}");
    eventually_or(SOON, "the route's address", || {
        let url = world.ok(&["url", "fix", "--print"]);
        if url == format!("http://{host}\n") { Ok(()) } else { Err(url) }
    });
    expect(outer, &host, &format!("hello for {host}"));
    expect(port, &format!("fix.localhost:{port}"), &format!("hello for fix.localhost:{port}"));
    assert_eq!(world.ok(&["url", "mine", "--print"]), format!("http://mine.localhost:{port}\n"));
    assert!(portless.routes().contains("localhost:9 "), "{}", portless.routes());
    // One that the person wants no names for has none there.
    world.ok(&["create", "-n", "unnamed", "--no-portless"]);
    let own = format!("http://unnamed.localhost:{port}\n");
    assert_eq!(world.ok(&["url", "unnamed", "--print"]), own);
    assert!(!portless.routes().contains("unnamed"), "{}", portless.routes());

    // A start gives the box other ports; the route leads to it all the same.
    world.ok(&["stop", "fix"]);
    world.ok(&["start", "fix"]);
    serve(&world, "fix", "0.0.0.0", 80, "again");
    expect(outer, &host, &format!("again for {host}"));

    world.ok(&["destroy", "fix", "--yes"]);
    world.ok(&["destroy", "mine", "--yes"]);
    eventually_or(SOON, "the box's route being removed", || {
        let routes = portless.routes();
        let kept = routes.contains("mine.localhost");
        if kept && !routes.contains("fix.localhost") { Ok(()) } else { Err(routes) }
    });
    // Without its proxy everything works as without the program.
    drop(portless);
    world.create("late");
    assert_eq!(world.ok(&["url", "late", "--print"]), format!("http://late.localhost:{port}\n"));
}

#[test]
fn boxes_16_47_on_orbstack_boxes_have_the_engines_names() {
    let (world, _) = world("engine: {kind: orbstack}\n");
    world.create("fix");
    assert_eq!(world.ok(&["url", "fix", "--print"]), "http://agentbox-fix.orb.local\n");
    let loopback = world.ok(&["url", "fix", "--print", "--loopback"]);
    let port: u16 = loopback.trim().strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap();
    serve(&world, "fix", "0.0.0.0", 80, "hello");
    expect(port, "x", "hello for x");
}
