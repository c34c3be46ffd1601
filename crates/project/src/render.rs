//! Replacing text: placeholders and rules, for carried files and for `agentbox-ctl render`.
//!
//! Pure. What comes out is bounded, because the rules may come from a file a box wrote. Placeholders
//! are a fixed list, so no secret and no other variable can be reached by one.

use crate::{Pattern, Replaced, Rule};
use fancy_regex::Captures;

/// What a rendered text may weigh.
pub const LARGEST: usize = 64 << 20;

/// What the known placeholders stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    pub box_name: Option<String>,
    pub box_id: Option<String>,
    pub box_kind: Option<String>,
    pub box_host: Option<String>,
    pub host_workspace: Option<String>,
    pub project_root: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the text grows beyond {} MiB", LARGEST >> 20)]
    TooLarge,
    #[error("the pattern {0} takes too long")]
    TooSlow(String),
}

/// A text and the placeholders in it that are known but have no value here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Each once.
    pub without_value: Vec<String>,
}

const KNOWN: [&str; 6] = [
    "AGENTBOX_BOX_NAME",
    "AGENTBOX_BOX_ID",
    "AGENTBOX_BOX_KIND",
    "AGENTBOX_BOX_HOST",
    "AGENTBOX_HOST_WORKSPACE",
    "AGENTBOX_PROJECT_ROOT",
];

impl Values {
    /// From environment variables; an empty one is as good as none.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
        Self {
            box_name: get("AGENTBOX_BOX_NAME"),
            box_id: get("AGENTBOX_BOX_ID"),
            box_kind: get("AGENTBOX_BOX_KIND"),
            box_host: get("AGENTBOX_BOX_HOST"),
            host_workspace: get("AGENTBOX_HOST_WORKSPACE"),
            project_root: get("AGENTBOX_PROJECT_ROOT"),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        let host = || Some(format!("{}.localhost", self.box_name.as_ref()?));
        match name {
            "AGENTBOX_BOX_NAME" => self.box_name.clone(),
            "AGENTBOX_BOX_ID" => self.box_id.clone(),
            "AGENTBOX_BOX_KIND" => self.box_kind.clone(),
            "AGENTBOX_BOX_HOST" => self.box_host.clone().or_else(host),
            "AGENTBOX_HOST_WORKSPACE" => self.host_workspace.clone(),
            "AGENTBOX_PROJECT_ROOT" => self.project_root.clone(),
            _ => None,
        }
    }
}

/// Placeholders everywhere when `whole` is set, then the rules in their order.
pub fn render<'a>(
    text: &str,
    whole: bool,
    rules: impl IntoIterator<Item = &'a Rule>,
    values: &Values,
) -> Result<Rendered, Error> {
    let mut done = Rendered { text: text.to_owned(), without_value: Vec::new() };
    if whole {
        done.text = expand(&done.text, values, &mut done.without_value, str::to_owned)?;
    }
    for rule in rules {
        done.text = apply(&done.text, rule, values, &mut done.without_value)?;
    }
    Ok(done)
}

/// Replaces `{{NAME}}` for the names there are; `escape` is done to each value.
fn expand(
    text: &str,
    values: &Values,
    without: &mut Vec<String>,
    escape: impl Fn(&str) -> String,
) -> Result<String, Error> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inner = &from[2..];
        let blanks = inner.len() - inner.trim_start_matches([' ', '\t']).len();
        let word = &inner[blanks..];
        let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &word[..end.unwrap_or(word.len())];
        let after = word[name.len()..].trim_start_matches([' ', '\t']);
        match (KNOWN.contains(&name), after.strip_prefix("}}")) {
            (true, Some(after)) => {
                match values.get(name) {
                    Some(value) => out.push_str(&escape(&value)),
                    None => {
                        out.push_str(&from[..from.len() - after.len()]);
                        if !without.iter().any(|one| one == name) {
                            without.push(name.to_owned());
                        }
                    }
                }
                rest = after;
            }
            // A third brace may begin the one that is meant.
            _ => {
                out.push('{');
                rest = &from[1..];
            }
        }
        fits(&out)?;
    }
    out.push_str(rest);
    fits(&out)?;
    Ok(out)
}

fn fits(text: &str) -> Result<(), Error> {
    if text.len() > LARGEST { Err(Error::TooLarge) } else { Ok(()) }
}

fn apply(
    text: &str,
    rule: &Rule,
    values: &Values,
    without: &mut Vec<String>,
) -> Result<String, Error> {
    match &rule.from {
        Replaced::Text(from) => {
            let to = expand(&rule.to, values, without, str::to_owned)?;
            let mut out = String::with_capacity(text.len());
            let mut rest = text;
            while let Some((before, after)) = rest.split_once(from.as_str()) {
                out.push_str(before);
                out.push_str(&to);
                fits(&out)?;
                rest = after;
            }
            out.push_str(rest);
            fits(&out)?;
            Ok(out)
        }
        Replaced::Matches { pattern, global } => {
            // A `$` of a value is no group of the pattern.
            let to = expand(&rule.to, values, without, |value| value.replace('$', "$$"))?;
            replace(text, pattern, *global, &to)
        }
    }
}

fn replace(text: &str, pattern: &Pattern, global: bool, to: &str) -> Result<String, Error> {
    let slow = || Error::TooSlow(protocol::text::shortened(pattern.source(), 60));
    let named: Vec<&str> = pattern.compiled().capture_names().flatten().collect();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for found in pattern.compiled().captures_iter(text) {
        let found = found.map_err(|_| slow())?;
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[done..whole.start()]);
        put(to, &found, &named, &mut out);
        fits(&out)?;
        done = whole.end();
        if !global {
            break;
        }
    }
    out.push_str(&text[done..]);
    fits(&out)?;
    Ok(out)
}

/// `$1..$99`, `$&`, `$$`, `$<name>`; anything else after a `$` stays as it is.
fn put(to: &str, found: &Captures<'_, str>, named: &[&str], out: &mut String) {
    let group = |number: usize| found.get(number).map_or("", |m| m.as_str());
    let mut rest = to;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
        // Two digits are one number only when there are so many groups.
        let number = (1..=digits).rev().find_map(|many| {
            let number: usize = after[..many].parse().ok()?;
            (number > 0 && number < found.len()).then_some((number, many))
        });
        if let Some((number, many)) = number {
            out.push_str(group(number));
            rest = &after[many..];
        } else if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = after.strip_prefix('&') {
            out.push_str(group(0));
            rest = after;
        } else if let Some((name, after)) = after
            .strip_prefix('<')
            .and_then(|after| after.split_once('>'))
            .filter(|_| !named.is_empty())
        {
            out.push_str(found.name(name).map_or("", |m| m.as_str()));
            rest = after;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(from: &str, to: &str) -> Rule {
        Rule { from: Replaced::Text(from.into()), to: to.into() }
    }

    fn regex(from: &str, flags: &str, to: &str) -> Rule {
        let pattern = Pattern::with_flags(from, flags).unwrap();
        Rule { from: Replaced::Matches { pattern, global: flags.contains('g') }, to: to.into() }
    }

    fn values() -> Values {
        Values { box_name: Some("foo".into()), ..Values::default() }
    }

    fn with(input: &str, rules: &[Rule]) -> String {
        render(input, false, rules, &values()).unwrap().text
    }

    #[test]
    fn yaml_13_44_and_45_placeholders() {
        let done = render("{{AGENTBOX_BOX_NAME}} {{HOME}}", true, [], &values()).unwrap();
        assert_eq!(done.text, "foo {{HOME}}");
        let host = |values| render("{{ AGENTBOX_BOX_HOST }}", true, [], &values).unwrap().text;
        assert_eq!(host(values()), "foo.localhost");
        assert_eq!(host(Values { box_host: Some("x.example".into()), ..values() }), "x.example");
        let done = render(
            "{{AGENTBOX_BOX_ID}}{{AGENTBOX_BOX_ID}}{{{AGENTBOX_BOX_NAME}}",
            true,
            [],
            &values(),
        );
        let done = done.unwrap();
        assert_eq!(done.text, "{{AGENTBOX_BOX_ID}}{{AGENTBOX_BOX_ID}}{foo");
        assert_eq!(done.without_value, ["AGENTBOX_BOX_ID"]);
        assert_eq!(
            render("{{AGENTBOX_BOX_NAME}}", false, [], &values()).unwrap().text,
            "{{AGENTBOX_BOX_NAME}}"
        );
        for odd in ["{{", "{{ ", "{{AGENTBOX_BOX_NAME", "{{AGENTBOX_BOX_NAME}", "{{é}}", "}}{{"] {
            assert_eq!(render(odd, true, [], &values()).unwrap().text, odd);
        }
        let empty =
            Values::from_env(|name| Some(if name.ends_with("ID") { "x" } else { "" }.into()));
        assert_eq!(empty, Values { box_id: Some("x".into()), ..Values::default() });
    }

    #[test]
    fn yaml_13_46_dollars() {
        assert_eq!(with("price", &[text("price", "$1.00")]), "$1.00");
        assert_eq!(with("a1 b2", &[regex(r"([a-z])(\d)", "g", "$2$1")]), "1a 2b");
        assert_eq!(with("a1 b2", &[regex(r"([a-z])(\d)", "", "$2$1")]), "1a b2");
        assert_eq!(
            with("ab", &[regex("(a)", "g", "[$&|$$|$1|$2|$12|$x|$]")]),
            "[a|$|a|$2|a2|$x|$]b"
        );
        assert_eq!(with("ab", &[regex("(?<n>a)", "g", "<$<n>$<m>>")]), "<a>b");
        assert_eq!(with("ab", &[regex("a", "g", "$<n>")]), "$<n>b");
        assert_eq!(with("aaa", &[regex("x*", "g", "-")]), "-a-a-a-");
    }

    #[test]
    fn a_value_is_no_group() {
        let values = Values { project_root: Some("/a/$1/$&".into()), ..Values::default() };
        let rule = regex("(x)", "g", "{{AGENTBOX_PROJECT_ROOT}}");
        assert_eq!(render("x", false, [&rule], &values).unwrap().text, "/a/$1/$&");
        let rule = text("x", "{{AGENTBOX_PROJECT_ROOT}}");
        assert_eq!(render("x", false, [&rule], &values).unwrap().text, "/a/$1/$&");
    }

    #[test]
    fn rules_follow_each_other_and_have_an_end() {
        assert_eq!(with("a", &[text("a", "b"), text("b", "c")]), "c");
        let grow: Vec<Rule> = (0..64).map(|_| text("a", "aa")).collect();
        assert_eq!(render("a", false, &grow, &values()).unwrap_err(), Error::TooLarge);
        let slow = regex(r"(a*)*\1c", "g", "x");
        let begun = std::time::Instant::now();
        assert!(matches!(
            render(&"a".repeat(2000), false, [&slow], &values()),
            Err(Error::TooSlow(_))
        ));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }
}
