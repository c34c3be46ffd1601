//! From a hostile request to a typed plan, or to a refusal. Pure: nothing is spawned, nobody asked.
//!
//! Each family of methods has a module with a `decide` of its own; this one sends a method there
//! and holds what they share. The order within a family is always the same: parameters, shape,
//! opt-ins, worktree, arguments, enable flag.

use crate::ports::Policy;
use crate::registration::{Registration, Worktree};
use crate::{checkpoint, files, gh, git, integration, link};
use connectors::worktree;
use protocol::exit;
use protocol::rpc::Envelope;
use protocol::text::visible;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What the host will do if nobody objects.
#[derive(Debug)]
pub(crate) enum Plan {
    Git(git::Plan),
    Gh(gh::Plan),
    Integration(integration::Plan),
    Files(files::Plan),
    Link(link::Plan),
    Checkpoint(checkpoint::Plan),
}

impl Plan {
    /// The same request made twice at once is one question, done once.
    pub fn joins(&self) -> bool {
        match self {
            Plan::Git(plan) => plan.joins(),
            Plan::Gh(plan) => plan.may_ask(),
            Plan::Integration(plan) => plan.may_ask(),
            Plan::Files(_) | Plan::Checkpoint(_) => true,
            // Answered before anybody is.
            Plan::Link(_) => false,
        }
    }
}

/// Why not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such method; HTTP 501.
    Unknown,
    /// A method of a known family that is not one; HTTP 400.
    Bad(String),
    Rule(Box<Envelope>),
}

impl From<connectors::Refusal> for Refusal {
    fn from(refusal: connectors::Refusal) -> Self {
        rule(refusal.exit_code, refusal.text)
    }
}

/// What a decision may look at.
pub(crate) struct Request<'a> {
    pub reg: &'a Registration,
    pub policy: &'a Policy,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (family, _) = request.method.split_once('.').unwrap_or((request.method, ""));
    match family {
        "git" => git::decide(request).map(Plan::Git),
        "gh" => gh::decide(request).map(Plan::Gh),
        "integration" => integration::decide(request).map(Plan::Integration),
        "cp" | "download" => files::decide(request).map(Plan::Files),
        "browser" => link::decide(request).map(Plan::Link),
        "checkpoint" => checkpoint::decide(request).map(Plan::Checkpoint),
        _ => Err(Refusal::Unknown),
    }
}

pub(crate) fn rule(code: i32, text: impl ToString) -> Refusal {
    Refusal::Rule(Box::new(Envelope::fail(code, text.to_string())))
}

impl Request<'_> {
    /// Strict: unknown fields, wrong types and repeated keys are refused.
    pub fn params<T: DeserializeOwned + Default>(&self, surface: &str) -> Result<T, Refusal> {
        let Some(params) = self.params else { return Ok(T::default()) };
        // serde would also take a list for a struct.
        if !params.get().starts_with('{') {
            let text = format!("{surface}: bad parameters: an object is needed");
            return Err(rule(exit::UNADDRESSABLE, text));
        }
        serde_json::from_str(params.get()).map_err(|e| {
            let why = visible(&e.to_string());
            rule(exit::UNADDRESSABLE, format!("{surface}: bad parameters: {why}"))
        })
    }

    /// The worktree a path in the box belongs to, by its number.
    pub fn worktree(&self, surface: &str, path: Option<&str>) -> Result<usize, Refusal> {
        let path = match path {
            Some(path) => worktree::normalise(path)
                .map_err(|e| rule(e.exit_code(), format!("{surface}: {e}")))?,
            None => worktree::BoxPath::default(),
        };
        let worktrees = &self.reg.worktrees;
        let paths: Vec<&str> = worktrees.iter().map(|w| w.container_path.as_str()).collect();
        worktree::resolve(&paths, &path).ok_or_else(|| {
            let (id, path) = (&self.reg.id, path.as_str());
            let mut text = format!("no worktree registered for box {id} matching {path}");
            if worktrees.is_empty() {
                text.push_str(": the project had no git repository when this box was made");
            }
            rule(exit::UNADDRESSABLE, text)
        })
    }
}

/// The remote is one the project had when the box was made.
pub(crate) fn known_remote(
    surface: &str,
    worktree: &Worktree,
    remote: &connectors::git::RemoteName,
) -> Result<(), Refusal> {
    if worktree.remotes.contains_key(remote) {
        return Ok(());
    }
    let names: Vec<String> = worktree.remotes.keys().map(ToString::to_string).collect();
    let known = if names.is_empty() {
        "the project had no remote when this box was made".to_owned()
    } else {
        format!("known remotes: {}", names.join(", "))
    };
    Err(rule(exit::REFUSED, format!("{surface}: unknown remote '{remote}'; {known}.")))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
