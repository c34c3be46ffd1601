//! A box that is down says why: a person stopped it, or what became of it, on the real engine.

use crate::world::{SOON, World, docker};
use agentbox_e2e::wait::eventually_or;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::{Docker, query_parameters as query};
use futures_util::StreamExt;
use serde_json::Value;

/// Asks the engine itself, beside AgentBox.
fn engine<T>(work: impl AsyncFnOnce(Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(docker().await.expect("an engine")).await })
}

/// A script in a box as its root, which nobody but the person's own engine can be.
fn as_root(container: &str, script: &str) {
    engine(async |docker| {
        let options = CreateExecOptions {
            cmd: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
            user: Some("0".to_owned()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..CreateExecOptions::default()
        };
        let exec = docker.create_exec(container, options).await.unwrap();
        let started = docker.start_exec(&exec.id, None).await.unwrap();
        let StartExecResults::Attached { mut output, .. } = started else { panic!() };
        while output.next().await.is_some() {}
    });
}

fn view(world: &World, name: &str) -> Value {
    let all = world.json(&["list", "-g"]);
    let found = all["boxes"].as_array().unwrap().iter().find(|b| b["name"] == name).cloned();
    found.unwrap_or_default()
}

/// The box is down, for this reason; how it is told in words.
#[track_caller]
fn is_down(world: &World, name: &str, why: &str) -> String {
    let view = eventually_or(SOON, &format!("{name} down: {why}"), || {
        let view = view(world, name);
        if view["down"]["why"]["kind"] == why {
            Ok(view)
        } else {
            Err(format!("{view}{}", world.host_log()))
        }
    });
    assert!(view["down"]["at"].as_u64().unwrap() > 0, "{view}");
    world.ok(&["status", name])
}

#[track_caller]
fn starts(world: &World, name: &str) {
    world.ok(&["start", name]);
    let view = view(world, name);
    assert_eq!((&view["state"], &view["down"]), (&"running".into(), &Value::Null), "{view}");
}

#[test]
fn a_box_that_is_down_says_who_or_what_ended_it() {
    let world = World::headless();
    world.json(&["create", "-n", "dn-box", "--memory", "128m"]);
    let container = "agentbox-dn-box";

    world.ok(&["stop", "dn-box"]);
    let said = is_down(&world, "dn-box", "person");
    assert!(!said.contains("it was") && !said.contains("it ended"), "{said}");

    starts(&world, "dn-box");
    engine(async |docker| docker.kill_container(container, None).await.unwrap());
    let said = is_down(&world, "dn-box", "killed");
    assert!(said.contains("it was killed from outside"), "{said}");

    // In order, but not by AgentBox: it ends as one that was stopped by it does.
    starts(&world, "dn-box");
    engine(async |docker| {
        let options = query::StopContainerOptionsBuilder::default().t(10).build();
        docker.stop_container(container, Some(options)).await.unwrap();
    });
    let said = is_down(&world, "dn-box", "stoppedOutside");
    assert!(said.contains("it was stopped outside AgentBox"), "{said}");

    // A signal that ends nothing is no reason afterwards.
    starts(&world, "dn-box");
    engine(async |docker| {
        let options = query::KillContainerOptionsBuilder::default().signal("SIGWINCH").build();
        docker.kill_container(container, Some(options)).await.unwrap();
    });
    as_root(container, "kill -TERM 1");
    let said = is_down(&world, "dn-box", "ended");
    assert!(said.contains("it ended by itself"), "{said}");

    // The kernel takes the first process because everything else is told to be spared.
    starts(&world, "dn-box");
    as_root(container, "echo 1000 > /proc/1/oom_score_adj");
    let _ = world.in_box("dn-box", "head -c 2000m /dev/zero | tail -n 1 > /dev/null");
    let said = is_down(&world, "dn-box", "outOfMemory");
    assert!(said.contains("it ran out of memory"), "{said}");

    starts(&world, "dn-box");
    engine(async |docker| {
        let force = query::RemoveContainerOptionsBuilder::default().force(true).build();
        docker.remove_container(container, Some(force)).await.unwrap();
    });
    is_down(&world, "dn-box", "removed");
}
