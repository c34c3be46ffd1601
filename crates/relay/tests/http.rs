//! Services that are called by their API: what is sent, who was asked first, and what gets back.
//! The service is a stand-in on this computer that speaks real HTTP, and real TLS with an authority
//! of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod support;

use agentbox_relay::Probe;
use connectors::registry;
use protocol::question::{Tier, Verdict};
use protocol::rpc::Envelope;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Carrier, Setup, World};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const TOKEN: &str = "ATTAfeedbeef00112233";
const LIST: &str = "5abbe4b7ddc1b351ef961414";

/// What the stand-in does with a request.
#[derive(Clone)]
enum Reply {
    /// Status line and headers, body.
    With(String, String),
    /// A body without end, counted.
    Flood(Arc<Mutex<u64>>),
    HangUp,
}

impl Reply {
    fn json(status: &str, body: impl Into<String>) -> Self {
        Reply::With(
            format!("{status}\r\ncontent-type: application/json; charset=utf-8"),
            body.into(),
        )
    }
}

/// A service, and what it was asked.
struct Service {
    base: String,
    seen: Arc<Mutex<Vec<String>>>,
    /// Certificates that vouch for it.
    authority: Option<PathBuf>,
    _dir: tempfile::TempDir,
}

impl Service {
    async fn plain(reply: Reply) -> Self {
        Self::start(reply, None).await
    }

    /// Over TLS, as this host.
    async fn secure(reply: Reply, host: &str) -> Self {
        Self::start(reply, Some(host)).await
    }

    async fn start(reply: Reply, host: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tls = host.map(|host| certified(dir.path(), host));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let base = match host {
            Some(host) => format!("https://{host}:{port}/1"),
            None => format!("http://127.0.0.1:{port}/1"),
        };
        let service = Self {
            base,
            seen: seen.clone(),
            authority: tls.as_ref().map(|_| dir.path().join("authority.pem")),
            _dir: dir,
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, seen, tls) = (reply.clone(), seen.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, reply, &seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, reply, &seen).await;
                            }
                        }
                    }
                });
            }
        });
        service
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn port(&self) -> String {
        self.base.rsplit(':').next().unwrap().trim_end_matches("/1").to_owned()
    }
}

/// A certificate for a host, and the authority that gave it.
fn certified(dir: &std::path::Path, host: &str) -> TlsAcceptor {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(dir.join("authority.pem"), authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve<S>(mut stream: S, reply: Reply, seen: &Mutex<Vec<String>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(request) = request(&mut stream).await else { return };
    seen.lock().unwrap().push(request);
    match reply {
        Reply::HangUp => {}
        Reply::With(head, body) => {
            let text = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Reply::Flood(sent) => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n";
            let _ = stream.write_all(head).await;
            let block = vec![b'a'; 64 * 1024];
            while stream.write_all(&block).await.is_ok() {
                *sent.lock().unwrap() += block.len() as u64;
            }
        }
    }
    let _ = stream.shutdown().await;
}

/// Head and body as they came.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |l| l.parse().unwrap()) {
                return Some(text);
            }
        }
    }
}

/// A host that uses Trello at this service.
async fn world(carrier: Carrier, service: &Service) -> World {
    let mut setup = Setup::new(carrier);
    if let Some(authority) = &service.authority {
        setup.env.push(("SSL_CERT_FILE".into(), authority.to_str().unwrap().into()));
        setup.env.push(("SSL_CERT_DIR".into(), String::new()));
    }
    with(setup, &service.base).await
}

async fn with(setup: Setup, base: &str) -> World {
    let world = World::with(setup).await;
    world.enable("trello");
    at(&world, base);
    world.store("trello.key", KEY);
    world.store("trello.token", TOKEN);
    world
}

fn at(world: &World, base: &str) {
    world.policy(|policy| {
        policy.integrations.get_mut("trello").unwrap().base_url = Some(base.to_owned());
    });
}

fn args(words: &[&str]) -> Value {
    json!({ "path": "/workspace", "args": words })
}

async fn whoami(world: &World) -> Envelope {
    world.call("integration.trello.whoami", json!({})).await
}

const CREATE: &[&str] = &["--list", LIST, "--name", "Fix login", "--desc", "One\ntwo"];
const AUTHORISED: &str = "authorization: OAuth oauth_consumer_key=\"0123456789abcdef0123456789abcdef\", oauth_token=\"ATTAfeedbeef00112233\"";

over_both_carriers! {
    async fn reads_pass_and_writes_ask(carrier) {
        let service = Service::plain(Reply::json("200 OK", r#"[{"id":"1"}]"#)).await;
        let world = world(carrier, &service).await;
        let list = world.call("integration.trello.card.list", args(&["--list", LIST])).await;
        assert_eq!((list.exit_code, list.stdout.as_str(), list.stderr.as_str()), (0, "[{\"id\":\"1\"}]\n", ""));
        let seen = service.seen();
        assert!(seen[0].starts_with(&format!("GET /1/lists/{LIST}/cards?fields=id%2Cname")), "{}", seen[0]);
        assert!(seen[0].contains(AUTHORISED), "{}", seen[0]);
        assert_eq!(world.kinds(), ["executed"]);

        let method = "integration.trello.card.create";
        let (made, question) = world.answered(method, args(CREATE), Verdict::AllowOnce).await;
        assert_eq!((made.exit_code, made.stderr.as_str()), (0, ""));
        assert_eq!(question.tier, Tier::Routine);
        assert_eq!(question.title, "Create the Trello card “Fix login”");
        let address = format!("{}/cards", service.base);
        let list = format!("idList={LIST}");
        assert_eq!(question.argv, ["POST", &address, "desc=One⏎two", &list, "name=Fix login"]);
        assert_eq!(question.evidence.body, ["One", "two"]);
        let shown = serde_json::to_string(&question).unwrap();
        assert!(!shown.contains(TOKEN) && !shown.contains(KEY));
        let sent = service.seen().pop().unwrap();
        assert!(sent.starts_with("POST /1/cards HTTP/1.1\r\n"), "{sent}");
        let (_, body) = sent.split_once("\r\n\r\n").unwrap();
        let wanted = json!({"idList": LIST, "name": "Fix login", "desc": "One\ntwo"});
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), wanted);
    }

    async fn a_denied_write_sends_nothing(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        let (denied, _) =
            world.answered("integration.trello.card.create", args(CREATE), Verdict::Deny).await;
        assert_eq!((denied.exit_code, denied.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!(service.seen(), [""; 0]);
    }

    async fn relay_a21_a_body_of_a_gigabyte_is_cut(carrier) {
        let sent = Arc::new(Mutex::new(0));
        let service = Service::plain(Reply::Flood(sent.clone())).await;
        let world = world(carrier, &service).await;
        let flood = whoami(&world).await;
        assert_eq!(flood.exit_code, 1);
        assert_eq!(flood.stderr, "relay: output cut after 8388608 bytes\n");
        assert!((8_000_000..=8 * 1024 * 1024).contains(&flood.stdout.len()), "{}", flood.stdout.len());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(*sent.lock().unwrap() < 64 * 1024 * 1024, "it was read on");
    }
}

over_both_carriers! {
    async fn tls_needs_an_authority_this_computer_trusts(carrier) {
        let service = Service::secure(Reply::json("200 OK", "{}"), "localhost").await;
        let trusting = world(carrier, &service).await;
        let said = whoami(&trusting).await;
        assert_eq!((said.exit_code, said.stdout.as_str(), said.stderr.as_str()), (0, "{}\n", ""));
        assert!(service.seen()[0].contains(AUTHORISED));

        // Another authority than the one that vouches for the service.
        let other = Service::secure(Reply::HangUp, "localhost").await;
        let stranger = world(carrier, &other).await;
        at(&stranger, &service.base);
        let said = whoami(&stranger).await;
        assert_eq!((said.exit_code, said.stdout.as_str()), (1, ""));
        assert!(said.stderr.starts_with("trello whoami: cannot reach localhost:"), "{}", said.stderr);
        assert!(said.stderr.contains("SSL_CERT_FILE"), "{}", said.stderr);
        assert_eq!(said.stderr.lines().count(), 1);
        assert_eq!(service.seen().len(), 1);

        // The right authority, and a certificate for another name.
        at(&trusting, &service.base.replace("localhost", "127.0.0.1"));
        assert_eq!(whoami(&trusting).await.exit_code, 1);
        assert_eq!(service.seen().len(), 1);
    }

    async fn authorities_are_looked_up_again_after_a_failure(carrier) {
        let service = Service::secure(Reply::json("200 OK", "{}"), "localhost").await;
        let other = Service::secure(Reply::HangUp, "localhost").await;
        let world = world(carrier, &other).await;
        at(&world, &service.base);
        assert_eq!(whoami(&world).await.exit_code, 1);
        let trusted = other.authority.as_ref().unwrap();
        std::fs::copy(service.authority.as_ref().unwrap(), trusted).unwrap();
        assert_eq!(whoami(&world).await.exit_code, 0);
    }

    async fn a_proxy_is_used_and_sees_no_credential(carrier) {
        let service = Service::secure(Reply::json("200 OK", "{}"), "api.trello.test").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let (heard, port) = (seen.clone(), service.port());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = request(&mut stream).await.unwrap();
            heard.lock().unwrap().push_str(&asked);
            let mut to = tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut to).await;
        });
        let mut setup = Setup::new(carrier);
        for (key, value) in [
            ("SSL_CERT_FILE", service.authority.as_ref().unwrap().to_str().unwrap()),
            ("SSL_CERT_DIR", ""),
            ("HTTPS_PROXY", &format!("http://ada:pw@{proxy}")),
            ("https_proxy", ""),
            ("NO_PROXY", ""),
            ("no_proxy", ""),
        ] {
            setup.env.push((key.into(), value.into()));
        }
        let world = with(setup, &service.base).await;
        let said = whoami(&world).await;
        assert_eq!((said.exit_code, said.stderr.as_str()), (0, ""));
        let asked = seen.lock().unwrap().clone();
        assert!(
            asked.starts_with(&format!("CONNECT api.trello.test:{} HTTP/1.1\r\n", service.port())),
            "{asked}"
        );
        assert!(asked.to_lowercase().contains("proxy-authorization: basic"), "{asked}");
        assert!(!asked.contains(TOKEN));
    }

    async fn relay_a14_a_credential_that_is_echoed_is_masked(carrier) {
        let echo = format!(r#"{{"token":"{TOKEN}","note":"{KEY} ghp_abcdefghijklmnopqrst"}}"#);
        for (status, code) in [("200 OK", 0), ("400 Bad Request", 1), ("401 Unauthorized", 4)] {
            let service = Service::plain(Reply::json(status, echo.clone())).await;
            let world = world(carrier, &service).await;
            let said = whoami(&world).await;
            let all = format!("{}{}", said.stdout, said.stderr);
            assert_eq!(said.exit_code, code);
            assert!(all.contains("[redacted]"), "{all}");
            assert!(!all.contains(TOKEN) && !all.contains(KEY) && !all.contains("ghp_"), "{all}");
            let notes = format!("{:?}", world.notes.0.lock().unwrap());
            assert!(!notes.contains(TOKEN), "{notes}");
        }
    }

    async fn a_redirect_is_not_followed(carrier) {
        let elsewhere = Service::plain(Reply::json("200 OK", "{}")).await;
        for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
            let head = format!("{status}\r\nlocation: {}/members/me?{TOKEN}", elsewhere.base);
            let service = Service::plain(Reply::With(head, String::new())).await;
            let world = world(carrier, &service).await;
            let said = whoami(&world).await;
            assert_eq!((said.exit_code, said.stdout.as_str()), (1, ""));
            assert!(said.stderr.contains("redirect"), "{}", said.stderr);
            assert!(!said.stderr.contains("127.0.0.1"), "{}", said.stderr);
            assert_eq!(service.seen().len(), 1);
        }
        assert_eq!(elsewhere.seen(), [""; 0]);
    }

    async fn failures_of_the_service_are_told(carrier) {
        for (reply, code, part) in [
            (
                Reply::json("404 Not Found", r#"{"message":"board not found"}"#),
                1,
                "404: board not found",
            ),
            (Reply::json("401 Unauthorized", "invalid token"), 4, "agentbox secrets set trello.token"),
            (Reply::json("403 Forbidden", "no"), 4, "trello.com/power-ups/admin"),
            (Reply::json("429 Too Many\r\nretry-after: 17", "slow down"), 1, "wait 17 s"),
            (
                Reply::With("200 OK\r\ncontent-type: text/html".into(), "<html>log in</html>".into()),
                1,
                "not JSON",
            ),
            (
                Reply::With(
                    "200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip".into(),
                    "xx".into(),
                ),
                1,
                "not JSON",
            ),
            (Reply::HangUp, 1, "broke off"),
        ] {
            let service = Service::plain(reply).await;
            let world = world(carrier, &service).await;
            let said = whoami(&world).await;
            assert_eq!((said.exit_code, said.stdout.as_str()), (code, ""), "{part}");
            assert!(
                said.stderr.starts_with("trello whoami: ") && said.stderr.contains(part),
                "{}",
                said.stderr
            );
            assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
        }
    }

    async fn nothing_of_the_answers_head_is_passed_on(carrier) {
        let head = "200 OK\r\ncontent-type: application/json\r\nset-cookie: session=1\r\nx-secret: 2";
        let service = Service::plain(Reply::With(head.into(), "{}".into())).await;
        let world = world(carrier, &service).await;
        let (_, body) = world.post(r#"{"method":"integration.trello.whoami"}"#).await;
        assert_eq!(body, r#"{"exitCode":0,"stdout":"{}\n","stderr":""}"#);
    }

    async fn without_a_credential_nobody_is_asked(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        let create = || world.call("integration.trello.card.create", args(CREATE));
        let stored = |value: Option<Result<String, String>>| {
            let mut all = world.stored.0.lock().unwrap();
            all.remove("trello.token");
            all.extend(value.map(|value| ("trello.token".to_owned(), value)));
        };
        stored(None);
        let said = create().await;
        assert_eq!(said.exit_code, 4);
        assert!(said.stderr.contains("agentbox secrets set trello.token"), "{}", said.stderr);
        stored(Some(Err("the keychain is locked; unlock it in your desktop".into())));
        let said = create().await;
        assert_eq!(said.exit_code, 1);
        assert_eq!(said.stderr, "trello.token: the keychain is locked; unlock it in your desktop\n");
        assert!(!world.kinds().contains(&"asked".to_owned()));
        assert_eq!(service.seen(), [""; 0]);
    }

    async fn an_address_that_cannot_be_used_is_told_before_anybody_is_asked(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        for base in ["http://192.0.2.1/1", "ftp://127.0.0.1", "https://ada:pw@localhost/1", "nonsense"]
        {
            at(&world, base);
            let said = world.call("integration.trello.card.create", args(CREATE)).await;
            assert_eq!(said.exit_code, 1, "{base}");
            assert!(said.stderr.starts_with("trello: the address "), "{}", said.stderr);
            assert!(!said.stderr.contains("pw@"), "{}", said.stderr);
        }
        assert!(!world.kinds().contains(&"asked".to_owned()));
    }

    async fn relay_a34_no_environment_address_or_header_comes_from_a_box(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        for params in [
            json!({"env": {"SSL_CERT_FILE": "/tmp/x", "HTTPS_PROXY": "http://127.0.0.1:1"}}),
            json!({"baseUrl": "http://127.0.0.1:1"}),
            json!({"headers": {"x-forwarded-for": "1"}}),
            json!({"args": ["x"], "hostInitiated": "0"}),
        ] {
            assert_eq!(world.call("integration.trello.whoami", params).await.exit_code, 64);
        }
        assert_eq!(service.seen(), [""; 0]);
    }

    async fn what_is_refused_or_off_sends_nothing(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        for (method, params, code) in [
            ("integration.trello.card.delete", args(&[LIST]), 65),
            ("integration.trello.tokens", json!({}), 65),
            ("integration.trello.card.view", args(&["../members"]), 65),
            (
                "integration.trello.card.create",
                args(&["--list", LIST, "--name", "x", "--desc-file", "/etc/passwd"]),
                65,
            ),
            ("integration.clickup.whoami", json!({}), 65),
        ] {
            assert_eq!(world.call(method, params).await.exit_code, code, "{method}");
        }
        world.policy(|policy| policy.integrations.clear());
        let off = whoami(&world).await;
        assert_eq!(off.exit_code, 65);
        assert!(off.stderr.contains("disabled"), "{}", off.stderr);
        assert_eq!(service.seen(), [""; 0]);
    }

    async fn a_write_whose_answer_is_lost_says_so(carrier) {
        let service = Service::plain(Reply::HangUp).await;
        let world = world(carrier, &service).await;
        let (said, _) =
            world.answered("integration.trello.card.create", args(CREATE), Verdict::AllowOnce).await;
        assert_eq!(said.exit_code, 1);
        assert!(said.stderr.contains("It may have been done all the same"), "{}", said.stderr);
        assert_eq!(service.seen().len(), 1);
    }

    async fn clickup_has_its_own_header_and_shape(carrier) {
        let service = Service::plain(Reply::json("200 OK", "{}")).await;
        let world = world(carrier, &service).await;
        world.enable("clickup");
        world.policy(|policy| {
            policy.integrations.get_mut("clickup").unwrap().base_url = Some(service.base.clone());
        });
        world.store("clickup.token", "pk_123456_ABCDEF");
        let words = ["--list", "12", "--status", "to do&x=y"];
        assert_eq!(world.call("integration.clickup.task.list", args(&words)).await.exit_code, 0);
        let seen = service.seen().pop().unwrap();
        assert!(
            seen.starts_with("GET /1/list/12/task?page=0&statuses%5B%5D=to+do%26x%3Dy HTTP/1.1\r\n"),
            "{seen}"
        );
        assert!(seen.contains("\r\nauthorization: pk_123456_ABCDEF\r\n"), "{seen}");
        assert!(!seen.contains(TOKEN));
    }

    async fn relay_19_37_a_clickup_write_is_one_request_after_a_yes(carrier) {
        let service = Service::plain(Reply::json("200 OK", r#"{"id":"abc"}"#)).await;
        let world = world(carrier, &service).await;
        world.enable("clickup");
        world.policy(|policy| {
            policy.integrations.get_mut("clickup").unwrap().base_url = Some(service.base.clone());
        });
        world.store("clickup.token", "pk_123456_ABCDEF");
        let task = || args(&["--list", "12", "--name", "Fix login", "--priority", "high"]);
        let (denied, _) =
            world.answered("integration.clickup.task.create", task(), Verdict::Deny).await;
        assert_eq!((denied.exit_code, denied.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!(service.seen(), [""; 0]);

        let (done, question) =
            world.answered("integration.clickup.task.create", task(), Verdict::AllowOnce).await;
        assert_eq!((done.exit_code, done.stdout.as_str()), (0, "{\"id\":\"abc\"}\n"), "{}", done.stderr);
        assert_eq!(question.argv[..2], ["POST".to_owned(), format!("{}/list/12/task", service.base)]);
        assert!(!serde_json::to_string(&question).unwrap().contains("pk_123456"));
        let seen = service.seen();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].starts_with("POST /1/list/12/task HTTP/1.1\r\n"), "{}", seen[0]);
        assert!(seen[0].contains("\r\nauthorization: pk_123456_ABCDEF\r\n"), "{}", seen[0]);
        let (_, body) = seen[0].split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["name"], &body["priority"]), (&json!("Fix login"), &json!(2)));
        assert_eq!(world.kinds(), ["asked", "answered", "asked", "answered", "executed"]);
    }

    async fn the_check_up_tries_the_credentials(carrier) {
        let trello = registry::find("trello").unwrap();
        for (reply, probe) in [
            (Reply::json("200 OK", "{}"), Probe::Ready("Trello API".into())),
            (Reply::json("401 Unauthorized", "no"), Probe::NotLoggedIn),
            (Reply::json("500 Oops", "no"), Probe::Failed("it answered 500".into())),
        ] {
            let service = Service::plain(reply).await;
            let world = world(carrier, &service).await;
            assert_eq!(world.relay.probe(trello, Some(&service.base)).await, probe);
            let seen = service.seen();
            assert!(
                seen[0].starts_with("GET /1/members/me HTTP/1.1\r\n") && seen[0].contains(AUTHORISED)
            );
        }
    }
}
