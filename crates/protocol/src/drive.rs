//! Working a session's terminal from outside: what is on it, keys and text for it.
//!
//! `agentbox drive` sends one [`Drive`] to `agentbox-ctl drive` in the box, on its standard input:
//! what is typed is in nobody's process list. What comes back is the box's own word.

use serde::{Deserialize, Serialize};

/// Keys and pieces of text in one go.
pub const MOST_PRESSES: usize = 1000;
/// The longest text that is typed in one go.
pub const LONGEST_TEXT: usize = 64 * 1024;
/// Lines of a screen and of what was above it.
pub const MOST_ROWS: u32 = 5000;
/// `agentbox-ctl drive` ends with this when what was waited for did not come.
pub const NOT_IN_TIME: i32 = 17;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drive {
    pub session: String,
    pub act: Act,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Act {
    /// → [`Screen`]
    Look {
        /// With colours, as escape sequences.
        ansi: bool,
        /// So many lines, those above the screen among them; none is the screen.
        rows: Option<u32>,
    },
    /// One after the other, with a pause between them.
    Press {
        keys: Vec<Press>,
        pause_ms: u32,
    },
    /// In one piece, as if pasted.
    Paste {
        text: String,
        then_enter: bool,
        pause_ms: u32,
    },
    /// Until the text is on the screen. → [`Screen`]
    Await {
        text: String,
        within_ms: u64,
    },
    Resize {
        cols: u16,
        rows: u16,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Press {
    /// As tmux calls it: `Enter`, `C-c`, `F5`.
    Key(String),
    Text(String),
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Screen {
    pub session: String,
    pub lines: Vec<String>,
    pub cols: u16,
    pub rows: u16,
    /// Counted from 0, from the left and the top of the screen.
    pub cursor_x: u16,
    pub cursor_y: u16,
}

/// Keys as people write them: `ls<Enter>`, `<C-c>`, `<<` for one `<`. The first that is no key
/// otherwise.
pub fn parse_keys(text: &str) -> Result<Vec<Press>, String> {
    let mut presses = Vec::new();
    let mut typed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        typed.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('<') {
            typed.push('<');
            rest = after;
            continue;
        }
        let (name, after) = rest.split_once('>').ok_or_else(|| format!("<{rest}"))?;
        let key = tmux_key(name).ok_or_else(|| format!("<{name}>"))?;
        if !typed.is_empty() {
            presses.push(Press::Text(std::mem::take(&mut typed)));
        }
        presses.push(Press::Key(key));
        rest = after;
    }
    typed.push_str(rest);
    if !typed.is_empty() {
        presses.push(Press::Text(typed));
    }
    Ok(presses)
}

/// What tmux calls a key.
fn tmux_key(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let known = match lower.as_str() {
        "enter" | "cr" => "Enter",
        "tab" => "Tab",
        "s-tab" => "BTab",
        "esc" | "escape" => "Escape",
        "space" => "Space",
        "bs" | "backspace" => "BSpace",
        "del" | "delete" => "DC",
        "up" => "Up",
        "down" => "Down",
        "left" => "Left",
        "right" => "Right",
        "home" => "Home",
        "end" => "End",
        "pageup" => "PPage",
        "pagedown" => "NPage",
        _ => "",
    };
    if !known.is_empty() {
        return Some(known.to_owned());
    }
    if let Some(number) = lower.strip_prefix('f') {
        return (1..=12).find(|n: &u8| n.to_string() == number).map(|n| format!("F{n}"));
    }
    let (modifier, key) = lower.split_once('-')?;
    let single = key.len() == 1 && key.bytes().all(|b| b.is_ascii_alphanumeric());
    match modifier {
        "c" if single => Some(format!("C-{key}")),
        "m" | "a" if single => Some(format!("M-{key}")),
        _ => None,
    }
}

/// Whether tmux would take this for a key and nothing else.
pub fn is_key(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (2..=8).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Press {
        Press::Key(name.into())
    }

    fn text(text: &str) -> Press {
        Press::Text(text.into())
    }

    #[test]
    fn keys_are_read_as_people_write_them() {
        assert_eq!(parse_keys("ls<Enter>").unwrap(), [text("ls"), key("Enter")]);
        assert_eq!(parse_keys("a<<b").unwrap(), [text("a<b")]);
        assert_eq!(parse_keys("<C-c><PageUp>é").unwrap(), [key("C-c"), key("PPage"), text("é")]);
        assert_eq!(parse_keys("<F12><S-Tab><M-x>").unwrap(), [key("F12"), key("BTab"), key("M-x")]);
        assert_eq!(parse_keys("").unwrap(), []);
        for (bad, what) in
            [("x<Foo>", "<Foo>"), ("<F13>", "<F13>"), ("<C-xx>", "<C-xx>"), ("a<b", "<b")]
        {
            assert_eq!(parse_keys(bad).unwrap_err(), what);
        }
    }

    #[test]
    fn every_key_is_one_for_the_box() {
        for press in parse_keys("<Enter><Tab><Esc><Space><BS><Del><C-x><Up><Home><F1>").unwrap() {
            assert!(matches!(press, Press::Key(name) if is_key(&name)));
        }
        for bad in ["-t", "a", "", "C-c;", "Enter Enter", "toolongkey"] {
            assert!(!is_key(bad), "{bad}");
        }
    }
}
