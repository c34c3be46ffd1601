//! Masks credentials in the output of a host program: those it was given, and what looks like one.

use crate::Value;
use std::ops::Range;

const MASK: &str = "[redacted]";
/// A shorter value would be found in ordinary words, and masking those would tell it.
const LEAST: usize = 6;

/// Prefixes that announce a token, and how many characters must follow for it to be one.
const TOKENS: &[(&str, usize)] = &[
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 12),
    ("lin_api_", 12),
    ("ntn_", 16),
    ("secret_", 24),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("sk-ant-", 16),
];

/// The text with token-shaped words, bearer headers and user information in URLs masked.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((kept, skipped)) = secret_at(rest, out.chars().next_back()) {
            out.push_str(kept);
            out.push_str(MASK);
            rest = &rest[skipped..];
        } else {
            // Programs print megabytes, and nearly all of it is none of our business.
            let next = rest.bytes().skip(1).position(may_begin).map_or(rest.len(), |at| at + 1);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    out
}

/// The first bytes of all that is looked for. None is part of another character.
fn may_begin(byte: u8) -> bool {
    matches!(byte, b'g' | b'l' | b'n' | b's' | b'x' | b'b' | b'B' | b':')
}

/// The text without these values, and then without what looks like a credential.
pub fn redact_values(text: &str, values: &[&Value]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for found in places(text, values) {
        out.push_str(&text[at..found.start]);
        out.push_str(MASK);
        at = found.end;
    }
    out.push_str(&text[at..]);
    redact(&out)
}

/// Where the values stand, in order and apart. Two that overlap are one place: masking one after the
/// other would leave the rest of the second.
fn places(text: &str, values: &[&Value]) -> Vec<Range<usize>> {
    let long = values.iter().map(|v| v.expose()).filter(|v| v.chars().count() >= LEAST);
    let mut all: Vec<_> = long.flat_map(|value| occurrences(text, value)).collect();
    all.sort_by_key(|r| r.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for next in all {
        match apart.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => apart.push(next),
        }
    }
    apart
}

/// Every place of a value, also where it overlaps itself.
fn occurrences(text: &str, value: &str) -> Vec<Range<usize>> {
    let step = value.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(value) {
        found.push(from + at..from + at + value.len());
        from += at + step;
    }
    found
}

/// What to keep before the mask and how many bytes to leave out, when a secret starts here.
fn secret_at(text: &str, before: Option<char>) -> Option<(&'static str, usize)> {
    let at_word = !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if at_word {
        for (prefix, least) in TOKENS {
            if let Some(tail) = text.strip_prefix(prefix) {
                let len = word_len(tail);
                if len >= *least {
                    return Some(("", prefix.len() + len));
                }
            }
        }
        if text.len() > 7 && text.is_char_boundary(7) && text[..7].eq_ignore_ascii_case("bearer ") {
            let len = text[7..].find(char::is_whitespace).unwrap_or(text.len() - 7);
            return (len >= 8).then_some(("Bearer ", 7 + len));
        }
    }
    let tail = text.strip_prefix("://")?;
    let end = tail.find(|c: char| c.is_whitespace() || "/?#'\"".contains(c)).unwrap_or(tail.len());
    let at = tail[..end].rfind('@')?;
    Some(("://", 3 + at))
}

fn word_len(text: &str) -> usize {
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_60_tokens_are_masked() {
        let text = "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 ok";
        assert_eq!(redact(text), "token [redacted] ok");
        assert_eq!(redact("Authorization: Bearer abc.def.ghi"), "Authorization: Bearer [redacted]");
    }

    #[test]
    fn every_shape_begins_where_one_is_looked_for() {
        let all = TOKENS.iter().map(|(prefix, _)| *prefix).chain(["bearer ", "Bearer ", "://"]);
        for prefix in all {
            assert!(prefix.bytes().next().is_some_and(may_begin), "{prefix}");
            let secret = format!("ü é{prefix}{} .", "x1".repeat(20));
            assert!(
                redact(&secret.replace("é", " ")).contains(MASK) || prefix == "://",
                "{secret}"
            );
        }
    }

    #[test]
    fn user_information_leaves_urls() {
        let text = "fatal: https://x-access-token:hunter2@github.com/o/r.git failed";
        assert_eq!(redact(text), "fatal: https://[redacted]@github.com/o/r.git failed");
        assert_eq!(redact("see https://h/x@y and a@b"), "see https://h/x@y and a@b");
    }

    fn masked(text: &str, values: &[&str]) -> String {
        let values: Vec<_> = values.iter().map(|v| Value::new((*v).into())).collect();
        redact_values(text, &values.iter().collect::<Vec<_>>())
    }

    #[test]
    fn given_values_are_masked_whatever_they_look_like() {
        assert_eq!(masked("a=hunter2!, b=hunter2!.", &["hunter2!"]), "a=[redacted], b=[redacted].");
        assert_eq!(masked("xxabcdefghixx", &["abcdef", "defghi"]), "xx[redacted]xx");
        assert_eq!(masked("abcabcabc.", &["abcabc"]), "[redacted].");
        assert_eq!(masked("päßwörtä ✓", &["päßwört"]), "[redacted]ä ✓");
        assert_eq!(masked("the other", &["", "the", "other"]), "the other");
    }

    #[test]
    fn relay_19_60_given_values_and_token_shapes_are_masked_together() {
        let said = "login with hunter22 as https://me:hunter22@h/ Bearer hunter22 ghp_abcdefghijklmnopqrst";
        let masked = masked(said, &["hunter22"]);
        assert_eq!(
            masked,
            "login with [redacted] as https://[redacted]@h/ Bearer [redacted] [redacted]"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_value_survives(
            before in "[a-c]{0,12}",
            values in proptest::collection::vec("[a-c]{6,9}", 1..4),
            after in "[a-c]{0,12}",
        ) {
            let text = format!("{before}{}{after}", values.concat());
            let given: Vec<&str> = values.iter().map(String::as_str).collect();
            let masked = masked(&text, &given);
            for value in &given {
                proptest::prop_assert!(!masked.contains(value), "{text} became {masked}");
            }
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in
            ["secret_santa list", "lin_api_ docs", "übergh_p ✓ bearer", "To /tmp/remote.git\n"]
        {
            assert_eq!(redact(text), text);
        }
    }
}
