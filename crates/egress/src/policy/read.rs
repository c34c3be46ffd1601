//! One layer's text, read with everything that is wrong in it.
//!
//! Keys are closed, anchors and aliases are refused, and every mistake has a layer, a path and a place: a
//! policy that means something else than its author thinks is worse than none.

mod domain;
mod fields;
mod rule;
mod service;
mod transform;

use super::problem::{At, Notes};
use super::{Denial, HostPattern, Origin, Rule, Tls, Unmatched};
use fields::Fields;
pub(super) use service::ServiceEntry;
use yaml::{Aliases, Node, Place};

/// What one layer says.
#[derive(Debug, Default)]
pub(super) struct Authored {
    pub unmatched: Option<Unmatched>,
    pub services: Vec<ServiceEntry>,
    pub domains: Vec<DomainEntry>,
    pub deny: Vec<Denial>,
}

/// A host with its rules, each with its own copy of the entry's credentials.
#[derive(Debug)]
pub(super) struct DomainEntry {
    pub host: HostPattern,
    pub replace: bool,
    pub tls: Tls,
    pub allow_private: bool,
    pub rules: Vec<Rule>,
    pub at: At,
    pub place: Place,
}

const TOP: &[&str] = &["version", "services", "domains", "deny", "defaults"];
const VERSION: i64 = 1;

pub(super) fn layer(text: &str, notes: &mut Notes<'_>) -> Authored {
    let parsed = yaml::parse(text, Aliases::Refused);
    for fault in parsed.faults {
        notes.error(fault.place, &At::default(), fault.message);
    }
    match parsed.root {
        Some(root) if !root.is_null() => top(&root, notes),
        _ => Authored::default(),
    }
}

fn top(root: &Node, notes: &mut Notes<'_>) -> Authored {
    let Some(fields) = Fields::of(root, At::default(), TOP, notes) else {
        return Authored::default();
    };
    if let Some((node, at)) = fields.get("version")
        && fields::scalar(node).and_then(yaml::Scalar::int) != Some(VERSION)
    {
        notes.error(
            node.place,
            &at,
            format!("must be {VERSION}: a newer AgentBox wrote this file"),
        );
    }
    let services = fields.list("services", notes);
    let domains = fields.list("domains", notes);
    let deny = fields.list("deny", notes);
    Authored {
        unmatched: defaults(&fields, notes),
        services: services
            .iter()
            .filter_map(|(node, at)| service::entry(node, at, notes))
            .collect(),
        domains: domains.iter().filter_map(|(node, at)| domain::entry(node, at, notes)).collect(),
        deny: deny.iter().filter_map(|(node, at)| domain::denial(node, at, notes)).collect(),
    }
}

fn defaults(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<Unmatched> {
    let (node, at) = fields.get("defaults")?;
    let defaults = Fields::of(node, at, &["unmatched"], notes)?;
    defaults.word("unmatched", &[("deny", Unmatched::Deny), ("ask", Unmatched::Ask)], notes)
}

fn origin(node: &Node, notes: &Notes<'_>) -> Origin {
    let line = u32::try_from(node.place.line).unwrap_or(u32::MAX);
    Origin { layer: notes.layer, file: notes.file.to_owned(), line }
}

/// The only way in which a later entry does not add to earlier ones.
fn replaces(fields: &Fields<'_>, notes: &mut Notes<'_>) -> bool {
    fields.word("merge_mode", &[("replace", true)], notes).unwrap_or(false)
}
