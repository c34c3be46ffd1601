//! Files out of a box and into it, and pages for the person.

use crate::support::{TestBox, TestRelay, run, said};
use protocol::ctl::Pack;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;

fn pack(at: &TestBox, what: &Pack) -> (i32, String, BTreeSet<String>) {
    let mut input = serde_json::to_vec(what).unwrap();
    input.push(b'\n');
    let (said, bytes) = run(&mut at.ctl(&["pack"]), &input);
    let mut names = BTreeSet::new();
    if said.code == 0 {
        let mut archive = tar::Archive::new(bytes.as_slice());
        for entry in archive.entries().unwrap() {
            let path = entry.unwrap().path().unwrap().display().to_string();
            names.insert(path.trim_end_matches('/').to_owned());
        }
    }
    (said.code, said.stderr, names)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn the_workspace_goes_as_git_sees_it() {
    let at = TestBox::new().with_commit();
    let dir = at.workspace();
    fs::write(dir.join(".gitignore"), "ignored\nbuild/\n").unwrap();
    fs::create_dir_all(dir.join("packages/x")).unwrap();
    fs::create_dir(dir.join("build")).unwrap();
    for file in ["ignored", "new", "packages/x/tracked", "build/out", "gone"] {
        fs::write(dir.join(file), file).unwrap();
    }
    at.git(&dir, &["add", "packages", "gone"]);
    fs::remove_file(dir.join("gone")).unwrap();
    let git = Pack::Workspace { exclude: vec![], respects_git: true };
    let wanted = set(&[".gitignore", "a", "new", "packages/x/tracked"]);
    assert_eq!(pack(&at, &git), (0, String::new(), wanted));
    let without = Pack::Workspace { exclude: vec!["packages".into()], respects_git: true };
    assert_eq!(pack(&at, &without).2, set(&[".gitignore", "a", "new"]));
    let all = pack(&at, &Pack::Workspace { exclude: vec![], respects_git: false }).2;
    assert!(all.contains("ignored") && all.contains("build/out"));
    assert!(!all.iter().any(|name| name.starts_with(".git/") || name == ".git"));
}

#[test]
fn a_plain_folder_goes_without_what_is_made_again() {
    let at = TestBox::new();
    fs::create_dir_all(at.workspace().join("node_modules/x")).unwrap();
    fs::write(at.workspace().join("a"), "a").unwrap();
    let what = Pack::Workspace { exclude: vec![], respects_git: true };
    assert_eq!(pack(&at, &what).2, set(&["a"]));
}

#[test]
fn a_source_that_is_not_there_is_named() {
    let at = TestBox::new();
    let what = Pack::Files { sources: vec!["/no/such".into()], exclude: vec![] };
    let (code, stderr, _) = pack(&at, &what);
    assert_eq!((code, stderr.lines().count()), (1, 1));
    assert!(stderr.contains("/no/such"), "{stderr}");
}

#[test]
fn what_was_packed_can_be_unpacked() {
    let at = TestBox::new();
    fs::create_dir_all(at.workspace().join("src/sub")).unwrap();
    fs::write(at.workspace().join("src/sub/file"), "text").unwrap();
    std::os::unix::fs::symlink("sub/file", at.workspace().join("src/link")).unwrap();
    let source = at.workspace().join("src").display().to_string();
    let what = Pack::Files { sources: vec![source], exclude: vec![] };
    let mut input = serde_json::to_vec(&what).unwrap();
    input.push(b'\n');
    let (_, bytes) = run(&mut at.ctl(&["pack"]), &input);
    let dest = at.path("out/copy");
    let (said, _) = run(&mut at.ctl(&["unpack-into", dest.to_str().unwrap()]), &bytes);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let mut text = String::new();
    fs::File::open(dest.join("link")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    let (said, _) = run(&mut at.ctl(&["unpack-into"]), b"");
    assert_eq!(said.code, 64);
}

#[test]
fn copies_are_asked_for_with_full_paths_of_the_box() {
    let at = TestBox::new();
    let relay = TestRelay::answering(&at, "200 OK", r#"{"exitCode":0,"stdout":"copied\n"}"#);
    let here = at.workspace().canonicalize().unwrap().display().to_string();
    let line = ["cp", "toHost", "--exclude", "*.log", "-r", "a", "../b", "docs/"];
    let done = said(&mut at.ctl(&line));
    assert_eq!((done.code, done.stdout.as_str()), (0, "copied\n"));
    let beside = at.workspace().canonicalize().unwrap().parent().unwrap().join("b");
    let wanted = json!({"method": "cp.toHost", "params": {
        "path": here, "sources": [format!("{here}/a"), beside], "dest": "docs/", "exclude": ["*.log"],
    }});
    assert_eq!(relay.next().body, wanted);
    let line = ["cp", "fromHost", "--no-default-excludes", "~/x", "sub/"];
    assert_eq!(said(&mut at.ctl(&line)).code, 0);
    let wanted = json!({"method": "cp.fromHost", "params": {
        "path": here, "sources": ["~/x"], "dest": format!("{here}/sub/"), "defaultExcludes": false,
    }});
    assert_eq!(relay.next().body, wanted);
    assert_eq!(said(&mut at.ctl(&["download", "workspace"])).code, 0);
    assert_eq!(relay.next().body["method"], "download.workspace");
    let create = ["checkpoint", "create", "--name", "a", "--set-default"];
    assert_eq!(said(&mut at.ctl(&create)).code, 0);
    let wanted =
        json!({"method": "checkpoint.create", "params": {"name": "a", "setDefault": true}});
    assert_eq!(relay.next().body, wanted);
    for bad in [
        &["cp"][..],
        &["cp", "toHost"],
        &["cp", "toHost", "one"],
        &["cp", "sideways", "a", "b"],
        &["cp", "toHost", "--yes", "a", "b"],
        &["download"],
        &["download", "env"],
        &["checkpoint"],
        &["checkpoint", "rm", "a"],
    ] {
        let said = said(&mut at.ctl(bad));
        assert_eq!((said.code, said.stderr.lines().count()), (64, 1), "{bad:?}: {}", said.stderr);
    }
    assert!(relay.is_quiet_for(std::time::Duration::from_millis(100)));
}

#[test]
fn relay_19_47_a_page_is_offered_and_nothing_waits() {
    let at = TestBox::new();
    let relay = TestRelay::answering(&at, "200 OK", r#"{"exitCode":0}"#);
    for mut command in [
        at.ctl(&["open", "https://example.com/a"]),
        at.called("xdg-open", &["https://example.com/a"]),
        at.called("open", &["https://example.com/a"]),
    ] {
        let done = said(&mut command);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        let wanted = json!({"method": "browser.open", "params": {"url": "https://example.com/a"}});
        assert_eq!(relay.next().body, wanted);
    }
    for bad in ["file:///etc/passwd", "javascript:alert(1)", "example.com", "--x", ""] {
        let said = said(&mut at.called("xdg-open", &[bad]));
        assert_eq!((said.code, said.stderr.lines().count()), (64, 1), "{bad}");
    }
    assert!(relay.is_quiet_for(std::time::Duration::from_millis(100)));
}

#[test]
fn a_host_that_says_no_to_a_page_does_not_fail_the_command() {
    let at = TestBox::new();
    let away = said(&mut at.ctl(&["open", "https://example.com"]));
    assert_eq!(away.code, 0);
    assert!(away.stderr.contains("was not told"), "{}", away.stderr);
    let body = r#"{"exitCode":64,"stdout":"","stderr":"browser open: no\n"}"#;
    let _relay = TestRelay::answering(&at, "200 OK", body);
    let refused = said(&mut at.ctl(&["open", "http://localhost"]));
    assert_eq!(refused.code, 0);
    assert_eq!(refused.stderr, "open: the host was not told: browser open: no\n");
}

#[test]
fn a_browser_in_the_box_comes_first() {
    use std::os::unix::fs::PermissionsExt;
    let at = TestBox::new();
    let relay = TestRelay::answering(&at, "200 OK", r#"{"exitCode":0}"#);
    let bin = at.path("bin");
    fs::create_dir(&bin).unwrap();
    let seen = at.path("seen");
    let script = format!("#!/bin/sh\necho \"$#:$1\" > {}\n", seen.display());
    fs::write(bin.join("firefox"), script).unwrap();
    fs::set_permissions(bin.join("firefox"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = at.ctl(&["open", "https://example.com/?a=$(x)"]);
    command.env("PATH", &bin).env("DISPLAY", ":1");
    assert_eq!(said(&mut command).code, 0);
    let shown = || fs::read_to_string(&seen).unwrap_or_default();
    crate::support::eventually("the browser", || !shown().is_empty());
    assert_eq!(shown(), "1:https://example.com/?a=$(x)\n");
    relay.next();
}
