//! Regular expressions as a browser's engine reads them, with an end to what they may cost.
//!
//! Files are written for that dialect: look-around and back references work, `\d`, `\w` and `\b` mean
//! ASCII, `.` leaves out the end of a line. A pattern may come from a file a box wrote, so it has a
//! size and a match a number of steps.

use fancy_regex::{Regex, RegexBuilder};
use std::fmt;

const LONGEST: usize = 4096;
const MOST_STEPS: usize = 1_000_000;
const LARGEST: usize = 1 << 20;

/// A regular expression that compiles. Two are equal when they are written the same.
#[derive(Clone)]
pub struct Pattern {
    source: String,
    flags: Flags,
    compiled: Regex,
}

/// What its letters say; `g` is for whoever replaces, `u` changes nothing here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("the pattern is longer than {LONGEST} bytes")]
    TooLong,
    #[error("the flag {0} is not one of g, i, m, s, u")]
    Flag(char),
    #[error("{0}")]
    Syntax(String),
}

impl Pattern {
    pub fn new(source: &str) -> Result<Self, BadPattern> {
        Self::with_flags(source, "")
    }

    /// Flags `g i m s u`, in any order.
    pub fn with_flags(source: &str, flags: &str) -> Result<Self, BadPattern> {
        if source.len() > LONGEST {
            return Err(BadPattern::TooLong);
        }
        let mut wanted = Flags::default();
        for flag in flags.chars() {
            match flag {
                'g' | 'u' => {}
                'i' => wanted.ignore_case = true,
                'm' => wanted.multi_line = true,
                's' => wanted.dot_all = true,
                other => return Err(BadPattern::Flag(other)),
            }
        }
        let compiled = RegexBuilder::new(&ascii_classes(source))
            .case_insensitive(wanted.ignore_case)
            .multi_line(wanted.multi_line)
            .dot_matches_new_line(wanted.dot_all)
            .backtrack_limit(MOST_STEPS)
            .delegate_size_limit(LARGEST)
            .delegate_dfa_size_limit(LARGEST)
            .build()
            .map_err(|error| BadPattern::Syntax(error.to_string()))?;
        Ok(Self { source: source.to_owned(), flags: wanted, compiled })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// A match that takes too many steps is none.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text).unwrap_or(false)
    }

    pub(crate) fn compiled(&self) -> &Regex {
        &self.compiled
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.flags == other.flags
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Lists are told apart by this text: a pattern must not be able to look like the end of itself.
        write!(f, "/{:?}/{:?}", self.source, self.flags)
    }
}

/// The same pattern with `\d`, `\w`, `\s`, `\b` and their opposites spelled out in ASCII; `\s` also
/// has the spaces a browser counts. `$` at the end of a pattern is the very end, as there.
fn ascii_classes(source: &str) -> String {
    const DIGIT: &str = "0-9";
    const WORD: &str = "A-Za-z0-9_";
    const SPACE: &str =
        r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
    let mut out = String::with_capacity(source.len());
    let mut in_class = false;
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('d') if in_class => out.push_str(DIGIT),
                Some('w') if in_class => out.push_str(WORD),
                Some('s') if in_class => out.push_str(SPACE),
                Some('b') if in_class => out.push_str(r"\x08"),
                Some('d') => out.push_str(&format!("[{DIGIT}]")),
                Some('w') => out.push_str(&format!("[{WORD}]")),
                Some('s') => out.push_str(&format!("[{SPACE}]")),
                Some('D') => out.push_str(&format!("[^{DIGIT}]")),
                Some('W') => out.push_str(&format!("[^{WORD}]")),
                Some('S') => out.push_str(&format!("[^{SPACE}]")),
                Some('b') => out.push_str(
                    "(?:(?<=[A-Za-z0-9_])(?![A-Za-z0-9_])|(?<![A-Za-z0-9_])(?=[A-Za-z0-9_]))",
                ),
                Some('B') => out.push_str(
                    "(?:(?<=[A-Za-z0-9_])(?=[A-Za-z0-9_])|(?<![A-Za-z0-9_])(?![A-Za-z0-9_]))",
                ),
                Some('/') => out.push('/'),
                Some('-') if in_class => out.push_str(r"\-"),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                let rest = letters.as_str();
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    letters = after.chars();
                }
                // Empty there matches nothing, and its opposite anything.
                if let Some(after) = letters.as_str().strip_prefix(']') {
                    letters = after.chars();
                    in_class = false;
                    let any = out.ends_with('^');
                    out.truncate(out.len() - if any { 2 } else { 1 });
                    out.push_str(if any { "(?s:.)" } else { "(?!)" });
                }
            }
            // There these are letters in a class; here they would nest or combine classes.
            '[' => out.push_str(r"\["),
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(letter);
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text)
    }

    /// Its text tells lists that a person agreed to from others.
    #[test]
    fn a_pattern_cannot_look_like_the_end_of_itself() {
        let flags = Flags { ignore_case: false, multi_line: false, dot_all: false };
        let glue = format!("a/{flags:?}, to: \"x\" }}, /b");
        let pattern = Pattern::new(&glue).unwrap();
        let shown = format!("{pattern:?}");
        assert!(!shown.contains("to: \"x\""), "{shown}");
    }

    #[test]
    fn classes_are_ascii_and_the_rest_is_as_people_know_it() {
        for (pattern, text, is) in [
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"\bready\b", "is ready.", true),
            (r"\bready\b", "already", false),
            (r"^\w+$", "é", false),
            (r"^\W$", "é", true),
            (r"^[^\d]$", "é", true),
            (r"^[\w-]+$", "a-b", true),
            (r"a\sb", "a\u{a0}b", true),
            (r"^.$", "é", true),
            (r"a.b", "a\nb", false),
            (r"(?<=id=)\d+", "id=7", true),
            (r"(a)\1", "aa", true),
            (r"(?<q>['\x22])x\k<q>", "'x'", true),
            (r"foo(?!bar)", "foobar", false),
            (r"[[]", "[", true),
            (r"[a&&b]", "&", true),
            (r"app\.localhost", "app.localhost", true),
            (r"http:\/\/x", "http://x", true),
            (r"[^]", "\n", true),
            (r"[]", "a", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} on {text}");
        }
        assert!(Pattern::with_flags("^é$", "i").unwrap().is_match("é"));
        assert!(Pattern::with_flags("READY", "gi").unwrap().is_match("ready"));
        assert!(Pattern::with_flags("^b$", "m").unwrap().is_match("a\nb"));
        assert!(Pattern::with_flags("a.b", "s").unwrap().is_match("a\nb"));
    }

    #[test]
    fn bad_ones_are_refused() {
        assert_eq!(Pattern::with_flags("a", "gy").unwrap_err(), BadPattern::Flag('y'));
        assert_eq!(Pattern::new(&"a".repeat(5000)).unwrap_err(), BadPattern::TooLong);
        for bad in ["(", "[", "*", "(?<n>a)(?<n>b)\\", "(((a{500}){500}){500}){500}"] {
            assert!(matches!(Pattern::new(bad), Err(BadPattern::Syntax(_))), "{bad}");
        }
    }

    #[test]
    fn a_costly_one_ends() {
        let begun = std::time::Instant::now();
        assert!(!matches(r"^(?=((a+)+))\1b(a|aa)+\2$", &"a".repeat(30_000)));
        assert!(!matches(r"(a*)*\1c", &"a".repeat(3_000)));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
