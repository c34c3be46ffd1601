//! What would become of a request that nobody makes: for whoever asks before they try.

use crate::policy::{ConnectVerdict, Policy, RuleRef, Verdict};
use crate::proxy::{authority_of, is_own_name};
use crate::request::{CanonicalRequest, Scheme, Target, method};
use hyper::Uri;
use protocol::egress::{EgressVerdict, Reason};

/// What a policy says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Would {
    pub verdict: EgressVerdict,
    /// None where a person would decide.
    pub reason: Option<Reason>,
    pub rule: Option<RuleRef>,
}

/// An address as a person or a box writes it, in the form requests are compared in.
pub fn read(url: &str, wanted: &str) -> Result<CanonicalRequest, Reason> {
    let uri: Uri = url.parse().map_err(|_| Reason::BadRequestTarget)?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(Reason::BadRequestTarget),
    };
    let authority = uri.authority().and_then(authority_of);
    let (host, port) = authority.ok_or(Reason::BadRequestTarget)?;
    let port = port.unwrap_or(scheme.port());
    let target = Target::parse(uri.path_and_query().map_or("/", |target| target.as_str()))?;
    let method = method(wanted)?;
    Ok(CanonicalRequest { scheme, host, port, method, target, websocket: false })
}

impl Policy {
    /// The verdict on a request, tunnel and all.
    pub fn would(&self, request: &CanonicalRequest) -> Would {
        let said = |verdict, reason, rule| Would { verdict, reason, rule };
        if is_own_name(&request.host) {
            return said(EgressVerdict::Allow, Some(Reason::RuleMatched), None);
        }
        if request.scheme == Scheme::Https {
            match self.at_connect(&request.host, request.port) {
                ConnectVerdict::Refuse(reason) | ConnectVerdict::Hopeless(reason) => {
                    return said(EgressVerdict::Deny, Some(reason), None);
                }
                ConnectVerdict::Passthrough(rule) => {
                    return said(EgressVerdict::Allow, Some(Reason::RuleMatched), Some(rule));
                }
                ConnectVerdict::Inspect | ConnectVerdict::Unlisted => {}
            }
        }
        match self.decide(request) {
            Verdict::Allow(rule) => {
                said(EgressVerdict::Allow, Some(Reason::RuleMatched), Some(rule))
            }
            Verdict::Observe(_) => said(EgressVerdict::Observe, Some(Reason::Observed), None),
            Verdict::Ask(rule) => said(EgressVerdict::Ask, None, rule),
            Verdict::Deny(reason, rule) => said(EgressVerdict::Deny, Some(reason), rule),
        }
    }
}
