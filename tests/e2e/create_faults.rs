//! Whatever breaks while a box is made, nothing of it is left.
//!
//! Between the host and the engine stands a go-between that cuts the line, or holds a request, at the
//! step a test names.

use crate::world::{Running, SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use bollard::query_parameters as query;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex};

/// The steps of a create that the engine has a part in, by its requests.
pub const STEPS: [&[&str]; 5] = [
    &["POST", "/networks/create"],
    &["POST", "/containers/create"],
    &["POST", "/containers/", "/start"],
    &["POST", "/containers/", "/exec"],
    &["POST", "/exec/", "/start"],
];

#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    /// The engine never hears of it.
    Before,
    /// The engine does it, and nobody hears of that.
    After,
    /// The request waits.
    Hold,
}

#[derive(Default)]
struct State {
    fault: Option<(&'static [&'static str], Fault)>,
    hit: bool,
    down: bool,
    held: bool,
    open: Vec<UnixStream>,
    /// Every request so far: method and path.
    requests: Vec<String>,
}

/// The go-between.
pub struct Between {
    state: Arc<(Mutex<State>, Condvar)>,
    pub path: String,
}

impl Between {
    /// Before the usual engine.
    pub fn new(world: &World) -> Self {
        Self::before(
            world,
            &std::env::var("DOCKER_HOST").unwrap_or("unix:///var/run/docker.sock".into()),
        )
    }

    pub fn before(world: &World, engine: &str) -> Self {
        let path = world.dir().join("engine.sock");
        let engine = engine.trim_start_matches("unix://").to_owned();
        let listener = UnixListener::bind(&path).unwrap();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (shared, engine) = (shared.clone(), engine.clone());
                std::thread::spawn(move || serve(client, &engine, &shared));
            }
        });
        Self { state, path: format!("unix://{}", path.display()) }
    }

    pub fn arm(&self, step: &'static [&'static str], fault: Fault) {
        let held = fault == Fault::Hold;
        let mut state = self.state.0.lock().unwrap();
        *state = State {
            fault: Some((step, fault)),
            held,
            open: std::mem::take(&mut state.open),
            ..State::default()
        };
    }

    pub fn was_hit(&self) -> bool {
        self.state.0.lock().unwrap().hit
    }

    /// What the engine was asked since the last time, the method and the path of each.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.0.lock().unwrap().requests)
    }

    pub fn restore(&self) {
        let mut state = self.state.0.lock().unwrap();
        state.down = false;
        state.held = false;
        state.fault = None;
        self.state.1.notify_all();
    }
}

fn serve(mut client: UnixStream, engine: &str, shared: &Arc<(Mutex<State>, Condvar)>) {
    let mut first = vec![0; 64 * 1024];
    let Ok(count) = client.read(&mut first) else { return };
    let line = String::from_utf8_lossy(&first[..count]);
    let line = line.lines().next().unwrap_or_default().split(" HTTP").next().unwrap_or_default();
    let line = line.split('?').next().unwrap_or_default().to_owned();
    let mut cut_after = false;
    {
        let mut state = shared.0.lock().unwrap();
        if state.down {
            return;
        }
        state.requests.push(line.clone());
        if let Some((words, fault)) = state.fault
            && line.starts_with(words[0])
            && words.iter().all(|word| line.contains(word))
            && line.ends_with(words[words.len() - 1])
        {
            state.hit = true;
            state.fault = None;
            match fault {
                Fault::Before => return cut(&mut state),
                Fault::After => cut_after = true,
                Fault::Hold => {
                    drop(shared.1.wait_while(state, |state| state.held).unwrap());
                    state = shared.0.lock().unwrap();
                }
            }
        }
        state.open.push(client.try_clone().unwrap());
    }
    let Ok(mut engine) = UnixStream::connect(engine) else { return };
    engine.write_all(&first[..count]).unwrap();
    if cut_after {
        // The engine answers, so it has done it; nobody hears.
        let _ = engine.read(&mut first);
        return cut(&mut shared.0.lock().unwrap());
    }
    let (mut from, mut to) = (client.try_clone().unwrap(), engine.try_clone().unwrap());
    let up = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut engine, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
}

fn cut(state: &mut State) {
    state.down = true;
    for stream in state.open.drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Everything of the project's repository that is the person's.
pub fn repository(world: &World) -> String {
    let script = "find .git -type f -not -path '.git/objects/*' -not -path '*/agentbox/*' -exec sha256sum {} + | sort; \
                  git for-each-ref refs/heads refs/remotes refs/tags refs/stash";
    let output = world.command("sh").current_dir(world.project()).args(["-c", script]).output();
    text(&output.unwrap().stdout)
}

/// What is left of boxes of the project: on the engine, in the repository, in the home.
pub fn left(world: &World) -> Vec<String> {
    let root = world.project().canonicalize().unwrap();
    let label = format!("agentbox.project={}", ::boxes::project::project_hash(&root));
    let filters = HashMap::from([("label".to_owned(), vec![label])]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut left: Vec<String> = runtime.block_on(async {
        let docker = world.docker().await.unwrap();
        let all =
            query::ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let containers = docker.list_containers(Some(all)).await.unwrap();
        let all = query::ListNetworksOptionsBuilder::default().filters(&filters).build();
        let networks = docker.list_networks(Some(all)).await.unwrap();
        let all = query::ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = docker.list_volumes(Some(all)).await.unwrap().volumes.unwrap_or_default();
        let containers = containers.into_iter().map(|c| format!("container {:?}", c.names));
        let networks = networks.into_iter().map(|n| format!("network {:?}", n.name));
        let volumes = volumes.into_iter().map(|v| format!("volume {}", v.name));
        containers.chain(networks).chain(volumes).collect()
    });
    let pins =
        world.git(&world.project(), &["for-each-ref", "--format=%(refname)", "refs/agentbox/"]);
    left.extend(pins.lines().map(str::to_owned));
    for folder in ["run/boxes", "repos", "boxes"] {
        let entries = std::fs::read_dir(world.home().join(folder)).into_iter().flatten().flatten();
        left.extend(entries.map(|entry| entry.path().display().to_string()));
    }
    left
}

pub fn nothing_is_left(world: &World, when: &str) {
    eventually_or(SOON, &format!("nothing being left: {when}"), || match left(world) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}{}", world.host_log())),
    });
}

/// A host that reaches its engine through the go-between.
pub fn world() -> (World, Between) {
    let mut world = World::bare();
    let between = Between::new(&world);
    world.set("DOCKER_HOST", &between.path);
    world.configure("");
    std::fs::write(world.project().join("README.md"), "uncommitted\n").unwrap();
    std::fs::write(world.project().join("untracked"), "x\n").unwrap();
    world.start_serve();
    (world, between)
}

pub fn begin(world: &World) -> Running {
    Running::start(world.agentbox_command(&["create", "-n", "half"]))
}

pub fn works_again(world: &World) {
    eventually_or(SOON, "a box being made", || {
        let output = world.agentbox(&["create", "-n", "half"]);
        if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
    });
    assert_eq!(world.box_ok("half", "git rev-parse --abbrev-ref HEAD"), "agentbox/half");
    world.ok(&["destroy", "-y", "half"]);
}

#[test]
fn an_engine_that_goes_away_at_any_step_leaves_nothing() {
    let (world, between) = world();
    let before = repository(&world);
    for step in STEPS {
        for fault in [Fault::Before, Fault::After] {
            between.arm(step, fault);
            let ended = begin(&world).end();
            assert_ne!(ended.code, Some(0), "{step:?}");
            assert!(between.was_hit(), "{step:?}: {}", ended.err);
            between.restore();
            nothing_is_left(&world, &format!("{step:?}"));
            assert_eq!(repository(&world), before, "{step:?}");
        }
    }
    works_again(&world);
}

#[test]
fn a_host_that_is_killed_at_any_step_leaves_nothing() {
    let (mut world, between) = world();
    let before = repository(&world);
    for step in STEPS {
        between.arm(step, Fault::Hold);
        let create = begin(&world);
        eventually(SOON, &format!("{step:?}"), || between.was_hit().then_some(()));
        world.kill_host();
        assert_ne!(create.end().code, Some(0), "{step:?}");
        // The engine gets the request after all.
        between.restore();
        world.start_serve();
        nothing_is_left(&world, &format!("{step:?}"));
        assert_eq!(repository(&world), before, "{step:?}");
    }
    works_again(&world);
}

#[test]
fn a_command_that_is_killed_at_any_step_leaves_nothing() {
    let (world, between) = world();
    let before = repository(&world);
    for step in STEPS {
        between.arm(step, Fault::Hold);
        let create = begin(&world);
        eventually(SOON, &format!("{step:?}"), || between.was_hit().then_some(()));
        create.kill();
        between.restore();
        nothing_is_left(&world, &format!("{step:?}"));
        assert_eq!(repository(&world), before, "{step:?}");
    }
    works_again(&world);
}

/// Waits until so many boxes have a folder of their own.
fn folders(world: &World, count: usize) {
    eventually(SOON, &format!("{count} folders of boxes"), || {
        let now = world.home().join("run/boxes").read_dir().unwrap().count();
        (now == count).then_some(())
    });
}

#[test]
fn boxes_16_30_a_host_killed_while_it_writes_is_back_at_once() {
    let mut world = World::headless();
    world.create("kept");
    for round in 0..5 {
        let name = format!("half-{round}");
        folders(&world, 1);
        let creates: Vec<Running> = (0..3)
            .map(|n| {
                Running::start(world.agentbox_command(&["create", "-n", &format!("{name}-{n}")]))
            })
            .collect();
        // Each has reached the host by then; one that has not would start a host of its own.
        folders(&world, 4);
        world.kill_host();
        for create in creates {
            create.end();
        }
        world.start_serve();
        let boxes = world.json(&["list"])["boxes"].as_array().unwrap().clone();
        assert!(boxes.iter().any(|b| b["name"] == "kept" && b["state"] == "running"), "{boxes:?}");
        world.ok(&["audit", "verify"]);
        // The next host may be about to clear one away that was half made.
        for made in boxes.iter().filter(|b| b["name"] != "kept") {
            let name = made["name"].as_str().unwrap();
            eventually_or(SOON, &format!("{name} being gone"), || {
                let output = world.agentbox(&["destroy", "-y", name]);
                match output.status.code() {
                    Some(0 | 2) => Ok(()),
                    _ => Err(text(&output.stderr)),
                }
            });
        }
    }
    world.ok(&["destroy", "-y", "kept"]);
    nothing_is_left(&world, "at the end");
}

#[test]
fn a_box_is_made_to_the_end_when_the_window_is_closed_and_taken_back_when_it_is_called_off() {
    let (world, between) = world();
    let client = host::client::Client::new(&world.home());
    let begin = |name: &str| {
        between.arm(STEPS[3], Fault::Hold);
        let create = protocol::control::CreateBox {
            workspace: world.project().display().to_string(),
            name: Some(name.into()),
            goes_on: true,
            ..Default::default()
        };
        let making = client.open(&protocol::control::Request::CreateBox(create)).unwrap();
        eventually(SOON, "the box being made", || between.was_hit().then_some(()));
        making
    };
    let off = begin("win-cancelled");
    off.writer().unwrap().call_off();
    drop(off);
    between.restore();
    nothing_is_left(&world, "called off");

    drop(begin("win-closed"));
    between.restore();
    eventually_or(SOON, "the box of the closed window", || {
        let seen = world.in_box("win-closed", "cat untracked");
        if seen.status.success() { Ok(()) } else { Err(world.host_log()) }
    });
    assert_eq!(world.json(&["list"])["boxes"].as_array().unwrap().len(), 1);
}
