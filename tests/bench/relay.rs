//! The box plane under load: round trips per second and their spread, at one and at sixteen
//! connections, against an echo of the same bytes and against the program run by itself.

use crate::world::World;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long each figure is measured.
const SPAN: Duration = Duration::from_secs(3);

/// A host whose limits are out of the way, with one box; where the box's door is, and its key.
pub struct Door {
    socket: PathBuf,
    token: String,
}

pub fn world() -> World {
    let mut world = World::bare();
    world.configure(
        "relay: {callsPerMinute: 100000000, eventsPerMinute: 100000000}\n\
         integrations: {linear: {enabled: true}}\n",
    );
    world.host_program("linear", "#!/bin/sh\n");
    world.start_serve();
    world
}

impl Door {
    pub fn of(world: &World, name: &str) -> Self {
        let token = world.box_ok(name, "cat /run/agentbox/token");
        let id = world.json(&["list"])["boxes"]
            .as_array()
            .and_then(|all| all.iter().find(|b| b["name"] == name))
            .and_then(|b| b["id"].as_str().map(str::to_owned))
            .expect("the box");
        Self { socket: world.home().join("run/boxes").join(id).join("relay.sock"), token }
    }

    fn request(&self, path: &str, body: &str) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nhost: agentbox\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
    }
}

pub fn run(world: &World) {
    let door = Door::of(world, "warm-up");
    let refused =
        door.request("/rpc", r#"{"method":"git.fetch","params":{"args":["--upload-pack=x"]}}"#);
    let event = door.request("/events", r#"{"type":"tick","payload":{"n":1}}"#);
    let spawned = door.request("/rpc", r#"{"method":"integration.linear.team.list"}"#);
    let echo = echo(world.dir());

    println!();
    println!(
        "{:<34} {:>5} {:>10} {:>9} {:>9} {:>7} {:>14}",
        "relay", "conns", "calls/s", "p50", "p99", "ratio", "budget"
    );
    for connections in [1, 16] {
        let floor = load(&echo, &event, "200", connections, SPAN);
        line("an echo of the same bytes", connections, &floor, None, "-");
        let seen = load(&door.socket, &refused, "\"exitCode\":65", connections, SPAN);
        line("a refused call", connections, &seen, Some(&floor), "-");
        let seen = load(&door.socket, &event, "202", connections, SPAN);
        let budget = if connections == 16 { "70 000/s, 1 ms" } else { "-" };
        line("an event", connections, &seen, Some(&floor), budget);
        let floor = alone(&world.dir().join("bin/linear"), connections);
        line("a trivial script, run alone", connections, &floor, None, "-");
        let seen = load(&door.socket, &spawned, "\"exitCode\":0", connections, SPAN);
        let budget = if connections == 16 { "1 500/s" } else { "1.6×" };
        line("the script by the relay, audited", connections, &seen, Some(&floor), budget);
    }
    let begun = Instant::now();
    count(&door.socket, &event, "202", 16, 10_000);
    println!("10 000 events, 16 connections: {} ms", begun.elapsed().as_millis());
    wait_until_written(world);
    println!("  and the newest on disk after {} ms", begun.elapsed().as_millis());
    count(&door.socket, &refused, "\"exitCode\":65", 16, 50_000);
    count(&door.socket, &event, "202", 16, 50_000);
}

fn wait_until_written(world: &World) {
    let newest = world.json(&["events", "-n", "1"])["events"][0]["id"].as_u64().unwrap_or(0);
    let db = world.home().join("agentbox.db");
    agentbox_e2e::wait::eventually(Duration::from_secs(30), "events on disk", || {
        let sql = "SELECT value FROM meta WHERE key = 'last-event'";
        let read = Command::new("python3")
            .args(["-c", "import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])"])
            .arg(&db)
            .arg(sql)
            .output()
            .ok()?;
        let last: u64 = String::from_utf8_lossy(&read.stdout).trim().parse().ok()?;
        (last >= newest).then_some(())
    });
}

pub struct Seen {
    pub per_second: f64,
    times: Vec<Duration>,
}

impl Seen {
    pub fn new(mut times: Vec<Duration>, span: Duration) -> Self {
        times.sort();
        #[allow(clippy::cast_precision_loss, reason = "a few million at most")]
        let per_second = times.len() as f64 / span.as_secs_f64();
        Self { per_second, times }
    }

    pub fn at(&self, percent: usize) -> Duration {
        let at = (self.times.len() * percent / 100).min(self.times.len() - 1);
        self.times[at]
    }
}

fn line(what: &str, connections: usize, seen: &Seen, floor: Option<&Seen>, budget: &str) {
    let ratio = floor.map_or("-".to_owned(), |f| {
        format!("{:.2}×", seen.at(50).as_secs_f64() / f.at(50).as_secs_f64())
    });
    let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1000.0);
    println!(
        "{what:<34} {connections:>5} {:>10.0} {:>9} {:>9} {ratio:>7} {budget:>14}",
        seen.per_second,
        ms(seen.at(50)),
        ms(seen.at(99))
    );
}

/// The same request over and over on connections that stay open.
fn load(socket: &Path, request: &str, wanted: &str, connections: usize, span: Duration) -> Seen {
    let begun = Instant::now();
    let times = on(connections, || {
        let mut line = Line::open(socket);
        let mut times = Vec::new();
        while begun.elapsed() < span {
            let at = Instant::now();
            line.ask(request, wanted);
            times.push(at.elapsed());
        }
        times
    });
    Seen::new(times, begun.elapsed())
}

fn count(socket: &Path, request: &str, wanted: &str, connections: usize, calls: usize) {
    on(connections, || {
        let mut line = Line::open(socket);
        (0..calls / connections).for_each(|_| line.ask(request, wanted));
        Vec::new()
    });
}

fn alone(program: &Path, connections: usize) -> Seen {
    let begun = Instant::now();
    let times = on(connections, || {
        let mut times = Vec::new();
        while begun.elapsed() < SPAN {
            let at = Instant::now();
            let output = Command::new(program).args(["team", "list"]).stdin(Stdio::null()).output();
            assert!(output.unwrap().status.success());
            times.push(at.elapsed());
        }
        times
    });
    Seen::new(times, begun.elapsed())
}

fn on(connections: usize, work: impl Fn() -> Vec<Duration> + Sync) -> Vec<Duration> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

/// One connection that is used again and again.
struct Line {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Line {
    fn open(socket: &Path) -> Self {
        Self { stream: UnixStream::connect(socket).unwrap(), buffer: vec![0; 64 * 1024] }
    }

    fn ask(&mut self, request: &str, wanted: &str) {
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).unwrap();
            filled += read;
            let text = String::from_utf8_lossy(&self.buffer[..filled]);
            if read == 0 || is_whole(&text) {
                assert!(text.contains(wanted), "{text}");
                return;
            }
        }
    }
}

fn is_whole(reply: &str) -> bool {
    let Some((head, body)) = reply.split_once("\r\n\r\n") else { return false };
    let length = head.to_ascii_lowercase();
    let length =
        length.lines().find_map(|l| l.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

/// A server that answers every request with itself: what sockets and threads cost by themselves.
fn echo(dir: &Path) -> PathBuf {
    let socket = dir.join("load-echo.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {read}\r\n\r\n");
                    let reply = [head.as_bytes(), &buffer[..read]].concat();
                    if stream.write_all(&reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    socket
}
