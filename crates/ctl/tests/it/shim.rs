//! `git` as an agent types it.

use crate::support::{TestBox, TestRelay, respond, said};
use std::process::Command;

const FINE: &str = r#"{"exitCode":0,"stdout":"","stderr":"done\n"}"#;

#[test]
fn relay_19_21_the_shim_refuses_forwards_and_steps_aside() {
    let at = with_origin();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    let refused = said(&mut at.shim(&["push", "origin", "main"]));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("'main'"), "{}", refused.stderr);
    assert!(refused.stderr.contains("Plain 'git push' pushes this box's branch."));
    assert_eq!(refused.stderr.lines().count(), 1);

    let pushed = said(&mut at.shim(&["-C", "/workspace/app", "push", "-q"]));
    assert_eq!((pushed.code, pushed.stderr.as_str()), (0, "done\n"));
    let params = serde_json::json!({"path": "/workspace/app", "args": ["-q"]});
    assert_eq!(relay.next().body, serde_json::json!({"method": "git.push", "params": params}));

    std::fs::write(at.workspace().join("new"), "").unwrap();
    assert_eq!(said(&mut at.shim(&["status", "--porcelain"])).stdout, "?? new\n");
    assert!(said(&mut at.shim(&["--version"])).stdout.starts_with("git version"));
    assert_eq!(said(&mut at.shim(&[])).code, 1);
    assert_eq!(said(&mut at.shim(&["clone", "ext::sh -c x"])).code, 2);
    assert_eq!(said(&mut at.shim(&["-c", "a.b=c", "fetch"])).code, 2);
    assert!(relay.seen.try_recv().is_err());
}

/// A box as the host makes it: on its own branch, which it was told, with a remote.
fn with_origin() -> TestBox {
    let at = TestBox::new().with_commit();
    at.git(&at.workspace(), &["remote", "add", "origin", "https://example.org/x"]);
    at.git(&at.workspace(), &["config", "agentbox.branch", "agentbox/t"]);
    at
}

#[test]
fn relay_19_21_what_agents_type_all_the_time_is_understood() {
    let at = with_origin();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    for line in [
        &["push", "origin", "HEAD"][..],
        &["push", "-u", "origin", "agentbox/t"],
        &["push", "--set-upstream", "origin", "HEAD"],
    ] {
        assert_eq!(said(&mut at.shim(line)).code, 0, "{line:?}");
        let params = relay.next().body["params"].clone();
        assert_eq!(
            (&params["remote"], &params["args"]),
            (&"origin".into(), &serde_json::Value::Null)
        );
    }
    at.git(&at.workspace(), &["switch", "-q", "-c", "fix/login"]);
    let refused = said(&mut at.shim(&["push", "-u", "origin", "fix/login"]));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("git switch agentbox/t && git merge fix/login"));
    let noted = said(&mut at.shim(&["push"]));
    assert_eq!(noted.code, 0);
    assert!(noted.stderr.contains("the host pushes this box's branch, agentbox/t"));
}

#[test]
fn relay_19_19_a_landing_with_a_remote_asks_nobody() {
    let at = with_origin();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    for line in [
        &["git", "push", "--host-only", "--remote", "origin"][..],
        &["git", "--remote", "origin", "push", "--host-only"],
        &["git", "push", "--host-only", "origin"],
    ] {
        let said = said(&mut at.ctl(line));
        assert_eq!((said.code, said.stderr.lines().count()), (64, 1), "{line:?}: {}", said.stderr);
    }
    assert!(relay.seen.try_recv().is_err());
    let line = ["git", "push", "--host-only", "--as", "x", "--force"];
    assert_eq!(said(&mut at.ctl(&line)).code, 0);
    let params = relay.next().body["params"].clone();
    assert_eq!(params["hostOnly"], true);
    assert_eq!((&params["as"], &params["force"]), (&"x".into(), &true.into()));
}

#[test]
fn a_clone_is_asked_of_the_host_and_left_alone_afterwards() {
    let at = with_origin();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    assert_eq!(said(&mut at.shim(&["clone", "--depth", "1", "acme/lib", "vendor"])).code, 0);
    let seen = relay.next().body;
    assert_eq!(seen["method"], "git.clone");
    let into = at.workspace().join("vendor");
    let into = into.to_str().unwrap();
    let address = "https://github.com/acme/lib.git";
    assert_eq!(seen["params"]["args"], serde_json::json!(["--depth=1", "--", address, into]));
    // In a repository beside the project the host is not asked to push the project.
    let beside = at.path("home/beside");
    std::fs::create_dir(&beside).unwrap();
    at.git(&beside, &["init", "-q"]);
    for command in ["push", "fetch", "pull"] {
        let said = said(at.shim(&[command]).current_dir(&beside));
        assert_eq!(said.code, 2, "{command}");
        assert!(said.stderr.contains("not the project's"), "{}", said.stderr);
    }
    assert!(relay.seen.try_recv().is_err());
    // A work tree of the project is the project.
    at.git(
        &at.workspace(),
        &["worktree", "add", "-q", "--detach", at.path("wt").to_str().unwrap()],
    );
    assert_eq!(said(at.shim(&["fetch"]).current_dir(at.path("wt"))).code, 0);
}

#[test]
fn the_path_sent_is_where_the_command_ran() {
    let at = TestBox::new().with_commit();
    let relay = TestRelay::answering(&at, "200 OK", FINE);
    let sub = at.workspace().join("sub");
    std::fs::create_dir(&sub).unwrap();
    assert_eq!(said(at.shim(&["-C", "..", "fetch", "--prune"]).current_dir(&sub)).code, 0);
    let seen = relay.next().body;
    assert_eq!(seen["method"], "git.fetch");
    assert_eq!(seen["params"]["path"], at.workspace().to_str().unwrap());
    assert_eq!(said(&mut at.ctl(&["git", "--remote", "fork", "push"])).code, 0);
    assert_eq!(relay.next().body["params"]["remote"], "fork");
    assert_eq!(said(&mut at.ctl(&["git", "--remote", "ext::sh", "push"])).code, 64);
}

#[test]
fn a_push_is_noted_in_the_box() {
    let at = TestBox::new().with_commit();
    let workspace = at.workspace();
    at.git(&workspace, &["remote", "add", "origin", "https://example.org/x"]);
    let oid = at.git(&workspace, &["rev-parse", "HEAD"]);
    let pushed = serde_json::json!({"remote": "origin", "branch": "agentbox/t", "oid": oid});
    let answer = serde_json::json!({"exitCode": 0, "pushed": pushed});
    let _relay = TestRelay::answering(&at, "200 OK", answer.to_string());
    let said = said(&mut at.shim(&["push"]));
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let status = at.git(&workspace, &["status", "-sb"]);
    assert_eq!(status, "## agentbox/t...origin/agentbox/t");
}

#[test]
fn a_branch_with_another_name_at_the_remote_is_followed_there() {
    let at = with_origin();
    let workspace = at.workspace();
    let oid = at.git(&workspace, &["rev-parse", "HEAD"]);
    let pushed = serde_json::json!({
        "remote": "origin", "branch": "feature", "local": "agentbox/t", "oid": oid
    });
    let answer = serde_json::json!({"exitCode": 0, "pushed": pushed});
    let _relay = TestRelay::answering(&at, "200 OK", answer.to_string());
    assert_eq!(said(&mut at.shim(&["push"])).code, 0);
    assert_eq!(at.git(&workspace, &["status", "-sb"]), "## agentbox/t...origin/feature");
}

#[test]
fn a_push_that_cannot_be_noted_is_still_a_push() {
    let at = TestBox::new().with_commit();
    let pushed = serde_json::json!({"remote": "o", "branch": "b", "oid": "ab".repeat(20)});
    let answer = serde_json::json!({"exitCode": 0, "pushed": pushed});
    let _relay = TestRelay::answering(&at, "200 OK", answer.to_string());
    let said = said(&mut at.shim(&["push"]));
    assert_eq!(said.code, 0);
    assert!(said.stderr.starts_with("warning: pushed, but"), "{}", said.stderr);
}

/// A relay that, when asked to fetch, puts one more commit behind a ref of the box.
fn delivering(at: &TestBox, tracking: &'static str) -> TestRelay {
    let workspace = at.workspace();
    TestRelay::raw(at, move |_, stream| {
        let git = |args: &[&str]| {
            let mut git = Command::new(crate::support::GIT);
            git.args(["-c", "user.name=U", "-c", "user.email=u@example.org"]);
            let out = git.args(args).current_dir(&workspace).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        };
        let tree = git(&["write-tree"]);
        let oid = git(&["commit-tree", &tree, "-p", "HEAD", "-m", "theirs"]);
        git(&["update-ref", tracking, &oid]);
        respond(stream, "200 OK", FINE);
    })
}

#[test]
fn pull_fetches_on_the_host_and_merges_in_the_box() {
    let at = TestBox::new().with_commit();
    let relay = delivering(&at, "refs/remotes/origin/HEAD");
    let said = said(&mut at.shim(&["pull", "--ff-only", "--prune"]));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(relay.next().body["params"]["args"], serde_json::json!(["--prune"]));
    assert_eq!(at.git(&at.workspace(), &["log", "-1", "--format=%s"]), "theirs");
}

#[test]
fn pull_prefers_the_upstream_and_knows_somebody_to_merge_as() {
    let at = TestBox::new().with_commit();
    let workspace = at.workspace();
    at.git(&workspace, &["remote", "add", "origin", "https://example.org/x"]);
    at.git(&workspace, &["config", "branch.agentbox/t.remote", "origin"]);
    at.git(&workspace, &["config", "branch.agentbox/t.merge", "refs/heads/dev"]);
    let _relay = delivering(&at, "refs/remotes/origin/dev");
    assert_eq!(said(&mut at.shim(&["pull", "-q"])).code, 0);
    // Diverge, so that the next pull has to make a merge commit.
    at.git(&workspace, &["reset", "-q", "--hard", "HEAD~1"]);
    at.commit(&workspace, "b", "ours");
    assert_eq!(said(&mut at.shim(&["pull", "-q"])).code, 0);
    at.git(&workspace, &["reset", "-q", "--hard", "HEAD~1"]);
    at.commit(&workspace, "c", "ours again");
    let tree = at.git(&workspace, &["write-tree"]);
    let other = at.git(&workspace, &["commit-tree", &tree, "-p", "HEAD~1", "-m", "side"]);
    at.git(&workspace, &["update-ref", "refs/remotes/origin/dev", &other]);
    std::fs::remove_file(at.socket()).unwrap();
    let _relay = TestRelay::answering(&at, "200 OK", FINE);
    let merged = said(&mut at.shim(&["pull"]));
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let author = at.git(&workspace, &["log", "-1", "--format=%an <%ae> %p"]);
    assert!(author.starts_with("agentbox <agentbox@users.noreply.github.com> "), "{author}");
    assert_eq!(author.split(' ').count(), 4, "no merge commit: {author}");
}

#[test]
fn pull_of_a_named_branch_merges_that_one() {
    let at = with_origin();
    let relay = delivering(&at, "refs/remotes/origin/main");
    assert_eq!(said(&mut at.shim(&["pull", "origin", "main"])).code, 0);
    assert_eq!(relay.next().body["params"]["remote"], "origin");
    assert_eq!(at.git(&at.workspace(), &["log", "-1", "--format=%s"]), "theirs");
}

#[test]
fn relay_14_the_rest_of_a_pull_that_was_typed_on_the_host() {
    let at = with_origin();
    let workspace = at.workspace();
    let tree = at.git(&workspace, &["write-tree"]);
    let news = at.git(&workspace, &["commit-tree", &tree, "-p", "HEAD", "-m", "news"]);
    at.git(&workspace, &["update-ref", "refs/remotes/origin/HEAD", &news]);
    let merged = said(&mut at.ctl(&["merge", "--remote", "origin", "--ff-only", "-q"]));
    assert_eq!((merged.code, merged.stderr.as_str()), (0, ""));
    assert_eq!(at.git(&workspace, &["rev-parse", "HEAD"]), news);
    assert_eq!(said(&mut at.ctl(&["merge", "--upload-pack=x"])).code, 64);
    assert_eq!(said(&mut at.ctl(&["merge", "--remote"])).code, 64);
}

#[test]
fn a_failed_fetch_ends_the_pull() {
    let at = TestBox::new().with_commit();
    let _relay = TestRelay::answering(&at, "200 OK", r#"{"exitCode":65,"stderr":"no\n"}"#);
    assert_eq!(said(&mut at.shim(&["pull"])).code, 65);
}

#[test]
fn a_pull_without_a_target_says_so() {
    let at = TestBox::new().with_commit();
    let _relay = TestRelay::answering(&at, "200 OK", FINE);
    let said = said(&mut at.shim(&["pull"]));
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("nothing to merge"), "{}", said.stderr);
}
