//! Untrusted text made fit to be read by a person.
//!
//! A box chooses its commit subjects, branch names and arguments. Whatever of those reaches a
//! screen passes through [`visible`]: nothing it contains can move a cursor, hide, reorder or end
//! the line it stands in.

/// A letter may carry so many combining marks; more would cover the lines around it.
const MAX_MARKS: usize = 4;

/// Makes control, bidirectional and zero-width characters visible, and combining marks that are too
/// many for one letter. Nothing is cut, so a hidden tail is impossible.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_combining(c) { marks + 1 } else { 0 };
        match c {
            '\n' => out.push('⏎'),
            '\t' => out.push(' '),
            c if (c as u32) < 0x20 || (0x7f..=0x9f).contains(&(c as u32)) => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if is_invisible(c) || marks > MAX_MARKS => {
                out.push_str(&format!("⟨U+{:04X}⟩", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

/// JSON in which no character can hide, move a cursor or reorder a line: such characters are escaped, so
/// that whoever parses it gets the very same values.
pub fn visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Below that, JSON itself has escaped what stands in a string.
        if (c as u32) >= 0x7f && (c.is_control() || is_invisible(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// At most `most` characters, made visible; what is left out is counted, never silently gone.
pub fn shortened(text: &str, most: usize) -> String {
    let Some((at, _)) = text.char_indices().nth(most) else { return visible(text) };
    let more = text[at..].chars().count();
    format!("{}… ({more} more characters)", visible(&text[..at]))
}

/// An argument as a shell would need it typed, made visible first: what a person reads in a
/// question can be told apart word by word.
pub fn quoted(arg: &str) -> String {
    let shown = visible(arg);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=@+,%^".contains(&b);
    if !shown.is_empty() && shown.bytes().all(plain) {
        return shown;
    }
    format!("'{}'", shown.replace('\'', "'\\''"))
}

/// A whole command line, each word [`quoted`].
pub fn command_line<S: AsRef<str>>(argv: &[S]) -> String {
    argv.iter().map(|a| quoted(a.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Without line ends, control, bidirectional and zero-width characters: for a name a person typed.
pub fn plain(text: &str) -> String {
    let harmless = |c: &char| !c.is_control() && !is_invisible(*c);
    text.chars().filter(harmless).collect::<String>().trim().to_owned()
}

fn is_combining(c: char) -> bool {
    matches!(c as u32, 0x0300..=0x036f | 0x0483..=0x0489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

fn is_invisible(c: char) -> bool {
    matches!(c as u32,
        0x00ad | 0x034f | 0x061c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
        | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0x13430..=0x1343f | 0x1bca0..=0x1bca3
        | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// “3.4 MB”.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut tenths = bytes.saturating_mul(10);
    while tenths >= 9995 && unit < 4 {
        tenths = (tenths + 500) / 1000;
        unit += 1;
    }
    let (whole, rest) = (tenths / 10, tenths % 10);
    if unit == 0 { format!("{bytes} B") } else { format!("{whole}.{rest} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_19_54_hostile_text_is_made_visible() {
        let shown = visible("\x1b[2J\u{202e}evil\n");
        assert_eq!(shown, "\\x1b[2J⟨U+202E⟩evil⏎");
    }

    #[test]
    fn relay_19_55_nothing_is_cut() {
        let long = format!("{}--admin", "x".repeat(5000));
        assert!(visible(&long).ends_with("--admin"));
    }

    #[test]
    fn marks_that_pile_up_are_counted_out() {
        let piled = format!("e{}!", "\u{301}".repeat(6));
        assert_eq!(visible(&piled), "e\u{301}\u{301}\u{301}\u{301}⟨U+0301⟩⟨U+0301⟩!");
    }

    /// Unicode's own tables, and every character there is.
    #[test]
    fn whatever_unicode_calls_invisible_is_shown() {
        use icu_properties::props::{
            BidiControl, DefaultIgnorableCodePoint, GeneralCategory, PrependedConcatenationMark,
            VariationSelector,
        };
        use icu_properties::{CodePointMapData, CodePointSetData};
        let sets = [
            CodePointSetData::new::<BidiControl>(),
            CodePointSetData::new::<DefaultIgnorableCodePoint>(),
            CodePointSetData::new::<VariationSelector>(),
        ];
        let category = CodePointMapData::<GeneralCategory>::new();
        // Format characters that have a shape of their own.
        let drawn = CodePointSetData::new::<PrependedConcatenationMark>();
        for c in '\0'..=char::MAX {
            let hidden = sets.iter().any(|set| set.contains(c))
                || match category.get(c) {
                    GeneralCategory::Control
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator => true,
                    GeneralCategory::Format => !drawn.contains(c),
                    _ => false,
                };
            let shown = visible(&c.to_string());
            assert!(!hidden || !shown.contains(c), "U+{:04X}", c as u32);
            assert!(!shown.is_empty(), "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn json_hides_nothing_and_means_the_same() {
        let text = "a\u{9b}2J\u{202e}\u{7f}\u{e0041}\u{1b}é\n";
        let shown = visible_json(&serde_json::to_string(text).unwrap());
        assert_eq!(shown, r#""a\u009b2J\u202e\u007f\udb40\udc41\u001bé\n""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn a_cut_is_said() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("ünïcode\u{202e}!", 4), "ünïc… (5 more characters)");
        assert!(shortened(&"\u{202e}".repeat(1_000_000), 200).len() < 3000);
    }

    #[test]
    fn arguments_can_be_told_apart() {
        assert_eq!(command_line(&["git", "a b", "", "it's"]), "git 'a b' '' 'it'\\''s'");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_moves_or_hides_survives(text in "(.|[\u{300}-\u{303}\u{34f}\u{202a}-\u{202e}\n\t]){0,40}") {
            let shown = visible(&text);
            proptest::prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)));
            proptest::prop_assert_eq!(visible(&shown), shown);
        }
    }
}
