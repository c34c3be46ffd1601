//! Identifiers that cannot hold a bad value.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a string is not the identifier it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    #[error("{0:?} is not a box id (b and 8 hex digits)")]
    BoxId(String),
    #[error(
        "{0:?} is not a box name: use 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit, with at least one letter"
    )]
    BoxName(String),
    #[error("{0:?} is not a question or rule id (32 hex digits)")]
    Random(String),
    #[error(
        "{0:?} is not the name of a credential: words of a-z, 0-9 and - joined by dots, such as github.token"
    )]
    SecretId(String),
    #[error("{0:?} is not the id of a job (12 hex digits)")]
    JobId(String),
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

macro_rules! string_id {
    ($(#[$meta:meta])* $name:ident, $check:expr, $error:path) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(type = "string"))]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err($error(text)) }
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// `b` and 8 hex digits. The letter keeps an id from ever looking like a project index.
    BoxId,
    |t| t.len() == 9 && t.starts_with('b') && is_lower_hex(&t[1..]),
    BadId::BoxId
);

string_id!(
    /// A name that is at once a host name, a branch segment and safe to print in a question.
    BoxName,
    |t| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        t.len() <= 63
            && edge(t.chars().next())
            && edge(t.chars().next_back())
            && t.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !t.bytes().all(|b| b.is_ascii_digit())
            && !t.ends_with("-dash")
    },
    BadId::BoxName
);

string_id!(
    /// 128 random bits: one box cannot guess another's question.
    QuestionId,
    |t| t.len() == 32 && is_lower_hex(t),
    BadId::Random
);

string_id!(
    /// A remembered answer.
    GrantId,
    |t| t.len() == 32 && is_lower_hex(t),
    BadId::Random
);

string_id!(
    /// The name of a credential: `github.token`, `trello.key`.
    SecretId,
    |t| {
        let word = |w: &str| {
            w.starts_with(|c: char| c.is_ascii_lowercase())
                && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        t.len() <= 64 && t.split('.').count() >= 2 && t.split('.').all(word)
    },
    BadId::SecretId
);

string_id!(
    /// A background job: 12 hex digits.
    JobId,
    |t| t.len() == 12 && is_lower_hex(t),
    BadId::JobId
);

impl JobId {
    pub fn from_bytes(bytes: [u8; 6]) -> Self {
        Self(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }
}

impl BoxId {
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(format!("b{:08x}", u32::from_be_bytes(bytes)))
    }
}

impl QuestionId {
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }
}

impl GrantId {
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }
}

impl BoxName {
    /// The name a box gets when nobody chose one: the folder's name, made safe, and the id.
    pub fn from_folder(folder: &str, id: &BoxId) -> Self {
        let mut name = String::new();
        for c in folder.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                name.push(c);
            } else if !name.ends_with('-') {
                name.push('-');
            }
        }
        let stem: String = name.trim_matches('-').chars().take(30).collect();
        let stem = stem.trim_end_matches('-');
        Self(if stem.is_empty() { id.to_string() } else { format!("{stem}-{id}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_01_name_comes_from_the_folder() {
        let id = BoxId::from_bytes([1, 2, 3, 0xab]);
        assert_eq!(id.as_str(), "b010203ab");
        assert_eq!(BoxName::from_folder("My App!", &id).as_str(), "my-app-b010203ab");
        assert_eq!(BoxName::from_folder("…", &id).as_str(), "b010203ab");
        assert_eq!(BoxName::from_folder("a_b.c", &id).as_str(), "a-b-c-b010203ab");
    }

    #[test]
    fn boxes_16_02_bad_names_are_refused() {
        for bad in
            ["3", "My Box", "", "-a", "a-", "a_b", "x/y", "..", "claude-dash", &"a".repeat(64)]
        {
            assert!(bad.parse::<BoxName>().is_err(), "{bad:?} was taken");
        }
        for good in ["a", "fix-login", "3a", "b1"] {
            assert!(good.parse::<BoxName>().is_ok(), "{good:?} was refused");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_folder_gives_a_valid_name(folder in ".{0,80}") {
            let id = BoxId::from_bytes([0xde, 0xad, 0xbe, 0xef]);
            let name = BoxName::from_folder(&folder, &id);
            proptest::prop_assert!(name.as_str().parse::<BoxName>().is_ok());
        }
    }
}
