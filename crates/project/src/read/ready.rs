//! `ready_when`.

use super::fields::{At, Fields, entries, scalar, string};
use super::units::is_passable;
use crate::problem::Problems;
use crate::shape::{ON_TIMEOUT, PROBES, READY_WHEN};
use crate::{OnTimeout, Pattern, Probe, ReadyWhen};
use url::Url;
use yaml::Node;

const KIND: &str = "Y020";
const VALUE: &str = "Y021";

pub(super) fn ready_when(service: &Fields<'_>, problems: &mut Problems) -> Option<ReadyWhen> {
    let (node, at) = service.get("ready_when")?;
    if entries(node).is_none() {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error(KIND, node.place, at.path(), &message);
        return None;
    }
    let fields = Fields::new(node, at.clone(), READY_WHEN);
    fields.warn_unknown(problems);
    let given: Vec<_> = PROBES.iter().filter(|(kind, _)| fields.has(kind)).collect();
    let kinds = |all: &[&(&'static str, &[&str])]| {
        all.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
    };
    let (kind, foreign) = match given.as_slice() {
        [one] => **one,
        [] => {
            let message = format!("needs one of {}", kinds(&PROBES.iter().collect::<Vec<_>>()));
            problems.error(KIND, node.place, at.path(), &message);
            return None;
        }
        several => {
            let message = format!("has {}; one of them is possible", kinds(several));
            problems.error(KIND, node.place, at.path(), &message);
            return None;
        }
    };
    for key in fields.keys().filter(|key| foreign.contains(&key.text.as_str())) {
        let message = format!("is not possible with {kind}");
        problems.error(VALUE, key.place, at.key(&key.text).path(), &message);
    }
    let mut time = |key| fields.millis_or(key, VALUE, problems);
    let interval = time("interval_ms");
    let initial_delay = time("initial_delay_ms");
    let timeout = time("timeout_ms");
    let on_timeout = on_timeout(&fields, problems);
    let host = host(&fields, problems);
    let expect_status = fields.int("expect_status", VALUE, problems);
    let expect_status = expect_status.and_then(|status| u16::try_from(status).ok());
    let (value, at) = fields.get(kind)?;
    let probe = match kind {
        "port" => {
            let port = fields.int("port", VALUE, problems)?;
            Probe::Port { port: u16::try_from(port).ok()?, host, interval, initial_delay }
        }
        "http" => {
            let url = http_url(value, &at, problems)?;
            Probe::Http { url, expect_status, interval, initial_delay }
        }
        _ => Probe::LogMatch(log_match(value, &at, problems)?),
    };
    Some(ReadyWhen { probe, timeout, on_timeout })
}

fn on_timeout(fields: &Fields<'_>, problems: &mut Problems) -> OnTimeout {
    let Some((node, at)) = fields.get("on_timeout") else { return OnTimeout::Kill };
    match string(node) {
        Some("kill") => OnTimeout::Kill,
        Some("mark_unhealthy") => OnTimeout::MarkUnhealthy,
        _ => {
            let message = format!("must be {}", ON_TIMEOUT.join(" or "));
            problems.error(VALUE, node.place, at.path(), &message);
            OnTimeout::Kill
        }
    }
}

fn host(fields: &Fields<'_>, problems: &mut Problems) -> Option<String> {
    let text = fields.string("host", VALUE, problems)?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        let (node, at) = fields.get("host")?;
        problems.error(VALUE, node.place, at.path(), "must be a host, such as 127.0.0.1");
        return None;
    }
    Some(text.to_owned())
}

fn http_url(node: &Node, at: &At, problems: &mut Problems) -> Option<Url> {
    let bad = |problems: &mut Problems, why: &str| {
        let message = format!("must be an address such as http://127.0.0.1:3000/health: {why}");
        problems.error(VALUE, node.place, at.path(), &message);
        None
    };
    let Some(text) = string(node) else { return bad(problems, &format!("it is {}", node.what())) };
    match Url::parse(text) {
        Err(why) => bad(problems, &why.to_string()),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            bad(problems, "only http and https are possible")
        }
        Ok(url) => Some(url),
    }
}

fn log_match(node: &Node, at: &At, problems: &mut Problems) -> Option<Pattern> {
    // Letters are letters: `log_match: 3000` looks for that number.
    let text = scalar(node).filter(|scalar| !scalar.is_null()).map(|scalar| &scalar.text);
    let Some(text) = text.filter(|text| !text.is_empty() && is_passable(text)) else {
        let message = format!("must be a regular expression, not {}", node.what());
        problems.error("Y022", node.place, at.path(), &message);
        return None;
    };
    let room = problems.room_for_pattern();
    match room.and_then(|()| Pattern::new(text).map_err(|why| why.to_string())) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            let message = format!("is no regular expression: {why}");
            problems.error("Y022", node.place, at.path(), &message);
            None
        }
    }
}
