//! What the proxy says to a box under a name of its own, `http://egress.agentbox.internal/…`.
//!
//! Asked through the proxy like any page, so whoever asks is known. Everything here tells a box about
//! itself; nothing in it decides anything, and no answer holds a secret's value or its id.

use super::{EgressVerdict, Reason};
use serde::{Deserialize, Serialize};

/// Answered by the proxy itself, whatever the policy says.
pub const HOST: &str = "egress.agentbox.internal";

/// `GET`: `200` when the proxy has a policy for the box.
pub const HEALTH: &str = "/healthz";
/// `GET`: what is allowed, as YAML; `text/yaml`.
pub const POLICY: &str = "/policy";
/// `GET ?event=<id>`, or without for the last request that was stopped: [`Why`], or `404`.
pub const WHY: &str = "/why";
/// `GET ?url=<address>&method=<method>`: [`Checked`]; `400` for what is no address.
pub const CHECK: &str = "/check";
/// `POST` of a [`Wish`]: [`Granted`], once a person has answered.
pub const REQUEST: &str = "/request";
/// `GET ?host=<name>`: [`Shim`], or `404` when no policy has a credential for git there.
pub const SHIM: &str = "/shim";

/// Why a request of the box was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    pub event: String,
    pub reason: Reason,
    /// `POST api.example.com/v1/a`.
    pub request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: String,
}

/// What would become of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    pub verdict: EgressVerdict,
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a box would like to be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wish {
    pub host: String,
    /// None is `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// None is `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it is for, for a person to read.
    pub reason: String,
}

/// What came of a wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    pub granted: bool,
    pub reason: Reason,
}

/// What git is to send where the proxy has a credential to put in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shim {
    pub username: String,
    /// A placeholder.
    pub password: String,
}
