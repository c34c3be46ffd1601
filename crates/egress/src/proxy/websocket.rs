//! WebSockets: a request that becomes a stream of bytes both ways.
//!
//! The server answers first; only its yes is a yes. What then goes through is counted and not looked at,
//! so it ends when the policy no longer allows it.

use super::answer::{Refusal, refuse};
use super::body::{Body, Downward, empty};
use super::forward::{address, dress, mask, mask_headers, remember};
use super::http::{Passing, upgrade_of};
use super::pump::{Terms, pump};
use super::serve::{Connection, Then};
use super::upstream::{Wanted, broken};
use super::{BoxState, Shared, fields};
use crate::dial::{Destination, Stream};
use crate::inject::Staged;
use crate::line::Line;
use crate::policy::{Policy, Verdict};
use crate::request::{CanonicalRequest, Scheme};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::egress::Reason;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Both ends of a WebSocket, and what was decided about it.
pub(crate) struct Socket {
    of_box: OnUpgrade,
    of_server: OnUpgrade,
    request: CanonicalRequest,
    approved: bool,
    line: Line,
}

pub(super) async fn open(
    connection: &Arc<Connection>,
    mut passing: Passing,
    staged: Option<Staged>,
    mut line: Line,
) -> Response<Body> {
    let Some(of_box) = upgrade_of(&mut passing.extensions) else {
        let detail = "this connection cannot become a WebSocket";
        let refusal = Refusal::with(Reason::WebsocketNotPermitted, detail);
        return refuse(line, &refusal, &passing.asked);
    };
    let mut head = dress(&mut passing, staged.as_ref(), &mut line);
    let asked = async {
        address(&mut head, &passing, false)?;
        fields::as_socket(&mut head.headers);
        ask(connection, &passing, Request::from_parts(head, Empty::new())).await
    };
    let (mut answer, remote) = match asked.await {
        Ok(answered) => answered,
        Err(refusal) => return refuse(line, &refusal, &passing.asked),
    };
    if let Some(staged) = &staged {
        remember(connection, staged);
    }
    line.traffic().status = Some(answer.status().as_u16());
    line.traffic().proto = Some("h1/h1".to_owned());
    line.traffic().remote = Some(remote.to_string());
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS || !fields::is_websocket(answer.headers())
    {
        return declined(connection, &passing, answer, line, staged.is_some());
    }
    let of_server = hyper::upgrade::on(&mut answer);
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    fields::towards_box(response.headers_mut());
    if staged.is_some() {
        let patterns = connection.state.known.patterns(Instant::now());
        mask_headers(connection, &passing, response.headers_mut(), &patterns);
    }
    fields::as_socket(response.headers_mut());
    let Passing { request, approved, .. } = passing;
    let socket = Socket { of_box, of_server, request, approved, line };
    connection.become_after(Then::Socket(socket));
    response
}

/// The server says something else, and the box may hear it.
fn declined(
    connection: &Arc<Connection>,
    passing: &Passing,
    answer: Response<Incoming>,
    line: Line,
    put_in: bool,
) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    if head.status.is_informational() {
        let detail = "the server changed to another protocol than the one it was asked for";
        let refusal = Refusal::with(Reason::UpstreamUnreachable, detail);
        return refuse(line, &refusal, &passing.asked);
    }
    fields::towards_box(&mut head.headers);
    let mut body = Downward::new(body, None, line);
    if put_in {
        mask(connection, passing, &mut head.headers, &mut body);
    }
    let mut response = Response::new(body.boxed_unsync());
    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
    response
}

/// On a connection of its own, which nothing else will ever use.
async fn ask(
    connection: &Connection,
    passing: &Passing,
    request: Request<Empty<Bytes>>,
) -> Result<(Response<Incoming>, SocketAddr), Refusal> {
    let shared = &connection.shared;
    let (host, port) = (passing.request.host.clone(), passing.request.port);
    let to = Destination { host, port, allow_private: passing.allow_private() };
    let dialled = shared.dialer.dial(&to).await?;
    let stream: Box<dyn Stream> = match passing.request.scheme {
        Scheme::Http => dialled.stream,
        Scheme::Https => Box::new(shared.secure(dialled.stream, &to.host, Wanted::One).await?),
    };
    let greeting = http1::Builder::new()
        .preserve_header_case(true)
        .max_headers(super::strict::MOST_HEADERS)
        .handshake(TokioIo::new(stream));
    let (mut sender, driven) = greeting.await.map_err(|e| broken(&e))?;
    let closed = connection.state.closed.clone();
    shared.tasks.spawn(async move {
        tokio::select! {
            () = closed.cancelled() => {}
            _ = driven.with_upgrades() => {}
        }
    });
    let answer = sender.send_request(request);
    match tokio::time::timeout(shared.deps.limits.answer, answer).await {
        Ok(answer) => Ok((answer.map_err(|e| broken(&e))?, dialled.remote)),
        Err(_) => Err(Reason::UpstreamTimeout.into()),
    }
}

pub(super) async fn run(shared: &Arc<Shared>, state: &Arc<BoxState>, socket: Socket) {
    let Socket { of_box, of_server, request, approved, mut line } = socket;
    let limits = shared.deps.limits;
    let both = async { tokio::try_join!(of_box, of_server) };
    let Ok(Ok((of_box, of_server))) = tokio::time::timeout(limits.greeting, both).await else {
        line.traffic().detail = Some("one of the two did not go on".to_owned());
        return;
    };
    let terms = Terms {
        silence: limits.silence,
        grace: limits.grace,
        still: |policy: &Policy| may_go_on(policy, &request, approved),
    };
    let meter = line.meter.clone();
    let (of_box, of_server) = (TokioIo::new(of_box), TokioIo::new(of_server));
    let end = pump(state, of_box, of_server, &meter, terms).await;
    line.traffic().detail = end.said().map(str::to_owned);
}

/// What a person said yes to stays open as long as it would be asked about again.
fn may_go_on(policy: &Policy, request: &CanonicalRequest, approved: bool) -> bool {
    match policy.decide(request) {
        Verdict::Allow(_) | Verdict::Observe(_) => true,
        Verdict::Ask(_) => approved,
        Verdict::Deny(..) => false,
    }
}
