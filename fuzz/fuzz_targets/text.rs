//! Whatever a box writes, nothing of it moves, hides or reorders what a person reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::text::{command_line, quoted, shortened, visible};

fuzz_target!(|text: &str| {
    let hidden = |c: char| c.is_control() || matches!(c as u32, 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff);
    for shown in [visible(text), shortened(text, 40), quoted(text), command_line(&[text, text])] {
        assert!(!shown.chars().any(hidden), "{shown:?}");
    }
    // Made visible once, it stays as it is.
    assert_eq!(visible(&visible(text)), visible(text));
    // Nothing is cut without saying so.
    if text.chars().count() > 40 {
        assert!(shortened(text, 40).ends_with("more characters)"));
    }
});
