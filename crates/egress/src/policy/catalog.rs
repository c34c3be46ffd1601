//! Services by name, and the hosts and rules they stand for.
//!
//! Data, and the one way to make rules of it. An agent's service has parts, so that a key is put into
//! requests to the host that answers prompts and never into a login or a report of usage.

mod agents;
mod registries;

use super::git_services::Provider;
use super::{
    Action, HeaderRule, HostPattern, How, OnExisting, Origin, PathKind, PathRule, Rule, Shim,
    ShimKind, Transform,
};
use crate::host_name::HostName;
use crate::request::Scheme;
use protocol::SecretId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something a policy can name instead of hosts.
#[derive(Debug)]
pub struct Service {
    pub name: &'static str,
    /// For whoever chooses.
    pub about: &'static str,
    pub(super) gives: Gives,
}

#[derive(Debug)]
pub(super) enum Gives {
    Hosts {
        hosts: &'static [(&'static str, Share)],
        credentials: &'static [Credential],
    },
    /// All of these.
    Parts(&'static [&'static str]),
    Git(Provider),
}

/// How much of a host.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share {
    Whole,
    /// `GET` and `HEAD`.
    Read,
    /// The same, and in clear text too: what is fetched is signed.
    ReadPlain,
    /// `GET` and `HEAD` below a path.
    ReadBelow(&'static str),
    /// `GET` and `HEAD`; everything else publishes something, so it asks.
    ReadElseAsk,
    /// For publishing only.
    Ask,
}

/// A credential that a service knows where to put.
#[derive(Debug)]
pub(super) struct Credential {
    /// As a policy says it.
    pub word: &'static str,
    pub host: &'static str,
    /// Paths it is put in.
    pub below: &'static [&'static str],
    pub header: &'static str,
    pub how: Put,
    /// The variable from which programs take it, if they do.
    pub env: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Put {
    Bearer,
    Raw,
}

/// A credential for a service, as a policy asks for it.
#[derive(Debug, Clone)]
pub(super) struct Auth {
    pub secret: SecretId,
    pub credential: &'static Credential,
    /// The box gets a made-up one.
    pub shim: bool,
}

/// What a service's name comes to.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    pub records: Vec<(HostPattern, Vec<Rule>)>,
    pub shims: Vec<Shim>,
    /// Hosts of which only these parts are meant, whatever other services say.
    pub governs: Vec<HostPattern>,
    pub allow_private: bool,
}

/// Every service there is.
pub fn services() -> impl Iterator<Item = &'static Service> {
    agents::SERVICES.iter().chain(registries::SERVICES).chain(super::git_services::SERVICES)
}

pub fn service(name: &str) -> Option<&'static Service> {
    services().find(|service| service.name == name)
}

/// Services of package registries.
pub fn registry_names() -> impl Iterator<Item = &'static str> {
    registries()
}

/// What may be read from in a balanced box without a word.
pub(super) fn registries() -> impl Iterator<Item = &'static str> {
    registries::SERVICES.iter().map(|service| service.name)
}

impl Service {
    /// This one, or the parts it has.
    pub(super) fn parts(&'static self) -> Vec<&'static Service> {
        match self.gives {
            Gives::Parts(names) => names.iter().filter_map(|name| service(name)).collect(),
            _ => vec![self],
        }
    }

    pub(super) fn credentials(&'static self) -> Vec<&'static Credential> {
        let of = |part: &'static Service| match part.gives {
            Gives::Hosts { credentials, .. } => credentials.iter().collect(),
            _ => Vec::new(),
        };
        self.parts().into_iter().flat_map(of).collect()
    }

    /// Hosts as they stand in the catalog; none for a service that is told its host.
    pub fn hosts(&'static self) -> Vec<&'static str> {
        let of = |part: &'static Service| match &part.gives {
            Gives::Hosts { hosts, .. } => hosts.iter().map(|(host, _)| *host).collect(),
            Gives::Git(provider) => provider.hosts.to_vec(),
            Gives::Parts(_) => Vec::new(),
        };
        self.parts().into_iter().flat_map(of).collect()
    }

    pub(super) fn expand(
        &'static self,
        readonly: bool,
        auth: Option<&Auth>,
        origin: &Origin,
    ) -> Expansion {
        let mut all = Expansion::default();
        for part in self.parts() {
            let Gives::Hosts { hosts, credentials } = &part.gives else { continue };
            let auth = auth
                .filter(|auth| credentials.iter().any(|one| std::ptr::eq(one, auth.credential)));
            for (host, share) in *hosts {
                let Some(pattern) = catalog_host(host) else { continue };
                let mut rules = share.rules(readonly, origin);
                if let Some(auth) = auth.filter(|auth| auth.credential.host == *host) {
                    rules.extend(auth.rules(readonly, origin));
                    all.shims.extend(auth.hint(part.name));
                }
                all.records.push((pattern, rules));
            }
        }
        all
    }
}

impl Share {
    fn rules(self, readonly: bool, origin: &Origin) -> Vec<Rule> {
        let whole = Rule::whole_host(origin.clone());
        let read = Rule { websocket: false, ..narrowed(whole.clone()) };
        let asked = Rule { action: Action::Ask, websocket: false, ..whole.clone() };
        match self {
            Self::Whole | Self::ReadElseAsk if readonly => vec![read],
            Self::Whole => vec![whole],
            Self::Read => vec![read],
            Self::ReadPlain => {
                let schemes = BTreeSet::from([Scheme::Http, Scheme::Https]);
                let ports = schemes.iter().map(|scheme| scheme.port()).collect();
                vec![Rule { schemes, ports, ..read }]
            }
            Self::ReadBelow(path) => vec![Rule { path: Some(prefix(path)), ..read }],
            Self::ReadElseAsk => vec![read, asked],
            Self::Ask if readonly => Vec::new(),
            Self::Ask => vec![asked],
        }
    }
}

impl Auth {
    fn rules(&self, readonly: bool, origin: &Origin) -> Vec<Rule> {
        let how = match self.credential.how {
            Put::Bearer => How::Bearer,
            Put::Raw => How::Raw,
        };
        let header = HeaderRule {
            name: self.credential.header.to_owned(),
            secret: self.secret.clone(),
            how,
        };
        let put_in =
            Arc::new(Transform { headers: vec![header], on_existing: on_existing(self.shim) });
        let rule = |path: &&str| {
            let whole = Rule::whole_host(origin.clone());
            let rule = if readonly { narrowed(whole) } else { whole };
            Rule {
                path: Some(prefix(path)),
                websocket: false,
                transform: Some(put_in.clone()),
                ..rule
            }
        };
        self.credential.below.iter().map(rule).collect()
    }

    fn hint(&self, service: &str) -> Option<Shim> {
        let name = self.credential.env.filter(|_| self.shim)?.to_owned();
        let host = HostName::parse(self.credential.host).ok()?;
        let (service, secrets) = (service.to_owned(), vec![self.secret.clone()]);
        Some(Shim { service, kind: ShimKind::Env { name }, host, secrets })
    }
}

/// With a made-up credential in the box, exactly that one is replaced.
pub(super) fn on_existing(shim: bool) -> OnExisting {
    if shim { OnExisting::ReplacePlaceholder } else { OnExisting::Fail }
}

/// Only what asks for something.
pub(super) fn narrowed(rule: Rule) -> Rule {
    Rule { methods: Some(["GET", "HEAD"].map(str::to_owned).into()), websocket: false, ..rule }
}

pub(super) fn prefix(path: &str) -> PathRule {
    PathRule { kind: PathKind::Prefix, text: path.to_owned(), ignore_case: false }
}

/// A host of the catalog, which may be wider than a person's: some of these are below suffixes that others
/// share.
pub(super) fn catalog_host(text: &str) -> Option<HostPattern> {
    match text.strip_prefix("*.") {
        Some(name) => HostName::parse(name).ok().map(HostPattern::Under),
        None => HostName::parse(text).ok().map(HostPattern::Exact),
    }
}
