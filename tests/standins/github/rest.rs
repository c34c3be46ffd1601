//! The REST API, below `/api/v3/`.

use super::{Reply, State, git, reply};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use serde_json::{Value, json};

pub fn answer(state: &mut State, method: &str, path: &str, accept: &str, body: &Value) -> Reply {
    let missing = || reply(404, &json!({ "message": "Not Found" }));
    let parts: Vec<&str> = path.split('/').collect();
    match (method, &parts[..]) {
        ("GET", [""]) => reply(200, &json!({})),
        ("GET", ["meta"]) => reply(200, &json!({ "installed_version": "3.16.0" })),
        ("GET", ["repos", "o", "r", "pulls", n]) if accept.contains("diff") => {
            match n.parse().ok().and_then(|n| state.pull(n)) {
                Some(pull) => {
                    let range = format!("refs/heads/{}...{}", pull.base, state.head_of(pull));
                    let diff = git::output(&state.repo, &["diff", &range]).unwrap_or_default();
                    Response::new(Full::new(Bytes::from(diff + "\n")))
                }
                None => missing(),
            }
        }
        ("GET", ["repos", "o", "r", "pulls", _, "comments"]) => {
            reply(200, &Value::Array(state.review_comments.clone()))
        }
        ("POST", ["repos", "o", "r", "pulls", n, "comments", ..]) => {
            let mut comment = body.clone();
            comment["pull"] = json!(n);
            comment["id"] = json!(100 + state.review_comments.len());
            state.review_comments.push(comment.clone());
            reply(201, &comment)
        }
        ("DELETE", ["repos", "o", "r", "git", "refs", name @ ..]) => {
            let name = format!("refs/{}", name.join("/").replace("%2F", "/"));
            match git::output(&state.repo, &["update-ref", "-d", &name]) {
                Some(_) => Response::builder().status(204).body(Full::default()).unwrap(),
                None => reply(422, &json!({ "message": "Reference does not exist" })),
            }
        }
        ("GET", ["repos", "o", "r", "actions", "runs"]) => {
            reply(200, &json!({ "total_count": 1, "workflow_runs": [run(state, "123")] }))
        }
        ("GET", ["repos", "o", "r", "actions", "runs", id @ ("123" | "124")]) => {
            reply(200, &run(state, id))
        }
        ("GET", ["repos", "o", "r", "actions", "jobs", "9"]) => {
            let job = json!({ "id": 9, "run_id": 123, "name": "build", "workflow_name": "CI",
                "head_branch": "main", "status": "completed", "conclusion": "failure", "steps": [] });
            reply(200, &job)
        }
        ("GET", ["repos", "o", "r", "actions", "workflows", "5"]) => {
            reply(200, &json!({ "id": 5, "name": "CI", "path": ".github/workflows/ci.yml" }))
        }
        ("GET", ["repos", "o", "r", "actions", "workflows"]) => reply(
            200,
            &json!({ "total_count": 1, "workflows": [{ "id": 5, "name": "CI", "path": ".github/workflows/ci.yml" }] }),
        ),
        (
            "POST",
            ["repos", "o", "r", "actions", "runs", "123" | "124", what]
            | ["repos", "o", "r", "actions", "jobs", "9", what],
        ) => {
            state.reruns.push(format!("{} {what}", parts[5]));
            reply(201, &json!({}))
        }
        _ => missing(),
    }
}

fn run(state: &State, id: &str) -> Value {
    let id: u64 = id.parse().unwrap_or(0);
    // One run is of a box's branch.
    let branch = if id == 124 { "agentbox/smoke" } else { "main" };
    json!({
        "id": id, "name": "CI", "display_title": "Fix the login", "head_branch": branch,
        "head_sha": state.tip("main").unwrap_or_default(), "status": "completed",
        "conclusion": "failure", "event": "push", "workflow_id": 5, "run_number": 1, "run_attempt": 1,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:01:00Z",
        "run_started_at": "2026-01-01T00:00:00Z",
        "html_url": format!("https://{}/o/r/actions/runs/{id}", state.host),
        "jobs_url": format!("https://{}/api/v3/repos/o/r/actions/runs/{id}/jobs", state.host),
        "head_commit": { "message": "Fix the login" },
        "head_repository": { "owner": { "login": "o" }, "name": "r" },
    })
}
