//! What the proxy needs from the rest of the host.

use crate::host_name::HostName;
use approvals::BoxFuture;
use protocol::egress::{Reason, Traffic};
use protocol::{BoxId, SecretId};

/// Stored credentials, as the host keeps them.
pub trait Secrets: Send + Sync + 'static {
    /// The value for a request of this box to this host, read anew for each request. Whoever implements it
    /// bounds the time it takes, and refuses a credential that is bound to other hosts.
    fn resolve<'a>(
        &'a self,
        id: &'a SecretId,
        of: &'a BoxId,
        host: &'a HostName,
    ) -> BoxFuture<'a, Result<secrets::Value, SecretFault>>;
}

/// Why there is no value. Texts name the credential and the fault, never a byte of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    #[error("{0} is not stored")]
    NotFound(SecretId),
    /// The keychain is locked or does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// It is there and cannot be used: unsafe, malformed.
    #[error("{0}")]
    Unusable(String),
    #[error("{id} is bound to other hosts than {host}")]
    HostBinding { id: SecretId, host: String },
}

/// Where lines of traffic go. Called for every request: must not block.
pub trait Log: Send + Sync + 'static {
    fn note(&self, line: Traffic);
}

/// The person, for what the policy leaves to them.
pub trait Gate: Send + Sync + 'static {
    /// Waits for an answer; dropping the future takes the asker away. Requests that are the same to a
    /// person share one question.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer>;
}

/// What a person is asked about: a request before anything of it went out, its body unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub box_id: BoxId,
    pub scheme: crate::request::Scheme,
    pub host: HostName,
    pub port: u16,
    pub method: String,
    /// Canonical, whole.
    pub path: String,
    /// The body's length; none when it is not known before it is sent.
    pub length: Option<u64>,
    pub websocket: bool,
    /// Credentials that would be put in.
    pub secrets: Vec<SecretId>,
    /// The rule that says `ask`; none for a host that no policy names.
    pub rule: Option<protocol::egress::RuleSeen>,
    /// What the box says it is for, when it asks before it tries. Its word, and hostile text.
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Allowed(Told),
    Denied(Told),
    /// Nobody answered in time, or nobody was there.
    Unanswered,
    /// The box has too many questions open or asked too often.
    TooMany,
}

/// What was said, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Once,
    ForBox,
    ForProject,
    Always,
    /// By a rule that a person made before.
    Rule,
}

impl Answer {
    /// What a box is told when it is a no.
    pub fn refusal(self) -> Option<Reason> {
        match self {
            Self::Allowed(_) => None,
            Self::Denied(_) => Some(Reason::ApprovalDenied),
            Self::Unanswered => Some(Reason::ApprovalTimeout),
            Self::TooMany => Some(Reason::ApprovalQueueFull),
        }
    }
}
