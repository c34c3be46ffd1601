//! Masks what looks like a credential in the output of a host program.

const MASK: &str = "[redacted]";

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
            let next = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    out
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
    fn user_information_leaves_urls() {
        let text = "fatal: https://x-access-token:hunter2@github.com/o/r.git failed";
        assert_eq!(redact(text), "fatal: https://[redacted]@github.com/o/r.git failed");
        assert_eq!(redact("see https://h/x@y and a@b"), "see https://h/x@y and a@b");
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
