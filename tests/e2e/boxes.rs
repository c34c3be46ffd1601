//! From a folder to a box, and back to nothing.

use crate::world::{SOON, World, text};
use agentbox_e2e::wait::{eventually, in_time};
use std::time::{Duration, Instant};

#[test]
fn boxes_16_03_uncommitted_and_untracked_work_arrives_as_it_is() {
    let world = World::headless();
    let project = world.project();
    let write = |name: &str, content: &str| std::fs::write(project.join(name), content).unwrap();
    for name in ["kept", "changed", "removed", "staged-then-changed", "moved"] {
        write(name, &format!("{name}\n").repeat(5));
    }
    world.git(&project, &["add", "."]);
    world.git(&project, &["commit", "-qm", "Files"]);
    write("changed", "changed\nagain\n");
    std::fs::remove_file(project.join("removed")).unwrap();
    write("staged", "new\n");
    world.git(&project, &["add", "staged"]);
    write("staged-then-changed", "one\n");
    world.git(&project, &["add", "staged-then-changed"]);
    write("staged-then-changed", "two\n");
    world.git(&project, &["mv", "moved", "elsewhere"]);
    write("unträcked file", "hello\n");
    write(".gitignore", "secret\n");
    write("secret", "hunter2\n");
    let before = world.git(&project, &["status", "--porcelain"]);
    let (index, stashes) = (
        std::fs::read(project.join(".git/index")).unwrap(),
        world.git(&project, &["stash", "list"]),
    );

    world.create("carry");
    assert_eq!(world.box_ok("carry", "git status --porcelain"), before);
    assert_eq!(
        world.box_ok("carry", "cat staged-then-changed; git show :staged-then-changed"),
        "two\none"
    );
    assert!(
        !world.in_box("carry", "test -e secret").status.success(),
        "an ignored file was copied"
    );
    assert_eq!(world.box_ok("carry", "stat -c %U . changed 'unträcked file' | sort -u"), "vscode");
    assert_eq!(world.git(&project, &["status", "--porcelain"]), before);
    assert_eq!(
        std::fs::read(project.join(".git/index")).unwrap(),
        index,
        "the host's index was touched"
    );
    assert_eq!(world.git(&project, &["stash", "list"]), stashes);
}

#[test]
fn a_commit_in_a_box_is_on_the_host_within_two_seconds() {
    let world = World::headless();
    world.create("quick");
    let mut count = 0;
    in_time(Duration::from_secs(2), "the commit on the host", || {
        count += 1;
        let oid = world.commit("quick", &format!("Quick {count}"));
        let committed = Instant::now();
        eventually(SOON, "the commit on the host", || {
            let output = world
                .command("git")
                .current_dir(world.project())
                .args(["rev-parse", "-q", "--verify", "agentbox/quick"])
                .output()
                .unwrap();
            (text(&output.stdout).trim() == oid).then_some(())
        });
        committed.elapsed()
    });
    // The host's own gc may not take what the box still needs.
    world.git(&world.project(), &["gc", "--quiet", "--prune=now"]);
    world.box_ok("quick", "git fsck --connectivity-only && git log --oneline");
}

#[test]
fn stop_start_and_destroy_leave_what_they_should() {
    let world = World::headless();
    let made = world.create("life");
    assert_eq!(made["index"], 1);
    world.commit("life", "Kept");
    world.box_ok("life", "echo draft > draft.txt");
    assert_eq!(world.json(&["stop", "life"])["box"]["state"], "stopped");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "stopped");
    assert_eq!(world.json(&["start", "life"])["box"]["state"], "running");
    assert_eq!(world.box_ok("life", "cat draft.txt"), "draft");
    assert!(
        !world.agentbox(&["destroy", "life"]).status.success(),
        "destroyed without being asked"
    );
    let gone = world.json(&["destroy", "life", "-y"]);
    assert_eq!(gone["destroyed"]["keptBranches"][0], "agentbox/life", "{gone}");
    assert_eq!(world.json(&["list"])["boxes"].as_array().unwrap().len(), 0);
    let refs = world.git(&world.project(), &["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("refs/agentbox/"), "pins are left: {refs}");
    assert!(world.home().join("run/boxes").read_dir().unwrap().next().is_none());
    assert!(world.home().join("repos").read_dir().unwrap().next().is_none());
    assert_eq!(world.create("again")["index"], 2, "an index is never used twice");
}

#[test]
fn boxes_16_33_commands_run_as_given_and_their_code_comes_back() {
    let world = World::headless();
    world.create("run");
    assert_eq!(
        world.agentbox(&["shell", "run", "--", "sh", "-c", "exit 7"]).status.code(),
        Some(7)
    );
    assert_eq!(world.ok(&["shell", "run", "--", "printf", "%s|", "a b", "c"]), "a b|c|");
    assert_eq!(world.ok(&["shell", "--", "echo $HOME"]).trim(), "/home/vscode");
    let uid = nix::unistd::geteuid().as_raw().to_string();
    assert_eq!(world.box_ok("run", "id -u"), uid, "the box user has the person's uid");
    // Input and a lot of output stream through.
    let mut child = world.agentbox_command(&["shell", "run", "--", "wc", "-c"]);
    let mut child = child
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    {
        use std::io::Write;
        let mut input = child.stdin.take().unwrap();
        for _ in 0..256 {
            input.write_all(&[b'x'; 16 * 1024]).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout).trim(), "4194304");
    assert_eq!(
        world.ok(&["shell", "run", "--", "head", "-c", "3000000", "/dev/zero"]).len(),
        3_000_000
    );
}

#[test]
fn extra_certificates_of_the_host_are_trusted_in_a_box() {
    let mut world = World::bare();
    let (key, cert) = (world.dir().join("ca.key"), world.dir().join("inspecting-proxy.crt"));
    let made = world
        .command("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=Inspecting proxy",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(
        world.home().join("config.yaml"),
        format!("box:\n  stage: core\n  extraCas: [{}]\n", cert.display()),
    )
    .unwrap();
    world.start_serve();
    let made = world.create("trusting");
    let pem = std::fs::read_to_string(&cert).unwrap();
    let line = pem.lines().nth(3).unwrap();
    world.box_ok("trusting", &format!("grep -qF '{line}' /etc/ssl/certs/ca-certificates.crt"));
    // Made for this certificate alone.
    world.ok(&["destroy", "-y", "trusting"]);
    crate::world::remove_image(made["image"].as_str().unwrap());
}

#[test]
fn a_failing_create_leaves_nothing_behind() {
    let world = World::headless();
    let output = world.agentbox(&["create", "-n", "nope", "--image", "agentbox/no-such-image:1"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no-such-image"), "{}", text(&output.stderr));
    assert_eq!(world.json(&["list", "-g"])["boxes"].as_array().unwrap().len(), 0);
    assert!(world.home().join("run/boxes").read_dir().unwrap().next().is_none());
    let refs = world.git(&world.project(), &["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("refs/agentbox/"), "{refs}");
    // The name is free again.
    world.create("nope");
    let twice = world.agentbox(&["create", "-n", "nope"]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
}

#[test]
fn the_demo_shows_a_push_and_cleans_up() {
    let world = World::headless();
    let demo = crate::world::Running::start(world.agentbox_command(&["demo"]));
    let question = eventually(SOON, "the demo's question", || world.questions().first().cloned());
    let name = question["boxName"].as_str().unwrap().to_owned();
    assert!(name.starts_with("demo-"), "{name}");
    world.approve(&name, &[]);
    let ended = demo.end_within(2 * SOON);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("allowed"), "{}", ended.err);
    assert_eq!(world.json(&["list", "-g"])["boxes"].as_array().unwrap().len(), 0);
}

#[test]
fn a_command_ends_when_its_person_goes() {
    let world = World::headless();
    world.create("run");
    let shell = crate::world::Running::start(
        world.agentbox_command(&["shell", "run", "--", "sleep", "777"]),
    );
    let runs = || world.in_box("run", "pgrep -x sleep").status.success();
    eventually(SOON, "the command running", || runs().then_some(()));
    shell.kill();
    eventually(SOON, "the command ending", || (!runs()).then_some(()));
}

#[test]
fn a_host_that_was_killed_while_it_made_a_box_cleans_up_later() {
    let mut world = World::headless();
    let create = crate::world::Running::start(world.agentbox_command(&["create", "-n", "half"]));
    eventually(SOON, "the box's socket folder", || {
        world.home().join("run/boxes").read_dir().unwrap().next().map(drop)
    });
    world.kill_host();
    assert_ne!(create.end().code, Some(0));
    world.start_serve();
    // Its name and its network are free again, as soon as the engine has done what it was asked.
    eventually(SOON, "the name being free", || {
        world.agentbox(&["create", "-n", "half"]).status.success().then_some(())
    });
    assert_eq!(world.box_ok("half", "git rev-parse --abbrev-ref HEAD"), "agentbox/half");
    eventually(SOON, "only the new box's pins and folder being left", || {
        let pins =
            world.git(&world.project(), &["for-each-ref", "--format=%(refname)", "refs/agentbox/"]);
        let owners: std::collections::BTreeSet<_> =
            pins.lines().map(|l| l.split('/').nth(2)).collect();
        let folders = world.home().join("run/boxes").read_dir().unwrap().count();
        (owners.len() == 1 && folders == 1).then_some(())
    });
}
