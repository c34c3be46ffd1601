//! What a box is told when something is refused: a status, a word that programs can match, and a sentence
//! that an agent can act on.

use super::body::{Body, full};
use crate::line::{Line, fault_word};
use crate::request::CanonicalRequest;
use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, RETRY_AFTER,
};
use hyper::{Response, StatusCode, Version};
use protocol::egress::{InjectionFault, Reason, Traffic};
use protocol::text::{quoted, shortened, visible};
use serde_json::json;

pub(crate) const EGRESS: HeaderName = HeaderName::from_static("x-agentbox-egress");
pub(crate) const REASON: HeaderName = HeaderName::from_static("x-agentbox-reason");
pub(crate) const EVENT: HeaderName = HeaderName::from_static("x-agentbox-event");
/// Of a path in an answer.
const MOST_PATH: usize = 512;

/// Why something does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: Reason,
    /// For the log, and for the box unless it would tell it about the computer's network.
    pub detail: Option<String>,
}

impl Refusal {
    pub fn new(reason: Reason) -> Self {
        Self { reason, detail: None }
    }

    pub fn with(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: Some(detail.into()) }
    }

    pub fn injection(fault: InjectionFault, detail: &str) -> Self {
        let word = fault_word(fault);
        let detail = if detail.is_empty() { word.into() } else { format!("{word}: {detail}") };
        Self::with(Reason::HeaderInjectionFailed, detail)
    }

    fn told(&self) -> Option<&str> {
        told(self.reason, self.detail.as_deref()?)
    }
}

/// What of a detail a box may know: nothing of this computer's files, keychain or network.
pub(super) fn told(reason: Reason, detail: &str) -> Option<&str> {
    match reason {
        Reason::PrivateAddress => None,
        // The fault and the credential's name; what comes after that is for the person.
        Reason::HeaderInjectionFailed => {
            detail.match_indices(':').nth(1).map_or(Some(detail), |(at, _)| detail.get(..at))
        }
        _ => Some(detail),
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

impl From<crate::dial::Refused> for Refusal {
    fn from(refused: crate::dial::Refused) -> Self {
        Self::with(refused.reason, refused.detail)
    }
}

/// What an answer depends on besides the refusal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub accept: Option<HeaderValue>,
    pub version: Version,
    /// The rest of the connection cannot be told from the body.
    pub unread: bool,
    pub host: String,
    /// What was wanted, as far as it could be read.
    pub method: Option<String>,
    pub path: Option<String>,
    pub port: Option<u16>,
}

impl Asked {
    pub fn of(headers: &HeaderMap, version: Version, unread: bool) -> Self {
        Self { accept: headers.get(ACCEPT).cloned(), version, unread, ..Self::default() }
    }

    /// As far as a line of traffic tells it.
    pub fn of_line(line: &Traffic) -> Self {
        Self {
            host: line.host.clone().unwrap_or_default(),
            method: line.method.clone(),
            path: line.path.clone(),
            port: line.port.filter(|port| ![80, 443].contains(port)),
            ..Self::default()
        }
    }

    pub fn know(&mut self, request: &CanonicalRequest) {
        self.host = request.host.to_string();
        self.method = Some(request.method.clone());
        self.path = Some(request.target.path().to_owned());
        self.port = Some(request.port).filter(|port| *port != request.scheme.port());
    }
}

/// Writes the line and gives the answer.
pub(crate) fn refuse(line: Line, refusal: &Refusal, asked: &Asked) -> Response<Body> {
    let event = line.id().to_owned();
    line.blocked(refusal.reason, refusal.detail.as_deref());
    response(refusal, asked, &event)
}

pub(crate) fn response(refusal: &Refusal, asked: &Asked, event: &str) -> Response<Body> {
    let reason = refusal.reason;
    // The credential may stand in the path.
    let without_path = Asked { path: None, ..asked.clone() };
    let asked = if reason == Reason::SecretExfil { &without_path } else { asked };
    let in_json = prefers_json(asked.accept.as_ref());
    let text = if in_json { as_json(refusal, asked, event) } else { as_text(refusal, asked) };
    let mut response = Response::new(full(text));
    *response.status_mut() = StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::FORBIDDEN);
    let headers = response.headers_mut();
    let kind = if in_json { "application/json" } else { "text/plain; charset=utf-8" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(EGRESS, HeaderValue::from_static("blocked"));
    headers.insert(REASON, HeaderValue::from_static(reason.code()));
    if let Ok(event) = HeaderValue::from_str(event) {
        headers.insert(EVENT, event);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match reason {
        Reason::PolicyUnavailable => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        Reason::BoxAuthFailed => {
            let realm = HeaderValue::from_static("Basic realm=\"AgentBox\"");
            headers.insert(PROXY_AUTHENTICATE, realm);
        }
        _ => {}
    }
    if asked.unread && asked.version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn as_text(refusal: &Refusal, asked: &Asked) -> String {
    let host = if asked.host.is_empty() { "this request".into() } else { visible(&asked.host) };
    let wanted = match (&asked.method, &asked.path) {
        (Some(method), Some(path)) => format!(" ({method} {})", shortened(path, MOST_PATH)),
        (Some(method), None) => format!(" ({method})"),
        _ => String::new(),
    };
    let mut text = format!(
        "Blocked by AgentBox egress policy: {host}\nreason: {}{wanted}\n",
        refusal.reason.code()
    );
    if let Some(detail) = refusal.told() {
        text.push_str(&format!("detail: {}\n", shortened(detail, MOST_PATH)));
    }
    if let Some(hint) = hint(refusal.reason, asked) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

fn as_json(refusal: &Refusal, asked: &Asked, event: &str) -> String {
    let value = json!({
        "error": "Blocked by AgentBox egress policy",
        "reason": refusal.reason.code(),
        "host": asked.host,
        "method": asked.method,
        "path": asked.path.as_deref().map(|path| shortened(path, MOST_PATH)),
        "detail": refusal.told(),
        "hint": hint(refusal.reason, asked),
        "event": event,
    });
    format!("{value}\n")
}

/// What can be done about it.
pub(crate) fn hint(reason: Reason, asked: &Asked) -> Option<String> {
    let host = quoted(&asked.host);
    let allow =
        |rest: &str| Some(format!("ask the user to run: agentbox egress allow {host}{rest}"));
    let port = asked.port.map(|port| format!(" --port {port}")).unwrap_or_default();
    let request = || {
        let method = asked.method.as_deref().map(|m| format!(" --method {}", quoted(m)));
        let path =
            asked.path.as_deref().map(|p| format!(" --path {}", quoted(&shortened(p, MOST_PATH))));
        format!("{}{}{port}", method.unwrap_or_default(), path.unwrap_or_default())
    };
    let said = match reason {
        Reason::HostNotAllowed if asked.host.is_empty() => return None,
        Reason::HostNotAllowed | Reason::PortNotAllowed => return allow(&port),
        Reason::NoRuleMatched | Reason::WebsocketNotPermitted => return allow(&request()),
        Reason::HttpsNotPermitted | Reason::SchemeNotPermitted => {
            "this host is allowed by another scheme only; try https instead of http"
        }
        Reason::DeniedByRule => "a rule denies this; do not look for another way",
        Reason::AmbiguousPath => {
            "send the path without dot segments, escaped slashes or backslashes"
        }
        Reason::AuthorityMismatch | Reason::SniMismatch => {
            "the name in the request is not the one the connection was opened for"
        }
        Reason::NotHttp => "only HTTP and TLS pass; use https instead of ssh",
        Reason::BadRequest | Reason::BadRequestTarget => "the request is malformed",
        Reason::PrivateAddress => "private addresses are not reached from a box",
        Reason::GitRefDenied => "push to a branch that the policy allows",
        Reason::PlaceholderMisuse => {
            "a placeholder stands for a credential of another host; it is of no use here"
        }
        Reason::SecretExfil => "the request holds a credential that belongs to the user's computer",
        Reason::ApprovalDenied => "the user said no; do not try again",
        Reason::ApprovalTimeout => "the user did not answer; ask them, then try again",
        Reason::ApprovalQueueFull | Reason::TooManyConnections => "wait, then try again",
        Reason::PolicyUnavailable => "the policy cannot be read just now; try again in a while",
        Reason::HeaderInjectionFailed => {
            "a credential could not be put in; the user can see why with: agentbox egress log"
        }
        _ => return None,
    };
    Some(said.to_owned())
}

/// JSON is asked for, and text is not asked for more.
fn prefers_json(accept: Option<&HeaderValue>) -> bool {
    let Some(text) = accept.and_then(|value| value.to_str().ok()) else { return false };
    let weight = |wanted: fn(&str) -> bool| {
        let ranges = text.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().filter(|kind| wanted(kind))?;
            let q = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
            let _ = kind;
            q.parse::<f32>().ok()
        });
        ranges.fold(0.0_f32, f32::max)
    };
    let json = weight(|kind| kind == "application/json" || kind.ends_with("+json"));
    json > 0.0
        && json >= weight(|kind| kind == "text/plain" || kind == "text/html" || kind == "text/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefers(accept: &'static str) -> bool {
        prefers_json(Some(&HeaderValue::from_static(accept)))
    }

    #[test]
    fn a_box_learns_nothing_of_this_computer() {
        let open =
            "secret_resolution_failed: ex.token: /home/ada/.agentbox/secrets/x is open to others";
        let told = |detail| told(Reason::HeaderInjectionFailed, detail);
        assert_eq!(told(open), Some("secret_resolution_failed: ex.token"));
        let gone = "secret_resolution_failed: ex.token is not stored";
        assert_eq!(told(gone), Some(gone));
        assert_eq!(super::told(Reason::PrivateAddress, "10.0.0.1"), None);
    }

    #[test]
    fn json_for_those_who_want_it() {
        assert!(prefers("application/json"));
        assert!(prefers("application/vnd.github+json"));
        assert!(prefers("application/json, text/plain, */*"));
        assert!(!prefers("*/*"));
        assert!(!prefers("text/html,application/xhtml+xml,*/*;q=0.8"));
        assert!(!prefers("text/plain, application/json;q=0.5"));
        assert!(!prefers_json(None));
    }

    fn asked() -> Asked {
        Asked {
            host: "api.example.com".into(),
            method: Some("POST".into()),
            path: Some("/v1/admin".into()),
            ..Asked::default()
        }
    }

    #[test]
    fn the_text_says_what_why_and_what_to_do() {
        assert_eq!(
            as_text(&Refusal::new(Reason::NoRuleMatched), &asked()),
            "Blocked by AgentBox egress policy: api.example.com\n\
             reason: no_rule_matched (POST /v1/admin)\n\
             hint: ask the user to run: agentbox egress allow api.example.com --method POST --path /v1/admin\n"
        );
    }

    #[test]
    fn a_hint_is_one_command_whatever_the_path_holds() {
        let asked = Asked { path: Some("/a'; rm -rf ~ #\u{202e}".into()), ..asked() };
        let hint = hint(Reason::NoRuleMatched, &asked).unwrap();
        assert!(hint.ends_with("--path '/a'\\''; rm -rf ~ #⟨U+202E⟩'"), "{hint}");
    }

    #[test]
    fn a_box_is_not_told_where_names_lead() {
        let refusal = Refusal::with(Reason::PrivateAddress, "db.ex.com is at 10.0.0.1");
        assert!(!as_text(&refusal, &asked()).contains("10.0.0.1"));
        assert!(!as_json(&refusal, &asked(), "id").contains("10.0.0.1"));
    }
}
