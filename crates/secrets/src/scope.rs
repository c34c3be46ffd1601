//! Whose a credential is.

use protocol::BoxId;
use std::fmt;
use std::str::FromStr;

/// A credential is found by its scope and its id together: the same id in another scope is another
/// credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    #[default]
    Everybody,
    Project(ProjectKey),
    Box(BoxId),
}

/// A project's short name in a store: lower-case letters and digits, as a hash has them. It becomes
/// the name of a folder, so nothing else is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectKey(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the short name of a project")]
pub struct BadProjectKey(String);

const LONGEST: usize = 64;

impl FromStr for ProjectKey {
    type Err = BadProjectKey;

    fn from_str(text: &str) -> Result<Self, BadProjectKey> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let good = (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain);
        if good { Ok(Self(text.to_owned())) } else { Err(BadProjectKey(text.to_owned())) }
    }
}

impl ProjectKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scope {
    /// Its kind and its name; none for everybody's.
    pub(crate) fn parts(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Everybody => None,
            Self::Project(key) => Some(("project", key.as_str())),
            Self::Box(id) => Some(("box", id.as_str())),
        }
    }
}

/// What follows the id where people see it.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            None => f.write_str("everybody"),
            Some((kind, name)) => write!(f, "{kind} {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn egress_12_33_a_project_is_never_a_way_out_of_the_folder() {
        for bad in ["", ".", "..", "../x", "a/b", "a b", "A", "@box", "a\0b", &"a".repeat(65)] {
            assert!(bad.parse::<ProjectKey>().is_err(), "{bad:?}");
        }
        assert_eq!("0123456789abcdef".parse::<ProjectKey>().unwrap().as_str(), "0123456789abcdef");
    }
}
