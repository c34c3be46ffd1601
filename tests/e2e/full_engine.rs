//! An engine whose disk is full, the real one: whoever asked is told so and what to do, nothing is left
//! half made, and everything works once there is room.

use crate::create_faults::{
    Between, Fault, STEPS, begin, nothing_is_left, repository, works_again,
};
use crate::full_disk::{is_well, nothing_to_prune};
use crate::world::{Running, SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use bollard::query_parameters as query;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// The engine whose disk is small, and the folder in which that is filled.
struct Small {
    socket: String,
    filler: PathBuf,
}

impl Small {
    fn new() -> Self {
        let stage = PathBuf::from(std::env::var_os("AGENTBOX_BIN").unwrap_or_default());
        let (socket, filler) = (stage.join("small-engine.sock"), stage.join("small-engine.filler"));
        assert!(
            socket.exists() && filler.is_dir(),
            "this test fills the disk of an engine, so it needs one of its own: stop the engine that \
             runs and run scripts/test, which then starts both"
        );
        let small = Self { socket: format!("unix://{}", socket.display()), filler };
        small.make_room();
        small
    }

    fn file(&self) -> PathBuf {
        self.filler.join("filler")
    }

    fn free(&self) -> u64 {
        let seen = nix::sys::statvfs::statvfs(&self.filler).unwrap();
        seen.blocks_available() * seen.fragment_size()
    }

    /// Fills the disk until only so much is left.
    fn leave(&self, bytes: u64) {
        let file = File::options().append(true).create(true).open(self.file()).unwrap();
        for piece in [64 * MIB, MIB, 4096] {
            while self.free() >= bytes + piece {
                let (at, piece) = (file.metadata().unwrap().len(), i64::try_from(piece).unwrap());
                let mode = nix::fcntl::FallocateFlags::empty();
                let at = i64::try_from(at).unwrap();
                if nix::fcntl::fallocate(&file, mode, at, piece).is_err() {
                    break;
                }
            }
        }
    }

    fn make_room(&self) {
        let _ = std::fs::remove_file(self.file());
    }

    /// A host that makes its boxes here.
    fn world(&self) -> World {
        let mut world = World::bare();
        world.use_engine(&self.socket);
        world.configure("");
        world
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        self.make_room();
    }
}

/// What no disk makes smaller.
fn noise(path: impl AsRef<Path>, size: u64) {
    let mut bytes = Vec::new();
    File::open("/dev/urandom").unwrap().take(size).read_to_end(&mut bytes).unwrap();
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[track_caller]
fn says_so(err: &str) {
    assert!(err.contains("o space left on device"), "{err}");
    assert!(err.contains("hint: make room on the engine's disk"), "{err}");
    assert!(err.contains("agentbox prune --all"), "{err}");
}

/// `agentbox …`, which must say that the disk is full.
#[track_caller]
fn finds_it_full(world: &World, args: &[&str]) -> String {
    let ended = Running::start(world.agentbox_command(args)).end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    says_so(&ended.err);
    ended.err
}

#[test]
fn a_create_whose_engine_has_no_room_at_any_step_leaves_nothing() {
    let small = Small::new();
    let mut world = small.world();
    let between = Between::before(&world, &small.socket);
    world.set("DOCKER_HOST", &between.path);
    std::fs::write(world.project().join("README.md"), "uncommitted\n").unwrap();
    world.start_serve();
    let (before, pid) = (repository(&world), world.host_pid());
    for step in STEPS {
        between.arm(step, Fault::Hold);
        let create = begin(&world);
        eventually_or(SOON, &format!("{step:?}"), || {
            if between.was_hit() { Ok(()) } else { Err(world.host_log()) }
        });
        small.leave(0);
        between.restore();
        let ended = create.end();
        assert_eq!(ended.code, Some(1), "{step:?}: {}", ended.err);
        says_so(&ended.err);
        is_well(&world, pid);
        small.make_room();
        world.ok(&["recover", "--all"]);
        nothing_is_left(&world, &format!("{step:?}"));
        nothing_to_prune(&world);
        assert_eq!(repository(&world), before, "{step:?}");
    }
    works_again(&world);
}

#[test]
fn whatever_of_a_project_does_not_fit_into_a_box_is_said() {
    let small = Small::new();
    let mut world = small.world();
    world.start_serve();
    let project = world.project();
    noise(project.join("committed"), 8 * MIB);
    std::fs::write(project.join(".gitignore"), ".env\n").unwrap();
    world.git(&project, &["add", "."]);
    world.git(&project, &["commit", "-qm", "Large"]);
    noise(project.join("untracked"), 8 * MIB);
    noise(project.join(".env"), 8 * MIB);
    let carried = world.home().parent().unwrap().join("carried");
    noise(&carried, 8 * MIB);
    std::fs::write(project.join("agentbox.yaml"), "carry:\n  - ~/carried\n").unwrap();
    let (before, pid) = (repository(&world), world.host_pid());
    let create = ["create", "-n", "half", "--with-env", "--carry-yes"];
    for (left, what) in [
        (0, "make the container"),
        (4, "committed"),
        (12, "untracked"),
        (20, ".env"),
        (28, "carried"),
    ] {
        small.leave(left * MIB);
        let said = finds_it_full(&world, &create);
        assert!(said.contains(what), "{what}: {said}");
        if what == "carried" {
            // All but that is there, so it is kept.
            world.ok(&["destroy", "-y", "half"]);
        }
        is_well(&world, pid);
        small.make_room();
        nothing_is_left(&world, &format!("{left} MB were left"));
        nothing_to_prune(&world);
        assert_eq!(repository(&world), before, "{left}");
    }
    small.leave(40 * MIB);
    world.ok(&create);
    let sum = |path: PathBuf| {
        text(&world.command("sha256sum").arg(path).output().unwrap().stdout)[..64].to_owned()
    };
    for (name, path) in [
        ("committed", project.join("committed")),
        ("untracked", project.join("untracked")),
        (".env", project.join(".env")),
        ("~/carried", carried.clone()),
    ] {
        let inside = world.box_ok("half", &format!("sha256sum {name}"));
        assert_eq!(inside[..64], sum(path), "{name}");
    }
    // What makes room works where there is none.
    small.leave(0);
    world.ok(&["destroy", "-y", "half"]);
    nothing_is_left(&world, "destroyed on a full disk");
}

fn engine<T>(world: &World, work: impl AsyncFnOnce(bollard::Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(world.docker().await.expect("an engine")).await })
}

/// All images of the engine, also those without a name.
fn images(world: &World) -> BTreeSet<String> {
    engine(world, async |docker| {
        let all = query::ListImagesOptionsBuilder::default().all(true).build();
        let found = docker.list_images(Some(all)).await.unwrap();
        found.into_iter().map(|image| image.id).collect()
    })
}

#[test]
fn what_a_box_at_work_gets_or_leaves_on_a_full_disk() {
    let small = Small::new();
    let mut world = small.world();
    world.start_serve();
    world.create("works");
    let _images = crate::checkpoints::Images(&world);
    world.ok(&["checkpoint", "create", "works", "--name", "warm"]);
    let (before, checkpoints) = (images(&world), world.json(&["checkpoint", "ls"]));

    world.box_ok("works", "head -c 8000000 /dev/urandom > ~/own");
    small.leave(2 * MIB);
    finds_it_full(&world, &["checkpoint", "create", "works", "--name", "warm", "--replace"]);
    assert_eq!(world.json(&["checkpoint", "ls"]), checkpoints);
    assert_eq!(world.box_ok("works", "wc -c < ~/own"), "8000000");

    let file = world.dir().join("large");
    noise(&file, 8 * MIB);
    let file = file.to_str().unwrap();
    finds_it_full(&world, &["cp", "-y", file, "works:/workspace/large"]);
    assert_eq!(world.box_ok("works", "ls -A"), ".git\nREADME.md");

    small.leave(0);
    finds_it_full(&world, &["create", "-n", "half"]);
    world.ok(&["stop", "works"]);
    small.make_room();
    assert_eq!(images(&world), before);
    world.ok(&["start", "works"]);
    world.ok(&["cp", "-y", file, "works:/workspace/large"]);
    assert_eq!(
        world.box_ok("works", "wc -c < /workspace/large; wc -c < ~/own"),
        "8388608\n8000000"
    );
    world.ok(&["checkpoint", "create", "works", "--name", "warm", "--replace"]);
    assert_ne!(world.json(&["checkpoint", "ls"]), checkpoints);
    world.ok(&["audit", "verify"]);
}

#[test]
fn an_image_that_does_not_fit_is_said() {
    let small = Small::new();
    let mut world = small.world();
    // Another program in the box is another image.
    let ctl = world.dir().join("agentbox-ctl");
    std::fs::copy(world.program("box/agentbox-ctl"), &ctl).unwrap();
    let mut more = File::options().append(true).open(&ctl).unwrap();
    std::io::copy(&mut File::open("/dev/urandom").unwrap().take(4096), &mut more).unwrap();
    world.set("AGENTBOX_CTL", ctl.to_str().unwrap());
    world.start_serve();
    let root = world.dir().join("root");
    noise(root.join("file"), 8 * MIB);
    let tar = world.dir().join("base.tar");
    let made = world.command("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").status();
    assert!(made.unwrap().success());
    let import = ["prepare", "--stage", "core", "--import-base", tar.to_str().unwrap()];

    small.leave(2 * MIB);
    finds_it_full(&world, &import);
    small.make_room();
    // It is there now, and no system: the build fails for another reason.
    let ended = Running::start(world.agentbox_command(&import)).end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(!ended.err.contains("make room"), "{}", ended.err);
    small.leave(MIB);
    finds_it_full(&world, &["prepare", "--stage", "core"]);
    finds_it_full(&world, &["create", "-n", "half"]);
    small.make_room();
    nothing_is_left(&world, "no room for its image");
    engine(&world, async |docker| {
        let force = query::RemoveImageOptionsBuilder::default().force(true).build();
        docker.remove_image("debian:bookworm-slim", Some(force), None).await.unwrap();
    });
}
