//! `xdg-open`, `open` and `$BROWSER`: a web page for the person at the host.
//!
//! Only a quick look here: is it one web address? Whether it may be opened is for the host to say,
//! and then for the person. Files are not opened anywhere: the host does not have them.

use protocol::text::shortened;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const NAMES: [&str; 5] = ["xdg-open", "open", "x-www-browser", "www-browser", "sensible-browser"];

/// What is to be done for one command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    Open(String),
    /// Print this and end well.
    Print(&'static str),
    /// Say this line and stop with exit code 64.
    Refuse(String),
}

/// The binary was called by one of the names it opens pages under.
pub fn is_called(name: &OsStr) -> bool {
    let own = Path::new(name).file_name().and_then(OsStr::to_str);
    own.is_some_and(|own| NAMES.contains(&own))
}

pub fn plan(args: &[OsString]) -> Plan {
    const HELP: &str = "\
xdg-open <address>

Offers a web page to the person at the host of this box, who may open it in their own browser.
";
    let refuse = |why: String| Plan::Refuse(format!("open: {why}"));
    match args {
        [flag] if flag == "--help" || flag == "-h" => Plan::Print(HELP),
        [flag] if flag == "--version" || flag == "--manual" => {
            Plan::Print(concat!("xdg-open of agentbox-ctl ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        [address] => match address.to_str() {
            Some(text) if is_web(text) => Plan::Open(text.to_owned()),
            _ => {
                let shown = shortened(&address.to_string_lossy(), 200);
                refuse(format!(
                    "'{shown}' is no web page; only http and https addresses are opened."
                ))
            }
        },
        [] => refuse("name a web address.".to_owned()),
        _ => refuse("one address at a time.".to_owned()),
    }
}

fn is_web(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.trim_start_matches(' '));
    scheme.is_some_and(|s| s.eq_ignore_ascii_case("http") || s.eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(args: &[&str]) -> Plan {
        super::plan(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn relay_19_47_web_pages_only() {
        for good in ["https://example.com", "HTTP://example.com/a?b#c"] {
            assert_eq!(plan(&[good]), Plan::Open(good.into()));
        }
        for bad in
            ["file:///etc/passwd", "javascript:x", "example.com", "/etc", "-x", "", "mailto:a@b"]
        {
            assert!(matches!(plan(&[bad]), Plan::Refuse(_)), "{bad}");
        }
        assert!(matches!(plan(&[]), Plan::Refuse(_)));
        assert!(matches!(plan(&["https://a.org", "https://b.org"]), Plan::Refuse(_)));
        assert!(matches!(plan(&["--help"]), Plan::Print(_)));
    }

    #[test]
    fn it_goes_by_many_names() {
        for name in ["xdg-open", "/usr/local/bin/open", "sensible-browser"] {
            assert!(is_called(OsStr::new(name)), "{name}");
        }
        assert!(!is_called(OsStr::new("agentbox-ctl")));
        assert!(!is_called(OsStr::new("opener")));
    }
}
