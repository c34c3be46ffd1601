//! What passes, what does not, and what a box is told.

use crate::support::client::{connect, raw, read_answer};
use crate::support::policy::{p0, path};
use crate::support::server::text;
use crate::support::world::{gone, hasty};
use crate::support::*;
use agentbox_egress::policy::{PathKind, Policy, Rule};
use agentbox_egress::request::Scheme;
use bytes::Bytes;
use hyper::{Method, Request, Version};
use protocol::egress::{Reason, TrafficAction, TrafficKind};
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn egress_12_01_an_empty_policy_lets_nothing_out() {
    let world = World::new(Policy::default());
    for client in [Client::new(&world), Client::h2(&world)] {
        let got = client.get("https://any.ex.com/").await;
        assert_eq!(got.refused(), (403, "host_not_allowed"));
        assert!(got.text().starts_with("Blocked by AgentBox egress policy: any.ex.com\n"));
        assert!(got.text().contains("agentbox egress allow any.ex.com"), "{}", got.text());
        assert_eq!(got.headers["x-agentbox-egress"], "blocked");
        assert_eq!(got.headers["cache-control"], "no-store");
        let event = got.headers["x-agentbox-event"].to_str().unwrap();
        let line = world.log.blocked(Reason::HostNotAllowed).await;
        assert!(world.log.all().iter().any(|line| line.id == event));
        assert_eq!((line.kind, line.host.as_deref()), (TrafficKind::Request, Some("any.ex.com")));
    }
    let got = Client::new(&world).get("http://any.ex.com/").await;
    assert_eq!(got.refused(), (403, "host_not_allowed"));
    assert!(world.net.was_left_alone());
}

#[tokio::test]
async fn egress_12_02_what_a_rule_allows_is_forwarded_and_written_down_once() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        let got = client.get("https://api.ex.com/v1/a?token=x&service=s").await;
        assert_eq!((got.status.as_u16(), got.text().as_str()), (200, "hello"));
    }
    let lines = world.log.allowed(2).await;
    assert_eq!(lines.len(), 2);
    for (line, proto) in lines.iter().zip(["h1/h2", "h2/h2"]) {
        assert_eq!(line.kind, TrafficKind::Request);
        assert_eq!(line.reason, Some(Reason::RuleMatched));
        let rule = line.rule.as_ref().unwrap();
        assert_eq!((rule.index, rule.origin.as_str()), (0, "project:egress.yaml:1"));
        assert_eq!(line.path.as_deref(), Some("/v1/a"));
        assert_eq!(line.query, ["token", "service=s"]);
        assert_eq!((line.status, line.bytes_down), (Some(200), 5));
        assert_eq!(line.proto.as_deref(), Some(proto));
        assert_eq!(line.remote.as_deref(), Some("203.0.113.1:443"));
    }
    assert_eq!(world.log.all().len(), 2);
    let seen = server.seen();
    assert_eq!(seen[0].uri, "https://api.ex.com/v1/a?token=x&service=s");
}

#[tokio::test]
async fn egress_12_03_a_refused_body_is_not_read() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        let body = Bytes::from(vec![b'x'; 1024 * 1024]);
        let got = client.send(Request::post("https://api.ex.com/v1/a").body(body).unwrap()).await;
        assert_eq!(got.refused(), (403, "no_rule_matched"));
        let hint = "agentbox egress allow api.ex.com --method POST --path /v1/a";
        assert!(got.text().contains(hint), "{}", got.text());
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(server.bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn egress_12_04_clear_text_needs_a_rule_that_says_so() {
    let world = World::new(p0());
    let got = Client::new(&world).get("http://api.ex.com/v1/a").await;
    assert_eq!(got.refused(), (403, "scheme_not_permitted"));
    assert!(world.net.was_left_alone());
}

#[tokio::test]
async fn egress_12_05_egress_r1_ports_are_part_of_a_policy() {
    let world = World::new(p0());
    for port in [22, 80, 444, 8443] {
        let got = connect(&mut world.dial().await, "api.ex.com", port).await;
        assert_eq!(got.refused(), (403, "port_not_allowed"), "{port}");
    }
    // A host nobody speaks of is explained on the usual ports and refused on all others.
    let got = connect(&mut world.dial().await, "any.ex.com", 22).await;
    assert_eq!(got.refused(), (403, "host_not_allowed"));
    assert!(world.net.was_left_alone());
    let line = world.log.blocked(Reason::PortNotAllowed).await;
    assert_eq!((line.kind, line.port), (TrafficKind::Connect, Some(22)));
}

#[tokio::test]
async fn egress_12_06_egress_r2_there_is_no_raw_tunnel() {
    for bytes in [&b"SSH-2.0-x\r\n"[..], b"\x00\x00\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let world = World::new(p0());
        let mut stream = world.dial().await;
        assert_eq!(connect(&mut stream, "api.ex.com", 443).await.status, 200);
        stream.write_all(bytes).await.unwrap();
        assert_eq!(gone(&mut stream).await, b"");
        let line = world.log.blocked(Reason::NotHttp).await;
        assert_eq!((line.kind, line.host.as_deref()), (TrafficKind::Connect, Some("api.ex.com")));
        assert!(world.net.was_left_alone());
    }
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_is_said_is_closed() {
    let world = World::with(Some(p0()), hasty(), Vec::new());
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "api.ex.com", 443).await.status, 200);
    assert_eq!(gone(&mut stream).await, b"");
    world.log.blocked(Reason::NotHttp).await;
}

#[tokio::test]
async fn egress_12_07_tls_asks_for_the_host_of_the_tunnel() {
    let world = World::new(p0());
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "api.ex.com", 443).await.status, 200);
    let client = Client { sni: Some("evil.ex"), ..Client::new(&world) };
    let failed = client.shake(stream, "api.ex.com").await.err().unwrap().to_string();
    assert!(failed.contains("UnrecognisedName") || failed.contains("unrecognised"), "{failed}");
    let line = world.log.blocked(Reason::SniMismatch).await;
    assert!(line.detail.unwrap().contains("evil.ex"));
    assert!(world.net.was_left_alone());
}

#[tokio::test]
async fn egress_12_08_a_request_names_the_host_of_its_tunnel() {
    let world = World::new(p0());
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, "GET /v1/a HTTP/1.1\r\nHost: evil.ex\r\n\r\n").await;
    assert_eq!(got.refused(), (421, "authority_mismatch"));
    // The connection lives on.
    let got = raw(&mut tls, "GET /v1/a HTTP/1.1\r\nHost: api.ex.com:444\r\n\r\n").await;
    assert_eq!(got.refused(), (421, "authority_mismatch"));

    let client = Client::h2(&world);
    let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
    assert_eq!(sender.get("https://evil.ex/v1/a").await.refused(), (421, "authority_mismatch"));
    let both = Request::get("https://api.ex.com/v1/a").header("host", "evil.ex");
    let got = sender.send(both.body(Bytes::new()).unwrap()).await;
    assert_eq!(got.refused(), (421, "authority_mismatch"));
    assert!(world.net.was_left_alone());
}

#[tokio::test]
async fn egress_12_09_egress_r5_paths_mean_one_thing() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    for target in [
        "/v1/../admin",
        "/v1/%2e%2E/admin",
        "/v1/..;/x",
        "//h/v1/a",
        "/v1\\..\\x",
        "/v1/./a",
        "/v1/a/..",
        "//api.ex.com/v1/a",
        "/v1/%2e/",
    ] {
        let got = raw(&mut tls, format!("GET {target} HTTP/1.1\r\nHost: api.ex.com\r\n\r\n")).await;
        assert_eq!(got.refused(), (403, "ambiguous_path"), "{target}");
    }
    assert_eq!(server.connections(), 0);
    let got = raw(&mut tls, "GET /v1/%7Euser/%2a HTTP/1.1\r\nHost: api.ex.com\r\n\r\n").await;
    assert_eq!(got.status, 200);
    // What was decided on is what was sent.
    assert!(server.seen()[0].uri.ends_with("/v1/~user/%2A"), "{:?}", server.seen());
}

#[tokio::test]
async fn egress_r3_a_server_is_who_the_policy_says() {
    // On a shared address answers somebody else, with a good certificate for another name.
    let world = World::new(allow(vec![record("api.ex.com", vec![rule()])]));
    let setup = server::Setup {
        name: "api.ex.com",
        port: 443,
        alpn: &["http/1.1"],
        certificate: Some("evil.ex"),
    };
    let server = Server::start(&world, setup, |_| Box::pin(async { text("mine") })).await;
    let got = Client::new(&world).get("https://api.ex.com/").await;
    assert_eq!(got.refused(), (502, "upstream_tls_failed"));
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn plain_http_passes_where_a_rule_says_so_both_ways_in() {
    let open = Rule { schemes: [Scheme::Http].into(), ports: [80].into(), ..rule() };
    let world = World::new(allow(vec![record("old.ex.com", vec![open])]));
    let server = Server::http(&world, "old.ex.com", |_| Box::pin(async { text("old") })).await;
    assert_eq!(Client::new(&world).get("http://old.ex.com/a").await.text(), "old");
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "old.ex.com", 80).await.status, 200);
    let got = raw(&mut stream, "GET /b HTTP/1.1\r\nHost: old.ex.com\r\n\r\n").await;
    assert_eq!(got.text(), "old");
    let lines = world.log.allowed(2).await;
    assert!(lines.iter().all(|line| line.scheme.as_deref() == Some("http")));
    let seen: Vec<String> = server.seen().into_iter().map(|seen| seen.uri).collect();
    assert_eq!(seen, ["/a", "/b"]);
    assert_eq!(server.seen()[0].header("host"), ["old.ex.com"]);
    // Not in clear text to where TLS is wanted.
    let mut stream = world.dial().await;
    let got = connect(&mut stream, "old.ex.com", 443).await;
    assert_eq!(got.refused(), (403, "port_not_allowed"));
}

#[tokio::test]
async fn an_absolute_request_may_be_for_tls() {
    let world = World::new(p0());
    let _server = Server::hello(&world, "api.ex.com").await;
    let mut stream = world.dial().await;
    let head = "GET https://api.ex.com/v1/a HTTP/1.1\r\nHost: api.ex.com\r\n\r\n";
    assert_eq!(raw(&mut stream, head).await.text(), "hello");
    // On the same connection another host is another decision.
    let head = "GET https://evil.ex/v1/a HTTP/1.1\r\nHost: evil.ex\r\n\r\n";
    assert_eq!(raw(&mut stream, head).await.refused(), (403, "host_not_allowed"));
    let head = "GET https://api.ex.com/v1/a HTTP/1.1\r\nHost: evil.ex\r\n\r\n";
    assert_eq!(raw(&mut stream, head).await.refused(), (421, "authority_mismatch"));
    let head = "GET /v1/a HTTP/1.1\r\nHost: api.ex.com\r\n\r\n";
    assert_eq!(raw(&mut stream, head).await.refused(), (400, "bad_request_target"));
}

#[tokio::test]
async fn no_policy_is_no_way_out() {
    let world = World::with(None, hasty(), Vec::new());
    let got = connect(&mut world.dial().await, "api.ex.com", 443).await;
    assert_eq!(got.refused(), (503, "policy_unavailable"));
    assert_eq!(got.headers["retry-after"], "5");
    let got = Client::new(&world).get("http://api.ex.com/v1/a").await;
    assert_eq!(got.refused(), (503, "policy_unavailable"));
    // In a tunnel that was opened before, too.
    world.set_policy(Some(p0()));
    let _server = Server::hello(&world, "api.ex.com").await;
    let client = Client::new(&world);
    let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
    assert_eq!(sender.get("https://api.ex.com/v1/a").await.status, 200);
    world.set_policy(None);
    assert_eq!(sender.get("https://api.ex.com/v1/a").await.refused().0, 503);
    world.set_policy(Some(p0()));
    assert_eq!(sender.get("https://api.ex.com/v1/a").await.status, 200);
}

#[tokio::test]
async fn egress_12_41_the_next_request_on_an_open_connection_sees_the_new_policy() {
    let world = World::new(p0());
    let server = Server::hello(&world, "api.ex.com").await;
    for client in [Client::new(&world), Client::h2(&world)] {
        world.set_policy(Some(p0()));
        let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
        assert_eq!(sender.get("https://api.ex.com/v1/a").await.status, 200);
        world.set_policy(Some(Policy::default()));
        let got = sender.get("https://api.ex.com/v1/a").await;
        assert_eq!(got.refused(), (403, "host_not_allowed"));
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn egress_12_31_trace_is_never_sent() {
    let world = World::new(allow(vec![record("api.ex.com", vec![rule()])]));
    let server = Server::hello(&world, "api.ex.com").await;
    for method in ["TRACE", "TRACK"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for client in [Client::new(&world), Client::h2(&world)] {
            let request = Request::builder().method(method.clone()).uri("https://api.ex.com/");
            let got = client.send(request.body(Bytes::new()).unwrap()).await;
            assert_eq!(got.refused(), (403, "method_forbidden"));
        }
    }
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let got = raw(&mut tls, "CONNECT api.ex.com:443 HTTP/1.1\r\nHost: api.ex.com\r\n\r\n").await;
    assert_eq!(got.refused(), (403, "method_forbidden"));
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn refusals_are_json_for_those_who_ask_for_it() {
    let world = World::new(p0());
    let request = Request::get("https://api.ex.com/v2").header("accept", "application/json");
    let got = Client::new(&world).send(request.body(Bytes::new()).unwrap()).await;
    let said: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(said["reason"], "no_rule_matched");
    assert_eq!((&said["host"], &said["path"]), (&"api.ex.com".into(), &"/v2".into()));
    assert_eq!(said["event"], got.headers["x-agentbox-event"].to_str().unwrap());
}

#[tokio::test]
async fn denied_hosts_get_only_so_many_certificates() {
    let limits = agentbox_egress::proxy::Limits { unlisted: 3, ..hasty() };
    let world = World::with(Some(p0()), limits, Vec::new());
    let client = Client::new(&world);
    for n in 0..3 {
        let got = client.get(&format!("https://h{n}.ex.com/")).await;
        assert_eq!(got.refused(), (403, "host_not_allowed"));
        assert!(!got.body.is_empty(), "it is said inside");
    }
    let got = connect(&mut world.dial().await, "h3.ex.com", 443).await;
    assert_eq!(got.refused(), (403, "host_not_allowed"));
    // Names that have one already, and hosts of the policy, are not counted.
    assert!(client.tunnel("h0.ex.com", 443).await.is_ok());
    assert!(client.tunnel("api.ex.com", 443).await.is_ok());
}

#[tokio::test]
async fn what_is_denied_by_name_says_why() {
    let world = World::new(Policy {
        deny: vec![agentbox_egress::policy::Denial {
            host: agentbox_egress::policy::HostPattern::Under(crate::support::policy::name(
                "paste.ex",
            )),
            rules: None,
            reason: Some("no paste sites".into()),
            origin: rule().origin,
        }],
        ..allow(vec![record("*.paste.ex", vec![rule()])])
    });
    let got = Client::new(&world).get("https://my.paste.ex/").await;
    assert_eq!(got.refused(), (403, "denied_by_rule"));
    assert!(got.text().contains("no paste sites"), "{}", got.text());
    assert!(world.net.was_left_alone());
}

#[tokio::test]
async fn names_of_hosts_are_one_however_they_are_spelled() {
    let world = World::new(p0());
    let _server = Server::hello(&world, "api.ex.com").await;
    let mut stream = world.dial().await;
    assert_eq!(connect(&mut stream, "API.Ex.Com.", 443).await.status, 200);
    let mut tls = Client::new(&world).shake(stream, "api.ex.com").await.unwrap();
    let got = raw(&mut tls, "GET /v1/a HTTP/1.1\r\nHost: API.EX.COM:443\r\n\r\n").await;
    assert_eq!(got.status, 200);
}

#[tokio::test]
async fn observed_boxes_are_let_through_and_written_down() {
    let world = World::new(Policy { observe: true, ..p0() });
    let _server = Server::hello(&world, "any.ex.com").await;
    let got = Client::new(&world).get("https://any.ex.com/x").await;
    assert_eq!(got.text(), "hello");
    let line = world.log.allowed(1).await.remove(0);
    assert_eq!(line.reason, Some(Reason::Observed));
    // Not inside, not for everything.
    world.net.resolve("in.ex.com", &["127.0.0.1"]);
    assert_eq!(Client::new(&world).get("https://in.ex.com/").await.reason(), "private_address");
    let got = Client::new(&world).get("http://host.agentbox.internal/").await;
    assert_eq!(got.refused(), (403, "host_not_allowed"));
    let got = connect(&mut world.dial().await, "any.ex.com", 22).await;
    assert_eq!(got.status, 403);
}

#[tokio::test]
async fn a_rule_may_bound_bodies() {
    let small = Rule { max_body: Some(1000), path: path(PathKind::Exact, "/up"), ..rule() };
    let world = World::new(allow(vec![record("api.ex.com", vec![small])]));
    let server = Server::https(&world, "api.ex.com", |request| {
        Box::pin(async move {
            let body = http_body_util::BodyExt::collect(request.into_body()).await;
            text(body.map_or("broken".to_owned(), |body| body.to_bytes().len().to_string()))
        })
    })
    .await;
    let post = |n| Request::post("https://api.ex.com/up").body(Bytes::from(vec![b'x'; n])).unwrap();
    for client in [Client::new(&world), Client::h2(&world)] {
        assert_eq!(client.send(post(1000)).await.text(), "1000");
        let got = client.send(post(1001)).await;
        assert_eq!(got.refused(), (413, "body_too_large"));
    }
    assert_eq!(server.seen().len(), 2);
    // Who does not say how much there will be is stopped on the way.
    let mut tls = Client::new(&world).tunnel("api.ex.com", 443).await.unwrap();
    let head = "POST /up HTTP/1.1\r\nHost: api.ex.com\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = format!("{:x}\r\n{}\r\n", 600, "y".repeat(600)).repeat(2);
    let got = raw(&mut tls, format!("{head}{body}0\r\n\r\n")).await;
    assert_eq!(got.refused(), (413, "body_too_large"));
}

#[tokio::test]
async fn versions_are_chosen_on_both_sides_apart() {
    let world = World::new(p0());
    let server = Server::https_1(&world, "api.ex.com", |_| Box::pin(async { text("one") })).await;
    let got = Client::h2(&world).get("https://api.ex.com/v1/a").await;
    assert_eq!(got.text(), "one");
    assert_eq!(server.seen()[0].version, Version::HTTP_11);
    assert_eq!(server.seen()[0].header("host"), ["api.ex.com"]);
    let line = world.log.allowed(1).await.remove(0);
    assert_eq!(line.proto.as_deref(), Some("h2/h1"));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_said_to_be() {
    let world = World::new(p0());
    let got = Client::new(&world).get("https://api.ex.com/v1/a").await;
    assert_eq!(got.refused(), (502, "upstream_unreachable"));
    world.net.resolve("api.ex.com", &["203.0.113.77"]);
    let got = Client::new(&world).get("https://api.ex.com/v1/a").await;
    assert_eq!(got.refused(), (502, "upstream_unreachable"));
    let line = world.log.blocked(Reason::UpstreamUnreachable).await;
    assert_eq!(line.action, TrafficAction::Blocked);
}

#[tokio::test]
async fn requests_of_one_connection_share_a_servers() {
    let world = World::new(p0());
    let server = Server::https_1(&world, "api.ex.com", |_| Box::pin(async { text("x") })).await;
    let client = Client::new(&world);
    let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
    for _ in 0..5 {
        assert_eq!(sender.get("https://api.ex.com/v1/a").await.text(), "x");
    }
    assert_eq!(server.connections(), 1);
    // Another connection of the same box has its own.
    assert_eq!(client.get("https://api.ex.com/v1/a").await.text(), "x");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_the_server_closed_is_not_used_again() {
    let world = World::new(p0());
    let server = Server::https_1(&world, "api.ex.com", |_| {
        Box::pin(async {
            let mut reply = text("x");
            reply.headers_mut().insert("connection", "close".parse().unwrap());
            reply
        })
    })
    .await;
    let client = Client::new(&world);
    let mut sender = client.over(client.tunnel("api.ex.com", 443).await.unwrap()).await;
    for _ in 0..3 {
        let got = sender.get("https://api.ex.com/v1/a").await;
        assert_eq!(got.text(), "x");
        assert!(!got.headers.contains_key("connection"), "what is between the two stays there");
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn egress_12_45_a_token_of_another_box_is_refused_on_this_ones_carrier() {
    let world = World::new(p0());
    world.open(2, Some(p0()), Vec::new());
    let of = |n: u8, token: &str| {
        use base64::Engine;
        let id = crate::support::world::box_id(n);
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{token}"));
        format!(
            "CONNECT api.ex.com:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic {pair}\r\n\r\n"
        )
    };
    let (mine, other) =
        (crate::support::world::TOKEN, crate::support::world::TOKEN.replace('1', "2"));
    let got = raw(&mut world.dial().await, of(1, mine)).await;
    assert_eq!(got.status, 200);
    for bad in [of(2, &other), of(1, &other), of(2, mine), of(1, "")] {
        let mut stream = world.dial().await;
        stream.write_all(bad.as_bytes()).await.unwrap();
        let got = read_answer(&mut stream).await;
        assert_eq!(got.refused(), (407, "box_auth_failed"));
        assert_eq!(got.headers["proxy-authenticate"], "Basic realm=\"AgentBox\"");
    }
    let line = world.log.kind(TrafficKind::Alert).await;
    assert_eq!(line.reason, Some(Reason::BoxAuthFailed));
    // A token that is being changed is good in both forms until it has changed.
    let next = "3".repeat(64);
    world.proxy.expect(&crate::support::world::box_id(1), crate::support::world::hash(&next));
    assert_eq!(raw(&mut world.dial().await, of(1, mine)).await.status, 200);
    assert_eq!(raw(&mut world.dial().await, of(1, &next)).await.status, 200);
    world.proxy.settle(&crate::support::world::box_id(1));
    assert_eq!(raw(&mut world.dial().await, of(1, mine)).await.status, 407);
}
