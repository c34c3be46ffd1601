//! `git clone` of a repository the person can read: which addresses there are, and how they are
//! written.
//!
//! An address is taken apart and put together again, so what a person is shown is what git gets.
//! No spelling of a path on the host, a helper (`ext::…`) or another user's name passes. The
//! surprising thing: an address is not looked up here. Whether the person has a login for its host
//! is something only git on the host can find out, by using it.

use crate::grammar::{Flag, Grammar, Positionals, Refused, Value};
use crate::names::BranchName;
use crate::refusal::Refusal;
use protocol::rpc::MAX_PATH_BYTES;
use protocol::text::visible;
use std::fmt;

/// Longer addresses exist only to make trouble.
const MAX_ADDRESS: usize = 1024;
const MAX_SEGMENTS: usize = 16;
const GITHUB: &str = "github.com";

static GRAMMAR: Grammar = Grammar {
    surface: "git clone",
    flags: &[
        Flag::with("--branch", Some("-b"), Value::Checked(is_name, "the name of a branch or tag")),
        Flag::with("--depth", None, Value::Number(1, u32::MAX)),
    ],
    refused: &[
        Refused {
            spellings: &[
                "--recurse-submodules",
                "--recursive",
                "--shallow-submodules",
                "--remote-submodules",
            ],
            why: "would read other repositories than the one that is shown; clone those one by one",
        },
        Refused {
            spellings: &["--upload-pack", "-u", "--config", "-c", "--template", "--reference"],
            why: "would steer the host's git",
        },
    ],
    positionals: Positionals { least: 1, most: 2, what: "an address and at most one folder" },
};

/// Parsed `git.clone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloning {
    pub address: Address,
    /// A branch or a tag.
    pub branch: Option<BranchName>,
    pub depth: Option<u32>,
    /// Where in the box, as it was typed.
    pub dir: Option<String>,
}

impl Cloning {
    pub fn parse(args: &[String]) -> Result<Self, Refusal> {
        let parsed = GRAMMAR.parse(args)?;
        let refuse = |why: String| GRAMMAR.refuse(why);
        let mut words = parsed.positionals.iter();
        let address = words.next().map_or("", String::as_str);
        let address = Address::parse(address).map_err(|why| {
            refuse(format!(
                "'{}' {why}. Accepted: https://host/owner/repo, git@host:owner/repo, \
                 ssh://git@host/owner/repo, owner/repo.",
                visible(address)
            ))
        })?;
        let dir = words.next().cloned();
        if let Some(dir) = dir.as_deref().filter(|dir| !is_folder(dir)) {
            return Err(refuse(format!("'{}' is not the name of a folder.", visible(dir))));
        }
        Ok(Self {
            address,
            branch: parsed.value("--branch").and_then(|name| name.parse().ok()),
            depth: parsed.value("--depth").and_then(|n| n.parse().ok()),
            dir,
        })
    }

    /// The folder it goes to, as git would choose it.
    pub fn folder(&self) -> &str {
        self.dir.as_deref().unwrap_or_else(|| self.address.name())
    }

    /// The command line again, from the value.
    pub fn argv(&self) -> Vec<String> {
        let mut argv = self.flags();
        argv.push("--".to_owned());
        argv.push(self.address.to_string());
        argv.extend(self.dir.clone());
        argv
    }

    /// Its flags for the host's git.
    pub fn flags(&self) -> Vec<String> {
        let branch = self.branch.iter().map(|name| format!("--branch={name}"));
        branch.chain(self.depth.iter().map(|n| format!("--depth={n}"))).collect()
    }
}

/// Where a repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    way: Way,
    /// In lower case, without a user.
    host: String,
    port: Option<u16>,
    /// The last one is the repository's, `.git` included when it was typed.
    path: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Https,
    /// `ssh://git@host/path`.
    Ssh,
    /// `git@host:path`.
    Scp,
}

impl Address {
    /// The text of an error is the second half of a sentence.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let address = Self::read(text)?;
        // The short form of an address stands for a longer one.
        if address.to_string().len() > MAX_ADDRESS {
            return Err("is too long for an address");
        }
        Ok(address)
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_ADDRESS {
            return Err("is too long for an address");
        }
        if let Some(rest) = text.strip_prefix("https://") {
            return Self::with_authority(Way::Https, rest);
        }
        if let Some(rest) = text.strip_prefix("ssh://") {
            let rest = rest.strip_prefix("git@").ok_or("does not log in as 'git'")?;
            return Self::with_authority(Way::Ssh, rest);
        }
        if text.contains("://") || text.contains("::") {
            return Err("is not an address of a kind that is cloned");
        }
        if text.starts_with(['/', '.', '~']) {
            return Err("is a path, and the host's files are not cloned");
        }
        match text.split_once(':') {
            Some((login, path)) => {
                let host = login.strip_prefix("git@").ok_or("does not log in as 'git'")?;
                Self::build(Way::Scp, host, None, path)
            }
            None => Self::on_github(text),
        }
    }

    fn with_authority(way: Way, rest: &str) -> Result<Self, &'static str> {
        let (authority, path) = rest.split_once('/').ok_or("names no repository")?;
        if authority.contains('@') {
            return Err("holds a user name or a password");
        }
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(number(port).ok_or("has a bad port")?)),
            None => (authority, None),
        };
        Self::build(way, host, port, path)
    }

    /// `owner/repo`.
    fn on_github(text: &str) -> Result<Self, &'static str> {
        let (owner, name) = text.split_once('/').ok_or("is not an address")?;
        let word = |t: &str| t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if name.contains('/') || !word(owner) {
            return Err("is not an address");
        }
        let name = name.strip_suffix(".git").unwrap_or(name);
        Self::build(Way::Https, GITHUB, None, &format!("{owner}/{name}.git"))
    }

    fn build(way: Way, host: &str, port: Option<u16>, path: &str) -> Result<Self, &'static str> {
        let host = host.to_ascii_lowercase();
        if !is_host(&host) {
            return Err("has no host name that is cloned from");
        }
        let path: Vec<String> =
            path.strip_suffix('/').unwrap_or(path).split('/').map(str::to_owned).collect();
        let good = path.iter().all(|segment| is_segment(segment)) && path.len() <= MAX_SEGMENTS;
        if !good || path.last().is_none_or(|name| name == ".git") {
            return Err("names no repository");
        }
        Ok(Self { way, host, port, path })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository's name, without `.git`.
    pub fn name(&self) -> &str {
        let last = self.path.last().map_or("", String::as_str);
        last.strip_suffix(".git").unwrap_or(last)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, path) = (&self.host, self.path.join("/"));
        let port = self.port.map(|p| format!(":{p}")).unwrap_or_default();
        match self.way {
            Way::Https => write!(f, "https://{host}{port}/{path}"),
            Way::Ssh => write!(f, "ssh://git@{host}{port}/{path}"),
            Way::Scp => write!(f, "git@{host}:{path}"),
        }
    }
}

/// A DNS name. Numbers are not names: this computer and its network stay out of reach.
fn is_host(text: &str) -> bool {
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|c: char| c.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && !numeric && last != "localhost"
}

/// One part of a path, without anything a server or a shell could read as more than a name.
fn is_segment(text: &str) -> bool {
    !matches!(text, "" | ".")
        && !text.contains("..")
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~+-".contains(&b))
}

fn is_name(text: &str) -> bool {
    text.parse::<BranchName>().is_ok()
}

fn is_folder(text: &str) -> bool {
    (1..=MAX_PATH_BYTES).contains(&text.len())
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
}

fn number(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(words: &[&str]) -> Result<Cloning, Refusal> {
        Cloning::parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn address(text: &str) -> String {
        parse(&[text]).unwrap_or_else(|e| panic!("{e}")).address.to_string()
    }

    #[test]
    fn addresses_are_written_in_one_way() {
        for (typed, written) in [
            ("https://github.com/acme/shop", "https://github.com/acme/shop"),
            ("https://GitHub.com/acme/shop.git/", "https://github.com/acme/shop.git"),
            ("https://git.example.org:8443/a/b/c.git", "https://git.example.org:8443/a/b/c.git"),
            ("https://git.sr.ht/~ada/lib", "https://git.sr.ht/~ada/lib"),
            ("git@github.com:acme/shop.git", "git@github.com:acme/shop.git"),
            ("ssh://git@example.org:2222/acme/shop", "ssh://git@example.org:2222/acme/shop"),
            ("acme/shop", "https://github.com/acme/shop.git"),
            ("acme/shop.js.git", "https://github.com/acme/shop.js.git"),
        ] {
            assert_eq!(address(typed), written);
        }
        assert_eq!(parse(&["acme/shop"]).unwrap().folder(), "shop");
        assert_eq!(parse(&["git@h.org:x/y.git", "vendor/y"]).unwrap().folder(), "vendor/y");
    }

    #[test]
    fn relay_19_20_what_is_no_such_address_is_refused() {
        for bad in [
            "",
            "file:///etc",
            "/srv/repo",
            "./repo",
            "../repo",
            "~/repo",
            "ext::sh -c id",
            "fd::3",
            "http://h.org/a/b",
            "git://h.org/a/b",
            "https://me@h.org/a/b",
            "https://me:pw@h.org/a/b",
            "https://h.org",
            "https://h.org/",
            "https://h.org/..",
            "https://h.org/a/../b",
            "https://h.org/a/%2e%2e",
            "https://h.org/a?x=1",
            "https://h.org/a#x",
            "https://h.org:0/a",
            "https://h.org:99999/a",
            "https://h.org:/a",
            "https://-h.org/a",
            "https://localhost/a/b",
            "https://x.localhost/a/b",
            "https://127.0.0.1/a/b",
            "https://[::1]/a/b",
            "https://2130706433/a/b",
            "https://h.org/-a/b",
            "https://h\u{43e}st.org/a/b",
            "https://h.org/a b",
            "https://h.org/a\nb",
            "https://h.org/.git",
            "ssh://h.org/a/b",
            "ssh://root@h.org/a/b",
            "ssh://git@-oProxyCommand=x/a",
            "ssh://git:pw@h.org/a",
            "me@h.org:a/b",
            "h.org:a/b",
            "git@h.org:/srv/x",
            "git@h.org:",
            "git@-oProxyCommand=x:a",
            "acme",
            "acme/shop/more",
            "acme/..",
            "a b/c",
        ] {
            let refusal = parse(&["--", bad]).map(|c| c.address.to_string()).unwrap_err();
            assert_eq!(refusal.exit_code, 65, "{bad:?}");
            assert!(refusal.text.starts_with("git clone: "), "{refusal}");
        }
    }

    #[test]
    fn flags_are_two() {
        let both = parse(&["--depth", "1", "-b", "v1.0", "acme/shop"]).unwrap();
        assert_eq!(both.flags(), ["--branch=v1.0", "--depth=1"]);
        for bad in [
            &["--depth", "0", "acme/shop"][..],
            &["--depth=-1", "acme/shop"],
            &["--branch", "-x", "acme/shop"],
            &["--branch=a..b", "acme/shop"],
            &["--recurse-submodules", "acme/shop"],
            &["--recurse-submodules=x", "acme/shop"],
            &["--upload-pack=x", "acme/shop"],
            &["-ux", "acme/shop"],
            &["-cx=y", "acme/shop"],
            &["--bare", "acme/shop"],
            &["--mirror", "acme/shop"],
            &["acme/shop", "a", "b"],
            &["acme/shop", ""],
            &["acme/shop", "a\nb"],
            &["--", "acme/shop", "-x"],
            &[],
        ] {
            assert_eq!(parse(bad).unwrap_err().exit_code, 65, "{bad:?}");
        }
        let text = parse(&["--recurse-submodules", "acme/shop"]).unwrap_err().text;
        assert!(text.contains("other repositories"), "{text}");
    }

    proptest! {
        #[test]
        fn what_is_rebuilt_parses_to_the_same_value(
            words in prop::collection::vec(
                "(--branch(=.{0,3})?|--depth(=[0-9]{0,2})?|-b|v1|1|acme/shop|(https://|ssh://git@|git@)?[a-z.]{1,6}[:/@][a-z./~:@%-]{0,9}|.{0,8})",
                0..5,
            )
        ) {
            if let Ok(cloning) = Cloning::parse(&words) {
                prop_assert_eq!(&Cloning::parse(&cloning.argv()).unwrap(), &cloning);
            }
        }

        /// Whatever was typed, git gets an address of a known kind and nothing it could take for
        /// an option, a path, a helper or a login.
        #[test]
        fn an_address_is_always_one(text in "(https://|ssh://|git@|file://|ext::|/)?.{0,20}|[a-z@:/.-]{0,20}") {
            if let Ok(cloning) = Cloning::parse(&["--".to_owned(), text]) {
                let written = cloning.address.to_string();
                let rest = ["https://", "ssh://git@", "git@"].iter().find_map(|s| written.strip_prefix(s));
                let rest = rest.unwrap_or_default();
                prop_assert!(rest.starts_with(|c: char| c.is_ascii_alphanumeric()), "{}", written);
                prop_assert!(!rest.contains('@') && !written.contains("::") && !written.contains(".."), "{}", written);
                prop_assert!(written.bytes().all(|b| b.is_ascii_graphic()), "{}", written);
            }
        }
    }
}
