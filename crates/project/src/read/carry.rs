//! The list of what is copied from this computer, as it is written. What of it may be copied is
//! decided by [`crate::carry`].

use super::Reader;
use super::fields::{At, Fields, entries, list, scalar, string, wrong_type};
use super::rules::rules;
use super::units::{is_passable, strings};
use crate::CarryItem;
use crate::name::is_name;
use crate::problem::Problems;
use crate::shape::CARRY;
use yaml::Node;

pub(super) const CODE: &str = "Y061";

pub(super) fn items(node: &Node, at: &At, problems: &mut Problems) -> Vec<CarryItem> {
    if node.is_null() {
        return Vec::new();
    }
    let Some(all) = list(node) else {
        let message = format!("must be a list, not {}", node.what());
        problems.error(CODE, node.place, at.path(), &message);
        return Vec::new();
    };
    let each = all.iter().enumerate();
    each.filter_map(|(index, node)| item(node, at.item(index), problems)).collect()
}

fn item(node: &Node, at: At, problems: &mut Problems) -> Option<CarryItem> {
    if let Some(text) = string(node) {
        let (src, dest) = text.split_once('=').map_or((text, None), |(s, d)| (s, Some(d)));
        return plain(node, &at, src, dest, problems);
    }
    if entries(node).is_none() {
        let message = format!("must be a string or a mapping, not {}", node.what());
        problems.error(CODE, node.place, at.path(), &message);
        return None;
    }
    let fields = Fields::new(node, at.clone(), CARRY);
    fields.refuse_unknown(CODE, problems);
    if !fields.has("src") {
        problems.error(CODE, node.place, at.path(), "needs src");
    }
    let src = fields.string("src", CODE, problems);
    let dest = fields.string("dest", CODE, problems);
    let mode = fields.get("mode").and_then(|(node, at)| mode(node, &at, problems));
    let user = fields.get("user").and_then(|(node, at)| user(node, &at, problems));
    let exclude = words(&fields, "exclude", problems);
    let rules_named = words(&fields, "rules", problems);
    if let Some((node, at)) = fields.get("rules")
        && let Some(bad) = rules_named.iter().find(|name| !is_name(name))
    {
        let message = format!("{bad} is no name of a replacement set");
        problems.error(CODE, node.place, at.path(), &message);
    }
    let mut flag = |key, otherwise| fields.bool(key, CODE, problems).unwrap_or(otherwise);
    let optional = flag("optional", false);
    let replace_envs = flag("replaceEnvs", false);
    let default_excludes = flag("default_excludes", true);
    let replace = fields
        .get("replace")
        .and_then(|(node, at)| rules(node, &at, CODE, Reader::Host, &mut Vec::new(), problems));
    let item = plain(node, &at, src?, dest, problems)?;
    Some(CarryItem {
        mode,
        user,
        exclude,
        default_excludes,
        optional,
        replace_envs,
        replace: replace.unwrap_or_default(),
        rules: rules_named,
        ..item
    })
}

fn plain(
    node: &Node,
    at: &At,
    src: &str,
    dest: Option<&str>,
    problems: &mut Problems,
) -> Option<CarryItem> {
    let mut bad = |message: &str| {
        problems.error(CODE, node.place, at.path(), message);
        None
    };
    let from_there = |path: &str| path.starts_with('/') || path.starts_with("~/");
    if !(from_there(src) || src.starts_with("./")) {
        return bad("src begins with /, with ~/ (your home) or with ./ (the project)");
    }
    let dest = match dest {
        Some(dest) if from_there(dest) => dest,
        Some(_) => return bad("dest begins with / or with ~/ (the box user's home)"),
        None if src.starts_with("./") => {
            return bad("needs dest, because src is a place in the project");
        }
        None => src,
    };
    if !is_passable(src) || !is_passable(dest) {
        return bad("a path has a NUL in it");
    }
    Some(CarryItem {
        place: node.place,
        src: src.to_owned(),
        dest: dest.to_owned(),
        mode: None,
        user: None,
        exclude: Vec::new(),
        default_excludes: true,
        optional: false,
        replace_envs: false,
        replace: Vec::new(),
        rules: Vec::new(),
    })
}

/// Octal however it is written: YAML's own reading of `0600` is six hundred.
fn mode(node: &Node, at: &At, problems: &mut Problems) -> Option<u32> {
    let text = scalar(node).filter(|scalar| !scalar.is_null()).map(|scalar| scalar.text.as_str());
    let digits = text.map(|text| text.strip_prefix("0o").unwrap_or(text));
    let octal = |text: &&str| {
        (1..=5).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b))
    };
    let mode = digits.filter(octal).and_then(|text| u32::from_str_radix(text, 8).ok());
    let fits = mode.filter(|mode| *mode <= 0o7777);
    if fits.is_none() {
        let message = "must be an octal mode up to 7777";
        problems.error_hint(CODE, node.place, at.path(), message, "such as \"0600\"");
    }
    fits
}

fn user(node: &Node, at: &At, problems: &mut Problems) -> Option<u32> {
    let text = scalar(node).map(|scalar| scalar.text.as_str());
    let number = text.filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let uid = number.and_then(|text| text.parse().ok()).filter(|uid| *uid <= 65535);
    if uid.is_none() {
        problems.error(CODE, node.place, at.path(), "must be a user's number, 0 to 65535");
    }
    uid
}

fn words(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Vec<String> {
    let Some((node, at)) = fields.get(key) else { return Vec::new() };
    let Some(all) = list(node) else {
        wrong_type(node, &at, CODE, "a list of strings", problems);
        return Vec::new();
    };
    let words = strings(all, &at, CODE, problems);
    if words.iter().any(|word| word.trim().is_empty()) {
        problems.error(CODE, node.place, at.path(), "must have no empty string");
    }
    words
}
