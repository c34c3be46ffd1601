//! `egress.agentbox.internal`: what a box may ask the proxy itself.
//!
//! Why something was refused, whether something would be, what stands in for a credential; and it may ask
//! for something before it tries. Nothing here grants anything: a question raised here is answered by the
//! person, on the person's side.

use super::answer::{Asked, Refusal, hint, refuse};
use super::body::{Body, full};
use super::http::authority_of;
use super::serve::Connection;
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::{ConnectVerdict, Policy, ShimKind, Verdict};
use crate::ports::{Answer, Ask};
use crate::request::{CanonicalRequest, QueryMap, Scheme, Target, method};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode, Uri, Version};
use protocol::egress::{Reason, Traffic, TrafficKind};
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "egress.agentbox.internal";
const MOST_BODY: usize = 16 * 1024;
/// Of what a box says for itself.
const MOST_WHY: usize = 500;

pub(super) fn is_ours(host: &HostName) -> bool {
    host.as_str() == NAME
}

pub(super) async fn answer(
    connection: &Connection,
    policy: &Policy,
    request: &CanonicalRequest,
    headers: &HeaderMap,
    body: Incoming,
) -> Response<Body> {
    let query = request.target.query_map().unwrap_or_default();
    let reads = matches!(request.method.as_str(), "GET" | "HEAD");
    match request.target.path() {
        "/healthz" if reads => plain("ok\n"),
        "/why" if reads => why(connection, &query),
        "/check" if reads => check(policy, &query),
        "/shim" if reads => shim(connection, policy, &query),
        "/request" if request.method == "POST" => ask(connection, policy, body).await,
        _ => {
            let mut line = Line::new(&connection.state.notebook, TrafficKind::Request);
            line.request(request);
            let mut asked = Asked::of(headers, Version::HTTP_11, true);
            asked.know(request);
            let detail = "a box cannot answer questions or change what it may reach";
            refuse(line, &Refusal::with(Reason::DeniedByRule, detail), &asked)
        }
    }
}

fn first<'a>(query: &'a QueryMap, name: &str) -> Option<&'a str> {
    query.get(name)?.first().map(String::as_str)
}

fn plain(text: &'static str) -> Response<Body> {
    respond(StatusCode::OK, "text/plain; charset=utf-8", text.to_owned())
}

fn said(status: StatusCode, value: &Value) -> Response<Body> {
    respond(status, "application/json", format!("{value}\n"))
}

fn bad(error: &str) -> Response<Body> {
    said(StatusCode::BAD_REQUEST, &json!({ "error": error }))
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `/why?id=…` or `/why?last`.
fn why(connection: &Connection, query: &QueryMap) -> Response<Body> {
    let id = first(query, "id");
    match connection.state.notebook.refusal(id) {
        Some(line) => said(StatusCode::OK, &shown(&line)),
        None => {
            let error = "nothing was refused that is still remembered";
            said(StatusCode::NOT_FOUND, &json!({ "error": error }))
        }
    }
}

fn shown(line: &Traffic) -> Value {
    let asked = Asked {
        host: line.host.clone().unwrap_or_default(),
        method: line.method.clone(),
        path: line.path.clone(),
        port: line.port.filter(|port| ![80, 443].contains(port)),
        ..Asked::default()
    };
    let tells = line.reason != Some(Reason::PrivateAddress);
    json!({
        "id": line.id,
        "at": line.at,
        "reason": line.reason,
        "detail": line.detail.as_deref().filter(|_| tells),
        "scheme": line.scheme,
        "host": line.host,
        "port": line.port,
        "method": line.method,
        "path": line.path,
        "hint": line.reason.and_then(|reason| hint(reason, &asked)),
    })
}

/// `/check?url=…&method=…`: what would become of a request that is not made.
fn check(policy: &Policy, query: &QueryMap) -> Response<Body> {
    let Some(url) = first(query, "url") else { return bad("url is missing") };
    let wanted = first(query, "method").unwrap_or("GET");
    let (word, reason, request) = match read(url, wanted) {
        Ok(request) => {
            let (word, reason) = would(policy, &request);
            (word, reason, Some(request))
        }
        Err(reason) => ("deny", Some(reason), None),
    };
    let mut asked = Asked::default();
    if let Some(request) = &request {
        asked.know(request);
    }
    let hint = reason.filter(|_| word == "deny").and_then(|reason| hint(reason, &asked));
    said(StatusCode::OK, &json!({ "verdict": word, "reason": reason, "hint": hint }))
}

fn would(policy: &Policy, request: &CanonicalRequest) -> (&'static str, Option<Reason>) {
    if is_ours(&request.host) {
        return ("allow", None);
    }
    if request.scheme == Scheme::Https {
        match policy.at_connect(&request.host, request.port) {
            ConnectVerdict::Refuse(reason) => return ("deny", Some(reason)),
            ConnectVerdict::Passthrough(_) => return ("allow", Some(Reason::RuleMatched)),
            _ => {}
        }
    }
    match policy.decide(request) {
        Verdict::Allow(_) => ("allow", Some(Reason::RuleMatched)),
        Verdict::Observe(_) => ("allow", Some(Reason::Observed)),
        Verdict::Ask(_) => ("ask", None),
        Verdict::Deny(reason, _) => ("deny", Some(reason)),
    }
}

fn read(url: &str, wanted: &str) -> Result<CanonicalRequest, Reason> {
    let uri: Uri = url.parse().map_err(|_| Reason::BadRequestTarget)?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(Reason::BadRequestTarget),
    };
    let authority = uri.authority().and_then(authority_of);
    let (host, port) = authority.ok_or(Reason::BadRequestTarget)?;
    let port = port.unwrap_or(scheme.port());
    let target = Target::parse(uri.path_and_query().map_or("/", |target| target.as_str()))?;
    let method = method(wanted)?;
    Ok(CanonicalRequest { scheme, host, port, method, target, websocket: false })
}

/// What a box wants before it tries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    host: String,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    why: Option<String>,
}

/// `POST /request`: waits for the person.
async fn ask(connection: &Connection, policy: &Policy, body: Incoming) -> Response<Body> {
    let Ok(body) = Limited::new(body, MOST_BODY).collect().await else {
        return bad("the body is too long");
    };
    let wish: Wish = match serde_json::from_slice(&body.to_bytes()) {
        Ok(wish) => wish,
        Err(e) => return bad(&format!("the body is not what was expected: {e}")),
    };
    let port = wish.port.map(|port| format!(":{port}")).unwrap_or_default();
    let path = wish.path.as_deref().unwrap_or("/");
    let url = format!("https://{}{port}{path}", wish.host);
    let request = match read(&url, wish.method.as_deref().unwrap_or("GET")) {
        Ok(request) => request,
        Err(reason) => return bad(reason.code()),
    };
    match would(policy, &request) {
        ("allow", reason) => {
            return said(StatusCode::OK, &json!({ "answer": "allowed", "reason": reason }));
        }
        // What a policy denies is not for a box to ask about.
        ("deny", Some(reason @ (Reason::DeniedByRule | Reason::MethodForbidden))) => {
            return said(StatusCode::OK, &json!({ "answer": "denied", "reason": reason }));
        }
        _ => {}
    }
    let raised = Ask {
        box_id: connection.state.id.clone(),
        scheme: request.scheme,
        host: request.host.clone(),
        port: request.port,
        method: request.method.clone(),
        path: request.target.path().to_owned(),
        length: None,
        websocket: false,
        secrets: Vec::new(),
        rule: None,
        why: wish.why.map(|why| why.chars().take(MOST_WHY).collect()),
    };
    let answer = connection.shared.deps.gate.ask(raised).await;
    let word = match answer {
        Answer::Allowed(_) => "allowed",
        Answer::Denied(_) => "denied",
        Answer::Unanswered => "unanswered",
        Answer::TooMany => "too_many",
    };
    said(StatusCode::OK, &json!({ "answer": word, "reason": answer.refusal() }))
}

/// `/shim?host=…` for a program that asks for a login; `/shim` for all that is made up for this box.
fn shim(connection: &Connection, policy: &Policy, query: &QueryMap) -> Response<Body> {
    let placeholder = |secrets: &[protocol::SecretId]| {
        let all = &connection.state.placeholders;
        let found = all.iter().find(|fake| secrets.contains(&fake.secret));
        found.map(|fake| fake.value.clone())
    };
    if let Some(host) = first(query, "host") {
        let Ok(host) = HostName::parse(host) else { return bad("that is no host") };
        let login = policy.shims.iter().filter(|shim| shim.host == host).find_map(|shim| {
            let ShimKind::GitAskpass { username } = &shim.kind else { return None };
            Some(json!({ "username": username, "password": placeholder(&shim.secrets)? }))
        });
        return match login {
            Some(login) => said(StatusCode::OK, &login),
            None => said(StatusCode::NOT_FOUND, &json!({ "error": "no login is made up for it" })),
        };
    }
    let variables = policy.shims.iter().filter_map(|shim| {
        let ShimKind::Env { name } = &shim.kind else { return None };
        Some((name.clone(), Value::String(placeholder(&shim.secrets)?)))
    });
    let env: serde_json::Map<String, Value> = variables.collect();
    let hosts = policy.shims.iter().filter(|s| matches!(s.kind, ShimKind::GitAskpass { .. }));
    let hosts: Vec<String> = hosts.map(|shim| shim.host.to_string()).collect();
    said(StatusCode::OK, &json!({ "env": env, "logins": hosts }))
}
