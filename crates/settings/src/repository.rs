//! Policy keys in a repository's `agentbox.yaml`, where they have no effect.
//!
//! A box can write that file, so nothing in it may enable a service, approve a write or point the
//! host elsewhere. It is not read for settings at all; this finds what somebody put there in vain, for
//! a warning. The text is hostile: it is walked without being built up, and what comes out is bounded.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// More than anyone writes by hand.
const LARGEST: usize = 256 * 1024;
/// The parser's time grows with the square of how deep brackets are nested.
const MOST_BRACKETS: usize = 1000;
const MOST: usize = 20;
const LONGEST: usize = 80;

/// Everything below these.
const SECTIONS: &[&str] =
    &["integrations", "approvals", "relay", "secrets", "engine", "gh", "proxy"];
/// And these, which end with anything.
const BEGINNINGS: &[&str] =
    &["box.autoApprove", "box.withEnv", "box.image", "box.extraCas", "git.pushMode"];

/// Policy keys of an `agentbox.yaml`, at its top or under `defaults:`, in their order and fit to be
/// shown; at most 20. A text that is no YAML has those that stand before the mistake, one that is far
/// too large has none.
pub fn ignored_policy_keys(agentbox_yaml: &str) -> Vec<String> {
    let mut found = Vec::new();
    let brackets = agentbox_yaml.bytes().filter(|b| matches!(b, b'[' | b'{')).count();
    if agentbox_yaml.len() <= LARGEST && brackets <= MOST_BRACKETS {
        let walk = Walk { at: String::new(), found: &mut found };
        let _ = walk.deserialize(serde_norway::Deserializer::from_str(agentbox_yaml));
    }
    found
}

fn is_policy(key: &str) -> bool {
    let key = key.strip_prefix("defaults.").unwrap_or(key);
    SECTIONS.contains(&key.split('.').next().unwrap_or(key))
        || BEGINNINGS.iter().any(|beginning| key.starts_with(beginning))
}

/// Whether there can be a policy key below.
fn leads_to_policy(key: &str) -> bool {
    let inner = key.strip_prefix("defaults.").unwrap_or(key);
    inner == "defaults" || ["box", "git"].contains(&inner) || is_policy(key)
}

/// Collects the policy keys below one that has this name.
struct Walk<'a> {
    at: String,
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    /// A value: where it stands is a whole key.
    fn note(&mut self) {
        if is_policy(&self.at) && self.found.len() < MOST {
            let shown = protocol::text::shortened(&self.at, LONGEST);
            if !self.found.contains(&shown) {
                self.found.push(shown);
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut empty = true;
        while let Some(key) = map.next_key::<String>()? {
            empty = false;
            let at = if self.at.is_empty() { key } else { format!("{}.{key}", self.at) };
            if leads_to_policy(&at) && self.found.len() < MOST {
                map.next_value_seed(Walk { at, found: self.found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if empty {
            self.note();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.note();
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(mut self, _: bool) -> Result<(), E> {
        self.note();
        Ok(())
    }

    fn visit_i64<E>(mut self, _: i64) -> Result<(), E> {
        self.note();
        Ok(())
    }

    fn visit_u64<E>(mut self, _: u64) -> Result<(), E> {
        self.note();
        Ok(())
    }

    fn visit_f64<E>(mut self, _: f64) -> Result<(), E> {
        self.note();
        Ok(())
    }

    fn visit_str<E>(mut self, _: &str) -> Result<(), E> {
        self.note();
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.note();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn relay_19_34_policy_in_a_repository_is_noticed() {
        let text = "defaults:
  integrations: {notion: {enabled: true}}
  box: {image: x, autoApproveHostActions: true}
  agent: claude
integrations:
  linear:
    enabled: true
    autoApproveWrites: true
";
        assert_eq!(
            ignored_policy_keys(text),
            [
                "defaults.integrations.notion.enabled",
                "defaults.box.image",
                "defaults.box.autoApproveHostActions",
                "integrations.linear.enabled",
                "integrations.linear.autoApproveWrites",
            ]
        );
    }

    #[test]
    fn relay_a19_every_policy_key_is_known() {
        for key in [
            "integrations.notion.enabled",
            "approvals.mode",
            "approvals.promptCommand",
            "box.autoApproveSafeHostActions",
            "relay.allowIrreversibleUnattended",
            "git.pushMode",
            "secrets.backend",
            "engine.host",
            "gh.checkout",
        ] {
            let (section, rest) = key.split_once('.').unwrap();
            let nested =
                rest.replace('.', ": {") + ": [true]" + &"}".repeat(rest.matches('.').count());
            assert_eq!(ignored_policy_keys(&format!("{section}: {{{nested}}}")), [key]);
            assert_eq!(ignored_policy_keys(&format!("{key}: 1.5")), [key], "written with dots");
            assert_eq!(
                ignored_policy_keys(&format!("defaults:\n  {section}:\n    {nested}\n")),
                [format!("defaults.{key}")]
            );
        }
        assert_eq!(ignored_policy_keys("engine:\nsecrets: {}\ngh: 5"), ["engine", "secrets", "gh"]);
        assert_eq!(ignored_policy_keys("x: &a {b: 1}\ngh: *a\n"), ["gh.b"]);
    }

    #[test]
    fn ordinary_files_have_none() {
        for text in [
            "",
            "- a\n",
            "just text",
            "tasks:\n  dev: {command: npm run dev, integrations: {x: 1}}\ngit: {branch: y}\ndefaults: {agent: codex}\n",
            "ghosts: {a: 1}\nengineering: 1\n",
        ] {
            assert_eq!(ignored_policy_keys(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_hostile_file_costs_little_and_shows_nothing_odd() {
        assert_eq!(ignored_policy_keys("\"gh.a\\e[2J\\u202e\": 1"), ["gh.a\\x1b[2J⟨U+202E⟩"]);
        assert!(ignored_policy_keys(&format!("gh: {{{}: 1}}", "k".repeat(9999)))[0].len() < 200);
        let many: String = (0..5000).map(|n| format!("gh.k{n}: 1\n")).collect();
        assert_eq!(ignored_policy_keys(&many).len(), MOST);
        assert_eq!(ignored_policy_keys("gh: {a: 1}\n? [b]\n: 1\nengine: {c: 1}"), ["gh.a"]);

        let begun = Instant::now();
        let mut bomb = "a0: &a0 {x: 1}\n".to_owned();
        for n in 1..MOST_BRACKETS {
            let below = n - 1;
            bomb += &format!("a{n}: &a{n} {{x: *a{below}, y: *a{below}}}\n");
        }
        let bomb = format!("{bomb}gh: *a{}\n", MOST_BRACKETS - 1);
        assert!(bomb.len() < LARGEST);
        assert_eq!(ignored_policy_keys(&bomb).len(), 0, "too deep to be followed");
        let unit = |unit: &str| unit.repeat((LARGEST - 9) / unit.len());
        for nested in ["[", "{a: ", "[?", "[#]\n", "- ", "? ", "a:\n", "#", "x ", "]"] {
            ignored_policy_keys(&unit(nested));
            ignored_policy_keys(&format!("gh: {}", unit(nested)));
        }
        ignored_policy_keys(&"x".repeat(LARGEST + 1));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
