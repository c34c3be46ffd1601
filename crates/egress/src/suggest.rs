//! The least policy under which traffic that was recorded would have passed.
//!
//! Made from lines of traffic, which hold no bodies, no query values and no token-like path segments: where
//! a segment was left out of a line, the rule ends before it. What was refused for what it was, and not for
//! want of a rule, is left out and said.

use crate::host_name::HostName;
use crate::policy::{THIS_COMPUTER, catalog, is_reserved_name};
use protocol::egress::{EgressSuggested, Reason, Traffic, TrafficAction, TrafficKind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of a host that are listed; beyond them the folder they share is.
const MOST_PATHS: usize = 4;
const REDACTED: char = '‹';

#[derive(Default)]
struct Seen {
    reads: BTreeSet<String>,
    sends: BTreeMap<String, BTreeSet<String>>,
    websocket: bool,
}

/// From lines of one box, or of several.
pub fn suggest(lines: &[Traffic]) -> EgressSuggested {
    let mut hosts: BTreeMap<(String, String, u16), Seen> = BTreeMap::new();
    let mut left_out: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    let mut services: BTreeSet<&'static str> = BTreeSet::new();
    let mut used = 0;
    for line in lines.iter().filter(|line| line.kind == TrafficKind::Request) {
        let (Some(host), Some(method)) = (&line.host, &line.method) else { continue };
        // This computer is suggested only where somebody let a box reach it.
        let let_here = host == THIS_COMPUTER && line.action == TrafficAction::Allowed;
        if is_reserved_name(host) && !let_here {
            continue;
        }
        if let Some(why) = line.reason.and_then(not_for_want_of_a_rule) {
            left_out.entry(host.clone()).or_default().insert(why);
            continue;
        }
        used += 1;
        if let Some(service) = service_of(host) {
            services.insert(service);
            continue;
        }
        let scheme = line.scheme.clone().unwrap_or_else(|| "https".to_owned());
        let key = (host.clone(), scheme, line.port.unwrap_or(443));
        let seen = hosts.entry(key).or_default();
        let path = known_part(line.path.as_deref().unwrap_or("/"));
        seen.websocket |= line.status == Some(101);
        if matches!(method.as_str(), "GET" | "HEAD") {
            seen.reads.insert(path);
        } else {
            seen.sends.entry(method.clone()).or_default().insert(path);
        }
    }
    let notes = left_out.into_iter().map(|(host, why)| {
        let why: Vec<&str> = why.into_iter().collect();
        format!("{host} is left out: {}", why.join("; "))
    });
    EgressSuggested { text: written(&services, &hosts), lines: used, notes: notes.collect() }
}

fn written(
    services: &BTreeSet<&'static str>,
    hosts: &BTreeMap<(String, String, u16), Seen>,
) -> String {
    let mut text = "version: 1\n".to_owned();
    if !services.is_empty() {
        text.push_str("services:\n");
        for name in services {
            text.push_str(&format!("- {name}\n"));
        }
    }
    let mut by_host: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for ((host, scheme, port), seen) in hosts {
        by_host.entry(host).or_default().extend(rules(scheme, *port, seen));
    }
    text.push_str(if by_host.is_empty() { "domains: []\n" } else { "domains:\n" });
    for (host, rules) in by_host {
        text.push_str(&format!("- host: {}\n", Value::String(host.to_owned())));
        // By its address it must be meant.
        if HostName::parse(host).is_ok_and(|name| name.address().is_some()) {
            text.push_str("  ip_literal: true\n");
        }
        text.push_str("  rules:\n");
        for rule in rules {
            text.push_str(&format!("  - {rule}\n"));
        }
    }
    text
}

fn rules(scheme: &str, port: u16, seen: &Seen) -> Vec<Value> {
    let rule = |methods: Vec<&str>, path: Value, websocket: bool| {
        let mut rule = Map::new();
        rule.insert("methods".into(), json!(methods));
        rule.insert("path".into(), path);
        if scheme != "https" {
            rule.insert("schemes".into(), json!([scheme]));
        }
        if port != if scheme == "https" { 443 } else { 80 } {
            rule.insert("ports".into(), json!([port]));
        }
        if websocket {
            rule.insert("websocket".into(), json!(true));
        }
        Value::Object(rule)
    };
    let mut all: Vec<Value> = Vec::new();
    all.extend(
        paths(&seen.reads).into_iter().map(|p| rule(vec!["GET", "HEAD"], p, seen.websocket)),
    );
    for (method, at) in &seen.sends {
        all.extend(paths(at).into_iter().map(|path| rule(vec![method], path, false)));
    }
    all
}

fn paths(seen: &BTreeSet<String>) -> Vec<Value> {
    let one = |path: &str| {
        if path.ends_with('/') { json!({ "prefix": path }) } else { json!({ "exact": path }) }
    };
    if seen.len() <= MOST_PATHS {
        return seen.iter().map(|path| one(path)).collect();
    }
    vec![json!({ "prefix": shared_folder(seen) })]
}

/// The deepest folder that all paths are in.
fn shared_folder(seen: &BTreeSet<String>) -> String {
    let mut all = seen.iter();
    let mut shared = all.next().map_or("/", String::as_str);
    for path in all {
        let same = shared.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
        shared = &shared[..same];
    }
    shared[..shared.rfind('/').map_or(0, |at| at + 1)].to_owned()
}

/// A path up to where something of it is not known: everything below that, then.
fn known_part(path: &str) -> String {
    let end = path.find([REDACTED, '…', '⟨']).unwrap_or(path.len());
    if end == path.len() {
        return path.to_owned();
    }
    path[..path[..end].rfind('/').map_or(0, |at| at + 1)].to_owned()
}

fn service_of(host: &str) -> Option<&'static str> {
    let name = HostName::parse(host).ok()?;
    let covers = |pattern: &&str| match pattern.strip_prefix("*.") {
        Some(under) => HostName::parse(under).is_ok_and(|under| name.is_at_or_below(&under)),
        None => **pattern == *host,
    };
    // Of an agent the whole; nobody means a part of it.
    let whole = protocol::sessions::Agent::ALL.iter().map(|agent| agent.as_str());
    let names = whole.chain(catalog::registry_names());
    let found = names.filter_map(catalog::service).find(|s| s.hosts().iter().any(covers));
    found.map(|service| service.name)
}

/// No rule of a suggestion would or should change it.
fn not_for_want_of_a_rule(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::RuleMatched
        | Reason::Observed
        | Reason::Approved
        | Reason::HostNotAllowed
        | Reason::PortNotAllowed
        | Reason::HttpsNotPermitted
        | Reason::SchemeNotPermitted
        | Reason::NoRuleMatched
        | Reason::WebsocketNotPermitted
        | Reason::ApprovalTimeout
        | Reason::ApprovalQueueFull
        | Reason::TooManyConnections
        | Reason::PolicyUnavailable => return None,
        Reason::DeniedByRule => "a rule denies it",
        Reason::ApprovalDenied => "a person said no",
        Reason::PrivateAddress => "it leads to this computer or its network",
        Reason::PlaceholderMisuse | Reason::SecretExfil => "a credential was sent there",
        Reason::UpstreamUnreachable | Reason::UpstreamTlsFailed | Reason::UpstreamTimeout => {
            "it could not be reached"
        }
        _ => "the request itself was wrong",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use protocol::egress::{EgressVerdict, TrafficAction};

    fn line(method: &str, host: &str, path: &str, reason: Reason) -> Traffic {
        Traffic {
            id: "1".into(),
            at: 1,
            box_id: "b00000001".parse().unwrap(),
            kind: TrafficKind::Request,
            action: TrafficAction::Allowed,
            reason: Some(reason),
            detail: None,
            scheme: Some("https".into()),
            host: Some(host.into()),
            port: Some(443),
            method: Some(method.into()),
            path: Some(path.into()),
            query: Vec::new(),
            rule: None,
            injected: Vec::new(),
            status: Some(200),
            bytes_up: 0,
            bytes_down: 0,
            ms: 1,
            proto: None,
            remote: None,
            approval: None,
        }
    }

    fn verdict(policy: &Policy, method: &str, url: &str) -> EgressVerdict {
        policy.would(&crate::check::read(url, method).unwrap()).verdict
    }

    #[test]
    fn what_was_recorded_passes_under_it_and_little_else() {
        let mut lines = vec![
            line("GET", "docs.ex.com", "/guide", Reason::Observed),
            line("POST", "api.ex.com", "/v1/jobs", Reason::HostNotAllowed),
            line("GET", "files.ex.com", "/d/‹redacted›/x", Reason::Observed),
            line("GET", "api.anthropic.com", "/v1/models", Reason::RuleMatched),
            line("GET", "bad.ex.com", "/", Reason::DeniedByRule),
        ];
        lines.extend(
            (0..9).map(|n| line("GET", "many.ex.com", &format!("/a/b{n}"), Reason::Observed)),
        );
        let made = suggest(&lines);
        let policy = Policy::from_yaml(&made.text).unwrap_or_else(|e| panic!("{e}\n{}", made.text));
        let allow = EgressVerdict::Allow;
        for (method, url) in [
            ("GET", "https://docs.ex.com/guide"),
            ("POST", "https://api.ex.com/v1/jobs"),
            ("GET", "https://files.ex.com/d/abc/x"),
            ("GET", "https://api.anthropic.com/v1/models"),
            ("GET", "https://many.ex.com/a/b77"),
        ] {
            assert_eq!(verdict(&policy, method, url), allow, "{url}\n{}", made.text);
        }
        for (method, url) in [
            ("POST", "https://docs.ex.com/guide"),
            ("GET", "https://docs.ex.com/other"),
            ("GET", "https://many.ex.com/b/"),
            ("GET", "https://bad.ex.com/"),
        ] {
            assert_ne!(verdict(&policy, method, url), allow, "{url}\n{}", made.text);
        }
        assert_eq!(made.notes, ["bad.ex.com is left out: a rule denies it"]);
    }
}
