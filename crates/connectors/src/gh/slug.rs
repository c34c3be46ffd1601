//! Which repository, and which pull request of it.
//!
//! The repository comes from the address of the project's remote, never from a box. A box's pull
//! request reference is a number, a branch or the address of a pull request of that repository; the
//! address becomes its number, since `gh` would take the repository from it.

use crate::names::BranchName;
use protocol::text::visible;
use std::fmt;

pub const GITHUB_COM: &str = "github.com";

/// `[HOST/]OWNER/NAME`, as `gh` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoSlug {
    host: String,
    owner: String,
    name: String,
}

impl RepoSlug {
    /// The repository a remote's address leads to. None for a path of this computer and for
    /// anything else that is not `host/owner/name`. A port stays when it is the port of the web
    /// server; the one of an SSH server says nothing about it.
    pub fn from_url(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("https" | "http", rest)) => rest.split_once('/')?,
            Some(("ssh" | "git+ssh" | "git", rest)) => {
                let (host, path) = rest.split_once('/')?;
                (without_port(host), path)
            }
            Some(_) => return None,
            // user@host:owner/name; a path has no colon before its first slash
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
        let host = match host.as_str() {
            // GitHub's SSH server at the port of the web.
            "ssh.github.com" => GITHUB_COM.to_owned(),
            host => host.strip_prefix("www.").unwrap_or(host).to_owned(),
        };
        let path = path.trim_start_matches('/').trim_end_matches('/');
        let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
        Self::new(&host, owner, name)
    }

    fn new(host: &str, owner: &str, name: &str) -> Option<Self> {
        let good = is_host(host) && is_segment(owner) && is_segment(name);
        good.then(|| Self { host: host.to_owned(), owner: owner.to_owned(), name: name.to_owned() })
    }

    /// With the port, when the address had one.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_github_com(&self) -> bool {
        self.host == GITHUB_COM
    }

    /// GitHub takes owners and names in any case.
    pub fn is(&self, owner: &str, name: &str) -> bool {
        self.owner.eq_ignore_ascii_case(owner) && self.name.eq_ignore_ascii_case(name)
    }

    /// For people: always with the host.
    pub fn shown(&self) -> String {
        format!("{}/{}/{}", self.host, self.owner, self.name)
    }
}

impl fmt::Display for RepoSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, owner, name } = self;
        if self.is_github_com() {
            write!(f, "{owner}/{name}")
        } else {
            write!(f, "{host}/{owner}/{name}")
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "443"));
    let label = |l: &str| {
        !l.is_empty()
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !l.starts_with('-')
    };
    name.len() <= 253 && name.split('.').all(label) && port.parse::<u16>().is_ok_and(|p| p > 0)
}

fn is_segment(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && !matches!(text, "." | "..")
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// A branch, of this repository or of a fork's owner: `branch` or `owner:branch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub owner: Option<String>,
    pub branch: BranchName,
}

impl Head {
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, branch) = match text.split_once(':') {
            Some((owner, branch)) => (Some(owner), branch),
            None => (None, text),
        };
        let good = owner.is_none_or(is_segment) && super::is_branch(branch);
        let branch = branch.parse().ok().filter(|_| good)?;
        Some(Self { owner: owner.map(str::to_owned), branch })
    }
}

impl From<BranchName> for Head {
    fn from(branch: BranchName) -> Self {
        Self { owner: None, branch }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "{owner}:{}", self.branch),
            None => write!(f, "{}", self.branch),
        }
    }
}

/// A pull request of the box's own repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrRef {
    Number(u64),
    Branch(Head),
}

impl PrRef {
    /// The text of the error says what is wrong with it.
    pub fn parse(text: &str, repo: &RepoSlug) -> Result<Self, String> {
        if let Some(number) = number(text.strip_prefix('#').unwrap_or(text)) {
            return Ok(Self::Number(number));
        }
        if text.starts_with("https://") || text.starts_with("http://") {
            return in_address(text, repo).map(Self::Number);
        }
        let head = text.parse::<BranchName>().ok().map(Head::from);
        let head = head.ok_or_else(|| {
            format!(
                "'{}' is no pull request: give its number, its branch or its address.",
                visible(text)
            )
        })?;
        Self::of(head)
    }

    /// The pull request of a branch. `gh` looks for a number first, with signs and leading zeros,
    /// also after a `#`, and would take another pull request than the branch's.
    pub fn of(head: Head) -> Result<Self, String> {
        let name = head.branch.as_str();
        let last = name.rsplit('#').next().unwrap_or(name);
        let digits = last.strip_prefix('+').unwrap_or(last);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            let name = visible(name);
            return Err(format!(
                "branch '{name}' would be read as a number; give the pull request's number."
            ));
        }
        Ok(Self::Branch(head))
    }
}

impl fmt::Display for PrRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrRef::Number(number) => write!(f, "{number}"),
            PrRef::Branch(head) => write!(f, "{head}"),
        }
    }
}

pub(super) fn number(text: &str) -> Option<u64> {
    let good = (1..=10).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_digit())
        && !text.starts_with('0');
    text.parse().ok().filter(|_| good)
}

fn in_address(text: &str, repo: &RepoSlug) -> Result<u64, String> {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let parts: Vec<&str> = rest.strip_suffix('/').unwrap_or(rest).split('/').collect();
    let [host, owner, name, "pull", n] = parts[..] else {
        return Err(format!("'{}' is no address of a pull request.", visible(text)));
    };
    let host = host.to_ascii_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    if host != repo.host || !repo.is(owner, name) {
        let text = visible(text);
        return Err(format!(
            "'{text}' is in another repository; this box works on {}.",
            repo.shown()
        ));
    }
    number(n).ok_or_else(|| format!("'{}' is no pull request number.", visible(n)))
}
