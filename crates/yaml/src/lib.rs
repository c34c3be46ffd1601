//! YAML as a tree that knows where everything stands. No I/O.
//!
//! Files may be hostile, so everything is bounded. Aliases are unfolded and merge keys merged here, within
//! bounds: a small file must not grow into a large tree; or they are refused altogether, where a file must
//! say what it means where it stands. Scalars keep their letters; what they mean is decided by whoever
//! reads them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use protocol::text::shortened;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub const LARGEST: usize = 1 << 20;
pub const DEEPEST: usize = 64;
pub const MOST_ALIASES: usize = 100;
/// What all nodes may weigh after aliases are unfolded.
const HEAVIEST: usize = 4 << 20;
const NODE_WEIGHT: usize = 64;
/// Enough to work on; a hostile file could have a million.
const MOST_FAULTS: usize = 100;

/// Where something stands, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// What of a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub place: Place,
    pub message: String,
}

/// Whether a part of a file may stand for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aliases {
    /// And merge keys are merged.
    Unfolded,
    Refused,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub struct Key {
    pub place: Place,
    pub text: String,
}

/// A scalar's letters, and whether they may mean more than a string.
#[derive(Debug, Clone)]
pub struct Scalar {
    pub text: String,
    plain: bool,
}

impl Scalar {
    pub fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    pub fn bool(&self) -> Option<bool> {
        match self.text.as_str() {
            "true" | "True" | "TRUE" if self.plain => Some(true),
            "false" | "False" | "FALSE" if self.plain => Some(false),
            _ => None,
        }
    }

    pub fn is_number(&self) -> bool {
        self.plain && (self.int().is_some() || is_float(&self.text))
    }

    /// Whether the core schema says so.
    pub fn is_string(&self) -> bool {
        !(self.is_null() || self.bool().is_some() || self.is_number())
    }

    pub fn int(&self) -> Option<i64> {
        let text = self.text.as_str();
        if !self.plain || text.contains('_') {
            return None;
        }
        if let Some(hex) = text.strip_prefix("0x") {
            return digits(hex).then(|| i64::from_str_radix(hex, 16).ok())?;
        }
        if let Some(octal) = text.strip_prefix("0o") {
            return digits(octal).then(|| i64::from_str_radix(octal, 8).ok())?;
        }
        text.parse().ok()
    }

    pub fn number(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)]
        let whole = self.int().map(|n| n as f64);
        whole.or_else(|| (self.plain && is_float(&self.text)).then(|| self.text.parse().ok())?)
    }

    /// What kind of thing it is, for a message.
    pub fn kind(&self) -> &'static str {
        match self {
            _ if self.is_null() => "nothing",
            _ if self.bool().is_some() => "a boolean",
            _ if self.is_number() => "a number",
            _ => "a string",
        }
    }
}

/// No sign of its own.
fn digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, or infinite, or no number.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (number, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    digits(whole)
        && digits(part)
        && !(whole.is_empty() && part.is_empty())
        && !exponent.is_empty()
        && digits(exponent)
}

impl Node {
    pub fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.kind(),
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(scalar) if scalar.is_null())
    }
}

/// A node while and after it is read.
#[derive(Debug, Clone)]
struct Built {
    node: Node,
    height: usize,
    weight: usize,
    aliases: usize,
}

/// A list or mapping that has begun.
struct Open {
    place: Place,
    anchor: usize,
    parts: Vec<Built>,
    is_map: bool,
}

struct Builder {
    taken: Aliases,
    open: Vec<Open>,
    anchors: HashMap<usize, Built>,
    root: Option<Node>,
    documents: usize,
    aliases: usize,
    weight: usize,
    faults: Vec<Fault>,
}

/// Why reading ends, where it must.
struct Stop;

/// What came of reading a file.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The one document; none when it is empty or cannot be read.
    pub root: Option<Node>,
    /// Where there is one, the tree is not to be relied on.
    pub faults: Vec<Fault>,
}

pub fn parse(text: &str, taken: Aliases) -> Parsed {
    let mut builder = Builder {
        taken,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        documents: 0,
        aliases: 0,
        weight: 0,
        faults: Vec::new(),
    };
    let whole = builder.read(text).is_ok();
    Parsed { root: builder.root.filter(|_| whole), faults: builder.faults }
}

impl Builder {
    fn read(&mut self, text: &str) -> Result<(), Stop> {
        if text.len() > LARGEST {
            return Err(self.stop(Place { line: 1, column: 1 }, "the file is larger than 1 MiB"));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let at = error.marker();
                self.stop(Place { line: at.line(), column: at.col() + 1 }, error.info())
            })?;
            self.take(event, span)?;
        }
        Ok(())
    }

    fn stop(&mut self, place: Place, message: &str) -> Stop {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault { place, message: message.to_owned() });
        }
        Stop
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let place = Place { line: span.start.line(), column: span.start.col() + 1 };
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.stop(place, "the file has more than one document"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = self.plain(place, style, tag)?;
                let weight = NODE_WEIGHT + text.len();
                let scalar = Scalar { text: text.into_owned(), plain };
                let node = Node { place, kind: Kind::Scalar(scalar) };
                self.add(anchor, Built { node, height: 1, weight, aliases: 0 })?;
            }
            Event::SequenceStart(anchor, tag) => self.begin(place, anchor, tag, false)?,
            Event::MappingStart(anchor, tag) => self.begin(place, anchor, tag, true)?,
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => self.alias(place, anchor)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether a scalar may mean more than a string.
    fn plain(
        &mut self,
        place: Place,
        style: ScalarStyle,
        tag: Option<Cow<'_, Tag>>,
    ) -> Result<bool, Stop> {
        let Some(tag) = tag else { return Ok(style == ScalarStyle::Plain) };
        self.known(place, &tag)?;
        Ok(tag.is_yaml_core_schema() && tag.suffix != "str")
    }

    fn known(&mut self, place: Place, tag: &Tag) -> Result<(), Stop> {
        let known = ["str", "int", "float", "bool", "null", "seq", "map"];
        let alone = tag.handle.is_empty() && tag.suffix == "!";
        if alone || (tag.is_yaml_core_schema() && known.contains(&tag.suffix.as_str())) {
            return Ok(());
        }
        let name = shortened(&format!("{}{}", tag.handle, tag.suffix), 60);
        Err(self.stop(place, &format!("the tag {name} means nothing here")))
    }

    fn begin(
        &mut self,
        place: Place,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        is_map: bool,
    ) -> Result<(), Stop> {
        if let Some(tag) = tag {
            self.known(place, &tag)?;
        }
        if self.open.len() >= DEEPEST {
            return Err(self.stop(place, &format!("nested deeper than {DEEPEST} levels")));
        }
        self.open.push(Open { place, anchor, parts: Vec::new(), is_map });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        let Some(Open { place, anchor, parts, is_map }) = self.open.pop() else { return Ok(()) };
        let height = 1 + parts.iter().map(|part| part.height).max().unwrap_or(0);
        let weight = NODE_WEIGHT + parts.iter().map(|part| part.weight).sum::<usize>();
        let aliases = parts.iter().map(|part| part.aliases).sum();
        // The parts were weighed when they came.
        self.weight -= weight - NODE_WEIGHT;
        let nodes = parts.into_iter().map(|part| part.node);
        let kind = if is_map {
            let flat: Vec<Node> = nodes.collect();
            Kind::Map(self.mapping(flat)?)
        } else {
            Kind::List(nodes.collect())
        };
        self.add(anchor, Built { node: Node { place, kind }, height, weight, aliases })
    }

    fn alias(&mut self, place: Place, anchor: usize) -> Result<(), Stop> {
        self.refuse_alias(place)?;
        let Some(meant) = self.anchors.get(&anchor) else {
            return Err(self.stop(place, "an alias stands for something that contains it"));
        };
        self.aliases += 1 + meant.aliases;
        if self.aliases > MOST_ALIASES {
            let message = format!("aliases stand for more than {MOST_ALIASES} things");
            return Err(self.stop(place, &message));
        }
        if self.weight + meant.weight > HEAVIEST {
            return Err(self.stop(place, "the file holds too much"));
        }
        if self.open.len() + meant.height > DEEPEST {
            return Err(self.stop(place, &format!("nested deeper than {DEEPEST} levels")));
        }
        let mut built = meant.clone();
        built.aliases += 1;
        // Mistakes in it are shown where it is used.
        built.node.place = place;
        self.add(0, built)
    }

    fn refuse_alias(&mut self, place: Place) -> Result<(), Stop> {
        match self.taken {
            Aliases::Unfolded => Ok(()),
            Aliases::Refused => Err(self.stop(place, "anchors and aliases are not taken here")),
        }
    }

    fn add(&mut self, anchor: usize, built: Built) -> Result<(), Stop> {
        self.weight += built.weight;
        if self.weight > HEAVIEST {
            return Err(self.stop(built.node.place, "the file holds too much"));
        }
        if anchor != 0 {
            self.refuse_alias(built.node.place)?;
            self.weight += built.weight;
            self.anchors.insert(anchor, built.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.parts.push(built),
            None => self.root = Some(built.node),
        }
        Ok(())
    }

    /// Keys and values in turn, made into pairs; merge keys come after the mapping's own.
    fn mapping(&mut self, flat: Vec<Node>) -> Result<Vec<(Key, Node)>, Stop> {
        let mut pairs: Vec<(Key, Node)> = Vec::with_capacity(flat.len() / 2);
        let mut seen: HashSet<String> = HashSet::new();
        let mut merged: Vec<(Key, Node)> = Vec::new();
        let mut flat = flat.into_iter();
        while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
            let place = key.place;
            let Kind::Scalar(scalar) = key.kind else {
                return Err(self.stop(place, "a key is a word, not a list or a mapping"));
            };
            if scalar.plain && scalar.text == "<<" && self.taken == Aliases::Unfolded {
                self.merge(value, &mut merged)?;
            } else if seen.insert(scalar.text.clone()) {
                pairs.push((Key { place, text: scalar.text }, value));
            } else {
                let name = shortened(&scalar.text, 60);
                self.stop(place, &format!("the key {name} is there twice"));
            }
        }
        pairs.extend(merged.into_iter().filter(|(key, _)| seen.insert(key.text.clone())));
        Ok(pairs)
    }

    fn merge(&mut self, from: Node, into: &mut Vec<(Key, Node)>) -> Result<(), Stop> {
        let place = from.place;
        match from.kind {
            Kind::Map(pairs) => into.extend(pairs),
            Kind::List(all) if all.iter().all(|one| matches!(one.kind, Kind::Map(_))) => {
                for one in all {
                    self.merge(one, into)?;
                }
            }
            _ => return Err(self.stop(place, "<< takes a mapping or a list of mappings")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
