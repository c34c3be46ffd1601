//! Boxes on a Podman without root's rights, the real one.

use crate::world::{SOON, World, docker, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use futures_util::StreamExt;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Podman copies an image's files when it maps users, and that takes its time.
const SLOW: Duration = Duration::from_secs(180);

/// Podman as somebody without privileges has it, with a storage of its own.
struct Podman {
    dir: PathBuf,
    service: Option<Child>,
}

impl Podman {
    fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("abp.").tempdir_in("/tmp").unwrap().keep();
        let mut podman = Self { dir, service: None };
        let config = podman.dir.join(".config/containers");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::create_dir(podman.dir.join("run")).unwrap();
        std::fs::set_permissions(podman.dir.join("run"), PermissionsExt::from_mode(0o700)).unwrap();
        // Of the two runtimes only this one bears old and new control groups side by side.
        std::fs::write(
            config.join("containers.conf"),
            "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\n",
        )
        .unwrap();
        std::fs::write(config.join("storage.conf"), "[storage]\ndriver = \"overlay\"\n").unwrap();
        // It starts itself once more; the group has both.
        let mut service = podman.command(&["system", "service", "--time", "0", &podman.socket()]);
        let service = service.process_group(0).spawn();
        podman.service =
            Some(service.unwrap_or_else(|e| panic!("podman: {e}; run scripts/deps test")));
        let socket = podman.dir.join("run/podman.sock");
        eventually(SOON, "Podman", || socket.exists().then_some(()));
        podman
    }

    fn socket(&self) -> String {
        format!("unix://{}", self.dir.join("run/podman.sock").display())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.env_clear().env("HOME", &self.dir).env("XDG_RUNTIME_DIR", self.dir.join("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(args).current_dir(&self.dir).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "podman {args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// Gives it an image of the tests' engine.
    fn take(&self, image: &str) {
        let mut command = self.command(&["load", "-q"]);
        let mut load = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut into = load.stdin.take().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let docker = docker().await.unwrap();
            let mut tar = docker.export_image(image);
            while let Some(chunk) = tar.next().await {
                into.write_all(&chunk.unwrap()).unwrap();
            }
        });
        drop(into);
        let loaded = load.wait_with_output().unwrap();
        assert!(loaded.status.success(), "{}", text(&loaded.stderr));
        self.ok(&["tag", &format!("localhost/{image}"), &format!("docker.io/{image}")]);
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.command(&["system", "reset", "--force"]).output();
        if let Some(mut service) = self.service.take() {
            let group = nix::unistd::Pid::from_raw(i32::try_from(service.id()).unwrap_or(i32::MAX));
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
            let _ = service.wait();
        }
        // Files in it belong to users that only Podman can become.
        let _ = self.command(&["unshare", "rm", "-rf", self.dir.to_str().unwrap()]).output();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The image that boxes are made from, as the check-up names it.
fn image(world: &World) -> String {
    let checks = world.json(&["doctor"])["checks"].as_array().unwrap().clone();
    let row = checks.iter().find(|c| c["label"] == "box image").unwrap().clone();
    assert_eq!(row["level"], "ok", "{row}");
    row["detail"].as_str().unwrap().to_owned()
}

/// Files of the repository that are somebody else's.
fn of_others(world: &World) -> String {
    let own = nix::unistd::getuid().to_string();
    let mut find = world.command("find");
    let output = find.arg(world.project()).args(["!", "-uid", &own]).output().unwrap();
    text(&output.stdout)
}

#[test]
fn boxes_16_54_podman_without_root_has_boxes() {
    let podman = Podman::start();
    let mut world = World::bare();
    world.configure("");
    podman.take(&image(&world));
    world.set("DOCKER_HOST", &podman.socket());
    world.start_serve();
    let engine = world.json(&["status"])["status"]["engine"]["detail"].to_string();
    assert!(engine.contains("Podman 4") || engine.contains("Podman 5"), "{engine}");
    std::fs::write(world.project().join("untracked"), "x\n").unwrap();

    // This engine leaves ports below 1024 to root, so the box's web address needs a right of its own.
    let server = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 3000, Listen => 5, \
        ReuseAddr => 1) or die; while ($c = $s->accept) { <$c>; print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nserved); close $c }'";
    let yaml =
        format!("services:\n  web:\n    command: |\n      {server}\n    expose: {{port: 3000}}\n");
    std::fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();

    world.create("rootless");
    let first = world.box_ok("rootless", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start");
    assert_eq!(first, "1024");
    eventually_or(SLOW, "the page", || {
        let page = text(&world.in_box("rootless", "curl -sm 5 http://127.0.0.1").stdout);
        if page == "served" { Ok(()) } else { Err(page) }
    });
    // Nobody else's number: in the box it is the usual one, outside it is the person's.
    assert_eq!(
        world.box_ok("rootless", "id -u; cat untracked; stat -c %u untracked"),
        "1000\nx\n1000"
    );
    let oid = world.commit("rootless", "From the box");
    let landed = |oid: &str| {
        eventually_or(SOON, "the commit on the host", || {
            let refs = world.git(
                &world.project(),
                &["for-each-ref", "--format=%(objectname)", "refs/heads/agentbox"],
            );
            if refs == oid { Ok(()) } else { Err(format!("{refs}{}", world.host_log())) }
        });
    };
    landed(&oid);
    assert_eq!(of_others(&world), "");
    let shown = world.json(&["status", "rootless"])["details"]["processes"].clone();
    assert!(shown.as_array().is_some_and(|all| !all.is_empty()), "{shown}");

    world.ok(&["stop", "rootless"]);
    world.ok(&["start", "rootless"]);
    assert_eq!(
        world.box_ok("rootless", "cat from-the-box; wc -c < /run/agentbox/token"),
        "From the box\n64"
    );
    landed(&world.commit("rootless", "After a rest"));

    let output = world.agentbox(&["pause", "rootless"]);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let state = world.json(&["list"])["boxes"][0]["state"].clone();
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        assert_eq!(state, "paused", "{err}");
    } else {
        assert_eq!(state, "stopped", "{err}");
        assert!(err.contains("warning: this engine cannot pause a box"), "{err}");
    }
    landed(&world.commit("rootless", "After a pause"));
    assert_eq!(of_others(&world), "");

    let destroy =
        crate::world::Running::start(world.agentbox_command(&["destroy", "-y", "rootless"]));
    let ended = destroy.end_within(SLOW);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(podman.ok(&["ps", "-aq"]), "");
    assert!(!podman.ok(&["network", "ls"]).contains("agentbox"));
    assert_eq!(of_others(&world), "");
}

#[test]
fn a_box_on_another_engine_is_not_gone_and_is_never_pruned() {
    let mut world = World::headless();
    world.create("first-engine");
    world.commit("first-engine", "Kept");
    let podman = Podman::start();
    let restart = |world: &mut World, more: &str| {
        nix::sys::signal::kill(world.host_pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
        world.await_host_end();
        world.configure(more);
        world.start_serve();
    };
    restart(&mut world, &format!("engine: {{host: \"{}\"}}\n", podman.socket()));
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "unknown");
    for args in [&["prune", "-y"][..], &["prune", "--all", "-y"]] {
        let pruned = world.agentbox(args);
        assert!(pruned.status.success(), "{}", text(&pruned.stderr));
        assert!(!text(&pruned.stdout).contains("first-engine"), "{}", text(&pruned.stdout));
    }
    let refused = world.agentbox(&["start", "first-engine"]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("another is in use"), "{said}");
    assert!(said.contains("engine.host"), "{said}");
    restart(&mut world, "");
    assert_eq!(world.box_ok("first-engine", "git log -1 --format=%s"), "Kept");
}
