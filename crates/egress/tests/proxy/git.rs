//! git by HTTP: what it fetches, what it pushes, and what of that gets out.

use crate::support::client::raw;
use crate::support::server::text;
use crate::support::world::hasty;
use crate::support::*;
use agentbox_egress::policy::Policy;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::{Request, StatusCode};
use protocol::egress::Reason;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const VALUE: &str = "ghp_RealValueOfTheUserThatNoBoxShouldSee";
const REPO: &str = "https://github.com/acme/widget.git";
const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";
const NONE: &str = "0000000000000000000000000000000000000000";

fn world() -> World {
    let policy = Policy::from_yaml(
        "services:\n- name: github\n  repos: [acme/widget]\n  git:\n    access: readwrite\n    \
         auth: {secret: github.acme.push}\n    push: {refs: ['agentbox/*']}\n",
    );
    let world = World::with(Some(policy.unwrap()), hasty(), Vec::new());
    world.secrets.set("github.acme.push", VALUE);
    world
}

/// Takes everything, and says how much it was.
async fn hub(world: &World) -> Server {
    Server::https(world, "github.com", |request| {
        Box::pin(async move {
            let body = request.into_body().collect().await;
            text(body.map_or("broken".to_owned(), |body| body.to_bytes().len().to_string()))
        })
    })
    .await
}

/// A push of these commands, with something like objects after them.
fn pushed(commands: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (old, new, name) in commands {
        let line = format!("{old} {new} {name}\0report-status");
        body.extend_from_slice(format!("{:04x}{line}", line.len() + 4).as_bytes());
    }
    body.extend_from_slice(b"0000PACK of objects");
    body
}

fn push(body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post(format!("{REPO}/git-receive-pack")).body(body.into()).unwrap()
}

#[tokio::test]
async fn egress_12_25_every_request_of_git_carries_the_credential_and_none_comes_back() {
    for h2 in [false, true] {
        let world = world();
        let server = hub(&world).await;
        let client = Client { h2, ..Client::new(&world) };
        let get = |service: &str| {
            Request::get(format!("{REPO}/info/refs?service={service}")).body(Bytes::new()).unwrap()
        };
        let fetch = Request::post(format!("{REPO}/git-upload-pack")).body("0000".into()).unwrap();
        let commands = pushed(&[(OLD, NEW, "refs/heads/agentbox/x")]);
        let all = [get("git-upload-pack"), fetch, get("git-receive-pack"), push(commands)];
        for request in all {
            let got = client.send(request).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.text());
            assert!(!format!("{:?}{}", got.headers, got.text()).contains("Basic"));
        }
        let real = format!("Basic {}", STANDARD.encode(format!("x-access-token:{VALUE}")));
        let seen = server.seen();
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|seen| seen.header("authorization") == [real.as_str()]));
    }
}

#[tokio::test]
async fn egress_12_26_a_push_is_read_before_its_server_hears_of_it() {
    let world = world();
    let server = hub(&world).await;
    let good = pushed(&[(OLD, NEW, "refs/heads/agentbox/x")]);
    for client in [Client::new(&world), Client::h2(&world)] {
        let asked = world.secrets.asked();
        for (commands, named) in [
            (vec![(OLD, NEW, "refs/heads/main")], "refs/heads/main"),
            (vec![(OLD, NEW, "refs/heads/agentbox/x"), (OLD, NEW, "refs/heads/main")], "main"),
            (vec![(OLD, NONE, "refs/heads/agentbox/x")], "deleting refs/heads/agentbox/x"),
        ] {
            let got = client.send(push(pushed(&commands))).await;
            assert_eq!(got.refused(), (403, "git_ref_denied"));
            assert!(got.text().contains(named), "{}", got.text());
        }
        assert_eq!(world.secrets.asked(), asked, "nothing is put into what does not go out");
        for refused in [&b"001"[..], b"000fpush-cert\0abc", b"", b"zzzz"] {
            let got = client.send(push(refused.to_vec())).await;
            assert_eq!(got.refused(), (403, "git_ref_denied"), "{refused:?}");
        }
    }
    assert_eq!(server.connections(), 0);
    world.log.blocked(Reason::GitRefDenied).await;
    for client in [Client::new(&world), Client::h2(&world)] {
        assert_eq!(client.send(push("0000")).await.text(), "4");
        assert_eq!(client.send(push(good.clone())).await.text(), good.len().to_string());
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_packed_push_is_unpacked_to_be_read() {
    let world = world();
    let server = hub(&world).await;
    let send = |body: Vec<u8>, how: &str| {
        let mut request = push(body);
        request.headers_mut().insert("content-encoding", how.parse().unwrap());
        request
    };
    let client = Client::new(&world);
    let bad = zipped(&pushed(&[(OLD, NEW, "refs/heads/main")]));
    for how in ["gzip", "x-gzip", "GZIP", "deflate", "gzip, identity", "br"] {
        assert_eq!(client.send(send(bad.clone(), how)).await.refused(), (403, "git_ref_denied"));
    }
    assert_eq!(server.connections(), 0);
    let good = zipped(&pushed(&[(OLD, NEW, "refs/heads/agentbox/x")]));
    assert_eq!(client.send(send(good.clone(), "gzip")).await.text(), good.len().to_string());
}

/// Members of nothing: however much of it comes, nothing is unpacked from it.
#[tokio::test]
async fn a_push_that_never_says_anything_is_given_up() {
    let world = world();
    let server = hub(&world).await;
    let mut tls = Client::new(&world).tunnel("github.com", 443).await.unwrap();
    let head = "POST /acme/widget.git/git-receive-pack HTTP/1.1\r\nHost: github.com\r\n\
        Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    tls.write_all(head.as_bytes()).await.unwrap();
    let nothing = zipped(b"").repeat(1000);
    let chunk = [format!("{:x}\r\n", nothing.len()).as_bytes(), &nothing, b"\r\n"].concat();
    let sent = within("an answer", async {
        // Far more than a list of refs may be.
        for n in 0..2000 {
            if tls.write_all(&chunk).await.is_err() {
                return n;
            }
            let mut byte = [0; 12];
            let read = tls.read_exact(&mut byte);
            let read = tokio::time::timeout(std::time::Duration::from_millis(1), read).await;
            if read.is_ok() {
                assert_eq!(&byte, b"HTTP/1.1 403");
                return n;
            }
        }
        2000
    })
    .await;
    assert!(sent < 200, "{sent} chunks of {} bytes were taken", chunk.len());
    world.log.blocked(Reason::GitRefDenied).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_push_does_not_get_around_its_rule_by_another_address() {
    let world = world();
    let server = hub(&world).await;
    let mut tls = Client::new(&world).tunnel("github.com", 443).await.unwrap();
    let body = pushed(&[(OLD, NEW, "refs/heads/main")]);
    let body = String::from_utf8(body).unwrap();
    for target in [
        "/acme/widget.git/git-receive-pack/",
        "/acme/widget.git//git-receive-pack",
        "/acme/widget.git/./git-receive-pack",
        "/acme/widget.git/%67it-receive-pack%2f",
        "/acme/widget.git/git-receive-pack;x",
        "/acme/widget.git/x/../git-receive-pack",
        "/acme/other.git/git-receive-pack",
        "/acme/WIDGET/git-receive-pack",
        "/acme/widget.git/git-receive-pack?x=1",
    ] {
        let length = body.len();
        let request = format!(
            "POST {target} HTTP/1.1\r\nHost: github.com\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let got = raw(&mut tls, request).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{target}");
        tls = Client::new(&world).tunnel("github.com", 443).await.unwrap();
    }
    assert_eq!(server.connections(), 0);
}
