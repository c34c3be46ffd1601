//! Credentials to put into requests: by id, never by value.

use super::domain::ReadRule;
use super::fields::{Fields, entries, string, wrong_type};
use crate::policy::problem::{At, Notes};
use crate::policy::{Action, HeaderRule, HostPattern, How, OnExisting, Transform};
use crate::request::{Scheme, is_token};
use protocol::SecretId;
use yaml::Node;

pub(super) fn read(node: &Node, at: At, notes: &mut Notes<'_>) -> Option<Transform> {
    let fields = Fields::of(node, at, &["request", "response"], notes)?;
    if let Some((node, at)) = fields.get("response")
        && entries(node).is_none_or(|all| !all.is_empty())
    {
        notes.error(node.place, &at, "is reserved; nothing is changed in responses");
    }
    let (request, at) = fields.required("request", notes)?;
    let known = ["headers", "on_existing_header", "allow_cookie"];
    let fields = Fields::of(request, at, &known, notes)?;
    let existing = [
        ("fail", OnExisting::Fail),
        ("replace", OnExisting::Replace),
        ("replace_placeholder", OnExisting::ReplacePlaceholder),
    ];
    let on_existing = fields.word("on_existing_header", &existing, notes).unwrap_or_default();
    let cookies = fields.flag("allow_cookie", notes);
    let (node, at) = fields.required("headers", notes)?;
    let Some(pairs) = entries(node) else {
        wrong_type(node, &at, "a mapping", notes);
        return None;
    };
    if pairs.is_empty() {
        notes.error(node.place, &at, "must not be empty");
        return None;
    }
    let mut headers: Vec<HeaderRule> = Vec::new();
    for (key, node) in pairs {
        let at = at.key(&key.text);
        let name = key.text.to_ascii_lowercase();
        if let Some(why) = refused(&name, cookies) {
            notes.error(key.place, &at, why);
        } else if headers.iter().any(|header| header.name == name) {
            notes.error(key.place, &at, "is there twice, in another case");
        }
        if let Some((secret, how)) = header(node, at, notes) {
            headers.push(HeaderRule { name, secret, how });
        }
    }
    Some(Transform { headers, on_existing })
}

/// Headers that say where a request goes, where it ends, or what becomes of the connection.
const NEVER: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
];

fn refused(name: &str, cookies: bool) -> Option<&'static str> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some("is not the name of a header");
    }
    let ours = name.starts_with("proxy-") || name.starts_with("x-agentbox-");
    if NEVER.contains(&name) || ours {
        return Some("belongs to the connection; no credential is put there");
    }
    (name == "cookie" && !cookies).then_some("needs allow_cookie: true beside headers")
}

fn header(node: &Node, at: At, notes: &mut Notes<'_>) -> Option<(SecretId, How)> {
    let fields = Fields::of(node, at, &["secret", "transform"], notes)?;
    let id = secret(&fields, notes);
    let (node, at) = fields.required("transform", notes)?;
    let how = Fields::of(node, at, &["type", "username", "template"], notes)?;
    let how = self::how(&how, notes)?;
    Some((id?, how))
}

/// The id of a stored credential.
pub(super) fn secret(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<SecretId> {
    let (node, at) = fields.required("secret", notes)?;
    let text = string(node, &at, notes)?;
    let id = text.parse::<SecretId>();
    id.map_err(|why| notes.error(node.place, &at, why.to_string())).ok()
}

fn how(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<How> {
    let (node, at) = fields.required("type", notes)?;
    let kind = string(node, &at, notes)?;
    let takes: &[&str] = match kind {
        "basic" => &["username"],
        "format" => &["template"],
        "bearer" | "raw" => &[],
        _ => {
            notes.error(node.place, &at, "must be bearer, basic, raw or format");
            return None;
        }
    };
    for other in ["username", "template"].iter().filter(|key| !takes.contains(key)) {
        if let Some((node, at)) = fields.get(other) {
            notes.error(node.place, &at, format!("means nothing with type: {kind}"));
        }
    }
    match kind {
        "bearer" => Some(How::Bearer),
        "raw" => Some(How::Raw),
        "basic" => username(fields, notes).map(|username| How::Basic { username }),
        _ => template(fields, notes),
    }
}

/// The user's name of a basic credential.
pub(super) fn username(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let (node, at) = fields.required("username", notes)?;
    let text = string(node, &at, notes)?;
    if text.chars().any(|c| c.is_control() || c == ':') {
        notes.error(node.place, &at, "must have no control characters and no :");
        return None;
    }
    Some(text.to_owned())
}

fn template(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<How> {
    let (node, at) = fields.required("template", notes)?;
    let text = string(node, &at, notes)?;
    let parts: Vec<&str> = text.split("{secret}").collect();
    let printable = text.bytes().all(|b| (0x20..0x7f).contains(&b));
    let [before, after] = parts[..] else {
        notes.error(node.place, &at, "must have {secret} once, as in \"token {secret}\"");
        return None;
    };
    if !printable {
        notes.error(node.place, &at, "must be printable ASCII");
        return None;
    }
    Some(How::Format { before: before.to_owned(), after: after.to_owned() })
}

/// Where a credential must not go without a word.
pub(super) fn check(
    fields: &Fields<'_>,
    host: Option<&HostPattern>,
    broad: bool,
    rules: &[ReadRule<'_>],
    notes: &mut Notes<'_>,
) {
    let say = "say broad_injection: true if that is meant";
    let (place, at) = (fields.node.place, fields.at.key("transform"));
    if host.is_some_and(HostPattern::is_wildcard) && !broad {
        let message =
            format!("would put a credential into requests to every host of a wildcard; {say}");
        notes.error(place, &at, message);
    }
    for (rule, node, at) in rules {
        if rule.schemes.contains(&Scheme::Http) {
            notes.error(
                node.place,
                at,
                "a credential is not sent in clear text: schemes must be [https]",
            );
        }
        if rule.action == Action::Deny {
            notes.error(
                node.place,
                at,
                "what is denied gets no credential; write it as an entry of its own",
            );
        }
        if rule.path.is_none() && rule.action != Action::Deny && !broad {
            let message = format!(
                "would put a credential into every request of the host; name a path, or {say}"
            );
            notes.error(node.place, at, message);
        }
    }
}
