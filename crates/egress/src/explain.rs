//! Reasons in words, for people.

use crate::proxy::hint_for;
use protocol::egress::{Reason, Traffic};

/// What a box is told to pass on to its person.
const TO_THE_BOX: &str = "ask the user to run: ";

/// A reason as a sentence.
pub fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::RuleMatched => "A rule allows it.",
        Reason::Observed => "The box is only observed: nothing is held back.",
        Reason::Approved => "A person allowed it.",
        Reason::HostNotAllowed => "No rule speaks of this host.",
        Reason::PortNotAllowed => "The host is allowed, but not by this port.",
        Reason::HttpsNotPermitted => "The host is allowed in clear text only.",
        Reason::SchemeNotPermitted => "The host is allowed, but not by this scheme.",
        Reason::NoRuleMatched => "The host is known, and no rule allows this request.",
        Reason::DeniedByRule => "A rule denies it.",
        Reason::MethodForbidden => "This method would send back what is put into requests.",
        Reason::AmbiguousPath => "Servers could read this path in several ways.",
        Reason::AuthorityMismatch => "The request names another host than its connection.",
        Reason::SniMismatch => "The handshake names another host than the tunnel.",
        Reason::NotHttp => "It is neither HTTP nor TLS.",
        Reason::BadRequest => "The request is malformed.",
        Reason::BadRequestTarget => "The address in the request is malformed.",
        Reason::WebsocketNotPermitted => "No rule allows a WebSocket there.",
        Reason::PrivateAddress => "The name leads to an address of this computer or its network.",
        Reason::GitRefDenied => "The push would change a branch that the policy does not allow.",
        Reason::BodyTooLarge => "The body is larger than the rule allows.",
        Reason::PlaceholderMisuse => {
            "A placeholder was sent to a host that its credential is not for."
        }
        Reason::SecretExfil => "The request holds the value of a credential of this computer.",
        Reason::ApprovalDenied => "A person said no.",
        Reason::ApprovalTimeout => "Nobody answered in time.",
        Reason::ApprovalQueueFull => "The box has asked too much at once.",
        Reason::BoxAuthFailed => "It was sent with another box's token.",
        Reason::TooManyConnections => "The box has too many connections open.",
        Reason::PolicyUnavailable => "There is no policy for the box that can be read.",
        Reason::UpstreamUnreachable => "The server cannot be reached.",
        Reason::UpstreamTlsFailed => "The server's certificate is not to be trusted.",
        Reason::UpstreamTimeout => "The server did not answer in time.",
        Reason::HeaderInjectionFailed => "A credential could not be put in.",
    }
}

/// What the person can do about a line that was stopped.
pub fn hint(line: &Traffic) -> Option<String> {
    let told = hint_for(line)?;
    Some(told.strip_prefix(TO_THE_BOX).map_or(told.clone(), str::to_owned))
}
