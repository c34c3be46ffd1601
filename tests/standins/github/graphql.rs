//! The queries and mutations `gh` sends, known by the name of their operation.

use super::{Pull, Reply, State, reply};
use serde_json::{Map, Value, json};

/// The name of a query's operation; the first field's when it has none.
pub fn operation(query: &str) -> String {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let start = ["query ", "mutation "].iter().find_map(|key| Some(query.find(key)? + key.len()));
    let named = start.map(|at| word(&query[at..])).unwrap_or_default();
    if !named.is_empty() {
        return named;
    }
    // The host's own questions have no name.
    let known = ["isMergeQueueEnabled", "qualifiedName"];
    known.iter().find(|field| query.contains(**field)).map(ToString::to_string).unwrap_or_default()
}

pub fn answer(state: &mut State, operation: &str, request: &Value) -> Reply {
    let variables = &request["variables"];
    let repo = variables["repo"].as_str().or(variables["name"].as_str());
    let elsewhere = repo.is_some_and(|repo| repo != "r")
        || variables["owner"].as_str().is_some_and(|o| o != "o");
    if elsewhere {
        return error("NOT_FOUND", "Could not resolve to a Repository with that name.");
    }
    let input = &variables["input"];
    match operation {
        "PullRequestCreate" => create(state, input),
        "PullRequestCreateMetadata" => {
            let labels = input["labelIds"].as_array().cloned().unwrap_or_default();
            let labels =
                labels.iter().filter_map(|l| Some(l.as_str()?.strip_prefix("L_")?.to_owned()));
            let labels: Vec<String> = labels.collect();
            if let Some(pull) = state.pull_mut(&input["pullRequestId"]) {
                pull.labels = labels;
            }
            data(json!({ "updatePullRequest": { "clientMutationId": "" } }))
        }
        "PullRequestCreateRequestReviews" => {
            data(json!({ "requestReviews": { "clientMutationId": "" } }))
        }
        "RepositoryResolveMetadataIDs" => ids(request["query"].as_str().unwrap_or_default()),
        "CommentCreate" => {
            let Some(pull) = state.pull_mut(&input["subjectId"]) else { return gone() };
            let number = pull.number;
            state.comments.push((number, text(&input["body"])));
            let url = format!("{}#issuecomment-{}", state.url_of(number), state.comments.len());
            data(json!({ "addComment": { "commentEdge": { "node": { "url": url } } } }))
        }
        "PullRequestReviewAdd" => {
            let Some(pull) = state.pull_mut(&input["pullRequestId"]) else { return gone() };
            let number = pull.number;
            state.reviews.push((number, text(&input["event"]), text(&input["body"])));
            data(json!({ "addPullRequestReview": { "clientMutationId": "" } }))
        }
        "PullRequestClose" => turn(state, input, "CLOSED", "closePullRequest"),
        "PullRequestReopen" => turn(state, input, "OPEN", "reopenPullRequest"),
        "PullRequestMerge" => merge(state, input),
        "PullRequestByNumber" => {
            let number = variables["pr_number"].as_u64().unwrap_or(0);
            match state.pull(number) {
                Some(pull) => data(json!({ "repository": { "pullRequest": shown(state, pull) } })),
                None => error(
                    "NOT_FOUND",
                    &format!("Could not resolve to a PullRequest with the number of {number}."),
                ),
            }
        }
        "PullRequestForBranch" | "PullRequestList" => {
            let head = variables["headRefName"].as_str().or(variables["headBranch"].as_str());
            let states = variables["states"].as_array().or(variables["state"].as_array());
            let fits = |pull: &&Pull| {
                head.is_none_or(|head| pull.head == head)
                    && variables["baseBranch"].as_str().is_none_or(|base| pull.base == base)
                    && states.is_none_or(|all| all.iter().any(|s| s == pull.state))
            };
            let nodes: Vec<Value> =
                state.pulls.iter().filter(fits).map(|pull| shown(state, pull)).collect();
            data(json!({ "repository": {
                "pullRequests": { "totalCount": nodes.len(), "nodes": nodes, "pageInfo": last_page() },
                "defaultBranchRef": { "name": "main" },
            } }))
        }
        "PullRequestStatusChecks" => {
            let number =
                variables["id"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse().ok());
            let Some(pull) = state.pull(number.unwrap_or(0)) else { return gone() };
            data(json!({ "node": { "statusCheckRollup": rollup(pull) } }))
        }
        "RepositoryInfo" => data(json!({ "repository": {
            "id": "R_1", "name": "r", "owner": { "login": "o" }, "hasIssuesEnabled": true,
            "description": "", "hasWikiEnabled": false, "viewerPermission": "WRITE",
            "defaultBranchRef": { "name": "main" }, "parent": null, "mergeCommitAllowed": true,
            "rebaseMergeAllowed": true, "squashMergeAllowed": true,
        } })),
        "UserCurrent" => data(json!({ "viewer": { "login": "ada" } })),
        "RepositoryLabelList" => data(json!({ "repository": { "labels": {
            "nodes": [{ "id": "L_bug", "name": "bug" }], "pageInfo": last_page(),
        } } })),
        "RepositoryAssignableUsers" => data(json!({ "repository": { "assignableUsers": {
            "nodes": [{ "id": "U_bob", "login": "bob", "name": "" }], "pageInfo": last_page(),
        } } })),
        "PullRequestProjectItems" => {
            data(json!({ "repository": { "pullRequest": { "projectItems": {
            "totalCount": 0, "nodes": [], "pageInfo": last_page(),
        } } } }))
        }
        name if name.contains("_fields") => schema(request["query"].as_str().unwrap_or_default()),
        "isMergeQueueEnabled" => data(json!({ "repository": { "pullRequest": {
            "isMergeQueueEnabled": state.merge_queue
        } } })),
        "qualifiedName" => {
            let name = variables["head"].as_str().unwrap_or_default();
            let tip = state.tip(name.strip_prefix("refs/heads/").unwrap_or("-"));
            let at = tip.map(|oid| json!({ "target": { "oid": oid } }));
            data(json!({ "repository": { "defaultBranchRef": { "name": "main" }, "ref": at } }))
        }
        other => error("UNKNOWN", &format!("the stand-in does not know the operation '{other}'")),
    }
}

/// `PullRequest: __type(name: "PullRequest"){…}`: which fields a type has.
fn schema(query: &str) -> Reply {
    let mut types = Map::new();
    for part in query.split("__type(name: \"").skip(1) {
        let name = part.split('"').next().unwrap_or_default();
        let known: &[&str] =
            if name == "PullRequest" { &["isInMergeQueue", "isMergeQueueEnabled"] } else { &[] };
        let fields: Vec<Value> = known.iter().map(|name| json!({ "name": name })).collect();
        types.insert(name.to_owned(), json!({ "fields": fields }));
    }
    data(Value::Object(types))
}

fn last_page() -> Value {
    json!({ "hasNextPage": false, "endCursor": "" })
}

fn data(data: Value) -> Reply {
    reply(200, &json!({ "data": data }))
}

fn error(kind: &str, message: &str) -> Reply {
    reply(
        200,
        &json!({ "data": null, "errors": [{ "type": kind, "message": message, "path": [] }] }),
    )
}

fn gone() -> Reply {
    error("NOT_FOUND", "Could not resolve to a node with that id.")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn create(state: &mut State, input: &Value) -> Reply {
    let head = text(&input["headRefName"]);
    if state.tip(&head).is_none() {
        return error("UNPROCESSABLE", "Head ref must be a branch, Head sha can't be blank");
    }
    let number = state.pulls.iter().map(|pull| pull.number).max().unwrap_or(0) + 1;
    state.pulls.push(Pull {
        body: text(&input["body"]),
        base: text(&input["baseRefName"]),
        draft: input["draft"] == true,
        ..Pull::open(number, &text(&input["title"]), &head)
    });
    let url = state.url_of(number);
    let pull = json!({ "id": format!("PR_{number}"), "url": url });
    data(json!({ "createPullRequest": { "pullRequest": pull } }))
}

fn turn(state: &mut State, input: &Value, to: &'static str, field: &str) -> Reply {
    let Some(pull) = state.pull_mut(&input["pullRequestId"]) else { return gone() };
    pull.state = to;
    let id = format!("PR_{}", pull.number);
    data(json!({ field: { "pullRequest": { "id": id } } }))
}

fn merge(state: &mut State, input: &Value) -> Reply {
    let Some(pull) = state.pull_mut(&input["pullRequestId"]).cloned() else { return gone() };
    let head = state.head_of(&pull);
    if input["expectedHeadOid"].as_str().is_some_and(|expected| expected != head) {
        return error("UNPROCESSABLE", "Head branch was modified. Review and try the merge again.");
    }
    let base = format!("refs/heads/{}", pull.base);
    assert!(super::git::output(&state.repo, &["update-ref", &base, &head]).is_some());
    if let Some(pull) = state.pull_mut(&input["pullRequestId"]) {
        pull.state = "MERGED";
        pull.at = Some(head);
    }
    data(json!({ "mergePullRequest": { "clientMutationId": "" } }))
}

/// `u000: user(login:"bob"){…} … l000: label(name:"bug"){…}`, answered alias by alias.
fn ids(query: &str) -> Reply {
    let (mut all, mut repository) = (Map::new(), Map::new());
    for part in query.split(')') {
        let Some((before, value)) = part.rsplit_once("(login:").or(part.rsplit_once("(name:"))
        else {
            continue;
        };
        let value = value.trim_matches('"');
        let Some((alias, kind)) = before.rsplit_once(':') else { continue };
        let alias =
            alias.rsplit([' ', '\n', '\t', '{', '}', ',']).next().unwrap_or_default().to_owned();
        match kind.trim() {
            "user" => {
                drop(all.insert(alias, json!({ "id": format!("U_{value}"), "login": value })));
            }
            "label" => {
                drop(
                    repository.insert(alias, json!({ "id": format!("L_{value}"), "name": value })),
                );
            }
            _ => {}
        }
    }
    all.insert("repository".into(), Value::Object(repository));
    data(Value::Object(all))
}

/// Every field of a pull request `gh` may want.
fn shown(state: &State, pull: &Pull) -> Value {
    let oid = state.head_of(pull);
    let owner = pull.fork.as_deref().unwrap_or("o");
    let none = json!({ "nodes": [], "totalCount": 0, "pageInfo": { "hasNextPage": false, "endCursor": "" } });
    let labels: Vec<Value> = pull.labels.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "id": format!("PR_{}", pull.number),
        "number": pull.number,
        "title": pull.title,
        "body": pull.body,
        "state": pull.state,
        "closed": pull.state != "OPEN",
        "url": state.url_of(pull.number),
        "author": { "login": "ada" },
        "isDraft": pull.draft,
        "baseRefName": pull.base,
        "headRefName": pull.head,
        "headRefOid": oid,
        "headRepository": { "id": "R_1", "name": "r" },
        "headRepositoryOwner": { "id": "U_1", "login": owner },
        "isCrossRepository": pull.fork.is_some(),
        "mergeable": "MERGEABLE",
        "mergeStateStatus": "CLEAN",
        "reviewDecision": "",
        "maintainerCanModify": true,
        "additions": 1,
        "deletions": 0,
        "createdAt": "2026-01-01T00:00:00Z",
        "commits": { "totalCount": 1, "nodes": [{ "commit": { "oid": oid } }] },
        "labels": { "nodes": labels, "totalCount": labels.len() },
        "assignees": none,
        "projectCards": none,
        "reviewRequests": { "nodes": [] },
        "reviews": none,
        "comments": {
            "nodes": state.comments.iter().filter(|(n, _)| *n == pull.number).map(|(_, body)| json!({
                "id": "C_1", "author": { "login": "ada" }, "authorAssociation": "OWNER", "body": body,
                "createdAt": "2026-01-01T00:00:00Z", "url": "",
            })).collect::<Vec<_>>(),
            "totalCount": 0, "pageInfo": { "hasNextPage": false, "endCursor": "" },
        },
        "reactionGroups": [],
        "milestone": null,
        "isInMergeQueue": false,
        "isMergeQueueEnabled": state.merge_queue,
        "statusCheckRollup": rollup(pull),
    })
}

fn rollup(pull: &Pull) -> Value {
    let nodes: Vec<Value> = pull.checks.iter().map(|(name, conclusion)| json!({
        "__typename": "CheckRun", "name": name, "status": if conclusion.is_empty() { "IN_PROGRESS" } else { "COMPLETED" },
        "conclusion": conclusion, "startedAt": "2026-01-01T00:00:00Z", "completedAt": "2026-01-01T00:01:00Z",
        "detailsUrl": "", "isRequired": true,
        "checkSuite": { "workflowRun": { "workflow": { "name": "CI" } } },
    })).collect();
    let contexts = json!({ "nodes": nodes, "pageInfo": { "hasNextPage": false, "endCursor": "" } });
    json!({ "nodes": [{ "commit": { "statusCheckRollup": { "contexts": contexts } } }] })
}
