//! One request: whom it is for, what it is, whether it may pass.
//!
//! Here it is taken apart. What passes goes on to [`super::forward`] as what was decided on; the bytes the
//! box sent are not used again.

use super::answer::{Asked, Refusal, refuse};
use super::body::{Body, Outgoing, Terms};
use super::serve::{Connection, Via};
use super::{connect, fields, forward, internal, push, websocket};
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::{Policy, Record, Rule, RuleRef, THIS_COMPUTER, Verdict, is_reserved};
use crate::ports::{Answer, Ask, Told};
use crate::redact::{Found, Patterns};
use crate::request::{CanonicalRequest, Scheme, Target, method, unescaped};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use protocol::SecretId;
use protocol::egress::{Reason, TrafficKind};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// A request that may go out.
pub(super) struct Passing {
    pub request: CanonicalRequest,
    pub policy: Arc<Policy>,
    pub rule: Option<RuleRef>,
    /// A person was asked.
    pub approved: bool,
    pub headers: HeaderMap,
    pub extensions: hyper::http::Extensions,
    pub version: Version,
    pub asked: Asked,
}

impl Passing {
    pub fn rule(&self) -> Option<(&Record, &Rule)> {
        self.policy.rule(self.rule?)
    }

    /// The record of the host lets private addresses be dialled.
    pub fn allow_private(&self) -> bool {
        self.rule().is_some_and(|(record, _)| record.allow_private)
    }
}

pub(super) async fn answer(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    let unread = !request.body().is_end_stream();
    let asked = Asked::of(request.headers(), request.version(), unread);
    let raw = fields::names_socket(request.headers()) || request.method() == Method::CONNECT;
    let handled = AssertUnwindSafe(Box::pin(handle(&connection, request, asked.clone())));
    let mut response = handled.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("egress: a request of {} ended in a fault", connection.state.id);
        let line = Line::new(&connection.state.notebook, TrafficKind::Request);
        let refusal =
            Refusal::with(Reason::PolicyUnavailable, "the proxy failed; this is its own fault");
        refuse(line, &refusal, &Asked { unread: true, ..asked.clone() })
    });
    // What follows such a request is not looked at, so unless it is what was agreed on, nothing follows.
    let agreed = response.status() == StatusCode::SWITCHING_PROTOCOLS
        || response.extensions().get::<connect::Opened>().is_some();
    if raw && !agreed {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn handle(
    connection: &Arc<Connection>,
    request: Request<Incoming>,
    mut asked: Asked,
) -> Response<Body> {
    let state = &connection.state;
    let mut line = Line::new(&state.notebook, TrafficKind::Request);
    if let Some(fault) = connection.faults.get() {
        asked.unread = true;
        return refuse(line, &Refusal::with(fault.reason, fault.detail), &asked);
    }
    line.method(request.method().as_str());
    asked.method = Some(request.method().to_string());
    if connection.via == Via::Proxy {
        if let Err(refusal) = confirm(connection, request.headers()) {
            asked.unread = true;
            return refuse(line, &refusal, &asked);
        }
        if request.method() == Method::CONNECT {
            line.not_needed();
            return connect::answer(connection, request, asked);
        }
    }
    let Some(policy) = state.policy.borrow().clone() else {
        return refuse(line, &Reason::PolicyUnavailable.into(), &asked);
    };
    let (mut parts, body) = request.into_parts();
    fields::unsay(&mut parts.headers);
    let canonical = match canonical(&connection.via, &parts) {
        Ok(canonical) => canonical,
        Err(refusal) => {
            if let Via::Tunnel { scheme, host, port } = &connection.via {
                asked.host = host.to_string();
                line.host(scheme.as_str(), host.as_str(), *port);
            }
            return refuse(line, &refusal, &asked);
        }
    };
    asked.know(&canonical);
    line.request(&canonical);
    if internal::is_ours(&canonical.host) {
        line.not_needed();
        return internal::answer(connection, &policy, &canonical, &parts.headers, body).await;
    }
    line.place = state.requests.clone().try_acquire_owned().ok();
    if line.place.is_none() {
        return refuse(line, &Reason::TooManyConnections.into(), &asked);
    }
    let passing = Passing {
        request: canonical,
        policy,
        rule: None,
        approved: false,
        headers: parts.headers,
        extensions: parts.extensions,
        version: parts.version,
        asked: asked.clone(),
    };
    let (version, mut body) = (passing.version, Some(body));
    match pass(connection, passing, &mut body, &mut line).await {
        Ok(go) => go.answer(connection, line).await,
        Err(refusal) => {
            alarm(connection, &refusal, &asked);
            if version == Version::HTTP_2 {
                let_run_out(connection, body);
            }
            refuse(line, &refusal, &asked)
        }
    }
}

/// Takes what is still coming of a body that goes nowhere, for a moment: some programs take a stream that
/// is reset while they send for an error of the connection, and do not read the answer.
fn let_run_out(connection: &Connection, body: Option<Incoming>) {
    let Some(mut body) = body.filter(|body| !body.is_end_stream()) else { return };
    connection.shared.tasks.spawn(async move {
        let over = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = tokio::time::timeout(super::listen::LAST_WORDS, over).await;
    });
}

/// Who presents a token presents this box's.
fn confirm(connection: &Connection, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut said = headers.get_all(PROXY_AUTHORIZATION).iter().peekable();
    if said.peek().is_none() || said.all(|value| connection.state.is_own_token(value.as_bytes())) {
        return Ok(());
    }
    let state = &connection.state;
    if state.alarms.take() {
        let detail = "a token that is not this box's was presented on its carrier".to_owned();
        state.notebook.remark(TrafficKind::Alert, None, Some(Reason::BoxAuthFailed), detail);
    }
    Err(Reason::BoxAuthFailed.into())
}

/// What needs a person's eye.
pub(super) fn alarm(connection: &Connection, refusal: &Refusal, asked: &Asked) {
    if !matches!(refusal.reason, Reason::PlaceholderMisuse | Reason::SecretExfil) {
        return;
    }
    let state = &connection.state;
    if state.alarms.take() {
        let detail = refusal.detail.clone().unwrap_or_default();
        let (host, reason) = (Some(asked.host.as_str()), Some(refusal.reason));
        state.notebook.remark(TrafficKind::Alert, host, reason, detail);
    }
}

/// The request in the form in which it is decided on.
fn canonical(via: &Via, parts: &Parts) -> Result<CanonicalRequest, Refusal> {
    let bad = |detail: &'static str| Refusal::with(Reason::BadRequest, detail);
    let method = method(parts.method.as_str())?;
    let host = fields::host(&parts.headers).map_err(|()| bad("it has several Host fields"))?;
    let (scheme, host, port) = match via {
        Via::Proxy => absolute(parts, host)?,
        Via::Tunnel { scheme, host: to, port } => {
            inside(parts, host, *scheme, to, *port)?;
            (*scheme, to.clone(), *port)
        }
    };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let target = Target::parse(target)?;
    let websocket = fields::names_socket(&parts.headers);
    if websocket && !fields::wants_socket(&parts.method, &parts.headers) {
        return Err(bad("it is no proper request for a WebSocket"));
    }
    Ok(CanonicalRequest { scheme, host, port, method, target, websocket })
}

/// A request that names its server in full, as programs send it to a proxy.
fn absolute(parts: &Parts, host: Option<&str>) -> Result<(Scheme, HostName, u16), Refusal> {
    let scheme = match parts.uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(Reason::BadRequestTarget.into()),
    };
    let authority = parts.uri.authority().ok_or(Reason::BadRequestTarget)?;
    let (name, port) = authority_of(authority).ok_or(Reason::BadRequestTarget)?;
    let port = port.unwrap_or(scheme.port());
    if let Some(host) = host
        && !names(host, &name, port, scheme)
    {
        return Err(Reason::AuthorityMismatch.into());
    }
    Ok((scheme, name, port))
}

/// A request in a tunnel is for the host of the tunnel, in every place that names one.
fn inside(
    parts: &Parts,
    host: Option<&str>,
    scheme: Scheme,
    to: &HostName,
    port: u16,
) -> Result<(), Refusal> {
    let authority = parts.uri.authority().map(Authority::as_str);
    if parts.version <= Version::HTTP_11 {
        if parts.uri.scheme().is_some() || authority.is_some() {
            return Err(Refusal::with(Reason::BadRequestTarget, "it names a server in a tunnel"));
        }
    } else if parts.uri.scheme_str() != Some(scheme.as_str()) {
        return Err(Refusal::with(Reason::BadRequest, "its scheme is not the tunnel's"));
    }
    let mut named = authority.into_iter().chain(host).peekable();
    if named.peek().is_none() {
        return Err(Refusal::with(Reason::BadRequest, "it names no host"));
    }
    if named.all(|text| names(text, to, port, scheme)) {
        return Ok(());
    }
    Err(Reason::AuthorityMismatch.into())
}

/// Whether a Host field or an authority means this host and port.
fn names(text: &str, host: &HostName, port: u16, scheme: Scheme) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    authority_of(&authority)
        .is_some_and(|(name, given)| name == *host && given.unwrap_or(scheme.port()) == port)
}

/// A host and perhaps a port; none when there is more to it.
pub(crate) fn authority_of(authority: &Authority) -> Option<(HostName, Option<u16>)> {
    let text = authority.as_str();
    if text.contains('@') {
        return None;
    }
    let host = HostName::parse(authority.host()).ok()?;
    let port = match text.strip_prefix(authority.host())? {
        "" => None,
        rest => Some(rest.strip_prefix(':')?.parse::<u16>().ok().filter(|port| *port > 0)?),
    };
    Some((host, port))
}

/// What is left to do with a request that may pass.
pub(super) struct Go {
    passing: Passing,
    body: Outgoing,
    staged: Option<crate::inject::Staged>,
}

impl Go {
    async fn answer(self, connection: &Arc<Connection>, line: Line) -> Response<Body> {
        if self.passing.request.websocket {
            return websocket::open(connection, self.passing, self.staged, line).await;
        }
        forward::forward(connection, self.passing, self.staged, self.body, line).await
    }
}

/// Everything that can be said against a request, in the order in which it costs more and tells more.
async fn pass(
    connection: &Arc<Connection>,
    mut passing: Passing,
    held: &mut Option<Incoming>,
    line: &mut Line,
) -> Result<Go, Refusal> {
    let state = &connection.state;
    let patterns = state.known.patterns(Instant::now());
    let at_home = at_home(&passing.policy, &passing.request.host);
    check_head(&patterns, &at_home, &passing)?;
    let Some(body) = held.as_mut() else { return Err(Reason::BadRequest.into()) };
    decide(connection, &mut passing, body, line).await?;
    let (most, wants_push) = match passing.rule() {
        Some((_, rule)) => (rule.max_body, rule.push.clone()),
        None => (None, None),
    };
    if most.is_some_and(|most| body.size_hint().lower() > most) {
        return Err(Reason::BodyTooLarge.into());
    }
    let ahead = match wants_push {
        Some(rule) => push::look(&passing.headers, body, &rule).await?,
        None => VecDeque::<Bytes>::new(),
    };
    let staged = forward::stage(connection, &passing).await?;
    let put_in = staged.as_ref().map(crate::inject::Staged::names).unwrap_or_default();
    let terms = Terms { most, patterns, at_home, put_in };
    let Some(body) = held.take() else { return Err(Reason::BadRequest.into()) };
    let body = Outgoing::new(ahead, body, line.meter.clone(), terms);
    Ok(Go { passing, body, staged })
}

/// Credentials that some rule of the host puts in; their placeholders may be sent there.
fn at_home(policy: &Policy, host: &HostName) -> Vec<SecretId> {
    let Some((_, record)) = policy.record(host) else { return Vec::new() };
    record.rules.iter().flat_map(Rule::secrets).cloned().collect()
}

/// A credential, or what stands for another one's, in the address or in a header.
fn check_head(patterns: &Patterns, at_home: &[SecretId], passing: &Passing) -> Result<(), Refusal> {
    if patterns.is_empty() {
        return Ok(());
    }
    let target = passing.request.target.to_text();
    // An address is the same whatever of it is escaped.
    let plain = unescaped(&target);
    let values = passing.headers.values().map(HeaderValue::as_bytes);
    let found: Option<Found> = [target.as_bytes(), &plain]
        .into_iter()
        .chain(values)
        .find_map(|text| patterns.misplaced(text, at_home));
    found.map_or(Ok(()), |found| Err(found.into()))
}

async fn decide(
    connection: &Connection,
    passing: &mut Passing,
    body: &Incoming,
    line: &mut Line,
) -> Result<(), Refusal> {
    let policy = passing.policy.clone();
    let request = &passing.request;
    let reason = match policy.decide(request) {
        Verdict::Allow(rule) => {
            passing.rule = Some(rule);
            Reason::RuleMatched
        }
        Verdict::Observe(_) => Reason::Observed,
        Verdict::Deny(reason, rule) => {
            line.traffic().rule = rule.and_then(|rule| policy.seen(rule));
            return Err(denied(&policy, request, reason));
        }
        Verdict::Ask(rule) => {
            line.traffic().rule = rule.and_then(|rule| policy.seen(rule));
            let length = body.size_hint().exact();
            let told = ask(connection, &policy, request, rule, length).await?;
            line.told(told);
            (passing.rule, passing.approved) = (rule, true);
            Reason::Approved
        }
    };
    // The proxy's own names lead nowhere, and this computer is reached by a rule or not at all.
    let own = is_reserved(&request.host);
    if own && (request.host.as_str() != THIS_COMPUTER || passing.rule.is_none()) {
        return Err(Reason::HostNotAllowed.into());
    }
    line.allowed(reason, passing.rule.and_then(|rule| policy.seen(rule)));
    Ok(())
}

fn denied(policy: &Policy, request: &CanonicalRequest, reason: Reason) -> Refusal {
    let said = policy.denial(request).filter(|_| reason == Reason::DeniedByRule);
    Refusal { reason, detail: said.and_then(|denial| denial.reason.clone()) }
}

async fn ask(
    connection: &Connection,
    policy: &Policy,
    request: &CanonicalRequest,
    rule: Option<RuleRef>,
    length: Option<u64>,
) -> Result<Told, Refusal> {
    let ask = Ask { length, ..question(connection, policy, request, rule) };
    match connection.shared.deps.gate.ask(ask).await {
        Answer::Allowed(told) => Ok(told),
        other => Err(other.refusal().unwrap_or(Reason::ApprovalDenied).into()),
    }
}

/// What a person is asked about a request, with all that would be put into it.
pub(super) fn question(
    connection: &Connection,
    policy: &Policy,
    request: &CanonicalRequest,
    rule: Option<RuleRef>,
) -> Ask {
    let secrets = rule.and_then(|rule| policy.rule(rule)).map(|(_, rule)| rule.secrets().cloned());
    Ask {
        box_id: connection.state.id.clone(),
        scheme: request.scheme,
        host: request.host.clone(),
        port: request.port,
        method: request.method.clone(),
        path: request.target.to_text(),
        length: Some(0),
        websocket: request.websocket,
        secrets: secrets.into_iter().flatten().collect(),
        rule: rule.and_then(|rule| policy.seen(rule)),
        why: None,
    }
}

/// Takes the extension that hyper left for a connection that is to change its protocol.
pub(super) fn upgrade_of(extensions: &mut hyper::http::Extensions) -> Option<OnUpgrade> {
    extensions.remove::<OnUpgrade>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: &str, uri: &str, version: Version, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri).version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn tunnel(host: &str, port: u16) -> Via {
        Via::Tunnel { scheme: Scheme::Https, host: HostName::parse(host).unwrap(), port }
    }

    fn one(uri: &str, host: &str) -> Result<String, Reason> {
        let parts = parts("GET", uri, Version::HTTP_11, &[("host", host)]);
        let of = canonical(&tunnel("api.ex.com", 443), &parts).map_err(|r| r.reason)?;
        Ok(format!("{}://{}:{}{}", of.scheme, of.host, of.port, of.target))
    }

    #[test]
    fn a_request_in_a_tunnel_is_for_the_host_of_the_tunnel() {
        let good = "https://api.ex.com:443/v1".to_owned();
        for host in ["api.ex.com", "API.EX.COM", "api.ex.com.", "api.ex.com:443"] {
            assert_eq!(one("/v1", host).as_ref(), Ok(&good), "{host}");
        }
        for host in [
            "evil.ex",
            "api.ex.com:80",
            "api.ex.com@evil.ex",
            "api.ex.com:",
            "",
            "a b",
            "api.ex.com:0443x",
        ] {
            assert_eq!(one("/v1", host), Err(Reason::AuthorityMismatch), "{host}");
        }
        assert_eq!(one("http://api.ex.com/v1", "api.ex.com"), Err(Reason::BadRequestTarget));
        assert_eq!(one("*", "api.ex.com"), Err(Reason::BadRequestTarget));
    }

    #[test]
    fn http_2_names_its_host_twice_and_both_count() {
        let of = |uri: &str, headers: &[(&str, &str)]| {
            let parts = parts("GET", uri, Version::HTTP_2, headers);
            canonical(&tunnel("api.ex.com", 443), &parts).map(drop).map_err(|r| r.reason)
        };
        assert_eq!(of("https://api.ex.com/v1", &[]), Ok(()));
        assert_eq!(of("https://api.ex.com/v1", &[("host", "api.ex.com")]), Ok(()));
        let wrong = Err(Reason::AuthorityMismatch);
        assert_eq!(of("https://evil.ex/v1", &[]), wrong);
        assert_eq!(of("https://api.ex.com/v1", &[("host", "evil.ex")]), wrong);
        assert_eq!(of("https://evil.ex/v1", &[("host", "api.ex.com")]), wrong);
        let twice = [("host", "api.ex.com"), ("host", "api.ex.com")];
        assert_eq!(of("https://api.ex.com/v1", &twice), Err(Reason::BadRequest));
        assert_eq!(of("http://api.ex.com/v1", &[]), Err(Reason::BadRequest));
    }

    #[test]
    fn an_absolute_request_says_its_host_and_its_field_says_the_same() {
        let of = |uri: &str, host: &str| {
            let parts = parts("GET", uri, Version::HTTP_11, &[("host", host)]);
            let of = canonical(&Via::Proxy, &parts).map_err(|r| r.reason)?;
            Ok(format!("{}://{}:{}{}", of.scheme, of.host, of.port, of.target))
        };
        assert_eq!(of("http://api.ex.com/a?b", "api.ex.com").unwrap(), "http://api.ex.com:80/a?b");
        assert_eq!(of("http://api.ex.com:81", "api.ex.com:81").unwrap(), "http://api.ex.com:81/");
        assert_eq!(
            of("https://[2001:DB8::1]/", "[2001:db8::1]").unwrap(),
            "https://2001:db8::1:443/"
        );
        assert_eq!(of("http://api.ex.com/", "evil.ex"), Err(Reason::AuthorityMismatch));
        assert_eq!(of("http://api.ex.com/", "api.ex.com:81"), Err(Reason::AuthorityMismatch));
        for bad in ["/origin", "ftp://api.ex.com/", "http://me@api.ex.com/", "http://127.1/"] {
            assert_eq!(of(bad, "api.ex.com"), Err(Reason::BadRequestTarget), "{bad}");
        }
    }

    #[test]
    fn egress_12_31_methods_that_echo_are_never_sent() {
        for name in ["TRACE", "trace", "TRACK", "CONNECT"] {
            let uri = if name == "CONNECT" { "api.ex.com:443" } else { "/v1" };
            let parts = parts(name, uri, Version::HTTP_11, &[("host", "api.ex.com")]);
            let refused = canonical(&tunnel("api.ex.com", 443), &parts).err().unwrap();
            assert_eq!(refused.reason, Reason::MethodForbidden, "{name}");
        }
    }
}
