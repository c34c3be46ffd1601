//! A box that means harm, byte by byte: requests hidden in requests, names that do not fit, and as much as
//! it can send at once.

use crate::support::client::{connect, raw, read_answer};
use crate::support::policy::{bearer, p0, path};
use crate::support::server::text;
use crate::support::world::{gone, hasty};
use crate::support::*;
use agentbox_egress::policy::{OnExisting, PathKind, Policy, Rule};
use agentbox_egress::proxy::Limits;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, StatusCode};
use protocol::egress::{Reason, TrafficAction};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

const VALUE: &str = "ghp_RealValueOfTheUserThatNoBoxShouldSee";

fn open() -> Policy {
    allow(vec![record("api.ex.com", vec![rule()])])
}

/// A second request that must never be one.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: api.ex.com\r\n\r\n";

#[tokio::test]
async fn no_request_is_smuggled_in_another() {
    let world = World::new(open());
    let server = Server::https_1(&world, "api.ex.com", |request| {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            text("seen")
        })
    })
    .await;
    let chunked = "Transfer-Encoding: chunked";
    let with = |fields: &str, body: &str| {
        format!("POST /a HTTP/1.1\r\nHost: api.ex.com\r\n{fields}\r\n\r\n{body}{HIDDEN}")
    };
    let mut all = vec![
        // Two lengths.
        with(&format!("Content-Length: 5\r\n{chunked}"), "0\r\n\r\n"),
        with(&format!("{chunked}\r\nContent-Length: 5"), "0\r\n\r\n"),
        with("Content-Length: 5\r\nContent-Length: 0", "hello"),
        with("Content-Length: 0\r\ncontent-length: 5", "hello"),
        with("Content-Length: 5, 0", "hello"),
        with("Content-Length: +5", "hello"),
        with("Content-Length: 0x5", "hello"),
        with("Content-Length: 5 0", "hello"),
        with("Content-Length: 18446744073709551616", "hello"),
        with("Content-Length : 5", "hello"),
        // Lines that some read as one and some as two.
        with("X: a\r\n Content-Length: 5", "hello"),
        with("X: a\n Content-Length: 5", "hello"),
        with("X: a\nContent-Length: 5", "hello"),
        with("X: a\rContent-Length: 5", "hello"),
        with("X: a\0Content-Length: 5", "hello"),
        with("\r\nContent-Length: 5", "hello").replacen("\r\n\r\n", "\n\n", 1),
        // Several hosts, none, and one in a corner.
        with("Host: api.ex.com", ""),
        with("Host: evil.ex", ""),
        with("host : evil.ex", ""),
        with(" Host: evil.ex", ""),
        with("X: y", "").replacen("Host: api.ex.com\r\n", "", 1),
        // Chunks with more to them.
        with(chunked, "5;a=b\r\nhello\r\n0\r\n\r\n"),
        with(chunked, "5;\nhello\r\n0\r\n\r\n"),
        with(chunked, "0;\r\n\r\n"),
        with(chunked, "0\n\r\n"),
        with(chunked, "5\r\nhello0\r\n\r\n"),
        with(chunked, "-1\r\n\r\n"),
        with(chunked, "1 \r\nx\r\n0\r\n\r\n"),
        with(chunked, "0x0\r\n\r\n"),
        with(chunked, "10000000000000000\r\n"),
        with(chunked, "0\r\nContent-Length: 5\r\n folded: 1\r\n\r\n"),
        with(chunked, "0\r\nX: y\n\r\n"),
        // A line that is none.
        with("X: y", "").replacen("HTTP/1.1", "HTTP/1.1 x", 1),
        with("X: y", "").replacen("POST /a", "POST /a b", 1),
        with("X: y", "").replacen("HTTP/1.1", "HTTP/2.0", 1),
        with("X: y", "").replacen("POST /a", "POST\t/a", 1),
    ];
    // Ways to write the one encoding that is taken.
    for how in [
        "xchunked",
        "chunked, chunked",
        "identity, chunked",
        "chunked;q=1",
        "\"chunked\"",
        "\u{b}chunked",
        "chunked\u{b}",
        "chunk\u{212a}ed",
        "gzip",
        "",
        "identity",
    ] {
        all.push(with(&format!("Transfer-Encoding: {how}"), "0\r\n\r\n"));
    }
    for fields in [
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "X: y\r\n\tTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding:\r\n chunked",
        "X: y\rTransfer-Encoding: chunked",
    ] {
        all.push(with(fields, "0\r\n\r\n"));
    }
    for request in all {
        let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
        tls.write_all(request.as_bytes()).await.unwrap();
        let said = String::from_utf8_lossy(&gone(&mut tls).await).into_owned();
        // In the head it is said, in a body it just ends; neither way anything is behind it.
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{request:?}: {said}");
        assert!(said.matches("HTTP/1.1 ").count() <= 1, "{request:?}: {said}");
    }
    let seen: Vec<String> = server.seen().into_iter().map(|seen| seen.uri).collect();
    assert!(!seen.iter().any(|uri| uri.contains("hidden")), "{seen:?}");
    // And all is well with one that is as it should be, and with the one after it.
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let good = with(chunked, "5\r\nhello\r\n0\r\nX: y\r\n\r\n");
    assert_eq!(raw(&mut tls, good).await.status, StatusCode::OK);
    assert_eq!(read_answer(&mut tls).await.status, StatusCode::OK);
    assert!(server.seen().iter().any(|seen| seen.uri == "/hidden"));
}

/// What of a body is not read is not the next request either.
#[tokio::test]
async fn a_refused_body_is_not_the_next_request() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let body = "GET /v1/hidden HTTP/1.1\r\nHost: api.ex.com\r\n\r\n";
    let head = format!(
        "POST /v1/a HTTP/1.1\r\nHost: api.ex.com\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let got = raw(&mut tls, head).await;
    assert_eq!(got.refused(), (403, "no_rule_matched"));
    assert_eq!(got.headers["connection"], "close");
    assert_eq!(gone(&mut tls).await, b"");
    assert_eq!(server.connections(), 0);
}

/// A body that says how long it is in a request that says nothing of it to most.
#[tokio::test]
async fn a_body_of_a_get_goes_with_it() {
    let world = World::new(open());
    let server = Server::https_1(&world, "api.ex.com", |request| {
        Box::pin(async move { text(request.into_body().collect().await.unwrap().to_bytes()) })
    })
    .await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let head = format!(
        "GET /a HTTP/1.1\r\nHost: api.ex.com\r\nContent-Length: {}\r\n\r\n{HIDDEN}",
        HIDDEN.len()
    );
    assert_eq!(raw(&mut tls, head).await.text(), HIDDEN);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(server.seen()[0].header("content-length"), [HIDDEN.len().to_string()]);
}

/// The server of another tenant behind the same address, by every name a request has.
#[tokio::test]
async fn egress_r3_a_credential_goes_to_the_host_of_the_policy_and_no_other() {
    let with = Rule {
        transform: bearer("ex.token", OnExisting::Fail),
        path: path(PathKind::Prefix, "/v1/"),
        ..rule()
    };
    let world = World::new(allow(vec![record("api.ex.com", vec![with])]));
    world.secrets.set("ex.token", VALUE);
    let server = Server::hello(&world, "api.ex.com").await;
    // By TLS.
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "api.ex.com", 443).await.status, 200);
    let client = Client { sni: Some("tenant.evil.ex"), ..Client::new(&world) };
    assert!(client.shake(stream, "api.ex.com").await.is_err());
    world.log.blocked(Reason::SniMismatch).await;
    // By the request, which then is one for the other.
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    for (line, host) in [
        ("/v1/a", "tenant.evil.ex"),
        ("/v1/../admin", "tenant.evil.ex"),
        ("/v1/a", "api.ex.com:8443"),
        ("/v1/a", "api.ex.com.evil.ex"),
        ("/v1/a", "api.ex.com@evil.ex"),
        ("/v1/a", "evil.ex, api.ex.com"),
        ("/v1/a", "api.ex.com#.evil.ex"),
    ] {
        let got = raw(&mut tls, format!("GET {line} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(got.refused(), (421, "authority_mismatch"), "{host}");
    }
    for line in ["https://tenant.evil.ex/v1/a", "http://api.ex.com/v1/a", "https://api.ex.com/v1/a"]
    {
        let got = raw(&mut tls, format!("GET {line} HTTP/1.1\r\nHost: api.ex.com\r\n\r\n")).await;
        assert_eq!(got.refused(), (400, "bad_request_target"), "{line}");
    }
    let got = raw(&mut tls, "GET /v1/../admin HTTP/1.1\r\nHost: api.ex.com\r\n\r\n").await;
    assert_eq!(got.refused(), (403, "ambiguous_path"));
    // By fields that servers behind a proxy believe, nothing is decided, and nothing is put in elsewhere.
    let head = "GET /v1/a HTTP/1.1\r\nHost: api.ex.com\r\nX-Forwarded-Host: tenant.evil.ex\r\n\
        X-Original-URL: /admin\r\nX-HTTP-Method-Override: DELETE\r\n\r\n";
    assert_eq!((server.connections(), world.secrets.asked()), (0, 0));
    assert_eq!(raw(&mut tls, head).await.status, StatusCode::OK);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].uri, "https://api.ex.com/v1/a");
    assert_eq!(seen[0].header("authorization"), [format!("Bearer {VALUE}")]);
    assert!(world.net.lookups.lock().unwrap().iter().all(|name| name == "api.ex.com"));
}

/// Frames of HTTP/2, as no library would send them.
mod frames {
    use super::*;
    use tokio::io::{AsyncRead, AsyncWrite};

    pub const RST_STREAM: u8 = 3;
    pub const GOAWAY: u8 = 7;
    pub const HEADERS: u8 = 1;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()[..]].concat();
        [&head[..], payload].concat()
    }

    /// Fields as they are: not indexed, not compressed, not checked.
    fn fields(all: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in all {
            out.push(0);
            for text in [name, value] {
                out.push(u8::try_from(text.len()).unwrap());
                out.extend_from_slice(text.as_bytes());
            }
        }
        out
    }

    /// One request, and the kind of frame that answers it; none when the connection just ends.
    pub async fn ask<S>(stream: &mut S, all: &[(&str, &str)]) -> Option<u8>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        out.extend(frame(4, 0, 0, &[]));
        // The end of the fields and of the request.
        out.extend(frame(HEADERS, 0x5, 1, &fields(all)));
        stream.write_all(&out).await.unwrap();
        stream.flush().await.unwrap();
        within("an answer", async {
            loop {
                let mut head = [0; 9];
                stream.read_exact(&mut head).await.ok()?;
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut payload = vec![0; length as usize];
                stream.read_exact(&mut payload).await.ok()?;
                if matches!(head[3], HEADERS | RST_STREAM | GOAWAY) {
                    return Some(head[3]);
                }
            }
        })
        .await
    }
}

const GOOD: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "api.ex.com"), (":path", "/v1/a")];

fn instead(name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    GOOD.iter().map(|(n, v)| (*n, if *n == name { value } else { v })).collect()
}

fn and(more: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    GOOD.iter().copied().chain([more]).collect()
}

#[tokio::test]
async fn http_2_says_everything_once_and_plainly() {
    let world = World::new(open());
    let server = Server::hello(&world, "api.ex.com").await;
    let without = |name: &str| -> Vec<(&str, &str)> {
        GOOD.iter().copied().filter(|(n, _)| *n != name).collect()
    };
    let mut last = GOOD.to_vec();
    last.insert(0, ("x-first", "1"));
    let long: String = "x".repeat(100);
    let all = [
        and((":authority", "api.ex.com")),
        and((":authority", "evil.ex")),
        and((":path", "/other")),
        and((":method", "POST")),
        and((":status", "200")),
        and((":protocol", "websocket")),
        and((":x", "1")),
        instead(":authority", "evil.ex"),
        instead(":authority", "api.ex.com@evil.ex"),
        instead(":authority", "api.ex.com:8443"),
        instead(":authority", ""),
        instead(":path", "/v1/a\r\nHost: evil.ex"),
        instead(":path", "/v1/a HTTP/1.1\r\n\r\nGET /hidden"),
        instead(":path", "/v1/a\0"),
        instead(":path", "/v1/a b"),
        instead(":path", "https://evil.ex/"),
        instead(":path", "//evil.ex/v1/a"),
        instead(":path", "*"),
        instead(":path", "v1/a"),
        instead(":path", ""),
        instead(":scheme", "http"),
        instead(":scheme", "ftp"),
        instead(":scheme", ""),
        instead(":method", "CONNECT"),
        instead(":method", "TRACE"),
        instead(":method", "GET /hidden HTTP/1.1\r\n"),
        instead(":method", ""),
        without(":path"),
        without(":scheme"),
        without(":method"),
        without(":authority"),
        and(("host", "evil.ex")),
        and(("X-Upper", "1")),
        and(("x upper", "1")),
        and(("x-line\r\nhost", "evil.ex")),
        and(("x-line", "1\r\nhost: evil.ex")),
        and(("x-nul", "a\0b")),
        and(("", "1")),
        and(("connection", "keep-alive")),
        and(("transfer-encoding", "chunked")),
        and(("upgrade", "websocket")),
        and(("keep-alive", "1")),
        and(("proxy-connection", "keep-alive")),
        and(("te", "gzip")),
        and(("content-length", "5")),
        last,
    ];
    for fields in all {
        let client = Client::h2(&world);
        let mut tls = client.tunnel("api.ex.com", 443).await.unwrap();
        let lines = world.log.all().len();
        let answered = frames::ask(&mut tls, &fields).await;
        if answered == Some(frames::HEADERS) {
            // hyper may refuse it by itself; what comes here is refused with a line.
            let more = world.log.all().split_off(lines);
            let allowed = more.iter().any(|line| line.action == TrafficAction::Allowed);
            assert!(!allowed, "{fields:?}: {more:?}");
        }
        assert!(server.seen().is_empty(), "{fields:?}: {:?}", server.seen());
    }
    let mut tls = Client::h2(&world).tunnel("api.ex.com", 443).await.unwrap();
    assert_eq!(frames::ask(&mut tls, &and(("x-long", long.leak()))).await, Some(frames::HEADERS));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn egress_12_57_a_hundred_streams_are_a_hundred_decisions() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    let client = Client::h2(&world);
    let tls = client.tunnel("api.ex.com", 443).await.unwrap();
    let crate::support::client::Sender::Many(sender) = client.over(tls).await else { panic!() };
    let one = |n: usize| {
        let mut sender = sender.clone();
        async move {
            let path = if n.is_multiple_of(2) { "v1" } else { "v2" };
            let request = Request::get(format!("https://api.ex.com/{path}/{n}"));
            let body = http_body_util::Full::new(Bytes::new());
            within("an answer", sender.send_request(request.body(body).unwrap())).await.unwrap()
        }
    };
    let answers = futures_util::future::join_all((0..100).map(one)).await;
    let passed = answers.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(passed, 50);
    drop(answers);
    let allowed = world.log.allowed(50).await;
    let blocked = |line: &protocol::egress::Traffic| line.reason == Some(Reason::NoRuleMatched);
    let mut paths: Vec<_> = allowed.into_iter().filter_map(|line| line.path).collect();
    paths.extend(world.log.all().into_iter().filter(blocked).filter_map(|line| line.path));
    paths.sort();
    paths.dedup();
    assert_eq!((paths.len(), world.log.all().len(), server.seen().len()), (100, 100, 50));
}

#[tokio::test]
async fn a_box_has_only_so_many_requests_under_way() {
    let limits = Limits { requests_per_box: 5, ..hasty() };
    let world = World::with(Some(open()), limits, Vec::new());
    let go = Arc::new(Notify::new());
    let held = go.clone();
    let server = Server::https(&world, "api.ex.com", move |_| {
        let go = held.clone();
        Box::pin(async move {
            go.notified().await;
            text("at last")
        })
    })
    .await;
    let client = Client::h2(&world);
    let tls = client.tunnel("api.ex.com", 443).await.unwrap();
    let crate::support::client::Sender::Many(sender) = client.over(tls).await else { panic!() };
    let ask = || {
        let mut sender = sender.clone();
        let request = Request::get("https://api.ex.com/");
        let request = request.body(http_body_util::Full::new(Bytes::new())).unwrap();
        tokio::spawn(async move { sender.send_request(request).await.unwrap() })
    };
    let waiting: Vec<_> = (0..5).map(|_| ask()).collect();
    until("five requests", || (server.seen().len() == 5).then_some(())).await;
    let got = crate::support::client::got(ask().await.unwrap()).await;
    assert_eq!(got.refused(), (429, "too_many_connections"));
    // A box can still ask what became of it.
    let why = Client::new(&world).get("http://egress.agentbox.internal/why").await;
    assert!(why.text().contains("too_many_connections"), "{}", why.text());
    go.notify_waiters();
    for answer in waiting {
        assert_eq!(crate::support::client::got(answer.await.unwrap()).await.text(), "at last");
    }
    let last = ask();
    until("a sixth", || (server.seen().len() == 6).then_some(())).await;
    go.notify_waiters();
    assert_eq!(last.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_connection_of_many_requests_on_which_there_is_none_ends() {
    let limits = Limits { idle: std::time::Duration::from_millis(300), ..hasty() };
    let world = World::with(Some(open()), limits, Vec::new());
    let _server = Server::https(&world, "api.ex.com", |_| {
        Box::pin(async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            text("late")
        })
    })
    .await;
    let client = Client::h2(&world);
    let tls = client.tunnel("api.ex.com", 443).await.unwrap();
    let mut sender = client.over(tls).await;
    // Who waits for an answer is not idle.
    assert_eq!(sender.get("https://api.ex.com/").await.text(), "late");
    let crate::support::client::Sender::Many(sender) = sender else { panic!() };
    until("the end", || sender.is_closed().then_some(())).await;
}

#[tokio::test]
async fn egress_12_59_a_box_is_told_why() {
    let world = World::new(p0());
    let request = Request::post("https://api.ex.com/v1/a").body(Bytes::from("x")).unwrap();
    Client::new(&world).send(request).await;
    let why = Client::new(&world).get("http://egress.agentbox.internal/why").await;
    let why: serde_json::Value = serde_json::from_slice(&why.body).unwrap();
    assert_eq!(why["reason"], "no_rule_matched");
    assert_eq!(why["request"], "POST api.ex.com/v1/a");
    assert!(why["hint"].as_str().unwrap().contains("agentbox egress allow api.ex.com"), "{why}");
}

#[tokio::test]
async fn egress_12_49_nothing_a_box_sends_answers_a_question() {
    let world = World::new(Policy { unmatched: agentbox_egress::policy::Unmatched::Ask, ..p0() });
    let own = "http://egress.agentbox.internal";
    for (method, path) in [
        ("POST", "/approve"),
        ("POST", "/answer"),
        ("PUT", "/policy"),
        ("DELETE", "/policy"),
        ("POST", "/policy"),
        ("POST", "/healthz"),
        ("POST", "/why"),
        ("GET", "/../control"),
    ] {
        let request = Request::builder().method(method).uri(format!("{own}{path}"));
        let got = Client::new(&world).send(request.body(Bytes::from("{}")).unwrap()).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    assert!(world.gate.asked().is_empty() && world.net.was_left_alone());
}
