//! A disk of the host that is full while a box is made: whoever asked is told so, nothing of the box is left, and
//! everything works again once there is room.

use crate::create_faults::{
    Between, Fault, STEPS, begin, nothing_is_left, repository, works_again,
};
use crate::world::{SOON, World};
use agentbox_e2e::wait::eventually_or;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// A disk of a few megabytes, and what fills it.
struct Small(PathBuf);

impl Small {
    fn new() -> Self {
        let stage = PathBuf::from(std::env::var_os("AGENTBOX_BIN").unwrap_or_default());
        let disk = stage.join("small");
        assert!(disk.is_dir(), "{} is a small disk; run scripts/test", disk.display());
        for entry in std::fs::read_dir(&disk).unwrap().flatten() {
            let path = entry.path();
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
        Self(disk)
    }

    /// The disk holds this folder from now on; where it was, a link leads there.
    fn hold(&self, folder: &std::path::Path) {
        let there = self.0.join(folder.file_name().unwrap());
        let copied = std::process::Command::new("cp").arg("-a").arg(folder).arg(&there).status();
        assert!(copied.unwrap().success());
        std::fs::remove_dir_all(folder).unwrap();
        std::os::unix::fs::symlink(&there, folder).unwrap();
    }

    fn fill(&self) {
        let mut file = File::options().append(true).create(true).open(self.filler()).unwrap();
        for size in [64 * 1024, 4096, 1] {
            let block = vec![b'x'; size];
            while file.write_all(&block).is_ok() {}
        }
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

/// A host whose home, or whose project, is on the small disk, and that reaches its engine through the
/// go-between.
fn world(small: &Small, on_it: impl Fn(&World) -> PathBuf) -> (World, Between) {
    let mut world = World::bare();
    let between = Between::new(&world);
    world.set("DOCKER_HOST", &between.path);
    world.configure("");
    std::fs::write(world.project().join("README.md"), "uncommitted\n").unwrap();
    std::fs::write(world.project().join("untracked"), "x\n").unwrap();
    small.hold(&on_it(&world));
    world.start_serve();
    (world, between)
}

#[track_caller]
fn says_so(err: &str) {
    assert!(err.contains("is full") || err.contains("o space left on device"), "{err}");
    assert!(err.contains("hint: make room on that disk"), "{err}");
}

/// The host is the same and well: it answers, its trail is whole, and no box is there.
pub fn is_well(world: &World, pid: nix::unistd::Pid) {
    let status = world.json(&["status"]);
    assert_eq!(status["status"]["pid"], pid.as_raw());
    assert_eq!(world.json(&["list"])["boxes"].as_array().unwrap().len(), 0);
    world.ok(&["audit", "verify"]);
}

/// Nothing of a box is lying about that only clearing up would find.
#[track_caller]
pub fn nothing_to_prune(world: &World) {
    let pruned = world.json(&["prune", "--all", "--dry-run"]);
    let ours = |kind: &str| kind != "image" && kind != "checkpoint";
    let found = pruned["pruned"]["found"].as_array().unwrap().iter();
    let found: Vec<_> = found.filter(|f| ours(f["kind"].as_str().unwrap())).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_full_home_at_any_step_leaves_nothing() {
    let small = Small::new();
    let (world, between) = world(&small, World::home);
    let (before, pid) = (repository(&world), world.host_pid());
    for step in STEPS {
        between.arm(step, Fault::Hold);
        let create = begin(&world);
        eventually_or(SOON, &format!("{step:?}"), || {
            if between.was_hit() { Ok(()) } else { Err(world.host_log()) }
        });
        small.fill();
        between.restore();
        let ended = create.end();
        assert_eq!(ended.code, Some(1), "{step:?}: {}", ended.err);
        says_so(&ended.err);
        assert!(ended.err.contains(world.home().to_str().unwrap()), "{}", ended.err);
        is_well(&world, pid);
        small.make_room();
        // What could not be written down meanwhile is looked after now.
        world.ok(&["recover", "--all"]);
        nothing_is_left(&world, &format!("{step:?}"));
        nothing_to_prune(&world);
        assert_eq!(repository(&world), before, "{step:?}");
    }
    works_again(&world);
}

#[test]
fn a_home_that_is_full_from_the_start_and_a_host_killed_then() {
    let small = Small::new();
    let (mut world, _between) = world(&small, World::home);
    let before = repository(&world);
    world.create("kept");
    small.fill();
    let ended = begin(&world).end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    says_so(&ended.err);
    // Boxes go on, and what needs nothing written works.
    assert_eq!(world.box_ok("kept", "cat untracked"), "x");
    world.ok(&["doctor"]);
    // A host that is killed then comes up all the same.
    world.kill_host();
    world.start_serve();
    assert_eq!(world.box_ok("kept", "cat untracked"), "x");
    small.make_room();
    world.ok(&["recover", "--all"]);
    assert_eq!(world.box_ok("kept", "cat untracked"), "x");
    world.ok(&["destroy", "-y", "kept"]);
    nothing_is_left(&world, "at the end");
    assert_eq!(repository(&world), before);
    works_again(&world);
}

#[test]
fn a_full_disk_of_the_project_leaves_nothing() {
    let small = Small::new();
    let (world, _between) = world(&small, World::project);
    let (before, pid) = (repository(&world), world.host_pid());
    small.fill();
    let ended = begin(&world).end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    says_so(&ended.err);
    is_well(&world, pid);
    small.make_room();
    nothing_is_left(&world, "the project's disk was full");
    assert_eq!(repository(&world), before);
    works_again(&world);
}
