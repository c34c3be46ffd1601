//! What does not end after one answer: WebSockets, tunnels carried unseen, bodies that stream.

use crate::support::client::{connect, raw, read_answer, trusting};
use crate::support::policy::{p0, path};
use crate::support::server::text;
use crate::support::world::{gone, hasty};
use crate::support::*;
use agentbox_egress::policy::{PathKind, Policy, Rule, Tls};
use agentbox_egress::proxy::Limits;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::egress::{Reason, TrafficKind};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: ws.ex.com\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn sockets(websocket: bool) -> Policy {
    let methods = Some(["GET".to_owned()].into());
    allow(vec![record("ws.ex.com", vec![Rule { methods, websocket, ..rule() }])])
}

/// Agrees to a WebSocket and sends everything back in capitals.
async fn shouting(world: &World) -> Server {
    Server::https(world, "ws.ex.com", |mut request: Request<Incoming>| {
        Box::pin(async move {
            if request.uri().path() != "/socket" {
                let mut no = text("no such socket");
                *no.status_mut() = StatusCode::NOT_FOUND;
                return no;
            }
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgrade.await.unwrap());
                let mut bytes = [0; 1024];
                while let Ok(n @ 1..) = io.read(&mut bytes).await {
                    io.write_all(&bytes[..n].to_ascii_uppercase()).await.unwrap();
                }
            });
            Response::builder()
                .status(101)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
                .body(http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync())
                .unwrap()
        })
    })
    .await
}

#[tokio::test]
async fn egress_12_42_egress_r8_a_websocket_needs_a_rule_that_says_so() {
    let world = World::new(sockets(false));
    let server = shouting(&world).await;
    let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, UPGRADE).await;
    assert_eq!(got.refused(), (403, "websocket_not_permitted"));
    // The bytes after it were never looked at, so there are none.
    assert_eq!(got.headers["connection"], "close");
    assert_eq!(gone(&mut tls).await, b"");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn egress_12_42_a_websocket_lives_as_long_as_its_rule() {
    let world = World::with(Some(sockets(true)), hasty(), Vec::new());
    let server = shouting(&world).await;
    let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, UPGRADE).await;
    assert_eq!(got.status, 101);
    assert_eq!(got.headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    // HTTP/1.1 to a server that would rather speak HTTP/2.
    assert_eq!(server.seen()[0].version, hyper::Version::HTTP_11);
    let mut answer = [0; 5];
    tls.write_all(b"hello").await.unwrap();
    within("an echo", tls.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HELLO");
    // A policy that still allows it changes nothing.
    world.set_policy(Some(Policy { records: sockets(true).records, ..p0() }));
    tls.write_all(b"again").await.unwrap();
    within("an echo", tls.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"AGAIN");
    // One that does not ends it, with a moment to say goodbye.
    world.set_policy(Some(sockets(false)));
    assert_eq!(gone(&mut tls).await, b"");
    let line = world.log.allowed(1).await.remove(0);
    assert_eq!((line.status, line.bytes_up, line.bytes_down), (Some(101), 10, 10));
    assert!(line.detail.unwrap().contains("no longer allows"));
}

#[tokio::test]
async fn a_websocket_in_which_nothing_moves_is_closed() {
    let limits = Limits { silence: Duration::from_millis(200), ..hasty() };
    let world = World::with(Some(sockets(true)), limits, Vec::new());
    let _server = shouting(&world).await;
    let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
    assert_eq!(raw(&mut tls, UPGRADE).await.status, 101);
    assert_eq!(gone(&mut tls).await, b"");
    let line = world.log.allowed(1).await.remove(0);
    assert!(line.detail.unwrap().contains("silence"));
}

#[tokio::test]
async fn only_the_servers_yes_is_a_yes() {
    let world = World::new(sockets(true));
    let _server = shouting(&world).await;
    let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, UPGRADE.replace("/socket", "/other")).await;
    assert_eq!((got.status.as_u16(), got.text().as_str()), (404, "no such socket"));
    assert_eq!(got.headers["connection"], "close");
    assert_eq!(gone(&mut tls).await, b"");
}

#[tokio::test]
async fn other_ways_to_ask_for_a_websocket_are_refused() {
    let world = World::new(sockets(true));
    let server = shouting(&world).await;
    for (from, to) in [
        ("Connection: Upgrade\r\n", ""),
        ("Upgrade: websocket", "Upgrade: websocket, h2c"),
        ("Upgrade: websocket", "Upgrade: xwebsocket"),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
        ("GET /socket", "POST /socket"),
    ] {
        let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
        let got = raw(&mut tls, UPGRADE.replace(from, to)).await;
        assert_eq!(got.refused(), (400, "bad_request"), "{from} {to}");
        assert_eq!(gone(&mut tls).await, b"");
    }
    assert_eq!(server.connections(), 0);
    // An upgrade to something else is no upgrade.
    let mut tls = Client::new(&world).tunnel("ws.ex.com", 443).await.unwrap();
    let head = "GET /x HTTP/1.1\r\nHost: ws.ex.com\r\nConnection: Upgrade, HTTP2-Settings\r\n\
        Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_eq!(raw(&mut tls, head).await.status, 404);
    assert!(server.seen()[0].header("upgrade").is_empty());
}

fn unseen() -> Policy {
    let mut record = record("pinned.ex.com", vec![rule()]);
    record.tls = Tls::Passthrough;
    allow(vec![record])
}

#[tokio::test]
async fn egress_12_44_what_is_carried_unseen_is_counted() {
    let world = World::with(Some(unseen()), hasty(), Vec::new());
    let server = Server::hello(&world, "pinned.ex.com").await;
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    // The program trusts the server's own authority and nobody else.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(world.authorities.roots())
        .with_no_client_auth();
    let name = ServerName::try_from("pinned.ex.com").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let mut tls = within("a handshake", connecting).await.unwrap();
    let shown = tls.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(Some(shown.into_owned()), server.certificate);
    let head = "GET /a HTTP/1.1\r\nHost: pinned.ex.com\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(&mut tls, head).await.text(), "hello");
    drop(tls);
    let line = world.log.kind(TrafficKind::Passthrough).await;
    assert_eq!(line.reason, Some(Reason::RuleMatched));
    assert!(line.bytes_up > 100 && line.bytes_down > 100, "{line:?}");
    assert_eq!((line.path, line.method.as_deref()), (None, Some("CONNECT")));
}

#[tokio::test]
async fn what_is_carried_unseen_names_its_host_and_ends_with_its_rule() {
    let world = World::with(Some(unseen()), hasty(), Vec::new());
    let server = Server::hello(&world, "pinned.ex.com").await;
    // Another name, no name, no TLS: none of them gets a raw tunnel.
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    let client = Client { sni: Some("evil.ex"), ..Client::new(&world) };
    assert!(client.shake(stream, "x").await.is_err());
    world.log.blocked(Reason::SniMismatch).await;
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    let client = Client { sni: Some("203.0.113.9"), ..Client::new(&world) };
    assert!(client.shake(stream, "x").await.is_err(), "an address is not named");
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    stream.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    gone(&mut stream).await;
    world.log.blocked(Reason::NotHttp).await;
    assert_eq!(server.connections(), 0);

    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(world.authorities.roots())
        .with_no_client_auth();
    let name = ServerName::try_from("pinned.ex.com").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let mut tls = within("a handshake", connecting).await.unwrap();
    world.set_policy(Some(p0()));
    gone(&mut tls).await;
    let line = world.log.kind(TrafficKind::Passthrough).await;
    assert!(line.detail.unwrap().contains("no longer allows"));
}

/// What a tunnel may do is asked again when it begins: a policy may have changed since it was agreed to, and
/// a rule of the new one in the same place is another rule.
#[tokio::test]
async fn a_tunnel_carried_unseen_begins_under_the_policy_of_that_moment() {
    let limits = Limits { greeting: SOON, grace: SOON, ..Limits::default() };
    let world = World::with(Some(unseen()), limits, Vec::new());
    let server = Server::hello(&world, "pinned.ex.com").await;
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "pinned.ex.com", 443).await.status, 200);
    let mut other = record("other.ex.com", vec![rule()]);
    (other.tls, other.allow_private) = (Tls::Passthrough, true);
    world.set_policy(Some(allow(vec![other])));
    assert!(Client::new(&world).shake(stream, "pinned.ex.com").await.is_err());
    world.log.blocked(Reason::HostNotAllowed).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    for h2 in [false, true] {
        let world = World::new(allow(vec![record("api.ex.com", vec![rule()])]));
        // Sends each piece back as it comes.
        let _server = Server::https(&world, "api.ex.com", |request| {
            Box::pin(async move { Response::new(request.into_body().boxed_unsync()) })
        })
        .await;
        let client = Client { h2, ..Client::new(&world) };
        let tls = client.tunnel("api.ex.com", 443).await.unwrap();
        let (pieces, body) = piecewise();
        let uri = if h2 { "https://api.ex.com/" } else { "/" };
        let request = Request::post(uri).header("host", "api.ex.com").body(body).unwrap();
        let answer = if h2 {
            let executor = hyper_util::rt::TokioExecutor::new();
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(executor, TokioIo::new(tls)).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        };
        let mut answer = answer.into_body();
        for n in 0..10 {
            pieces.send(Bytes::from(format!("piece {n}"))).await.unwrap();
            let frame = within("a piece", answer.frame()).await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), format!("piece {n}"));
        }
        drop(pieces);
        assert!(within("the end", answer.frame()).await.is_none_or(|f| f.unwrap().is_data()));
        drop(answer);
        let line = world.log.allowed(1).await.remove(0);
        assert_eq!((line.bytes_up, line.bytes_down), (70, 70));
    }
}

type Pieces = std::pin::Pin<
    Box<dyn hyper::body::Body<Data = Bytes, Error = std::convert::Infallible> + Send>,
>;

fn piecewise() -> (tokio::sync::mpsc::Sender<Bytes>, Pieces) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let frames = futures_util::stream::poll_fn(move |cx| {
        receiver.poll_recv(cx).map(|piece| piece.map(|piece| Ok(hyper::body::Frame::data(piece))))
    });
    (sender, Box::pin(http_body_util::StreamBody::new(frames)))
}

#[tokio::test]
async fn a_body_is_waited_for_only_after_a_yes() {
    let world = World::new(p0());
    let open = Rule { path: path(PathKind::Exact, "/up"), ..rule() };
    world.set_policy(Some(allow(vec![record("api.ex.com", vec![open])])));
    let _server = Server::https(&world, "api.ex.com", |request| {
        Box::pin(async move { text(request.into_body().collect().await.unwrap().to_bytes()) })
    })
    .await;
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: api.ex.com\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, head("/other")).await;
    assert_eq!(got.refused(), (403, "no_rule_matched"));
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    assert_eq!(raw(&mut tls, head("/up")).await.status, 100);
    assert_eq!(raw(&mut tls, "hello").await.text(), "hello");
}

#[tokio::test]
async fn headers_keep_their_spelling_and_lose_their_blanks() {
    let world = World::new(allow(vec![record("api.ex.com", vec![rule()])]));
    let (listener, sent) = listening(&world).await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 80).await;
    assert!(tls.is_err(), "only by TLS");
    tls = Client::new(&world).tunnel("api.ex.com", 443).await;
    let mut tls = tls.unwrap();
    tls.write_all(b"GET / HTTP/1.1\r\nHost: api.ex.com\r\nX-MiXeD:  a b \t\r\n\r\n").await.unwrap();
    let head = within("a request", sent).await.unwrap();
    assert!(head.contains("\r\nX-MiXeD: a b\r\n"), "{head}");
    assert_eq!(read_answer(&mut tls).await.status, 204);
    drop(listener);
}

/// A server that gives the head of its first request as it came.
async fn listening(
    world: &World,
) -> (tokio::task::JoinHandle<()>, tokio::sync::oneshot::Receiver<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.net.route("api.ex.com", 443, listener.local_addr().unwrap());
    let (config, _) = world.authorities.config("api.ex.com", &["http/1.1"]);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let mut tls = acceptor.accept(stream).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tls.read_u8().await.unwrap());
        }
        sender.send(String::from_utf8(head).unwrap()).unwrap();
        tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        tls.flush().await.unwrap();
        let mut rest = Vec::new();
        let _ = tls.read_to_end(&mut rest).await;
    });
    (task, receiver)
}

#[tokio::test]
async fn a_certificate_is_for_one_host() {
    let world = World::new(p0());
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "api.ex.com", 443).await.status, 200);
    // The same connection does not do for another name.
    let config = trusting(&world, &["http/1.1"]);
    let name = ServerName::try_from("api.ex.com").unwrap();
    let tls =
        within("a handshake", TlsConnector::from(config).connect(name, stream)).await.unwrap();
    let leaf = tls.get_ref().1.peer_certificates().unwrap()[0].clone();
    let text = String::from_utf8_lossy(&leaf).into_owned();
    assert!(text.contains("api.ex.com") && !text.contains("*."));
}
