//! A command line by a table: flags known by their exact spelling, values checked, nothing else.
//!
//! Accepted: `--name value`, `--name=value`, `-x value`. Refused, because two parsers may read them
//! differently: clusters (`-dHmain`), glued short values (`-Hmain`), abbreviations, a flag given
//! twice. [`Parsed::argv`] writes the value back in one form only, `--name=value` … `--`
//! positionals, so what the checker saw is what the host program sees.

use crate::refusal::Refusal;
use protocol::rpc::{MAX_ARG_BYTES, MAX_ARGS, MAX_ARGS_BYTES};
use protocol::text::visible;

/// One command's grammar.
#[derive(Debug)]
pub struct Grammar {
    /// What a refusal starts with: `gh pr create`.
    pub surface: &'static str,
    pub flags: &'static [Flag],
    /// Flags that are known and refused, with the reason.
    pub refused: &'static [Refused],
    pub positionals: Positionals,
}

#[derive(Debug)]
pub struct Flag {
    /// `--title`.
    pub long: &'static str,
    /// `-t`.
    pub short: Option<&'static str>,
    pub value: Value,
    /// May be given more than once.
    pub repeats: bool,
}

/// Flags that would reach further than a box may, in any spelling.
#[derive(Debug)]
pub struct Refused {
    pub spellings: &'static [&'static str],
    /// “reads a file of the host”.
    pub why: &'static str,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    None,
    Text,
    OneOf(&'static [&'static str]),
    Number(u32, u32),
    /// Anything the function takes; the text says what that is: “a date like 2026-01-31”.
    Checked(fn(&str) -> bool, &'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct Positionals {
    pub least: usize,
    pub most: usize,
    /// “a pull request number, branch or address”.
    pub what: &'static str,
}

impl Positionals {
    pub const NONE: Positionals = Positionals { least: 0, most: 0, what: "no arguments" };
}

impl Flag {
    pub const fn plain(long: &'static str, short: Option<&'static str>) -> Self {
        Self { long, short, value: Value::None, repeats: false }
    }

    pub const fn text(long: &'static str, short: Option<&'static str>) -> Self {
        Self { long, short, value: Value::Text, repeats: false }
    }

    pub const fn with(long: &'static str, short: Option<&'static str>, value: Value) -> Self {
        Self { long, short, value, repeats: false }
    }

    #[must_use]
    pub const fn repeating(self) -> Self {
        Self { repeats: true, ..self }
    }

    fn is_named(&self, name: &str) -> bool {
        name == self.long || Some(name) == self.short
    }
}

/// A command line that fits its grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// By long name, in the order given.
    flags: Vec<(&'static str, Option<String>)>,
    pub positionals: Vec<String>,
}

impl Grammar {
    pub fn parse(&'static self, args: &[String]) -> Result<Parsed, Refusal> {
        check_size(self.surface, args)?;
        let mut parsed = Parsed::default();
        let mut words = args.iter();
        let mut flags_ended = false;
        while let Some(word) = words.next() {
            if flags_ended || !word.starts_with('-') || word == "-" {
                parsed.positionals.push(word.clone());
            } else if word == "--" {
                flags_ended = true;
            } else {
                let (flag, glued) = self.flag(word)?;
                let value =
                    match (flag.value, glued) {
                        (Value::None, None) => None,
                        (Value::None, Some(_)) => {
                            return Err(self.refuse(format!("'{}' takes no value.", flag.long)));
                        }
                        (_, Some(value)) => Some(value.to_owned()),
                        (_, None) => Some(words.next().cloned().ok_or_else(|| {
                            self.refuse(format!("'{}' needs a value.", flag.long))
                        })?),
                    };
                self.take(&mut parsed, flag, value)?;
            }
        }
        let Positionals { least, most, what } = self.positionals;
        match parsed.positionals.get(most) {
            Some(extra) => {
                let text = format!("unexpected argument '{}'; {what} expected.", visible(extra));
                Err(self.refuse(text))
            }
            None if parsed.positionals.len() < least => {
                Err(self.refuse(format!("{what} expected.")))
            }
            None => Ok(parsed),
        }
    }

    /// The flag a word names, and the value glued to it by `=`.
    fn flag<'w>(&'static self, word: &'w str) -> Result<(&'static Flag, Option<&'w str>), Refusal> {
        let (name, value) = match word.split_once('=') {
            // Programs differ on whether -x=v means v or =v.
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        if let Some(flag) = self.flags.iter().find(|f| f.is_named(name)) {
            return Ok((flag, value));
        }
        if let Some(refused) = self.refused_as(word) {
            return Err(self.refuse(format!(
                "'{}' is refused: it {}.",
                visible(name),
                refused.why
            )));
        }
        Err(self.refuse(format!("unsupported flag '{}'. {}", visible(word), self.allowed())))
    }

    fn refused_as(&self, word: &str) -> Option<&Refused> {
        let matches = |spelling: &&str| match spelling.strip_prefix("--") {
            Some(_) => word == *spelling || word.starts_with(&format!("{spelling}=")),
            None => word.starts_with(*spelling) && !word.starts_with("--"),
        };
        self.refused.iter().find(|r| r.spellings.iter().any(&matches))
    }

    fn take(
        &self,
        parsed: &mut Parsed,
        flag: &'static Flag,
        value: Option<String>,
    ) -> Result<(), Refusal> {
        if !flag.repeats && parsed.has(flag.long) {
            return Err(self.refuse(format!("'{}' was given twice. Give it once.", flag.long)));
        }
        if let Some(value) = &value {
            let bad = |wanted: String| {
                self.refuse(format!("'{}' takes {wanted}, not '{}'.", flag.long, visible(value)))
            };
            if value.contains('\0') {
                return Err(bad("text".into()));
            }
            match flag.value {
                Value::OneOf(all) if !all.contains(&value.as_str()) => {
                    return Err(bad(format!("one of {}", all.join(", "))));
                }
                Value::Number(least, most) => {
                    let plain = value.bytes().all(|b| b.is_ascii_digit());
                    let number =
                        value.parse::<u32>().ok().filter(|n| plain && (least..=most).contains(n));
                    number.ok_or_else(|| bad(format!("a number from {least} to {most}")))?;
                }
                Value::Checked(fits, what) if !fits(value) => return Err(bad(what.to_owned())),
                _ => {}
            }
        }
        parsed.flags.push((flag.long, value));
        Ok(())
    }

    pub fn refuse(&self, why: impl AsRef<str>) -> Refusal {
        Refusal::rule(self.surface, why)
    }

    fn allowed(&self) -> String {
        if self.flags.is_empty() {
            return "It takes no flags.".to_owned();
        }
        let spelled = self.flags.iter().map(|f| match f.short {
            Some(short) => format!("{}/{short}", f.long),
            None => f.long.to_owned(),
        });
        format!("Allowed: {}.", spelled.collect::<Vec<_>>().join(", "))
    }
}

impl Parsed {
    pub fn has(&self, long: &str) -> bool {
        self.flags.iter().any(|(name, _)| str::eq(name, long))
    }

    /// The value of a flag that takes one.
    pub fn value(&self, long: &str) -> Option<&str> {
        self.flags.iter().find(|(name, _)| str::eq(name, long)).and_then(|(_, v)| v.as_deref())
    }

    pub fn values<'s>(&'s self, long: &'static str) -> impl Iterator<Item = &'s str> {
        self.flags
            .iter()
            .filter(move |(name, _)| str::eq(name, long))
            .filter_map(|(_, v)| v.as_deref())
    }

    /// Sets a flag the box did not, or sets it anew.
    pub fn set(&mut self, long: &'static str, value: Option<String>) {
        self.flags.retain(|(name, _)| !str::eq(name, long));
        self.flags.push((long, value));
    }

    /// Takes a flag out; its value.
    pub fn remove(&mut self, long: &str) -> Option<String> {
        let at = self.flags.iter().position(|(name, _)| str::eq(name, long))?;
        self.flags.remove(at).1
    }

    /// The one form host programs get: `--name=value` …, `--`, positionals.
    pub fn argv(&self) -> Vec<String> {
        let flag = |(name, value): &(&str, Option<String>)| match value {
            Some(value) => format!("{name}={value}"),
            None => (*name).to_owned(),
        };
        let mut argv: Vec<String> = self.flags.iter().map(flag).collect();
        if !self.positionals.is_empty() {
            argv.push("--".to_owned());
            argv.extend(self.positionals.iter().cloned());
        }
        argv
    }
}

/// Bounds on a whole command line, whatever its grammar.
pub fn check_size(surface: &str, args: &[String]) -> Result<(), Refusal> {
    if args.len() > MAX_ARGS {
        let text = format!("{} arguments are too many; at most {MAX_ARGS} are taken.", args.len());
        return Err(Refusal::shape(surface, text));
    }
    if args.iter().any(|a| a.contains('\0')) {
        return Err(Refusal::shape(surface, "an argument holds a byte no program can be given."));
    }
    let all: usize = args.iter().map(String::len).sum();
    if all > MAX_ARGS_BYTES || args.iter().any(|a| a.len() > MAX_ARG_BYTES) {
        let text = format!(
            "{all} bytes of arguments are too many; at most {MAX_ARG_BYTES} each and {MAX_ARGS_BYTES} in all are taken."
        );
        return Err(Refusal::shape(surface, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static SAMPLE: Grammar = Grammar {
        surface: "gh pr sample",
        flags: &[
            Flag::text("--title", Some("-t")),
            Flag::plain("--draft", Some("-d")),
            Flag::with("--state", None, Value::OneOf(&["open", "closed"])),
            Flag::with("--limit", Some("-L"), Value::Number(1, 200)),
            Flag::text("--label", Some("-l")).repeating(),
        ],
        refused: &[Refused { spellings: &["--body-file", "-F"], why: "reads a file of the host" }],
        positionals: Positionals { least: 0, most: 1, what: "at most one reference" },
    };

    fn parse(words: &[&str]) -> Result<Parsed, Refusal> {
        SAMPLE.parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn flags_in_every_accepted_form() {
        let parsed = parse(&["-t", "a b", "--draft", "--limit=5", "7", "-l", "x", "--label", "y"]);
        assert_eq!(
            parsed.unwrap().argv(),
            ["--title=a b", "--draft", "--limit=5", "--label=x", "--label=y", "--", "7"]
        );
        // The next word is the value, whatever it looks like.
        assert_eq!(parse(&["-t", "--draft"]).unwrap().argv(), ["--title=--draft"]);
        assert_eq!(parse(&["--", "-x"]).unwrap().argv(), ["--", "-x"]);
    }

    #[test]
    fn relay_a10_what_two_parsers_could_read_differently_is_refused() {
        for words in [
            &["-dtx"][..],
            &["-tx"],
            &["-t=x"],
            &["--titl", "x"],
            &["--draft=true"],
            &["--draft", "--draft"],
            &["--title", "a", "-t", "b"],
            &["--title"],
            &["--TITLE", "x"],
            &["a", "b"],
            &["--state", "OPEN"],
            &["--limit", "0"],
            &["--limit", "+5"],
            &["--limit", "201"],
        ] {
            let refusal = parse(words).unwrap_err();
            assert_eq!(refusal.exit_code, 65, "{words:?}");
            assert!(refusal.text.starts_with("gh pr sample: "), "{refusal}");
        }
    }

    #[test]
    fn what_no_program_can_be_given_has_no_shape() {
        assert_eq!(parse(&["-t", "a\0b"]).unwrap_err().exit_code, 64);
    }

    #[test]
    fn refused_flags_say_why_in_every_spelling() {
        for words in
            [&["--body-file", "x"][..], &["--body-file=x"], &["-F/etc/passwd"], &["-F", "x"]]
        {
            let text = parse(words).unwrap_err().text;
            assert!(text.contains("reads a file of the host"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_rebuilt_parses_to_the_same_value(
            words in prop::collection::vec("(--?(title|draft|state|limit|label|t|d|L|l)(=.{0,4})?|open|5|--|.{0,6})", 0..8)
        ) {
            if let Ok(parsed) = SAMPLE.parse(&words) {
                prop_assert_eq!(SAMPLE.parse(&parsed.argv()).unwrap(), parsed);
            }
        }

        #[test]
        fn a_refusal_is_one_line(words in prop::collection::vec(".{0,12}", 0..4)) {
            if let Err(refusal) = SAMPLE.parse(&words) {
                prop_assert!(!refusal.text.chars().any(char::is_control));
            }
        }
    }
}
