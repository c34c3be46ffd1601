//! What a box has in it: daemons, agents, powers. The engine is asked what a box really got.

use crate::world::{SOON, World, docker, text};
use agentbox_e2e::wait::in_time;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;
use std::time::Duration;

/// A computer without a screen whose boxes have everything, with more keys below `box`.
pub fn full(more: &str) -> World {
    let mut world = World::bare();
    world.configure(&format!("box: {{stage: full{more}}}\n"));
    world.start_serve();
    world
}

/// The container of a box, as the engine sees it.
pub fn inspect(name: &str) -> ContainerInspectResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = docker().await.unwrap();
        let name = format!("agentbox-{name}");
        docker.inspect_container(&name, None::<InspectContainerOptions>).await.unwrap()
    })
}

/// The published ports of a box: in the box, address and port outside.
pub fn published(seen: &ContainerInspectResponse) -> Vec<(String, String, String)> {
    let ports = seen.network_settings.clone().unwrap().ports.unwrap_or_default();
    let mut all: Vec<_> = ports
        .into_iter()
        .flat_map(|(inner, bound)| {
            bound.unwrap_or_default().into_iter().map(move |b| {
                (inner.clone(), b.host_ip.unwrap_or_default(), b.host_port.unwrap_or_default())
            })
        })
        .collect();
    all.sort();
    all
}

/// Where a port of a box is on this computer.
#[track_caller]
pub fn port(name: &str, inner: &str) -> u16 {
    let ports = published(&inspect(name));
    let found = ports.iter().find(|(port, _, _)| port == inner);
    let (_, address, port) = found.unwrap_or_else(|| panic!("{inner} is not published: {ports:?}"));
    assert_eq!(address, "127.0.0.1");
    port.parse().unwrap()
}

#[test]
fn boxes_16_17_no_secret_is_in_a_containers_environment() {
    let world = World::headless();
    let made = world.create("plain");
    let seen = inspect("plain");
    let config = seen.config.clone().unwrap();
    for line in config.env.unwrap() {
        let name = line.split('=').next().unwrap();
        let secret = ["TOKEN", "PASSWORD", "API_KEY"].iter().any(|end| name.ends_with(end));
        assert!(!secret, "{line}");
    }
    let labels = config.labels.unwrap();
    assert_eq!(labels["agentbox.box"], made["id"].as_str().unwrap());
    assert_eq!(labels["agentbox.stage"], "core");
    assert!(!labels["agentbox.owner"].is_empty());
}

#[test]
fn boxes_16_18_a_box_without_an_engine_has_no_powers() {
    let world = World::headless();
    world.create("weak");
    let seen = inspect("weak");
    let host = seen.host_config.clone().unwrap();
    assert!(host.cap_add.unwrap_or_default().is_empty());
    assert_ne!(host.privileged, Some(true));
    let options = host.security_opt.unwrap_or_default();
    assert!(!options.iter().any(|o| o.contains("unconfined")), "{options:?}");
    assert!(host.devices.unwrap_or_default().is_empty());
    assert!(!world.in_box("weak", "test -e /dev/fuse").status.success());
    // Only the web port leads in, and only from this computer.
    let ports = published(&seen);
    assert_eq!(ports.len(), 1, "{ports:?}");
    assert_eq!((ports[0].0.as_str(), ports[0].1.as_str()), ("80/tcp", "127.0.0.1"));
}

#[test]
fn a_small_image_cannot_give_a_box_an_engine_and_says_so() {
    let world = World::headless();
    let refused = world.agentbox(&["create", "-n", "none", "--docker"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("stage core") && said.contains("box.stage"), "{said}");
    assert_eq!(world.json(&["list"])["boxes"].as_array().unwrap().len(), 0);
    assert!(world.home().join("boxes").read_dir().unwrap().next().is_none());
}

#[test]
fn stopping_an_idle_box_stays_quick() {
    let world = World::headless();
    world.create("idle");
    in_time(Duration::from_millis(500), "a stop", || {
        let began = std::time::Instant::now();
        world.ok(&["stop", "idle"]);
        let took = began.elapsed();
        world.ok(&["start", "idle"]);
        took
    });
}

/// What a terminal of tmux shows of a program.
fn on_screen(world: &World, name: &str, program: &str) -> String {
    let shown = world.in_box(name, &format!("tmux capture-pane -p -t {program}"));
    text(&shown.stdout)
}

/// Without a login each shows how to get one, or its own prompt.
#[test]
fn the_agents_are_there_and_draw_themselves_in_a_terminal() {
    let world = full("");
    world.create("agents");
    for (program, shown) in [
        ("claude", &["Claude Code"][..]),
        ("codex", &["Codex", "Sign in with ChatGPT"]),
        ("opencode", &["opencode", "Ask anything"]),
    ] {
        let version = world.box_ok("agents", &format!("{program} --version"));
        assert!(version.contains(|c: char| c.is_ascii_digit()), "{program}: {version}");
        let start = format!("tmux new-session -d -s {program} -x 120 -y 40 {program}");
        world.box_ok("agents", &start);
        agentbox_e2e::wait::eventually_or(2 * SOON, program, || {
            let screen = on_screen(&world, "agents", program);
            if shown.iter().any(|part| screen.contains(part)) { Ok(()) } else { Err(screen) }
        });
    }
    let terminal = world.box_ok("agents", "tmux show -gv default-terminal; tmux show -gv mouse");
    assert_eq!(terminal, "tmux-256color\non");
    assert!(world.box_ok("agents", "node --version").starts_with("v22."));
    assert!(world.box_ok("agents", "git lfs version").starts_with("git-lfs/"));
    // The browser is fetched when it is wanted, by what the project has; here it has nothing.
    let none = world.in_box("agents", "chromium --version");
    assert_eq!(none.status.code(), Some(127));
    assert!(text(&none.stderr).contains("npm install --save-dev playwright"), "{none:?}");
    // A browser that is there is used, the newest build first.
    let fake = "for n in 99 1100; do d=~/.cache/ms-playwright/chromium-$n/chrome-linux; \
                mkdir -p $d; printf '#!/bin/sh\\necho build '$n' \"$@\"\\n' > $d/chrome; \
                chmod +x $d/chrome; done; chromium a b";
    assert_eq!(world.box_ok("agents", fake), "build 1100 a b");
}

#[test]
fn which_images_there_are_can_be_asked() {
    let world = World::headless();
    let images = world.json(&["prepare"])["images"].clone();
    let rows = images.as_array().unwrap();
    let current: Vec<_> = rows.iter().filter(|row| row["current"] == true).collect();
    assert_eq!(current.len(), 3, "{images}");
    let core = current.iter().find(|row| row["stage"] == "core").unwrap();
    assert_eq!(core["present"], true, "{images}");
    assert!(core["tag"].as_str().unwrap().starts_with("agentbox/box:core-"));
    assert!(core["size"].as_u64().unwrap() > 100_000_000);
    assert!(world.ok(&["prepare", "--status"]).contains("STAGE"));
}
