//! The keys of a mapping, each looked at by name and by type.

use super::{MEANINGLESS, UNKNOWN};
use crate::problem::Problems;
use crate::similar::similar;
use crate::yaml::{Key, Kind, Node, Scalar};
use protocol::text::shortened;

/// A place in the file by its path, such as `services.web.needs[1]`.
#[derive(Debug, Clone)]
pub(super) struct At(String);

impl At {
    pub fn root() -> Self {
        Self(String::new())
    }

    pub fn key(&self, key: &str) -> Self {
        let key = shortened(key, 60);
        Self(if self.0.is_empty() { key } else { format!("{}.{key}", self.0) })
    }

    pub fn item(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0))
    }

    pub fn path(&self) -> &str {
        &self.0
    }
}

pub(super) fn entries(node: &Node) -> Option<&[(Key, Node)]> {
    match &node.kind {
        Kind::Map(pairs) => Some(pairs),
        _ => None,
    }
}

pub(super) fn list(node: &Node) -> Option<&[Node]> {
    match &node.kind {
        Kind::List(all) => Some(all),
        _ => None,
    }
}

pub(super) fn scalar(node: &Node) -> Option<&Scalar> {
    match &node.kind {
        Kind::Scalar(scalar) => Some(scalar),
        _ => None,
    }
}

pub(super) fn string(node: &Node) -> Option<&str> {
    scalar(node).filter(|scalar| scalar.is_string()).map(|scalar| scalar.text.as_str())
}

/// A mapping with a path.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    pub at: At,
    pub node: &'a Node,
    entries: &'a [(Key, Node)],
}

impl<'a> Fields<'a> {
    /// Of something that is no mapping there are none.
    pub fn new(node: &'a Node, at: At) -> Self {
        Self { at, node, entries: entries(node).unwrap_or_default() }
    }

    /// A value and its path.
    pub fn get(&self, key: &str) -> Option<(&'a Node, At)> {
        let (_, node) = self.entries.iter().find(|(one, _)| one.text == key)?;
        Some((node, self.at.key(key)))
    }

    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(one, _)| one.text == key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &'a Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn unknown(&self, known: &'static [&'static str]) -> impl Iterator<Item = &'a Key> {
        self.keys().filter(move |key| !known.contains(&key.text.as_str()))
    }

    pub fn warn_unknown(&self, known: &'static [&'static str], problems: &mut Problems) {
        for key in self.unknown(known) {
            let hint = did_you_mean(&key.text, known);
            let path = self.at.key(&key.text);
            problems.warning(UNKNOWN, key.place, path.path(), "unknown key", hint.as_deref());
        }
    }

    pub fn refuse_unknown(
        &self,
        known: &'static [&'static str],
        code: &'static str,
        problems: &mut Problems,
    ) {
        for key in self.unknown(known) {
            let path = self.at.key(&key.text);
            let all = format!("known keys are {}", known.join(", "));
            let hint = did_you_mean(&key.text, known).unwrap_or(all);
            problems.error_hint(code, key.place, path.path(), "unknown key", &hint);
        }
    }

    pub fn warn_meaningless(&self, keys: &[&str], what: &str, problems: &mut Problems) {
        for key in self.keys().filter(|key| keys.contains(&key.text.as_str())) {
            let path = self.at.key(&key.text);
            let message = format!("has no meaning on {what}");
            problems.warning(MEANINGLESS, key.place, path.path(), &message, None);
        }
    }

    /// A string, if the key is there and it is one.
    pub fn string(
        &self,
        key: &str,
        code: &'static str,
        problems: &mut Problems,
    ) -> Option<&'a str> {
        let (node, at) = self.get(key)?;
        let found = string(node);
        if found.is_none() {
            wrong_type(node, &at, code, "a string", problems);
        }
        found
    }

    pub fn bool(&self, key: &str, code: &'static str, problems: &mut Problems) -> Option<bool> {
        let (node, at) = self.get(key)?;
        let found = scalar(node).and_then(Scalar::bool);
        if found.is_none() {
            wrong_type(node, &at, code, "true or false", problems);
        }
        found
    }

    /// A whole number in a range.
    pub fn int(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<i64>,
        code: &'static str,
        problems: &mut Problems,
    ) -> Option<i64> {
        let (node, at) = self.get(key)?;
        let found = scalar(node).and_then(Scalar::int);
        let fits = found.filter(|n| range.contains(n));
        if fits.is_none() {
            let (low, high) = (range.start(), range.end());
            let wanted = match *high {
                HIGHEST => format!("a whole number of at least {low}"),
                high => format!("a whole number from {low} to {high}"),
            };
            match found {
                Some(n) => {
                    let message = format!("must be {wanted}, not {n}");
                    problems.error(code, node.place, at.path(), &message);
                }
                None => wrong_type(node, &at, code, &wanted, problems),
            }
        }
        fits
    }
}

/// Ten years in milliseconds, which is as good as for ever.
pub(super) const HIGHEST: i64 = 10 * 365 * 24 * 3600 * 1000;

pub(super) fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    similar(word, known).map(|one| format!("did you mean {one}?"))
}

pub(super) fn wrong_type(
    node: &Node,
    at: &At,
    code: &'static str,
    wanted: &str,
    problems: &mut Problems,
) {
    let message = format!("must be {wanted}, not {}", node.what());
    match scalar(node) {
        Some(scalar) if wanted == "a string" && !scalar.is_null() => {
            let hint = format!("put it in quotes: \"{}\"", shortened(&scalar.text, 40));
            problems.error_hint(code, node.place, at.path(), &message, &hint);
        }
        _ => problems.error(code, node.place, at.path(), &message),
    }
}
