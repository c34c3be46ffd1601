//! A repository the host cloned, as it arrives in the box.

use crate::support::{TestBox, run};
use protocol::ctl::{CloneIn, RefAt};
use std::fs;

const URL: &str = "https://git.example.org/acme/lib.git";

/// A repository elsewhere with two commits, two branches and a tag.
fn elsewhere() -> TestBox {
    let at = TestBox::new().with_commit();
    at.git(&at.workspace(), &["config", "user.name", "Ada"]);
    let project = at.project();
    at.git(&project, &["init", "-q", "-b", "main"]);
    at.commit(&project, "README", "one");
    at.git(&project, &["branch", "dev"]);
    at.git(&project, &["tag", "-a", "-m", "first", "v1"]);
    at.commit(&project, "README", "two");
    at
}

/// What the host sends for a clone of `from`.
fn plan(at: &TestBox, from: &std::path::Path, dir: &str) -> (CloneIn, Vec<u8>) {
    let format = "--format=%(objectname) %(refname)";
    let refs = at.git(from, &["for-each-ref", format, "refs/heads", "refs/tags"]);
    let split = |line: &str| {
        let (oid, name) = line.split_once(' ').unwrap();
        RefAt { name: name.into(), oid: oid.into() }
    };
    let refs: Vec<RefAt> = refs.lines().map(split).collect();
    let file = at.path("bundle");
    at.git(from, &["bundle", "create", "-q", file.to_str().unwrap(), "--branches", "--tags"]);
    let shallow = fs::read_to_string(from.join(".git/shallow")).unwrap_or_default();
    let plan = CloneIn {
        dir: dir.into(),
        url: URL.into(),
        object_format: "sha1".into(),
        refs,
        shallow: shallow.lines().map(str::to_owned).collect(),
        branch: Some("main".into()),
        at: Some(at.git(from, &["rev-parse", "HEAD"])),
    };
    (plan, fs::read(file).unwrap())
}

fn clone_in(at: &TestBox, plan: &CloneIn, bundle: &[u8]) -> (i32, String) {
    let mut input = serde_json::to_vec(plan).unwrap();
    input.push(b'\n');
    input.extend_from_slice(bundle);
    let (said, _) = run(&mut at.ctl(&["clone-in"]), &input);
    (said.code, said.stderr)
}

#[test]
fn a_clone_looks_as_git_would_have_left_it() {
    let at = elsewhere();
    let dir = at.workspace().join("vendor/lib");
    let (plan, bundle) = plan(&at, &at.project(), dir.to_str().unwrap());
    assert_eq!(clone_in(&at, &plan, &bundle), (0, String::new()));
    assert_eq!(at.git(&dir, &["status", "-sb"]), "## main...origin/main");
    assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "two");
    assert_eq!(at.git(&dir, &["remote", "get-url", "origin"]), URL);
    let refs = at.git(&dir, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        refs,
        "refs/heads/main\nrefs/remotes/origin/HEAD\nrefs/remotes/origin/dev\nrefs/remotes/origin/main\nrefs/tags/v1"
    );
    assert_eq!(at.git(&dir, &["config", "--local", "user.name"]), "Ada");
    at.git(&dir, &["fsck", "--strict"]);
}

#[test]
fn a_shallow_clone_stays_shallow() {
    let at = elsewhere();
    let shallow = at.path("shallow");
    let from = format!("file://{}", at.project().display());
    at.git(&at.path("home"), &["clone", "-q", "--depth=1", &from, shallow.to_str().unwrap()]);
    let dir = at.workspace().join("lib");
    let (plan, bundle) = plan(&at, &shallow, dir.to_str().unwrap());
    assert_eq!(plan.shallow.len(), 1);
    assert_eq!(clone_in(&at, &plan, &bundle), (0, String::new()));
    assert_eq!(at.git(&dir, &["log", "--format=%s"]), "two");
    at.git(&dir, &["fsck"]);
}

#[test]
fn a_tag_is_checked_out_without_a_branch() {
    let at = elsewhere();
    let dir = at.workspace().join("lib");
    let (mut plan, bundle) = plan(&at, &at.project(), dir.to_str().unwrap());
    plan.branch = None;
    plan.at = Some(at.git(&at.project(), &["rev-parse", "v1^{commit}"]));
    assert_eq!(clone_in(&at, &plan, &bundle).0, 0);
    assert_eq!(fs::read_to_string(dir.join("README")).unwrap(), "one");
    assert_eq!(at.git(&dir, &["status", "-sb"]), "## HEAD (no branch)");
}

#[test]
fn an_empty_repository_is_one_with_a_remote() {
    let at = TestBox::new().with_commit();
    let dir = at.workspace().join("lib");
    let plan = CloneIn {
        dir: dir.to_str().unwrap().into(),
        url: URL.into(),
        object_format: "sha1".into(),
        branch: Some("trunk".into()),
        ..CloneIn::default()
    };
    assert_eq!(clone_in(&at, &plan, b"").0, 0);
    assert_eq!(at.git(&dir, &["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    assert_eq!(at.git(&dir, &["remote", "get-url", "origin"]), URL);
}

#[test]
fn what_is_there_stays_and_what_fails_goes() {
    let at = elsewhere();
    let dir = at.workspace().join("lib");
    let (plan, bundle) = plan(&at, &at.project(), dir.to_str().unwrap());
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine"), "x").unwrap();
    let (code, line) = clone_in(&at, &plan, &bundle);
    assert_eq!(code, 1);
    assert!(line.contains("is there already"), "{line}");
    assert_eq!(fs::read_to_string(dir.join("mine")).unwrap(), "x");

    fs::remove_file(dir.join("mine")).unwrap();
    assert_eq!(clone_in(&at, &plan, &bundle[..bundle.len() / 2]).0, 1);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    fs::remove_dir(&dir).unwrap();
    assert_eq!(clone_in(&at, &plan, b"rubbish").0, 1);
    assert!(!dir.exists());

    let mut bad = plan.clone();
    bad.refs[0].name = "refs/heads/x\ndelete refs/heads/main".into();
    assert_eq!(clone_in(&at, &bad, &bundle).0, 64);
    let relative = CloneIn { dir: "lib".into(), ..plan.clone() };
    assert_eq!(clone_in(&at, &relative, &bundle).0, 64);
    assert_eq!(clone_in(&at, &plan, &bundle).0, 0);
}
