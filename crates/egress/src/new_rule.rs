//! A rule that a person makes for a box at a question or by a command, outside of any file.
//!
//! It is kept as text with the person's other rules, and put on top of the policy that the files make.
//! There it stands beside what was said of its host before: a rule for one host takes what a wildcard said
//! of it along, or everything else at that host would be cut off by allowing one thing.

use crate::host_name::HostName;
use crate::policy::{
    Action, Denial, HostPattern, Layer, Origin, PathKind, PathRule, Policy, Record, Rule, Tls,
    Verdict,
};
use crate::request::{CanonicalRequest, Scheme, Target};
use protocol::SecretId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    pub scheme: Scheme,
    pub host: HostPattern,
    pub port: u16,
    /// None is any.
    pub methods: Option<BTreeSet<String>>,
    /// None is every path.
    pub path: Option<PathRule>,
    pub websocket: bool,
    pub action: Action,
    /// The request that was asked about, when it was made of an answer: what would have been put into that
    /// may go along.
    pub asked: Option<Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub method: String,
    /// Without its query.
    pub target: String,
    /// The credentials that were named in the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretId>,
}

/// As it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    scheme: Scheme,
    host: String,
    port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    methods: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    websocket: bool,
    action: Word,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Asked>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Ask,
    Deny,
}

impl NewRule {
    /// Two rules that are the same have the same text.
    pub fn to_text(&self) -> String {
        let path = |kind| self.path.as_ref().filter(|p| p.kind == kind).map(|p| p.text.clone());
        let written = Written {
            scheme: self.scheme,
            host: self.host.to_string(),
            port: self.port,
            methods: self.methods.clone(),
            exact: path(PathKind::Exact),
            prefix: path(PathKind::Prefix),
            websocket: self.websocket,
            action: match self.action {
                Action::Allow => Word::Allow,
                Action::Ask => Word::Ask,
                Action::Deny => Word::Deny,
            },
            asked: self.asked.clone(),
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// None for a text that is no rule, as of another version.
    pub fn parse(text: &str) -> Option<Self> {
        let written: Written = serde_json::from_str(text).ok()?;
        let host = match written.host.strip_prefix("*.") {
            Some(under) => HostPattern::Under(HostName::parse(under).ok()?),
            None => HostPattern::Exact(HostName::parse(&written.host).ok()?),
        };
        let path = match (written.exact, written.prefix) {
            (Some(text), None) => Some((PathKind::Exact, text)),
            (None, Some(text)) => Some((PathKind::Prefix, text)),
            (None, None) => None,
            (Some(_), Some(_)) => return None,
        };
        Some(Self {
            scheme: written.scheme,
            host,
            port: written.port,
            methods: written.methods,
            path: path.map(|(kind, text)| PathRule { kind, text, ignore_case: false }),
            websocket: written.websocket,
            action: match written.action {
                Word::Allow => Action::Allow,
                Word::Ask => Action::Ask,
                Word::Deny => Action::Deny,
            },
            asked: written.asked,
        })
    }

    fn layer(&self) -> Layer {
        if self.asked.is_some() { Layer::Grants } else { Layer::Box }
    }

    fn rule(&self) -> Rule {
        let origin = Origin { layer: self.layer(), file: String::new(), line: 0 };
        Rule {
            schemes: BTreeSet::from([self.scheme]),
            ports: BTreeSet::from([self.port]),
            methods: self.methods.clone(),
            path: self.path.clone(),
            websocket: self.websocket,
            action: self.action,
            grant: self.asked.is_some(),
            ..Rule::whole_host(origin)
        }
    }
}

impl Rule {
    /// The same answer, with what goes along with a rule that asked.
    fn as_answered(&self, was: &Rule) -> Self {
        let (transform, push) = (was.transform.clone(), was.push.clone());
        Self { transform, push, max_body: was.max_body, ..self.clone() }
    }

    /// What goes along with a request besides itself is the same.
    pub(crate) fn goes_with(&self, other: &Rule) -> bool {
        self.transform == other.transform
            && self.push == other.push
            && self.max_body == other.max_body
    }

    pub(crate) fn goes_alone(&self) -> bool {
        self.transform.is_none() && self.push.is_none() && self.max_body.is_none()
    }
}

impl Policy {
    /// The policy with a person's rules for the box on top.
    #[must_use]
    pub fn with_rules<'a>(&self, rules: impl IntoIterator<Item = &'a NewRule>) -> Self {
        let mut policy = self.clone();
        for new in rules {
            let rule = new.rule();
            if new.action == Action::Deny {
                let (host, origin) = (new.host.clone(), rule.origin.clone());
                policy.deny.push(Denial { host, rules: Some(vec![rule]), reason: None, origin });
                continue;
            }
            // With what the rule that asked has, for where that one asks; without it for everywhere else.
            let asked = self.asked_rule(new).map(|(_, was)| rule.as_answered(was));
            let record = policy.record_for(&new.host);
            for rule in std::iter::once(rule).chain(asked) {
                // What is carried unseen is compared with nothing.
                if record.tls == Tls::Intercept && !record.rules.contains(&rule) {
                    record.rules.push(rule);
                }
            }
        }
        policy
    }

    /// A credential would have been put into the request that a rule was made at.
    pub fn puts_in(&self, new: &NewRule) -> bool {
        self.asked_rule(new).is_some_and(|(_, rule)| rule.transform.is_some())
    }

    /// The wildcard that speaks for the host of a rule so far. An entry of that host in a file speaks in
    /// its place, and what the wildcard holds back is not held back there any more.
    pub fn wildcard_for(&self, new: &NewRule) -> Option<&HostPattern> {
        let spoke = self.records.iter().find(|record| new.host.is_within(&record.host))?;
        Some(&spoke.host).filter(|host| **host != new.host && host.is_wildcard())
    }

    /// The rule at which a person was asked, if it still puts in what they were shown.
    fn asked_rule(&self, new: &NewRule) -> Option<(&Record, &Rule)> {
        let (asked, HostPattern::Exact(host)) = (new.asked.as_ref()?, &new.host) else {
            return None;
        };
        let request = CanonicalRequest {
            scheme: new.scheme,
            host: host.clone(),
            port: new.port,
            method: asked.method.clone(),
            target: Target::parse(&asked.target).ok()?,
            websocket: new.websocket,
        };
        let Verdict::Ask(Some(at)) = self.decide(&request) else { return None };
        self.rule(at).filter(|(_, rule)| rule.secrets().eq(asked.secrets.iter()))
    }

    /// The record of exactly this pattern, made of the one that spoke for it so far.
    fn record_for(&mut self, host: &HostPattern) -> &mut Record {
        if let Some(at) = self.records.iter().position(|record| record.host == *host) {
            return &mut self.records[at];
        }
        let spoke = self.records.iter().find(|record| host.is_within(&record.host)).cloned();
        let record = spoke.map_or_else(
            || Record {
                host: host.clone(),
                rules: Vec::new(),
                tls: Tls::Intercept,
                allow_private: false,
            },
            |record| Record { host: host.clone(), ..record },
        );
        // Exact hosts first, then wildcards from the longest suffix down.
        let rank = |host: &HostPattern| {
            (host.is_wildcard(), std::cmp::Reverse(host.name().as_str().len()))
        };
        let exact = !host.is_wildcard();
        let before = |other: &Record| {
            if exact { !other.host.is_wildcard() } else { rank(&other.host) <= rank(host) }
        };
        let at = self.records.iter().position(|other| !before(other)).unwrap_or(self.records.len());
        self.records.insert(at, record);
        &mut self.records[at]
    }
}

#[cfg(test)]
mod tests;
