//! `agentbox-askpass <question>`: what git asks for a user and a password, in a box that has neither.
//!
//! Where the policy puts a credential into git's requests, git gets a placeholder to send, so that it
//! sends anything at all; the proxy puts the real one in its place. Whether that is so is asked at the
//! moment git asks: a policy that changes needs no new shell. Everywhere else the answer is empty, and
//! git fails as it would without a credential.

use super::client::{self, quoted};
use protocol::ctl::paths;
use protocol::egress::inside::{SHIM, Shim};
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub fn is_called(name: &OsStr) -> bool {
    Path::new(name).file_name() == Path::new(paths::ASKPASS).file_name()
}

pub fn run(args: &[OsString]) -> i32 {
    let question = args.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let answer = Question::read(&question).and_then(|question| question.answer());
    crate::say(&format!("{}\n", answer.unwrap_or_default()));
    protocol::exit::OK
}

/// `Username for 'https://github.com': `, `Password for 'https://me@github.com': `.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    password: bool,
    host: String,
}

impl Question {
    fn read(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let password = lower.contains("password");
        if !password && !lower.contains("username") {
            return None;
        }
        let (_, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '\'', '"', ' ']).next()?;
        let host = authority.rsplit('@').next().filter(|host| !host.is_empty())?;
        Some(Self { password, host: host.to_owned() })
    }

    fn answer(&self) -> Option<String> {
        let answer = client::get(&format!("{SHIM}?host={}", quoted(&self.host))).ok()?;
        if answer.status != 200 {
            return None;
        }
        let shim: Shim = serde_json::from_slice(&answer.body).ok()?;
        let said = if self.password { shim.password } else { shim.username };
        (!said.chars().any(char::is_control)).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_questions_are_understood() {
        let read = |text: &str| Question::read(text).map(|q| (q.password, q.host));
        let host = |password, host: &str| Some((password, host.to_owned()));
        assert_eq!(read("Username for 'https://github.com': "), host(false, "github.com"));
        assert_eq!(read("Password for 'https://x@git.ex:8443/a/b': "), host(true, "git.ex:8443"));
        assert_eq!(read("PASSWORD for \"https://a@b@c\""), host(true, "c"));
        for other in
            ["", "Enter passphrase for key '/x': ", "Username: ", "Username for 'https://'"]
        {
            assert_eq!(read(other), None, "{other}");
        }
        assert!(is_called(OsStr::new("/usr/local/bin/agentbox-askpass")));
        assert!(!is_called(OsStr::new("agentbox-ctl")));
    }
}
