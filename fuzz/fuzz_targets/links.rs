//! A link a box wants opened: only the web, nothing of this computer or its network.
#![no_main]

use connectors::link::Link;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(link) = Link::parse(text) else { return };
    let url = link.as_str();
    assert!(url.starts_with("http://") || url.starts_with("https://"), "{url}");
    assert!(!url.chars().any(|c| c.is_control() || c.is_whitespace()) && url.is_ascii(), "{url}");
    let host = link.host();
    assert!(!host.is_empty() && !host.contains('@'), "{url}");
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
        assert!(!address.is_loopback() && !address.is_unspecified(), "{url}");
        if let std::net::IpAddr::V4(address) = address {
            assert!(!address.is_private() && !address.is_link_local(), "{url}");
        }
    }
    assert!(host != "localhost" && !host.ends_with(".localhost"), "{url}");
    // What is opened is what was checked.
    assert_eq!(Link::parse(url).map(|again| again.as_str().to_owned()), Ok(url.to_owned()));
});
