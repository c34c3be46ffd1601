//! What people ask about egress and change in it, over the control socket.

use super::{EgressMode, Reason, RuleSeen, Traffic};
use crate::control::Target;
use crate::question::Grant;
use crate::sessions::Agent;
use crate::{BoxId, BoxName, GrantId, Millis, SecretId};
use serde::{Deserialize, Serialize};

/// Whose policy is meant: a box's, or that of a folder's project as a new box of it would have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct PolicyOf {
    pub target: Option<Target>,
    /// Without a box: the project around this folder; none is no project.
    pub cwd: Option<String>,
    /// Without a box: the agent that is to work in it.
    pub agent: Option<Agent>,
    /// Without a box: the mode, when it is not the one of the settings.
    pub mode: Option<EgressMode>,
}

/// How a policy is written out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum PolicyForm {
    /// Every rule there is when all layers were read and merged.
    #[default]
    Rendered,
    /// The same, each rule with the line that made it.
    Origins,
    /// What the box itself may read of it.
    Public,
}

/// A policy as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct PolicyView {
    pub mode: EgressMode,
    /// YAML; empty when a layer is invalid.
    pub text: String,
    /// The same for two policies that say the same.
    pub digest: Option<String>,
    pub layers: Vec<LayerView>,
    /// What is valid and probably not meant.
    pub warnings: Vec<PolicyProblem>,
    /// Why there is no policy.
    pub problems: Vec<PolicyProblem>,
}

/// One place rules come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct LayerView {
    /// `global`, `project`, `repository`, …
    pub layer: String,
    /// Where it is on this computer; none for what is compiled in or kept in the database.
    pub file: Option<String>,
    pub state: LayerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum LayerState {
    InForce,
    /// There is no such file.
    Absent,
    /// A repository asks for it, and a person has not said yes to this text of it.
    Waiting,
    /// A person said no to this text of it.
    Refused,
    Invalid,
}

/// What is wrong with a policy, or probably not meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct PolicyProblem {
    /// `scope_defeated`, …; empty for a plain mistake.
    pub code: String,
    /// `project`, …
    pub layer: String,
    /// The file's name, as in `egress.yaml`.
    pub file: String,
    /// `domains[2].rules[0].path`.
    pub path: String,
    /// From 1; 0 where there is no place.
    pub line: u32,
    pub column: u32,
    pub message: String,
}

impl std::fmt::Display for PolicyProblem {
    /// `project: domains[2].rules[0].path: must start with / (egress.yaml:7:15)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.layer)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}", self.message)?;
        match (self.file.as_str(), self.line) {
            ("", 0) => Ok(()),
            ("", line) => write!(f, " (line {line}:{})", self.column),
            (file, 0) => write!(f, " ({file})"),
            (file, line) => write!(f, " ({file}:{line}:{})", self.column),
        }
    }
}

/// What would become of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressChecked {
    pub verdict: EgressVerdict,
    pub reason: Option<Reason>,
    pub method: String,
    /// The address as it would be compared.
    pub url: String,
    pub rule: Option<RuleSeen>,
    /// Credentials that would be put in.
    pub injects: Vec<SecretId>,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum EgressVerdict {
    Allow,
    Ask,
    Deny,
    /// It passes because the box is only observed.
    Observe,
}

/// Why one request was stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressExplained {
    pub line: Traffic,
    /// The reason in words.
    pub why: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Which of the person's own policies a change goes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum EgressPlace {
    /// This box alone.
    #[default]
    Box,
    /// The project's file.
    Project,
    /// The file for everything.
    Global,
}

/// A rule to add.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressChange {
    /// The box, or one of the project; a folder alone is its project.
    pub target: Target,
    pub place: EgressPlace,
    /// `api.example.com` or `*.example.com`.
    pub host: String,
    /// None is any.
    pub methods: Vec<String>,
    /// Everything below it when it ends with `/` or `/*`, else exactly it; none is every path.
    pub path: Option<String>,
    /// None is 443.
    pub ports: Vec<u16>,
    pub action: EgressAction,
    /// For so long; only for a box, whose other rules hold until somebody removes them.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub seconds: Option<u64>,
    /// Only say what would change.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum EgressAction {
    #[default]
    Allow,
    Ask,
    Deny,
}

/// What a change came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressChanged {
    /// The file; none for a rule of one box.
    pub file: Option<String>,
    /// The rule as YAML.
    pub added: String,
    /// What it allows that was not allowed before, in words.
    pub widens: Vec<String>,
    /// The rule of one box, as `agentbox grants` lists it.
    pub grant: Option<GrantId>,
    pub reloaded: Vec<EgressReloaded>,
}

/// What became of one box's policy when its layers were read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressReloaded {
    pub box_id: BoxId,
    pub box_name: BoxName,
    /// False: the policy of before holds, or none where there was none.
    pub applied: bool,
    pub problems: Vec<PolicyProblem>,
    /// Counted from 1 for each box and host.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub revision: u64,
    pub hosts: u32,
    pub exact_hosts: u32,
    pub wildcard_hosts: u32,
}

/// One of the person's policy files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressFile {
    pub path: String,
    /// Empty when there is none yet.
    pub text: String,
    /// SHA-256 of it; none when there is no file.
    pub digest: Option<String>,
}

/// Which lines of traffic are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct TrafficQuery {
    pub target: Option<Target>,
    /// Only what was stopped.
    pub denied: bool,
    /// Not before this moment.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub since: Option<Millis>,
    /// Only lines older than the one with this id, for looking back page by page.
    pub before: Option<String>,
    /// In the host or path, whatever the case.
    pub text: Option<String>,
    pub limit: u32,
}

/// How often a box called an agent's API, and how much went over the wire. An estimate of work, not of cost:
/// what a call was worth is only in its body, which nobody reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct ApiUse {
    pub box_id: BoxId,
    /// The box's name; its id when it is gone.
    pub box_name: String,
    /// `Anthropic`, `OpenAI`, …
    pub api: String,
    pub host: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub calls: u64,
    /// Of them, those that were answered with an error.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub failed: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes_up: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes_down: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub last: Millis,
}

/// The least policy under which the recorded traffic would have passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressSuggested {
    /// YAML.
    pub text: String,
    /// How many lines of traffic it was made from.
    pub lines: u32,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// The authority whose certificates boxes trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CaView {
    /// `AgentBox Egress CA 1f2e3d4c`.
    pub name: String,
    /// SHA-256 of the certificate, hex digits.
    pub fingerprint: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub not_after: Millis,
    /// The file with the certificate; the key beside it is nobody's business.
    pub file: String,
    /// The certificate, and the one of before while that is still about.
    pub pem: String,
}

/// How one box stands with the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EgressView {
    pub mode: EgressMode,
    /// Why nothing passes: its policy cannot be read.
    pub unavailable: Option<String>,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub revision: u64,
    pub hosts: u32,
    pub last_blocked: Option<Traffic>,
    /// Credentials put into its requests in the last day, and how often.
    pub injected: Vec<InjectedCount>,
    /// Rules people made at its questions.
    pub grants: Vec<Grant>,
    pub repository: Option<RepositoryPolicy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct InjectedCount {
    pub secret: SecretId,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub count: u64,
}

/// What the repository a box works on asks for, in `.agentbox/egress.yaml` of the newest commit on this
/// computer. It holds only at a text a person said yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct RepositoryPolicy {
    /// `.agentbox/egress.yaml`, from the top of the repository.
    pub file: String,
    /// The commit it was read from.
    pub commit: String,
    /// SHA-256 of the text.
    pub digest: String,
    pub state: LayerState,
    /// Against the text that was last said yes to, line by line with `+`, `-` or a space before each. Made
    /// visible.
    pub diff: Vec<String>,
}
