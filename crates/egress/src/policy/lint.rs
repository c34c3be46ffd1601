//! What is valid and probably not meant.

use super::layers::{Claim, Owned, Owner, Spoken};
use super::problem::Notes;
use super::{Action, HostPattern, Policy};
use crate::host_name::HostName;
use protocol::SecretId;
use protocol::egress::PolicyProblem;

/// A credential that is stored, and where it may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    pub id: SecretId,
    /// None is anywhere.
    pub hosts: Vec<HostName>,
}

/// Of rules and who brought them, before they are one.
pub(super) fn layers(hosts: &[Spoken], claims: &[Claim]) -> Vec<PolicyProblem> {
    let mut all = Vec::new();
    for host in hosts {
        if let Some(claim) = claims.iter().find(|claim| claim.host == host.host) {
            let open = |owned: &&Owned| {
                owned.owner == Owner::Author && owned.rule.is_catch_all() && !owned.rule.grant
            };
            all.extend(host.rules.iter().filter(open).map(|owned| {
                let message = format!(
                    "allows all of {}, so the repositories named for {} hold nothing back",
                    host.host, claim.service
                );
                said(owned, "scope_defeated", &message)
            }));
        }
        all.extend(undone(host));
    }
    all
}

/// A service's name in a later layer, on a host that an earlier layer had narrowed.
fn undone(host: &Spoken) -> Option<PolicyProblem> {
    let opens = |owned: &Owned| {
        owned.rule.action == Action::Allow
            && owned.rule.methods.is_none()
            && owned.rule.is_catch_all()
    };
    let by_service = |owned: &&Owned| matches!(owned.owner, Owner::Service(_)) && opens(owned);
    let wide = host.rules.iter().find(by_service)?;
    let layer = wide.rule.origin.layer;
    let earlier = || host.rules.iter().filter(|owned| owned.rule.origin.layer < layer);
    if earlier().any(opens) {
        return None;
    }
    let narrow = earlier().find(|owned| owned.rule.action != Action::Deny)?;
    let message = format!("allows all of {}, which {} had narrowed", host.host, narrow.rule.origin);
    Some(said(wide, "narrowing_undone", &message))
}

/// Of a rendered policy.
pub(super) fn policy(policy: &Policy) -> Vec<PolicyProblem> {
    let mut all = Vec::new();
    for record in &policy.records {
        for rule in record.rules.iter().filter(|rule| rule.transform.is_some()) {
            if record.host.is_wildcard() || rule.path.is_none() {
                let what = match record.host {
                    HostPattern::Under(_) => "every host of a wildcard",
                    HostPattern::Exact(_) => "every request of the host",
                };
                let message = format!("puts a credential into {what}: {}", record.host);
                all.push(at(&rule.origin, "broad_injection", &message));
            }
        }
    }
    all
}

/// Of the credentials a policy names, against those that are stored.
pub fn secrets(policy: &Policy, stored: &[StoredSecret]) -> Vec<PolicyProblem> {
    let mut all: Vec<PolicyProblem> = Vec::new();
    let mut named: Vec<&SecretId> = Vec::new();
    for record in &policy.records {
        for rule in &record.rules {
            for header in rule.transform.iter().flat_map(|transform| &transform.headers) {
                named.push(&header.secret);
                let known = stored.iter().find(|one| one.id == header.secret);
                let bound = known.is_some_and(|one| {
                    let goes =
                        |host: &HostName| record.host.name() == host && !record.host.is_wildcard();
                    !one.hosts.is_empty() && !one.hosts.iter().any(goes)
                });
                let found = match known {
                    None => at(
                        &rule.origin,
                        "missing_secret",
                        &format!("{} is not stored", header.secret),
                    ),
                    Some(_) if bound => {
                        let message = format!(
                            "{} is bound to other hosts than {}",
                            header.secret, record.host
                        );
                        at(&rule.origin, "secret_host_binding", &message)
                    }
                    Some(_) => continue,
                };
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
    }
    // Others are for connectors; one that is bound to hosts is meant for requests.
    let unused = stored.iter().filter(|one| !one.hosts.is_empty() && !named.contains(&&one.id));
    all.extend(unused.map(|one| PolicyProblem {
        code: "unused_secret".to_owned(),
        message: format!("{} is bound to hosts, and no rule puts it in", one.id),
        ..PolicyProblem::default()
    }));
    all
}

fn said(owned: &Owned, code: &str, message: &str) -> PolicyProblem {
    let origin = &owned.rule.origin;
    let mut notes = Notes::new(origin.layer, &origin.file);
    notes.warning(code, owned.place, &owned.at, message);
    notes.warnings.pop().unwrap_or_default()
}

fn at(origin: &super::Origin, code: &str, message: &str) -> PolicyProblem {
    PolicyProblem {
        code: code.to_owned(),
        layer: origin.layer.word().to_owned(),
        file: origin.file.clone(),
        path: String::new(),
        line: origin.line,
        column: u32::from(origin.line > 0),
        message: message.to_owned(),
    }
}
