//! A link a box wants opened: only the web, nothing of this computer or its network.
#![no_main]

use connectors::link::Link;
use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;

const NEAR: &[&str] = &["localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "test", "invalid"];

/// Given out to the public, and no other way to write an address that is not.
fn is_far(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            !(v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified() || v4.is_multicast())
                && !(v4.is_broadcast() || v4.is_documentation() || shared || v4.octets()[0] == 0)
        }
        IpAddr::V6(v6) => {
            let [a, ..] = v6.segments();
            let carries = v6.to_ipv4().is_some() || a == 0x2002 || a == 0x64;
            !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || carries)
                && !(v6.is_unique_local() || v6.is_unicast_link_local())
        }
    }
}

fuzz_target!(|text: &str| {
    let Ok(link) = Link::parse(text) else { return };
    let url = link.as_str();
    assert!(url.starts_with("http://") || url.starts_with("https://"), "{url}");
    assert!(!url.chars().any(|c| c.is_control() || c.is_whitespace()) && url.is_ascii(), "{url}");
    let host = link.host();
    assert!(!host.is_empty() && !host.contains('@'), "{url}");
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => assert!(is_far(address), "{url}"),
        Err(_) => {
            let name = host.trim_end_matches('.');
            let last = name.rsplit('.').next().unwrap_or_default();
            assert!(name.contains('.') && !NEAR.contains(&last) && !format!(".{name}").ends_with(".home.arpa"), "{url}");
        }
    }
    // What is opened is what was checked.
    assert_eq!(Link::parse(url).map(|again| again.as_str().to_owned()), Ok(url.to_owned()));
});
