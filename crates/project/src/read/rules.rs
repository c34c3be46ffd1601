//! Replacement sets and their rules.

use super::fields::{At, Fields, entries, list, string, wrong_type};
use super::{Reader, UNKNOWN};
use crate::name::is_name;
use crate::problem::Problems;
use crate::shape::RULE;
use crate::{Pattern, Replaced, Rule, RuleSet};
use protocol::text::shortened;
use yaml::{Key, Node};

const CODE: &str = "Y060";

pub(super) fn set(
    key: &Key,
    node: &Node,
    reader: Reader,
    problems: &mut Problems,
) -> Option<RuleSet> {
    let at = At::root().key("replacements").key(&key.text);
    if !is_name(&key.text) {
        let message = "a name has letters, digits, - and _ only";
        problems.error(CODE, key.place, at.path(), message);
    }
    let mut unknown = Vec::new();
    let rules = rules(node, &at, CODE, reader, &mut unknown, problems)?;
    Some(RuleSet { name: key.text.clone(), rules, unknown })
}

/// A list of rules; problems have this code.
pub(super) fn rules(
    node: &Node,
    at: &At,
    code: &'static str,
    reader: Reader,
    unknown: &mut Vec<String>,
    problems: &mut Problems,
) -> Option<Vec<Rule>> {
    let Some(all) = list(node) else {
        let message = format!("must be a list of rules, not {}", node.what());
        problems.error(code, node.place, at.path(), &message);
        return None;
    };
    let each = all.iter().enumerate();
    let found = each
        .filter_map(|(index, node)| rule(node, at.item(index), code, reader, unknown, problems));
    Some(found.collect())
}

fn rule(
    node: &Node,
    at: At,
    code: &'static str,
    reader: Reader,
    unknown: &mut Vec<String>,
    problems: &mut Problems,
) -> Option<Rule> {
    if entries(node).is_none() {
        let message = format!("must be a mapping with from and to, not {}", node.what());
        problems.error(code, node.place, at.path(), &message);
        return None;
    }
    let fields = Fields::new(node, at.clone(), RULE);
    match reader {
        Reader::Host => fields.refuse_unknown(code, problems),
        Reader::Box => {
            for key in fields.unknown() {
                let path = at.key(&key.text);
                let message = "unknown key; this set cannot be used";
                problems.warning(UNKNOWN, key.place, path.path(), message, None);
                unknown.push(shortened(&key.text, 60));
            }
        }
    }
    let mut text = |key: &str| match fields.get(key) {
        None => {
            problems.error(code, node.place, at.path(), &format!("needs {key}"));
            None
        }
        Some((node, at)) => {
            let found = string(node);
            if found.is_none() {
                wrong_type(node, &at, code, "a string", problems);
            }
            found
        }
    };
    let (from, to) = (text("from"), text("to"));
    let regex = fields.bool("regex", code, problems).unwrap_or(false);
    let flags = fields.string("flags", code, problems).unwrap_or("g");
    let from = from?;
    if from.is_empty() {
        problems.error(code, node.place, at.key("from").path(), "must not be empty");
        return None;
    }
    let from = if regex {
        let room = problems.room_for_pattern();
        match room.and_then(|()| Pattern::with_flags(from, flags).map_err(|why| why.to_string())) {
            Ok(pattern) => Replaced::Matches { pattern, global: flags.contains('g') },
            Err(why) => {
                let message = format!("is no regular expression: {why}");
                problems.error(code, node.place, at.key("from").path(), &message);
                return None;
            }
        }
    } else {
        Replaced::Text(from.to_owned())
    };
    Some(Rule { from, to: to?.to_owned() })
}
