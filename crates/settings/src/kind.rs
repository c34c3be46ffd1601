//! What a setting's value may be, and how people write it.

use crate::edit::Scalar;
use protocol::limits::{parse_cpus, parse_size};
use serde_json::{Value as Json, json};
use serde_norway::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Whole {
        least: u64,
        most: u64,
    },
    /// `512m`, `4g`.
    Size,
    /// `2`, `1.5`.
    Cpus,
    Text,
    /// The tightest first, where one is tighter than another.
    OneOf(&'static [&'static str]),
    Words,
    /// `22:00-07:00`.
    Hours,
    /// `https://…`.
    Address,
}

impl Kind {
    /// A value as it is typed. What only the setting itself can tell is found out when it is set.
    pub fn parse(self, text: &str) -> Result<Scalar, String> {
        let text = text.trim();
        let bad = || Err(format!("{text:?} is not {}", self.what()));
        if text.is_empty() {
            return bad();
        }
        match self {
            Kind::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" | "on" => Ok(Scalar::Bool(true)),
                "false" | "no" | "0" | "off" => Ok(Scalar::Bool(false)),
                _ => bad(),
            },
            Kind::Whole { least, most } => match text.parse::<u64>() {
                Ok(n) if (least..=most).contains(&n) => Ok(Scalar::Number(n)),
                _ => bad(),
            },
            Kind::Size if parse_size(text).is_none() => bad(),
            Kind::Cpus if parse_cpus(text).is_none() => bad(),
            Kind::Size | Kind::Cpus => {
                Ok(text.parse().map_or_else(|_| Scalar::Text(text.to_owned()), Scalar::Number))
            }
            Kind::OneOf(words) if !words.contains(&text) => bad(),
            Kind::Words if text.starts_with('[') => {
                serde_norway::from_str(text).map(Scalar::List).or_else(|_| bad())
            }
            Kind::Words => Ok(Scalar::List(vec![text.to_owned()])),
            Kind::Text | Kind::OneOf(_) | Kind::Hours | Kind::Address => {
                Ok(Scalar::Text(text.to_owned()))
            }
        }
    }

    /// For people.
    pub fn what(self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Whole { least: 0, most: u64::MAX } => "a whole number".to_owned(),
            Kind::Whole { least, most: u64::MAX } => {
                format!("a whole number of at least {least}")
            }
            Kind::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Size => "a size such as 512m or 4g".to_owned(),
            Kind::Cpus => "a number of processors such as 2 or 1.5".to_owned(),
            Kind::Text => "a text".to_owned(),
            Kind::OneOf(words) => format!("one of {}", words.join(", ")),
            Kind::Words => "a list such as [a, b]".to_owned(),
            Kind::Hours => "a stretch of the day such as 22:00-07:00".to_owned(),
            Kind::Address => "an address such as https://api.example.com".to_owned(),
        }
    }

    /// How much a value allows: less is tighter. `none` is what no limit means.
    pub(crate) fn rank(self, text: &str, none: u64) -> Option<u64> {
        let limit = |n: u64| if n == 0 { none } else { n };
        match self {
            Kind::Bool => Some(u64::from(text == "true")),
            Kind::Whole { .. } => text.parse().ok().map(limit),
            Kind::Size => parse_size(text).map(limit),
            Kind::Cpus => parse_cpus(text).map(limit),
            Kind::OneOf(words) => words.iter().position(|w| *w == text).map(|at| at as u64),
            _ => None,
        }
    }

    /// The place of a value among all there are, the tightest first.
    pub(crate) fn place_of(self, value: &Scalar) -> Option<u64> {
        match value {
            Scalar::Bool(yes) => Some(u64::from(*yes)),
            Scalar::Text(text) => self.rank(text, u64::MAX),
            Scalar::Number(_) | Scalar::List(_) => None,
        }
    }

    /// The place of the loosest value there is.
    pub(crate) fn last_place(self) -> u64 {
        match self {
            Kind::Bool => 1,
            Kind::OneOf(words) => words.len().saturating_sub(1) as u64,
            _ => u64::MAX,
        }
    }

    pub(crate) fn schema(self) -> Json {
        match self {
            Kind::Bool => json!({ "type": ["boolean", "null"] }),
            Kind::Whole { least, most } => {
                let mut schema = json!({ "type": ["integer", "null"], "minimum": least });
                if most < u64::MAX {
                    schema["maximum"] = json!(most);
                }
                schema
            }
            Kind::Size => json!({
                "type": ["integer", "string", "null"],
                "minimum": 0,
                "pattern": "^\\s*[0-9]+([kKmMgGtT]?[bB]?)\\s*$",
            }),
            Kind::Cpus => json!({
                "type": ["number", "string", "null"],
                "minimum": 0,
                "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*$",
            }),
            Kind::Text => json!({ "type": ["string", "null"] }),
            Kind::OneOf(words) => {
                json!({ "enum": words.iter().map(|w| json!(w)).chain([Json::Null]).collect::<Vec<_>>() })
            }
            Kind::Words => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
            Kind::Hours => json!({
                "type": ["string", "null"],
                "pattern": "^\\s*[0-9]{1,2}:[0-9]{2}\\s*-\\s*[0-9]{1,2}:[0-9]{2}\\s*$",
            }),
            Kind::Address => json!({ "type": ["string", "null"], "pattern": "^https?://" }),
        }
    }
}

/// A value on one line, as it could be typed.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Sequence(all) => {
            let all: Vec<String> = all.iter().map(shown).collect();
            format!("[{}]", all.join(", "))
        }
        other => serde_norway::to_string(other).unwrap_or_default().trim().replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_type_them() {
        for (text, yes) in [("Yes", true), ("1", true), ("ON", true), ("off", false), ("0", false)]
        {
            assert_eq!(Kind::Bool.parse(text), Ok(Scalar::Bool(yes)), "{text}");
        }
        assert_eq!(Kind::Size.parse(" 4g "), Ok(Scalar::Text("4g".into())));
        assert_eq!(Kind::Size.parse("0"), Ok(Scalar::Number(0)));
        assert_eq!(Kind::Cpus.parse("1.5"), Ok(Scalar::Text("1.5".into())));
        let words = |all: &[&str]| Ok(Scalar::List(all.iter().map(|w| (*w).to_owned()).collect()));
        assert_eq!(Kind::Words.parse("[dmenu, -i]"), words(&["dmenu", "-i"]));
        assert_eq!(Kind::Words.parse("/etc/a b.crt"), words(&["/etc/a b.crt"]));
        assert_eq!(Kind::Words.parse("[]"), words(&[]));
        for (kind, text) in [
            (Kind::Bool, "banana"),
            (Kind::Whole { least: 1, most: 9 }, "0"),
            (Kind::Whole { least: 1, most: 9 }, "-1"),
            (Kind::Whole { least: 1, most: 9 }, "10"),
            (Kind::Size, "4 apples"),
            (Kind::Cpus, "many"),
            (Kind::OneOf(&["a", "b"]), "c"),
            (Kind::Words, "[a"),
            (Kind::Text, "  "),
        ] {
            let why = kind.parse(text).unwrap_err();
            assert!(why.contains(&kind.what()), "{why}");
        }
    }

    #[test]
    fn no_limit_allows_most() {
        assert_eq!(Kind::Size.rank("0", u64::MAX), Some(u64::MAX));
        assert!(Kind::Size.rank("1g", u64::MAX) < Kind::Size.rank("2g", u64::MAX));
        assert_eq!(Kind::Whole { least: 0, most: 9 }.rank("0", 8192), Some(8192));
        assert!(Kind::Bool.rank("false", 0) < Kind::Bool.rank("true", 0));
        assert_eq!(Kind::OneOf(&["off", "on"]).rank("on", 0), Some(1));
    }
}
