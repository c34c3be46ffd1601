//! What GitHub says about a pull request, a branch or a run before a person is asked about it.
//!
//! All of it is other people's text or numbers; it is parsed into types here and made visible where
//! it is shown.

use super::login::Gh;
use crate::call::{Call, Stop};
use crate::process::Output;
use connectors::gh::{Head, Pr, PrOp, PrRef, Run, RunRef};
use connectors::git::{BranchName, ObjectId};
use connectors::grammar::Parsed;
use protocol::exit;
use protocol::text::visible;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// A pull request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    pub number: u64,
    pub title: String,
    /// `OPEN`, `CLOSED`, `MERGED`.
    pub state: String,
    pub is_draft: bool,
    pub base_ref_name: String,
    pub head_ref_name: String,
    #[serde(deserialize_with = "object_id")]
    pub head_ref_oid: ObjectId,
    is_cross_repository: bool,
    head_repository_owner: Option<Owner>,
    #[serde(default)]
    pub merge_state_status: String,
    #[serde(default)]
    pub review_decision: String,
    #[serde(default)]
    status_check_rollup: Option<Vec<Check>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Owner {
    login: String,
}

/// A check run has a status and a conclusion, a status of the older kind has a state.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Check {
    name: String,
    context: String,
    status: String,
    conclusion: String,
    state: String,
}

const FIELDS: &str = "number,title,state,isDraft,baseRefName,headRefName,headRefOid,isCrossRepository,headRepositoryOwner";
const MERGE_FIELDS: &str = "mergeStateStatus,reviewDecision,statusCheckRollup";

fn object_id<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

/// What the checks of a pull request have come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Checks {
    pub passed: usize,
    pub running: usize,
    pub failed: Vec<String>,
}

impl Found {
    /// Reads it. What `gh` says when there is none is what the box is told.
    pub async fn find(call: &Call, gh: &Gh, target: &PrRef, op: PrOp) -> Result<Self, Stop> {
        let fields = match op {
            PrOp::Merge => format!("{FIELDS},{MERGE_FIELDS}"),
            _ => FIELDS.to_owned(),
        };
        let mut flags = Parsed::default();
        flags.set("--json", Some(fields));
        let argv = Pr::View(None, flags).argv(gh.repo(), Some(target));
        let output = gh.run(call, &argv, None).await?;
        parsed(gh, op.surface(), &output)
    }

    /// It comes from this branch, and not from one of the same name in somebody's fork.
    pub fn is_of(&self, own: &Head) -> bool {
        let owner = self.head_repository_owner.as_ref().map(|owner| owner.login.as_str());
        let here = match &own.owner {
            None => !self.is_cross_repository,
            Some(own) => owner.is_some_and(|owner| owner.eq_ignore_ascii_case(own)),
        };
        here && self.head_ref_name == own.branch.as_str()
    }

    /// `branch`, or `owner:branch` of a fork.
    pub fn head(&self) -> String {
        match &self.head_repository_owner {
            Some(owner) if self.is_cross_repository => {
                format!("{}:{}", owner.login, self.head_ref_name)
            }
            None if self.is_cross_repository => {
                format!("(a fork that is gone):{}", self.head_ref_name)
            }
            _ => self.head_ref_name.clone(),
        }
    }

    pub fn is_from_a_fork(&self) -> bool {
        self.is_cross_repository
    }

    pub fn checks(&self) -> Checks {
        let mut checks = Checks::default();
        for check in self.status_check_rollup.iter().flatten() {
            let word = [&check.conclusion, &check.state, &check.status]
                .into_iter()
                .find(|word| !word.is_empty())
                .map_or("", String::as_str);
            match word {
                "SUCCESS" | "NEUTRAL" | "SKIPPED" => checks.passed += 1,
                "FAILURE" | "ERROR" | "CANCELLED" | "TIMED_OUT" | "ACTION_REQUIRED"
                | "STARTUP_FAILURE" | "STALE" => {
                    let name = if check.name.is_empty() { &check.context } else { &check.name };
                    checks.failed.push(name.clone());
                }
                _ => checks.running += 1,
            }
        }
        checks
    }
}

/// Where a new pull request would go and what it would bring.
pub(super) struct Base {
    /// The repository's default branch.
    pub default: BranchName,
    /// The commit its head branch is at; not known for a fork's.
    pub head: Option<ObjectId>,
}

impl Base {
    pub async fn find(call: &Call, gh: &Gh, head: &Head) -> Result<Self, Stop> {
        let surface = PrOp::Create.surface();
        let query = "query($owner:String!,$name:String!,$head:String!){repository(owner:$owner,name:$name){defaultBranchRef{name} ref(qualifiedName:$head){target{oid}}}}";
        let name = head.branch.to_ref();
        let (answer, output) = graphql(call, gh, query, json!({ "head": name.as_str() })).await?;
        let repository = &answer["data"]["repository"];
        let default = repository["defaultBranchRef"]["name"].as_str();
        let default = default.and_then(|name| name.parse().ok());
        let default = default.ok_or_else(|| unreadable(gh, surface, &output))?;
        let at = repository["ref"]["target"]["oid"].as_str().and_then(|oid| oid.parse().ok());
        if head.owner.is_some() {
            return Ok(Self { default, head: None });
        }
        if at.is_none() {
            let (branch, repo) = (visible(head.branch.as_str()), gh.repo().shown());
            let text = format!("{surface}: {branch} is not at {repo} yet; run 'git push' first.");
            return Err(Stop::fail(exit::FAILURE, text));
        }
        Ok(Self { default, head: at })
    }
}

/// Merges into the pull request's base go through a queue. A server that has never heard of queues
/// has none.
pub(super) async fn has_merge_queue(call: &Call, gh: &Gh, number: u64) -> Result<bool, Stop> {
    let query = "query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){pullRequest(number:$number){isMergeQueueEnabled}}}";
    let (answer, output) = graphql(call, gh, query, json!({ "number": number })).await?;
    let enabled = &answer["data"]["repository"]["pullRequest"]["isMergeQueueEnabled"];
    let no_such_field = |e: &Value| e["extensions"]["code"] == "undefinedField";
    let errors = answer["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    match enabled.as_bool() {
        Some(enabled) => Ok(enabled),
        None if !errors.is_empty() && errors.iter().all(no_such_field) => Ok(false),
        None => Err(unreadable(gh, PrOp::Merge.surface(), &output)),
    }
}

/// The answer to a query about the repository, errors in it included.
async fn graphql(
    call: &Call,
    gh: &Gh,
    query: &str,
    mut variables: Value,
) -> Result<(Value, Output), Stop> {
    variables["owner"] = gh.repo().owner().into();
    variables["name"] = gh.repo().name().into();
    let body = json!({ "query": query, "variables": variables }).to_string();
    let argv = ["api", "--method=POST", "--input=-", "--", "graphql"].map(str::to_owned);
    let output = gh.run(call, &argv, Some(&body)).await?;
    let answer = serde_json::from_str(&output.out()).unwrap_or_default();
    Ok((answer, output))
}

/// What a rerun is of, for people.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    pub name: String,
    pub workflow_name: Option<String>,
    pub display_title: Option<String>,
    pub head_branch: Option<String>,
    pub head_sha: Option<String>,
    pub status: Option<String>,
    pub conclusion: Option<String>,
}

pub(super) async fn seen(call: &Call, gh: &Gh, run: &Run) -> Result<Seen, Stop> {
    let place = match run {
        Run::Rerun(RunRef::Run(id), _) | Run::View(RunRef::Run(id), _) => format!("runs/{id}"),
        Run::Rerun(RunRef::Job(id), _) | Run::View(RunRef::Job(id), _) => format!("jobs/{id}"),
        Run::List(_) => return Ok(Seen::default()),
    };
    let (owner, name) = (gh.repo().owner(), gh.repo().name());
    let endpoint = format!("repos/{owner}/{name}/actions/{place}");
    let argv = ["api".to_owned(), "--method=GET".to_owned(), "--".to_owned(), endpoint];
    let output = gh.run(call, &argv, None).await?;
    parsed(gh, run.op().surface(), &output)
}

fn parsed<T: DeserializeOwned>(gh: &Gh, surface: &str, output: &Output) -> Result<T, Stop> {
    if !output.ok() {
        return Err(gh.envelope(output).into());
    }
    serde_json::from_str(&output.out()).map_err(|_| unreadable(gh, surface, output))
}

/// `gh` failed, or said something else than it was asked.
fn unreadable(gh: &Gh, surface: &str, output: &Output) -> Stop {
    if output.ok() {
        return Stop::fail(
            exit::FAILURE,
            format!("{surface}: GitHub's answer was not understood."),
        );
    }
    gh.envelope(output).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(change: Value) -> Found {
        let mut value = json!({
            "number": 7, "title": "T", "state": "OPEN", "isDraft": false, "baseRefName": "main",
            "headRefName": "agentbox/smoke", "headRefOid": "0123456789abcdef0123456789abcdef01234567",
            "isCrossRepository": false, "headRepositoryOwner": { "login": "o" },
        });
        value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_branch_of_the_same_name_in_a_fork_is_not_the_boxs() {
        let own = Head::parse("agentbox/smoke").unwrap();
        assert!(found(json!({})).is_of(&own));
        let fork =
            found(json!({ "isCrossRepository": true, "headRepositoryOwner": { "login": "eve" } }));
        assert!(!fork.is_of(&own));
        assert_eq!(fork.head(), "eve:agentbox/smoke");
        assert!(fork.is_of(&Head::parse("eve:agentbox/smoke").unwrap()));
        assert!(!found(json!({})).is_of(&Head::parse("eve:agentbox/smoke").unwrap()));
        assert!(!found(json!({ "headRefName": "main" })).is_of(&own));
        let gone = found(json!({ "isCrossRepository": true, "headRepositoryOwner": null }));
        assert!(!gone.is_of(&own));
    }

    #[test]
    fn checks_are_counted() {
        let checks = found(json!({ "statusCheckRollup": [
            { "__typename": "CheckRun", "name": "build", "status": "COMPLETED", "conclusion": "SUCCESS" },
            { "__typename": "CheckRun", "name": "lint", "status": "COMPLETED", "conclusion": "FAILURE" },
            { "__typename": "CheckRun", "name": "slow", "status": "IN_PROGRESS", "conclusion": "" },
            { "__typename": "StatusContext", "context": "ci/old", "state": "ERROR" },
            { "__typename": "StatusContext", "context": "ci/new", "state": "PENDING" },
        ] }));
        let wanted = Checks { passed: 1, running: 2, failed: vec!["lint".into(), "ci/old".into()] };
        assert_eq!(checks.checks(), wanted);
        assert_eq!(found(json!({ "statusCheckRollup": null })).checks(), Checks::default());
    }

    #[test]
    fn a_commit_that_is_none_is_refused() {
        let bad = json!({ "number": 7, "title": "T", "state": "OPEN", "isDraft": false,
            "baseRefName": "main", "headRefName": "x", "headRefOid": "--admin",
            "isCrossRepository": false, "headRepositoryOwner": null });
        assert!(serde_json::from_value::<Found>(bad).is_err());
    }
}
