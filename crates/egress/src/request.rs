//! A request in the form in which it is decided on and sent on.

use crate::host_name::HostName;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is compared with a policy. `target` is what will be sent on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalRequest {
    pub scheme: Scheme,
    pub host: HostName,
    pub port: u16,
    /// Upper-case, a token.
    pub method: String,
    pub target: Target,
    pub websocket: bool,
}

/// Path and query of a request, canonical: only unreserved characters are decoded, other escapes are
/// upper-case, nothing is left that two servers could read differently without being marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    path: String,
    query: Option<String>,
    /// A `.` or `..` segment, raw or escaped, or one with `;`: refused where paths matter.
    dotted: bool,
    /// An escaped slash, backslash, NUL or percent sign: fits no prefix.
    veiled: bool,
}
