//! Policies, written as values.

use agentbox_egress::host_name::HostName;
use agentbox_egress::policy::*;
use agentbox_egress::request::Scheme;
use std::sync::Arc;

pub fn name(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

/// A rule that allows everything over TLS.
pub fn rule() -> Rule {
    Rule {
        schemes: [Scheme::Https].into(),
        methods: None,
        path: None,
        query: None,
        ports: [443].into(),
        websocket: false,
        action: Action::Allow,
        max_body: None,
        transform: None,
        push: None,
        origin: Origin { layer: Layer::Project, file: "egress.yaml".into(), line: 1 },
        grant: false,
    }
}

pub fn path(kind: PathKind, text: &str) -> Option<PathRule> {
    Some(PathRule { kind, text: text.into(), ignore_case: false })
}

/// Puts a credential into `authorization`.
pub fn bearer(secret: &str, on_existing: OnExisting) -> Option<Arc<Transform>> {
    header("authorization", secret, How::Bearer, on_existing)
}

pub fn header(
    name: &str,
    secret: &str,
    how: How,
    on_existing: OnExisting,
) -> Option<Arc<Transform>> {
    let rule = HeaderRule { name: name.into(), secret: secret.parse().unwrap(), how };
    Some(Arc::new(Transform { headers: vec![rule], on_existing }))
}

pub fn record(host: &str, rules: Vec<Rule>) -> Record {
    let host = match host.strip_prefix("*.") {
        Some(suffix) => HostPattern::Under(name(suffix)),
        None => HostPattern::Exact(name(host)),
    };
    Record { host, rules, tls: Tls::Intercept, allow_private: false }
}

pub fn allow(records: Vec<Record>) -> Policy {
    Policy { records, ..Policy::default() }
}

/// P0 of the acceptance cases: `GET https://api.ex.com/v1/…`.
pub fn p0() -> Policy {
    let get = Rule {
        methods: Some(["GET".to_owned()].into()),
        path: path(PathKind::Prefix, "/v1/"),
        ..rule()
    };
    allow(vec![record("api.ex.com", vec![get])])
}
