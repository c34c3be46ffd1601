//! A seeded workspace says the same as the host's.

use crate::support::{GIT, TestBox, run};
use protocol::ctl::{RefAt, SeedPlan, SeedRepo};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Looks at the host's repository the way the host does.
fn look(at: &TestBox) -> SeedRepo {
    let project = at.project();
    let git = |args: &[&str]| at.git(&project, args);
    let base = Command::new(GIT)
        .current_dir(&project)
        .args(["rev-parse", "--verify", "-q", "HEAD"])
        .output()
        .unwrap();
    let base = base.status.success().then(|| String::from_utf8(base.stdout).unwrap().trim().into());
    let index = at.path("index");
    fs::copy(project.join(".git/index"), &index).unwrap();
    at.git_with(&project, &["add", "-u"], &[("GIT_INDEX_FILE", &index)]);
    let worktree = at.git_with(&project, &["write-tree"], &[("GIT_INDEX_FILE", &index)]);
    SeedRepo {
        path: String::new(),
        git_dir: None,
        lfs: false,
        branch: "agentbox/t".into(),
        object_format: git(&["rev-parse", "--show-object-format"]),
        alternates: vec![project.join(".git/objects").to_str().unwrap().into()],
        shallow: vec![],
        base,
        index_tree: Some(git(&["write-tree"])),
        worktree_tree: Some(worktree),
        remotes: vec![("origin".into(), "https://example.org/o/r".into())],
        tracking: vec![],
        config: vec![("user.name".into(), "Zoë \"Z\"".into())],
    }
}

fn untracked(at: &TestBox, dir: &Path) -> Vec<u8> {
    let list = at.git(dir, &["ls-files", "--others", "--exclude-standard", "-z"]);
    let mut tar = tar::Builder::new(Vec::new());
    tar.follow_symlinks(false);
    for name in list.split('\0').filter(|n| !n.is_empty()) {
        tar.append_path_with_name(dir.join(name), name).unwrap();
    }
    tar.into_inner().unwrap()
}

fn seed(at: &TestBox, repo: Option<SeedRepo>, tar: &[u8]) {
    let mut input = serde_json::to_vec(&SeedPlan { repos: repo.into_iter().collect() }).unwrap();
    input.push(b'\n');
    input.extend_from_slice(tar);
    let (said, _) = run(&mut at.ctl(&["seed"]), &input);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
}

fn status(at: &TestBox, dir: &Path) -> String {
    at.git(dir, &["status", "--porcelain", "-z", "-uall"])
}

fn assert_same(at: &TestBox) {
    let (project, workspace) = (at.project(), at.workspace());
    assert_eq!(status(at, &workspace), status(at, &project));
    for staged in [&["diff", "--binary"][..], &["diff", "--binary", "--cached"]] {
        assert_eq!(at.git(&workspace, staged), at.git(&project, staged));
    }
    let listing = |dir: &Path| {
        let mut find = Command::new("find");
        find.args([".", "-name", ".git", "-prune", "-o", "-printf", "%y %m %p %l\\n"]);
        let out = find.current_dir(dir).output().unwrap();
        let mut lines: Vec<String> =
            String::from_utf8(out.stdout).unwrap().lines().map(String::from).collect();
        lines.sort();
        // Modes of folders follow the umask on either side.
        lines.retain(|l| !l.starts_with('d'));
        lines
    };
    assert_eq!(listing(&workspace), listing(&project));
}

fn project_with_files(at: &TestBox, format: &str) {
    let project = at.project();
    at.git(&project, &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
    for file in ["keep", "stage", "edit", "both", "gone", "removed", "old-name", "run", "kind"] {
        fs::write(project.join(file), format!("text of {file}\nsecond\n")).unwrap();
    }
    fs::write(project.join(".gitignore"), "*.log\n").unwrap();
    fs::create_dir(project.join("dir")).unwrap();
    fs::write(project.join("dir/inner"), "inner").unwrap();
    symlink("keep", project.join("link")).unwrap();
    at.git(&project, &["add", "."]);
    at.git(&project, &["commit", "-q", "-m", "base"]);
}

fn disturb(at: &TestBox) {
    let project = at.project();
    let write = |file: &str, text: &str| fs::write(project.join(file), text).unwrap();
    write("stage", "staged");
    write("both", "staged first");
    write("added", "new and staged");
    at.git(&project, &["add", "stage", "both", "added"]);
    write("both", "then changed again");
    write("edit", "unstaged");
    fs::remove_file(project.join("gone")).unwrap();
    at.git(&project, &["rm", "-q", "removed"]);
    at.git(&project, &["mv", "old-name", "new-name"]);
    fs::set_permissions(project.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(project.join("link")).unwrap();
    symlink("dir/inner", project.join("link")).unwrap();
    fs::remove_file(project.join("kind")).unwrap();
    symlink("keep", project.join("kind")).unwrap();
    write("intended", "add -N");
    at.git(&project, &["add", "-N", "intended"]);
    at.git(&project, &["rm", "-q", "--cached", "dir/inner"]);
    write("untracked with space", "u");
    write("ignored.log", "not carried");
    fs::create_dir_all(project.join("new/deep")).unwrap();
    write("new/deep/tool", "#!/bin/sh\n");
    fs::set_permissions(project.join("new/deep/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../nowhere", project.join("new/dangling")).unwrap();
}

#[test]
fn boxes_2_2_status_is_the_hosts() {
    for format in ["sha1", "sha256"] {
        let at = TestBox::new();
        project_with_files(&at, format);
        disturb(&at);
        let tar = untracked(&at, &at.project());
        seed(&at, Some(look(&at)), &tar);
        fs::remove_file(at.project().join("ignored.log")).unwrap();
        assert_same(&at);
        assert!(status(&at, &at.workspace()).contains("R  new-name\0old-name"));
    }
}

#[test]
fn boxes_2_2_a_clean_project_is_clean_on_the_boxs_branch() {
    let at = TestBox::new();
    project_with_files(&at, "sha1");
    let base = at.git(&at.project(), &["rev-parse", "HEAD"]);
    let mut repo = look(&at);
    (repo.index_tree, repo.worktree_tree) = (None, None);
    let at_base = |name: &str| RefAt { name: name.into(), oid: base.clone() };
    repo.tracking = vec![at_base("refs/remotes/origin/main"), at_base("refs/remotes/origin/HEAD")];
    seed(&at, Some(repo), b"");
    assert_same(&at);
    let workspace = at.workspace();
    let git = |args: &[&str]| at.git(&workspace, args);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/agentbox/t");
    assert_eq!(git(&["rev-parse", "HEAD"]), base);
    assert_eq!(git(&["rev-parse", "origin/main", "origin/HEAD"]), format!("{base}\n{base}"));
    assert_eq!(git(&["config", "remote.origin.url"]), "https://example.org/o/r");
    assert_eq!(git(&["config", "remote.origin.fetch"]), "+refs/heads/*:refs/remotes/origin/*");
    assert_eq!(git(&["config", "commit.gpgsign"]), "false");
    assert_eq!(git(&["config", "--local", "user.name"]), "Zoë \"Z\"");
    git(&["fsck", "--no-progress"]);
    at.commit(&workspace, "keep", "works");
    // No object was copied: everything but the new commit is the host's.
    assert_eq!(git(&["count-objects"]).split(' ').next(), Some("3"));
}

#[test]
fn boxes_2_2_a_branch_without_commits_is_seeded() {
    let at = TestBox::new();
    let project = at.project();
    at.git(&project, &["init", "-q", "-b", "main"]);
    fs::write(project.join("staged"), "s").unwrap();
    fs::write(project.join("both"), "s").unwrap();
    at.git(&project, &["add", "."]);
    fs::write(project.join("both"), "changed").unwrap();
    fs::write(project.join("loose"), "u").unwrap();
    let repo = look(&at);
    assert_eq!(repo.base, None);
    seed(&at, Some(repo), &untracked(&at, &project));
    assert_same(&at);
}

#[test]
fn boxes_2_2_a_wholly_empty_repository_is_seeded() {
    let at = TestBox::new();
    let repo = SeedRepo {
        path: String::new(),
        git_dir: None,
        lfs: false,
        branch: "agentbox/t".into(),
        object_format: "sha1".into(),
        alternates: vec![],
        shallow: vec![],
        base: None,
        index_tree: None,
        worktree_tree: None,
        remotes: vec![],
        tracking: vec![],
        config: vec![],
    };
    seed(&at, Some(repo), b"");
    assert_eq!(status(&at, &at.workspace()), "");
    at.commit(&at.workspace(), "first", "first");
}

#[test]
fn boxes_2_2_a_shallow_host_gives_a_shallow_box() {
    let at = TestBox::new();
    let full = at.path("full");
    fs::create_dir(&full).unwrap();
    at.git(&full, &["init", "-q", "-b", "main"]);
    at.commit(&full, "a", "one");
    let tip = at.commit(&full, "a", "two");
    let url = format!("file://{}", full.display());
    at.git(&at.path(""), &["clone", "-q", "--depth", "1", &url, "upstream"]);
    let mut repo = look(&at);
    repo.shallow = vec![tip];
    seed(&at, Some(repo), b"");
    assert_eq!(at.git(&at.workspace(), &["rev-list", "--count", "HEAD"]), "1");
    assert_same(&at);
}

#[test]
fn a_project_without_a_repository_is_only_laid_out() {
    let at = TestBox::new();
    let project = at.project();
    fs::create_dir(project.join("d")).unwrap();
    fs::write(project.join("d/f"), "f").unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all(".", &project).unwrap();
    seed(&at, None, &tar.into_inner().unwrap());
    assert_eq!(fs::read_to_string(at.workspace().join("d/f")).unwrap(), "f");
    assert!(!at.workspace().join(".git").exists());
}

#[test]
fn what_cannot_be_seeded_says_why() {
    let at = TestBox::new();
    project_with_files(&at, "sha1");
    let mut repo = look(&at);
    repo.base = Some("ab".repeat(20));
    let input = serde_json::to_string(&SeedPlan { repos: vec![repo] }).unwrap() + "\n";
    let (said, _) = run(&mut at.ctl(&["seed"]), input.as_bytes());
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("git update-ref failed"), "{}", said.stderr);
    let (said, _) = run(&mut at.ctl(&["seed"]), b"{not json\n");
    assert_eq!(said.code, 64);
}
