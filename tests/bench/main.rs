//! The numbers of `docs/promises.md`, as ratios within one run on one machine.
//!
//! `make bench` runs it on a release build, as an unprivileged person, with the real engine and
//! desktop. It asserts nothing: a busy machine makes every absolute time meaningless, and a person
//! reads the ratios. `bench supervisor`, `boxes`, `relay`, `egress` and `desktop` measure one part.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../e2e/world.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod world;

mod boxes;
mod desktop;
mod egress;
mod measure;
mod raw;
mod relay;
mod supervisor;

use measure::{headings, measured, memory, row, timed};
use raw::Raw;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use world::World;

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    headings();
    if wanted("supervisor") {
        supervisor::run();
    }
    if wanted("egress") {
        egress::run();
    }
    // The first needs neither an engine nor a host, the second a host of its own.
    if matches!(only.as_deref(), Some("supervisor" | "egress")) {
        return;
    }
    let raw = Raw::connect();
    let world = relay::world();
    let image = world.create("warm-up")["image"].as_str().unwrap().to_owned();
    let fresh = measured(world.host_pid().as_raw());
    if wanted("boxes") {
        boxes::run(&world, &raw, &image);
    }
    if wanted("relay") {
        refusal(&world);
        start(&world);
        landing(&world);
        relay::run(&world);
    }
    println!();
    println!("{:<46} {:>10} {:>10} {:>7} {:>8}", "memory, idle", "RSS", "PSS", "", "budget");
    memory("agentbox serve, one box", &fresh, "20 MB");
    memory("  after all of the above", &measured(world.host_pid().as_raw()), "30 MB");
    drop(world);
    if wanted("desktop") {
        desktop::run();
    }
}

/// A refused fetch over a box's socket, against an echo of the same bytes.
fn refusal(world: &World) {
    let token = world.box_ok("warm-up", "cat /run/agentbox/token");
    let dir = world.home().join("run/boxes");
    let dir = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    let body = r#"{"method":"git.fetch","params":{"args":["--upload-pack=x"]}}"#;
    let request = format!(
        "POST /rpc HTTP/1.1\r\nhost: agentbox\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let echo = world.dir().join("echo.sock");
    let listener = UnixListener::bind(&echo).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            stream.write_all(&text).unwrap();
        }
    });
    let (mut ours, mut floor) = (vec![], vec![]);
    // Below the burst a box is allowed.
    for _ in 0..50 {
        ours.push(timed(|| {
            let reply = round_trip(&dir.join("relay.sock"), &request, false);
            assert!(reply.contains("\"exitCode\":65"), "{reply}");
        }));
        floor.push(timed(|| drop(round_trip(&echo, &request, true))));
    }
    row("refused git fetch over relay.sock, audited", ours, floor, "-");
}

fn round_trip(socket: &Path, text: &str, half_close: bool) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    if half_close {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// The in-box program, which stands before every `git` an agent runs.
fn start(world: &World) {
    let run = |program: &Path, args: &[&str]| {
        timed(|| {
            let status = Command::new(program).args(args).stdout(Stdio::null()).status();
            assert!(status.unwrap().success());
        })
    };
    let ctl = world.program("box/agentbox-ctl");
    let (mut ours, mut floor) = (vec![], vec![]);
    for _ in 0..300 {
        ours.push(run(&ctl, &["--version"]));
        floor.push(run(Path::new("/bin/true"), &[]));
    }
    row("agentbox-ctl --version vs. /bin/true", ours, floor, "1.5");
}

/// A commit in a box until it is in the host's repository.
fn landing(world: &World) {
    let mut ours = vec![];
    for n in 0..5 {
        let oid = world.commit("warm-up", &format!("Change {n}"));
        ours.push(timed(|| {
            agentbox_e2e::wait::eventually(
                Duration::from_secs(10),
                "the commit on the host",
                || {
                    let mut git = world.command("git");
                    let git = git.current_dir(world.project()).args([
                        "rev-parse",
                        "-q",
                        "agentbox/warm-up",
                    ]);
                    let seen = git.output().unwrap();
                    (String::from_utf8_lossy(&seen.stdout).trim() == oid).then_some(())
                },
            );
        }));
    }
    row("commit in a box until it is on the host", ours, vec![], "2 s");
}
