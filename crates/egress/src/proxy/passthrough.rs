//! Bytes carried unseen, for programs that trust one certificate only. What is known of them is whom they
//! were for and how many there were.

use super::pump::{Terms, pump};
use super::tls::Hello;
use super::{BoxState, Shared};
use crate::dial::{Destination, Stream};
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::{ConnectVerdict, Policy, Record, RuleRef};
use protocol::egress::Reason;
use std::sync::Arc;

pub(super) async fn run<S: Stream>(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    hello: Hello<S>,
    host: HostName,
    port: u16,
    mut line: Line,
) {
    let policy = state.policy.borrow().clone();
    // It may be another one than the tunnel was agreed to under, with other rules in the same places.
    let (policy, rule, record) = match now(policy.as_deref(), &host, port) {
        Ok(found) => found,
        Err(reason) => {
            line.blocked(reason, None);
            return;
        }
    };
    let to = Destination { host: host.clone(), port, allow_private: record.allow_private };
    let dialled = match shared.dialer.dial(&to).await {
        Ok(dialled) => dialled,
        Err(refused) => {
            line.blocked(refused.reason, Some(&refused.detail));
            return;
        }
    };
    line.allowed(Reason::RuleMatched, policy.seen(rule));
    line.traffic().remote = Some(dialled.remote.to_string());
    let limits = shared.deps.limits;
    let terms = Terms {
        silence: limits.silence,
        grace: limits.grace,
        still: |policy: &Policy| {
            matches!(policy.at_connect(&host, port), ConnectVerdict::Passthrough(_))
        },
    };
    let meter = line.meter.clone();
    let end = pump(state, hello.rewound(), dialled.stream, &meter, terms).await;
    line.traffic().detail = end.said().map(str::to_owned);
}

/// The rule by which bytes are carried unseen just now.
fn now<'a>(
    policy: Option<&'a Policy>,
    host: &HostName,
    port: u16,
) -> Result<(&'a Policy, RuleRef, &'a Record), Reason> {
    let policy = policy.ok_or(Reason::PolicyUnavailable)?;
    match policy.at_connect(host, port) {
        ConnectVerdict::Passthrough(rule) => {
            let (record, _) = policy.rule(rule).ok_or(Reason::PolicyUnavailable)?;
            Ok((policy, rule, record))
        }
        ConnectVerdict::Refuse(reason) | ConnectVerdict::Hopeless(reason) => Err(reason),
        // It would have to be looked into, and the program has been told that it is not.
        ConnectVerdict::Inspect => Err(Reason::NoRuleMatched),
        ConnectVerdict::Unlisted => Err(Reason::HostNotAllowed),
    }
}
