//! What boxes send out to the network: why something was stopped, and one line of traffic.
//!
//! These words travel far: into the answer a box gets, the log, the command line and the window. A
//! reason's code is stable; whoever reacts to one matches the code and nothing else.

pub mod inside;
mod views;

pub use views::*;

use crate::{BoxId, Millis, SecretId};
use serde::{Deserialize, Serialize};

/// How a box gets out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum EgressMode {
    /// A network of its own with a way to the internet; nothing stands between and nothing is recorded.
    #[default]
    Open,
    /// No network. Everything passes through the host and is recorded; what the policy would deny, too.
    Observe,
    /// No network. Package registries, the agents' services and what a person allowed; all else asks.
    Balanced,
    /// No network. What a person allowed, and the services of the box's own agent; all else is refused.
    Locked,
}

impl EgressMode {
    pub const ALL: [Self; 4] = [Self::Open, Self::Observe, Self::Balanced, Self::Locked];

    /// The box has no network, only the host's proxy.
    pub fn is_controlled(self) -> bool {
        self != Self::Open
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Observe => "observe",
            Self::Balanced => "balanced",
            Self::Locked => "locked",
        }
    }
}

impl std::str::FromStr for EgressMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not one of open, observe, balanced, locked"))
    }
}

macro_rules! reasons {
    ($($(#[$meta:meta])* $name:ident = $code:literal, $status:literal;)*) => {
        /// Why a request was let through or stopped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
        pub enum Reason {
            $($(#[$meta])* #[serde(rename = $code)] $name,)*
        }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable word for it, as in `X-AgentBox-Reason`.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The status of the answer a box gets.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

reasons! {
    /// A rule allows it.
    RuleMatched = "rule_matched", 200;
    /// The box is only observed.
    Observed = "observed", 200;
    /// A person allowed it just now.
    Approved = "approved", 200;
    HostNotAllowed = "host_not_allowed", 403;
    PortNotAllowed = "port_not_allowed", 403;
    HttpsNotPermitted = "https_not_permitted", 403;
    SchemeNotPermitted = "scheme_not_permitted", 403;
    NoRuleMatched = "no_rule_matched", 403;
    DeniedByRule = "denied_by_rule", 403;
    MethodForbidden = "method_forbidden", 403;
    AmbiguousPath = "ambiguous_path", 403;
    AuthorityMismatch = "authority_mismatch", 421;
    SniMismatch = "sni_mismatch", 421;
    NotHttp = "not_http", 400;
    BadRequest = "bad_request", 400;
    BadRequestTarget = "bad_request_target", 400;
    WebsocketNotPermitted = "websocket_not_permitted", 403;
    PrivateAddress = "private_address", 403;
    GitRefDenied = "git_ref_denied", 403;
    BodyTooLarge = "body_too_large", 413;
    PlaceholderMisuse = "placeholder_misuse", 403;
    SecretExfil = "secret_exfil", 403;
    ApprovalDenied = "approval_denied", 403;
    ApprovalTimeout = "approval_timeout", 403;
    ApprovalQueueFull = "approval_queue_full", 429;
    BoxAuthFailed = "box_auth_failed", 407;
    TooManyConnections = "too_many_connections", 429;
    PolicyUnavailable = "policy_unavailable", 503;
    UpstreamUnreachable = "upstream_unreachable", 502;
    UpstreamTlsFailed = "upstream_tls_failed", 502;
    UpstreamTimeout = "upstream_timeout", 504;
    HeaderInjectionFailed = "header_injection_failed", 403;
}

/// Why a credential could not be put into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum InjectionFault {
    ExistingHeaderPresent,
    SecretResolverUnavailable,
    SecretResolutionFailed,
    TransformFailed,
    InsecureScheme,
    SecretHostBinding,
    /// Its server sent credentials back; nothing is put in until a person says so.
    Suspended,
}

/// What kind of thing a line of traffic tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum TrafficKind {
    Connect,
    Request,
    /// Bytes that were carried without being looked at.
    Passthrough,
    Reload,
    SecretWarning,
    SecretEcho,
    Selftest,
    /// What needs a person's eye: a placeholder at a foreign host, a token on another box's carrier.
    Alert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum TrafficAction {
    Allowed,
    Blocked,
    /// Said, and decides nothing.
    Noted,
}

/// One line of a box's traffic. It never holds a query value that was not on a list of harmless ones, a
/// body, a header's value, or a path segment that looks like a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Traffic {
    /// Sorts by time; unique.
    pub id: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub at: Millis,
    pub box_id: BoxId,
    pub kind: TrafficKind,
    pub action: TrafficAction,
    pub reason: Option<Reason>,
    /// More about the reason: a git ref, an injection fault's word, an error. Made visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub scheme: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub method: Option<String>,
    pub path: Option<String>,
    /// Names of query parameters; values only of harmless ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<String>,
    pub rule: Option<RuleSeen>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<Injected>,
    pub status: Option<u16>,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes_up: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes_down: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub ms: u64,
    /// `h2/h1`: what the box spoke, and what the server did.
    pub proto: Option<String>,
    pub remote: Option<String>,
    /// How a person answered, when one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
}

/// The rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct RuleSeen {
    /// The record's host, as it is written in the policy.
    pub host: String,
    pub index: u32,
    /// `project:egress.yaml:7`.
    pub origin: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Injected {
    pub header: String,
    pub secret: SecretId,
    /// `bearer`, `basic`, `raw` or `format`.
    pub transform: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_are_the_wire_form() {
        let mut codes: Vec<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        for reason in Reason::ALL {
            let wire = serde_json::to_value(reason).unwrap();
            assert_eq!(wire, reason.code());
        }
        codes.sort_unstable();
        let all = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), all);
    }

    #[test]
    fn modes_read_back_as_they_are_written() {
        for mode in EgressMode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
        assert!("Open".parse::<EgressMode>().is_err());
    }
}
