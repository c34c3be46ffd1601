//! The names by which a box's ports are known to browsers. Pure.

use crate::BoxName;

pub use crate::ctl::ports::{SCREEN, WEB};

const ZONE: &str = ".localhost";

/// A Host header in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// `<something>.localhost`, and what it may mean; the first box that exists is meant.
    Ours(Vec<What>),
    /// Any other name: not for us, whoever sent it here.
    Foreign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct What {
    pub name: BoxName,
    pub port: u16,
}

/// The host name of a box's port.
pub fn web_name(name: &BoxName, port: u16) -> String {
    match port {
        WEB => format!("{name}{ZONE}"),
        SCREEN => format!("{name}.vnc{ZONE}"),
        other => format!("{other}-{name}{ZONE}"),
    }
}

impl Host {
    /// Reads a header's value: a name and perhaps a port.
    pub fn read(value: &str) -> Self {
        let name = match value.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            Some(_) => return Host::Foreign,
            None => value,
        };
        let name = name.to_ascii_lowercase();
        match name.strip_suffix(ZONE) {
            Some(label) => Host::Ours(meanings(label)),
            None => Host::Foreign,
        }
    }
}

/// A box of exactly that name comes first: a person may call a box `vnc-test`.
fn meanings(label: &str) -> Vec<What> {
    let what = |name: &str, port: u16| Some(What { name: name.parse().ok()?, port });
    let numbered = || {
        let (port, name) = label.split_once('-')?;
        let plain = !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit());
        what(name, port.parse().ok().filter(|_| plain)?)
    };
    let screen = || {
        let name = label.strip_suffix(".vnc").or_else(|| label.strip_prefix("vnc-"))?;
        what(name, SCREEN)
    };
    [what(label, WEB), screen(), numbered()].into_iter().flatten().collect()
}

/// Whether one of the two names is an address of the other box: `3000-fix` and `fix`.
pub fn share_an_address(one: &BoxName, other: &BoxName) -> bool {
    let leads = |from: &BoxName, to: &BoxName| {
        from != to && meanings(from.as_str()).iter().any(|what| what.name == *to)
    };
    leads(one, other) || leads(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(host: &str) -> Vec<(String, u16)> {
        match Host::read(host) {
            Host::Ours(all) => all.into_iter().map(|w| (w.name.to_string(), w.port)).collect(),
            Host::Foreign => panic!("{host} is foreign"),
        }
    }

    fn one(name: &str, port: u16) -> Vec<(String, u16)> {
        vec![(name.to_owned(), port)]
    }

    #[test]
    fn names_lead_to_ports() {
        assert_eq!(read("fix.localhost:1355"), one("fix", 80));
        assert_eq!(read("FIX.localhost"), one("fix", 80));
        assert_eq!(read("fix.vnc.localhost:1355"), one("fix", 6080));
        let both = [one("vnc-fix", 80), one("fix", 6080)].concat();
        assert_eq!(read("vnc-fix.localhost:1355"), both);
        let both = [one("3000-fix", 80), one("fix", 3000)].concat();
        assert_eq!(read("3000-fix.localhost:1355"), both);
        assert_eq!(read("99999-fix.localhost"), one("99999-fix", 80));
        assert_eq!(read("080-fix.localhost"), one("080-fix", 80));
        for nothing in
            ["a.b.localhost", ".localhost", "-.localhost", "a_b.localhost", "7.localhost"]
        {
            assert_eq!(read(nothing), [], "{nothing}");
        }
    }

    #[test]
    fn a_name_that_is_another_boxs_address_is_known() {
        let share = |a: &str, b: &str| share_an_address(&a.parse().unwrap(), &b.parse().unwrap());
        for (a, b) in [("fix", "vnc-fix"), ("fix", "3000-fix"), ("8080-a", "3000-8080-a")] {
            assert!(share(a, b) && share(b, a), "{a} {b}");
        }
        for (a, b) in [("fix", "fix"), ("fix", "123-other"), ("fix", "99999-fix"), ("a", "b")] {
            assert!(!share(a, b) && !share(b, a), "{a} {b}");
        }
    }

    #[test]
    fn other_names_are_foreign() {
        for foreign in [
            "",
            "localhost",
            "localhost:1355",
            "127.0.0.1:1355",
            "[::1]:1355",
            "fix.example.com",
            "fix.localhost.evil.com",
            "fix.localhost.",
            "fixlocalhost",
            "fix.localhost:x",
            "fix.localhost:1355:1",
            "a@fix.localhost:b",
        ] {
            assert_eq!(Host::read(foreign), Host::Foreign, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn a_box_is_found_by_each_of_its_names(name in "[a-z][a-z0-9]{0,20}", port in 1u16..) {
            let name: BoxName = name.parse().unwrap();
            let host = format!("{}:1355", web_name(&name, port));
            let Host::Ours(all) = Host::read(&host) else { panic!("{host}") };
            let wanted = What { name, port };
            prop_assert!(all.contains(&wanted));
        }

        #[test]
        fn nothing_makes_it_stumble(host in "\\PC{0,40}") {
            let _ = Host::read(&host);
        }
    }
}
