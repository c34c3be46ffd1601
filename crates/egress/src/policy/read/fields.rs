//! Mappings with closed keys, each value looked at by type.

use crate::policy::problem::{At, Notes};
use protocol::similar::similar;
use protocol::text::shortened;
use yaml::{Key, Kind, Node, Scalar};

/// A mapping whose keys are all known.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    pub at: At,
    pub node: &'a Node,
    entries: &'a [(Key, Node)],
}

/// Keys that people write for another one or for something that is not there, and what to say.
const SLIPS: &[(&str, &str)] = &[
    ("scheme", "is written schemes: [https]"),
    ("method", "is written methods: [GET]"),
    ("credential_shim", "is renderer-owned and cannot be authored; see client_shim"),
    ("path_case_insensitive", "is written path: { prefix: …, case: insensitive }"),
    ("content", "is reserved; nothing can be said about bodies yet"),
    (
        "value",
        "values of credentials never stand in a policy: store it with `agentbox secrets set` and name its id",
    ),
];

impl<'a> Fields<'a> {
    /// None when it is no mapping. Unknown keys are mistakes: a misspelt one would be a rule that is not
    /// there.
    pub fn of(node: &'a Node, at: At, known: &[&str], notes: &mut Notes<'_>) -> Option<Self> {
        let Kind::Map(entries) = &node.kind else {
            wrong_type(node, &at, "a mapping", notes);
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
            notes.error(key.place, &at.key(&key.text), unknown(&key.text, known));
        }
        Some(Self { at, node, entries })
    }

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

    pub fn required(&self, key: &str, notes: &mut Notes<'_>) -> Option<(&'a Node, At)> {
        let found = self.get(key);
        if found.is_none() {
            notes.error(self.node.place, &self.at, format!("{key} is missing"));
        }
        found
    }

    pub fn string(&self, key: &str, notes: &mut Notes<'_>) -> Option<&'a str> {
        let (node, at) = self.get(key)?;
        string(node, &at, notes)
    }

    /// False without it.
    pub fn flag(&self, key: &str, notes: &mut Notes<'_>) -> bool {
        self.bool(key, notes).unwrap_or(false)
    }

    pub fn bool(&self, key: &str, notes: &mut Notes<'_>) -> Option<bool> {
        let (node, at) = self.get(key)?;
        let found = scalar(node).and_then(Scalar::bool);
        if found.is_none() {
            wrong_type(node, &at, "true or false", notes);
        }
        found
    }

    /// One of a few words.
    pub fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        notes: &mut Notes<'_>,
    ) -> Option<T> {
        let text = self.string(key, notes)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none()
            && let Some((node, at)) = self.get(key)
        {
            let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let message = format!("must be {}, not {}", all.join(" or "), shortened(text, 60));
            notes.error(node.place, &at, message);
        }
        found
    }

    /// A list; nothing there is as good as none.
    pub fn list(&self, key: &str, notes: &mut Notes<'_>) -> Vec<(&'a Node, At)> {
        let Some((node, at)) = self.get(key).filter(|(node, _)| !node.is_null()) else {
            return Vec::new();
        };
        items(node, &at, notes).unwrap_or_default()
    }

    /// A list with something in it.
    pub fn some(&self, key: &str, notes: &mut Notes<'_>) -> Option<Vec<(&'a Node, At)>> {
        let (node, at) = self.get(key)?;
        let all = items(node, &at, notes)?;
        if all.is_empty() {
            notes.error(node.place, &at, "must not be empty");
            return None;
        }
        Some(all)
    }

    /// Strings, at least one. None when the key is not there or one is no string.
    pub fn strings(
        &self,
        key: &str,
        notes: &mut Notes<'_>,
    ) -> Option<Vec<(&'a str, &'a Node, At)>> {
        let mut all = Vec::new();
        for (node, at) in self.some(key, notes)? {
            all.push((string(node, &at, notes)?, node, at));
        }
        Some(all)
    }
}

pub(super) fn items<'a>(
    node: &'a Node,
    at: &At,
    notes: &mut Notes<'_>,
) -> Option<Vec<(&'a Node, At)>> {
    let Kind::List(all) = &node.kind else {
        wrong_type(node, at, "a list", notes);
        return None;
    };
    Some(all.iter().enumerate().map(|(index, node)| (node, at.item(index))).collect())
}

pub(super) fn entries(node: &Node) -> Option<&[(Key, Node)]> {
    match &node.kind {
        Kind::Map(pairs) => Some(pairs),
        _ => None,
    }
}

pub(super) fn scalar(node: &Node) -> Option<&Scalar> {
    match &node.kind {
        Kind::Scalar(scalar) => Some(scalar),
        _ => None,
    }
}

pub(super) fn string<'a>(node: &'a Node, at: &At, notes: &mut Notes<'_>) -> Option<&'a str> {
    let found = scalar(node).filter(|scalar| scalar.is_string()).map(|scalar| scalar.text.as_str());
    if found.is_none() {
        wrong_type(node, at, "a string", notes);
    }
    found
}

pub(super) fn wrong_type(node: &Node, at: &At, wanted: &str, notes: &mut Notes<'_>) {
    let mut message = format!("must be {wanted}, not {}", node.what());
    if let Some(scalar) = scalar(node)
        && wanted == "a string"
        && !scalar.is_null()
    {
        message += &format!("; put it in quotes: \"{}\"", shortened(&scalar.text, 40));
    }
    notes.error(node.place, at, message);
}

fn unknown(key: &str, known: &[&str]) -> String {
    if let Some((_, say)) = SLIPS.iter().find(|(slip, _)| *slip == key) {
        return (*say).to_owned();
    }
    match similar(key, known) {
        Some(one) => format!("unknown key; did you mean {one}?"),
        None => format!("unknown key; known are {}", known.join(", ")),
    }
}
