//! Whatever a box writes, nothing of it moves, hides or reorders what a person reads, and nothing
//! of it is gone.
//!
//! What hides is asked of Unicode's own tables, not of ours.
#![no_main]

use icu_properties::props::{
    BidiControl, DefaultIgnorableCodePoint, GeneralCategory, PrependedConcatenationMark, VariationSelector,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use libfuzzer_sys::fuzz_target;
use protocol::text::{command_line, quoted, shortened, visible};

fn hides(c: char) -> bool {
    CodePointSetData::new::<BidiControl>().contains(c)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<VariationSelector>().contains(c)
        || match CodePointMapData::<GeneralCategory>::new().get(c) {
            GeneralCategory::Control | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => true,
            // Some format characters have a shape of their own.
            GeneralCategory::Format => !CodePointSetData::new::<PrependedConcatenationMark>().contains(c),
            _ => false,
        }
}

/// Takes the shown form of one character from the front; what is left.
fn taken(shown: &str, c: char) -> Option<&str> {
    let code = c as u32;
    match c {
        '\n' => shown.strip_prefix('⏎'),
        '\t' => shown.strip_prefix(' '),
        c if c.is_control() => shown.strip_prefix(&format!("\\x{code:02x}")),
        c if hides(c) => shown.strip_prefix(&format!("⟨U+{code:04X}⟩")),
        // A mark too many is spelled, too.
        c => shown.strip_prefix(c).or_else(|| shown.strip_prefix(&format!("⟨U+{code:04X}⟩"))),
    }
}

/// Every character of the text is there, in order, and nothing else.
fn holds_all(shown: &str, text: &str) -> bool {
    text.chars().try_fold(shown, taken).is_some_and(str::is_empty)
}

/// The words a shell would read.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let word = words.last_mut().unwrap();
        match c {
            '\'' => quoted = !quoted,
            '\\' if !quoted => word.extend(chars.next()),
            ' ' if !quoted => words.push(String::new()),
            c => word.push(c),
        }
    }
    assert!(!quoted, "{line}");
    words
}

fuzz_target!(|text: &str| {
    for shown in [visible(text), shortened(text, 40), quoted(text), command_line(&[text, text])] {
        assert!(!shown.chars().any(hides), "{shown:?}");
    }
    let shown = visible(text);
    assert!(holds_all(&shown, text), "{text:?} became {shown:?}");
    // Made visible once, it stays as it is.
    assert_eq!(visible(&shown), shown);
    // No letter carries more marks than a few.
    let mark = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    assert!(shown.split(|c| !mark(c)).all(|run| run.chars().count() <= 4), "{shown:?}");
    // Words can be told apart.
    assert_eq!(words(&command_line(&[text, "b", text])), [&shown, "b", &shown]);
    // Nothing is cut without saying so, and what is left is the beginning.
    let short = shortened(text, 40);
    if let Some((at, _)) = text.char_indices().nth(40) {
        let more = format!("… ({} more characters)", text[at..].chars().count());
        let start = short.strip_suffix(&more).expect("a cut is said");
        assert!(holds_all(start, &text[..at]), "{short:?}");
    } else {
        assert_eq!(short, shown);
    }
});
