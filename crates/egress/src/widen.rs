//! What a new rule lets through besides what it is made for, in words.
//!
//! Four looks: at the hosts, at what may be done there, at the paths, and at the ways (ports, clear text,
//! WebSockets). A credential that would go along is named with the request itself.

use crate::new_rule::NewRule;
use crate::policy::{Action, HostPattern, PathKind, Policy, RISKY_PORTS, Rule};
use crate::ports::Ask;
use crate::request::{READS, Scheme};
use std::collections::BTreeSet;

impl NewRule {
    /// Besides the one request that was asked about.
    pub fn besides(&self, ask: &Ask) -> Vec<String> {
        let mut all = Vec::new();
        if let HostPattern::Under(name) = &self.host {
            all.push(format!("every host below {name}"));
        }
        let asked_reads = READS.contains(&ask.method.as_str());
        match &self.methods {
            None if asked_reads => all.push("sends data, too".to_owned()),
            None => all.push("any method".to_owned()),
            Some(methods) => {
                let more: Vec<&str> = methods
                    .iter()
                    .map(String::as_str)
                    .filter(|m| *m != ask.method && !(asked_reads && READS.contains(m)))
                    .collect();
                if !more.is_empty() {
                    all.push(format!("also {}", more.join(", ")));
                }
            }
        }
        match &self.path {
            None => all.push("every path of the host".to_owned()),
            Some(path) if path.kind == PathKind::Prefix => {
                all.push(format!("everything below {}", path.text));
            }
            Some(_) => {}
        }
        if self.websocket && !ask.websocket {
            all.push("WebSockets".to_owned());
        }
        all
    }

    /// What a policy does not allow so far. Nothing for a rule that holds back.
    pub fn widens(&self, policy: &Policy) -> Vec<String> {
        if self.action == Action::Deny {
            return Vec::new();
        }
        let named = policy.records.iter().find(|record| self.host.is_within(&record.host));
        let so_far: Vec<&Rule> =
            named.iter().flat_map(|r| &r.rules).filter(|r| r.action == Action::Allow).collect();
        let mut all = Vec::new();
        if so_far.is_empty() {
            all.push(format!("{} is not reached so far", self.host));
        }
        if let HostPattern::Under(name) = &self.host {
            all.push(format!("every host below {name}"));
        }
        let sends = |methods: &Option<BTreeSet<String>>| {
            methods.as_ref().is_none_or(|m| m.iter().any(|m| !READS.contains(&m.as_str())))
        };
        if sends(&self.methods) && !so_far.iter().any(|rule| sends(&rule.methods)) {
            all.push("sends data".to_owned());
        }
        if self.path.is_none() && !so_far.iter().any(|rule| rule.path.is_none()) {
            all.push("every path of the host".to_owned());
        }
        if self.scheme == Scheme::Http {
            all.push("not encrypted: others on the way can read and change it".to_owned());
        }
        if RISKY_PORTS.contains(&self.port) {
            all.push(format!("port {}, where something else than the web answers", self.port));
        } else if self.port != self.scheme.port() {
            all.push(format!("port {}", self.port));
        }
        if self.websocket && !so_far.iter().any(|rule| rule.websocket) {
            all.push("WebSockets: data goes both ways at any time".to_owned());
        }
        all
    }

    /// As an entry of `domains`, on one line.
    pub fn in_yaml(&self) -> String {
        let mut rule = serde_json::Map::new();
        if self.action != Action::Allow {
            let word = if self.action == Action::Ask { "ask" } else { "deny" };
            rule.insert("action".into(), word.into());
        }
        if self.scheme == Scheme::Http {
            rule.insert("schemes".into(), vec!["http"].into());
        }
        if let Some(methods) = &self.methods {
            rule.insert("methods".into(), methods.iter().cloned().collect::<Vec<_>>().into());
        }
        if let Some(path) = &self.path {
            let kind = if path.kind == PathKind::Prefix { "prefix" } else { "exact" };
            rule.insert("path".into(), serde_json::json!({ kind: path.text }));
        }
        if self.port != self.scheme.port() {
            rule.insert("ports".into(), vec![self.port].into());
        }
        if RISKY_PORTS.contains(&self.port) {
            rule.insert("allow_risky_port".into(), true.into());
        }
        // Without a word it depends on the rest of the rule.
        rule.insert("websocket".into(), self.websocket.into());
        let host = self.host.to_string();
        serde_json::json!({ "host": host, "rules": [rule] }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PathRule;

    fn rule(host: &str) -> NewRule {
        NewRule {
            scheme: Scheme::Https,
            host: HostPattern::Exact(crate::host_name::HostName::parse(host).unwrap()),
            port: 443,
            methods: Some(BTreeSet::from(["GET".to_owned()])),
            path: Some(PathRule {
                kind: PathKind::Prefix,
                text: "/v1/".into(),
                ignore_case: false,
            }),
            websocket: false,
            action: Action::Allow,
            asked: None,
        }
    }

    #[test]
    fn a_rule_says_what_it_adds_to_a_policy() {
        let policy = Policy::from_yaml(
            "domains: [{host: api.ex.com, rules: [{methods: [GET], path: {prefix: /v1/}}]}]",
        )
        .unwrap();
        assert!(rule("api.ex.com").widens(&policy).is_empty());
        assert_eq!(rule("b.ex.com").widens(&policy), ["b.ex.com is not reached so far"]);
        let wide =
            NewRule { methods: None, path: None, port: 22, websocket: true, ..rule("api.ex.com") };
        let said = wide.widens(&policy).join("; ");
        for word in ["sends data", "every path", "port 22", "WebSockets"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(NewRule { action: Action::Deny, ..wide }.widens(&policy).is_empty());
    }

    #[test]
    fn what_is_shown_of_a_rule_is_a_policy_that_says_the_same() {
        for new in [
            rule("api.ex.com"),
            NewRule { methods: None, path: None, ..rule("b.ex.com") },
            NewRule { port: 22, ..rule("c.ex.com") },
            NewRule { scheme: Scheme::Http, port: 80, ..rule("d.ex.com") },
        ] {
            let text = format!("domains: [{}]", new.in_yaml());
            let policy = Policy::from_yaml(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let read = &policy.records[0].rules[0];
            assert_eq!((&read.methods, &read.path), (&new.methods, &new.path), "{text}");
            assert_eq!(read.ports, BTreeSet::from([new.port]), "{text}");
            assert_eq!(read.schemes, BTreeSet::from([new.scheme]), "{text}");
            assert_eq!(read.websocket, new.websocket, "{text}");
        }
    }
}
