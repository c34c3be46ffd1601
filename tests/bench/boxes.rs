//! What people do with boxes, against the bare engine doing the least of it.

use crate::measure::{row, timed};
use crate::raw::Raw;
use crate::world::{World, remove_image};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// Enough for a `list` that would grow with their number.
const MANY: usize = 50;
const MIB: usize = 1 << 20;

pub fn run(world: &World, raw: &Raw, image: &str) {
    small(world, raw, image);
    large(world, raw, image);
    rest(world, raw, image);
    capture(world, raw);
    copies(world);
    listed(world);
    takes(world, raw);
    huge(world);
}

/// A folder to a running box.
fn small(world: &World, raw: &Raw, image: &str) {
    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..7 {
        let name = format!("bench-{n}");
        ours.push(timed(|| drop(world.ok(&["create", "-n", &name]))));
        world.ok(&["destroy", "-y", &name]);
        floor.push(raw.create(image, &name));
        raw.remove(&name);
    }
    row("create a box, small repository", ours, floor, "1.2");
}

/// The same with 20 000 files of 300 MB in all; the engine unpacks them from an archive.
fn large(world: &World, raw: &Raw, image: &str) {
    let project = world.dir().join("large");
    fill(&project);
    world.git(&project, &["init", "-q", "-b", "main"]);
    world.git(&project, &["add", "."]);
    commit(world, &project);
    let archive = archive_of(&project);
    let path = project.to_str().unwrap();
    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..3 {
        let name = format!("bench-large-{n}");
        ours.push(timed(|| drop(world.ok(&["create", path, "-n", &name]))));
        world.ok(&["destroy", "-y", &name]);
        let made = raw.create(image, &name);
        floor.push(made + raw.unpack(&name, "/workspace", archive.clone()));
        raw.remove(&name);
    }
    row("  20 000 files, 300 MB", ours, floor, "-");
}

fn commit(world: &World, project: &Path) {
    let ada = ["-c", "user.name=Ada Lovelace", "-c", "user.email=ada@example.org"];
    let words = ["commit", "-q", "--allow-empty", "-m", "Everything"];
    world.git(project, &[&ada[..], &words].concat());
}

/// Noise, so that nothing is won by packing it.
fn fill(project: &Path) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = vec![0; 300 * MIB / 20_000];
    for folder in 0..200 {
        let folder = project.join(format!("folder-{folder}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            for chunk in text.chunks_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
            }
            std::fs::write(folder.join(format!("file-{file}")), &text).unwrap();
        }
    }
}

fn archive_of(project: &Path) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in std::fs::read_dir(project).unwrap().map(Result::unwrap) {
        if entry.file_name() != ".git" {
            archive.append_dir_all(entry.file_name(), entry.path()).unwrap();
        }
    }
    archive.into_inner().unwrap()
}

/// Down and up again; frozen and thawed.
fn rest(world: &World, raw: &Raw, image: &str) {
    raw.create(image, "bench-rest");
    let (mut stops, mut whole, mut freezes) =
        ([vec![], vec![]], [vec![], vec![]], [vec![], vec![]]);
    for _ in 0..5 {
        let stop = timed(|| drop(world.ok(&["stop", "warm-up"])));
        whole[0].push(stop + timed(|| drop(world.ok(&["start", "warm-up"]))));
        stops[0].push(stop);
        let stop = raw.stop("bench-rest");
        whole[1].push(stop + raw.start("bench-rest"));
        stops[1].push(stop);
        freezes[0].push(timed(|| {
            world.ok(&["pause", "warm-up"]);
            world.ok(&["unpause", "warm-up"]);
        }));
        freezes[1].push(raw.pause_and_unpause("bench-rest"));
    }
    raw.remove("bench-rest");
    let [ours, floor] = stops;
    row("stop an idle box", ours, floor, "0.5 s");
    let [ours, floor] = whole;
    row("stop and start", ours, floor, "-");
    let [ours, floor] = freezes;
    row("pause and unpause", ours, floor, "-");
}

/// A checkpoint of a box with 100 MB of its own, and a new box from it.
fn capture(world: &World, raw: &Raw) {
    world.create("bench-source");
    world.box_ok("bench-source", "head -c 100000000 /dev/urandom > ~/cache && sync");
    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..3 {
        let name = format!("bench-{n}");
        ours.push(timed(|| {
            world.ok(&["checkpoint", "create", "bench-source", "--name", &name]);
        }));
        floor.push(raw.commit("agentbox-bench-source", &format!("agentbox-bench-{n}")));
    }
    row("checkpoint of 100 MB", ours, floor, "-");

    let (mut ours, mut floor) = (vec![], vec![]);
    for n in 0..3 {
        let name = format!("bench-restored-{n}");
        ours.push(timed(|| drop(world.ok(&["create", "-n", &name, "--snapshot", "bench-0"]))));
        world.ok(&["destroy", "-y", &name]);
        floor.push(raw.create("agentbox-bench-0:1", &name));
        raw.remove(&name);
    }
    row("create a box from a checkpoint", ours, floor, "-");
    world.ok(&["destroy", "-y", "bench-source"]);
    for n in 0..3 {
        world.ok(&["checkpoint", "rm", "-y", &format!("bench-{n}")]);
        remove_image(&format!("agentbox-bench-{n}:1"));
    }
}

/// 200 MB in and out, against `docker cp`.
fn copies(world: &World) {
    let file = world.dir().join("bench-200");
    let mut out = std::fs::File::create(&file).unwrap();
    (0..200).for_each(|n| out.write_all(&vec![n; MIB]).unwrap());
    let (file, back) = (file.to_str().unwrap(), world.dir().join("bench-back"));
    let back = back.to_str().unwrap();
    let docker = |from: &str, to: &str| {
        let mut docker = world.command("docker");
        let output = docker.args(["cp", from, to]).output().expect("the docker program");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (mut ours, mut floor) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..3 {
        ours[0].push(timed(|| {
            world.ok(&["cp", "-y", file, "warm-up:/workspace/up"]);
        }));
        floor[0].push(timed(|| docker(file, "agentbox-warm-up:/workspace/up-too")));
        ours[1].push(timed(|| drop(world.ok(&["cp", "-y", "warm-up:/workspace/up", back]))));
        std::fs::remove_file(back).unwrap();
        floor[1].push(timed(|| docker("agentbox-warm-up:/workspace/up", back)));
        std::fs::remove_file(back).unwrap();
    }
    world.box_ok("warm-up", "rm -f /workspace/up; sudo rm -f /workspace/up-too");
    let [up, down] = ours;
    let [floor_up, floor_down] = floor;
    row("cp 200 MB into a box vs. docker cp", up, floor_up, "-");
    row("cp 200 MB out of a box vs. docker cp", down, floor_down, "-");
}

/// `list` with 50 boxes, against `docker ps -a` on the same engine.
fn listed(world: &World) {
    let names: Vec<String> = (0..MANY).map(|n| format!("bench-many-{n}")).collect();
    for four in names.chunks(4) {
        std::thread::scope(|scope| {
            for name in four {
                scope.spawn(|| world.create(name));
            }
        });
    }
    let (mut ours, mut floor) = (vec![], vec![]);
    for _ in 0..20 {
        ours.push(timed(|| drop(world.ok(&["list"]))));
        floor.push(timed(|| {
            assert!(world.command("docker").args(["ps", "-a"]).output().unwrap().status.success());
        }));
    }
    row("list with 50 boxes vs. docker ps -a", ours, floor, "0.5");
    for four in names.chunks(4) {
        std::thread::scope(|scope| {
            for name in four {
                scope.spawn(|| world.ok(&["destroy", "-y", name]));
            }
        });
    }
}

/// What a box takes that does nothing: of the engine's disk, of the host's, of memory.
fn takes(world: &World, raw: &Raw) {
    let kept = || folder_size(&world.home());
    let before = kept();
    world.create("bench-idle");
    std::thread::sleep(Duration::from_secs(3));
    let (disk, memory) = raw.takes("agentbox-bench-idle");
    let kb = |bytes: u64| format!("{} KB", bytes / 1000);
    println!("{:<46} {:>10}", "an idle box: on the engine's disk", kb(disk));
    println!("{:<46} {:>10}", "  in the host's folder", kb(kept().saturating_sub(before)));
    println!("{:<46} {:>10}", "  memory, file caches not counted", kb(memory));
    world.ok(&["destroy", "-y", "bench-idle"]);
}

/// 5 GB of files nobody committed: how long it takes, and what the host needs for it.
fn huge(world: &World) {
    let project = world.dir().join("huge");
    world.git(world.dir(), &["init", "-q", "-b", "main", "huge"]);
    commit(world, &project);
    let mut noise = vec![0; 50 * MIB];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut noise).unwrap();
    for n in 0..100 {
        noise.rotate_left(7919);
        std::fs::write(project.join(format!("file-{n}")), &noise).unwrap();
    }
    drop(noise);
    let took = timed(|| {
        world.ok(&["create", project.to_str().unwrap(), "-n", "bench-huge"]);
    });
    let sum = "cat file-* | sha256sum";
    let ours = world.command("sh").current_dir(&project).args(["-c", sum]).output().unwrap();
    let ours = String::from_utf8_lossy(&ours.stdout).trim().to_owned();
    assert_eq!(world.box_ok("bench-huge", sum), ours, "what arrived");
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.host_pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    println!(
        "create a box, 5 GB untracked: {:.1} s; the host had at most {most}",
        took.as_secs_f64()
    );
    world.ok(&["destroy", "-y", "bench-huge"]);
    std::fs::remove_dir_all(&project).unwrap();
}

fn folder_size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
