//! A container engine in a box: only where the person asked for it, and then it works.

use crate::image::{full, inspect};
use crate::world::{World, docker, text};
use agentbox_e2e::wait::{eventually_or, in_time};
use bollard::models::HostConfigCgroupnsModeEnum;
use std::time::Duration;

/// An engine that starts on a busy machine.
const ENGINE: Duration = Duration::from_secs(90);

fn volume_labels(name: &str) -> Option<std::collections::HashMap<String, String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { Some(docker().await.unwrap().inspect_volume(name).await.ok()?.labels) })
}

fn engine_answers(world: &World, name: &str) {
    eventually_or(ENGINE, "the inner engine", || {
        let output = world.in_box(name, "docker info");
        if output.status.success() {
            return Ok(());
        }
        let log = world.in_box(name, "tail -n 20 /var/log/agentbox/dockerd.log");
        Err(text(&output.stderr) + &text(&log.stdout))
    });
}

/// There is no registry here, so the image is made of the one program that needs nothing else.
#[test]
fn boxes_16_19_a_box_with_an_engine_runs_containers_before_and_after_a_stop() {
    let world = full("");
    let made = world.json(&["create", "-n", "nest", "--docker"])["box"].clone();
    let seen = inspect("nest");
    let host = seen.host_config.clone().unwrap();
    let mut powers = host.cap_add.clone().unwrap();
    powers.sort();
    assert_eq!(powers, ["NET_ADMIN", "SYS_ADMIN"]);
    assert_ne!(host.privileged, Some(true));
    assert_eq!(host.cgroupns_mode, Some(HostConfigCgroupnsModeEnum::PRIVATE));
    let volume = format!("agentbox-docker-{}", made["id"].as_str().unwrap());
    assert_eq!(volume_labels(&volume).unwrap()["agentbox.role"], "docker-data");

    engine_answers(&world, "nest");
    world.box_ok("nest", "mkdir /tmp/root && cp /usr/local/bin/agentbox-ctl /tmp/root/hello");
    world.box_ok("nest", "tar -C /tmp/root -c . | docker import - inner");
    let hello = "docker run --rm inner /hello --version";
    assert!(world.box_ok("nest", hello).starts_with("agentbox-ctl "));
    let driver = "head -n 1 /var/log/agentbox/dockerd.log";
    let first = world.box_ok("nest", driver);
    assert!(first.starts_with("storage-driver="), "{first}");
    // Not as root, and not by a group the session would have to have joined.
    assert_eq!(world.box_ok("nest", "stat -c %a:%G /var/run/docker.sock"), "660:vscode");

    in_time(Duration::from_secs(5), "a stop", || {
        let began = std::time::Instant::now();
        world.ok(&["stop", "nest"]);
        let took = began.elapsed();
        world.ok(&["start", "nest"]);
        engine_answers(&world, "nest");
        took
    });
    assert!(world.box_ok("nest", hello).starts_with("agentbox-ctl "));
    assert_eq!(world.box_ok("nest", driver), first);

    let gone = world.json(&["destroy", "-y", "nest"]);
    let removed = gone["destroyed"]["removed"].to_string();
    assert!(removed.contains(&format!("volume {volume}")), "{gone}");
    assert_eq!(volume_labels(&volume), None);
}

#[test]
fn a_compose_file_gives_a_box_no_powers_and_the_person_is_told() {
    let world = World::headless();
    std::fs::write(world.project().join("compose.yaml"), "services: {}\n").unwrap();
    let output = world.agentbox(&["create", "-n", "plain"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("compose.yaml") && said.contains("--docker"), "{said}");
    assert!(inspect("plain").host_config.unwrap().cap_add.unwrap_or_default().is_empty());
    // Whoever has decided is not told again.
    let output = world.agentbox(&["create", "-n", "sure", "--no-docker"]);
    assert!(output.status.success());
    assert!(!text(&output.stderr).contains("compose.yaml"));
}
