//! Names of hosts in the one form in which they are compared: lower case, A-labels, no trailing dot; an
//! address as its own shortest text.

use std::fmt;
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a host")]
pub struct BadHost(pub String);

const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;

impl HostName {
    /// From a request or a policy: ASCII only; one trailing dot is taken off.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(text.chars().take(LONGEST).collect());
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if let Some(v6) = inner {
            let address: std::net::Ipv6Addr = v6.parse().map_err(|_| bad())?;
            return Ok(Self(address.to_string()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let label = |l: &str| {
            !l.is_empty()
                && l.len() <= LONGEST_LABEL
                && !l.starts_with('-')
                && !l.ends_with('-')
                && l.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        // A last label of digits would be read as an address by some and as a name by others.
        let numeric = |l: &str| {
            l.bytes().all(|b| b.is_ascii_digit())
                || l.strip_prefix("0x").is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        if name.len() > LONGEST || !name.split('.').all(label) || numeric(last) {
            return Err(bad());
        }
        Ok(Self(name))
    }

    /// From a policy's text: names of any script become A-labels, as a browser makes them.
    pub fn authored(text: &str) -> Result<Self, BadHost> {
        if text.is_ascii() && !text.to_ascii_lowercase().contains("xn--") {
            return Self::parse(text);
        }
        let bad = || BadHost(text.chars().take(LONGEST).collect());
        let labels = idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL);
        Self::parse(&labels.map_err(|_| bad())?)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// The name itself, or one below it.
    pub fn is_at_or_below(&self, other: &Self) -> bool {
        self == other || self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }

    /// As it stands in a URL or a Host field.
    pub fn in_url(&self) -> String {
        if self.0.contains(':') { format!("[{}]", self.0) } else { self.0.clone() }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        HostName::parse(text).ok().map(|h| h.to_string())
    }

    #[test]
    fn one_form_for_every_spelling() {
        assert_eq!(name("API.Ex.COM.").as_deref(), Some("api.ex.com"));
        assert_eq!(name("[2001:DB8::0:1]").as_deref(), Some("2001:db8::1"));
        assert_eq!(name("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(name("a_b.ex.com").as_deref(), Some("a_b.ex.com"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_host() {
        let long = "a".repeat(64);
        for bad in [
            "",
            ".",
            "..",
            "a..b",
            "a.com..",
            "-a.com",
            "a-.com",
            "a b",
            "a/b",
            "a:1",
            "é.com",
            "a@b",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "1.2.3.4.5",
            "[::1",
            "*.a.com",
            "a\n",
            &long,
        ] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }

    #[test]
    fn below_is_by_whole_labels() {
        let of = |t| HostName::parse(t).unwrap();
        assert!(of("a.b.ex.com").is_at_or_below(&of("ex.com")));
        assert!(of("ex.com").is_at_or_below(&of("ex.com")));
        assert!(!of("badex.com").is_at_or_below(&of("ex.com")));
    }
}
