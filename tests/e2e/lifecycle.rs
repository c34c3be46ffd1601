//! Boxes at rest and back, looked at, and gone for good.

use crate::image::port;
use crate::urls::{self, free_port, serve};
use crate::world::{Running, SOON, World, docker, text};
use agentbox_e2e::wait::{eventually, eventually_or, in_time};
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters as query;
use host::client::Client;
use protocol::control::{Loss, Request, Target};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Asks the engine itself, beside AgentBox.
fn engine<T>(work: impl AsyncFnOnce(Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(docker().await.expect("an engine")).await })
}

fn container(name: &str) -> String {
    format!("agentbox-{name}")
}

/// The engine's own word for a box's state.
fn engine_state(name: &str) -> String {
    engine(async |docker| {
        let options = None::<query::InspectContainerOptions>;
        let seen = docker.inspect_container(&container(name), options).await.unwrap();
        seen.state.unwrap().status.unwrap().to_string()
    })
}

fn labels_of(name: &str) -> HashMap<String, String> {
    engine(async |docker| {
        let options = None::<query::InspectContainerOptions>;
        let seen = docker.inspect_container(&container(name), options).await.unwrap();
        seen.config.unwrap().labels.unwrap()
    })
}

fn remove_container(name: &str) {
    engine(async |docker| {
        let force = query::RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let _ = docker.remove_container(name, Some(force)).await;
    });
}

fn state(world: &World, name: &str) -> String {
    let all = world.json(&["list", "-g"]);
    let found = all["boxes"].as_array().unwrap().iter().find(|b| b["name"] == name).cloned();
    found.unwrap_or_default()["state"].as_str().unwrap_or("none").to_owned()
}

#[track_caller]
fn becomes(world: &World, name: &str, wanted: &str) {
    becomes_within(SOON, world, name, wanted);
}

#[track_caller]
fn becomes_within(limit: Duration, world: &World, name: &str, wanted: &str) {
    eventually_or(limit, &format!("{name} {wanted}"), || match state(world, name) {
        seen if seen == wanted => Ok(()),
        seen => Err(format!("{seen}{}", world.host_log())),
    });
}

fn names(world: &World) -> Vec<String> {
    let all = world.json(&["list", "-g"]);
    let all = all["boxes"].as_array().unwrap().iter();
    all.map(|b| b["name"].as_str().unwrap().to_owned()).collect()
}

// ---- stop, start, pause

#[test]
fn boxes_16_20_a_stop_is_quick_and_services_are_told() {
    let world = World::headless();
    world.create("calm");
    world.box_ok(
        "calm",
        "nohup sh -c 'trap \"echo told > /workspace/told; exit 0\" TERM; touch /workspace/up; \
         while :; do sleep 0.1; done' > /dev/null 2>&1 &",
    );
    eventually(SOON, "the service", || {
        world.in_box("calm", "test -e up").status.success().then_some(())
    });
    in_time(Duration::from_secs(5), "a stop", || {
        let began = Instant::now();
        world.ok(&["stop", "calm"]);
        let took = began.elapsed();
        world.ok(&["stop", "calm"]);
        world.ok(&["start", "calm"]);
        took
    });
    assert_eq!(world.box_ok("calm", "cat told"), "told");
}

/// What the host has on record of a running box's web port is what the engine publishes, wherever it is
/// shown; and the box's name leads there.
#[track_caller]
fn is_at_its_port(world: &World, name: &str, proxy: u16, says: &str) {
    let published = port(name, "80/tcp");
    let loopback = format!("http://127.0.0.1:{published}\n");
    assert_eq!(world.ok(&["url", name, "--loopback", "--print"]), loopback);
    let details = world.json(&["status", name])["details"].clone();
    assert_eq!(details["endpoints"]["web"], published, "{details}");
    let host = format!("{name}.localhost:{proxy}");
    assert_eq!(world.ok(&["url", name, "--print"]), format!("http://{host}\n"));
    serve(world, name, "0.0.0.0", 80, says);
    urls::expect(proxy, &host, &format!("{says} for {host}"));
    urls::expect(published, "itself", &format!("{says} for itself"));
}

#[test]
fn boxes_16_21_a_workspace_and_its_address_are_the_same_after_stop_and_start() {
    let (world, proxy) = urls::world("");
    world.create("same");
    is_at_its_port(&world, "same", proxy, "first");
    world.commit("same", "Kept");
    world.box_ok("same", "echo draft > draft; mkdir -p deep/er; head -c 70000 /dev/urandom > deep/er/x; ln -s draft l; chmod 600 draft");
    let look = "git status --porcelain; git log --format=%H; \
                find . -path ./.git -prune -o -printf '%p %m %u %l\\n' | sort; sha256sum deep/er/x";
    let before = world.box_ok("same", look);
    world.ok(&["stop", "same"]);
    // While it rests its old port may become another box's.
    world.create("between");
    world.ok(&["start", "same"]);
    world.ok(&["start", "same"]);
    assert_eq!(world.box_ok("same", look), before);
    is_at_its_port(&world, "same", proxy, "second");
    is_at_its_port(&world, "between", proxy, "another");
}

#[test]
fn boxes_16_22_a_box_whose_repository_is_gone_is_not_started() {
    let world = World::headless();
    world.create("lost");
    world.ok(&["stop", "lost"]);
    let (git, aside) = (world.project().join(".git"), world.dir().join("aside"));
    std::fs::rename(&git, &aside).unwrap();
    let output = world.agentbox(&["start", "lost"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("main repo for box worktree missing"), "{said}");
    assert_eq!(engine_state("lost"), "exited");
    std::fs::rename(&aside, &git).unwrap();
    world.ok(&["start", "lost"]);
    assert_eq!(engine_state("lost"), "running");
}

#[test]
fn boxes_16_32_a_paused_box_goes_on_when_somebody_touches_it() {
    for channel in ["socket", "exec"] {
        let world = World::over(channel, "");
        world.create("cold");
        world.box_ok(
            "cold",
            "nohup sh -c 'while :; do date +%s%N > /tmp/beat; sleep 0.05; done' > /dev/null 2>&1 &",
        );
        assert_eq!(world.ok(&["pause", "cold"]), "paused cold\n");
        assert_eq!(
            (engine_state("cold").as_str(), state(&world, "cold").as_str()),
            ("paused", "paused")
        );
        world.ok(&["pause", "cold"]);
        assert_eq!(world.ok(&["shell", "cold", "--", "echo", "hi"]), "hi\n");
        assert_eq!(state(&world, "cold"), "running");
        // It goes on where it stood, and reaches the host.
        let beat = world.box_ok("cold", "cat /tmp/beat");
        eventually(SOON, "the next beat", || {
            (world.box_ok("cold", "cat /tmp/beat") != beat).then_some(())
        });
        eventually(SOON, "the box reaching its host", || {
            world.in_box("cold", "agentbox-ctl event hi").status.success().then_some(())
        });
        // By name, twice, and paused or thawed by somebody else.
        world.ok(&["pause", "cold"]);
        assert_eq!(world.ok(&["unpause", "cold"]), "running cold\n");
        world.ok(&["unpause", "cold"]);
        engine(async |docker| docker.pause_container(&container("cold")).await.unwrap());
        becomes(&world, "cold", "paused");
        world.box_ok("cold", "true");
        world.ok(&["pause", "cold"]);
        engine(async |docker| docker.unpause_container(&container("cold")).await.unwrap());
        becomes(&world, "cold", "running");
        // A stopped box cannot be paused, and starting a paused one is as good as thawing it.
        world.ok(&["pause", "cold"]);
        world.ok(&["start", "cold"]);
        assert_eq!(engine_state("cold"), "running");
        world.ok(&["stop", "cold"]);
        let output = world.agentbox(&["pause", "cold"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
}

#[test]
fn several_boxes_are_put_to_rest_at_once_and_each_failure_is_told() {
    let world = World::headless();
    world.create("one");
    world.create("two");
    let output = world.agentbox(&["pause", "one", "nine", "two"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "paused one\npaused two\n");
    assert!(text(&output.stderr).contains("no box matches \"nine\""), "{}", text(&output.stderr));
    let both = world.json(&["unpause", "one", "two"]);
    assert_eq!(both["boxes"].as_array().unwrap().len(), 2, "{both}");
    assert_eq!(world.ok(&["stop", "one", "two"]), "stopped one\nstopped two\n");
    assert_eq!(world.ok(&["start", "two", "one"]), "started two\nstarted one\n");
}

#[test]
fn boxes_16_55_a_box_started_by_others_is_taken_over() {
    for channel in ["socket", "exec"] {
        let proxy = free_port();
        let world = World::over(channel, &format!("proxy: {{port: {proxy}}}\n"));
        world.create("ours");
        let token = world.box_ok("ours", "cat /run/agentbox/token");
        is_at_its_port(&world, "ours", proxy, "first");
        in_time(Duration::from_secs(5), "a box started by others being taken over", || {
            world.ok(&["stop", "ours"]);
            engine(async |docker| {
                docker
                    .start_container(&container("ours"), None::<query::StartContainerOptions>)
                    .await
                    .unwrap();
            });
            let began = Instant::now();
            assert_eq!(world.ok(&["wait", "ours", "--timeout", "60s"]), "ready\n");
            let took = began.elapsed();
            assert_eq!(state(&world, "ours"), "running");
            let published = format!("http://127.0.0.1:{}\n", port("ours", "80/tcp"));
            assert_eq!(world.ok(&["url", "ours", "--loopback", "--print"]), published);
            took
        });
        is_at_its_port(&world, "ours", proxy, "second");
        let fresh = world.box_ok("ours", "cat /run/agentbox/token");
        assert!(fresh.len() == 64 && fresh != token, "the token was not given anew");
        eventually(SOON, "the box reaching its host", || {
            world.in_box("ours", "agentbox-ctl event hi").status.success().then_some(())
        });
    }
}

// ---- automatic rest

/// The least that can be set: what follows takes minutes.
const IDLE: &str = "autopause: {maxRunningBoxes: 1, idleMinutes: 1}\n";

/// Its minute is over, and another one when it was at work in between.
#[track_caller]
fn rests(world: &World, name: &str) {
    becomes_within(Duration::from_secs(150) + SOON, world, name, "paused");
}

#[test]
fn too_many_boxes_rest_the_one_that_was_idle_the_longest() {
    let mut world = World::bare();
    world.configure(IDLE);
    world.start_serve();
    world.create("first");
    assert_eq!(state(&world, "first"), "running", "one may run");
    world.create("second");
    let begun = Instant::now();
    rests(&world, "first");
    assert!(begun.elapsed() > Duration::from_secs(30), "it was not idle for a minute");
    assert_eq!(state(&world, "second"), "running");
    // Somebody works in the first: it goes on, and the other one rests.
    let work = world
        .begin("first", "echo at-work > /tmp/at; while [ ! -e /tmp/done ]; do sleep 0.1; done");
    rests(&world, "second");
    assert_eq!(state(&world, "first"), "running");
    assert_eq!(world.box_ok("second", "echo here"), "here");
    rests(&world, "second");
    assert_eq!(state(&world, "first"), "running", "a box with a command in it was frozen");
    work.kill();
    assert!(world.audit_kinds("first").contains(&"box-rested".to_owned()));
    world.ok(&["audit", "verify"]);
}

#[test]
fn a_box_that_asks_or_computes_does_not_rest() {
    let mut world = World::bare();
    world.configure(IDLE);
    world.start_serve();
    world.create("used");
    let used = world.begin("used", "while :; do sleep 1; done");
    world.create("asks");
    world.create("computes");
    world.commit("asks", "Wanted");
    world.box_ok("asks", "nohup git push > /tmp/out 2>&1 &");
    let question = world.question_of("asks");
    world.box_ok(
        "computes",
        "nohup sh -c 'while :; do :; done' > /dev/null 2>&1 & echo $! > /tmp/pid",
    );
    // Another box comes and goes to rest: the two were looked at meanwhile.
    world.create("idle");
    rests(&world, "idle");
    assert_eq!(
        (state(&world, "asks").as_str(), state(&world, "computes").as_str()),
        ("running", "running")
    );
    world.ok(&["deny", question["id"].as_str().unwrap()]);
    world.box_ok("computes", "kill $(cat /tmp/pid)");
    rests(&world, "asks");
    rests(&world, "computes");
    used.kill();
}

#[test]
fn switched_off_no_box_rests() {
    let mut world = World::bare();
    world.configure("autopause: {enabled: false, maxRunningBoxes: 1, idleMinutes: 1}\n");
    world.start_serve();
    world.create("idle");
    world.create("late");
    std::thread::sleep(Duration::from_secs(75));
    assert_eq!(state(&world, "idle"), "running");
}

// ---- an engine that goes away

/// A door to the engine that can be shut: whoever uses it sees the engine go away and come back.
struct Door {
    path: PathBuf,
    open: Option<(Arc<AtomicBool>, std::thread::JoinHandle<()>)>,
    through: Arc<Mutex<Vec<UnixStream>>>,
}

impl Door {
    fn new(world: &mut World) -> Self {
        let path = world.dir().join("engine.sock");
        world.set("DOCKER_HOST", &format!("unix://{}", path.display()));
        let mut door = Self { path, open: None, through: Arc::default() };
        door.open();
        door
    }

    fn open(&mut self) {
        let listener = UnixListener::bind(&self.path).unwrap();
        let (shut, through) = (Arc::new(AtomicBool::new(false)), self.through.clone());
        let seen = shut.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                let socket =
                    std::env::var("DOCKER_HOST").unwrap_or("unix:///var/run/docker.sock".into());
                let Ok(engine) = UnixStream::connect(socket.trim_start_matches("unix://")) else {
                    continue;
                };
                let stream = stream.unwrap();
                through
                    .lock()
                    .unwrap()
                    .extend([stream.try_clone().unwrap(), engine.try_clone().unwrap()]);
                for (mut from, mut to) in
                    [(stream.try_clone().unwrap(), engine.try_clone().unwrap()), (engine, stream)]
                {
                    std::thread::spawn(move || {
                        let mut bytes = vec![0; 16 * 1024];
                        while let Ok(n) = from.read(&mut bytes) {
                            if n == 0 || to.write_all(&bytes[..n]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        self.open = Some((shut, thread));
    }

    fn shut(&mut self) {
        let Some((shut, thread)) = self.open.take() else { return };
        shut.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.path);
        thread.join().unwrap();
        std::fs::remove_file(&self.path).unwrap();
        for stream in self.through.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.shut();
    }
}

fn database(world: &World) -> Vec<Option<Vec<u8>>> {
    ["agentbox.db", "agentbox.db-wal"].map(|n| std::fs::read(world.home().join(n)).ok()).to_vec()
}

#[test]
fn boxes_16_23_without_an_engine_nothing_is_known_and_nothing_is_pruned() {
    let mut world = World::bare();
    world.configure("");
    let mut door = Door::new(&mut world);
    world.start_serve();
    world.create("kept");
    door.shut();
    becomes(&world, "kept", "unknown");
    let before = database(&world);
    for args in [&["prune", "-y"][..], &["prune", "--all", "-y"], &["prune", "--dry-run"]] {
        let output = world.agentbox(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", text(&output.stderr));
    }
    assert_eq!(world.agentbox(&["recover", "--all"]).status.code(), Some(1));
    assert!(database(&world) == before, "the database was written to");
    door.open();
    becomes(&world, "kept", "running");
    assert_eq!(world.box_ok("kept", "echo there"), "there");
}

#[test]
fn boxes_come_back_after_an_engine_went_down() {
    let mut world = World::bare();
    world.configure("");
    let mut door = Door::new(&mut world);
    world.start_serve();
    for name in ["worked", "frozen", "rests"] {
        world.create(name);
    }
    world.box_ok("worked", "echo kept > file");
    world.ok(&["stop", "rests"]);
    // What an engine does when it goes down: its containers end, and nobody hears of it.
    door.shut();
    becomes(&world, "worked", "unknown");
    engine(async |docker| {
        let now = query::StopContainerOptionsBuilder::default().t(5).build();
        docker.stop_container(&container("worked"), Some(now)).await.unwrap();
        docker.pause_container(&container("frozen")).await.unwrap();
    });
    door.open();
    becomes(&world, "worked", "stopped");
    let why = |name: &str| {
        let all = world.json(&["list"])["boxes"].as_array().unwrap().clone();
        all.iter().find(|b| b["name"] == name).unwrap()["down"]["why"]["kind"].clone()
    };
    assert_eq!((why("worked"), why("rests")), ("engineGone".into(), "person".into()));
    let done = world.json(&["recover", "--all"]);
    let outcome = |name: &str| {
        let all = done["recovery"]["boxes"].as_array().unwrap();
        all.iter().find(|b| b["view"]["name"] == name).unwrap()["outcome"].clone()
    };
    assert_eq!(outcome("worked"), "started", "{done}");
    assert_eq!(outcome("frozen"), "woken", "{done}");
    assert_eq!(outcome("rests"), "left", "{done}");
    assert_eq!(engine_state("rests"), "exited");
    assert_eq!(world.box_ok("worked", "cat file; agentbox-ctl event back"), "kept");
    world.box_ok("frozen", "agentbox-ctl event back");
    // Named, it is brought back all the same; and again, nothing is left to do.
    assert!(world.ok(&["recover", "rests"]).contains("started"));
    assert!(world.ok(&["recover", "rests"]).contains("runs"));
    // One whose container is gone is told, and the others are not kept from it.
    remove_container(&container("rests"));
    becomes(&world, "rests", "missing");
    world.ok(&["stop", "worked"]);
    let output = world.agentbox(&["recover", "--all"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let said = text(&output.stdout);
    assert!(said.contains("failed   rests: the box has no container any more"), "{said}");
}

#[test]
fn boxes_16_30_a_host_killed_while_it_writes_leaves_no_lock() {
    let mut world = World::headless();
    world.create("busy");
    for _ in 0..5 {
        // Writes until the host does not answer any more, and starts none.
        let client = Client::new(&world.home());
        let written = Arc::new(AtomicUsize::new(0));
        let seen = written.clone();
        let writing = std::thread::spawn(move || {
            let target = || Target { query: Some("busy".into()), cwd: None };
            let mute = |seconds| Request::Mute { target: target(), seconds };
            let call = |seconds| client.call::<Value>(&mute(seconds)).is_ok();
            while call(written.load(Relaxed).is_multiple_of(2).then_some(3600)) {
                written.fetch_add(1, Relaxed);
            }
        });
        eventually(SOON, "some writing", || (seen.load(Relaxed) > 2).then_some(()));
        world.kill_host();
        writing.join().unwrap();
        world.start_serve();
        world.ok(&["audit", "verify"]);
        assert_eq!(world.box_ok("busy", "echo on"), "on");
    }
}

// ---- destroy

fn loss(world: &World, name: &str) -> Loss {
    let target = Target { query: Some(name.into()), cwd: None };
    Client::new(&world.home()).call(&Request::WhatIfDestroyed { target }).unwrap()
}

#[test]
fn what_a_destroy_would_lose_is_shown() {
    let world = World::headless();
    world.create("rich");
    let nothing = loss(&world, "rich");
    assert_eq!(
        (nothing.uncommitted, nothing.unpushed_count, nothing.stranded),
        (Some(vec![]), Some(0), Some(vec![]))
    );
    world.commit("rich", "Landed");
    world.box_ok(
        "rich",
        "git checkout -q -b side && echo x > side && git add side && git commit -qm 'Only here' && \
         git checkout -q agentbox/rich && echo y >> README.md && git stash -q && echo new > 'new file'",
    );
    for pause in [false, true] {
        if pause {
            world.ok(&["pause", "rich"]);
        }
        let lost = loss(&world, "rich");
        assert_eq!(lost.uncommitted.unwrap(), ["?? \"new file\""]);
        assert_eq!(lost.unpushed_count, Some(1));
        assert!(lost.unpushed[0].ends_with(" Landed"), "{:?}", lost.unpushed);
        let stranded = lost.stranded.unwrap().join("\n");
        assert!(stranded.contains("Only here") && stranded.contains("WIP on"), "{stranded}");
        assert_eq!(engine_state("rich"), if pause { "paused" } else { "running" });
    }
    world.ok(&["stop", "rich"]);
    let lost = loss(&world, "rich");
    assert_eq!((lost.uncommitted, lost.unpushed_count, lost.stranded), (None, Some(1), None));

    // What cannot be looked at is not nothing: not in the box, and not here.
    world.ok(&["start", "rich"]);
    world.box_ok("rich", "mv .git elsewhere");
    let lost = loss(&world, "rich");
    assert_eq!((lost.uncommitted, lost.stranded), (None, None));
    let git = world.project().join(".git");
    std::fs::rename(&git, world.dir().join("put-away")).unwrap();
    assert_eq!(loss(&world, "rich").unpushed_count, None);
    std::fs::rename(world.dir().join("put-away"), &git).unwrap();
}

#[test]
fn what_a_destroy_would_lose_in_repositories_below_the_workspace_is_shown() {
    let world = World::headless();
    let folder = world.dir().join("loss");
    for name in ["api", "web"] {
        let dir = folder.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        world.git(&dir, &["init", "-q", "-b", "main"]);
        world.git(&dir, &["config", "user.name", "Ada"]);
        world.git(&dir, &["config", "user.email", "ada@example.org"]);
        world.git(&dir, &["commit", "-q", "--allow-empty", "-m", "Begin"]);
    }
    std::fs::write(folder.join("agentbox.yaml"), "{}\n").unwrap();
    world.ok(&["create", folder.to_str().unwrap(), "-n", "loss-many"]);
    let nothing = loss(&world, "loss-many");
    assert_eq!(
        (nothing.uncommitted, nothing.unpushed_count, nothing.stranded),
        (Some(vec![]), Some(0), Some(vec![]))
    );
    world.box_ok(
        "loss-many",
        "cd api && git commit -q --allow-empty -m Landed && touch new && cd ../web && \
         git checkout -q -b side && git commit -q --allow-empty -m 'Only here'",
    );
    let lost = loss(&world, "loss-many");
    assert_eq!(lost.uncommitted.unwrap(), ["api: ?? new"]);
    assert_eq!(lost.unpushed_count, Some(1));
    assert!(lost.unpushed[0].starts_with("api: "), "{:?}", lost.unpushed);
    let stranded = lost.stranded.unwrap();
    assert!(stranded.len() == 1 && stranded[0].starts_with("web: "), "{stranded:?}");
    // One that cannot be asked makes the whole loss unknown.
    world.box_ok("loss-many", "rm -rf web/.git");
    let lost = loss(&world, "loss-many");
    assert_eq!((lost.uncommitted, lost.stranded), (None, None));
    let gone = world.json(&["destroy", "-y", "loss-many"])["destroyed"].clone();
    assert_eq!(gone["keptBranches"], serde_json::json!(["agentbox/loss-many--api"]), "{gone}");
    assert_eq!(world.git(&folder.join("web"), &["branch", "--list", "agentbox/*"]), "");
}

#[test]
fn commits_that_could_not_be_shown_on_the_host_are_kept_under_another_name() {
    let world = World::headless();
    let project = world.project();
    world.create("work");
    let first = world.commit("work", "First of the box");
    eventually(SOON, "the commit on the host", || {
        (world.git(&project, &["log", "--all", "--format=%H"]).contains(&first)).then_some(())
    });
    // The person works on the branch: it stays as it is, and the box goes on.
    world.git(&project, &["checkout", "-q", "agentbox/work"]);
    let second = world.commit("work", "Second of the box");
    let said = world.ok(&["destroy", "work", "-y"]);
    assert!(said.contains("its last commits on branch agentbox/work-2"), "{said}");
    assert_eq!(world.git(&project, &["rev-parse", "agentbox/work-2"]), second);
    assert_eq!(world.git(&project, &["rev-parse", "agentbox/work"]), first);
}

#[test]
fn a_branch_that_was_given_to_a_box_is_never_deleted() {
    let world = World::headless();
    let project = world.project();
    world.git(&project, &["branch", "agentbox/old"]);
    let at = world.git(&project, &["rev-parse", "agentbox/old"]);
    world.ok(&["create", "-n", "again", "-b", "agentbox/old"]);
    let said = world.ok(&["destroy", "again", "-y"]);
    assert!(said.contains("kept     branch agentbox/old"), "{said}");
    world.ok(&["create", "-n", "again", "-b", "agentbox/old"]);
    world.ok(&["destroy", "again", "-y", "--delete-branch"]);
    assert_eq!(world.git(&project, &["rev-parse", "agentbox/old"]), at);
}

#[test]
fn boxes_16_53_a_destroy_tells_every_object_and_one_in_use_fails() {
    let world = World::headless();
    world.create("held");
    let (labels, image) = (labels_of("held"), world.json(&["list"])["boxes"][0]["image"].clone());
    let of_the_box: HashMap<String, String> =
        labels.into_iter().filter(|(key, _)| key.starts_with("agentbox.")).collect();
    engine(async |docker| {
        for name in ["abx-e2e-free", "abx-e2e-used"] {
            let request = VolumeCreateRequest {
                name: Some(name.into()),
                labels: Some(of_the_box.clone()),
                ..VolumeCreateRequest::default()
            };
            docker.create_volume(request).await.unwrap();
        }
        let mount = Mount {
            target: Some("/data".into()),
            source: Some("abx-e2e-used".into()),
            typ: Some(MountType::VOLUME),
            ..Mount::default()
        };
        let body = ContainerCreateBody {
            image: image.as_str().map(str::to_owned),
            labels: Some(HashMap::from([("agentbox.owner".into(), "somebody-else".into())])),
            host_config: Some(HostConfig { mounts: Some(vec![mount]), ..HostConfig::default() }),
            ..ContainerCreateBody::default()
        };
        let options =
            query::CreateContainerOptionsBuilder::default().name("abx-e2e-holder").build();
        docker.create_container(Some(options), body).await.unwrap();
    });
    let output = world.agentbox(&["destroy", "held", "-y"]);
    let said = text(&output.stdout);
    remove_container("abx-e2e-holder");
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [
        "removed  container agentbox-held",
        "removed  network agentbox-held",
        "removed  volume abx-e2e-free",
        "failed   volume abx-e2e-used",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // It is still known, so that it can be tried again; what is gone is told as absent.
    becomes(&world, "held", "missing");
    let again = world.ok(&["destroy", "held", "-y"]);
    assert!(again.contains("absent   container agentbox-held"), "{again}");
    assert!(again.contains("removed  volume abx-e2e-used"), "{again}");
    assert!(names(&world).is_empty());
}

#[test]
fn boxes_16_53_a_branch_with_commits_survives_unless_told() {
    let world = World::headless();
    let branches = || {
        world.git(
            &world.project(),
            &["for-each-ref", "--format=%(refname:short)", "refs/heads/agentbox"],
        )
    };
    for name in ["plain", "commits", "gone", "kept"] {
        world.create(name);
    }
    for name in ["commits", "gone"] {
        world.commit(name, "Work");
        eventually(SOON, "the commit on the host", || branches().contains(name).then_some(()));
    }
    for name in ["plain", "kept"] {
        world.git(&world.project(), &["branch", "-f", &format!("agentbox/{name}"), "main"]);
    }
    let said = world.ok(&["destroy", "plain", "commits", "-y"]);
    assert!(said.contains("removed  branch agentbox/plain"), "{said}");
    assert!(said.contains("kept     branch agentbox/commits"), "{said}");
    world.ok(&["destroy", "gone", "-y", "--delete-branch"]);
    world.ok(&["destroy", "kept", "-y", "--keep-branch"]);
    assert_eq!(branches(), "agentbox/commits\nagentbox/kept");
    let refs = world.git(&world.project(), &["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("refs/agentbox/"), "pins are left: {refs}");
}

#[test]
fn the_files_of_a_box_are_saved_before_it_goes() {
    let world = World::headless();
    world.create("saved");
    world.box_ok("saved", "echo ignored > .gitignore; echo it > ignored; mkdir -p d; head -c 200000000 /dev/zero > d/big; ln -s big d/link");
    let file = world.dir().join("saved.tar");
    std::fs::write(&file, "mine").unwrap();
    let args = ["destroy", "saved", "-y", "--export", file.to_str().unwrap()];
    let output = world.agentbox(&args);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine", "it was overwritten");
    assert_eq!(state(&world, "saved"), "running");
    // A folder that cannot be written to: nothing is destroyed either.
    let output = world.agentbox(&["destroy", "saved", "-y", "--export", "/proc/no/such.tar"]);
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(state(&world, "saved"), "running");

    std::fs::remove_file(&file).unwrap();
    let before = most_memory(&world);
    world.ok(&args);
    let grown = most_memory(&world).saturating_sub(before);
    assert!(grown < 40_000, "the host grew by {grown} KB");
    assert!(names(&world).is_empty());
    let listed = world.command("tar").arg("-tvf").arg(&file).output().unwrap();
    let listed = text(&listed.stdout);
    for name in ["README.md", "ignored", "d/big", "d/link -> big"] {
        assert!(listed.lines().any(|l| l.ends_with(name)), "{name}: {listed}");
    }
    assert!(listed.contains("200000000") && !listed.contains(".git/"), "{listed}");
    let left = std::fs::read_dir(world.dir()).unwrap().flatten();
    assert!(!left.into_iter().any(|e| e.file_name().to_string_lossy().contains("agentbox-export")));
}

/// The most memory the host has had, in KB.
fn most_memory(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.host_pid())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn boxes_16_26_the_number_of_a_destroyed_box_is_not_given_again() {
    let world = World::headless();
    world.create("one");
    world.create("two");
    world.ok(&["destroy", "two", "-y"]);
    assert_eq!(world.create("three")["index"], 3);
}

// ---- prune

#[test]
fn boxes_16_24_only_a_box_without_a_container_is_forgotten() {
    let world = World::headless();
    world.create("stays");
    world.create("gone");
    world.ok(&["stop", "stays"]);
    let none = world.agentbox(&["prune", "-y"]);
    assert!(none.status.success() && text(&none.stderr).contains("nothing to prune"));
    remove_container(&container("gone"));
    becomes(&world, "gone", "missing");
    assert_eq!(
        world.ok(&["prune", "--dry-run"]),
        "record      gone  (its engine has it no more)\n"
    );
    assert_eq!(world.agentbox(&["prune"]).status.code(), Some(2), "nobody was asked");
    assert_eq!(names(&world), ["stays", "gone"]);
    let said = world.ok(&["prune", "-y"]);
    assert!(
        said.contains("removed  record gone") && said.contains("removed  network agentbox-gone"),
        "{said}"
    );
    assert_eq!(names(&world), ["stays"]);
    assert_eq!(world.home().join("run/boxes").read_dir().unwrap().count(), 1);
    let pins =
        world.git(&world.project(), &["for-each-ref", "--format=%(refname)", "refs/agentbox/"]);
    let owners: std::collections::BTreeSet<_> = pins.lines().map(|l| l.split('/').nth(2)).collect();
    assert_eq!(owners.len(), 1, "{pins}");
}

#[test]
fn boxes_16_25_a_strangers_things_stay_whatever_they_are_called() {
    let world = World::headless();
    world.create("mine");
    let image = world.json(&["list"])["boxes"][0]["image"].as_str().unwrap().to_owned();
    let stranger = HashMap::from([("agentbox.owner".to_owned(), "somebody-else".to_owned())]);
    engine(async |docker| {
        for (name, labels) in [("agentbox-foo", None), ("agentbox-bar", Some(stranger.clone()))] {
            let body = ContainerCreateBody {
                image: Some(image.clone()),
                labels,
                ..ContainerCreateBody::default()
            };
            let options = query::CreateContainerOptionsBuilder::default().name(name).build();
            docker.create_container(Some(options), body).await.unwrap();
        }
    });
    world.ok(&["prune", "--all", "-y"]);
    let destroyed = world.agentbox(&["destroy", "foo", "-y"]);
    let there = ["foo", "bar"].map(engine_state);
    remove_container("agentbox-foo");
    remove_container("agentbox-bar");
    assert_eq!(there, ["created", "created"]);
    assert_eq!(destroyed.status.code(), Some(2), "{}", text(&destroyed.stderr));
    assert_eq!(engine_state("mine"), "running");
}

#[test]
fn everything_of_ours_that_nobody_needs_is_pruned() {
    let world = World::headless();
    let made = world.create("kept");
    world.create("ended");
    let ended = world.json(&["list"])["boxes"][1]["id"].as_str().unwrap().to_owned();
    world.ok(&["destroy", "ended", "-y"]);
    let owner = labels_of("kept")["agentbox.owner"].clone();
    let ours = |role: &str| {
        HashMap::from([
            ("agentbox.owner".to_owned(), owner.clone()),
            ("agentbox.box".to_owned(), ended.clone()),
            ("agentbox.role".to_owned(), role.to_owned()),
        ])
    };
    let tag = format!("agentbox/checkpoint:e2e-{ended}");
    engine(async |docker| {
        let body = ContainerCreateBody {
            image: made["image"].as_str().map(str::to_owned),
            labels: Some(ours("helper")),
            ..ContainerCreateBody::default()
        };
        let options = query::CreateContainerOptionsBuilder::default().name("abx-e2e-left").build();
        docker.create_container(Some(options), body).await.unwrap();
        let volume = VolumeCreateRequest {
            name: Some("abx-e2e-left".into()),
            labels: Some(ours("docker-data")),
            ..VolumeCreateRequest::default()
        };
        docker.create_volume(volume).await.unwrap();
        let shared = VolumeCreateRequest {
            name: Some("abx-e2e-shared".into()),
            labels: Some(
                [ours("cache"), HashMap::from([("agentbox.shared".into(), "true".into())])]
                    .into_iter()
                    .flatten()
                    .collect(),
            ),
            ..VolumeCreateRequest::default()
        };
        docker.create_volume(shared).await.unwrap();
        let network = bollard::models::NetworkCreateRequest {
            name: "abx-e2e-left".into(),
            labels: Some(ours("box")),
            ..bollard::models::NetworkCreateRequest::default()
        };
        docker.create_network(network).await.unwrap();
        let (repo, version) = tag.split_once(':').unwrap();
        let commit = query::CommitContainerOptionsBuilder::default()
            .container("abx-e2e-left")
            .repo(repo)
            .tag(version)
            .changes("LABEL agentbox.role=checkpoint")
            .build();
        docker.commit_container(commit, bollard::models::ContainerConfig::default()).await.unwrap();
    });
    for dir in ["run/boxes", "repos"] {
        std::fs::create_dir_all(world.home().join(dir).join(&ended)).unwrap();
    }
    let head = world.git(&world.project(), &["rev-parse", "HEAD"]);
    world.git(&world.project(), &["update-ref", &format!("refs/agentbox/{ended}/base"), &head]);
    // Another installation's box has its pins in the same repository.
    world.git(&world.project(), &["update-ref", "refs/agentbox/b0ddba11/base", &head]);

    let seen = world.json(&["prune", "--all", "--dry-run"]);
    let kinds: Vec<&str> = seen["pruned"]["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["container", "network", "volume", "checkpoint", "folder", "folder", "pins"],
        "{seen}"
    );
    let plain = world.json(&["prune", "--dry-run"]);
    assert_eq!(plain["pruned"]["found"].as_array().unwrap().len(), 0, "{plain}");
    let done = world.json(&["prune", "--all", "-y"]);
    assert_eq!(done["pruned"]["removed"].as_array().unwrap().len(), 7, "{done}");
    let again = world.json(&["prune", "--all", "--dry-run"]);
    assert_eq!(again["pruned"]["found"], serde_json::json!([]), "{again}");
    let shared = engine(async |docker| {
        let there = docker.inspect_volume("abx-e2e-shared").await.is_ok();
        let _ = docker.remove_volume("abx-e2e-shared", None::<query::RemoveVolumeOptions>).await;
        there
    });
    assert!(shared, "what several boxes share was removed");
    let refs =
        world.git(&world.project(), &["for-each-ref", "--format=%(refname)", "refs/agentbox/"]);
    assert!(refs.contains("b0ddba11") && !refs.contains(&ended), "{refs}");
    assert_eq!(
        world.box_ok("kept", "git fsck --connectivity-only --no-dangling && echo whole"),
        "whole"
    );
}

// ---- looking

#[test]
fn boxes_16_27_and_28_a_box_is_found_by_every_name_it_has() {
    let world = World::headless();
    let one = world.create("one");
    let id = one["id"].as_str().unwrap().to_owned();
    for query in ["one", "1", &id, &id[..5], "shop/one", "shop/1", "@shop", "agentbox-one"] {
        assert_eq!(world.ok(&["shell", query, "--", "hostname"]).trim(), "one", "{query}");
    }
    world.create("two");
    let output = world.agentbox(&["inspect"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("  1) one   (id {id})")) && said.contains("  2) two"), "{said}");
    for (query, hint) in [
        ("zz", "no box matches \"zz\""),
        ("tow", "did you mean two?"),
        ("@shpo", "did you mean shop?"),
        ("7", "no box matches \"7\""),
        (&id[..2], "no box matches"),
    ] {
        let output = world.agentbox(&["inspect", query]);
        assert_eq!(output.status.code(), Some(2), "{query}");
        assert!(text(&output.stderr).contains(hint), "{query}: {}", text(&output.stderr));
    }
}

#[test]
fn a_box_is_looked_at_from_all_sides() {
    let world = World::headless();
    world.create("seen");
    world.box_ok("seen", "nohup sleep 4242 > /dev/null 2>&1 &");
    let details = world.json(&["status", "seen"])["details"].clone();
    assert_eq!(details, {
        let mut d = world_inspect(&world, "seen");
        d["usage"] = details["usage"].clone();
        d["processes"] = details["processes"].clone();
        d
    });
    assert_eq!((&details["ready"], &details["view"]["state"]), (&true.into(), &"running".into()));
    assert!(details["limits"]["pids"].as_u64().unwrap() > 0, "{details}");
    assert!(details["startedAt"].as_u64().unwrap() > 1_600_000_000_000, "{details}");
    assert!(details["usage"]["memoryBytes"].as_u64().unwrap() > 0, "{details}");
    assert!(
        details["usage"]["cpuPercent"].is_number() && details["usage"]["diskBytes"].is_number(),
        "{details}"
    );
    let commands: Vec<&str> = details["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["command"].as_str().unwrap())
        .collect();
    assert!(commands.iter().any(|c| c.contains("sleep 4242")), "{commands:?}");
    let token = world.box_ok("seen", "cat /run/agentbox/token");
    assert!(!details.to_string().contains(&token));
    let shown = world.ok(&["status", "seen", "--inspect"]);
    assert!(shown.contains("running for") && shown.contains("sleep 4242"), "{shown}");

    let usage = world.json(&["top", "--once"])["usage"].clone();
    let of = &usage["boxes"][0];
    assert!(of["cpuPercent"].is_number() && of["pids"].as_u64().unwrap() >= 2, "{usage}");
    assert!(
        usage["disk"]["boxesBytes"].is_number() && usage["disk"]["freeBytes"].is_number(),
        "{usage}"
    );
    let table = world.ok(&["top", "--once", "seen"]);
    assert!(table.starts_with("BOX") && table.contains("SYSTEM  boxes "), "{table}");

    let log = world.ok(&["logs", "seen"]);
    assert!(log.contains("agentbox init: ready"), "{log}");
    world.ok(&["stop", "seen"]);
    assert!(world.ok(&["status", "seen"]).contains("stopped"));
    assert_eq!(world.ok(&["logs", "seen", "-n", "0"]), "");
    let waited = world.agentbox(&["wait", "seen", "--timeout", "1s"]);
    assert_eq!(
        (waited.status.code(), text(&waited.stdout).as_str()),
        (Some(1), "not ready: it is stopped\n")
    );
    let waiting = Running::start(world.agentbox_command(&["wait", "seen"]));
    world.ok(&["start", "seen"]);
    assert_eq!(waiting.end().code, Some(0));
    // A frozen box is woken for whoever waits for it.
    world.ok(&["pause", "seen"]);
    assert_eq!(world.ok(&["wait", "seen"]), "ready\n");
    assert_eq!(engine_state("seen"), "running");
}

fn world_inspect(world: &World, name: &str) -> Value {
    let details: Value = serde_json::from_str(&world.ok(&["inspect", name])).unwrap();
    details["details"].clone()
}

#[test]
fn a_huge_log_costs_nothing() {
    let world = World::headless();
    world.create("loud");
    // Root in the box writes into the log of its first process.
    world.box_ok("loud", "sudo sh -c 'for i in $(seq 4000); do printf \"%0500d\\n\" $i; done > /proc/1/fd/2; printf \"\\033]0;evil\\007last\\n\" > /proc/1/fd/2'");
    eventually(SOON, "the log", || {
        world.ok(&["logs", "loud", "-n", "1"]).contains("last").then_some(())
    });
    let before = most_memory(&world);
    let lines = world.ok(&["logs", "loud", "-n", "100000"]);
    assert!(lines.len() > 1_000_000, "{}", lines.len());
    let grown = most_memory(&world).saturating_sub(before);
    assert!(grown < 20_000, "the host grew by {grown} KB");
    assert_eq!(world.ok(&["logs", "loud", "-n", "3"]).lines().count(), 3);
    // Followed, it shows what comes until the person goes.
    let mut follow = world.agentbox_command(&["logs", "loud", "-f", "-n", "1"]);
    let mut follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(follow.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(line.contains("last"), "{line:?}");
    world.box_ok("loud", "sudo sh -c 'echo news > /proc/1/fd/2'");
    line.clear();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "news\n");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_watched_list_shows_every_change() {
    let world = World::headless();
    world.create("first");
    let mut watch = world.agentbox_command(&["list", "-w"]);
    let mut watch = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let (mut out, into) = (watch.stdout.take().unwrap(), seen.clone());
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n) = out.read(&mut bytes) {
            if n == 0 {
                return;
            }
            into.lock().unwrap().push_str(&text(&bytes[..n]));
        }
    });
    let shows = |what: &str| {
        eventually_or(SOON, what, || {
            let seen = seen.lock().unwrap().clone();
            if seen.contains(what) { Ok(()) } else { Err(seen) }
        });
    };
    shows("running");
    world.ok(&["pause", "first"]);
    shows("paused");
    world.create("second");
    shows("second");
    world.ok(&["destroy", "-y", "first", "second"]);
    shows("No boxes.");
    watch.kill().unwrap();
    watch.wait().unwrap();
    reader.join().unwrap();
    let both = world.agentbox(&["list", "-w", "--json"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn bash_completes_the_names_of_boxes() {
    let mut world = World::headless();
    world.create("fix-login");
    world.create("fix-logout");
    let complete = |world: &World, line: &str| {
        let script = format!(
            "source <({bin} completions bash); PATH={dir}:$PATH; COMP_WORDS=({line}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _agentbox_with_boxes agentbox \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            bin = world.program("agentbox").display(),
            dir = Path::new(&world.program("agentbox")).parent().unwrap().display(),
        );
        let output = world.command("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for line in [
        "agentbox start fix-l",
        "agentbox rm fix-l",
        "agentbox git push fix-l",
        "agentbox stop fix-login fix-l",
        "agentbox logs -f fix-l",
    ] {
        assert_eq!(complete(&world, line), "fix-login\nfix-logout\n", "{line}");
    }
    assert!(complete(&world, "agentbox sta").contains("start"));
    assert!(!complete(&world, "agentbox create fix-l").contains("fix-login"));
    // Without a host there are no names, and none is started for them.
    world.kill_host();
    let began = Instant::now();
    assert_eq!(complete(&world, "agentbox start fix-l").trim(), "");
    assert!(began.elapsed() < SOON / 2);
    assert!(!world.agentbox(&["status"]).status.success(), "a host was started");
    world.start_serve();
}
