//! Words as one line for programs that take no list: iTerm2, and shells that a terminal types into.
//!
//! iTerm2 splits the line by rules of its own and evaluates `\(…)` in it; which shell is typed into is
//! not known. So nothing is escaped: a word is made of letters, digits and a few marks that mean the
//! same everywhere, in double quotes when there is a space in it. Anything else makes no line.

use std::ffi::{OsStr, OsString};

pub fn line(words: &[OsString]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| one(word)).collect();
    words.map(|words| words.join(" "))
}

fn one(word: &OsStr) -> Option<String> {
    let word = word.to_str().filter(|word| !word.is_empty())?;
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:,=".contains(c);
    if !word.chars().all(|c| plain(c) || c == ' ') || word.starts_with('=') {
        return None;
    }
    Some(if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<String> {
        line(&words.iter().map(Into::into).collect::<Vec<_>>())
    }

    #[test]
    fn a_line_means_its_words() {
        let found = of(&["/opt/My Apps/agentbox", "--home", "/home/zoë/.agentbox", "attach"]);
        assert_eq!(
            found.as_deref(),
            Some("\"/opt/My Apps/agentbox\" --home /home/zoë/.agentbox attach")
        );
        assert_eq!(shlex::split(&found.unwrap()).unwrap()[0], "/opt/My Apps/agentbox");
    }

    #[test]
    fn no_name_runs_anything() {
        for attack in [
            "/x/$(touch owned)",
            "/x/`touch owned`",
            "/x/'; touch owned; '",
            "/x/\"; touch owned; \"",
            "/x/\" & do shell script \"touch owned\" & \"",
            "/x/\\(touch)",
            "/x/\\",
            "/x/a\nb",
            "/x/a\rtouch owned\r",
            "/x/\x03touch owned",
            "/x/\x1b[201~touch owned",
            "/x/a;b",
            "/x/a&b",
            "/x/a|b",
            "/x/a>b",
            "/x/!!",
            "/x/*",
            "/x/~",
            "/x/{a,b}",
            "/x/#a",
            "/x/%1",
            "=ls",
            "/x/\u{202e}",
            "/x/\u{a0}b",
            "/x/\u{2028}b",
            "",
        ] {
            assert_eq!(of(&["agentbox", attack]), None, "{attack:?}");
            let spaced = format!("{attack} b");
            assert_eq!(of(&[&spaced]).is_some(), attack.is_empty(), "{spaced:?}");
        }
    }
}
