//! The keys of a mapping, each looked at by name and by type.

use super::{MEANINGLESS, UNKNOWN};
use crate::problem::Problems;
use crate::shape::{self, HIGHEST, Shape, Table};
use protocol::similar::similar;
use protocol::text::shortened;
use std::time::Duration;
use yaml::{Key, Kind, Node, Scalar};

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

pub(crate) fn entries(node: &Node) -> Option<&[(Key, Node)]> {
    match &node.kind {
        Kind::Map(pairs) => Some(pairs),
        _ => None,
    }
}

pub(crate) fn list(node: &Node) -> Option<&[Node]> {
    match &node.kind {
        Kind::List(all) => Some(all),
        _ => None,
    }
}

pub(crate) fn scalar(node: &Node) -> Option<&Scalar> {
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
    table: Table,
    entries: &'a [(Key, Node)],
}

impl<'a> Fields<'a> {
    /// Of something that is no mapping there are none.
    pub fn new(node: &'a Node, at: At, table: Table) -> Self {
        Self { at, node, table, entries: entries(node).unwrap_or_default() }
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

    pub fn unknown(&self) -> impl Iterator<Item = &'a Key> {
        let table = self.table;
        self.keys().filter(move |key| shape::find(table, &key.text).is_none())
    }

    pub fn warn_unknown(&self, problems: &mut Problems) {
        self.warn_unknown_but(&[], problems);
    }

    /// Those are known all the same.
    pub fn warn_unknown_but(&self, others: &'static [&'static str], problems: &mut Problems) {
        let mut known = shape::names(self.table);
        known.extend(others);
        for key in self.unknown().filter(|key| !others.contains(&key.text.as_str())) {
            let hint = did_you_mean(&key.text, &known);
            let path = self.at.key(&key.text);
            problems.warning(UNKNOWN, key.place, path.path(), "unknown key", hint.as_deref());
        }
    }

    pub fn refuse_unknown(&self, code: &'static str, problems: &mut Problems) {
        let known = shape::names(self.table);
        for key in self.unknown() {
            let path = self.at.key(&key.text);
            let all = format!("known keys are {}", known.join(", "));
            let hint = did_you_mean(&key.text, &known).unwrap_or(all);
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

    /// A whole number in its range.
    pub fn int(&self, key: &str, code: &'static str, problems: &mut Problems) -> Option<i64> {
        let (node, at) = self.get(key)?;
        let (least, most, _) = self.range(key);
        let found = scalar(node).and_then(Scalar::int);
        let fits = found.filter(|n| (least..=most).contains(n));
        if fits.is_none() {
            let wanted = match most {
                HIGHEST => format!("a whole number of at least {least}"),
                most => format!("a whole number from {least} to {most}"),
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

    /// A time in milliseconds, if there is one.
    pub fn millis(
        &self,
        key: &str,
        code: &'static str,
        problems: &mut Problems,
    ) -> Option<Duration> {
        let given = self.int(key, code, problems)?;
        Some(Duration::from_millis(given.unsigned_abs()))
    }

    /// A time in milliseconds, or what it is without one.
    pub fn millis_or(&self, key: &str, code: &'static str, problems: &mut Problems) -> Duration {
        let (_, _, otherwise) = self.range(key);
        let otherwise = Duration::from_millis(otherwise.unwrap_or_default().unsigned_abs());
        self.millis(key, code, problems).unwrap_or(otherwise)
    }

    fn range(&self, key: &str) -> (i64, i64, Option<i64>) {
        match shape::find(self.table, key).map(|key| key.shape) {
            Some(Shape::Int { least, most, otherwise }) => (least, most, otherwise),
            _ => (0, HIGHEST, None),
        }
    }
}

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
