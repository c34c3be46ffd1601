//! `gh api`: the review comments of a pull request, read and written.
//!
//! Two addresses and two methods. Fields become one JSON body that the host gives to `gh` on its
//! standard input, so no spelling of a field can name a file or a placeholder.
//!
//! The surprising thing: a field makes it a POST, as with `gh` itself, and a split field flag takes
//! the next word whatever it is: in `-f -X=GET` there is no method.

use super::slug::number;
use super::{JQ, RepoSlug};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Refused};
use crate::refusal::Refusal;
use protocol::text::visible;
use serde_json::{Map, Value as Json};

#[derive(Debug, Clone, PartialEq)]
pub struct Api {
    pub method: Method,
    pub place: Place,
    /// Of a read: names and values that stand in the address as they are.
    query: Vec<(String, String)>,
    /// Of a write.
    pub body: Map<String, Json>,
    filter: Option<String>,
    paginate: bool,
    silent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// Where: a pull request's review comments, or the answers to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Comments { pr: u64 },
    Replies { pr: u64, to: u64 },
}

const SURFACE: &str = "gh api";

static API: Grammar = Grammar {
    surface: SURFACE,
    flags: &[
        Flag::text("--method", Some("-X")),
        Flag::text("--raw-field", Some("-f")).repeating(),
        Flag::text("--field", Some("-F")).repeating(),
        JQ,
        Flag::plain("--paginate", None),
        Flag::plain("--silent", None),
    ],
    refused: &[
        Refused { spellings: &["--input"], why: "reads a file of the host" },
        Refused {
            spellings: &["--header", "-H", "--preview", "-p"],
            why: "can change what the request means",
        },
        Refused {
            spellings: &["--hostname", "--repo", "-R"],
            why: "names another host or repository",
        },
        Refused { spellings: &["--template", "-t"], why: "is not available here; use '--jq'" },
        Refused { spellings: &["--cache"], why: "answers from an earlier time" },
        Refused {
            spellings: &["--include", "-i"],
            why: "shows headers that are the host's own business",
        },
    ],
    positionals: Positionals::NONE,
};

/// Fields of a review comment; the values of the last ones are numbers.
const TEXTS: &[&str] = &["body", "commit_id", "path", "side", "start_side", "subject_type"];
const NUMBERS: &[&str] = &["position", "line", "start_line", "in_reply_to"];
const QUERY: &[&str] = &["per_page", "page", "sort", "direction", "since"];

/// The endpoint among the words of `gh api …`, and the words without it.
pub fn split_endpoint(words: &[String]) -> Result<(String, Vec<String>), Refusal> {
    let spread = spread(words);
    let mut rest = Vec::new();
    let mut endpoint = None;
    let mut words = spread.into_iter();
    let mut flags_ended = false;
    while let Some(word) = words.next() {
        if word == "--" && !flags_ended {
            flags_ended = true;
        } else if !flags_ended && word.starts_with('-') {
            let takes_value = VALUES.contains(&word.as_str());
            rest.push(word);
            rest.extend(words.next().filter(|_| takes_value));
        } else if endpoint.replace(word).is_some() {
            return Err(API.refuse("one endpoint is taken, not two."));
        }
    }
    let endpoint =
        endpoint.ok_or_else(|| API.refuse(format!("an endpoint is needed. {ALLOWED}")))?;
    Ok((endpoint, rest))
}

const ALLOWED: &str = "Possible: repos/{owner}/{repo}/pulls/<number>/comments and …/comments/<id>/replies of this box's repository.";

/// Flags whose value may be the next word.
const VALUES: &[&str] = &["-X", "--method", "-f", "--raw-field", "-F", "--field", "-q", "--jq"];

/// Splits the glued forms `gh` has for three of its flags: `-XGET`, `-X=GET`, `-fbody=x`. The value
/// of a flag is never looked into.
fn spread(words: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let glued =
            ["-X", "-f", "-F"].into_iter().find_map(|flag| Some((flag, word.strip_prefix(flag)?)));
        match glued.filter(|(_, value)| !value.is_empty()) {
            Some((flag, value)) => {
                out.extend([flag.to_owned(), value.strip_prefix('=').unwrap_or(value).to_owned()]);
            }
            None => {
                out.push(word.clone());
                if word == "--" {
                    out.extend(words.by_ref().cloned());
                } else if VALUES.contains(&word.as_str()) {
                    out.extend(words.next().cloned());
                }
            }
        }
    }
    out
}

impl Api {
    pub fn parse(endpoint: &str, args: &[String], repo: &RepoSlug) -> Result<Self, Refusal> {
        crate::grammar::check_size(SURFACE, args)?;
        let parsed = API.parse(&spread(args))?;
        let (path, query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
        let place = Place::parse(path, repo)?;
        let method = method(&parsed)?;
        let mut api = Self {
            method,
            place,
            query: pairs(query)?,
            body: Map::new(),
            filter: parsed.value("--jq").map(str::to_owned),
            paginate: parsed.has("--paginate"),
            silent: parsed.has("--silent"),
        };
        for (flag, typed) in [("--raw-field", false), ("--field", true)] {
            for field in parsed.values(flag) {
                api.take(field, typed)?;
            }
        }
        if method == Method::Post {
            let text = api.body.get("body").and_then(Json::as_str).unwrap_or_default();
            if text.trim().is_empty() {
                return Err(API.refuse("a comment needs a field 'body' with some text."));
            }
            if !api.query.is_empty() || api.paginate {
                return Err(API.refuse("a write takes neither a query nor '--paginate'."));
            }
        }
        Ok(api)
    }

    fn take(&mut self, field: &str, typed: bool) -> Result<(), Refusal> {
        let (key, value) = field.split_once('=').ok_or_else(|| {
            API.refuse(format!("'{}' is no field; write key=value.", visible(field)))
        })?;
        if typed && value.starts_with('@') {
            let text =
                format!("field '{}' would read a file of the host; it is refused.", visible(key));
            return Err(API.refuse(text));
        }
        if self.method == Method::Get {
            return ask(&mut self.query, key, value);
        }
        let value = typed_value(key, value, typed)?;
        match self.body.insert(key.to_owned(), value) {
            Some(_) => Err(twice(key)),
            None => Ok(()),
        }
    }

    /// The text of a comment to be written.
    pub fn text(&self) -> &str {
        self.body.get("body").and_then(Json::as_str).unwrap_or_default()
    }

    /// The command line for `gh`, and what it reads.
    pub fn argv(&self, repo: &RepoSlug) -> (Vec<String>, Option<String>) {
        let mut argv = vec!["api".to_owned(), format!("--method={}", self.method.as_str())];
        let stdin =
            (self.method == Method::Post).then(|| Json::Object(self.body.clone()).to_string());
        argv.extend(stdin.is_some().then(|| "--input=-".to_owned()));
        argv.extend(self.filter.as_ref().map(|filter| format!("--jq={filter}")));
        argv.extend(self.paginate.then(|| "--paginate".to_owned()));
        argv.extend(self.silent.then(|| "--silent".to_owned()));
        argv.push("--".to_owned());
        argv.push(self.place.endpoint(repo, &self.query));
        (argv, stdin)
    }
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

fn method(parsed: &Parsed) -> Result<Method, Refusal> {
    let has_field = parsed.has("--raw-field") || parsed.has("--field");
    match parsed.value("--method").map(str::to_ascii_uppercase).as_deref() {
        Some("GET") => Ok(Method::Get),
        Some("POST") => Ok(Method::Post),
        Some(other) => {
            let text =
                format!("method '{}' is refused; GET and POST are possible.", visible(other));
            Err(API.refuse(text))
        }
        None if has_field => Ok(Method::Post),
        None => Ok(Method::Get),
    }
}

impl Place {
    fn parse(path: &str, repo: &RepoSlug) -> Result<Self, Refusal> {
        let refuse = || API.refuse(format!("endpoint '{}' is refused. {ALLOWED}", visible(path)));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (owner, name, place) = match parts[..] {
            ["repos", owner, name, "pulls", pr, "comments"] => {
                (owner, name, number(pr).map(|pr| Place::Comments { pr }))
            }
            ["repos", owner, name, "pulls", pr, "comments", to, "replies"] => {
                let place =
                    number(pr).zip(comment_id(to)).map(|(pr, to)| Place::Replies { pr, to });
                (owner, name, place)
            }
            _ => return Err(refuse()),
        };
        let owner = if matches!(owner, "{owner}" | ":owner") { repo.owner() } else { owner };
        let name = if matches!(name, "{repo}" | ":repo") { repo.name() } else { name };
        place.filter(|_| repo.is(owner, name)).ok_or_else(refuse)
    }

    pub fn pr(self) -> u64 {
        match self {
            Place::Comments { pr } | Place::Replies { pr, .. } => pr,
        }
    }

    fn endpoint(self, repo: &RepoSlug, query: &[(String, String)]) -> String {
        let start = format!("repos/{}/{}/pulls/{}/comments", repo.owner(), repo.name(), self.pr());
        let path = match self {
            Place::Comments { .. } => start,
            Place::Replies { to, .. } => format!("{start}/{to}/replies"),
        };
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }
}

/// Longer than a pull request's number.
fn comment_id(text: &str) -> Option<u64> {
    let good = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|id| good && *id > 0)
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        ask(&mut pairs, key, value)?;
    }
    Ok(pairs)
}

/// Adds one name and value to a query.
fn ask(query: &mut Vec<(String, String)>, key: &str, value: &str) -> Result<(), Refusal> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
    if !QUERY.contains(&key) || value.is_empty() || !value.bytes().all(plain) {
        let (pair, list) = (visible(&format!("{key}={value}")), QUERY.join(", "));
        return Err(API.refuse(format!("'{pair}' is refused in a query; possible: {list}.")));
    }
    if query.iter().any(|(known, _)| known == key) {
        return Err(twice(key));
    }
    query.push((key.to_owned(), value.to_owned()));
    Ok(())
}

fn twice(key: &str) -> Refusal {
    API.refuse(format!("field '{}' was given twice. Give it once.", visible(key)))
}

/// `-F` guesses a type and `-f` does not, with `gh`; here the field's name says it.
fn typed_value(key: &str, value: &str, typed: bool) -> Result<Json, Refusal> {
    if TEXTS.contains(&key) {
        return Ok(Json::from(value));
    }
    if !NUMBERS.contains(&key) {
        let list = [TEXTS, NUMBERS].concat().join(", ");
        return Err(API.refuse(format!("field '{}' is refused; possible: {list}.", visible(key))));
    }
    let digits = (1..=18).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
    match value.parse::<u64>() {
        Ok(number) if digits => Ok(Json::from(number)),
        _ => {
            let flag = if typed { "-F" } else { "-f" };
            Err(API.refuse(format!("'{flag} {key}=' takes a number, not '{}'.", visible(value))))
        }
    }
}
