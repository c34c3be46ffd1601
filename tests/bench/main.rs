//! The numbers of `docs/promises.md`, as ratios within one run on one machine.
//!
//! `make bench` runs it on a release build, as an unprivileged person, with the real engine and
//! desktop. It asserts nothing: a busy machine makes every absolute time meaningless, and a person
//! reads the ratios.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../e2e/world.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod world;

mod relay;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, NetworkCreateRequest};
use bollard::query_parameters as query;
use futures_util::StreamExt;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use world::World;

fn main() {
    println!("{:<46} {:>10} {:>10} {:>7} {:>8}", "what", "ours", "floor", "ratio", "budget");
    let world = relay::world();
    let image = world.create("warm-up")["image"].as_str().unwrap().to_owned();
    create(&world, &image);
    refusal(&world);
    start(&world);
    landing(&world);
    stop(&world, &image);
    let fresh = measured(world.host_pid().as_raw());
    relay::run(&world);
    println!();
    println!("{:<46} {:>10} {:>10} {:>7} {:>8}", "memory, idle", "RSS", "PSS", "", "budget");
    memory("agentbox serve, one box", &fresh, "20 MB");
    memory("  after 100 000 calls and more", &measured(world.host_pid().as_raw()), "30 MB");
    drop(world);
    let desktop = World::desktop();
    memory("agentbox-desktop, window closed", &measured(desktop.host_pid().as_raw()), "70 MB");
}

/// A folder to a running box, against the bare engine calls it cannot do without.
fn create(world: &World, image: &str) {
    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..7 {
        let name = format!("bench-{n}");
        ours.push(timed(|| drop(world.ok(&["create", "-n", &name]))));
        world.ok(&["destroy", "-y", &name]);
        floor.push(raw_box(image, &format!("agentbox-floor-{n}")).0);
    }
    row("create a box, small repository", ours, floor, "1.2");
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

/// Stopping an idle box, against the engine stopping a container whose PID 1 leaves at once.
fn stop(world: &World, image: &str) {
    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..3 {
        ours.push(timed(|| drop(world.ok(&["stop", "warm-up"]))));
        world.ok(&["start", "warm-up"]);
        floor.push(raw_box(image, &format!("agentbox-stop-{n}")).1);
    }
    row("stop an idle box", ours, floor, "0.5 s");
}

/// Network, container, start, one exec; then stop and removal. The time up to the exec's end, and of
/// the stop.
fn raw_box(image: &str, name: &str) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = world::docker().await.expect("an engine");
        let begun = Instant::now();
        let network = NetworkCreateRequest { name: name.to_owned(), ..Default::default() };
        docker.create_network(network).await.unwrap();
        let spec = ContainerCreateBody {
            image: Some(image.to_owned()),
            host_config: Some(HostConfig {
                network_mode: Some(name.to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let options = query::CreateContainerOptionsBuilder::default().name(name).build();
        docker.create_container(Some(options), spec).await.unwrap();
        docker.start_container(name, None::<query::StartContainerOptions>).await.unwrap();
        exec_true(&docker, name).await;
        let up = begun.elapsed();
        let begun = Instant::now();
        docker.stop_container(name, None::<query::StopContainerOptions>).await.unwrap();
        let down = begun.elapsed();
        let force = query::RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        docker.remove_container(name, Some(force)).await.unwrap();
        docker.remove_network(name).await.unwrap();
        (up, down)
    })
}

async fn exec_true(docker: &Docker, name: &str) {
    let config = bollard::models::ExecConfig {
        cmd: Some(vec!["/bin/true".into()]),
        attach_stdout: Some(true),
        ..Default::default()
    };
    let exec = docker.create_exec(name, config).await.unwrap();
    let started = docker.start_exec(&exec.id, None).await.unwrap();
    if let bollard::exec::StartExecResults::Attached { mut output, .. } = started {
        while output.next().await.is_some() {}
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

fn row(what: &str, ours: Vec<Duration>, floor: Vec<Duration>, budget: &str) {
    let (ours, floor) = (median(ours).unwrap(), median(floor));
    let ratio =
        floor.map_or("-".to_owned(), |f| format!("{:.2}×", ours.as_secs_f64() / f.as_secs_f64()));
    let floor = floor.map_or("-".to_owned(), shown);
    println!("{what:<46} {:>10} {floor:>10} {ratio:>7} {budget:>8}", shown(ours));
}

fn shown(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// What a process keeps when it has had nothing to do for a moment: resident, proportional.
fn measured(pid: i32) -> [String; 2] {
    std::thread::sleep(Duration::from_secs(3));
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    ["Rss:", "Pss:"].map(|name| {
        let line = rollup.lines().find(|l| l.starts_with(name)).unwrap();
        let kb: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        format!("{:.1} MB", kb / 1024.0)
    })
}

fn memory(what: &str, [resident, proportional]: &[String; 2], budget: &str) {
    println!("{what:<46} {resident:>10} {proportional:>10} {:>7} {budget:>8}", "");
}
