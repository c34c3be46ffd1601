//! A rule added to a policy file, and nothing else changed in it.
//!
//! By lines, so that comments and the person's own way of writing stay. What comes out is read before
//! anybody keeps it; a file written in a way this cannot add to is left to the person.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Domains,
    Deny,
}

impl List {
    fn key(self) -> &'static str {
        match self {
            Self::Domains => "domains",
            Self::Deny => "deny",
        }
    }
}

/// The text with one more entry, or none when the list is written in a way that has no place for a line.
pub fn add(text: &str, list: List, entry: &str) -> Option<String> {
    let key = format!("{}:", list.key());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = lines.iter().position(|line| line.starts_with(&key)) else {
        let first = if text.trim().is_empty() { "version: 1\n" } else { "" };
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{first}{text}{gap}{key}\n- {entry}\n"));
    };
    let rest = lines[at][key.len()..].split(" #").next().unwrap_or_default().trim().to_owned();
    match rest.as_str() {
        "" | "~" | "null" => {}
        "[]" => lines[at].clone_from(&key),
        // A list in one line takes another element before its end.
        list if list.starts_with('[') && list.ends_with(']') && !lines[at].contains(" #") => {
            let inner = list.strip_suffix(']')?.trim_end().trim_end_matches(',');
            lines[at] = format!("{key} {inner}, {entry}]");
            return Some(joined(&lines));
        }
        _ => return None,
    }
    if rest != "[]" {
        lines[at] = lines[at].replace(": ~", ":").replace(": null", ":");
    }
    let is_top = |line: &&String| line.chars().next().is_some_and(char::is_alphanumeric);
    let end =
        lines[at + 1..].iter().position(|line| is_top(&line)).map_or(lines.len(), |n| at + 1 + n);
    // Comments and gaps before the next key belong to that.
    let is_own = |line: &String| !line.trim().is_empty() && !line.starts_with('#');
    let last = lines[at..end].iter().rposition(is_own).map_or(at, |n| at + n);
    let indent = lines[at + 1..=last.max(at)]
        .iter()
        .find_map(|line| line.find("- ").filter(|n| line[..*n].trim().is_empty()))
        .unwrap_or(0);
    lines.insert(last + 1, format!("{}- {entry}", " ".repeat(indent)));
    Some(joined(&lines))
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// An entry of `deny` from one of `domains` that says `deny`.
pub fn as_denial(entry: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(entry).ok()?;
    let rules = value.get_mut("rules")?.as_array_mut()?;
    for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
        for key in ["action", "websocket", "allow_risky_port"] {
            rule.remove(key);
        }
    }
    if rules.iter().all(|rule| rule.as_object().is_none_or(serde_json::Map::is_empty)) {
        value.as_object_mut()?.remove("rules");
    }
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::policy::Policy;

    const ENTRY: &str = r#"{"host":"new.ex.com","rules":[{"methods":["GET"]}]}"#;

    fn added(text: &str) -> String {
        let after = add(text, List::Domains, ENTRY).unwrap();
        let policy = Policy::from_yaml(&after).unwrap_or_else(|e| panic!("{e}\n{after}"));
        assert!(policy.records.iter().any(|r| r.host.to_string() == "new.ex.com"), "{after}");
        let before = Policy::from_yaml(text).unwrap();
        assert_eq!(policy.records.len(), before.records.len() + 1, "{after}");
        after
    }

    #[test]
    fn a_rule_finds_its_place_however_the_list_is_written() {
        for text in [
            "",
            "version: 1\n",
            "domains: []\n",
            "domains:\n",
            "domains: ~ # none yet\n",
            "domains: [a.ex.com, b.ex.com]\n",
            "domains:\n- a.ex.com\n",
            "domains:\n  - a.ex.com\n  - host: b.ex.com\n    rules:\n      - {methods: [GET]}\n",
            "# mine\ndomains:\n  - a.ex.com # for docs\n\n# never\ndeny:\n  - {host: x.ex.com}\n",
            "domains:\n- a.ex.com\nservices: [claude]",
        ] {
            added(text);
        }
    }

    #[test]
    fn comments_stay_and_the_next_key_keeps_its_own() {
        let text =
            "# mine\ndomains:\n  - a.ex.com # for docs\n\n# never\ndeny:\n  - {host: x.ex.com}\n";
        let after = added(text);
        let kept: Vec<&str> = after.lines().filter(|line| !line.contains("new.ex.com")).collect();
        assert_eq!(kept.join("\n") + "\n", text);
        assert!(after.contains("for docs\n  - {\"host\":\"new.ex.com\""), "{after}");
    }

    #[test]
    fn a_list_over_several_lines_in_brackets_is_left_to_the_person() {
        assert_eq!(add("domains: [a.ex.com,\n  b.ex.com]\n", List::Domains, ENTRY), None);
    }

    #[test]
    fn what_denies_is_written_as_a_denial() {
        let entry = r#"{"host":"x.ex.com","rules":[{"action":"deny","websocket":false}]}"#;
        let denial = as_denial(entry).unwrap();
        assert_eq!(denial, r#"{"host":"x.ex.com"}"#);
        let text = add("", List::Deny, &denial).unwrap();
        let policy = Policy::from_yaml(&text).unwrap();
        assert!(policy.deny.iter().any(|d| d.host.to_string() == "x.ex.com"));
        let some = r#"{"host":"x.ex.com","rules":[{"action":"deny","methods":["POST"]}]}"#;
        assert!(as_denial(some).unwrap().contains("POST"));
    }
}
