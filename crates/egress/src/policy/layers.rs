//! Layers of text, merged into one policy.
//!
//! The order is that of [`Layer`]; within a layer services come before domains, each as they are written.
//! Rules keep in mind who brought them, so that a service can be told anew without touching what a person
//! wrote about the same host. Rendering is pure: the same inputs give the same bytes.

use super::catalog::{self, Expansion, Gives};
use super::problem::{At, Notes, Problems};
use super::read::{self, Authored, DomainEntry, ServiceEntry};
use super::{
    Action, Denial, HostPattern, Layer, Origin, Policy, Record, Rule, Shim, Tls, Unmatched, lint,
};
use crate::host_name::HostName;
use protocol::egress::{EgressMode, PolicyProblem};
use protocol::sessions::Agent;
use std::cmp::Reverse;
use yaml::Place;

/// After services were written out, in all layers.
const MOST_RULES: usize = 2000;

/// All that a box's policy is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    /// What comes along without a word, and what becomes of the rest. `Open` is a policy by itself, without
    /// a preset, as `agentbox egress policy lint` looks at it.
    pub mode: EgressMode,
    /// Agents of the box.
    pub agents: Vec<Agent>,
    /// In any order; those of one layer keep theirs.
    pub layers: Vec<LayerText>,
}

/// One file, or what is kept like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerText {
    pub layer: Layer,
    /// As messages name it: `egress.yaml`.
    pub file: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub policy: Policy,
    /// What is valid and probably not meant.
    pub warnings: Vec<PolicyProblem>,
}

/// The policy of all layers, or every mistake in them.
pub fn render(inputs: &Inputs) -> Result<Rendered, Problems> {
    let mut layers: Vec<&LayerText> = inputs.layers.iter().collect();
    let baseline = baseline(inputs);
    layers.push(&baseline);
    layers.sort_by_key(|text| text.layer);
    let mut state = State::default();
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for text in layers {
        let mut notes = Notes::new(text.layer, &text.file);
        let authored = read::layer(&text.text, &mut notes);
        state.take(authored, &mut notes);
        errors.append(&mut notes.errors);
        warnings.append(&mut notes.warnings);
    }
    if !errors.is_empty() {
        return Err(Problems(errors));
    }
    Ok(state.finish(inputs.mode, warnings))
}

impl Policy {
    /// One text by itself, without what a mode brings along.
    pub fn from_yaml(text: &str) -> Result<Self, Problems> {
        let (layer, file) = (Layer::Global, "egress.yaml".to_owned());
        let layers = vec![LayerText { layer, file, text: text.to_owned() }];
        render(&Inputs { layers, ..Inputs::default() }).map(|rendered| rendered.policy)
    }
}

/// What a mode brings along, written like a file.
fn baseline(inputs: &Inputs) -> LayerText {
    let mut names: Vec<&str> = Vec::new();
    if inputs.mode.is_controlled() {
        names.extend(inputs.agents.iter().map(|agent| agent.as_str()));
    }
    if inputs.mode == EgressMode::Balanced {
        names.extend(Agent::ALL.iter().map(|agent| agent.as_str()));
        names.extend(catalog::registries());
    }
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    let list: String = names.iter().map(|name| format!("- {name}\n")).collect();
    LayerText { layer: Layer::Baseline, file: String::new(), text: format!("services:\n{list}") }
}

/// Hosts that give keys to whoever asks, wherever a machine runs, and this computer's own name: its services
/// are reached by a name that says so.
const FLOOR: &[&str] = &[
    "metadata",
    "instance-data",
    "*.metadata.google.internal",
    "metadata.goog",
    "*.instance-data.ec2.internal",
    "metadata.azure.internal",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "*.localhost",
];

fn floor() -> impl Iterator<Item = Denial> {
    FLOOR.iter().filter_map(|host| HostPattern::parse_denied(host).ok()).map(|host| Denial {
        host,
        rules: None,
        reason: Some("keys of machines and this computer's own services".to_owned()),
        origin: Origin { layer: Layer::Floor, file: String::new(), line: 0 },
    })
}

/// Who brought a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Service(&'static str),
    Author,
}

#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub rule: Rule,
    pub owner: Owner,
    /// Where it was said, for warnings.
    pub at: At,
    pub place: Place,
}

/// A host that something was said about.
#[derive(Debug)]
pub(super) struct Spoken {
    pub host: HostPattern,
    pub rules: Vec<Owned>,
    pub allow_private: bool,
    /// Each entry that spoke of it: carried unseen or not, and where.
    pub tls: Vec<(Tls, Origin, At, Place)>,
}

/// A repository-scoped entry's claim on a host.
#[derive(Debug)]
pub(super) struct Claim {
    pub host: HostPattern,
    pub service: &'static str,
}

#[derive(Debug, Default)]
struct State {
    hosts: Vec<Spoken>,
    shims: Vec<Shim>,
    deny: Vec<Denial>,
    claims: Vec<Claim>,
    unmatched: Option<Unmatched>,
    rules: usize,
}

impl State {
    fn take(&mut self, authored: Authored, notes: &mut Notes<'_>) {
        for entry in authored.services {
            self.service(&entry, notes);
        }
        for entry in authored.domains {
            self.domain(entry, notes);
        }
        let more =
            authored.deny.iter().flat_map(|denial| &denial.rules).map(Vec::len).sum::<usize>();
        self.count(
            more + authored.deny.len(),
            Place { line: 1, column: 1 },
            &At::default().key("deny"),
            notes,
        );
        self.deny.extend(authored.deny);
        self.unmatched = authored.unmatched.or(self.unmatched);
    }

    fn service(&mut self, entry: &ServiceEntry, notes: &mut Notes<'_>) {
        let name = entry.service.name;
        if entry.replace {
            let parts = entry.service.parts();
            let same =
                |service: &str| service == name || parts.iter().any(|part| part.name == service);
            for host in &mut self.hosts {
                host.rules.retain(
                    |owned| !matches!(owned.owner, Owner::Service(service) if same(service)),
                );
            }
            self.hosts.retain(|host| !host.rules.is_empty());
            self.shims.retain(|shim| !same(&shim.service));
            self.claims.retain(|claim| !same(claim.service));
        }
        let Expansion { records, shims, governs, allow_private } = expand(entry);
        self.count(
            records.iter().map(|(_, rules)| rules.len()).sum(),
            entry.place,
            &entry.at,
            notes,
        );
        for (host, rules) in records {
            let owned = rules.into_iter().map(|mut rule| {
                rule.grant = notes.layer == Layer::Grants;
                let (at, place) = (entry.at.clone(), entry.place);
                Owned { rule, owner: Owner::Service(name), at, place }
            });
            let said = (Tls::Intercept, entry.origin.clone(), entry.at.clone(), entry.place);
            self.add(host, owned.collect(), allow_private, said);
        }
        for shim in shims {
            if !self.shims.contains(&shim) {
                self.shims.push(shim);
            }
        }
        self.claims.extend(governs.into_iter().map(|host| Claim { host, service: name }));
    }

    fn domain(&mut self, entry: DomainEntry, notes: &mut Notes<'_>) {
        self.count(entry.rules.len(), entry.place, &entry.at, notes);
        if entry.replace {
            self.hosts.retain(|host| host.host != entry.host);
        }
        let owned = entry.rules.into_iter().map(|rule| Owned {
            rule,
            owner: Owner::Author,
            at: entry.at.clone(),
            place: entry.place,
        });
        let owned = owned.collect();
        let origin = Origin {
            layer: notes.layer,
            file: notes.file.to_owned(),
            line: u32::try_from(entry.place.line).unwrap_or(u32::MAX),
        };
        let said = (entry.tls, origin, entry.at.clone(), entry.place);
        self.add(entry.host, owned, entry.allow_private, said);
    }

    fn add(
        &mut self,
        host: HostPattern,
        rules: Vec<Owned>,
        allow_private: bool,
        said: (Tls, Origin, At, Place),
    ) {
        let at = self.hosts.iter().position(|known| known.host == host).unwrap_or_else(|| {
            let tls = Vec::new();
            self.hosts.push(Spoken { host, rules: Vec::new(), allow_private: false, tls });
            self.hosts.len() - 1
        });
        let Some(known) = self.hosts.get_mut(at) else { return };
        known.allow_private |= allow_private;
        known.tls.push(said);
        for owned in rules {
            let same =
                |one: &Owned| one.owner == owned.owner && one.rule.says_the_same(&owned.rule);
            if !known.rules.iter().any(same) {
                known.rules.push(owned);
            }
        }
    }

    fn count(&mut self, more: usize, place: Place, at: &At, notes: &mut Notes<'_>) {
        let before = self.rules;
        self.rules += more;
        if before <= MOST_RULES && self.rules > MOST_RULES {
            notes.error(place, at, format!("makes more than {MOST_RULES} rules in all"));
        }
    }

    fn finish(mut self, mode: EgressMode, mut warnings: Vec<PolicyProblem>) -> Rendered {
        self.exclude();
        warnings.extend(lint::layers(&self.hosts, &self.claims));
        self.hosts.sort_by_key(|host| match &host.host {
            HostPattern::Exact(_) => (0, Reverse(0)),
            HostPattern::Under(name) => (1, Reverse(name.as_str().len())),
        });
        let records = self.hosts.into_iter().map(|host| record(host, &mut warnings)).collect();
        let authored = self.unmatched;
        let unmatched = match mode {
            EgressMode::Open => authored.unwrap_or_default(),
            EgressMode::Balanced => authored.unwrap_or(Unmatched::Ask),
            EgressMode::Observe | EgressMode::Locked => Unmatched::Deny,
        };
        let observe = mode == EgressMode::Observe;
        let deny = floor().chain(self.deny).collect();
        let policy = Policy { records, deny, unmatched, observe, shims: self.shims };
        warnings.extend(lint::policy(&policy));
        Rendered { policy, warnings }
    }

    /// Where repositories are named, no service allows their host as a whole.
    fn exclude(&mut self) {
        for host in &mut self.hosts {
            if self.claims.iter().any(|claim| claim.host == host.host) {
                host.rules
                    .retain(|owned| owned.owner == Owner::Author || !owned.rule.is_catch_all());
            }
        }
        self.hosts.retain(|host| !host.rules.is_empty());
    }
}

fn expand(entry: &ServiceEntry) -> Expansion {
    match (&entry.service.gives, &entry.scoped) {
        (Gives::Git(provider), Some(scope)) => {
            provider.scoped(entry.service.name, scope, &entry.origin)
        }
        (Gives::Git(provider), None) => {
            let host: Option<&HostName> = entry.host.as_ref();
            provider.whole(host, entry.readonly, &entry.origin)
        }
        _ => entry.service.expand(entry.readonly, entry.auth.as_ref(), &entry.origin),
    }
}

fn record(host: Spoken, warnings: &mut Vec<PolicyProblem>) -> Record {
    let unseen = |tls: Tls| tls == Tls::Passthrough;
    let all = host.tls.iter().all(|(tls, ..)| unseen(*tls));
    if !all && let Some((_, origin, at, place)) = host.tls.iter().find(|(tls, ..)| unseen(*tls)) {
        let mut notes = Notes::new(origin.layer, &origin.file);
        let other = host.tls.iter().find(|(tls, ..)| !unseen(*tls));
        let other = other.map(|(_, origin, ..)| origin.to_string()).unwrap_or_default();
        let message = format!(
            "{} is looked into all the same: {other} says nothing of passthrough",
            host.host
        );
        notes.warning("passthrough_undone", *place, at, message);
        warnings.append(&mut notes.warnings);
    }
    let mut rules: Vec<Rule> = Vec::new();
    for owned in host.rules {
        if !rules.iter().any(|rule| rule.says_the_same(&owned.rule)) {
            rules.push(owned.rule);
        }
    }
    let tls = if all { Tls::Passthrough } else { Tls::Intercept };
    Record { host: host.host, rules, tls, allow_private: host.allow_private }
}

impl Rule {
    /// All but where it comes from.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let origin = self.origin.clone();
        *self == Self { origin, ..other.clone() }
    }

    /// It lets everything of its host through that some method and port allow.
    pub(super) fn is_catch_all(&self) -> bool {
        self.path.is_none() && self.query.is_none() && self.action != Action::Deny
    }
}
