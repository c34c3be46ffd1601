//! The engine killed and started again under a host with boxes, as a crash or an update does it.

use crate::world::{SOON, World, docker};
use agentbox_e2e::wait::{eventually, eventually_or};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An engine needs a while to come up on a busy machine.
const ENGINE: Duration = Duration::from_secs(120);

/// Says a word to whoever looks after the tests' engine.
fn engine(word: &str) {
    let socket = PathBuf::from(std::env::var("DOCKER_HOST").unwrap_or_default());
    let folder = socket.parent().and_then(Path::file_name).unwrap_or_default();
    let stage = PathBuf::from(std::env::var_os("AGENTBOX_BIN").unwrap_or_default());
    let pipe = stage.join(format!("{}.restart", folder.display()));
    assert!(
        pipe.exists(),
        "this test kills the engine and starts it again, so it needs one of its own, and this is \
         somebody's: stop that engine and run scripts/test, which then starts one"
    );
    std::fs::write(pipe, format!("{word}\n")).unwrap();
}

fn answers() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match docker().await {
            Some(docker) => docker.ping().await.is_ok(),
            None => false,
        }
    })
}

/// Whatever comes of the test, the others need an engine.
struct BackUp;

impl Drop for BackUp {
    fn drop(&mut self) {
        if !answers() {
            engine("start");
            let _ = agentbox_e2e::wait::try_eventually(ENGINE, || {
                if answers() { Ok(()) } else { Err(()) }
            });
        }
    }
}

fn states(world: &World) -> Vec<(String, String)> {
    let boxes = world.json(&["list"])["boxes"].as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    boxes.iter().map(|b| (text(&b["name"]), text(&b["state"]))).collect()
}

#[test]
fn an_engine_that_is_killed_and_comes_back_has_its_boxes_back() {
    let world = World::headless();
    let pid = world.host_pid();
    world.create("works-on");
    world.create("rests");
    world.commit("works-on", "Before");
    world.box_ok("works-on", "echo precious > unsaved");
    let token = world.box_ok("works-on", "cat /run/agentbox/token");
    world.ok(&["stop", "rests"]);

    let _back = BackUp;
    engine("kill");
    eventually_or(ENGINE, "boxes nobody knows about", || {
        let now = states(&world);
        if now.iter().all(|(_, state)| state == "unknown") {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    });
    let status = world.json(&["status"])["status"].clone();
    assert_eq!(
        (&status["engine"]["reachable"], &status["pid"]),
        (&false.into(), &pid.as_raw().into())
    );
    let refused = world.agentbox(&["create", "-n", "not-now"]);
    assert_eq!(refused.status.code(), Some(1));
    // Nothing is known, so nothing is thrown away.
    assert_eq!(world.agentbox(&["prune", "-y"]).status.code(), Some(1));
    assert_eq!(states(&world).len(), 2);

    engine("start");
    eventually(ENGINE, "the engine", || answers().then_some(()));
    // The host follows it again by itself.
    eventually_or(ENGINE, "the host finding its engine", || {
        let now = states(&world);
        let known = now.iter().all(|(_, state)| state == "stopped" || state == "running");
        if known { Ok(()) } else { Err(format!("{now:?}{}", world.host_log())) }
    });
    let recovery = world.json(&["recover", "--all"])["recovery"].clone();
    let outcome = |name: &str| {
        let boxes = recovery["boxes"].as_array().unwrap();
        boxes.iter().find(|b| b["view"]["name"] == name).unwrap()["outcome"].clone()
    };
    assert_eq!(outcome("works-on"), "started", "{recovery}");
    assert_eq!(outcome("rests"), "left", "{recovery}");
    assert_eq!(world.host_pid(), pid);
    assert_eq!(world.json(&["status"])["status"]["pid"], pid.as_raw());

    // The box has all it had, a new token, and its way to the host.
    assert_eq!(world.box_ok("works-on", "cat unsaved; cat before"), "precious\nBefore");
    let fresh = world.box_ok("works-on", "cat /run/agentbox/token");
    assert!(fresh.len() == 64 && fresh != token, "{fresh}");
    world.box_ok("works-on", "agentbox-ctl event back");
    let oid = world.commit("works-on", "After");
    eventually_or(SOON, "the commit on the host", || {
        let refs = world.git(&world.project(), &["for-each-ref", "--format=%(objectname)"]);
        if refs.contains(&oid) { Ok(()) } else { Err(refs) }
    });
    // Events are heard again: what happens on the engine is seen without asking it.
    world.ok(&["start", "rests"]);
    assert_eq!(world.box_ok("rests", "wc -c < /run/agentbox/token"), "64");
    world.ok(&["audit", "verify"]);
}
