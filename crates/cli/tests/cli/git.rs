//! `agentbox git`: what the host is asked, what is printed, how it ends.

use crate::support::{FakeHost, a_box};
use protocol::boxes::NestedView;
use protocol::control::{Exited, RemoteView, Remotes, Request};
use protocol::frame::Kind;
use protocol::rpc::Envelope;
use serde_json::json;

fn answering(exit_code: i32, stdout: &str, stderr: &str) -> FakeHost {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    FakeHost::always(Envelope { exit_code, stdout, stderr, pushed: None })
}

#[test]
fn relay_14_a_push_is_done_for_the_box_and_ends_as_it_did() {
    let host = answering(0, "", "To github.com:acme/shop\n \u{1b}[31m* new\n");
    let output = host.run(&["git", "push", "fix-login", "--tags", "--remote", "fork"]).exits(0);
    assert_eq!(output.stderr, "To github.com:acme/shop\n \\x1b[31m* new\n");
    let asked = host.asked_once("act");
    assert_eq!(
        (&asked["target"]["query"], &asked["call"]),
        (&"fix-login".into(), &"git.push".into())
    );
    assert_eq!(asked["with"], json!({ "remote": "fork", "args": ["--tags"] }));

    let refused = answering(65, "", "git push: unknown remote 'x'; known remotes: origin.\n");
    refused.run(&["git", "push", "--remote", "x"]).exits(65).says("unknown remote 'x'");
    let json = answering(1, "out\n", "").run(&["git", "push", "--json"]).exits(1).json();
    assert_eq!((&json["result"]["exitCode"], &json["schema"]), (&1.into(), &1.into()));
}

#[test]
fn relay_19_19_a_landing_takes_no_remote() {
    let host = answering(0, "branch review available in shop\n", "");
    host.run(&["git", "push", "fix-login", "--host-only", "--as", "review", "--force"])
        .exits(0)
        .prints("branch review available in shop\n");
    let with = json!({ "hostOnly": true, "as": "review", "force": true });
    assert_eq!(host.asked_once("act")["with"], with);
    for line in [
        &["git", "push", "--host-only", "--remote", "origin"][..],
        &["git", "push", "--as", "x"],
        &["git", "push", "--force"],
        &["git"],
    ] {
        FakeHost::always(()).run(line).exits(2).prints("");
    }
}

#[test]
fn a_pull_fetches_on_the_host_and_merges_in_the_box() {
    let host = FakeHost::new(|request, call| match request {
        Request::Act { .. } => {
            let stderr = "From github.com:acme/shop\n".into();
            call.result(&Envelope { stderr, ..Envelope::default() });
        }
        Request::Exec(exec) => {
            let argv = ["/usr/local/bin/agentbox-ctl", "merge", "--remote", "fork", "--ff-only"];
            assert_eq!(exec.argv, argv);
            assert_eq!(call.next().unwrap(), (Kind::Stdin, vec![]));
            call.send(Kind::Stdout, b"Updating 1..2\n");
            call.result(&Exited { exit_code: 0 });
        }
        other => panic!("{other:?}"),
    });
    let line = ["git", "pull", "fix-login", "--remote", "fork", "--ff-only", "--prune"];
    let output = host.run(&line).exits(0);
    assert_eq!(output.stdout, "Updating 1..2\n");
    assert_eq!(output.stderr, "From github.com:acme/shop\n");
    let asked = host.asked_once("act");
    assert_eq!(asked["call"], "git.fetch");
    assert_eq!(asked["with"], json!({ "remote": "fork", "args": ["--prune"] }));

    let failing = answering(128, "", "cannot reach it\n");
    failing.run(&["git", "pull"]).exits(128).says("cannot reach it");
    failing.never_asked("exec");
}

#[test]
fn a_repository_below_the_workspace_is_meant_by_its_folder() {
    let mut view = a_box("/p".as_ref());
    view.nested_repos =
        vec![NestedView { path: "api".into(), branch: "agentbox/fix-login--api".into() }];
    let host = FakeHost::new(move |request, call| match request {
        Request::FindBox { .. } => call.result(&view),
        Request::Act { .. } => call.result(&Envelope::default()),
        Request::Exec(exec) => {
            assert_eq!(exec.argv[..3], ["env", "-C", "/workspace/api"]);
            assert_eq!(call.next().unwrap(), (Kind::Stdin, vec![]));
            call.result(&Exited { exit_code: 0 });
        }
        other => panic!("{other:?}"),
    });
    host.run(&["git", "push", "fix-login", "--repo", "./api/"]).exits(0);
    assert_eq!(host.asked_once("act")["with"]["path"], "/workspace/api");
    host.run(&["git", "pull", "fix-login", "--repo", "api"]).exits(0);
    for wrong in ["web", "../api", ""] {
        host.run(&["git", "push", "fix-login", "--repo", wrong]).exits(2).says("it has api");
    }
}

#[test]
fn remotes_show_the_difference_and_take_it_over() {
    let remote =
        |url: &str| RemoteView { name: "origin".into(), fetch: url.into(), push: url.into() };
    let remotes = Remotes { registered: vec![remote("old")], current: vec![remote("new")] };
    let host = FakeHost::always(remotes);
    let shown = host.run(&["git", "remotes", "fix-login"]).exits(0);
    assert_eq!(shown.stdout, "NAME    FETCH  PUSH\norigin  old    the same\n");
    assert!(shown.stderr.contains("  - origin old\n  + origin new"), "{shown:?}");
    assert!(shown.stderr.contains("agentbox git remotes fix-login --refresh"), "{shown:?}");
    assert_eq!(host.asked_once("remotes")["apply"], false);
    let host = FakeHost::always(Remotes { registered: vec![], current: vec![] });
    host.run(&["git", "remotes", "--refresh"]).exits(0).prints("").says("No remotes");
    assert_eq!(host.asked_once("remotes")["apply"], true);
}

#[test]
fn a_branch_is_shown_chosen_and_given_back() {
    let mut view = a_box("/p".as_ref());
    let host = FakeHost::always(view.clone());
    host.run(&["git", "branch", "@shop"]).exits(0).prints("fix-login pushes agentbox/fix-login\n");
    // The host decides which box is meant, as everywhere.
    assert_eq!(host.asked_once("findBox")["target"]["query"], "@shop");
    host.never_asked("setBranch");
    view.publish = Some("feature".into());
    let host = FakeHost::always(view.clone());
    host.run(&["git", "branch", "fix-login", "feature"])
        .exits(0)
        .prints("fix-login pushes agentbox/fix-login to feature\n");
    assert_eq!(host.asked_once("setBranch")["branch"], "feature");
    view.publish = None;
    let host = FakeHost::always(view);
    let json = host.run(&["git", "branch", "fix-login", "--own", "--json"]).exits(0).json();
    assert_eq!(json["box"]["publish"], serde_json::Value::Null);
    assert_eq!(host.asked_once("setBranch")["branch"], serde_json::Value::Null);
    FakeHost::always(()).run(&["git", "branch", "x", "y", "--own"]).exits(2).prints("");
}
