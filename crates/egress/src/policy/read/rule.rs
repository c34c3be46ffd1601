//! One rule: what a request must look like.

use super::fields::{Fields, entries, scalar, string, wrong_type};
use super::origin;
use crate::policy::problem::{At, Notes};
use crate::policy::{Action, Layer, PathKind, PathRule, RISKY_PORTS, Rule};
use crate::request::{QueryMap, Scheme, Target, decoded, is_forbidden, is_token};
use protocol::text::shortened;
use std::collections::BTreeSet;
use yaml::{Kind, Node, Scalar};

const RULE: &[&str] = &[
    "schemes",
    "methods",
    "path",
    "query",
    "ports",
    "allow_risky_port",
    "websocket",
    "action",
    "max_body",
];

pub(super) fn read(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<Rule> {
    one(node, at, false, notes)
}

/// A rule of a denial: it always denies, and what it does not say is everything.
pub(super) fn denying(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<Rule> {
    one(node, at, true, notes)
}

fn one(node: &Node, at: &At, denial: bool, notes: &mut Notes<'_>) -> Option<Rule> {
    let fields = Fields::of(node, at.clone(), RULE, notes)?;
    if fields.keys().next().is_none() {
        notes.error(node.place, at, "says nothing; a bare host name allows all of a host");
        return None;
    }
    let actions = [("allow", Action::Allow), ("ask", Action::Ask), ("deny", Action::Deny)];
    let action = match fields.get("action") {
        Some((node, at)) if denial => {
            notes.error(node.place, &at, "everything under deny is denied");
            Action::Deny
        }
        Some(_) => fields.word("action", &actions, notes).unwrap_or(Action::Deny),
        None if denial => Action::Deny,
        None => Action::Allow,
    };
    let before = notes.errors.len();
    let schemes = schemes(&fields, action, notes);
    let methods = methods(&fields, notes);
    let path = fields.get("path").and_then(|(node, at)| path(node, at, notes));
    let query = fields.get("query").map(|(node, at)| query(node, at, notes));
    let ports = ports(&fields, &schemes, action, notes);
    let whole = methods.is_none() && path.is_none() && query.is_none();
    let websocket = fields.bool("websocket", notes).unwrap_or(whole && !fields.has("methods"));
    let max_body = fields.get("max_body").and_then(|(node, at)| size(node, &at, notes));
    if notes.errors.len() > before {
        // Parts that could not be read are missing, so it would say more than it should.
        return None;
    }
    let query = match query {
        Some(Err(Impossible)) if action == Action::Deny => {
            let message = "is no UTF-8 and would never deny anything";
            notes.error(node.place, &at.key("query"), message);
            return None;
        }
        Some(Err(Impossible)) => {
            let message = "is no UTF-8, which no request is compared with; the rule allows nothing";
            notes.warning("never_matches", node.place, &at.key("query"), message);
            return None;
        }
        Some(Ok(query)) => Some(query),
        None => None,
    };
    let grant = notes.layer == Layer::Grants;
    let origin = origin(node, notes);
    let (transform, push) = (None, None);
    #[rustfmt::skip]
    let rule = Rule {
        schemes, methods, path, query, ports, websocket, action, max_body, transform, push, origin, grant,
    };
    Some(rule)
}

/// TLS alone without a word; a deny means both.
fn schemes(fields: &Fields<'_>, action: Action, notes: &mut Notes<'_>) -> BTreeSet<Scheme> {
    let Some(all) = fields.strings("schemes", notes) else {
        return match action {
            Action::Deny => BTreeSet::from([Scheme::Http, Scheme::Https]),
            _ => BTreeSet::from([Scheme::Https]),
        };
    };
    let mut schemes = BTreeSet::new();
    for (text, node, at) in all {
        match text.to_ascii_lowercase().as_str() {
            "http" => drop(schemes.insert(Scheme::Http)),
            "https" => drop(schemes.insert(Scheme::Https)),
            _ => notes.error(node.place, &at, "must be http or https"),
        }
    }
    schemes
}

fn methods(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<BTreeSet<String>> {
    let mut methods = BTreeSet::new();
    for (text, node, at) in fields.strings("methods", notes)? {
        let method = text.to_ascii_uppercase();
        if method.is_empty() || !method.bytes().all(is_token) {
            notes.error(node.place, &at, "is not a method: no blanks, such as GET");
        } else if is_forbidden(&method) {
            notes.error(node.place, &at, format!("{method} is never let through"));
        } else {
            methods.insert(method);
        }
    }
    Some(methods)
}

fn path(node: &Node, at: At, notes: &mut Notes<'_>) -> Option<PathRule> {
    let fields = Fields::of(node, at, &["exact", "prefix", "case"], notes)?;
    let kinds = [("exact", PathKind::Exact), ("prefix", PathKind::Prefix)];
    let cases = [("sensitive", false), ("insensitive", true)];
    let ignore_case = fields.word("case", &cases, notes).unwrap_or(false);
    let mut given = kinds.into_iter().filter(|(key, _)| fields.has(key));
    let (Some((key, kind)), None) = (given.next(), given.next()) else {
        notes.error(node.place, &fields.at, "must have one of exact and prefix");
        return None;
    };
    let raw = fields.string(key, notes)?;
    let (node, at) = fields.get(key)?;
    match path_text(raw) {
        Ok(text) => Some(PathRule { kind, text, ignore_case }),
        Err(why) => {
            notes.error(node.place, &at, why);
            None
        }
    }
}

/// A path as requests have it. What would be refused in a request would never fit.
pub(crate) fn path_text(raw: &str) -> Result<String, &'static str> {
    if !raw.starts_with('/') {
        return Err("must start with /");
    }
    if raw.contains(['?', '#']) {
        return Err("is a path alone; parameters are said with query");
    }
    match Target::parse(raw) {
        Ok(target) if target.is_dotted() => {
            Err("has a . or .. segment, which is never let through")
        }
        Ok(target) => Ok(target.path().to_owned()),
        Err(protocol::egress::Reason::BadRequestTarget) => Err("has a % that is no escape"),
        Err(_) => Err(
            "starts with //, or has a backslash, a blank or a letter that must be escaped (é is %C3%A9)",
        ),
    }
}

/// A query that cannot be compared with.
struct Impossible;

/// With mistakes noted, what is read does not count.
fn query(node: &Node, at: At, notes: &mut Notes<'_>) -> Result<QueryMap, Impossible> {
    let mut map = QueryMap::new();
    let Some(fields) = Fields::of(node, at, &["exact"], notes) else { return Ok(map) };
    let Some((exact, at)) = fields.required("exact", notes) else { return Ok(map) };
    let Some(pairs) = entries(exact) else {
        wrong_type(exact, &at, "a mapping", notes);
        return Ok(map);
    };
    for (key, node) in pairs {
        let at = at.key(&key.text);
        let texts: Vec<&str> = match &node.kind {
            Kind::List(all) if all.is_empty() => {
                notes.error(
                    node.place,
                    &at,
                    "must not be empty; \"\" is a parameter without a value",
                );
                continue;
            }
            Kind::List(all) => {
                let each = all.iter().enumerate();
                each.filter_map(|(index, node)| string(node, &at.item(index), notes)).collect()
            }
            _ => string(node, &at, notes).into_iter().collect(),
        };
        let values = map.entry(decoded(&key.text).ok_or(Impossible)?).or_default();
        for text in texts {
            values.push(decoded(text).ok_or(Impossible)?);
        }
        values.sort();
    }
    Ok(map)
}

/// The usual ones of its schemes without a word; a deny means all.
fn ports(
    fields: &Fields<'_>,
    schemes: &BTreeSet<Scheme>,
    action: Action,
    notes: &mut Notes<'_>,
) -> BTreeSet<u16> {
    let risky = fields.flag("allow_risky_port", notes);
    let Some(all) = fields.some("ports", notes) else {
        return match action {
            Action::Deny => BTreeSet::new(),
            _ => schemes.iter().map(|scheme| scheme.port()).collect(),
        };
    };
    let mut ports = BTreeSet::new();
    for (node, at) in all {
        let number = scalar(node).and_then(Scalar::int).and_then(|n| u16::try_from(n).ok());
        match number.filter(|n| *n > 0) {
            Some(port) if RISKY_PORTS.contains(&port) && !risky && action != Action::Deny => {
                let message =
                    format!("{port} is not for the web; say allow_risky_port: true if it is");
                notes.error(node.place, &at, message);
            }
            Some(port) => drop(ports.insert(port)),
            None => notes.error(node.place, &at, "must be a port from 1 to 65535"),
        }
    }
    ports
}

const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// `10MiB`, or a number of bytes.
fn size(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<u64> {
    let text = scalar(node).map(|scalar| scalar.text.as_str()).unwrap_or_default();
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    let digits = number.trim_end();
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let size = digits.parse::<u64>().ok().filter(|_| plain).and_then(|n| n.checked_mul(bytes));
    if size.is_none() {
        let message = format!("must be a size such as 10MiB, not {}", shortened(text, 40));
        notes.error(node.place, at, message);
    }
    size
}
