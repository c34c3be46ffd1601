//! Making a box: what it is called, where it starts, what comes along, what it may use.

use crate::world::{Running, SOON, World, docker, text};
use agentbox_e2e::wait::eventually;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;
use std::path::Path;
use std::time::Duration;

/// A box's container, as the engine sees it.
fn inspect(name: &str) -> ContainerInspectResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = docker().await.unwrap();
        let container = format!("agentbox-{name}");
        docker.inspect_container(&container, None::<InspectContainerOptions>).await.unwrap()
    })
}

fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A repository with one commit, beside the usual project.
fn repository(world: &World, name: &str) -> std::path::PathBuf {
    let dir = world.dir().join(name);
    write(dir.join("README"), "hello\n");
    world.git(&dir, &["init", "-q", "-b", "main"]);
    world.git(&dir, &["config", "user.name", "Ada"]);
    world.git(&dir, &["config", "user.email", "ada@example.org"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "First"]);
    dir
}

#[test]
fn boxes_16_01_a_box_is_named_after_its_folder() {
    let world = World::headless();
    let dir = repository(&world, "My App!");
    let made = world.json(&["create", dir.to_str().unwrap()])["box"].clone();
    let name = made["name"].as_str().unwrap();
    assert_eq!(name, format!("my-app-{}", made["id"].as_str().unwrap()));
    let id = name.strip_prefix("my-app-b").unwrap();
    assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    assert_eq!(made["branch"], format!("agentbox/{name}"));
    assert_eq!(inspect(name).name.unwrap(), format!("/agentbox-{name}"));
}

#[test]
fn boxes_16_02_a_bad_name_or_two_branches_cost_nothing() {
    // No host runs, and none is started for them.
    let world = World::bare();
    for args in [
        &["create", "-n", "3"][..],
        &["create", "-n", "My Box"],
        // And case 12.
        &["create", "--use-branch", "a", "--from-branch", "b"],
        &["create", "--memory", "much"],
        &["create", "--cpus", "-2"],
    ] {
        let output = world.agentbox(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    }
    assert!(!world.home().join("run/control.sock").exists());
}

#[test]
fn boxes_16_04_settings_that_git_ignores_come_only_when_asked_for() {
    let world = World::headless();
    let project = world.project();
    write(project.join(".gitignore"), ".env*\nnode_modules\n");
    write(project.join("agentbox.yaml"), "{}\n");
    world.git(&project, &["add", "."]);
    world.git(&project, &["commit", "-qm", "Ignore"]);
    world.git(&project, &["branch", "older"]);
    write(project.join("agentbox.yaml"), "# here only\n");
    for name in [".env", "api/.env.local", "node_modules/.env"] {
        write(project.join(name), format!("KEY={name}\n"));
    }
    world.create("plain");
    assert_eq!(world.box_ok("plain", "find . -name '.env*' | wc -l"), "0");
    let made = world.json(&["create", "-n", "with", "--with-env"])["box"].clone();
    assert_eq!(made["withEnv"].to_string(), r#"[".env","api/.env.local"]"#);
    assert_eq!(world.box_ok("with", "cat .env api/.env.local"), "KEY=.env\nKEY=api/.env.local");
    assert_eq!(
        world.box_ok("with", "stat -c %U:%G .env api/.env.local | sort -u"),
        "vscode:vscode"
    );
    assert!(!world.in_box("with", "test -e node_modules").status.success());
    // What a commit has comes from that commit.
    let older = ["create", "-n", "older", "--with-env", "-b", "older"];
    assert_eq!(world.json(&older)["box"]["withEnv"].to_string(), r#"[".env","api/.env.local"]"#);
    assert_eq!(world.box_ok("older", "cat agentbox.yaml; git status --porcelain"), "{}");
    // And by a setting; a repository cannot set it.
    world.configure("box: {withEnv: true}\n");
    world.create("set");
    assert_eq!(world.box_ok("set", "cat .env"), "KEY=.env");
}

#[test]
fn boxes_16_08_a_branch_that_is_there_is_not_taken() {
    let world = World::headless();
    world.git(&world.project(), &["branch", "agentbox/x"]);
    let before = world.git(&world.project(), &["rev-parse", "agentbox/x"]);
    assert_eq!(world.create("x")["branch"], "agentbox/x-2");
    assert_eq!(world.git(&world.project(), &["rev-parse", "agentbox/x"]), before);
}

#[test]
fn boxes_16_09_two_boxes_commit_and_the_hosts_cleaning_leaves_both_working() {
    let world = World::headless();
    let project = world.project();
    world.create("one");
    world.create("two");
    let tips = [world.commit("one", "One"), world.commit("two", "Two")];
    for (name, tip) in ["one", "two"].iter().zip(&tips) {
        eventually(SOON, "the commit on the host", || {
            let args =
                ["for-each-ref", "--format=%(objectname)", &format!("refs/heads/agentbox/{name}")];
            (world.git(&project, &args) == *tip).then_some(())
        });
    }
    // Nothing but the pins keeps where they started from.
    world.git(&project, &["commit", "-q", "--amend", "-m", "Rewritten"]);
    world.git(&project, &["reflog", "expire", "--expire=now", "--all"]);
    world.git(&project, &["worktree", "prune"]);
    world.git(&project, &["gc", "-q", "--prune=now"]);
    for name in ["one", "two"] {
        world.box_ok(name, "git fsck --connectivity-only && git log --oneline && git status");
        world.commit(name, "Later");
    }
}

/// A box has a repository of its own (docs/adr/0001-own-repository-per-box.md). Of the host's it has the
/// objects alone, to read; the rest of that folder is not in the box at all.
#[test]
fn boxes_16_10_the_hosts_git_folder_is_never_writable() {
    let world = World::headless();
    let git = world.project().join(".git");
    let before = (std::fs::read(git.join("config")).unwrap(), names(&git.join("hooks")));
    world.create("caged");
    let refused = |script: &str, why: &str| {
        let output = world.in_box("caged", script);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{script}: {said}");
    };
    let main = git.display();
    refused(&format!("echo x > {main}/hooks/post-commit"), "nonexistent");
    refused(&format!("sudo ls {main}"), "No such file or directory");
    let objects = "/agentbox/objects/0/objects";
    world.box_ok("caged", &format!("test \"$(git rev-parse HEAD)\" && ls {objects}/?? >/dev/null"));
    for script in [
        format!("sudo touch {objects}/x"),
        format!("sudo mkdir {objects}/zz"),
        format!("sudo sh -c 'echo x > {objects}/info/alternates'"),
        format!("sudo rm -r {objects}/info"),
    ] {
        refused(&script, "Read-only file system");
    }
    // Nor can root in the box change that.
    assert!(
        !world.in_box("caged", "sudo mount -o remount,rw /agentbox/objects/0").status.success()
    );
    refused(&format!("sudo touch {objects}/x"), "Read-only file system");
    // Its own settings are its own affair.
    world.box_ok("caged", "git config core.fsmonitor /bin/false; git config core.hooksPath /tmp");
    world.commit("caged", "Works");
    assert_eq!((std::fs::read(git.join("config")).unwrap(), names(&git.join("hooks"))), before);
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().flatten().map(|e| e.file_name()).collect();
    names.sort();
    names
}

#[test]
fn boxes_16_11_a_branch_that_is_checked_out_is_not_worked_on() {
    let world = World::headless();
    let refs = || world.git(&world.project(), &["for-each-ref"]);
    let before = refs();
    let output = world.agentbox(&["create", "-n", "no", "--use-branch", "main"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("checked out"), "{}", text(&output.stderr));
    assert_eq!(refs(), before);
    assert_eq!(world.json(&["list", "-g"])["boxes"].as_array().unwrap().len(), 0);
    assert!(world.home().join("run/boxes").read_dir().unwrap().next().is_none());
}

#[test]
fn a_box_works_on_an_existing_branch_and_never_rewrites_it() {
    let world = World::headless();
    let project = world.project();
    world.git(&project, &["branch", "fix"]);
    let base = world.git(&project, &["rev-parse", "fix"]);
    write(project.join("uncommitted"), "x");
    assert_eq!(world.json(&["create", "-n", "on", "-b", "fix"])["box"]["branch"], "fix");
    assert_eq!(world.box_ok("on", "git symbolic-ref --short HEAD; git status --porcelain"), "fix");
    let at = || world.git(&project, &["rev-parse", "fix"]);
    let tip = world.commit("on", "Forward");
    eventually(SOON, "the branch moving on the host", || (at() == tip).then_some(()));
    // Another box cannot have it too.
    let twice = world.agentbox(&["create", "-n", "too", "-b", "fix"]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
    // What was rewritten in the box stays there; what comes after that does, too.
    world.box_ok("on", &format!("git reset -q --hard {base}"));
    world.commit("on", "Elsewhere");
    world.box_ok("on", "git branch seen-by-host");
    let output = world.in_box("on", "git push --host-only 2>&1");
    assert!(!output.status.success(), "{}", text(&output.stdout));
    assert_eq!(at(), tip, "the person's branch was rewritten");
    // Checked out on the host, it does not move either.
    world.git(&project, &["switch", "-q", "fix"]);
    world.box_ok("on", &format!("git fetch -q . {tip}; git reset -q --hard {tip}"));
    world.commit("on", "While it is checked out");
    let output = world.in_box("on", "git push --host-only 2>&1");
    assert_eq!(output.status.code(), Some(65), "{}", text(&output.stdout));
    assert_eq!(at(), tip);
    // It goes with no box, whatever is said about branches.
    world.git(&project, &["branch", "untouched"]);
    world.ok(&["create", "-n", "brief", "-b", "untouched"]);
    world.ok(&["destroy", "-y", "brief", "--delete-branch"]);
    world.git(&project, &["rev-parse", "--verify", "untouched"]);
}

#[test]
fn boxes_16_13_changes_that_do_not_fit_stay_behind_without_markers() {
    let world = World::headless();
    let project = world.project();
    for name in ["clash", "fits", "staged"] {
        write(project.join(name), "old\n");
    }
    world.git(&project, &["add", "."]);
    world.git(&project, &["commit", "-qm", "Files"]);
    world.git(&project, &["switch", "-qc", "side"]);
    write(project.join("clash"), "side\n");
    write(project.join("tracked-there"), "side\n");
    world.git(&project, &["add", "."]);
    world.git(&project, &["commit", "-qm", "Side"]);
    world.git(&project, &["switch", "-q", "main"]);
    write(project.join("clash"), "mine\n");
    write(project.join("fits"), "mine\n");
    write(project.join("staged"), "mine\n");
    world.git(&project, &["add", "staged"]);
    write(project.join("tracked-there"), "untracked here\n");
    write(project.join("untracked"), "mine\n");
    let before = world.git(&project, &["status", "--porcelain"]);

    let output = world.agentbox(&["create", "-n", "from", "--from-branch", "side", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("  clash\n  tracked-there\n"), "{said}");
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["box"]["skipped"].to_string(), r#"["clash","tracked-there"]"#);
    assert_eq!(
        world.box_ok(
            "from",
            "git status --porcelain; git ls-files --unmerged; cat clash tracked-there"
        ),
        " M fits\nM  staged\n?? untracked\nside\nside"
    );
    let side = world.git(&project, &["rev-parse", "side"]);
    assert_eq!(world.box_ok("from", "git rev-parse HEAD"), side);
    let id = made["box"]["id"].as_str().unwrap();
    let kept = format!("refs/agentbox/{id}/carryover:clash");
    assert_eq!(world.git(&project, &["show", &kept]), "mine");
    assert_eq!(world.git(&project, &["status", "--porcelain"]), before);
    // A branch that is only at the remote is fetched, and nothing of the person's moves.
    world.git(&project, &["push", "-q", "origin", "side:far"]);
    world.git(&project, &["update-ref", "-d", "refs/remotes/origin/far"]);
    let refs = world.git(&project, &["for-each-ref", "refs/heads", "refs/remotes"]);
    world.json(&["create", "-n", "far", "--from-branch", "origin/far"]);
    assert_eq!(world.box_ok("far", "git rev-parse HEAD"), side);
    assert_eq!(world.git(&project, &["for-each-ref", "refs/heads", "refs/remotes"]), refs);
    let none = world.agentbox(&["create", "-n", "none", "--from-branch", "no-such"]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
}

/// The most memory a process has used so far, in megabytes.
fn peak(pid: nix::unistd::Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn boxes_16_14_large_untracked_files_stream_through() {
    let world = World::headless();
    let project = world.project();
    // The same noise in every file, at another place.
    let noise = std::process::Command::new("head").args(["-c", "3000000", "/dev/urandom"]).output();
    let mut noise = noise.unwrap().stdout;
    for n in 0..100 {
        noise.rotate_left(7919);
        write(project.join(format!("data/{n}")), &noise);
    }
    drop(noise);
    let create = Running::start(world.agentbox_command(&["create", "-n", "large"]));
    let ended = create.end_within(Duration::from_secs(180));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let sums = "cd data && sha256sum -- * | sha256sum";
    let host = world.command("sh").current_dir(&project).args(["-c", sums]).output().unwrap();
    assert_eq!(world.box_ok("large", sums), text(&host.stdout).trim());
    let used = peak(world.host_pid());
    eprintln!("300 MB of untracked files: the host needed {used} MB at most");
    assert!(used < 100, "the host needed {used} MB");
}

#[test]
fn boxes_16_17_and_18_a_container_has_no_secret_and_no_more_power_than_it_needs() {
    let world = World::headless();
    let made = world.create("plain");
    let seen = inspect("plain");
    let config = seen.config.unwrap();
    for entry in config.env.unwrap() {
        let name = entry.split('=').next().unwrap();
        for secret in ["_TOKEN", "_PASSWORD", "_API_KEY"] {
            assert!(!name.ends_with(secret), "{entry}");
        }
    }
    let labels = config.labels.unwrap();
    assert_eq!(labels["agentbox.box"], made["id"].as_str().unwrap());
    assert!(!labels["agentbox.owner"].is_empty());
    let host = seen.host_config.unwrap();
    assert!(host.cap_add.unwrap_or_default().is_empty());
    assert_eq!(host.privileged, Some(false));
    let options = host.security_opt.unwrap_or_default();
    assert!(!options.iter().any(|option| option.contains("unconfined")), "{options:?}");
    assert!(host.devices.unwrap_or_default().is_empty());
}

#[test]
fn limits_hold_and_one_the_engine_cannot_keep_is_said() {
    let world = World::headless();
    world.configure("box: {memory: 256m, cpus: 0.5}\n");
    let args = ["create", "-n", "small", "--cpus", "1.5", "--pids-limit", "100", "--disk", "5g"];
    let made = world.json(&args);
    let warnings = made["box"]["warnings"].to_string();
    assert!(warnings.contains("disk limit is not set"), "{warnings}");
    let host = inspect("small").host_config.unwrap();
    assert_eq!((host.memory, host.nano_cpus), (Some(256 << 20), Some(1_500_000_000)));
    assert_eq!(host.pids_limit, Some(100));
    // A fork bomb ends inside.
    let bomb = "for n in $(seq 200); do sleep 60 & done 2>/dev/null; pgrep -c sleep";
    let output = world.in_box("small", bomb);
    let count: u32 = text(&output.stdout).trim().parse().unwrap_or(0);
    assert!(count < 100, "{count} processes");
}

#[test]
fn boxes_16_22_a_box_whose_repository_is_gone_does_not_start() {
    let world = World::headless();
    world.create("orphan");
    world.ok(&["stop", "orphan"]);
    let (git, away) = (world.project().join(".git"), world.dir().join("away"));
    std::fs::rename(&git, &away).unwrap();
    let output = world.agentbox(&["start", "orphan"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("main repo for box worktree missing"), "{said}");
    assert_eq!(inspect("orphan").state.unwrap().running, Some(false));
    std::fs::rename(&away, &git).unwrap();
    world.ok(&["start", "orphan"]);
}

#[test]
fn boxes_16_26_a_number_is_never_given_twice() {
    let world = World::headless();
    assert_eq!(world.create("a")["index"], 1);
    assert_eq!(world.create("b")["index"], 2);
    world.ok(&["destroy", "-y", "b"]);
    assert_eq!(world.create("c")["index"], 3);
}

#[test]
fn boxes_16_29_many_boxes_are_made_at_once() {
    const MANY: usize = 20;
    let world = World::headless();
    let start = |n: usize| {
        Running::start(world.agentbox_command(&["create", "-n", &format!("box-{n}"), "--json"]))
    };
    let running: Vec<Running> = (0..MANY).map(start).collect();
    for (n, create) in running.into_iter().enumerate() {
        let ended = create.end_within(Duration::from_secs(600));
        assert_eq!(ended.code, Some(0), "box-{n}: {}{}", ended.err, world.host_log());
    }
    let boxes = world.json(&["list"])["boxes"].as_array().unwrap().clone();
    let indices: std::collections::BTreeSet<u64> =
        boxes.iter().map(|b| b["index"].as_u64().unwrap()).collect();
    assert_eq!((boxes.len(), indices.len()), (MANY, MANY));
    assert!(boxes.iter().all(|b| b["state"] == "running"), "{boxes:?}");
    world.ok(&["audit", "verify"]);
}

#[test]
fn a_run_leaves_a_log_and_a_failed_one_names_it() {
    let world = World::headless();
    world.create("well");
    let log = world.home().join("logs/create.log");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let first = read(&log);
    for words in ["BEGIN create for ", "END   Make the box ", "END   Copy the project ", " ms"] {
        assert!(first.contains(words), "{words:?} is not in {first}");
    }
    let failed = world.agentbox(&["create", "-n", "ill", "--image", "agentbox/none:1"]);
    let said = text(&failed.stderr);
    assert!(said.contains(log.to_str().unwrap()), "{said}");
    let second = read(&log);
    assert!(second.contains("FAIL  Make the box") && second.contains("FAIL  "), "{second}");
    assert_eq!(read(&log.with_extension("log.prev")), first);
    assert_eq!(read(&world.home().join("logs/latest.log")), second);
}

#[test]
fn what_failed_is_kept_only_when_somebody_wants_to_see_it() {
    let world = World::headless();
    // The image is there, but its in-box program cannot lay out a project.
    let broken = "agentbox/broken-e2e:1";
    world.create("good");
    let listed = world.json(&["list"]);
    build_broken(&world, listed["boxes"][0]["image"].as_str().unwrap(), broken);
    let pins = || world.git(&world.project(), &["for-each-ref", "refs/agentbox/"]).lines().count();
    let before = pins();
    let create = |more: &[&str]| {
        let output = world.agentbox(&[&["create", "-n", "ill", "--image", broken], more].concat());
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = create(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!((world.json(&["list"])["boxes"].as_array().unwrap().len(), pins()), (1, before));
    let (code, said) = create(&["--keep-on-failure"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("agentbox destroy"), "{said}");
    let boxes = world.json(&["list"])["boxes"].clone();
    assert_eq!(boxes.as_array().unwrap().len(), 2, "{boxes}");
    inspect("ill");
    world.ok(&["destroy", "-y", "ill"]);
    assert_eq!((world.json(&["list"])["boxes"].as_array().unwrap().len(), pins()), (1, before));
    crate::world::remove_image(broken);
}

/// An image whose git cannot make a repository.
fn build_broken(world: &World, from: &str, tag: &str) {
    let mut command = world.command("docker");
    command.args(["build", "-q", "-t", tag, "-"]).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let text = format!("FROM {from}\nRUN printf '#!/bin/sh\\nexit 9\\n' > /usr/bin/git\n");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_service_with_an_image_in_a_box_without_an_engine_is_told_when_the_box_is_made() {
    let world = World::headless();
    let yaml = "services:\n  db: {image: postgres:17}\n  web: {command: sleep 1d}\n";
    std::fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
    let made = world.json(&["create", "-n", "no-engine-in"])["box"].clone();
    let warnings = made["warnings"].to_string();
    assert!(warnings.contains("db in agentbox.yaml is an image"), "{made}");
    assert!(warnings.contains("--docker") && !warnings.contains("web"), "{made}");
}
