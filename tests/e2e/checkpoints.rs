//! Boxes kept as they are, and boxes that start from there.

use crate::create_faults::{self, Fault};
use crate::world::{Running, SOON, World, docker, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use bollard::query_parameters as query;
use futures_util::StreamExt;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// Something of a bollard call, on a thread of its own runtime.
fn engine<T>(work: impl AsyncFnOnce(bollard::Docker) -> T) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { work(docker().await.expect("an engine")).await })
}

fn inspect(image: &str) -> bollard::models::ImageInspect {
    engine(async |docker| docker.inspect_image(image).await.unwrap())
}

/// Whether any layer, or the image's own description, holds these words.
fn holds(image: &str, words: &[&str]) -> Vec<bool> {
    let mut grep = std::process::Command::new("grep");
    grep.args(["-a", "-o", "-F"]).args(words.iter().flat_map(|word| ["-e", word]));
    let mut grep =
        grep.env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut into = grep.stdin.take().unwrap();
    let found = std::thread::spawn(move || grep.wait_with_output().unwrap());
    engine(async |docker| {
        let mut saved = std::pin::pin!(docker.export_image(image));
        while let Some(chunk) = saved.next().await {
            into.write_all(&chunk.unwrap()).unwrap();
        }
    });
    drop(into);
    let found = text(&found.join().unwrap().stdout);
    words.iter().map(|word| found.lines().any(|line| line == *word)).collect()
}

/// Removes the images of a test's checkpoints, however it ends.
pub struct Images<'a>(pub &'a World);

impl Drop for Images<'_> {
    fn drop(&mut self) {
        let listed = self.0.agentbox(&["checkpoint", "ls", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        let boxes = self.0.agentbox(&["list", "--json"]);
        let boxes: Value = serde_json::from_slice(&boxes.stdout).unwrap_or_default();
        for view in boxes["boxes"].as_array().into_iter().flatten() {
            self.0.agentbox(&["destroy", "-y", view["name"].as_str().unwrap()]);
        }
        for view in listed["checkpoints"].as_array().into_iter().flatten() {
            self.0.agentbox(&["checkpoint", "rm", "-y", view["id"].as_str().unwrap()]);
        }
    }
}

fn names(world: &World) -> Vec<String> {
    let listed = world.json(&["checkpoint", "ls"]);
    let views = listed["checkpoints"].as_array().unwrap();
    views.iter().map(|view| view["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn boxes_16_42_numbers_are_never_given_twice_and_images_say_whose_they_are() {
    let world = World::headless();
    world.create("fix");
    let _images = Images(&world);
    let first = world.json(&["checkpoint", "create", "fix"])["checkpoint"].clone();
    assert_eq!((&first["name"], &first["kind"]), (&"fix-1".into(), &"layered".into()));
    assert!(world.ok(&["checkpoint", "create"]).starts_with("saved checkpoint fix-2 (layered, "));
    world.ok(&["checkpoint", "rm", "fix-2", "-y"]);
    let merged = world.json(&["checkpoint", "create", "--merged"])["checkpoint"].clone();
    assert_eq!((&merged["name"], &merged["kind"]), (&"fix-3".into(), &"flattened".into()));
    assert_eq!(names(&world), ["fix-3", "fix-1"]);

    let id = world.json(&["list"])["boxes"][0]["id"].as_str().unwrap().to_owned();
    let here = world.project();
    // The box has it back, and no image has it.
    let file = world.box_ok("fix", "cat /etc/agentbox/box.env");
    assert!(file.contains("AGENTBOX_BOX_NAME='fix'"), "{file}");
    for view in [&first, &merged] {
        assert_eq!(holds(view["id"].as_str().unwrap(), &["AGENTBOX_BOX_NAME='fix'"]), [false]);
        let config = inspect(view["id"].as_str().unwrap()).config.unwrap();
        let labels = config.labels.unwrap();
        assert_eq!(labels["agentbox.role"], "checkpoint");
        assert_eq!(labels["agentbox.checkpoint"], view["name"].as_str().unwrap());
        assert!(labels.contains_key("agentbox.owner") && labels.contains_key("agentbox.project"));
        for pair in config.env.unwrap() {
            let (name, value) = pair.split_once('=').unwrap();
            assert!(!value.contains(&id) && value != "fix", "{pair}");
            assert!(!value.contains(here.to_str().unwrap()), "{pair}");
            let own = name.starts_with("AGENTBOX_");
            // An engine's commit can empty a variable, not take it away.
            assert!(!own || (view == &first && value.is_empty()), "{pair}");
        }
    }
    let bad = world.agentbox(&["checkpoint", "create", "--name", "a/b"]);
    assert_eq!(bad.status.code(), Some(2), "{}", text(&bad.stderr));
    let twice = world.agentbox(&["checkpoint", "create", "--name", "fix-1"]);
    assert_eq!(twice.status.code(), Some(1));
    let said = text(&twice.stderr);
    assert!(said.contains("already, made 2") && said.contains("--replace"), "{said}");
}

#[test]
fn boxes_16_43_after_three_layers_the_next_is_one() {
    let world = World::headless();
    let _images = Images(&world);
    world.create("zero");
    let mut last = "zero".to_owned();
    for n in ["one", "two", "three"] {
        world.box_ok(&last, &format!("echo {n} >> ~/grown"));
        world.ok(&["checkpoint", "create", &last, "--name", &format!("c-{n}")]);
        world.ok(&["create", "-n", n, "--snapshot", &format!("c-{n}")]);
        last = n.to_owned();
    }
    let listed = world.json(&["checkpoint", "ls"])["checkpoints"][0].clone();
    assert_eq!((&listed["name"], &listed["kind"]), (&"c-three".into(), &"layered".into()));
    assert_eq!(listed["parents"], serde_json::json!(["c-two", "c-one"]));
    let before = inspect(listed["id"].as_str().unwrap());

    let flat =
        world.json(&["checkpoint", "create", "three", "--name", "flat"])["checkpoint"].clone();
    assert_eq!((&flat["kind"], &flat["parents"]), (&"flattened".into(), &serde_json::json!([])));
    let after = inspect(flat["id"].as_str().unwrap());
    assert_eq!(after.root_fs.unwrap().layers.unwrap().len(), 1);
    let (before, after) = (before.config.unwrap(), after.config.unwrap());
    assert_eq!((before.working_dir, before.user), (after.working_dir, after.user));
    assert_eq!(before.entrypoint, after.entrypoint);
    assert_eq!(before.cmd.unwrap_or_default(), after.cmd.unwrap_or_default());
    let plain = |env: Option<Vec<String>>| {
        let mut env: Vec<String> = env.unwrap().into_iter().filter(|e| !e.ends_with('=')).collect();
        env.sort();
        env
    };
    assert_eq!(plain(before.env), plain(after.env));
    // Nothing of the way there is left.
    let left = engine(async |docker| {
        let options = query::ListContainersOptionsBuilder::default().all(true).build();
        let all = docker.list_containers(Some(options)).await.unwrap();
        let names: Vec<String> =
            all.into_iter().flat_map(|c| c.names.unwrap_or_default()).collect();
        names.into_iter().filter(|name| name.contains("flatten")).count()
    });
    assert_eq!(left, 0);
    world.ok(&["create", "-n", "last", "--snapshot", "flat"]);
    assert_eq!(world.box_ok("last", "cat ~/grown && git status --porcelain"), "one\ntwo\nthree");
    // What a chain stands on may be forgotten; what stands on it stays.
    for name in ["one", "two", "three"] {
        world.ok(&["destroy", "-y", name]);
    }
    world.ok(&["checkpoint", "rm", "-y", "c-one"]);
    world.ok(&["create", "-n", "again", "--snapshot", "c-three"]);
    assert_eq!(world.box_ok("again", "cat ~/grown"), "one\ntwo\nthree");
}

#[test]
fn boxes_16_44_a_new_box_has_the_caches_and_not_the_edits() {
    let world = World::headless();
    let here = world.project();
    std::fs::write(here.join(".gitignore"), "node_modules\n").unwrap();
    world.git(&here, &["add", "."]);
    world.git(&here, &["commit", "-qm", "Ignore"]);
    world.create("source");
    world.box_ok(
        "source",
        "mkdir -p node_modules/m && echo cached > node_modules/m/f && echo edited > README.md && \
         mkdir -p new && echo n > new/file && git add new && git commit -qm New && echo staged > s && git add s",
    );
    let source = world.json(&["list"])["boxes"][0].clone();
    world.ok(&["checkpoint", "create", "source", "--name", "warm", "--set-default"]);
    world.ok(&["destroy", "-y", "source"]);
    let _images = Images(&world);
    std::fs::write(here.join("later"), "later\n").unwrap();
    world.git(&here, &["add", "."]);
    world.git(&here, &["commit", "-qm", "Later"]);
    let head = world.git(&here, &["rev-parse", "HEAD"]);

    world.ok(&["create", "-n", "next", "--snapshot", "warm"]);
    let script = "git rev-parse HEAD && git branch --show-current && git status --porcelain && \
                  cat README.md node_modules/m/f later && ls -d new s 2>/dev/null; true";
    let wanted = format!("{head}\nagentbox/next\n# Shop\ncached\nlater");
    assert_eq!(world.box_ok("next", script), wanted);
    let identity = world.box_ok("next", "printenv AGENTBOX_BOX_ID AGENTBOX_BOX_NAME");
    assert!(identity.ends_with("\nnext") && !identity.contains(source["id"].as_str().unwrap()));
    let file = world.box_ok("next", "cat /etc/agentbox/box.env");
    assert!(
        file.contains("AGENTBOX_BOX_NAME='next'") && file.contains("'next.localhost'"),
        "{file}"
    );
    assert!(file.contains("AGENTBOX_PROJECT_INDEX='2'") && !file.contains("source"), "{file}");
    let none = world.agentbox(&["create", "-n", "none", "--snapshot", "cold"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("checkpoint not found: cold"), "{}", text(&none.stderr));
}

/// The engine's own commit fails: it goes away before it hears of it, and when it has done it. That its
/// disk is full is in [`crate::full_engine`].
#[test]
fn boxes_16_45_a_replacement_that_fails_loses_nothing() {
    let (world, between) = create_faults::world();
    let id = world.create("fix")["id"].as_str().unwrap().to_owned();
    let _images = Images(&world);
    world.box_ok("fix", "echo one > ~/which");
    world.ok(&["checkpoint", "create", "--name", "warm", "--set-default"]);
    world.box_ok("fix", "echo two > ~/which");
    world.ok(&["checkpoint", "create", "--name", "warm", "--replace"]);
    assert_eq!(names(&world), ["warm"]);
    let before = world.json(&["checkpoint", "ls"]);
    assert_eq!(before["checkpoints"][0]["default"], true);
    assert_eq!(images_of(&id), 1);

    world.box_ok("fix", "echo three > ~/which");
    for fault in [Fault::Before, Fault::After] {
        between.arm(&["POST", "/commit"], fault);
        let args = ["checkpoint", "create", "fix", "--name", "warm", "--replace"];
        let failed = world.agentbox(&args);
        let said = text(&failed.stderr);
        assert!(between.was_hit(), "the engine was not asked: {said}");
        between.restore();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        eventually_or(SOON, "the old checkpoint, and it alone", || {
            let now = world.agentbox(&["checkpoint", "ls", "--json"]);
            let now: Value = serde_json::from_slice(&now.stdout).unwrap_or_default();
            let images = images_of(&id);
            if now == before && images == 1 { Ok(()) } else { Err(format!("{now}, {images}")) }
        });
        // The box goes on as if nothing had been.
        eventually_or(SOON, "a box that goes on", || {
            let view = world.json(&["list"])["boxes"][0].clone();
            let goes_on = view["busy"].is_null() && view["state"] == "running";
            if goes_on { Ok(()) } else { Err(format!("{view}{}", world.host_log())) }
        });
        assert_eq!(world.box_ok("fix", "cat ~/which"), "three");
    }
    world.ok(&["create", "-n", "next"]);
    assert_eq!(world.box_ok("next", "cat ~/which"), "two");
}

/// How many images the engine has of a box.
fn images_of(id: &str) -> usize {
    engine(async |docker| {
        let options = query::ListImagesOptionsBuilder::default().all(true).build();
        let all = docker.list_images(Some(options)).await.unwrap();
        all.into_iter().filter(|i| i.labels.get("agentbox.box").is_some_and(|of| of == id)).count()
    })
}

#[test]
fn boxes_16_46_a_default_that_is_removed_is_none() {
    let world = World::headless();
    let plain = world.create("fix")["image"].clone();
    let _images = Images(&world);
    let made = world.json(&["checkpoint", "create", "--name", "warm"])["checkpoint"].clone();
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        world.ok(&["checkpoint", "set-default", "warm"]),
        "new boxes of shop start from warm\n"
    );
    assert_eq!(world.ok(&["checkpoint", "set-default"]), "warm\n");
    assert_eq!(world.create("from-default")["image"], id);
    world.ok(&["checkpoint", "set-default", "--clear"]);
    assert_eq!(world.create("plain")["image"], plain);
    world.ok(&["checkpoint", "set-default", "warm"]);
    world.ok(&["destroy", "-y", "from-default"]);

    // A pointer in the settings is the person's own; it is only said.
    let config = world.home().join("config.yaml");
    let settings = std::fs::read_to_string(&config).unwrap();
    assert!(settings.contains("box: {"), "{settings}");
    std::fs::write(&config, settings.replacen("box: {", &format!("box: {{image: '{id}', "), 1))
        .unwrap();
    let removed = world.agentbox(&["checkpoint", "rm", "warm", "-y"]);
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    assert!(text(&removed.stderr).contains("box.image in the settings still names it"));
    assert!(std::fs::read_to_string(&config).unwrap().contains(id));
    std::fs::write(&config, settings).unwrap();
    assert_eq!(world.create("after")["image"], plain);
}

#[test]
fn no_layer_of_a_checkpoint_holds_what_is_the_boxs_own() {
    let world = World::headless();
    world.create("fix");
    let _images = Images(&world);
    let token = world.box_ok("fix", "cat /run/agentbox/token");
    world.box_ok(
        "fix",
        "echo KEY=planted-in-env > .env && mkdir -p api ~/.ssh ~/.codex && echo K=planted-in-api > api/.env.local && \
         echo planted-authorized > ~/.ssh/authorized_keys && echo planted-login > ~/.codex/auth.json && \
         sudo mkdir -p /etc/ssh && echo planted-host-key | sudo tee /etc/ssh/ssh_host_ed25519_key >/dev/null && \
         sudo chmod 600 /etc/ssh/ssh_host_ed25519_key && echo planted-canary > ~/seen",
    );
    let words = [
        token.as_str(),
        "planted-in-env",
        "planted-in-api",
        "planted-authorized",
        "planted-login",
        "planted-host-key",
        "planted-canary",
    ];
    let only_canary = [false, false, false, false, false, false, true];
    for (name, more) in [("plain", &[][..]), ("flat", &["--merged"])] {
        let args = [&["checkpoint", "create", "--name", name], more].concat();
        let view = world.json(&args)["checkpoint"].clone();
        assert_eq!(holds(view["id"].as_str().unwrap(), &words), only_canary, "{name}");
    }
    // The box has all of it, as it was.
    let script = "cat .env api/.env.local ~/.ssh/authorized_keys ~/.codex/auth.json && \
                  sudo stat -c '%a %U' /etc/ssh/ssh_host_ed25519_key && ls /run/agentbox | grep held; true";
    assert_eq!(
        world.box_ok("fix", script),
        "KEY=planted-in-env\nK=planted-in-api\nplanted-authorized\nplanted-login\n600 root"
    );
    let args = ["checkpoint", "create", "--name", "env", "--include-env"];
    let view = world.json(&args)["checkpoint"].clone();
    let found = holds(view["id"].as_str().unwrap(), &words);
    assert_eq!(found, [false, true, true, false, false, false, true]);
    assert_eq!(view["includesEnv"], true);
}

#[test]
fn a_box_says_that_it_is_frozen_for_a_checkpoint() {
    let world = World::headless();
    world.create("fix");
    let _images = Images(&world);
    world.box_ok("fix", "head -c 400000000 /dev/urandom > ~/large");
    let making = Running::start(world.agentbox_command(&["checkpoint", "create"]));
    eventually(SOON, "a busy box", || {
        (world.json(&["list"])["boxes"][0]["busy"] == "checkpoint").then_some(())
    });
    // Whoever comes meanwhile waits, and does not wake it.
    assert_eq!(world.box_ok("fix", "echo here"), "here");
    assert_eq!(making.end_within(3 * SOON).code, Some(0));
    eventually(SOON, "a box that goes on", || {
        let view = world.json(&["list"])["boxes"][0].clone();
        (view["busy"].is_null() && view["state"] == "running").then_some(())
    });
    world.ok(&["stop", "fix"]);
    let made = world.agentbox(&["checkpoint", "create"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stderr).contains("fix is stopped; starting it"));
    let table = world.ok(&["checkpoint", "ls"]);
    assert!(table.contains("SIZE") && table.contains("400."), "{table}");
}

#[test]
fn a_host_killed_while_it_captures_leaves_the_box_whole_and_no_image() {
    let mut world = World::headless();
    let id = world.create("fix")["id"].as_str().unwrap().to_owned();
    world.box_ok("fix", "echo KEY=1 > .env && head -c 400000000 /dev/urandom > ~/large");
    let making = Running::start(world.agentbox_command(&["checkpoint", "create", "--merged"]));
    eventually(SOON, "a frozen box", || {
        let view = world.json(&["list"])["boxes"][0].clone();
        (view["busy"] == "checkpoint" && view["state"] == "paused").then_some(())
    });
    world.kill_host();
    making.kill();
    let images = || images_of(&id);
    // The engine goes on with it, although nobody waits.
    eventually(SOON * 2, "the engine's image", || (images() == 1).then_some(()));
    world.start_serve();
    eventually(SOON * 2, "the box as it was", || {
        let seen = world.in_box("fix", "cat .env && ls /run/agentbox | grep -c held");
        (text(&seen.stdout) == "KEY=1\n0\n").then_some(())
    });
    eventually(SOON * 2, "no image of it", || (images() == 0).then_some(()));
    assert_eq!(names(&world), [""; 0]);
}
