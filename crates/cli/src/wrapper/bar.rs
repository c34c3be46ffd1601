//! The last lines of the person's terminal while a menu is over it.
//!
//! The box may have left the terminal in any state, also in the middle of a sequence, so that words of
//! ours would be cut, moved or shown in other letters. Each drawing begins by ending all of that; what the
//! box wants of the terminal comes back with the redraw that follows every menu.

use super::menu::{Mode, Question};
use crate::table::cut;
use std::fmt::Write;

/// Ends what was begun, then plain letters, no margins, no scrolling part, no colours, nothing inserted or
/// held back, and pastes that are told apart from keys.
const CLEAN: &str =
    "\x18\x1b\\\x1b[?2026l\x0f\x1b(B\x1b[?6l\x1b[?69l\x1b[4l\x1b[r\x1b[0m\x1b[?2004h";
/// By their numbers: a box may have made all colours that have names the same.
const COLOURS: &str = "\x1b[7m\x1b[38;2;20;20;20m\x1b[48;2;235;235;235m";
/// What a program that did not end by itself may have left on: other screen, mouse, paste brackets, keys in
/// other forms, focus, hidden cursor.
pub const RESTORED: &str = "\x18\x1b\\\x1b[?2026l\x1b[=0u\x0f\x1b(B\x1b[?6l\x1b[?69l\x1b[4l\x1b[r\x1b[0m\x1b[?1000l\x1b[?1002l\
    \x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[>4m\
    \x1b[?1l\x1b>\x1b[?1049l\x1b[=0u\x1b[?7h\x1b[0 q\x1b[?25h";

const KEYS: &str = "c code  s screen  u url  t shell  k destroy  d detach  Esc back";

/// What stands there, from top to bottom.
pub fn lines(mode: &Mode, name: &str, facts: &str) -> Vec<String> {
    match mode {
        Mode::Closed => Vec::new(),
        Mode::Keys => vec![format!("{KEYS}  {name}")],
        Mode::Asking(Question::Code, typed) => vec![
            "While attached, the editor lends the box your git logins and SSH agent.".to_owned(),
            format!("Open {name} in the editor? y and Enter, Enter alone is no: {typed}"),
        ],
        Mode::Asking(Question::Destroy, typed) => vec![
            facts.to_owned(),
            format!("Destroy {name}? y or its name and Enter, Enter alone is no: {typed}"),
        ],
        Mode::Told => vec![facts.to_owned()],
    }
}

/// The lines at the bottom of a terminal of this size, the cursor after the last.
pub fn drawn(lines: &[String], (columns, rows): (u16, u16)) -> String {
    let width = usize::from(columns).saturating_sub(2);
    let mut out = CLEAN.to_owned();
    let mut row = usize::from(rows).saturating_sub(lines.len());
    for line in lines {
        row += 1;
        // As high and wide as other lines, whatever it was before.
        let _ = write!(out, "\x1b[{row};1H\x1b#5\x1b[2K{COLOURS} {} \x1b[0m", cut(line, width));
    }
    out.push_str("\x1b[?25h");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_begin_clean() {
        let long = vec!["x".repeat(200), "short".to_owned()];
        let text = drawn(&long, (20, 10));
        assert!(text.starts_with('\x18'), "{text:?}");
        assert!(text.contains("\x1b[9;1H") && text.contains("\x1b[10;1H"), "{text:?}");
        assert!(!text.contains(&"x".repeat(18)) && text.contains(" short "), "{text:?}");
        assert!(!drawn(&long, (1, 1)).contains('\n'));
    }

    #[test]
    fn all_keys_fit_a_usual_terminal() {
        assert!(KEYS.len() + "  fix-login".len() + 2 <= 80);
    }
}
