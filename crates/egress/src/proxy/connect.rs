//! `CONNECT`: a tunnel to one host and port, and what goes through it.
//!
//! There is no raw way out. What the box sends first says what it is: TLS is taken apart with a
//! certificate of the host's name, plain HTTP is read as such, anything else ends the tunnel. Only what a
//! policy calls `passthrough` is carried unseen, and only if it is TLS that names the same host.

use super::answer::{Asked, refuse};
use super::body::{Body, empty};
use super::http::{authority_of, upgrade_of};
use super::replay::Replay;
use super::serve::{Connection, Then, Via, tunnelled};
use super::{BoxState, Shared, internal, passthrough, tls};
use crate::dial::Stream;
use crate::host_name::HostName;
use crate::line::Line;
use crate::policy::ConnectVerdict;
use crate::request::Scheme;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use protocol::egress::{Reason, TrafficKind};
use std::sync::Arc;

/// A tunnel that was agreed to.
pub(crate) struct Tunnel {
    pub host: HostName,
    pub port: u16,
    pub unseen: bool,
    upgrade: OnUpgrade,
    line: Line,
}

/// On the answer that agrees to a tunnel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened;

/// Agrees to a tunnel, or refuses it.
pub(super) fn answer(
    connection: &Connection,
    request: Request<Incoming>,
    mut asked: Asked,
) -> Response<Body> {
    let mut line = Line::new(&connection.state.notebook, TrafficKind::Connect);
    line.method("CONNECT");
    let (mut parts, _) = request.into_parts();
    let opened = parts.uri.authority().and_then(authority_of);
    let Some((host, Some(port))) = opened else {
        return refuse(line, &Reason::BadRequestTarget.into(), &asked);
    };
    asked.host = host.to_string();
    asked.port = Some(port).filter(|port| *port != Scheme::Https.port());
    line.host(Scheme::Https.as_str(), host.as_str(), port);
    let unseen = match may_open(connection, &host, port) {
        Ok(unseen) => unseen,
        Err(reason) => return refuse(line, &reason.into(), &asked),
    };
    let Some(upgrade) = upgrade_of(&mut parts.extensions) else {
        return refuse(line, &Reason::BadRequest.into(), &asked);
    };
    let tunnel = Tunnel { host, port, unseen, upgrade, line };
    connection.become_after(Then::Tunnel(tunnel));
    let mut response = Response::new(empty());
    response.extensions_mut().insert(Opened);
    response
}

/// Whether it is carried unseen.
fn may_open(connection: &Connection, host: &HostName, port: u16) -> Result<bool, Reason> {
    let state = &connection.state;
    let policy = state.policy.borrow().clone().ok_or(Reason::PolicyUnavailable)?;
    if internal::is_ours(host) {
        let usual = port == Scheme::Http.port() || port == Scheme::Https.port();
        return if usual { Ok(false) } else { Err(Reason::PortNotAllowed) };
    }
    match policy.at_connect(host, port) {
        ConnectVerdict::Inspect => Ok(false),
        ConnectVerdict::Passthrough(_) => Ok(true),
        // Programs show what a server says and hide what a proxy says, so it is said inside.
        ConnectVerdict::Unlisted | ConnectVerdict::Hopeless(_) if state.may_certify(host) => {
            Ok(false)
        }
        ConnectVerdict::Unlisted => Err(Reason::HostNotAllowed),
        ConnectVerdict::Refuse(reason) | ConnectVerdict::Hopeless(reason) => Err(reason),
    }
}

/// What the first bytes of a tunnel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Tls,
    Http,
    Other,
    /// It cannot be said yet.
    More,
}

pub(super) async fn run(shared: &Arc<Shared>, state: &Arc<BoxState>, tunnel: Tunnel) {
    let Tunnel { host, port, unseen, upgrade, mut line } = tunnel;
    let Ok(upgraded) = upgrade.await else { return };
    let mut stream = Replay::new(TokioIo::new(upgraded));
    let first = tokio::time::timeout(shared.deps.limits.greeting, peek(&mut stream)).await;
    match first {
        Ok(Some(First::Tls)) => {}
        Ok(Some(First::Http)) => {
            line.not_needed();
            let via = Via::Tunnel { scheme: Scheme::Http, host, port };
            return tunnelled(shared, state, stream, via, false).await;
        }
        Ok(Some(First::Other | First::More)) => {
            let detail = "what was sent in a tunnel is neither TLS nor HTTP";
            line.blocked(Reason::NotHttp, Some(detail));
            return;
        }
        Ok(None) => return line.noted(None, "nothing was sent in the tunnel"),
        Err(_) => {
            line.blocked(Reason::NotHttp, Some("nothing was said in the tunnel in time"));
            return;
        }
    }
    let hello = match tls::hello(shared, stream, &host, unseen).await {
        Ok(hello) => hello,
        Err(refusal) => {
            line.blocked(refusal.reason, refusal.detail.as_deref());
            return;
        }
    };
    if unseen {
        line.traffic().kind = TrafficKind::Passthrough;
        return passthrough::run(shared, state, hello, host, port, line).await;
    }
    let (stream, many) = match tls::accept(shared, hello, &host).await {
        Ok(accepted) => accepted,
        // It may have pinned a certificate, or not know the authority.
        Err(why) => return line.noted(None, &why),
    };
    line.not_needed();
    let via = Via::Tunnel { scheme: Scheme::Https, host, port };
    tunnelled(shared, state, stream, via, many).await;
}

async fn peek<S: Stream>(stream: &mut Replay<S>) -> Option<First> {
    loop {
        match stream.look().await {
            Ok(Some(bytes)) => match first(bytes) {
                First::More => {}
                first => return Some(first),
            },
            Ok(None) | Err(_) => return None,
        }
    }
}

/// A TLS record with a handshake in it, or the method of a request.
fn first(bytes: &[u8]) -> First {
    const LONGEST_METHOD: usize = 24;
    match bytes {
        [] | [0x16] => First::More,
        [0x16, 0x03, ..] => First::Tls,
        _ => {
            let word = bytes.iter().take_while(|b| b.is_ascii_uppercase() || **b == b'-').count();
            match bytes.get(word) {
                None if word <= LONGEST_METHOD => First::More,
                // That is how HTTP/2 begins, and it begins inside TLS only.
                Some(b' ') if word > 0 && word <= LONGEST_METHOD && bytes[..word] != *b"PRI" => {
                    First::Http
                }
                _ => First::Other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_what_a_tunnel_carries() {
        for (bytes, wanted) in [
            (&b""[..], First::More),
            (b"\x16", First::More),
            (b"\x16\x03\x01", First::Tls),
            (b"GE", First::More),
            (b"GET /", First::Http),
            (b"PROPFIND /", First::Http),
            (b"M-SEARCH *", First::Http),
            (b"SSH-2.0-x\r\n", First::Other),
            (b"SSH-", First::More),
            (b"PRI * HTTP/2.0\r\n", First::Other),
            (b"get / HTTP/1.1", First::Other),
            (b" GET /", First::Other),
            (b"\x00\x01", First::Other),
            (b"\x16\x02", First::Other),
            (b"EHLO x", First::Http),
            (b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", First::Other),
        ] {
            assert_eq!(first(bytes), wanted, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
