//! Fields after a body, in both directions and across versions.

use crate::support::client::raw;
use crate::support::policy::bearer;
use crate::support::server::{Reply, canned, text};
use crate::support::world::hasty;
use crate::support::*;
use agentbox_egress::policy::{OnExisting, Policy, Rule};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::egress::{Reason, TrafficKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const VALUE: &str = "ghp_RealValueOfTheUserThatNoBoxShouldSee";
const GET: &str = "GET /v1/a HTTP/1.1\r\nHost: api.ex.com\r\n\r\n";

fn open() -> Policy {
    allow(vec![record("api.ex.com", vec![rule()])])
}

fn fields(all: &[(&str, &str)]) -> HeaderMap {
    let name = |text: &str| HeaderName::from_bytes(text.as_bytes()).unwrap();
    all.iter().map(|(n, v)| (name(n), HeaderValue::from_str(v).unwrap())).collect()
}

/// A chunked answer, as it comes over the wire, to its last byte.
async fn whole(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut all = Vec::new();
    let ended = |all: &[u8]| {
        let Some(at) = all.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
        let body = &all[at + 4..];
        (body.starts_with(b"0\r\n") || body.windows(5).any(|part| part == b"\r\n0\r\n"))
            && all.ends_with(b"\r\n\r\n")
    };
    while !ended(&all) {
        let byte = within("an answer", stream.read_u8()).await;
        all.push(byte.unwrap_or_else(|e| panic!("{e} after {}", String::from_utf8_lossy(&all))));
    }
    String::from_utf8(all).unwrap()
}

/// An answer with a body, then fields.
fn trailing(declared: &str, last: &HeaderMap) -> Reply {
    let frames = [Ok(Frame::data(Bytes::from("hello"))), Ok(Frame::trailers(last.clone()))];
    Response::builder()
        .header("trailer", declared)
        .body(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync())
        .unwrap()
}

#[tokio::test]
async fn trailers_of_a_server_reach_a_box_by_http_1() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Other\r\n\r\n\
        5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n";
    let world = World::new(open());
    let server = canned(&world, "api.ex.com", answer).await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    // Whether the box says that it takes them or not, and again on the same connection.
    for head in [GET.to_owned(), GET.replace("\r\n\r\n", "\r\nTE: trailers\r\n\r\n"), GET.into()] {
        tls.write_all(head.as_bytes()).await.unwrap();
        let got = whole(&mut tls).await.to_ascii_lowercase();
        assert!(got.contains("\r\ntrailer: x-sum, x-other\r\n"), "{got}");
        assert!(got.ends_with("\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\nx-other: 2\r\n\r\n"), "{got}");
    }
    // A server is told what the box said, and nothing else.
    let heads = server.heads();
    let asks: Vec<bool> = heads.iter().map(|h| h.contains("\r\nTE: trailers\r\n")).collect();
    assert_eq!(asks, [false, true, false], "{heads:?}");
    assert!(heads.iter().all(|head| !head.contains("agentbox")), "{heads:?}");
}

#[tokio::test]
async fn trailers_cross_versions() {
    for (h2_box, h2_server) in [(false, true), (true, false), (true, true)] {
        let world = World::new(open());
        let last = fields(&[("x-sum", "1")]);
        let reply = move |_| -> std::pin::Pin<Box<dyn Future<Output = Reply> + Send>> {
            let reply = trailing("x-sum", &last);
            Box::pin(async move { reply })
        };
        let _server = if h2_server {
            Server::https(&world, "api.ex.com", reply).await
        } else {
            Server::https_1(&world, "api.ex.com", reply).await
        };
        let client = Client { h2: h2_box, ..Client::new(&world) };
        let tls = client.tunnel("api.ex.com", 443).await.unwrap();
        let request = Request::get(if h2_box { "https://api.ex.com/" } else { "/" })
            .header("host", "api.ex.com")
            .header("te", "trailers")
            .body(http_body_util::Empty::<Bytes>::new())
            .unwrap();
        let answer = if h2_box {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            within("an answer", sender.send_request(request)).await.unwrap()
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.unwrap();
            tokio::spawn(connection);
            within("an answer", sender.send_request(request)).await.unwrap()
        };
        let whole = within("a body", answer.into_body().collect()).await.unwrap();
        let got = whole.trailers().map(|t| t["x-sum"].to_str().unwrap().to_owned());
        assert_eq!(got.as_deref(), Some("1"), "box {h2_box} server {h2_server}");
    }
}

#[tokio::test]
async fn trailers_do_not_speak_of_the_body_or_in_our_name() {
    let names = [
        "content-length",
        "transfer-encoding",
        "content-encoding",
        "content-type",
        "content-range",
        "set-cookie",
        "location",
        "cache-control",
        "connection",
        "host",
        "trailer",
        "www-authenticate",
        "x-agentbox-egress",
        "proxy-authenticate",
        "alt-svc",
    ];
    let last: String = names.iter().map(|name| format!("{name}: 1\r\n")).collect();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: {}, x-sum\r\n\r\n\
         5\r\nhello\r\n0\r\n{last}x-sum: 1\r\n\r\n",
        names.join(", ")
    );
    let world = World::new(open());
    let _server = canned(&world, "api.ex.com", answer).await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    tls.write_all(GET.as_bytes()).await.unwrap();
    let got = whole(&mut tls).await;
    assert!(got.ends_with("\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n"), "{got}");
    assert!(got.contains("\r\nTrailer: x-sum\r\n"), "{got}");
    // HTTP/2 has no framing to disturb, and programs that join the two.
    let client = Client::h2(&world);
    let tls = client.tunnel("api.ex.com", 443).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://api.ex.com/").body(http_body_util::Empty::<Bytes>::new());
    let answer = within("an answer", sender.send_request(request.unwrap())).await.unwrap();
    let whole = within("a body", answer.into_body().collect()).await.unwrap();
    assert_eq!(whole.trailers(), Some(&fields(&[("x-sum", "1")])));
}

#[tokio::test]
async fn trailers_are_bounded() {
    // Within what HTTP/2 takes of a server, and more than a box gets.
    let long = fields(&[("x-sum", &"1".repeat(20 * 1024))]);
    let world = World::new(open());
    let _server = Server::https(&world, "api.ex.com", move |_| {
        let reply = trailing("x-sum", &long);
        Box::pin(async move { reply })
    })
    .await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    tls.write_all(GET.as_bytes()).await.unwrap();
    let got = whole(&mut tls).await;
    assert!(got.ends_with("\r\n5\r\nhello\r\n0\r\n\r\n"), "{}", got.len());
}

#[tokio::test]
async fn a_credential_in_a_trailer_is_overwritten_whatever_the_body_is() {
    for kind in ["text/plain", "application/octet-stream"] {
        let with = Rule { transform: bearer("ex.token", OnExisting::Fail), ..rule() };
        let policy = allow(vec![record("api.ex.com", vec![with])]);
        let world = World::with(Some(policy), hasty(), Vec::new());
        world.secrets.set("ex.token", VALUE);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: Bearer {VALUE}\r\n\r\n"
        );
        let _server = canned(&world, "api.ex.com", answer).await;
        let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
        tls.write_all(GET.as_bytes()).await.unwrap();
        let got = whole(&mut tls).await;
        assert!(got.ends_with(&format!("Bearer {}\r\n\r\n", "*".repeat(VALUE.len()))), "{got}");
        let line = world.log.kind(TrafficKind::SecretEcho).await;
        assert_eq!(line.detail.as_deref(), Some("ex.token in trailer"));
    }
}

#[tokio::test]
async fn a_credential_in_a_trailer_of_a_box_does_not_leave_it() {
    let with = Rule { transform: bearer("ex.token", OnExisting::Fail), ..rule() };
    let policy = allow(vec![record("api.ex.com", vec![with]), record("b.ex.com", vec![rule()])]);
    let world = World::with(Some(policy), hasty(), Vec::new());
    world.secrets.set("ex.token", VALUE);
    let _server = Server::hello(&world, "api.ex.com").await;
    let _other = Server::https(&world, "b.ex.com", |request| {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            text("taken")
        })
    })
    .await;
    assert_eq!(Client::new(&world).get("https://api.ex.com/").await.status, 200);
    let mut tls = Client::new(&world).tunnel("b.ex.com", 443).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: b.ex.com\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         5\r\nhello\r\n0\r\nX-Sum: {VALUE}\r\n\r\n"
    );
    assert_eq!(raw(&mut tls, request).await.refused(), (403, "secret_exfil"));
    world.log.blocked(Reason::SecretExfil).await;
}
