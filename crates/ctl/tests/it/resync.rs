//! A box takes over what is new on the host, and wins where both changed the same.

use crate::support::{TestBox, run};
use protocol::resync::{ResyncPlan, ResyncRepo, Resynced};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A host and a box that began as its copy and sees its objects.
fn pair() -> TestBox {
    let at = TestBox::new();
    let (host, work) = (at.project(), at.workspace());
    at.git(&host, &["init", "-q", "-b", "main"]);
    for (file, text) in [("a", "1\n2\n3\n4\n5\n"), ("b", "b\n"), ("c", "c\n")] {
        at.commit(&host, file, text);
    }
    at.git(&work, &["init", "-q", "-b", "agentbox/t"]);
    let alternates = work.join(".git/objects/info/alternates");
    fs::write(alternates, format!("{}\n", host.join(".git/objects").display())).unwrap();
    let head = at.git(&host, &["rev-parse", "HEAD"]);
    at.git(&work, &["reset", "-q", "--hard", &head]);
    at
}

/// Tells the box what the host has, with `before` as what it knows of the host's files.
#[track_caller]
fn resync(at: &TestBox, before: Option<&str>, tar: &[u8]) -> Resynced {
    let host = at.project();
    let index = at.path("index");
    fs::copy(host.join(".git/index"), &index).unwrap();
    at.git_with(&host, &["add", "-u"], &[("GIT_INDEX_FILE", &index)]);
    let now = at.git_with(&host, &["write-tree"], &[("GIT_INDEX_FILE", &index)]);
    let tree = at.git(&host, &["rev-parse", "HEAD^{tree}"]);
    let repo = ResyncRepo {
        path: String::new(),
        branch: "agentbox/t".into(),
        commit: at.git(&host, &["rev-parse", "HEAD"]),
        before: before.map_or(tree, str::to_owned),
        now,
    };
    let mut input = serde_json::to_vec(&ResyncPlan { repos: vec![repo] }).unwrap();
    input.push(b'\n');
    input.extend_from_slice(tar);
    let (said, _) = run(&mut at.ctl(&["resync"]), &input);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    serde_json::from_str(&said.stdout).unwrap()
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn what_fits_is_merged_in_commits_and_on_disk() {
    let at = pair();
    let (host, work) = (at.project(), at.workspace());
    at.commit(&work, "a", "1\n2\n3\n4\nbox\n");
    fs::write(work.join("b"), "box\n").unwrap();
    at.commit(&host, "a", "host\n2\n3\n4\n5\n");
    fs::write(host.join("c"), "host\n").unwrap();
    let told = resync(&at, None, &[]);
    assert_eq!(told, Resynced { commits: 1, files: 1, ..Resynced::default() });
    assert_eq!(read(&work, "a"), "host\n2\n3\n4\nbox\n");
    assert_eq!((read(&work, "b"), read(&work, "c")), ("box\n".into(), "host\n".into()));
    assert_eq!(at.git(&work, &["status", "--porcelain"]), " M b\n M c");
    assert_eq!(at.git(&work, &["show", "-s", "--format=%an %P"]).split(' ').count(), 3);
    // The same again is nothing.
    let now = at.git(&host, &["stash", "create"]) + "^{tree}";
    let now = at.git(&host, &["rev-parse", &now]);
    assert_eq!(resync(&at, Some(&now), &[]), Resynced::default());
}

#[test]
fn where_both_changed_the_boxs_side_stays() {
    let at = pair();
    let (host, work) = (at.project(), at.workspace());
    // A folder where the host has a file, a file where it has a folder, one gone, one untracked.
    at.commit(&work, "b", "box\n");
    fs::remove_file(work.join("c")).unwrap();
    fs::create_dir(work.join("c")).unwrap();
    at.commit(&work, "c/inner", "box\n");
    at.commit(&work, "d", "box\n");
    fs::write(work.join("loose"), "box\n").unwrap();
    fs::write(work.join("a"), "not committed\n").unwrap();
    at.commit(&host, "b", "host\n");
    at.commit(&host, "c", "host\n");
    fs::create_dir(host.join("d")).unwrap();
    at.commit(&host, "d/inner", "host\n");
    at.commit(&host, "loose", "host\n");
    at.git(&host, &["rm", "-q", "a"]);
    at.git(&host, &["commit", "-qm", "gone"]);
    let told = resync(&at, None, &[]);
    for name in ["a", "b", "loose"] {
        assert!(told.kept.iter().any(|kept| kept == name), "{name}: {told:?}");
        assert!(["box\n", "not committed\n"].contains(&&*read(&work, name)), "{name}");
    }
    assert_eq!((read(&work, "c/inner"), read(&work, "d")), ("box\n".into(), "box\n".into()));
    assert_eq!(at.git(&work, &["ls-files", "--unmerged"]), "");
    assert!(told.left.is_empty(), "{told:?}");
}

#[test]
fn a_bad_moment_leaves_everything_as_it_is() {
    let at = pair();
    let (host, work) = (at.project(), at.workspace());
    at.commit(&host, "a", "host\n");
    let head = at.git(&work, &["rev-parse", "HEAD"]);
    fs::write(work.join(".git/MERGE_HEAD"), format!("{head}\n")).unwrap();
    assert!(resync(&at, None, &[]).left[0].contains("in the middle"));
    fs::remove_file(work.join(".git/MERGE_HEAD")).unwrap();
    at.git(&work, &["checkout", "-q", "--detach"]);
    assert!(resync(&at, None, &[]).left[0].contains("not on its branch"));
    assert_eq!(at.git(&work, &["rev-parse", "HEAD"]), head);
    assert_eq!(read(&work, "a"), "1\n2\n3\n4\n5\n");
}

#[test]
fn nothing_is_written_through_a_link() {
    let at = pair();
    let (host, work) = (at.project(), at.workspace());
    let outside = at.path("home");
    symlink(&outside, work.join("dir")).unwrap();
    fs::create_dir(host.join("dir")).unwrap();
    at.commit(&host, "dir/new", "host\n");
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    tar.append_data(&mut header, "dir/loose", &b"x"[..]).unwrap();
    let told = resync(&at, None, &tar.into_inner().unwrap());
    assert_eq!(told.kept, ["dir/loose", "dir/new"]);
    assert!(fs::read_dir(&outside).unwrap().flatten().all(|e| {
        let name = e.file_name();
        name != "new" && name != "loose"
    }));
}
