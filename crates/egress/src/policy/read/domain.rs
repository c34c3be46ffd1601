//! Entries of `domains` and of `deny`.

use super::fields::{Fields, string};
use super::{DomainEntry, origin, replaces, rule, transform};
use crate::policy::problem::{At, Notes};
use crate::policy::{Action, Denial, HostPattern, Rule, THIS_COMPUTER, Tls};
use protocol::text::visible;
use std::sync::Arc;
use yaml::{Kind, Node};

const ENTRY: &[&str] = &[
    "host",
    "rules",
    "transform",
    "merge_mode",
    "tls",
    "allow_private",
    "ip_literal",
    "broad_injection",
];

/// A host's name means all of it, by TLS; anything else is said with a mapping.
pub(super) fn entry(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<DomainEntry> {
    if let Kind::Scalar(_) = &node.kind {
        let host = host(string(node, at, notes)?, false, node, at, notes)?;
        if is_this_computer(&host) {
            notes.error(
                node.place,
                at,
                "needs rules with ports: each is a service of this computer",
            );
        }
        let rules = vec![granted(Rule::whole_host(origin(node, notes)), notes)];
        let (at, place) = (at.clone(), node.place);
        let (replace, tls, allow_private) = (false, Tls::Intercept, false);
        return Some(DomainEntry { host, replace, tls, allow_private, rules, at, place });
    }
    let fields = Fields::of(node, at.clone(), ENTRY, notes)?;
    let allow_private = fields.flag("allow_private", notes);
    let addresses = fields.flag("ip_literal", notes) || allow_private;
    let host = named(&fields, addresses, notes);
    let tls = fields.word(
        "tls",
        &[("intercept", Tls::Intercept), ("passthrough", Tls::Passthrough)],
        notes,
    );
    let tls = tls.unwrap_or_default();
    let replace = replaces(&fields, notes);
    let mut rules = rules(&fields, notes);
    check_places(&fields, host.as_ref(), allow_private, &rules, notes);
    if tls == Tls::Passthrough {
        check_unseen(&fields, host.as_ref(), &rules, notes);
    }
    if let Some((node, at)) = fields.get("transform")
        && let Some(put_in) = transform::read(node, at, notes)
    {
        let broad = fields.flag("broad_injection", notes);
        transform::check(&fields, host.as_ref(), broad, &rules, notes);
        let put_in = Arc::new(put_in);
        for (rule, ..) in &mut rules {
            rule.transform = Some(put_in.clone());
        }
    }
    let rules = rules.into_iter().map(|(rule, ..)| granted(rule, notes)).collect();
    let (host, at, place) = (host?, at.clone(), node.place);
    Some(DomainEntry { host, replace, tls, allow_private, rules, at, place })
}

const DENIAL: &[&str] = &["host", "rules", "reason"];

/// Denies need no word to name an address or a whole top-level domain.
pub(super) fn denial(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<Denial> {
    if let Kind::Scalar(_) = &node.kind {
        let host = denied(string(node, at, notes)?, node, at, notes)?;
        return Some(Denial { host, rules: None, reason: None, origin: origin(node, notes) });
    }
    let fields = Fields::of(node, at.clone(), DENIAL, notes)?;
    let host = match fields.required("host", notes) {
        Some((node, at)) => {
            string(node, &at, notes).and_then(|text| denied(text, node, &at, notes))
        }
        None => None,
    };
    let reason = fields.string("reason", notes).map(visible);
    let rules = match fields.some("rules", notes) {
        Some(all) => {
            let read = all.iter().filter_map(|(node, at)| rule::denying(node, at, notes));
            Some(read.collect::<Vec<_>>())
        }
        None => None,
    };
    Some(Denial { host: host?, rules, reason, origin: origin(node, notes) })
}

fn denied(text: &str, node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<HostPattern> {
    let found = HostPattern::parse_denied(text);
    found.map_err(|why| notes.error(node.place, at, why.to_string())).ok()
}

fn named(fields: &Fields<'_>, addresses: bool, notes: &mut Notes<'_>) -> Option<HostPattern> {
    let (node, at) = fields.required("host", notes)?;
    host(string(node, &at, notes)?, addresses, node, &at, notes)
}

fn host(
    text: &str,
    addresses: bool,
    node: &Node,
    at: &At,
    notes: &mut Notes<'_>,
) -> Option<HostPattern> {
    let found = HostPattern::parse(text, addresses);
    let host = found.map_err(|why| notes.error(node.place, at, why.to_string())).ok()?;
    if host.is_shared_hosting() {
        let message = format!("anybody can have a name below {}", host.name());
        notes.warning("shared_hosting", node.place, at, message);
    }
    Some(host)
}

pub(super) type ReadRule<'a> = (Rule, &'a Node, At);

fn rules<'a>(fields: &Fields<'a>, notes: &mut Notes<'_>) -> Vec<ReadRule<'a>> {
    if fields.required("rules", notes).is_none() {
        return Vec::new();
    }
    let all = fields.some("rules", notes).unwrap_or_default();
    let read =
        |(node, at): (&'a Node, At)| rule::read(node, &at, notes).map(|rule| (rule, node, at));
    all.into_iter().filter_map(read).collect()
}

fn granted(mut rule: Rule, notes: &Notes<'_>) -> Rule {
    rule.grant = notes.layer == crate::policy::Layer::Grants;
    rule
}

fn is_this_computer(host: &HostPattern) -> bool {
    host.name().as_str() == THIS_COMPUTER
}

/// What leads into a private network is named host by host and port by port.
fn check_places(
    fields: &Fields<'_>,
    host: Option<&HostPattern>,
    allow_private: bool,
    rules: &[ReadRule<'_>],
    notes: &mut Notes<'_>,
) {
    let place = fields.node.place;
    if allow_private && host.is_some_and(HostPattern::is_wildcard) {
        notes.error(place, &fields.at.key("allow_private"), "is for one host, not for a wildcard");
    }
    let private = allow_private || host.is_some_and(is_this_computer);
    if !private {
        return;
    }
    for (rule, node, at) in rules.iter().filter(|(rule, ..)| rule.action != Action::Deny) {
        let said = super::fields::entries(node)
            .is_some_and(|all| all.iter().any(|(key, _)| key.text == "ports"));
        if !said {
            notes.error(
                node.place,
                at,
                "needs ports: they are named one by one in a private network",
            );
        }
        debug_assert!(!rule.ports.is_empty());
    }
}

/// What nobody looks into cannot be held to anything but the host and the port.
fn check_unseen(
    fields: &Fields<'_>,
    host: Option<&HostPattern>,
    rules: &[ReadRule<'_>],
    notes: &mut Notes<'_>,
) {
    if let Some((node, at)) = fields.get("transform") {
        notes.error(
            node.place,
            &at,
            "nothing can be put into what tls: passthrough carries unseen",
        );
    }
    if host.is_some_and(is_this_computer) {
        notes.error(
            fields.node.place,
            &fields.at.key("tls"),
            "this computer's services are not carried unseen",
        );
    }
    for (rule, node, at) in rules {
        let seen = rule.methods.is_some() || rule.path.is_some() || rule.query.is_some();
        let plain = rule.action == Action::Allow && rule.max_body.is_none();
        let tls = rule.schemes.iter().all(|scheme| *scheme == crate::request::Scheme::Https);
        if seen || !plain || !tls {
            let message = "tls: passthrough looks at nothing, so its rules can only name ports";
            notes.error(node.place, at, message);
        }
    }
}
