//! Policies as people write them, and requests as boxes send them.

mod decide;
mod git;
mod merge;
mod mistakes;

use super::*;
use crate::host_name::HostName;
use crate::request::{CanonicalRequest, Scheme, Target, method};
use protocol::egress::{EgressMode, Reason};

const P0: &str = "domains: [{host: api.ex.com, rules: [{methods: [GET], path: {prefix: /v1/}}]}]";

pub(super) fn policy(text: &str) -> Policy {
    Policy::from_yaml(text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// Layers with their texts.
pub(super) fn rendered(layers: &[(Layer, &str)]) -> Rendered {
    render(&inputs(EgressMode::Open, layers)).unwrap_or_else(|why| panic!("{why}"))
}

pub(super) fn inputs(mode: EgressMode, layers: &[(Layer, &str)]) -> Inputs {
    let text = |(layer, text): &(Layer, &str)| LayerText {
        layer: *layer,
        file: "egress.yaml".to_owned(),
        text: (*text).to_owned(),
    };
    Inputs { mode, agents: Vec::new(), layers: layers.iter().map(text).collect() }
}

/// `GET https://host:port/path?query`.
pub(super) fn request(line: &str) -> Result<CanonicalRequest, Reason> {
    let (verb, url) = line.split_once(' ').unwrap();
    let (scheme, rest) = url.split_once("://").unwrap();
    let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(at);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().unwrap()),
        None => (authority, scheme.port()),
    };
    let (host, target) = (HostName::parse(host).unwrap(), Target::parse(target)?);
    Ok(CanonicalRequest { scheme, host, port, method: method(verb)?, target, websocket: false })
}

pub(super) fn decide(policy: &Policy, line: &str) -> Verdict {
    match request(line) {
        Ok(request) => policy.decide(&request),
        Err(reason) => Verdict::Deny(reason, None),
    }
}

#[track_caller]
pub(super) fn allowed(policy: &Policy, line: &str) -> RuleRef {
    match decide(policy, line) {
        Verdict::Allow(rule) => rule,
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
pub(super) fn denied(policy: &Policy, line: &str, reason: Reason) {
    match decide(policy, line) {
        Verdict::Deny(found, _) => assert_eq!(found, reason, "{line}"),
        other => panic!("{line}: {other:?}"),
    }
}

pub(super) fn hosts(policy: &Policy) -> Vec<String> {
    policy.records.iter().map(|record| record.host.to_string()).collect()
}

pub(super) fn codes(rendered: &Rendered) -> Vec<&str> {
    rendered.warnings.iter().map(|warning| warning.code.as_str()).collect()
}
