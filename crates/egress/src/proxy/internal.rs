//! `egress.agentbox.internal`: what a box may ask the proxy itself.
//!
//! Why something was refused, whether something would be, what stands in for a credential; and it may ask
//! for something before it tries. Nothing here grants anything: a question raised here is answered by the
//! person, on the person's side.

use super::answer::{Asked, Refusal, hint, refuse, told};
use super::body::{Body, full};
use super::serve::Connection;
use crate::check;
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::{Policy, ShimKind, is_reserved};
use crate::ports::{Answer, Ask};
use crate::request::{CanonicalRequest, QueryMap, READS};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode, Version};
use protocol::egress::inside::{
    CHECK, Checked, Granted, HEALTH, HOST, POLICY, REQUEST, SHIM, Shim, WHY, Why, Wish,
};
use protocol::egress::{EgressVerdict, PolicyForm, Reason, Traffic, TrafficKind};
use serde::Serialize;
use serde_json::{Value, json};

const MOST_BODY: usize = 16 * 1024;
/// Of what a box says for itself.
const MOST_WHY: usize = 500;
const TEXT: &str = "text/plain; charset=utf-8";
const YAML: &str = "text/yaml; charset=utf-8";

pub(crate) fn is_ours(host: &HostName) -> bool {
    host.as_str() == HOST
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
        HEALTH if reads => respond(StatusCode::OK, TEXT, "ok\n".to_owned()),
        POLICY if reads => respond(StatusCode::OK, YAML, policy.to_yaml(PolicyForm::Public)),
        WHY if reads => why(connection, &query),
        CHECK if reads => would(policy, &query),
        SHIM if reads => shim(connection, policy, &query),
        REQUEST if request.method == "POST" => ask(connection, policy, body).await,
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

fn said(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_string(value).unwrap_or_default();
    respond(status, "application/json", format!("{text}\n"))
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

fn why(connection: &Connection, query: &QueryMap) -> Response<Body> {
    match connection.state.notebook.refusal(first(query, "event")) {
        Some(line) => said(StatusCode::OK, &shown(line)),
        None => {
            let error = "nothing was refused that is still remembered";
            said(StatusCode::NOT_FOUND, &json!({ "error": error }))
        }
    }
}

fn shown(line: Traffic) -> Why {
    let reason = line.reason.unwrap_or(Reason::BadRequest);
    let hint = hint(reason, &Asked::of_line(&line)).unwrap_or_default();
    let detail = line.detail.as_deref().and_then(|detail| told(reason, detail)).map(str::to_owned);
    let port = line.port.filter(|port| ![80, 443].contains(port)).map(|port| format!(":{port}"));
    let place = [line.host, port, line.path].map(Option::unwrap_or_default).concat();
    let request = format!("{} {place}", line.method.unwrap_or_default()).trim_start().to_owned();
    Why { event: line.id, reason, request, detail, hint }
}

/// What would become of a request that is not made.
fn would(policy: &Policy, query: &QueryMap) -> Response<Body> {
    let Some(url) = first(query, "url") else { return bad("url is missing") };
    let wanted = first(query, "method").unwrap_or("GET");
    let (request, would) = match check::read(url, wanted) {
        Ok(request) => {
            let would = policy.would(&request);
            (request, would)
        }
        Err(Reason::BadRequestTarget) => return bad("that is no address"),
        Err(reason) => {
            let (verdict, hint) = (EgressVerdict::Deny, None);
            return said(StatusCode::OK, &Checked { verdict, reason, hint });
        }
    };
    let mut asked = Asked::default();
    asked.know(&request);
    let reason = would.reason.unwrap_or(match would.verdict {
        EgressVerdict::Ask => Reason::HostNotAllowed,
        _ => Reason::RuleMatched,
    });
    let hint = (would.verdict == EgressVerdict::Deny).then(|| hint(reason, &asked)).flatten();
    said(StatusCode::OK, &Checked { verdict: would.verdict, reason, hint })
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
    let path = wish.path.as_deref().unwrap_or("/");
    let url = format!("https://{}{path}", wish.host);
    let request = match check::read(&url, wish.method.as_deref().unwrap_or("GET")) {
        Ok(request) => request,
        Err(reason) => return bad(reason.code()),
    };
    let granted = |granted, reason| said(StatusCode::OK, &Granted { granted, reason });
    let would = policy.would(&request);
    match (would.verdict, would.reason) {
        (EgressVerdict::Allow | EgressVerdict::Observe, reason) => {
            return granted(true, reason.unwrap_or(Reason::RuleMatched));
        }
        (EgressVerdict::Ask, _) => {}
        // A host or a part of it that nobody has spoken of can be asked for, where the web is.
        (_, Some(Reason::HostNotAllowed | Reason::NoRuleMatched))
            if request.port == request.scheme.port() && !is_reserved(&request.host) => {}
        // What a policy denies is not for a box to ask about.
        (_, reason) => return granted(false, reason.unwrap_or(Reason::HostNotAllowed)),
    }
    let raised = Ask {
        // What it would send is not known, unless it only reads.
        length: READS.contains(&request.method.as_str()).then_some(0),
        why: Some(wish.reason.chars().take(MOST_WHY).collect()),
        ..super::http::question(connection, policy, &request, would.rule)
    };
    let answer = connection.shared.deps.gate.ask(raised).await;
    match answer {
        Answer::Allowed(_) => granted(true, Reason::Approved),
        no => granted(false, no.refusal().unwrap_or(Reason::ApprovalDenied)),
    }
}

/// `/shim?host=…` for a program that asks for a login; `/shim` for all that is made up for this box.
fn shim(connection: &Connection, policy: &Policy, query: &QueryMap) -> Response<Body> {
    let placeholder = |secrets: &[protocol::SecretId]| {
        let all = connection.state.placeholders();
        let found = all.iter().find(|fake| secrets.contains(&fake.secret));
        found.map(|fake| fake.value.clone())
    };
    if let Some(host) = first(query, "host") {
        let Ok(host) = HostName::parse(host) else { return bad("that is no host") };
        let login = policy.shims.iter().filter(|shim| shim.host == host).find_map(|shim| {
            let ShimKind::GitAskpass { username } = &shim.kind else { return None };
            Some(Shim { username: username.clone(), password: placeholder(&shim.secrets)? })
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
