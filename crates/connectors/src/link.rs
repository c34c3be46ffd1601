//! `browser.open`: an address a box would like a person to see.
//!
//! What reaches the host's opener is the address written anew from its parsed form, in characters
//! that mean nothing to a shell or an option parser. Addresses of this computer and its network
//! are refused however they are spelled: a page a box chose must not be a way to reach them. The
//! surprising thing: names are not looked up, because asking for a name's address already tells
//! whoever owns the name.

use crate::refusal::Refusal;
use protocol::text::shortened;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

const SURFACE: &str = "browser open";
const MAX_BYTES: usize = 2048;

/// An address that may be offered to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    url: String,
    host: String,
    site: String,
}

impl Link {
    pub const SURFACE: &str = SURFACE;

    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |why: &str| {
            let shown = shortened(text, 200);
            Err(Refusal::shape(SURFACE, format!("'{shown}' {why}")))
        };
        let trimmed = text.trim_matches(' ');
        if trimmed.len() > MAX_BYTES {
            return refuse("is too long; at most 2048 bytes are opened.");
        }
        if trimmed.chars().any(|c| c.is_control() || c == '\u{feff}') {
            return refuse("holds a control character.");
        }
        let Ok(url) = Url::parse(trimmed) else {
            return refuse("is no address; use https://….");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("is neither http nor https; only web pages are opened.");
        }
        if !url.username().is_empty() || url.password().is_some() || has_user(trimmed) {
            return refuse("names a user before the host; leave out everything up to '@'.");
        }
        let Some(host) = url.host() else { return refuse("names no host.") };
        if is_near(&host) {
            return refuse("leads to this computer or its own network, where boxes open nothing.");
        }
        let site = match &host {
            Host::Domain(name) => site(name),
            address => address.to_string(),
        };
        let host = host.to_string();
        let url = plain(url.as_str());
        if url.len() > MAX_BYTES {
            return refuse("is too long; at most 2048 bytes are opened.");
        }
        Ok(Self { url, host, site })
    }

    /// The address as it is opened.
    pub fn as_str(&self) -> &str {
        &self.url
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Who answers for it: the name somebody registered, `example.co.uk` of `a.b.example.co.uk`.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// The host is written with letters beyond ASCII somewhere: it may look like another.
    pub fn may_look_like_another(&self) -> bool {
        self.host.split('.').any(|label| label.starts_with("xn--"))
    }
}

/// Something stands before an `@` in the authority, even when a parser would drop it.
fn has_user(text: &str) -> bool {
    let rest = text.split_once(':').map_or(text, |(_, rest)| rest);
    let rest = rest.trim_start_matches(['/', '\\']);
    rest.split(['/', '\\', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

fn site(host: &str) -> String {
    psl::domain_str(host.trim_end_matches('.')).unwrap_or(host).to_owned()
}

/// What no address needs and a careless script could trip over, written as `%XX`.
fn plain(url: &str) -> String {
    let unsafe_byte = |b: u8| !b.is_ascii_graphic() || b"\"'`<>\\^{|}".contains(&b);
    let escape = |b: u8| if unsafe_byte(b) { format!("%{b:02X}") } else { char::from(b).into() };
    url.bytes().map(escape).collect()
}

/// This computer, its network, or a name that means one of them.
fn is_near(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(ip) => !is_public_v4(*ip),
        Host::Ipv6(ip) => !is_public_v6(*ip),
        Host::Domain(name) => is_near_name(name),
    }
}

fn is_near_name(name: &str) -> bool {
    const NEAR: &[&str] = &[
        "localhost",
        "localdomain",
        "local",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "private",
        "home.arpa",
        "in-addr.arpa",
        "ip6.arpa",
        "test",
        "invalid",
    ];
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let within = |near: &str| {
        name == near || name.strip_suffix(near).is_some_and(|rest| rest.ends_with('.'))
    };
    // A bare word is completed by the network it is asked in.
    let bare = !name.contains('.');
    bare || NEAR.iter().any(|near| within(near)) || name.parse::<IpAddr>().is_ok()
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || (a, b, c) == (192, 0, 0);
    !special
}

/// Only what is given out to the public, and of that nothing that carries an IPv4 address in it.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let global = (0x2000..0x4000).contains(&a);
    let tunnels = a == 0x2002 || (a == 0x2001 && b < 0x0200) || (a == 0x2001 && b == 0x0db8);
    global && !tunnels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Refusal {
        match Link::parse(text) {
            Ok(link) => panic!("{text:?} became {link:?}"),
            Err(refusal) => refusal,
        }
    }

    #[test]
    fn relay_19_47_web_pages_only() {
        for bad in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "JavaScript://example.com/%0aalert(1)",
            "data:text/html,x",
            "vscode://file/etc",
            "ssh://example.com",
            "--help",
            "-a Terminal",
            "example.com",
            "//example.com",
            "/etc/passwd",
            "http:",
            "https://",
            "",
            " ",
        ] {
            assert_eq!(refused(bad).exit_code, 64, "{bad:?}");
        }
        let link = Link::parse("  HTTPS://Example.COM:443/a/../b c?q='x'#f ").unwrap();
        assert_eq!(link.as_str(), "https://example.com/b%20c?q=%27x%27#f");
        assert_eq!((link.host(), link.site()), ("example.com", "example.com"));
    }

    #[test]
    fn relay_a36_disguises_are_refused() {
        let long = format!("https://example.com/{}", "x".repeat(2048));
        let grows = format!("https://example.com/{}", "ü".repeat(900));
        for bad in [
            "\u{1}https://example.com",
            "\u{feff}https://example.com",
            "java\tscript:alert(1)",
            "https://exa\nmple.com",
            "https://github.com@evil.example",
            "https://github.com:pw@evil.example/",
            "https://@evil.example/",
            "https:///user@evil.example",
            "https:\\\\user@evil.example",
            &long,
            &grows,
        ] {
            let refusal = refused(bad);
            assert_eq!(refusal.exit_code, 64, "{bad:?}");
            assert!(refusal.text.len() < 1000 && !refusal.text.contains('\n'));
        }
    }

    #[test]
    fn relay_a36_this_computer_is_refused_however_it_is_spelled() {
        for bad in [
            "http://localhost",
            "http://LOCALHOST.:80/",
            "http://smoke.localhost:1355/",
            "http://127.0.0.1:8787/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://%31%32%37.0.0.1/",
            "http://①②⑦.0.0.1/",
            "http://0/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://172.17.0.1/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd00::1]/",
            "http://host.docker.internal/",
            "http://printer.local/",
            "http://router/",
            "http://intranet/",
            "http://nas.home.arpa./",
        ] {
            assert_eq!(refused(bad).exit_code, 64, "{bad:?}");
        }
        for good in
            ["http://1.1.1.1/", "http://[2606:4700:4700::1111]/", "https://local.example.com/"]
        {
            assert!(Link::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_name_in_other_letters_is_shown_as_it_travels() {
        let link = Link::parse("https://аpple.com/").unwrap();
        assert_eq!(link.as_str(), "https://xn--pple-43d.com/");
        assert!(link.may_look_like_another());
        assert!(!Link::parse("https://apple.com/").unwrap().may_look_like_another());
    }

    #[test]
    fn the_site_is_what_somebody_registered() {
        let site = |text: &str| Link::parse(text).unwrap().site().to_owned();
        assert_eq!(site("https://github.com.evil.co.uk/login"), "evil.co.uk");
        assert_eq!(site("https://ada.github.io/"), "ada.github.io");
        assert_eq!(site("https://a.b.example.org./"), "example.org");
        assert_eq!(site("https://1.1.1.1/"), "1.1.1.1");
    }

    proptest::proptest! {
        #[test]
        fn what_is_opened_is_one_harmless_word(
            text in "https?:[/\\\\]{0,3}[a-z.@:0-9\\[\\]]{0,12}\\.(com|org)[^ ]{0,20}|.{0,40}"
        ) {
            if let Ok(link) = Link::parse(&text) {
                let url = link.as_str();
                proptest::prop_assert!(url.starts_with("http://") || url.starts_with("https://"));
                proptest::prop_assert!(url.len() <= MAX_BYTES);
                let fine = |b: u8| b.is_ascii_graphic() && !b"\"'`<>\\^{|}".contains(&b);
                proptest::prop_assert!(url.bytes().all(fine), "{}", url);
                let again = Link::parse(url);
                proptest::prop_assert_eq!(again.map(|l| l.url), Ok(url.to_owned()));
            }
        }
    }
}
