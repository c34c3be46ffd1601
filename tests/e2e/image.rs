//! What a box has in it: daemons, agents, powers. The engine is asked what a box really got.

use crate::world::{SOON, World, docker, text};
use agentbox_e2e::wait::eventually;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;

/// The container of a box, as the engine sees it.
fn inspect(name: &str) -> ContainerInspectResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = docker().await.unwrap();
        let name = format!("agentbox-{name}");
        docker.inspect_container(&name, None::<InspectContainerOptions>).await.unwrap()
    })
}

/// The published ports of a box: in the box, address and port outside.
fn published(seen: &ContainerInspectResponse) -> Vec<(String, String, String)> {
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
    let mut times = Vec::new();
    for _ in 0..3 {
        let began = std::time::Instant::now();
        world.ok(&["stop", "idle"]);
        times.push(began.elapsed());
        world.ok(&["start", "idle"]);
    }
    let best = times.iter().min().unwrap();
    assert!(best.as_millis() < 500, "{times:?}");
}

#[test]
fn which_images_there_are_can_be_asked() {
    let world = World::headless();
    let images = world.json(&["prepare", "--status"])["images"].clone();
    let rows = images.as_array().unwrap();
    let current: Vec<_> = rows.iter().filter(|row| row["current"] == true).collect();
    assert_eq!(current.len(), 3, "{images}");
    let core = current.iter().find(|row| row["stage"] == "core").unwrap();
    assert_eq!(core["present"], true, "{images}");
    assert!(core["tag"].as_str().unwrap().starts_with("agentbox/box:core-"));
    assert!(core["size"].as_u64().unwrap() > 100_000_000);
    eventually(SOON, "the table", || {
        world.ok(&["prepare", "--status"]).contains("STAGE").then_some(())
    });
}
