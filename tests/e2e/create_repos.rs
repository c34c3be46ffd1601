//! Whatever a project's repositories look like, the box has them as they are on the host.

use crate::world::{SOON, World, text};
use agentbox_e2e::wait::eventually;
use std::path::{Path, PathBuf};

fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn init(world: &World, dir: &Path, more: &[&str]) {
    std::fs::create_dir_all(dir).unwrap();
    world.git(dir, &[&["init", "-q", "-b", "main"], more].concat());
    world.git(dir, &["config", "user.name", "Ada"]);
    world.git(dir, &["config", "user.email", "ada@example.org"]);
}

fn commit(world: &World, dir: &Path, file: &str, content: &str) -> String {
    write(dir.join(file), content);
    world.git(dir, &["add", file]);
    world.git(dir, &["commit", "-qm", file]);
    world.git(dir, &["rev-parse", "HEAD"])
}

/// A repository beside the usual project.
fn repository(world: &World, name: &str) -> PathBuf {
    let dir = world.dir().join(name);
    init(world, &dir, &[]);
    commit(world, &dir, "README", name);
    dir
}

fn create(world: &World, dir: &Path, name: &str) -> serde_json::Value {
    world.json(&["create", dir.to_str().unwrap(), "-n", name])["box"].clone()
}

/// Commits in a folder of a box and waits for it on a branch of a repository of the host.
fn lands(world: &World, name: &str, folder: &str, host: &Path, branch: &str) -> String {
    let script = format!(
        "cd {folder} && echo more > from-box && git add from-box && git commit -qm 'From the box' && git rev-parse HEAD"
    );
    let tip = world.box_ok(name, &script);
    let format = ["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{branch}")];
    eventually(SOON, &format!("{branch} on the host"), || {
        (world.git(host, &format) == tip).then_some(())
    });
    tip
}

#[test]
fn boxes_16_06_a_folder_of_repositories_is_one_box_with_all_of_them() {
    let world = World::headless();
    let folder = world.dir().join("many");
    for name in ["api", "web"] {
        init(&world, &folder.join(name), &[]);
        commit(&world, &folder.join(name), "code", name);
    }
    let remote = world.dir().join("api.git");
    world.git(world.dir(), &["init", "-q", "--bare", "-b", "main", "api.git"]);
    world.git(&folder.join("api"), &["remote", "add", "origin", remote.to_str().unwrap()]);
    write(folder.join("agentbox.yaml"), "{}\n");
    write(folder.join("notes/todo"), "x\n");
    write(folder.join("web/code"), "changed\n");
    write(folder.join("web/untracked"), "new\n");
    let made = create(&world, &folder, "many");
    let expected = r#"[["api","agentbox/many--api"],["web","agentbox/many--web"]]"#;
    assert_eq!((made["branch"].is_null(), made["nested"].to_string()), (true, expected.to_owned()));
    let shown = world.box_ok(
        "many",
        "cat agentbox.yaml notes/todo; for d in api web; do (cd $d; git rev-parse --show-toplevel; \
         git symbolic-ref --short HEAD; git status --porcelain); done; test ! -e .git",
    );
    assert_eq!(
        shown,
        "{}\nx\n/workspace/api\nagentbox/many--api\n/workspace/web\nagentbox/many--web\n M code\n?? untracked"
    );
    let tip = lands(&world, "many", "api", &folder.join("api"), "agentbox/many--api");
    lands(&world, "many", "web", &folder.join("web"), "agentbox/many--web");
    // A push from a folder is that repository's.
    let (question, ended) = world.answered("many", "cd api && git push", "approve");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(question["title"].as_str().unwrap().contains("agentbox/many--api"), "{question}");
    assert_eq!(world.git(&remote, &["rev-parse", "agentbox/many--api"]), tip);
    // It lives on, and goes without a trace.
    world.ok(&["stop", "many"]);
    world.ok(&["start", "many"]);
    world.box_ok("many", "cd api && git log --oneline && git fsck --connectivity-only");
    world.ok(&["destroy", "-y", "many"]);
    for name in ["api", "web"] {
        assert_eq!(world.git(&folder.join(name), &["for-each-ref", "refs/agentbox/"]), "");
    }
}

#[test]
fn a_repository_with_repositories_in_it_has_them_in_the_box() {
    let world = World::headless();
    let dir = repository(&world, "outer");
    commit(&world, &dir, ".gitignore", "tool\n");
    for name in ["tool", "lib"] {
        init(&world, &dir.join(name), &[]);
        commit(&world, &dir.join(name), "code", name);
    }
    write(dir.join("lib/more"), "new\n");
    let status = |dir: &Path| world.git(dir, &["status", "--porcelain"]);
    create(&world, &dir, "outer");
    assert_eq!(world.box_ok("outer", "git status --porcelain"), status(&dir));
    assert_eq!(world.box_ok("outer", "cd lib && git status --porcelain"), status(&dir.join("lib")));
    assert_eq!(
        world.box_ok("outer", "cat tool/code; cd tool; git symbolic-ref --short HEAD"),
        "toolagentbox/outer--tool"
    );
    lands(&world, "outer", ".", &dir, "agentbox/outer");
    lands(&world, "outer", "lib", &dir.join("lib"), "agentbox/outer--lib");
}

#[test]
fn boxes_16_07_a_linked_work_tree_is_a_workspace() {
    let world = World::headless();
    let linked = world.dir().join("linked");
    world.git(&world.project(), &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    write(linked.join("README.md"), "changed\n");
    create(&world, &linked, "linked");
    let script = "git rev-parse --show-toplevel; git log --oneline | wc -l; git status --porcelain";
    assert_eq!(world.box_ok("linked", script), "/workspace\n1\n M README.md");
    lands(&world, "linked", ".", &world.project(), "agentbox/linked");
}

#[test]
fn submodules_are_checked_out_without_a_network() {
    let world = World::headless();
    let inner = repository(&world, "inner");
    let lib = repository(&world, "lib");
    let allow = ["-c", "protocol.file.allow=always"];
    let add = |dir: &Path, url: &Path, path: &str| {
        let add = ["submodule", "add", "-q", url.to_str().unwrap(), path];
        world.git(dir, &[&allow[..], &add].concat());
        world.git(dir, &["commit", "-qm", "Submodule"]);
    };
    add(&lib, &inner, "deps/inner");
    let dir = repository(&world, "with-lib");
    add(&dir, &lib, "libs/lib");
    let update = ["submodule", "update", "-q", "--init", "--recursive"];
    world.git(&dir, &[&allow[..], &update].concat());
    world.git(&dir.join("libs/lib"), &["config", "user.name", "Ada"]);
    world.git(&dir.join("libs/lib"), &["config", "user.email", "ada@example.org"]);
    write(dir.join("libs/lib/README"), "changed\n");
    write(dir.join("libs/lib/.env"), "KEY=1\n");
    let status = |dir: &Path| world.git(dir, &["status", "--porcelain"]);
    // The places they came from are gone.
    std::fs::rename(&lib, world.dir().join("moved")).unwrap();
    std::fs::rename(&inner, world.dir().join("moved-too")).unwrap();
    create(&world, &dir, "sub");
    assert_eq!(world.box_ok("sub", "git status --porcelain"), status(&dir));
    let here = dir.join("libs/lib");
    assert_eq!(world.box_ok("sub", "cd libs/lib && git status --porcelain"), status(&here));
    assert_eq!(world.box_ok("sub", "cat libs/lib/deps/inner/README"), "inner");
    let modules = "git submodule status --recursive | cut -c1-41 | sort";
    let host = world.command("sh").current_dir(&dir).args(["-c", modules]).output().unwrap();
    assert_eq!(
        world.box_ok("sub", &format!("{modules} | sed 's/^ //'")).replace(' ', ""),
        text(&host.stdout).trim_end().replace(' ', "")
    );
    lands(&world, "sub", "libs/lib", &here, "agentbox/sub--libs_lib");
    world.ok(&["destroy", "-y", "sub"]);
    assert_eq!(world.git(&here, &["for-each-ref", "refs/agentbox/"]), "");
    // From a commit before them there are none, and from where they are not checked out there are.
    world.json(&["create", dir.to_str().unwrap(), "-n", "before", "--from-branch", "HEAD~1"]);
    assert!(!world.in_box("before", "test -e libs").status.success());
    let linked = world.dir().join("linked");
    world.git(&dir, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    create(&world, &linked, "side");
    assert_eq!(world.box_ok("side", "cat libs/lib/README; git status --porcelain"), "lib");
}

#[test]
fn files_of_git_lfs_come_from_the_hosts_disk() {
    let world = World::headless();
    let dir = repository(&world, "lfs");
    commit(&world, &dir, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    let content = "large content\n".repeat(1000);
    let sum = |text: &str| {
        let mut command = world.command("sha256sum");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        text_of(&output.stdout)[..64].to_owned()
    };
    let pointer = |oid: &str, size: usize| {
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
    };
    let oid = sum(&content);
    write(dir.join(format!(".git/lfs/objects/{}/{}/{oid}", &oid[..2], &oid[2..4])), &content);
    commit(&world, &dir, "here.bin", &pointer(&oid, content.len()));
    let missing = pointer(&"ab".repeat(32), 5);
    commit(&world, &dir, "missing.bin", &missing);
    create(&world, &dir, "lfs");
    assert_eq!(world.box_ok("lfs", "sha256sum < here.bin | cut -c1-64"), oid);
    assert_eq!(world.box_ok("lfs", "cat missing.bin"), missing.trim_end());
    assert_eq!(world.box_ok("lfs", "git status --porcelain"), "");
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_plain_folder_comes_without_what_it_wants_left_out() {
    let world = World::headless();
    let dir = world.dir().join("plain");
    for name in
        ["a", "data/big", "keep.log", "x.log", "sub/y.log", "node_modules/m", "sub/target/t"]
    {
        write(dir.join(name), name);
    }
    std::fs::create_dir(dir.join("empty")).unwrap();
    write(dir.join(".agentboxignore"), "*.log\n!keep.log\n/data/\n");
    let made = create(&world, &dir, "plain");
    assert!(made["branch"].is_null());
    assert_eq!(
        world.box_ok("plain", "find . -mindepth 1 | sort"),
        "./.agentboxignore\n./a\n./empty\n./keep.log\n./sub"
    );
    assert!(!dir.join(".git").exists());
}

#[test]
fn repositories_of_other_kinds_work_too() {
    let world = World::headless();
    let modern = world.dir().join("modern");
    init(&world, &modern, &["--object-format=sha256"]);
    commit(&world, &modern, "code", "one");
    create(&world, &modern, "modern");
    assert_eq!(lands(&world, "modern", ".", &modern, "agentbox/modern").len(), 64);
    let source = repository(&world, "source");
    commit(&world, &source, "code", "two");
    let url = format!("file://{}", source.display());
    world.git(world.dir(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    let shallow = world.dir().join("shallow");
    world.git(&shallow, &["config", "user.name", "Ada"]);
    world.git(&shallow, &["config", "user.email", "ada@example.org"]);
    create(&world, &shallow, "shallow");
    assert_eq!(world.box_ok("shallow", "git rev-list --count HEAD; git status --porcelain"), "1");
    lands(&world, "shallow", ".", &shallow, "agentbox/shallow");
    // Without a commit there is nothing to start from, and still a box.
    let unborn = world.dir().join("unborn");
    init(&world, &unborn, &[]);
    write(unborn.join("file"), "x");
    create(&world, &unborn, "unborn");
    assert_eq!(world.box_ok("unborn", "git status --porcelain"), "?? file");
    lands(&world, "unborn", ".", &unborn, "agentbox/unborn");
}
