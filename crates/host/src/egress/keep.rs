//! What questions about requests need of the host.
//!
//! A yes that is remembered for a project for good becomes a line in the project's own policy file, where
//! it can be read, changed and taken out like any other. Everything shorter or narrower is a rule in the
//! list of rules.

use super::Who;
use crate::core::Core;
use approvals::{Asker, BoxFuture, WhenNobody};
use egress::gate::Keep;
use egress::host_name::HostName;
use egress::new_rule::NewRule;
use egress::ports::Ask;
use protocol::egress::EgressPlace;
use protocol::question::{Reach, Remember};
use protocol::{BoxId, SecretId};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Holds the host weakly: the host owns the proxy that owns this.
pub struct HostKeep(pub Weak<Core>);

impl HostKeep {
    fn core(&self) -> Option<Arc<Core>> {
        self.0.upgrade()
    }
}

impl Keep for HostKeep {
    fn asker(&self, id: &BoxId) -> Option<Asker> {
        self.core()?.asker(id)
    }

    fn when_nobody(&self, _: &BoxId) -> WhenNobody {
        let Some(core) = self.core() else { return WhenNobody::Deny };
        crate::start::when_nobody(core.settings.approvals.when_nobody_watches, core.kind)
    }

    fn is_bound<'a>(
        &'a self,
        secret: &'a SecretId,
        of: &'a BoxId,
        host: &'a HostName,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match self.core() {
                Some(core) => core.resolver.is_bound(secret, of, host).await,
                None => false,
            }
        })
    }

    fn widens(&self, _: &BoxId, ask: &Ask, rule: &NewRule) -> Vec<String> {
        rule.besides(ask)
    }

    fn in_yaml(&self, rule: &NewRule) -> String {
        rule.in_yaml()
    }

    fn keep<'a>(
        &'a self,
        of: &'a BoxId,
        rule: &'a NewRule,
        reach: Reach,
        time: Duration,
        sentence: String,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let core = self.core().ok_or("the host is stopping")?;
            let record = core.record(of).ok_or("the box is gone")?;
            let for_good = time >= Duration::from_secs(Remember::ALWAYS);
            let place = match reach {
                Reach::Project if for_good => Some(EgressPlace::Project),
                Reach::Everywhere if for_good => Some(EgressPlace::Global),
                _ => None,
            };
            // A credential that would have been put in goes along with a rule of the list alone.
            // In a file it would also put an end to what a wildcard says of the host.
            let only_here = core.policy_of(of).is_some_and(|policy| policy.puts_in(rule))
                || core.wildcard_in_files(rule).is_some();
            if let Some(place) = place.filter(|_| !only_here) {
                let written =
                    core.add_to_file(&Who::of(&record), place, rule, Some(&sentence)).await;
                match written {
                    Ok(_) => return Ok(()),
                    Err(e) => {
                        tracing::warn!("a rule is kept in the list, not in a file: {}", e.message);
                    }
                }
            }
            let kept = core.keep_rule(of, rule, reach, time, sentence).await;
            kept.map(|_| ()).map_err(|e| e.message)
        })
    }
}
