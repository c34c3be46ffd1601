//! Variables in a compose file. Their values are somebody's own, so only what the file itself says for
//! the case that there is none is taken.

/// How deep one default stands in another.
const DEEPEST: usize = 8;

/// The text with defaults in the place of variables; nothing when a variable has none.
pub(super) fn filled(text: &str) -> Option<String> {
    fill(text, DEEPEST)
}

fn fill(text: &str, depth: usize) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let (variable, after) = braced(after)?;
        out.push_str(&fill(default(variable)?, depth.checked_sub(1)?)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// What stands in the braces, and what follows them.
fn braced(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('{')?;
    let mut open = 1;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if before == '$' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
        before = c;
    }
    None
}

/// Of `NAME:-default` or `NAME-default`.
fn default(variable: &str) -> Option<&str> {
    let rest = variable.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if rest.len() == variable.len() {
        return None;
    }
    rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_defaults_are_known() {
        for (text, expected) in [
            ("plain", Some("plain")),
            ("", Some("")),
            ("${A:-x}", Some("x")),
            ("${A-x}:${B:-}", Some("x:")),
            ("${A:-${B:-y}-z}!", Some("y-z!")),
            ("a$$b$${C}", Some("a$b${C}")),
            ("${A}", None),
            ("$A", None),
            ("${A:?no}", None),
            ("${A:+x}", None),
            ("${:-x}", None),
            ("${A:-${B}}", None),
            ("${A:-x", None),
            ("x$", None),
            ("é${Ä:-x}", None),
            ("${A:-é}é", Some("éé")),
        ] {
            assert_eq!(filled(text).as_deref(), expected, "{text}");
        }
        let deep = format!("{}x{}", "${A:-".repeat(2000), "}".repeat(2000));
        assert_eq!(filled(&deep), None);
        assert_eq!(filled(&"${".repeat(100_000)), None);
    }
}
