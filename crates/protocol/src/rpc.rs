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
    pub branch: String,
    pub oid: String,
}

/// `POST /events`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EventPost {
    /// A branch of the box's repository moved.
    RefChange {},
}

/// An HTTP-level failure: the relay did not reach a decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HttpError {
    pub error: String,
}
