//! What an agent's login prints: where the person goes, and the code they type there.
//!
//! It comes out of a box, so it may be anything. An address is shown as text and in one line for
//! scripts; it is one only when it can be nothing else.

use protocol::sessions::Agent;

const LONGEST: usize = 2000;
const LONGEST_CODE: usize = 24;

/// An address a person may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub url: String,
    pub host: String,
    /// The host is one the agent's company uses.
    pub known: bool,
}

/// The first address in what the login said.
pub fn address(said: &str, agent: Agent) -> Result<Address, &'static str> {
    let start = said.find("https://").ok_or("it named no https address")?;
    let rest = &said[start..];
    let end = rest.find(|c: char| c.is_whitespace() || c.is_control()).unwrap_or(rest.len());
    let url = &rest[..end];
    if url.len() > LONGEST {
        return Err("the address is longer than 2000 characters");
    }
    // Nor what a shell would take for more than text.
    let odd = |c: char| !c.is_ascii_graphic() || "\\\"<>`$();|'{}^".contains(c);
    if url.chars().any(odd) {
        return Err("the address has characters that no address has");
    }
    let authority = url["https://".len()..].split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.split_once(':').map_or(authority, |(host, _)| host).to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if host.is_empty() || authority.contains('@') || !host.chars().all(plain) {
        return Err("the address hides where it leads");
    }
    let of = |domain: &&str| {
        host == **domain || host.strip_suffix(*domain).is_some_and(|rest| rest.ends_with('.'))
    };
    let known = companies(agent).iter().any(of);
    Ok(Address { url: url.to_owned(), host, known })
}

/// Where these companies have people log in.
fn companies(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["claude.com", "claude.ai", "anthropic.com"],
        Agent::Codex => &["openai.com", "chatgpt.com"],
        Agent::Opencode => &["opencode.ai", "openai.com", "chatgpt.com", "github.com"],
    }
}

/// The code to type at the address, where there is one: `ABCD-12345`.
pub fn one_time_code(said: &str) -> Option<String> {
    let is_part = |part: &str| {
        part.len() >= 3 && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    let is_code = |word: &&str| {
        word.len() <= LONGEST_CODE
            && word.split_once('-').is_some_and(|(a, b)| is_part(a) && is_part(b))
    };
    let plain = without_colours(said);
    let lines = plain.lines().filter(|line| !line.contains("://"));
    lines.flat_map(str::split_whitespace).find(is_code).map(str::to_owned)
}

/// The text without what moves and colours it.
pub fn without_colours(said: &str) -> String {
    let mut text = String::with_capacity(said.len());
    let mut chars = said.chars();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            text.push(c);
        } else if chars.next() == Some('[') {
            let _ = chars.find(|c| ('@'..='~').contains(c));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = "Opening browser to sign in…\nIf the browser didn't open, visit: \
        https://claude.com/cai/oauth/authorize?code=true&state=VvQ-_x\nPaste code here if prompted > ";
    const CODEX: &str = "\nWelcome to Codex [v\x1b[90m0.169.0\x1b[0m]\n\n1. Open this link in your \
        browser and sign in to your account\n   \x1b[94mhttps://auth.openai.com/codex/device\x1b[0m\n\n\
        2. Enter this one-time code \x1b[90m(expires in 15 minutes)\x1b[0m\n   \x1b[94mABCD-12345\x1b[0m\n";
    const OPENCODE: &str = "\x1b[0m\n┌  Add credential\n│\n●  Go to: https://auth.openai.com/codex/device\n\
        │\n●  Enter code: ABCD-12345\n\x1b[?25l│\n◒  Waiting for authorization\x1b[999D\x1b[J";

    #[test]
    fn what_the_agents_print_is_understood() {
        let claude = address(CLAUDE, Agent::Claude).unwrap();
        assert_eq!(claude.url, "https://claude.com/cai/oauth/authorize?code=true&state=VvQ-_x");
        assert!(claude.known);
        assert_eq!(one_time_code(CLAUDE), None);
        for (said, agent) in [(CODEX, Agent::Codex), (OPENCODE, Agent::Opencode)] {
            let found = address(said, agent).unwrap();
            assert_eq!(found.url, "https://auth.openai.com/codex/device");
            assert!(found.known);
            assert_eq!(one_time_code(said).as_deref(), Some("ABCD-12345"));
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let long = format!("https://claude.com/{}", "a".repeat(LONGEST));
        for bad in [
            "http://claude.com/",
            "nothing",
            "https://",
            "https:///x",
            "https://claude.com@evil.example/",
            "https://claude.com\\.evil.example/",
            "https://claude.com%2f.evil.example/",
            "https://сlaude.com/",
            "https://claude.com/\u{202e}moc",
            &long,
        ] {
            assert!(address(bad, Agent::Claude).is_err(), "{bad}");
        }
        // What moves the cursor ends it.
        let cut = address("https://claude.com/a\x1b[2Jb", Agent::Claude).unwrap();
        assert_eq!(cut.url, "https://claude.com/a");
    }

    #[test]
    fn somebody_elses_host_is_seen() {
        for (url, known) in [
            ("https://claude.com/x", true),
            ("https://platform.claude.com:443/x", true),
            ("https://CLAUDE.com/x", true),
            ("https://notclaude.com/x", false),
            ("https://claude.com.evil.example/x", false),
            ("https://evil.example/?https://claude.com/", false),
            ("https://auth.openai.com/x", false),
        ] {
            assert_eq!(address(url, Agent::Claude).unwrap().known, known, "{url}");
        }
    }

    #[test]
    fn a_code_is_short_and_plain() {
        assert_eq!(one_time_code("https://x.example/ABCD-1234"), None);
        assert_eq!(one_time_code(&format!("{}-1234", "A".repeat(40))), None);
        assert_eq!(one_time_code("well-known (abcd-1234)"), None);
        assert_eq!(one_time_code("type WXYZ-1234 there").as_deref(), Some("WXYZ-1234"));
    }
}
