//! A request in the form in which it is decided on and sent on.
//!
//! Servers disagree about what a path means: some resolve dots, some decode twice, some take a backslash
//! for a slash. Here a path gets one spelling, and whatever is left that two servers could read
//! differently is refused at once or marked, for the policy to refuse where paths matter.

use crate::host_name::HostName;
use protocol::egress::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Upper-case, a token; see [`method`].
    pub method: String,
    pub target: Target,
    pub websocket: bool,
}

/// Methods that take something and bring nothing.
pub const READS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// A method as it is compared and sent on. What would echo a request, or open a tunnel in a tunnel, is
/// never sent.
pub fn method(text: &str) -> Result<String, Reason> {
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err(Reason::BadRequest);
    }
    let method = text.to_ascii_uppercase();
    if is_forbidden(&method) { Err(Reason::MethodForbidden) } else { Ok(method) }
}

/// Of an upper-case method.
pub fn is_forbidden(method: &str) -> bool {
    matches!(method, "TRACE" | "TRACK" | "CONNECT")
}

/// A character of a method or of a header's name.
pub(crate) fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
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

/// Names of a query's parameters, each with all its values, sorted.
pub type QueryMap = BTreeMap<String, Vec<String>>;

impl Target {
    /// From a request line, without scheme and authority. A URL without a path has none here either, and
    /// means `/`. A fragment belongs to the client and is dropped.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (raw, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        if !raw.is_empty() && !raw.starts_with('/') {
            return Err(Reason::BadRequestTarget);
        }
        let plain = |b: u8| b.is_ascii_graphic();
        if !text.bytes().all(plain) || raw.starts_with("//") || raw.contains('\\') {
            return Err(Reason::AmbiguousPath);
        }
        let path = canonical_path(raw).ok_or(Reason::BadRequestTarget)?;
        let (dotted, veiled) = (path.split('/').any(is_dots), is_veiled(&path));
        Ok(Self { path, query: query.map(str::to_owned), dotted, veiled })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// As it was sent, without the question mark.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// As it is sent on.
    pub fn to_text(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// It has a segment that means “here” or “one up” to some servers.
    pub fn is_dotted(&self) -> bool {
        self.dotted
    }

    /// It has an escape that some servers decode into a slash, or decode twice.
    pub fn is_veiled(&self) -> bool {
        self.veiled
    }

    /// The parameters, decoded once. None when they are no UTF-8: such a query fits no rule about queries.
    pub fn query_map(&self) -> Option<QueryMap> {
        query_map(self.query.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// The one spelling of a path, or none when an escape is broken. Whatever is no escape stays as it is.
pub(crate) fn canonical_path(raw: &str) -> Option<String> {
    if raw.is_empty() {
        return Some("/".to_owned());
    }
    let mut path = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('%') {
        path.push_str(&rest[..at]);
        let byte = escape(rest.as_bytes().get(at..)?)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
        rest = rest.get(at + 3..)?;
    }
    path.push_str(rest);
    Some(path)
}

/// The byte that an escape at the start stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    match text {
        [b'%', high, low, ..] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    }
}

/// A segment that goes nowhere or up. Java's servers cut parameters off before they look, others trim
/// blanks and what else does not show.
fn is_dots(segment: &str) -> bool {
    let end = segment.find(';').unwrap_or(segment.len());
    let end = segment.find("%3B").map_or(end, |at| at.min(end));
    let mut name = &segment[..end];
    let blank = |text: &str| escape(text.as_bytes()).is_some_and(|b| b <= b' ' || b == 0x7f);
    while blank(name) {
        name = &name[3..];
    }
    while let Some((start, last)) =
        name.len().checked_sub(3).and_then(|at| name.split_at_checked(at))
        && blank(last)
    {
        name = start;
    }
    matches!(name, "." | "..")
}

/// Of a canonical path. `%C0` and `%C1` are in no UTF-8 but in overlong spellings of ASCII.
pub(crate) fn is_veiled(path: &str) -> bool {
    let two_hex = |at: usize| {
        path.as_bytes().get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    ["%2F", "%5C", "%00", "%C0", "%C1"].iter().any(|veil| path.contains(veil))
        || path.match_indices("%25").any(|(at, _)| two_hex(at + 3))
}

/// Every escape decoded; what is none stays as it is.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = escape(&bytes[at..]);
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// A path as the most obliging server reads it, for rules that hold something back: escapes decoded,
/// parameters and empty segments gone, letters lower-case.
pub(crate) fn obliging(path: &str) -> Vec<u8> {
    let decoded = unescaped(path);
    let mut out = Vec::with_capacity(decoded.len());
    let mut skipping = false;
    for byte in decoded {
        match byte.to_ascii_lowercase() {
            b'/' if out.last() == Some(&b'/') => skipping = false,
            b'/' => {
                skipping = false;
                out.push(b'/');
            }
            b';' => skipping = true,
            other if !skipping => out.push(other),
            _ => {}
        }
    }
    out
}

fn query_map(query: &str) -> Option<QueryMap> {
    let mut map = QueryMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        map.entry(decoded(name)?).or_default().push(decoded(value)?);
    }
    for values in map.values_mut() {
        values.sort();
    }
    Some(map)
}

/// Once, with `+` for a blank; none when it is no UTF-8 or an escape is broken.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                out.push(escape(&bytes[at..])?);
                at += 2;
            }
            b'+' => out.push(b' '),
            other => out.push(*other),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests;
