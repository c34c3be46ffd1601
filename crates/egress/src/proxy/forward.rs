//! A request that may pass, on its way to the server and back.

use super::answer::{Refusal, refuse};
use super::body::{Body, Downward, Outgoing};
use super::fields;
use super::http::Passing;
use super::serve::Connection;
use super::upstream::{Lease, Server, broken};
use crate::inject::{Injection, Staged};
use crate::line::{Line, Meter};
use crate::redact::Patterns;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use protocol::SecretId;
use protocol::egress::{InjectionFault, Reason, TrafficKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Credentials for a request, if its rule puts some in.
pub(super) async fn stage(
    connection: &Connection,
    passing: &Passing,
) -> Result<Option<Staged>, Refusal> {
    let Some(transform) = passing.rule().and_then(|(_, rule)| rule.transform.clone()) else {
        return Ok(None);
    };
    let (shared, state) = (&connection.shared, &connection.state);
    let host = &passing.request.host;
    if shared.echoes.is_suspended(host) {
        return Err(Refusal::injection(InjectionFault::Suspended, host.as_str()));
    }
    let injection = Injection {
        transform: &transform,
        secrets: &*shared.deps.secrets,
        box_id: &state.id,
        host,
        scheme: passing.request.scheme,
        placeholders: &state.placeholders(),
        limit: shared.deps.limits.secret,
    };
    let staged = injection.stage(&passing.headers).await;
    let staged = staged.map_err(|fault| Refusal::injection(fault.fault, &fault.detail))?;
    remember(connection, &staged);
    Ok(Some(staged))
}

/// What is looked for in whatever comes from now on.
pub(super) fn remember(connection: &Connection, staged: &Staged) {
    for used in &staged.used {
        let payload: Vec<&str> = used.payload.iter().map(|p| p.as_str()).collect();
        connection.state.known.used(&used.secret, used.value.expose(), &payload, Instant::now());
    }
}

pub(super) async fn forward(
    connection: &Arc<Connection>,
    mut passing: Passing,
    staged: Option<Staged>,
    body: Outgoing,
    mut line: Line,
) -> Response<Body> {
    let head = dress(&mut passing, staged.as_ref(), &mut line);
    let (stop, meter) = (body.stop(), line.meter.clone());
    let sent = send(connection, &passing, head, body, &meter).await;
    // A body that was broken off has said why; the server's opinion of it does not count.
    let sent = match stop.get() {
        Some(refusal) => Err(refusal.clone()),
        None => sent,
    };
    let (answer, lease) = match sent {
        Ok(sent) => sent,
        Err(refusal) => {
            super::http::alarm(connection, &refusal, &passing.asked);
            return refuse(line, &refusal, &passing.asked);
        }
    };
    let box_side = if passing.version >= Version::HTTP_2 { "h2" } else { "h1" };
    let traffic = line.traffic();
    traffic.status = Some(answer.status().as_u16());
    traffic.proto = Some(format!("{box_side}/{}", lease.proto()));
    traffic.remote = Some(lease.remote.to_string());
    let put_in = staged.is_some();
    // It may have taken a box longer to send than values are looked for.
    if let Some(staged) = &staged {
        remember(connection, staged);
    }
    back(connection, &passing, answer, lease, line, put_in)
}

/// The head as the server gets it, apart from what its protocol adds.
pub(super) fn dress(passing: &mut Passing, staged: Option<&Staged>, line: &mut Line) -> Parts {
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = Method::from_bytes(passing.request.method.as_bytes()).unwrap_or(Method::GET);
    head.headers = std::mem::take(&mut passing.headers);
    fields::towards_server(&mut head.headers);
    if let Some(staged) = staged {
        fields::plain_answer(&mut head.headers);
        staged.apply(&mut head.headers);
        line.traffic().injected.clone_from(&staged.notes);
    }
    // How names of fields were spelled.
    head.extensions = std::mem::take(&mut passing.extensions);
    head
}

/// What a server is addressed as: the host of the policy, whatever the box wrote.
pub(super) fn address(head: &mut Parts, passing: &Passing, many: bool) -> Result<(), Refusal> {
    let request = &passing.request;
    let target = request.target.to_text();
    let host = if request.port == request.scheme.port() {
        request.host.in_url()
    } else {
        format!("{}:{}", request.host.in_url(), request.port)
    };
    let bad = |_| Refusal::new(Reason::BadRequestTarget);
    if many {
        head.version = Version::HTTP_2;
        head.uri = Uri::try_from(format!("{}://{host}{target}", request.scheme)).map_err(bad)?;
        head.headers.remove(HOST);
    } else {
        head.version = Version::HTTP_11;
        head.uri = Uri::try_from(target).map_err(bad)?;
        let host = HeaderValue::from_str(&host).map_err(|_| Reason::BadRequestTarget)?;
        head.headers.insert(HOST, host);
        fields::as_asked(&mut head.headers);
        fields::join_cookies(&mut head.headers);
    }
    Ok(())
}

async fn send(
    connection: &Connection,
    passing: &Passing,
    head: Parts,
    body: Outgoing,
    meter: &Meter,
) -> Result<(Response<Incoming>, Lease), Refusal> {
    let request = &passing.request;
    let (scheme, host, port) = (request.scheme, request.host.clone(), request.port);
    let server = Server { scheme, host, port };
    let allow_private = passing.allow_private();
    let mut lease = connection.upstreams.get(&server, allow_private).await?;
    let mut message = Request::from_parts(head, body);
    loop {
        let (mut head, body) = message.into_parts();
        address(&mut head, passing, lease.is_many())?;
        let spare = spare(&lease, &head, &body);
        let stop = body.stop();
        let sending = lease.send(Request::from_parts(head, body));
        let limit = connection.shared.deps.limits.answer;
        let mut failed = match patient(sending, limit, meter).await {
            None => return Err(late(passing)),
            Some(Ok(answer)) => return Ok((answer, lease)),
            Some(Err(failed)) => failed,
        };
        // A server may close a connection just when it is used again: then once more, by a new one.
        let unsent = failed.take_message().or(spare);
        match unsent.filter(|_| lease.reused && stop.get().is_none()) {
            Some(unsent) => message = unsent,
            None => return Err(broken(failed.error())),
        }
        lease = connection.upstreams.dial(&server, allow_private).await?;
    }
}

/// A second copy of a request that changes nothing and has no body.
fn spare(lease: &Lease, head: &Parts, body: &Outgoing) -> Option<Request<Outgoing>> {
    let repeatable = matches!(head.method, Method::GET | Method::HEAD) && body.is_end_stream();
    (lease.reused && repeatable).then(|| Request::from_parts(head.clone(), Outgoing::nothing()))
}

fn late(passing: &Passing) -> Refusal {
    let detail = format!("{} did not answer in time", passing.request.host);
    Refusal::with(Reason::UpstreamTimeout, detail)
}

/// Waits for the head of an answer. As long as the body is on its way, that counts as a sign of life.
async fn patient<T>(waiting: impl Future<Output = T>, limit: Duration, meter: &Meter) -> Option<T> {
    let mut waiting = std::pin::pin!(waiting);
    loop {
        let before = meter.up.load(Ordering::Relaxed);
        match tokio::time::timeout(limit, waiting.as_mut()).await {
            Ok(done) => return Some(done),
            Err(_) if meter.up.load(Ordering::Relaxed) == before => return None,
            Err(_) => {}
        }
    }
}

/// The answer as the box gets it.
fn back(
    connection: &Arc<Connection>,
    passing: &Passing,
    answer: Response<Incoming>,
    lease: Lease,
    line: Line,
    put_in: bool,
) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let detail = "the server changed the protocol without being asked to";
        let refusal = Refusal::with(Reason::UpstreamUnreachable, detail);
        return refuse(line, &refusal, &passing.asked);
    }
    fields::towards_box(&mut head.headers);
    let mut body = Downward::new(body, Some(lease), line);
    if put_in {
        mask(connection, passing, &mut head.headers, &mut body);
        // Whatever a server says in the words after its status.
        head.extensions.remove::<ReasonPhrase>();
    }
    // Not what the two connections had in common by chance.
    let (mut plain, ()) = Response::new(()).into_parts();
    (plain.status, plain.headers) = (head.status, head.headers);
    plain.extensions = head.extensions;
    Response::from_parts(plain, body.boxed_unsync())
}

/// A server that sends back what it was given gives it to the box.
pub(super) fn mask(
    connection: &Arc<Connection>,
    passing: &Passing,
    headers: &mut HeaderMap,
    body: &mut Downward,
) {
    let patterns = connection.state.known.patterns(Instant::now());
    mask_headers(connection, passing, headers, &patterns);
    let textual = is_textual(headers);
    let (connection, host) = (connection.clone(), passing.request.host.clone());
    body.mask(patterns, textual, move |found, place| echoed(&connection, &host, found, place));
}

pub(super) fn mask_headers(
    connection: &Connection,
    passing: &Passing,
    headers: &mut HeaderMap,
    patterns: &Arc<Patterns>,
) {
    let found = patterns.mask_headers(headers);
    if !found.is_empty() {
        echoed(connection, &passing.request.host, &found, "header");
    }
}

fn echoed(
    connection: &Connection,
    host: &crate::host_name::HostName,
    found: &[SecretId],
    place: &str,
) {
    let names: Vec<&str> = found.iter().map(SecretId::as_str).collect();
    let detail = format!("{} in {place}", names.join(", "));
    let notebook = &connection.state.notebook;
    notebook.remark(TrafficKind::SecretEcho, Some(host.as_str()), None, detail);
    if connection.shared.echoes.note(host, Instant::now()) {
        let detail = "it keeps sending credentials back; none is put in until a person says so";
        notebook.remark(TrafficKind::Alert, Some(host.as_str()), None, detail.to_owned());
    }
}

/// Text that programs read, and that was not packed up against our wish.
fn is_textual(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    if text(CONTENT_ENCODING).is_some_and(|how| !how.eq_ignore_ascii_case("identity")) {
        return false;
    }
    let Some(kind) = text(CONTENT_TYPE) else { return true };
    let kind = kind.to_ascii_lowercase();
    let words = ["json", "xml", "javascript", "x-www-form-urlencoded"];
    kind.starts_with("text/") || words.iter().any(|word| kind.contains(word))
}
