//! What a push changes, read from the start of its body before anything of it goes out.
//!
//! A push is a list of commands, each in a packet of its own, up to the first flush; the objects follow.
//! Whether a change is a fast-forward cannot be told from here: that is for the server's protection of
//! branches.

use super::PushRule;
use protocol::text::shortened;
use std::fmt;

/// So much of a body is looked at. A list of commands that is longer is refused.
pub const LONGEST: usize = 64 * 1024;

/// One ref that a push changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: String,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Create,
    Update,
    Delete,
}

/// What can be said after some bytes of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commands {
    /// The list is not complete yet.
    More,
    /// The whole list; none is what a client sends to find out whether it may push.
    All(Vec<Command>),
}

/// Why a push is refused. Texts hold a ref as the box sent it, made visible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushFault {
    #[error("the list of refs is longer than {} KiB", LONGEST / 1024)]
    TooLong,
    #[error("the list of refs cannot be read: {0}")]
    Malformed(&'static str),
    #[error("signed pushes are not let through: what is signed cannot be compared")]
    Signed,
    #[error("{}", shortened(.0, 200))]
    Ref(String),
    #[error("deleting {}", shortened(.0, 200))]
    Delete(String),
    #[error("creating {}", shortened(.0, 200))]
    Create(String),
}

/// Reads the commands of a push from the start of its body, decoded if it was compressed. Called again with
/// more bytes until it says something else than `More`; `ended` when there are no more.
pub fn read_commands(body: &[u8], ended: bool) -> Result<Commands, PushFault> {
    let mut commands = Vec::new();
    let mut at = 0;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        let Some((packet, length)) = packet(rest)? else {
            return match () {
                () if body.len() >= LONGEST => Err(PushFault::TooLong),
                () if ended => Err(PushFault::Malformed("it ends within the list")),
                () => Ok(Commands::More),
            };
        };
        if at + length > LONGEST {
            return Err(PushFault::TooLong);
        }
        at += length;
        match packet {
            Packet::Flush => return Ok(Commands::All(commands)),
            Packet::Line(line) => {
                if line.starts_with(b"push-cert") {
                    return Err(PushFault::Signed);
                }
                // Where a shallow clone ends; it changes nothing.
                if !line.starts_with(b"shallow ") {
                    commands.push(command(line)?);
                }
            }
        }
    }
}

enum Packet<'a> {
    Flush,
    Line(&'a [u8]),
}

/// The next packet and its length, if all of it is there.
fn packet(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, PushFault> {
    let Some(digits) = bytes.get(..4) else { return Ok(None) };
    let hex = |b: &u8| char::from(*b).to_digit(16);
    let mut length = 0;
    for digit in digits {
        let digit = hex(digit).ok_or(PushFault::Malformed("a packet has no length"))?;
        length = length * 16 + digit as usize;
    }
    match length {
        0 => Ok(Some((Packet::Flush, 4))),
        1..=4 => Err(PushFault::Malformed("a packet has no content")),
        _ => Ok(bytes.get(4..length).map(|line| (Packet::Line(line), length))),
    }
}

/// `old-oid SP new-oid SP ref[NUL capabilities]`.
fn command(line: &[u8]) -> Result<Command, PushFault> {
    let bad = PushFault::Malformed("a command is not two objects and a ref");
    let line = line.split(|b| *b == 0).next().unwrap_or_default();
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let text = std::str::from_utf8(line).map_err(|_| PushFault::Malformed("a ref is no UTF-8"))?;
    let mut parts = text.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(bad);
    };
    let object =
        |id: &str| matches!(id.len(), 40 | 64) && id.bytes().all(|b| b.is_ascii_hexdigit());
    if !object(old) || !object(new) || old.len() != new.len() || !is_ref(name) {
        return Err(bad);
    }
    let none = |id: &str| id.bytes().all(|b| b == b'0');
    let change = match (none(old), none(new)) {
        (_, true) => Change::Delete,
        (true, false) => Change::Create,
        (false, false) => Change::Update,
    };
    Ok(Command { name: name.to_owned(), change })
}

/// As git itself would take it, and nothing that could be read as another ref.
fn is_ref(name: &str) -> bool {
    let plain = |c: char| !c.is_control() && !" ~^:?*[\\\u{7f}".contains(c);
    let part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none()
    };
    name.starts_with("refs/")
        && name.chars().all(plain)
        && name.split('/').all(part)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
}

impl Default for PushRule {
    fn default() -> Self {
        Self { refs: None, allow_delete: false, allow_create: true }
    }
}

impl PushRule {
    /// The first change that is not allowed.
    pub fn check(&self, commands: &[Command]) -> Result<(), PushFault> {
        commands.iter().try_for_each(|command| self.check_one(command))
    }

    fn check_one(&self, command: &Command) -> Result<(), PushFault> {
        let name = &command.name;
        let fits = |text: &String| RefPattern::parse(text).is_ok_and(|pattern| pattern.fits(name));
        if self.refs.as_ref().is_some_and(|all| !all.iter().any(fits)) {
            return Err(PushFault::Ref(name.clone()));
        }
        match command.change {
            Change::Delete if !self.allow_delete => Err(PushFault::Delete(name.clone())),
            Change::Create if !self.allow_create => Err(PushFault::Create(name.clone())),
            _ => Ok(()),
        }
    }
}

/// Refs with stars: `*` is any letters but a slash, `**` any at all. A name that is no whole ref is a branch.
/// A star at the end is everything below, as branches have slashes in their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefPattern(String);

impl RefPattern {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let whole =
            if text.starts_with("refs/") { text.to_owned() } else { format!("refs/heads/{text}") };
        let sample = whole.replace("**", "x").replace('*', "x");
        if text.is_empty() || text.starts_with('/') || !is_ref(&sample) {
            return Err("must be a branch or a whole ref, with * for any letters: agentbox/*");
        }
        Ok(Self(whole))
    }

    pub fn fits(&self, name: &str) -> bool {
        let below = self.0.strip_suffix('*').filter(|rest| !rest.ends_with('*'));
        match below {
            Some(_) => glob(&format!("{}*", self.0), name),
            None => glob(&self.0, name),
        }
    }
}

impl fmt::Display for RefPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// In time that is bounded by the product of both lengths: patterns are people's, names are the box's.
fn glob(pattern: &str, name: &str) -> bool {
    let name = name.as_bytes();
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    let mut pattern = pattern.as_bytes();
    while let Some((first, rest)) = pattern.split_first() {
        let deep = *first == b'*' && rest.first() == Some(&b'*');
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match first {
                b'*' => {
                    let over = |b: u8| deep || b != b'/';
                    fits[at] || (at > 0 && next[at - 1] && over(name[at - 1]))
                }
                letter => at > 0 && fits[at - 1] && name[at - 1] == *letter,
            };
        }
        fits = next;
        pattern = if deep { &rest[1..] } else { rest };
    }
    fits[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn line(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn push(old: &str, new: &str, name: &str) -> String {
        line(&format!("{old} {new} {name}\0 report-status side-band-64k agent=git/2\n"))
            + "0000PACK…"
    }

    fn rule(refs: &[&str]) -> PushRule {
        let refs = refs.iter().map(|text| RefPattern::parse(text).unwrap().to_string()).collect();
        PushRule { refs: Some(refs), ..PushRule::default() }
    }

    fn check(rule: &PushRule, body: &str) -> Result<(), PushFault> {
        match read_commands(body.as_bytes(), true)? {
            Commands::All(all) => rule.check(&all),
            Commands::More => panic!("{body}"),
        }
    }

    #[test]
    fn egress_12_26_a_push_changes_what_its_rule_names() {
        let rule = rule(&["agentbox/*"]);
        assert_eq!(check(&rule, &push(OLD, NEW, "refs/heads/agentbox/x")), Ok(()));
        assert_eq!(check(&rule, &push(NONE, NEW, "refs/heads/agentbox/a/b")), Ok(()));
        let main = check(&rule, &push(OLD, NEW, "refs/heads/main")).unwrap_err();
        assert_eq!(main, PushFault::Ref("refs/heads/main".to_owned()));
        assert_eq!(main.to_string(), "refs/heads/main");
        let gone = check(&rule, &push(OLD, NONE, "refs/heads/agentbox/x")).unwrap_err();
        assert_eq!(gone, PushFault::Delete("refs/heads/agentbox/x".to_owned()));
        assert_eq!(check(&rule, "0000"), Ok(()));
        let tag = check(&rule, &push(NONE, NEW, "refs/tags/agentbox/x")).unwrap_err();
        assert_eq!(tag, PushFault::Ref("refs/tags/agentbox/x".to_owned()));
    }

    #[test]
    fn one_bad_command_is_enough() {
        let two = line(&format!("{OLD} {NEW} refs/heads/agentbox/x\0 report-status"))
            + &line(&format!("{OLD} {NEW} refs/heads/main"))
            + "0000";
        assert!(check(&rule(&["agentbox/*"]), &two).is_err());
        assert_eq!(check(&PushRule::default(), &two), Ok(()));
        let shallow = line(&format!("shallow {OLD}\n")) + &two;
        assert_eq!(check(&PushRule::default(), &shallow), Ok(()));
        let create = PushRule { allow_create: false, ..PushRule::default() };
        assert!(check(&create, &push(NONE, NEW, "refs/heads/a")).is_err());
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let cert = line("push-cert\0 report-status\n") + "0000";
        assert_eq!(read_commands(cert.as_bytes(), true), Err(PushFault::Signed));
        for bad in [
            "PACK",
            "0001",
            "0004",
            "00zz",
            "",
            "0008abcd0000",
            &push(OLD, NEW, "main"),
            &push(OLD, NEW, "refs/heads/a..b"),
            &push(OLD, NEW, "refs/heads//a"),
            &push(OLD, NEW, "refs/heads/a b"),
            &push(OLD, &NEW[1..], "refs/heads/a"),
        ] {
            assert!(read_commands(bad.as_bytes(), true).is_err(), "{bad}");
        }
        let long = line(&format!("{OLD} {NEW} refs/heads/a")).repeat(700);
        assert_eq!(read_commands(long.as_bytes(), false), Err(PushFault::TooLong));
    }

    #[test]
    fn refs_of_rules() {
        let fits = |pattern: &str, name: &str| RefPattern::parse(pattern).unwrap().fits(name);
        assert!(fits("main", "refs/heads/main") && !fits("main", "refs/heads/main2"));
        assert!(
            fits("agentbox/*", "refs/heads/agentbox/a/b")
                && !fits("agentbox/*", "refs/heads/agentboxx")
        );
        assert!(fits("*/wip", "refs/heads/a/wip") && !fits("*/wip", "refs/heads/a/b/wip"));
        assert!(fits("**/wip", "refs/heads/a/b/wip") && fits("refs/tags/v*", "refs/tags/v1.2"));
        for bad in ["", "/a", "a b", "a..b", "a?", "refs/"] {
            assert!(RefPattern::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_body_in_pieces_is_the_same_body(cut in 0usize..200) {
            let whole = push(OLD, NEW, "refs/heads/agentbox/x");
            let bytes = &whole.as_bytes()[..cut.min(whole.len())];
            let end = whole.find("0000PACK").unwrap() + 4;
            match read_commands(bytes, false).unwrap() {
                Commands::More => prop_assert!(bytes.len() < end),
                Commands::All(all) => prop_assert!(bytes.len() >= end && all.len() == 1),
            }
        }

        #[test]
        fn no_body_makes_it_fail_but_with_a_reason(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_commands(&body, true);
        }
    }
}
