use super::*;
use crate::ports::{IntegrationPolicy, Policy};
use crate::registration::{Registration, RemoteUrls};
use serde_json::value::RawValue;

const GITHUB: &str = "git@github.com:o/r.git";

fn registration(fetch: &str, push: &str, publish: Option<&str>) -> Registration {
    let worktree = Worktree {
        container_path: "/workspace".into(),
        branch: "agentbox/smoke".parse().unwrap(),
        own_branch: true,
        publish: publish.map(|branch| branch.parse().unwrap()),
        base: None,
        host_repo: "/r".into(),
        host_objects: "/r/.git/objects".into(),
        object_format: "sha1".into(),
        remotes: [(
            "origin".parse().unwrap(),
            RemoteUrls { fetch: fetch.into(), push: push.into() },
        )]
        .into(),
        transfer: "/t".into(),
    };
    Registration {
        id: "b00000001".parse().unwrap(),
        name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: "/r".into(),
        workspace: "/r".into(),
        worktrees: vec![worktree],
    }
}

fn policy() -> Policy {
    let on = IntegrationPolicy { enabled: true, ..IntegrationPolicy::default() };
    Policy { integrations: [("github".to_owned(), on)].into(), ..Policy::default() }
}

fn decided(
    reg: &Registration,
    policy: &Policy,
    method: &str,
    params: &str,
) -> Result<Plan, Refusal> {
    let params = RawValue::from_string(params.to_owned()).unwrap();
    decide(&Request { reg, policy, method, params: Some(&params) })
}

fn plan(method: &str, args: &[&str]) -> Result<Plan, Refusal> {
    let params = serde_json::json!({ "args": args }).to_string();
    decided(&registration(GITHUB, GITHUB, None), &policy(), method, &params)
}

fn code(result: Result<Plan, Refusal>) -> i32 {
    match result {
        Ok(_) => 0,
        Err(Refusal::Unknown) => 501,
        Err(Refusal::Bad(_)) => 400,
        Err(Refusal::Rule(envelope)) => {
            assert_eq!(envelope.stderr.matches('\n').count(), 1, "{:?}", envelope.stderr);
            envelope.exit_code
        }
    }
}

/// The pull request a plan is about.
fn target(plan: Plan) -> String {
    match plan.work {
        Work::Pr(pr) => pr.target().map(ToString::to_string).unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn relay_19_22_unknown_operations_are_named() {
    let refusal = plan("gh.pr.bogus", &[]).unwrap_err();
    assert_eq!(refusal, Refusal::Bad("unknown gh.pr.* op: bogus".into()));
    assert_eq!(code(plan("gh.run.watch", &[])), 400);
    assert_eq!(code(plan("gh.run.", &[])), 400);
    for method in ["gh", "gh.", "gh.api.x", "gh.issue.list", "gh.repo.clone", "GH.pr.view"] {
        assert_eq!(code(plan(method, &[])), 501, "{method}");
    }
}

#[test]
fn relay_19_25_files_and_other_repositories_are_65() {
    for args in [
        &["--body-file", "/home/u/.ssh/id_rsa"][..],
        &["-F/etc/passwd"],
        &["--body=x", "-R", "o/other"],
        &["--body=x", "https://github.com/o/other/pull/1"],
    ] {
        assert_eq!(code(plan("gh.pr.comment", args)), 65, "{args:?}");
    }
    assert_eq!(code(plan("gh.pr.create", &["-dHmain", "--fill"])), 65);
}

#[test]
fn relay_19_26_checkout_is_off_unless_switched_on() {
    // The switch is looked at before the arguments are.
    assert_eq!(code(plan("gh.pr.checkout", &["--bogus"])), 13);
    assert_eq!(code(plan("gh.pr.checkout", &["7"])), 13);
    let on = Policy { checkout: true, ..policy() };
    let reg = registration(GITHUB, GITHUB, None);
    assert_eq!(code(decided(&reg, &on, "gh.pr.checkout", r#"{"args":["7"]}"#)), 0);
    assert_eq!(code(decided(&reg, &on, "gh.pr.checkout", "{}")), 65);
}

#[test]
fn relay_19_30_and_31_shapes() {
    let reg = registration(GITHUB, GITHUB, None);
    let api = |endpoint: &str, args: &[&str]| {
        let params = serde_json::json!({ "endpoint": endpoint, "args": args }).to_string();
        code(decided(&reg, &policy(), "gh.api", &params))
    };
    let at = "repos/o/r/pulls/5/comments";
    assert_eq!(api(at, &[]), 0);
    assert_eq!(api(at, &["-f", "body=hi"]), 0);
    for bad in ["repos/o/other/pulls/5/comments", "repos/o/r/issues/5/comments", "user"] {
        assert_eq!(api(bad, &[]), 65, "{bad}");
    }
    for bad in
        [&["-F", "body=@/etc/passwd"][..], &["-X", "DELETE"], &["-iXDELETE"], &["--input", "-"]]
    {
        assert_eq!(api(at, bad), 65, "{bad:?}");
    }
    assert_eq!(code(decided(&reg, &policy(), "gh.api", r#"{"args":[]}"#)), 64);
    assert_eq!(code(decided(&reg, &policy(), "gh.api", r#"{"endpoint":"x","stdin":"y"}"#)), 64);
    assert_eq!(code(plan("gh.run.view", &[])), 65);
    assert_eq!(code(plan("gh.run.rerun", &["123"])), 0);
}

#[test]
fn parameters_are_strict() {
    let reg = registration(GITHUB, GITHUB, None);
    for params in
        [r#"{"args":[1]}"#, r#"{"repo":"o/x"}"#, "[]", r#"{"stdin":"x"}"#, r#"{"path":"/a/.."}"#]
    {
        assert_eq!(code(decided(&reg, &policy(), "gh.pr.view", params)), 64, "{params}");
    }
    let none = Registration { worktrees: vec![], ..registration(GITHUB, GITHUB, None) };
    assert_eq!(code(decided(&none, &policy(), "gh.pr.view", "{}")), 64);
}

#[test]
fn a_project_without_github_has_no_pull_requests() {
    for url in ["/srv/r.git", "file:///srv/r.git", "https://github.com/o"] {
        let reg = registration(url, url, None);
        assert_eq!(code(decided(&reg, &policy(), "gh.pr.view", "{}")), 65, "{url}");
    }
    let mut reg = registration(GITHUB, GITHUB, None);
    reg.worktrees[0].remotes.clear();
    assert_eq!(code(decided(&reg, &policy(), "gh.pr.view", "{}")), 65);
}

#[test]
fn switched_off_is_off() {
    let reg = registration(GITHUB, GITHUB, None);
    let refusal = decided(&reg, &Policy::default(), "gh.pr.view", "{}").unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Rule(e) if e.stderr.contains("integrations enable github"))
    );
    // What is wrong with the call is said first.
    assert_eq!(code(decided(&reg, &Policy::default(), "gh.pr.bogus", "{}")), 400);
}

#[test]
fn the_boxs_branch_is_meant_when_nothing_is_said() {
    assert_eq!(target(plan("gh.pr.view", &[]).unwrap()), "agentbox/smoke");
    assert_eq!(target(plan("gh.pr.view", &["7"]).unwrap()), "7");
    assert_eq!(target(plan("gh.pr.merge", &["--squash"]).unwrap()), "agentbox/smoke");
    // The person chose another name for it at the remote.
    let published = |method: &str, params: &str| {
        let reg = registration(GITHUB, GITHUB, Some("fix-login"));
        decided(&reg, &policy(), method, params).unwrap()
    };
    assert_eq!(target(published("gh.pr.view", "{}")), "fix-login");
    assert_eq!(target(published("gh.pr.view", r#"{"args":["agentbox/smoke"]}"#)), "fix-login");
    assert_eq!(target(published("gh.pr.view", r#"{"args":["main"]}"#)), "main");
    let list = published("gh.pr.list", r#"{"args":["--head=agentbox/smoke"]}"#);
    assert!(
        matches!(list.work, Work::Pr(Pr::List(flags)) if flags.value("--head") == Some("fix-login"))
    );
}

#[test]
fn pushes_to_a_fork_make_pull_requests_of_a_fork() {
    let reg = registration("https://github.com/o/r", "git@github.com:me/r.git", None);
    let plan = decided(&reg, &policy(), "gh.pr.view", "{}").unwrap();
    assert_eq!(
        (plan.repo.to_string(), plan.own.to_string()),
        ("o/r".into(), "me:agentbox/smoke".into())
    );
    assert_eq!(target(plan), "me:agentbox/smoke");
    // The same repository by another road, and another server, are no fork.
    for push in ["git@github.com:O/R.git", "git@gitlab.com:me/r.git", "/srv/r.git"] {
        let reg = registration("https://github.com/o/r", push, None);
        let plan = decided(&reg, &policy(), "gh.pr.view", "{}").unwrap();
        assert_eq!(plan.own.owner, None, "{push}");
    }
}

#[test]
fn a_branch_that_reads_as_a_number_is_refused() {
    for name in ["7", "007", "fix#7"] {
        let reg = registration(GITHUB, GITHUB, Some(name));
        assert_eq!(code(decided(&reg, &policy(), "gh.pr.view", "{}")), 65, "{name}");
        assert_eq!(code(decided(&reg, &policy(), "gh.pr.view", r#"{"args":["7"]}"#)), 0, "{name}");
    }
}
