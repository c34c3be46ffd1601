//! Commits from the box to the host and back.

use crate::support::{TestBox, run};
use protocol::ctl::{BundleHead, KnownTags, MAX_TAGS, RefAt, TagsHead, Unbundle, Upstream};
use std::fs;

struct Bundle {
    code: i32,
    oid: Option<String>,
    bytes: Vec<u8>,
}

fn bundle(at: &TestBox, args: &[&str]) -> Bundle {
    let (said, stdout) = run(&mut at.ctl(&[&["bundle"], args].concat()), b"");
    let end = stdout.iter().position(|b| *b == b'\n').expect("no head line") + 1;
    let head: BundleHead = serde_json::from_slice(&stdout[..end]).unwrap();
    Bundle { code: said.code, oid: head.oid, bytes: stdout[end..].to_vec() }
}

/// What the host does with a bundle.
fn fetch(at: &TestBox, bundle: &Bundle) -> String {
    assert_eq!(bundle.code, 0);
    let file = at.path("b");
    fs::write(&file, &bundle.bytes).unwrap();
    let project = at.project();
    let refspec = "+refs/heads/agentbox/t:refs/heads/agentbox/t";
    at.git(&project, &["fetch", "-q", file.to_str().unwrap(), refspec]);
    at.git(&project, &["rev-parse", "agentbox/t"])
}

fn unbundle(at: &TestBox, plan: &Unbundle, bytes: &[u8]) -> (i32, String) {
    let mut input = serde_json::to_vec(plan).unwrap();
    input.push(b'\n');
    input.extend_from_slice(bytes);
    let (said, _) = run(&mut at.ctl(&["unbundle"]), &input);
    (said.code, said.stderr)
}

#[test]
fn commits_reach_the_host_step_by_step() {
    let at = TestBox::new().with_commit();
    at.git(&at.project(), &["init", "-q"]);
    let first = bundle(&at, &["agentbox/t"]);
    let one = fetch(&at, &first);
    assert_eq!(first.oid.as_ref(), Some(&one));

    let again = bundle(&at, &["agentbox/t", &one]);
    assert_eq!((again.code, again.oid.as_ref(), again.bytes.len()), (0, Some(&one), 0));

    let two = at.commit(&at.workspace(), "a", "two");
    let unknown = "ab".repeat(20);
    let more = bundle(&at, &["agentbox/t", &unknown, &one]);
    assert_eq!(fetch(&at, &more), two);
    assert!(String::from_utf8_lossy(&more.bytes).contains(&format!("-{one}")));
}

#[test]
fn a_branch_that_moved_back_can_be_followed() {
    let at = TestBox::new().with_commit();
    let workspace = at.workspace();
    at.git(&at.project(), &["init", "-q"]);
    let one = at.git(&workspace, &["rev-parse", "HEAD"]);
    let two = at.commit(&workspace, "a", "two");
    let three = at.commit(&workspace, "a", "three");
    assert_eq!(fetch(&at, &bundle(&at, &["agentbox/t"])), three);
    at.git(&workspace, &["reset", "-q", "--hard", &two]);
    assert_eq!(fetch(&at, &bundle(&at, &["agentbox/t", &three])), two);
    at.git(&workspace, &["reset", "-q", "--hard", &one]);
    assert_eq!(fetch(&at, &bundle(&at, &["agentbox/t", &three])), one);
}

#[test]
fn a_branch_that_is_gone_or_a_repository_that_never_was_is_none() {
    let at = TestBox::new();
    assert_eq!(bundle(&at, &["agentbox/t"]).oid, None);
    let at = TestBox::new().with_commit();
    let none = bundle(&at, &["agentbox/other"]);
    assert_eq!((none.code, none.oid, none.bytes.len()), (0, None, 0));
}

#[test]
fn only_names_and_ids_are_taken() {
    let at = TestBox::new().with_commit();
    for args in [&["--all"][..], &["a..b"], &["agentbox/t", "--all"], &["agentbox/t", "HEAD"]] {
        let (said, _) = run(&mut at.ctl(&[&["bundle"], args].concat()), b"");
        assert_eq!((said.code, said.stdout.as_str()), (64, ""), "{args:?}");
    }
}

#[test]
fn what_the_host_fetched_arrives() {
    let at = TestBox::new().with_commit();
    let (project, workspace) = (at.project(), at.workspace());
    let one = at.git(&workspace, &["rev-parse", "HEAD"]);
    at.git(&workspace, &["update-ref", "refs/remotes/origin/main", &one]);
    at.git(&workspace, &["update-ref", "refs/remotes/origin/old", &one]);
    at.git(&workspace, &["update-ref", "refs/remotes/origin/HEAD", &one]);
    at.git(&project, &["clone", "-q", "-b", "agentbox/t", workspace.to_str().unwrap(), "."]);
    let two = at.commit(&project, "a", "two");
    let file = at.path("b");
    let not = format!("^{one}");
    at.git(&project, &["bundle", "create", "-q", file.to_str().unwrap(), "agentbox/t", &not]);
    let set = |name: &str| RefAt { name: name.into(), oid: two.clone() };
    let plan = Unbundle {
        repo: None,
        // `old` has to go before there can be an `old/new`.
        refs: vec![set("refs/remotes/origin/main"), set("refs/remotes/origin/old/new")],
        prune: Some("refs/remotes/origin/".into()),
        bundle: true,
        upstream: None,
    };
    assert_eq!(unbundle(&at, &plan, &fs::read(&file).unwrap()), (0, String::new()));
    let refs =
        at.git(&workspace, &["for-each-ref", "--format=%(objectname) %(refname)", "refs/remotes"]);
    let expected = format!(
        "{one} refs/remotes/origin/HEAD\n{two} refs/remotes/origin/main\n{two} refs/remotes/origin/old/new"
    );
    assert_eq!(refs, expected);
    assert_eq!(at.git(&workspace, &["rev-parse", "HEAD"]), one);
    let left = fs::read_dir(workspace.join(".git")).unwrap().flatten();
    assert!(!left.map(|e| e.file_name()).any(|n| n.to_string_lossy().ends_with(".bundle")));
}

#[test]
fn a_branch_of_the_box_is_never_set() {
    let at = TestBox::new().with_commit();
    let oid = at.git(&at.workspace(), &["rev-parse", "HEAD"]);
    let refs = vec![RefAt { name: "refs/heads/main".into(), oid }];
    let (code, line) = unbundle(&at, &Unbundle { refs, ..Unbundle::default() }, b"");
    assert_eq!((code, line.lines().count()), (64, 1));
    let plan = Unbundle { prune: Some("refs/heads/".into()), ..Unbundle::default() };
    assert_eq!(unbundle(&at, &plan, b"").0, 64);
    assert_eq!(
        at.git(&at.workspace(), &["branch", "--format=%(refname)"]),
        "refs/heads/agentbox/t"
    );
}

#[test]
fn a_broken_bundle_changes_nothing() {
    let at = TestBox::new().with_commit();
    let refs = vec![RefAt { name: "refs/remotes/o/m".into(), oid: "ab".repeat(20) }];
    let plan = Unbundle { refs, bundle: true, ..Unbundle::default() };
    assert_eq!(unbundle(&at, &plan, b"# v2 git bundle\nrubbish").0, 1);
    assert_eq!(at.git(&at.workspace(), &["for-each-ref", "refs/remotes"]), "");
}

/// Asks for the tags; what the box says and the bundle.
fn tags(at: &TestBox, known: &[RefAt], haves: &[&str]) -> (TagsHead, Vec<u8>) {
    let input = serde_json::to_vec(&KnownTags { tags: known.to_vec() }).unwrap();
    let (said, stdout) = run(&mut at.ctl(&[&["bundle", "--tags"], haves].concat()), &input);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let end = stdout.iter().position(|b| *b == b'\n').unwrap() + 1;
    (serde_json::from_slice(&stdout[..end]).unwrap(), stdout[end..].to_vec())
}

#[test]
fn relay_19_17_tags_come_with_what_the_host_lacks_of_them() {
    let at = TestBox::new().with_commit();
    let workspace = at.workspace();
    let one = at.git(&workspace, &["rev-parse", "HEAD"]);
    assert_eq!(tags(&at, &[], &[]), (TagsHead::default(), vec![]));
    at.git(&workspace, &["tag", "light"]);
    // The host has the commit: a name is all there is to tell.
    let (head, bundle) = tags(&at, &[], &[&one]);
    let light = RefAt { name: "refs/tags/light".into(), oid: one.clone() };
    assert_eq!((head.tags, bundle.len()), (vec![light.clone()], 0));
    at.git(&workspace, &["tag", "-a", "-m", "first", "v1"]);
    let oid = at.git(&workspace, &["rev-parse", "v1"]);
    let (head, bundle) = tags(&at, std::slice::from_ref(&light), &[&one]);
    assert_eq!(head.tags, [RefAt { name: "refs/tags/v1".into(), oid }]);
    let file = at.path("b");
    fs::write(&file, bundle).unwrap();
    at.git(&at.project(), &["clone", "-q", workspace.to_str().unwrap(), "."]);
    at.git(&at.project(), &["tag", "-d", "v1"]);
    at.git(&at.project(), &["fetch", "-q", file.to_str().unwrap(), "refs/tags/v1:refs/tags/v1"]);
    // A tag that moved is news again.
    at.commit(&workspace, "a", "two");
    at.git(&workspace, &["tag", "-f", "light"]);
    let (head, bundle) = tags(&at, &[light], &[&one]);
    assert_eq!(head.tags.len(), 2);
    assert!(!bundle.is_empty());
}

#[test]
fn relay_19_17_tags_beyond_the_limit_are_counted_only() {
    let at = TestBox::new().with_commit();
    for n in 0..MAX_TAGS + 3 {
        at.git(&at.workspace(), &["tag", &format!("t{n}")]);
    }
    let (head, _) = tags(&at, &[], &[]);
    assert_eq!((head.tags.len(), head.more), (MAX_TAGS, 3));
    let (said, _) = run(&mut at.ctl(&["bundle", "--tags", "--all"]), b"{\"tags\":[]}");
    assert_eq!(said.code, 64);
}

#[test]
fn an_upstream_is_set_unless_there_is_one() {
    let at = TestBox::new().with_commit();
    let workspace = at.workspace();
    let upstream = |merge: &str| {
        let upstream =
            Upstream { branch: "agentbox/t".into(), remote: "origin".into(), merge: merge.into() };
        unbundle(&at, &Unbundle { upstream: Some(upstream), ..Unbundle::default() }, b"").0
    };
    assert_eq!(upstream("feature"), 0);
    let merge = || at.git(&workspace, &["config", "branch.agentbox/t.merge"]);
    assert_eq!(merge(), "refs/heads/feature");
    assert_eq!(at.git(&workspace, &["config", "branch.agentbox/t.remote"]), "origin");
    assert_eq!(upstream("other"), 0);
    assert_eq!(merge(), "refs/heads/feature");
    assert_eq!(upstream("--x"), 64);
}
