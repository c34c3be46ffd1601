//! The box plane: what `agentbox-ctl` posts to `relay.sock`, and the answer.
//!
//! All of it is hostile. Types are strict, unknown fields are refused, sizes are bounded.

use serde::{Deserialize, Serialize};

/// The largest request body the relay reads.
pub const MAX_BODY: usize = 1024 * 1024;
/// The longest argument list, the longest argument, and all arguments together.
pub const MAX_ARGS: usize = 256;
pub const MAX_ARG_BYTES: usize = 64 * 1024;
pub const MAX_ARGS_BYTES: usize = 256 * 1024;
/// The longest text that travels beside the arguments.
pub const MAX_STDIN: usize = 512 * 1024;
/// The largest payload of an event.
pub const MAX_EVENT: usize = 64 * 1024;
/// The longest path a box may name.
pub const MAX_PATH_BYTES: usize = 4096;

/// `POST /rpc`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub method: String,
    #[serde(default)]
    pub params: serde_json::Value,
}

/// Parameters of `git.push` and `git.fetch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GitParams {
    /// Where in the box the command ran. Selects a worktree, is never joined to a host path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `origin` when absent; an empty string is not absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// `git.push` only: bring the branch to the host's own repository and publish nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_only: bool,
    /// With `host_only`: the branch's name there; the box's branch when absent.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With `host_only`: also when it is no fast-forward.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Parameters of `gh.*`, `git.clone` and `integration.*`: a command line to be parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ArgsParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Text too long for an argument, such as the body of a page. At most [`MAX_STDIN`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

/// Parameters of `gh.api`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub endpoint: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// Parameters of `cp.toHost` and `cp.fromHost`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CopyParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub sources: Vec<String>,
    pub dest: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// True when absent: leave out `.git`, `node_modules` and what else is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_excludes: Option<bool>,
}

/// Parameters of `download.workspace`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DownloadParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_excludes: Option<bool>,
}

/// Parameters of `checkpoint.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CheckpointParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New boxes of the project start from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_default: bool,
    /// Also when there is one of that name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Parameters of `browser.open`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenParams {
    pub url: String,
}

/// What an executed call answers, denials included. Always HTTP 200.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub exit_code: i32,
    #[serde(default)]
    pub stdout: String,
    #[serde(default)]
    pub stderr: String,
    /// After a push: what the box may note about the remote in its own repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Pushed>,
}

impl Envelope {
    /// A refusal or failure: one line on standard error.
    pub fn fail(exit_code: i32, line: impl Into<String>) -> Self {
        let mut stderr = line.into();
        if !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        Self { exit_code, stderr, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pushed {
    pub remote: String,
    /// At the remote.
    pub branch: String,
    /// The box's branch, when it has another name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    pub oid: String,
}

/// `POST /events`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EventPost {
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened, by the box's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<crate::Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<serde_json::value::RawValue>>,
}

impl EventPost {
    /// A branch of the box's repository moved: the host brings its commits over. Never kept.
    pub const REF_CHANGE: &str = "ref-change";
    /// How the box is; the newest replaces the one before.
    pub const BOX_STATUS: &str = "box-status";

    pub fn ref_change() -> Self {
        Self { kind: Self::REF_CHANGE.into(), ts: None, payload: None }
    }
}

/// An HTTP-level failure: the relay did not reach a decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HttpError {
    pub error: String,
}
