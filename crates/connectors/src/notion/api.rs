//! `ntn api`, for reading only.
//!
//! The words are taken apart as `ntn` does it, but nothing is inferred twice: an unknown flag might
//! take a value, so that the harmless endpoint we see is that value and another word the endpoint.
//! Hence every flag that is not known is refused.

use super::{VERSION, id, inline, no_text, quoted, request};
use crate::connector::{Action, Input, Prepared};
use crate::grammar::check_size;
use crate::refusal::Refusal;
use serde_json::Value as Json;

const SURFACE: &str = "notion api";

/// Flags without a value, by every spelling, and the one that is passed on.
const SWITCHES: &[(&str, &str)] = &[
    ("--spec", "--spec"),
    ("--docs", "--docs"),
    ("-h", "--help"),
    ("--help", "--help"),
    ("-v", "--verbose"),
    ("--verbose", "--verbose"),
    ("-V", "--version"),
    ("--version", "--version"),
];

pub(super) fn parse(input: &Input<'_>) -> Result<Prepared, Refusal> {
    check_size(SURFACE, input.args)?;
    no_text(SURFACE, input)?;
    let line = Line::read(input.args)?;
    let action = match line.bare.split_first() {
        None => line.about()?,
        Some((&"ls", [])) if line.is_bare() => {
            Action::Run { args: vec!["api".to_owned(), "ls".to_owned()], stdin: None }
        }
        Some((endpoint, inputs)) => line.request(endpoint, inputs)?,
    };
    Ok(Prepared::read(action))
}

/// The words of one call, each known for what it is.
#[derive(Default)]
struct Line<'a> {
    method: Option<&'a str>,
    data: Option<&'a str>,
    version: Option<&'a str>,
    switches: Vec<&'static str>,
    /// The endpoint, then inline inputs.
    bare: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(args: &'a [String]) -> Result<Self, Refusal> {
        let mut line = Self::default();
        let mut words = args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let mut next =
                |flag: &str| words.next().ok_or_else(|| refuse(format!("'{flag}' needs a value.")));
            match word {
                "-X" | "--method" => once("-X", &mut line.method, next("-X")?)?,
                "-d" | "--data" => once("-d", &mut line.data, next("-d")?)?,
                "--notion-version" => {
                    once("--notion-version", &mut line.version, next("--notion-version")?)?;
                }
                _ => line.glued(word)?,
            }
        }
        // An empty method is none.
        line.method = line.method.filter(|m| !m.is_empty());
        Ok(line)
    }

    /// A word that holds all there is to it.
    fn glued(&mut self, word: &'a str) -> Result<(), Refusal> {
        let after = |prefix: &str| word.strip_prefix(prefix);
        if let Some(method) = after("--method=") {
            once("-X", &mut self.method, method)
        } else if let Some(data) = after("--data=") {
            once("-d", &mut self.data, data)
        } else if let Some(version) = after("--notion-version=") {
            once("--notion-version", &mut self.version, version)
        } else if let Some(method) = after("-X") {
            once("-X", &mut self.method, method.strip_prefix('=').unwrap_or(method))
        } else if let Some(data) = after("-d") {
            once("-d", &mut self.data, data)
        } else if let Some((_, switch)) = SWITCHES.iter().find(|(spelled, _)| *spelled == word) {
            self.switches.push(switch);
            Ok(())
        } else if ["--file", "--input"]
            .iter()
            .any(|f| word == *f || after(f).is_some_and(|v| v.starts_with('=')))
        {
            Err(refuse(format!(
                "{} is refused: it reads a file of the host. Give the body with -d.",
                quoted(word)
            )))
        } else if word.starts_with('-') {
            Err(refuse(format!(
                "unsupported flag {}. Allowed: -X, -d, --notion-version, --spec, --docs, --help, \
                 --verbose, --version.",
                quoted(word)
            )))
        } else {
            self.bare.push(word);
            Ok(())
        }
    }

    /// Nothing but bare words.
    fn is_bare(&self) -> bool {
        self.method.is_none()
            && self.data.is_none()
            && self.version.is_none()
            && self.switches.is_empty()
    }

    /// A call without an endpoint asks about the program; no request is made.
    fn about(&self) -> Result<Action, Refusal> {
        let about = self.switches.iter().find(|s| matches!(**s, "--help" | "--version"));
        match about {
            Some(switch) if self.method.is_none() && self.data.is_none() => {
                Ok(Action::Run { args: vec!["api".to_owned(), (*switch).to_owned()], stdin: None })
            }
            _ => Err(refuse("an endpoint is needed, such as v1/users/me.")),
        }
    }

    fn request(&self, endpoint: &str, inputs: &[&str]) -> Result<Action, Refusal> {
        let segments = segments(endpoint)?;
        let (query, assigned) = inline::read(inputs).map_err(refuse)?;
        let body = match (self.data, assigned) {
            (Some(_), Some(_)) => {
                return Err(refuse("the body came twice: with -d and as inputs."));
            }
            (Some(data), None) => Some(object(data)?),
            (None, assigned) => assigned,
        };
        let inferred = if body.is_some() { "POST" } else { "GET" };
        let method = self.method.map_or(inferred.to_owned(), str::to_ascii_uppercase);
        let (method, body) = match (method.as_str(), body) {
            ("GET", None) => ("GET", None),
            ("GET", Some(_)) => {
                return Err(refuse("a GET has no body. Leave out -X GET, or the body."));
            }
            ("POST", body) if only_reads(&segments) => {
                ("POST", Some(body.unwrap_or_else(|| Json::Object(serde_json::Map::new()))))
            }
            ("POST", _) => {
                return Err(refuse(format!(
                    "POST to {} is refused: only v1/search, v1/databases/<id>/query and \
                     v1/data_sources/<id>/query read. Use page.create, page.update or comment.add for writes.",
                    quoted(endpoint)
                )));
            }
            (other, _) => {
                return Err(refuse(format!(
                    "only GET and read-only POST are proxied (use page.create / page.update for \
                     writes); detected method {}",
                    quoted(other)
                )));
            }
        };
        let version = self.version.unwrap_or(VERSION);
        if !is_date(version) {
            let text =
                format!("'--notion-version' takes a date like {VERSION}, not {}.", quoted(version));
            return Err(refuse(text));
        }
        Ok(request(method, version, &self.switches, &segments.join("/"), &query, body.as_ref()))
    }
}

/// A second value could be the one `ntn` goes by.
fn once<'a>(flag: &str, place: &mut Option<&'a str>, value: &'a str) -> Result<(), Refusal> {
    match place.replace(value) {
        Some(_) => Err(refuse(format!("'{flag}' was given twice. Give it once."))),
        None => Ok(()),
    }
}

/// An endpoint's parts: `v1` and names. No scheme, host, query, escape or dots fit.
fn segments(endpoint: &str) -> Result<Vec<&str>, Refusal> {
    let segments: Vec<&str> = endpoint.strip_prefix('/').unwrap_or(endpoint).split('/').collect();
    let plain = |s: &&str| {
        !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    if segments.len() < 2 || segments.first() != Some(&"v1") || !segments.iter().all(plain) {
        let text = format!(
            "{} is no endpoint. Give a path like v1/users/me, and a query as name==value beside it.",
            quoted(endpoint)
        );
        return Err(refuse(text));
    }
    Ok(segments)
}

/// The endpoints whose POST changes nothing.
fn only_reads(segments: &[&str]) -> bool {
    match segments {
        ["v1", "search"] => true,
        ["v1", "databases" | "data_sources", at, "query"] => id(at).is_some(),
        _ => false,
    }
}

fn object(data: &str) -> Result<Json, Refusal> {
    if data.starts_with('@') {
        return Err(refuse(format!(
            "-d {} is refused: it names a file of the host.",
            quoted(data)
        )));
    }
    match serde_json::from_str(data) {
        Ok(body @ Json::Object(_)) => Ok(body),
        Ok(_) => Err(refuse("-d takes a JSON object.")),
        Err(e) => Err(refuse(format!("-d takes a JSON object: {e}."))),
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| match at {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
}

fn refuse(why: impl AsRef<str>) -> Refusal {
    Refusal::rule(SURFACE, why)
}
