//! Credentials: put in on the way out, kept from coming back, and never written down.

use crate::support::policy::{bearer, header, path};
use crate::support::server::{Reply, text};
use crate::support::world::hasty;
use crate::support::*;
use agentbox_egress::policy::{
    HeaderRule, How, OnExisting, PathKind, Policy, Rule, Transform, Unmatched,
};
use agentbox_egress::proxy::Placeholder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response};
use protocol::egress::{Reason, TrafficAction, TrafficKind};
use std::sync::Arc;
use tokio::sync::Notify;

const VALUE: &str = "ghp_RealValueOfTheUserThatNoBoxShouldSee";
const FAKE: &str = "ghp_agentboxabcdefghijklmnopqrstuvwx";

fn injecting(on_existing: OnExisting) -> Policy {
    let with = Rule { transform: bearer("ex.token", on_existing), ..rule() };
    allow(vec![record("api.ex.com", vec![with])])
}

fn world(policy: Policy) -> World {
    let fake = Placeholder { secret: "ex.token".parse().unwrap(), value: FAKE.into() };
    let world = World::with(Some(policy), hasty(), vec![fake]);
    world.secrets.set("ex.token", VALUE);
    world
}

/// Sends back what it was given, in headers and in JSON.
fn echo(request: Request<Incoming>) -> std::pin::Pin<Box<dyn Future<Output = Reply> + Send>> {
    Box::pin(async move {
        let given = request.headers().get("authorization").cloned();
        let body = serde_json::json!({
            "got": given.as_ref().map(|v| v.to_str().unwrap().to_owned()),
            "encoded": STANDARD.encode(given.as_ref().map_or(&b""[..], |v| v.as_bytes())),
        });
        let mut reply = text(body.to_string());
        reply.headers_mut().insert("content-type", "application/json".parse().unwrap());
        if let Some(given) = given {
            reply.headers_mut().insert("x-you-sent", given);
        }
        reply
    })
}

fn get() -> hyper::http::request::Builder {
    Request::get("https://api.ex.com/v1")
}

fn nothing(request: hyper::http::request::Builder) -> Request<Bytes> {
    request.body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn a_credential_is_put_in_on_the_way_out() {
    for h2 in [false, true] {
        let world = world(injecting(OnExisting::Fail));
        let client = || Client { h2, ..Client::new(&world) };
        let server = Server::hello(&world, "api.ex.com").await;
        let request = get()
            .header("accept-encoding", "gzip")
            .header("range", "bytes=0-1")
            .header("connection", "authorization");
        let request = if client().h2 { get().header("range", "bytes=0-1") } else { request };
        let got = client().send(nothing(request)).await;
        assert_eq!(got.text(), "hello");
        let seen = server.seen().remove(0);
        assert_eq!(seen.header("authorization"), [format!("Bearer {VALUE}")]);
        // So that what comes back can be looked at.
        assert_eq!(seen.header("accept-encoding"), ["identity"]);
        assert!(seen.header("range").is_empty());
        let line = world.log.allowed(1).await.remove(0);
        let put = &line.injected[0];
        let told = (put.header.as_str(), put.secret.as_str(), put.transform.as_str());
        assert_eq!(told, ("authorization", "ex.token", "bearer"));
        assert!(!world.log.text().contains(VALUE));
    }
}

#[tokio::test]
async fn egress_12_27_a_header_of_the_boxs_own_ends_it_before_anything_is_read() {
    let world = world(injecting(OnExisting::Fail));
    let server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        let got = client.send(nothing(get().header("authorization", "x"))).await;
        assert_eq!(got.refused(), (403, "header_injection_failed"));
        assert!(got.text().contains("existing_header_present"), "{}", got.text());
    }
    assert_eq!((world.secrets.asked(), server.connections()), (0, 0));
    let line = world.log.blocked(Reason::HeaderInjectionFailed).await;
    assert!(line.detail.unwrap().starts_with("existing_header_present"));
}

#[tokio::test]
async fn egress_12_28_a_header_may_be_replaced_wholly_or_if_it_is_the_placeholder() {
    let replaced = world(injecting(OnExisting::Replace));
    let server = Server::hello(&replaced, "api.ex.com").await;
    let twice = get().header("authorization", "x").header("Authorization", "y");
    assert_eq!(Client::new(&replaced).send(nothing(twice)).await.status, 200);
    assert_eq!(server.seen()[0].header("authorization"), [format!("Bearer {VALUE}")]);

    let careful = world(injecting(OnExisting::ReplacePlaceholder));
    let server = Server::hello(&careful, "api.ex.com").await;
    let client = Client::new(&careful);
    let fake = get().header("authorization", format!("Bearer {FAKE}"));
    assert_eq!(client.send(nothing(fake)).await.status, 200);
    assert_eq!(server.seen()[0].header("authorization"), [format!("Bearer {VALUE}")]);
    let got = client.send(nothing(get().header("authorization", "Bearer mine"))).await;
    assert_eq!(got.refused(), (403, "header_injection_failed"));
    assert!(got.text().contains("existing_header_present"));
    assert_eq!((server.seen().len(), careful.secrets.asked()), (1, 1));
}

#[tokio::test]
async fn egress_12_29_all_headers_or_none() {
    let of = |name: &str, secret: &str| HeaderRule {
        name: name.into(),
        secret: secret.parse().unwrap(),
        how: How::Raw,
    };
    let headers = vec![of("x-one", "ex.token"), of("x-two", "ex.missing")];
    let transform = Some(Arc::new(Transform { headers, on_existing: OnExisting::Fail }));
    let world = world(allow(vec![record("api.ex.com", vec![Rule { transform, ..rule() }])]));
    let server = Server::hello(&world, "api.ex.com").await;
    let got = Client::new(&world).get("https://api.ex.com/v1").await;
    assert_eq!(got.refused(), (403, "header_injection_failed"));
    assert!(got.text().contains("secret_resolution_failed"), "{}", got.text());
    assert!(got.text().contains("ex.missing"));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn egress_r4_no_credential_goes_in_clear_text() {
    use agentbox_egress::request::Scheme;
    // A policy that says so is refused when it is read; the proxy does not rely on that.
    let open = Rule {
        schemes: [Scheme::Http, Scheme::Https].into(),
        ports: [80, 443].into(),
        transform: bearer("ex.token", OnExisting::Fail),
        ..rule()
    };
    let world = world(allow(vec![record("api.ex.com", vec![open])]));
    let server = Server::http(&world, "api.ex.com", |_| Box::pin(async { text("x") })).await;
    let got = Client::new(&world).get("http://api.ex.com/").await;
    assert_eq!(got.refused(), (403, "header_injection_failed"));
    assert!(got.text().contains("insecure_scheme"));
    assert_eq!((server.connections(), world.secrets.asked()), (0, 0));
}

#[tokio::test]
async fn egress_12_35_a_request_keeps_its_value_and_the_next_one_gets_the_new() {
    let world = world(injecting(OnExisting::Fail));
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let held = (arrived.clone(), go.clone());
    let server = Server::https(&world, "api.ex.com", move |request| {
        let (arrived, go) = held.clone();
        Box::pin(async move {
            if request.uri().path() == "/slow" {
                arrived.notify_one();
                go.notified().await;
            }
            text("x")
        })
    })
    .await;
    let client = Client::new(&world);
    let slow = client.get("https://api.ex.com/slow");
    let other = async {
        arrived.notified().await;
        world.secrets.set("ex.token", "the-second-value");
        client.get("https://api.ex.com/quick").await;
        go.notify_one();
    };
    within("both", async { tokio::join!(slow, other) }).await;
    let sent: Vec<String> =
        server.seen().iter().flat_map(|s| s.header("authorization")).map(str::to_owned).collect();
    assert_eq!(sent, [format!("Bearer {VALUE}"), "Bearer the-second-value".into()]);
    assert!(world.log.all().iter().all(|line| line.kind == TrafficKind::Request));
}

#[tokio::test]
async fn egress_12_36_a_locked_keychain_stops_its_own_requests_only() {
    let plain = Rule { path: path(PathKind::Prefix, "/public/"), ..rule() };
    let with = Rule { transform: bearer("ex.token", OnExisting::Fail), ..rule() };
    let world = world(allow(vec![record("api.ex.com", vec![with, plain])]));
    *world.secrets.locked.lock().unwrap() = true;
    let _server = Server::hello(&world, "api.ex.com").await;
    let client = Client::new(&world);
    let (locked, other) = tokio::join!(
        client.get("https://api.ex.com/v1"),
        client.get("https://api.ex.com/public/a")
    );
    assert_eq!(locked.refused(), (403, "header_injection_failed"));
    assert!(locked.text().contains("secret_resolver_unavailable"));
    assert_eq!(other.text(), "hello");
    within("the end", world.proxy.shutdown()).await;
}

#[tokio::test]
async fn egress_12_38_a_credential_goes_to_its_own_hosts_only() {
    let world = world(injecting(OnExisting::Fail));
    world.secrets.bind("ex.token", "github.com");
    let server = Server::hello(&world, "api.ex.com").await;
    let got = Client::new(&world).get("https://api.ex.com/v1").await;
    assert_eq!(got.refused(), (403, "header_injection_failed"));
    assert!(got.text().contains("secret_host_binding"));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn egress_12_39_what_a_server_sends_back_is_overwritten() {
    for h2 in [false, true] {
        let world = world(injecting(OnExisting::Fail));
        let client = || Client { h2, ..Client::new(&world) };
        let _server = Server::https(&world, "api.ex.com", echo).await;
        let got = client().get("https://api.ex.com/v1").await;
        let stars = "*".repeat(VALUE.len());
        assert_eq!(got.headers["x-you-sent"], format!("Bearer {stars}"));
        let said: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(said["got"], format!("Bearer {stars}"));
        assert!(said["encoded"].as_str().unwrap().contains("****************"));
        let length: usize = got.headers["content-length"].to_str().unwrap().parse().unwrap();
        assert_eq!(length, got.body.len());
        let line = world.log.kind(TrafficKind::SecretEcho).await;
        assert_eq!(line.host.as_deref(), Some("api.ex.com"));
        assert!(line.detail.unwrap().starts_with("ex.token in "));
    }
}

#[tokio::test]
async fn egress_12_39_what_a_server_sends_back_in_another_spelling_or_beside_its_status() {
    let basic = How::Basic { username: "x-access-token".into() };
    let transform = header("authorization", "ex.token", basic, OnExisting::Fail);
    let world = world(allow(vec![record("api.ex.com", vec![Rule { transform, ..rule() }])]));
    let sent = format!("Basic {}", STANDARD.encode(format!("x-access-token:{VALUE}")));
    // A log in base64 that holds the header, in a page that holds the log.
    let log = STANDARD.encode(format!("authorization: {sent}\n"));
    let link = log.replace('=', "%3D").replace('+', "%2B").replace('/', "%2F");
    let body = format!("{{\"log\": \"{log}\", \"link\": \"/?{link}\"}}");
    let answer = format!(
        "HTTP/1.1 401 No {VALUE}\r\nContent-Type: application/json\r\nX-Log: {log}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _server = crate::support::server::canned(&world, "api.ex.com", answer).await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let head = "GET /v1 HTTP/1.1\r\nHost: api.ex.com\r\nConnection: close\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut tls, head.as_bytes()).await.unwrap();
    let got = String::from_utf8(crate::support::world::gone(&mut tls).await).unwrap();
    assert!(got.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{got}");
    assert!(got.len() > body.len() + 200 && got.ends_with("\"}"), "{got}");
    let plain = |text: &[u8]| STANDARD.decode(&text[..text.len() / 4 * 4]).unwrap_or_default();
    let middle = &sent[30..sent.len() - 8];
    for word in got.split(|c: char| !c.is_ascii_alphanumeric() && !"+/".contains(c)) {
        let once = plain(word.as_bytes());
        for text in [word.as_bytes(), &once, &plain(&once)] {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains(&VALUE[8..]) && !text.contains(middle), "{word} is {text}");
        }
    }
}

#[tokio::test]
async fn an_echo_in_pieces_is_overwritten_while_it_streams() {
    let world = world(injecting(OnExisting::Fail));
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let receiver = Arc::new(tokio::sync::Mutex::new(Some(receiver)));
    let _server = Server::https(&world, "api.ex.com", move |_| {
        let receiver = receiver.clone();
        Box::pin(async move {
            let receiver = receiver.lock().await.take().unwrap();
            streaming(receiver, "text/event-stream")
        })
    })
    .await;
    let client = Client::new(&world);
    let tls = client.tunnel("api.ex.com", 443).await.unwrap();
    let (mut one, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(tls)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/v1").header("host", "api.ex.com");
    let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let mut answer = within("an answer", one.send_request(request)).await.unwrap();
    // What holds nothing comes at once, while the server still speaks.
    sender.send("data: hello\n\n".into()).await.unwrap();
    let first = within("the first piece", answer.frame()).await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: hello\n\n");
    for byte in format!("data: {VALUE}\n\n").bytes() {
        sender.send(Bytes::from(vec![byte])).await.unwrap();
    }
    drop(sender);
    let rest = within("the rest", answer.collect()).await.unwrap().to_bytes();
    assert_eq!(rest, format!("data: {}\n\n", "*".repeat(VALUE.len())));
}

fn streaming(mut from: tokio::sync::mpsc::Receiver<Bytes>, kind: &str) -> Reply {
    let frames = futures_util::stream::poll_fn(move |cx| {
        from.poll_recv(cx).map(|piece| piece.map(|piece| Ok(hyper::body::Frame::data(piece))))
    });
    Response::builder()
        .header("content-type", kind)
        .body(http_body_util::StreamBody::new(frames).boxed_unsync())
        .unwrap()
}

#[tokio::test]
async fn binary_answers_are_passed_as_they_are() {
    let world = world(injecting(OnExisting::Fail));
    let _server = Server::https(&world, "api.ex.com", |_| {
        Box::pin(async {
            let mut reply = text(VALUE);
            let kind = "application/x-git-upload-pack-result".parse().unwrap();
            reply.headers_mut().insert("content-type", kind);
            reply
        })
    })
    .await;
    assert_eq!(Client::new(&world).get("https://api.ex.com/v1").await.text(), VALUE);
}

#[tokio::test]
async fn the_third_echo_ends_it_until_a_person_knows() {
    let world = world(injecting(OnExisting::Fail));
    let server = Server::https(&world, "api.ex.com", |request| {
        Box::pin(async move { text(request.headers()["authorization"].as_bytes().to_vec()) })
    })
    .await;
    let client = Client::new(&world);
    for _ in 0..3 {
        assert_eq!(client.get("https://api.ex.com/v1").await.status, 200);
    }
    let got = client.get("https://api.ex.com/v1").await;
    assert_eq!(got.refused(), (403, "header_injection_failed"));
    assert!(got.text().contains("suspended"));
    assert_eq!((server.seen().len(), world.secrets.asked()), (3, 3));
    world.log.kind(TrafficKind::Alert).await;
    let host = crate::support::policy::name("api.ex.com");
    assert_eq!(world.proxy.suspended(), std::slice::from_ref(&host));
    assert!(world.proxy.acknowledge(&host));
    assert_eq!(client.get("https://api.ex.com/v1").await.status, 200);
}

#[tokio::test]
async fn what_a_box_should_not_hold_does_not_leave_it() {
    let open = Rule { path: path(PathKind::Prefix, "/any/"), ..rule() };
    let with = Rule { transform: bearer("ex.token", OnExisting::Fail), ..rule() };
    let policy = allow(vec![record("api.ex.com", vec![with]), record("b.ex.com", vec![open])]);
    let world = world(policy);
    let _server = Server::hello(&world, "api.ex.com").await;
    let other = Server::https(&world, "b.ex.com", |request| {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            text("taken")
        })
    })
    .await;
    let client = Client::new(&world);
    // It is known from the moment it was used.
    assert_eq!(client.get("https://api.ex.com/v1").await.status, 200);
    let to = "https://b.ex.com/any/";
    let hidden = STANDARD.encode(format!("x{VALUE}"));
    let escaped: String = VALUE.bytes().map(|b| format!("%{b:02x}")).collect();
    let requests = [
        nothing(Request::get(format!("{to}{VALUE}"))),
        nothing(Request::get(format!("{to}?q={VALUE}"))),
        nothing(Request::get(to).header("x-data", VALUE)),
        nothing(Request::get(to).header("x-data", hidden.as_str())),
        nothing(Request::get(format!("{to}?q={escaped}"))),
        nothing(Request::get(format!("{to}{escaped}"))),
    ];
    for request in requests {
        assert_eq!(client.send(request).await.refused(), (403, "secret_exfil"));
    }
    assert_eq!(other.connections(), 0);
    for h2 in [false, true] {
        let client = Client { h2, ..Client::new(&world) };
        for padding in [0, 100, 900_000] {
            let body = format!("{}{VALUE}", "x".repeat(padding));
            let request = Request::post(to).body(Bytes::from(body)).unwrap();
            assert_eq!(client.send(request).await.refused(), (403, "secret_exfil"), "{padding}");
        }
    }
    let line = world.log.blocked(Reason::SecretExfil).await;
    assert_eq!(line.detail.as_deref(), Some("ex.token"));
    assert!(!world.log.text().contains(VALUE));
    world.log.kind(TrafficKind::Alert).await;
}

#[tokio::test]
async fn egress_12_58_a_placeholder_is_of_no_use_elsewhere() {
    let with = Rule { transform: bearer("ex.token", OnExisting::Replace), ..rule() };
    let world = world(Policy {
        unmatched: Unmatched::Ask,
        ..allow(vec![record("github.com", vec![with]), record("api.ex.com", vec![rule()])])
    });
    let github = Server::hello(&world, "github.com").await;
    let server = Server::hello(&world, "api.ex.com").await;
    let client = Client::new(&world);
    let basic = STANDARD.encode(format!("x-access-token:{FAKE}"));
    for value in [FAKE.to_owned(), format!("Bearer {FAKE}"), format!("Basic {basic}")] {
        let got = client.send(nothing(get().header("authorization", &value))).await;
        assert_eq!(got.refused(), (403, "placeholder_misuse"), "{value}");
    }
    let got = client.get(&format!("https://api.ex.com/?key={FAKE}")).await;
    assert_eq!(got.refused(), (403, "placeholder_misuse"));
    // Nobody is asked about a host for which it is meant even less.
    let elsewhere = Request::get("https://evil.ex/").header("x-api-key", FAKE);
    assert_eq!(client.send(nothing(elsewhere)).await.refused(), (403, "placeholder_misuse"));
    assert!(world.gate.asked().is_empty());
    assert_eq!(server.connections(), 0);
    let line = world.log.kind(TrafficKind::Alert).await;
    assert_eq!(line.reason, Some(Reason::PlaceholderMisuse));
    // Where it belongs it becomes the real one.
    let home =
        Request::get("https://github.com/").header("authorization", format!("Bearer {FAKE}"));
    assert_eq!(client.send(nothing(home)).await.status, 200);
    assert_eq!(github.seen()[0].header("authorization"), [format!("Bearer {VALUE}")]);
}

#[tokio::test]
async fn egress_12_40_no_value_is_in_anything_that_is_written_or_shown() {
    let basic = How::Basic { username: "x-access-token".into() };
    let with = Rule {
        transform: header("authorization", "ex.token", basic, OnExisting::Fail),
        action: agentbox_egress::policy::Action::Ask,
        ..rule()
    };
    let world =
        world(allow(vec![record("api.ex.com", vec![with]), record("b.ex.com", vec![rule()])]));
    world.gate.yes();
    let _server = Server::https(&world, "api.ex.com", echo).await;
    let _other = Server::https(&world, "b.ex.com", |request| {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            text("taken")
        })
    })
    .await;
    let client = Client::new(&world);
    let mut shown = String::new();
    for (method, url, body) in [
        ("GET", "https://api.ex.com/v1".to_owned(), String::new()),
        ("GET", format!("https://api.ex.com/{VALUE}"), String::new()),
        ("GET", format!("https://b.ex.com/{VALUE}?{VALUE}={VALUE}"), String::new()),
        ("POST", "https://b.ex.com/".to_owned(), VALUE.to_owned()),
    ] {
        let request = Request::builder().method(method).uri(url).body(body.into()).unwrap();
        let got = client.send(request).await;
        shown += &format!("{:?} {}", got.headers, got.text());
    }
    let why = client.get("http://egress.agentbox.internal/why").await;
    shown += &why.text();
    shown += &world.log.text();
    shown += &format!("{:?}", world.gate.asked());
    let encoded = STANDARD.encode(format!("x-access-token:{VALUE}"));
    let middle = &encoded[24..encoded.len() - 4];
    for secret in [VALUE, middle, &encoded] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
    let asked = world.gate.asked();
    assert_eq!(asked[0].secrets[0].as_str(), "ex.token");
    assert!(world.log.all().iter().any(|line| line.action == TrafficAction::Blocked));
}

#[tokio::test]
async fn a_fault_in_the_store_ends_one_request() {
    let plain = Rule { path: path(PathKind::Prefix, "/public/"), ..rule() };
    let with = Rule { transform: bearer("ex.token", OnExisting::Fail), ..rule() };
    let world = world(allow(vec![record("api.ex.com", vec![with, plain])]));
    let _server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
        *world.secrets.broken.lock().unwrap() = true;
        let got = sender.get("https://api.ex.com/v1").await;
        assert_eq!(got.refused(), (503, "policy_unavailable"));
        let client = Client { h2: client.h2, ..Client::new(&world) };
        assert_eq!(client.get("https://api.ex.com/public/a").await.text(), "hello");
    }
}

#[tokio::test]
async fn a_question_is_about_all_that_is_sent_and_put_in() {
    let with = Rule {
        transform: bearer("ex.token", OnExisting::Fail),
        action: agentbox_egress::policy::Action::Ask,
        path: path(PathKind::Prefix, "/v1/"),
        ..rule()
    };
    let world = world(allow(vec![record("api.ex.com", vec![with])]));
    world.gate.yes();
    let _server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        client.get("https://api.ex.com/v1/a?key=1").await;
        client.send(Request::get("https://api.ex.com/v1/a").body("data".into()).unwrap()).await;
    }
    // Before it tries, a box asks for the same.
    let wish = r#"{"host":"api.ex.com","path":"/v1/a","reason":"to see"}"#;
    let wish = Request::post("http://egress.agentbox.internal/request").body(wish.into()).unwrap();
    Client::new(&world).send(wish).await;
    let asked = world.gate.asked();
    let whole: Vec<_> = asked.iter().map(|ask| (ask.path.as_str(), ask.length)).collect();
    let twice = [("/v1/a?key=1", Some(0)), ("/v1/a", Some(4))];
    assert_eq!(whole, [&twice[..], &twice[..], &[("/v1/a", Some(0))]].concat());
    assert!(asked.iter().all(|ask| ask.secrets[0].as_str() == "ex.token" && ask.rule.is_some()));
    // What a policy does not leave to a person is not for a box to ask for.
    for host in ["host.agentbox.internal", "x.agentbox.internal"] {
        let wish = format!(r#"{{"host":"{host}","reason":"please"}}"#);
        let wish = Request::post("http://egress.agentbox.internal/request").body(wish.into());
        let got = Client::new(&world).send(wish.unwrap()).await;
        assert!(got.text().contains(r#""granted":false"#), "{}", got.text());
    }
    assert_eq!(world.gate.asked().len(), asked.len());
}
