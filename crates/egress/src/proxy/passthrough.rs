//! Bytes carried unseen, for programs that trust one certificate only. What is known of them is whom they
//! were for and how many there were.

use super::pump::{Terms, pump};
use super::tls::Hello;
use super::{BoxState, Shared};
use crate::dial::{Destination, Stream};
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::{ConnectVerdict, RuleRef};
use protocol::egress::Reason;
use std::sync::Arc;

pub(super) async fn run<S: Stream>(
    shared: &Arc<Shared>,
    state: &Arc<BoxState>,
    hello: Hello<S>,
    host: HostName,
    port: u16,
    rule: RuleRef,
    mut line: Line,
) {
    let policy = state.policy.borrow().clone();
    let Some((policy, record)) =
        policy.as_ref().and_then(|policy| Some((policy, policy.rule(rule)?.0)))
    else {
        line.blocked(Reason::PolicyUnavailable, None);
        return;
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
        still: |policy: &crate::policy::Policy| {
            matches!(policy.at_connect(&host, port), ConnectVerdict::Passthrough(_))
        },
    };
    let meter = line.meter.clone();
    let end = pump(state, hello.rewound(), dialled.stream, &meter, terms).await;
    line.traffic().detail = end.said().map(str::to_owned);
}
