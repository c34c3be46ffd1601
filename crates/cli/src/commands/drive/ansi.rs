//! Colours of a terminal that somebody else wrote, and nothing else of it.

use protocol::text::visible;

/// Ends every colour.
pub const PLAIN: &str = "\x1b[0m";

/// The text with its colours; every other control sequence is made visible.
pub fn colours_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&visible(&rest[..at]));
        rest = &rest[at..];
        let length = colour(rest);
        match length {
            Some(length) => out.push_str(&rest[..length]),
            None => out.push_str(&visible("\x1b")),
        }
        rest = &rest[length.unwrap_or(1)..];
    }
    out.push_str(&visible(rest));
    out
}

/// How long the colour is that the text begins with: `ESC [ numbers m`.
fn colour(text: &str) -> Option<usize> {
    const LONGEST: usize = 40;
    let numbers = text.strip_prefix("\x1b[")?;
    let end =
        numbers.bytes().take(LONGEST).position(|b| !matches!(b, b'0'..=b'9' | b';' | b':'))?;
    (numbers.as_bytes()[end] == b'm').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_pass() {
        assert_eq!(colours_only("\x1b[1;38:5:2mx\x1b[m"), "\x1b[1;38:5:2mx\x1b[m");
        for bad in ["\x1b[2J", "\x1b]8;;http://x\x1b\\", "\x1bc", "\x1b[", "\x1b[?25l", "\u{9b}31m"]
        {
            let shown = colours_only(bad);
            assert!(!shown.contains('\x1b') && !shown.contains('\u{9b}'), "{shown:?}");
        }
    }
}
