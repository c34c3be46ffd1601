//! Names of services, tasks and replacement sets.

use std::fmt;
use std::str::FromStr;

/// A unit so called would write into a log of the box's own parts.
pub(crate) const RESERVED: [&str; 6] =
    ["ctl-daemon", "dockerd", "sshd", "vnc-start", "web-proxy", "xvnc"];
pub(crate) const LONGEST: usize = 100;

/// The name of a service or a task: letters, digits, `-` and `_`, and not one of the supervisor's own.
/// It is safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct UnitName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("a name has letters, digits, - and _ only, at most {LONGEST}")]
    Letters,
    #[error("this name is reserved")]
    Reserved,
}

impl UnitName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits)
}

impl FromStr for UnitName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        if !is_name(text) {
            return Err(BadName::Letters);
        }
        if RESERVED.contains(&text) {
            return Err(BadName::Reserved);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for UnitName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for UnitName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
