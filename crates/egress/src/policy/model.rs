//! A rendered policy: what is left when every layer was read, merged and checked. Values here are
//! canonical; nothing needs to be checked again.

use crate::host_name::HostName;
use crate::request::Scheme;
use protocol::SecretId;
use protocol::egress::RuleSeen;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one box may reach. Compared with requests by `decide`; shared, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Exact hosts first, then wildcards from the longest suffix down.
    pub records: Vec<Record>,
    /// Before everything else, of all layers.
    pub deny: Vec<Denial>,
    pub unmatched: Unmatched,
    /// Everything passes that is not refused for being malformed, private or misused; see
    /// [`protocol::egress::EgressMode::Observe`].
    pub observe: bool,
    pub shims: Vec<Shim>,
}

/// What becomes of a request that no rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unmatched {
    #[default]
    Deny,
    Ask,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub host: HostPattern,
    pub rules: Vec<Rule>,
    pub tls: Tls,
    /// Private addresses may be dialled, but for those of machines' metadata and the host's own.
    pub allow_private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    Exact(HostName),
    /// `*.example.com`: the name itself and everything below it.
    Under(HostName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    #[default]
    Intercept,
    /// Carried unseen, for programs that trust one certificate only.
    Passthrough,
}

/// One way in which requests may look. All that is set must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub schemes: BTreeSet<Scheme>,
    /// Upper-case; none is any.
    pub methods: Option<BTreeSet<String>>,
    pub path: Option<PathRule>,
    /// The whole query: each name with all its values, sorted.
    pub query: Option<BTreeMap<String, Vec<String>>>,
    /// Of a rule that denies, none is any.
    pub ports: BTreeSet<u16>,
    pub websocket: bool,
    pub action: Action,
    pub max_body: Option<u64>,
    pub transform: Option<Arc<Transform>>,
    /// What a push may change, for the one request of git that pushes.
    pub push: Option<Arc<PushRule>>,
    pub origin: Origin,
    /// Made by a person's answer.
    pub grant: bool,
}

impl Rule {
    /// Everything of a host by TLS, as a bare name in a policy means it.
    pub fn whole_host(origin: Origin) -> Self {
        Self {
            schemes: BTreeSet::from([Scheme::Https]),
            methods: None,
            path: None,
            query: None,
            ports: BTreeSet::from([Scheme::Https.port()]),
            websocket: true,
            action: Action::Allow,
            max_body: None,
            transform: None,
            push: None,
            origin,
            grant: false,
        }
    }

    /// Which credentials it puts in.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretId> {
        self.transform.iter().flat_map(|transform| transform.headers.iter().map(|h| &h.secret))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub enum Action {
    #[default]
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathRule {
    pub kind: PathKind,
    /// Canonical.
    pub text: String,
    pub ignore_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathKind {
    Exact,
    Prefix,
    /// With `*` for any letters, and everything below; only in rules of the catalog that deny.
    Pattern,
}

/// Credentials to put into a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transform {
    /// Header names are lower-case, each once.
    pub headers: Vec<HeaderRule>,
    pub on_existing: OnExisting,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeaderRule {
    pub name: String,
    pub secret: SecretId,
    pub how: How,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum How {
    Bearer,
    Basic {
        username: String,
    },
    Raw,
    /// The value between two texts.
    Format {
        before: String,
        after: String,
    },
}

impl How {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Basic { .. } => "basic",
            Self::Raw => "raw",
            Self::Format { .. } => "format",
        }
    }
}

/// What to do with a header the box has sent itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnExisting {
    #[default]
    Fail,
    Replace,
    /// Only the box's own placeholder is replaced; anything else fails.
    ReplacePlaceholder,
}

/// Which refs a push may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PushRule {
    /// Globs of branch names (`agentbox/*`) or whole refs (`refs/tags/*`); none is any.
    pub refs: Option<Vec<String>>,
    pub allow_delete: bool,
    pub allow_create: bool,
}

/// A host, or parts of it, that no layer can allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub host: HostPattern,
    /// None is everything.
    pub rules: Option<Vec<Rule>>,
    pub reason: Option<String>,
    pub origin: Origin,
}

/// A made-up credential for a program that will not start without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shim {
    pub service: String,
    pub kind: ShimKind,
    pub host: HostName,
    pub secrets: Vec<SecretId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ShimKind {
    GitAskpass {
        username: String,
    },
    /// A variable of the catalog's choosing.
    Env {
        name: String,
    },
}

/// Which line made a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub layer: Layer,
    /// `egress.yaml`; empty for what is compiled in.
    pub file: String,
    pub line: u32,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => write!(f, "{}", self.layer.word()),
            (file, 0) => write!(f, "{}:{file}", self.layer.word()),
            (file, line) => write!(f, "{}:{file}:{line}", self.layer.word()),
        }
    }
}

/// Where rules come from; later ones go before earlier ones where a choice is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// What the preset and the box's agent bring along; compiled in.
    Baseline,
    Global,
    GlobalAgent,
    Project,
    ProjectAgent,
    /// What a repository asks for, as a person agreed to it.
    Repository,
    Editor,
    Box,
    Grants,
    /// Denies that are compiled in.
    Floor,
}

impl Layer {
    pub fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Global => "global",
            Self::GlobalAgent => "global-agent",
            Self::Project => "project",
            Self::ProjectAgent => "project-agent",
            Self::Repository => "repository",
            Self::Editor => "editor",
            Self::Box => "box",
            Self::Grants => "grants",
            Self::Floor => "floor",
        }
    }
}

/// What is to become of a request. Indexes point into the policy that said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow(RuleRef),
    /// A rule says so, or nothing speaks of the request and the policy leaves that to the person.
    Ask(Option<RuleRef>),
    Deny(protocol::egress::Reason, Option<RuleRef>),
    /// Only observed: it passes, and this is what would have become of it.
    Observe(protocol::egress::Reason),
}

/// A rule of a policy, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleRef {
    pub record: usize,
    pub rule: usize,
}

impl Policy {
    pub fn rule(&self, at: RuleRef) -> Option<(&Record, &Rule)> {
        let record = self.records.get(at.record)?;
        Some((record, record.rules.get(at.rule)?))
    }

    /// As logs show it.
    pub fn seen(&self, at: RuleRef) -> Option<RuleSeen> {
        let (record, rule) = self.rule(at)?;
        Some(RuleSeen {
            host: record.host.to_string(),
            index: u32::try_from(at.rule).unwrap_or(u32::MAX),
            origin: rule.origin.to_string(),
        })
    }
}

impl HostPattern {
    pub fn covers(&self, host: &HostName) -> bool {
        match self {
            Self::Exact(name) => name == host,
            Self::Under(name) => host.is_at_or_below(name),
        }
    }
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(name) => write!(f, "{name}"),
            Self::Under(name) => write!(f, "*.{name}"),
        }
    }
}
