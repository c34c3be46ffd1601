//! Hosts as they are written in policies: names of any script, an address where the entry says so, and one
//! leading `*.` for a name with everything below it.

use super::{HostPattern, RESERVED, THIS_COMPUTER, is_reserved};
use crate::host_name::HostName;
use protocol::text::shortened;

/// Why a text names no host of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("{} is not the name of a host: only the name, without scheme, port or path", shortened(.0, 80))]
    NotAName(String),
    #[error("a bare * would be every host; name them")]
    Everything,
    #[error("{} has a * that is not a leading *.", shortened(.0, 80))]
    Star(String),
    #[error("*.{0} would be everybody's hosts: {0} is a public suffix")]
    PublicSuffix(String),
    #[error(
        "{0} is an address: say ip_literal: true, or allow_private: true for one of a private network"
    )]
    Address(String),
    #[error("names under {RESERVED} are kept for AgentBox; only {THIS_COMPUTER} can be allowed")]
    Reserved,
}

impl HostPattern {
    /// From a policy's text. An address is taken only where the entry says that it means one.
    pub fn parse(text: &str, addresses: bool) -> Result<Self, BadPattern> {
        let text = text.trim();
        let star = text.strip_prefix("*.");
        if text == "*" || star == Some("") {
            return Err(BadPattern::Everything);
        }
        let name = star.unwrap_or(text);
        if name.contains('*') {
            return Err(BadPattern::Star(text.to_owned()));
        }
        let not = || BadPattern::NotAName(text.to_owned());
        let bare = name.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(name).parse::<std::net::IpAddr>() {
            return match (addresses, star) {
                (true, None) => HostName::parse(name).map(Self::Exact).map_err(|_| not()),
                (true, Some(_)) => Err(not()),
                (false, _) => Err(BadPattern::Address(address.to_string())),
            };
        }
        let host = HostName::authored(name).map_err(|_| not())?;
        if is_reserved(&host) && (host.as_str() != THIS_COMPUTER || star.is_some()) {
            return Err(BadPattern::Reserved);
        }
        match star {
            Some(_) if suffix(&host) == Some(Suffix::Public) => {
                Err(BadPattern::PublicSuffix(host.to_string()))
            }
            Some(_) => Ok(Self::Under(host)),
            None => Ok(Self::Exact(host)),
        }
    }

    /// From a deny: an address or everybody's hosts need no further word.
    pub fn parse_denied(text: &str) -> Result<Self, BadPattern> {
        match Self::parse(text, true) {
            Err(BadPattern::PublicSuffix(name)) => {
                HostName::parse(&name).map(Self::Under).map_err(|_| BadPattern::NotAName(name))
            }
            other => other,
        }
    }

    pub fn name(&self) -> &HostName {
        match self {
            Self::Exact(name) | Self::Under(name) => name,
        }
    }

    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Under(_))
    }

    /// A wildcard below which anybody can have a name, such as that of a hosting service.
    pub fn is_shared_hosting(&self) -> bool {
        let Self::Under(name) = self else { return false };
        suffix(name) == Some(Suffix::Hosting)
    }

    /// Everything this covers, the other covers too.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(name), other) => other.covers(name),
            (Self::Under(name), Self::Under(wider)) => name.is_at_or_below(wider),
            (Self::Under(_), Self::Exact(_)) => false,
        }
    }
}

/// Who gives out names below a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    /// A registry; or nobody knows, as of a top-level name that is not on the list.
    Public,
    /// A company, to its customers.
    Hosting,
}

/// Of a name that is a suffix as a whole.
fn suffix(name: &HostName) -> Option<Suffix> {
    let suffix = psl::suffix(name.as_str().as_bytes())?;
    let whole = suffix.as_bytes() == name.as_str().as_bytes();
    whole.then(|| match suffix.typ() {
        Some(psl::Type::Private) => Suffix::Hosting,
        _ => Suffix::Public,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, BadPattern> {
        HostPattern::parse(text, false).map(|pattern| pattern.to_string())
    }

    #[test]
    fn names_are_written_in_one_way() {
        assert_eq!(of(" API.Ex.com. ").unwrap(), "api.ex.com");
        assert_eq!(of("*.EX.com").unwrap(), "*.ex.com");
        assert_eq!(of("bücher.example").unwrap(), "xn--bcher-kva.example");
        assert_eq!(of("*.BÜCHER.example").unwrap(), "*.xn--bcher-kva.example");
        assert_eq!(of("ａ.example").unwrap(), "a.example");
        assert_eq!(of("host.agentbox.internal").unwrap(), "host.agentbox.internal");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in [
            "",
            ".",
            "a..b",
            "https://a.b",
            "a.b/c",
            "a.b:1",
            "a.b?c",
            "a.b#c",
            "*.",
            "*",
            "*.*.a.b",
            "a.*.b",
            "a*.b",
            ".a.b",
            "*..a.b",
            "a b",
            "127.1",
            "xn--a.example",
            "ü:1.example",
        ] {
            assert!(of(bad).is_err(), "{bad:?} was {:?}", of(bad));
        }
        assert!(of(&format!("{}.example", "a".repeat(64))).is_err());
        // Two directions in one label.
        assert!(of("\u{5d0}a1\u{5d1}.example").is_err());
    }

    #[test]
    fn nobody_gets_everybodys_hosts() {
        for bad in ["*.com", "*.co.uk", "*.COM.", "*.intranet"] {
            assert!(matches!(of(bad), Err(BadPattern::PublicSuffix(_))), "{bad}");
        }
        let shared = |text: &str| HostPattern::parse(text, false).unwrap().is_shared_hosting();
        assert!(shared("*.github.io"));
        assert!(!shared("*.ex.com") && !shared("a.github.io"));
    }

    #[test]
    fn addresses_and_our_own_names_need_a_word() {
        for address in ["10.0.0.1", "[::1]", "::1"] {
            assert!(matches!(of(address), Err(BadPattern::Address(_))), "{address}");
        }
        let literal = HostPattern::parse("[2001:db8::0:1]", true).unwrap();
        assert_eq!(literal.to_string(), "2001:db8::1");
        assert!(HostPattern::parse("*.10.0.0.1", true).is_err());
        for ours in [
            "agentbox.internal",
            "egress.agentbox.internal",
            "*.agentbox.internal",
            "*.host.agentbox.internal",
            "a.host.agentbox.internal",
        ] {
            assert_eq!(of(ours), Err(BadPattern::Reserved), "{ours}");
        }
    }

    #[test]
    fn egress_12_14_a_wildcard_is_the_name_and_all_below_it() {
        let all = HostPattern::parse("*.ex.com", false).unwrap();
        let covers = |name: &str| all.covers(&HostName::parse(name).unwrap());
        assert!(covers("ex.com") && covers("a.b.ex.com") && covers("API.EX.COM."));
        assert!(!covers("badex.com"));
    }

    #[test]
    fn within_is_every_host_of_it() {
        let within = |one: &str, other: &str| {
            let of = |text: &str| HostPattern::parse(text, false).unwrap();
            of(one).is_within(&of(other))
        };
        assert!(within("a.ex.com", "*.ex.com") && within("*.a.ex.com", "*.ex.com"));
        assert!(within("ex.com", "*.ex.com") && within("ex.com", "ex.com"));
        assert!(!within("*.ex.com", "ex.com") && !within("*.ex.com", "*.a.ex.com"));
    }
}
