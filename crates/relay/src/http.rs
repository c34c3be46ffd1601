//! Calls to services' APIs: one request, one answer, within limits.
//!
//! Only to the address the settings name, over TLS or to this computer; never where an answer
//! points. The credential is in one header of one request. What comes back is cut to size, with the
//! credential's value masked; of the answer's headers nothing is passed on.
//!
//! The surprising thing: no connection is kept. A person's agents call seldom, and what is not open
//! costs no memory and wakes nobody. The computer's certificates are read at the first call.

use crate::call::Call;
use crate::process::MAX_STREAM;
use crate::server::Shared;
use bytes::Bytes;
use connectors::connector::{Api, ApiCall, HttpMethod};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use protocol::exit;
use protocol::rpc::Envelope;
use protocol::text::shortened;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value as Json;
use std::error::Error as StdError;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tower_service::Service;

const LIMITS: Limits = Limits { connect: Duration::from_secs(30), total: Duration::from_secs(120) };
const PROBE: Limits = Limits { connect: Duration::from_secs(10), total: Duration::from_secs(10) };
/// The largest head of an answer.
const MAX_HEAD: usize = 64 * 1024;
/// How much of what a service says about a failure is passed on.
const MAX_SAID: usize = 500;

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connect: Duration,
    total: Duration,
}

/// The request as people see it: complete, and without the credential.
pub(crate) fn shown(base: &str, request: &ApiCall) -> Vec<String> {
    let address = format!("{}{}", base.trim_end_matches('/'), request.path);
    let mut words = vec![request.method.as_str().to_owned(), address];
    words.extend(request.query.iter().map(|(name, value)| format!("{name}={value}")));
    let field = |(name, value): (&String, &Json)| match value {
        Json::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    match &request.body {
        Some(Json::Object(fields)) => words.extend(fields.iter().map(field)),
        Some(other) => words.push(other.to_string()),
        None => {}
    }
    words
}

/// Why a request cannot be sent, whoever says yes to it.
pub(crate) fn check(base: &str, request: &ApiCall) -> Result<(), String> {
    Address::of(base, request).map(drop)
}

/// Sends a request with its credential, and gives what came back.
pub(crate) async fn call(
    call: &Call,
    api: &Api,
    base: &str,
    request: &ApiCall,
    values: &[secrets::Value],
) -> Envelope {
    let surface = call.method.strip_prefix("integration.").unwrap_or(&call.method);
    let surface = surface.replacen('.', " ", 1);
    let _place = call.state.processes.acquire().await;
    let _place_in_all = call.shared.processes.acquire().await;
    let client = &call.shared.http;
    let sent = client.send(&call.shared.deps.env, api, base, request, values, LIMITS).await;
    match sent {
        Ok(answer) => answer.masked(values).envelope(&surface, api),
        Err(failure) => failure.envelope(&surface, request, api),
    }
}

/// The JSON at an address of the settings, asked for without a credential. Where it points elsewhere,
/// that is not followed.
pub async fn fetch_json(address: &str) -> Result<Vec<u8>, String> {
    let address = Address::whole(address)?;
    let target = address.uri.path_and_query().map_or("/", |p| p.as_str());
    let message = Request::builder()
        .uri(target)
        .header(HOST, &address.host)
        .header(USER_AGENT, concat!("agentbox/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json")
        .body(Full::new(Bytes::new()))
        .map_err(|e| e.to_string())?;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let client = Client::default();
    let work = async {
        let stream = client.connect(&env, &address).await.map_err(|e| e.to_string())?;
        let broke = |e: hyper::Error| format!("{} broke off: {}", address.host, told(&e));
        exchange(stream, message).await.map_err(broke)
    };
    let slow = |_| format!("{} did not answer within {} s", address.host, PROBE.total.as_secs());
    let answer = tokio::time::timeout(PROBE.total, work).await.map_err(slow)??;
    match answer.status {
        200..=299 if answer.cut => Err(format!("{} answered with too much", address.host)),
        200..=299 => Ok(answer.body),
        300..=399 => {
            Err(format!("{} answered with a redirect, and those are not followed", address.host))
        }
        _ => Err(format!("{}: {}", address.host, answer.said())),
    }
}

/// Why a service could not be tried, or did not let us in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeError {
    Refused,
    Slow,
    Failed(String),
}

/// Whether the credentials are good: the API's own read for that.
pub(crate) async fn probe(
    shared: &Shared,
    api: &Api,
    base: &str,
    values: &[secrets::Value],
) -> Result<(), ProbeError> {
    let path = api.probe.to_owned();
    let request = ApiCall { method: HttpMethod::Get, path, query: Vec::new(), body: None };
    let sent = shared.http.send(&shared.deps.env, api, base, &request, values, PROBE).await;
    match sent {
        Ok(answer) if answer.is_good() => Ok(()),
        Ok(answer) if matches!(answer.status, 401 | 403) => Err(ProbeError::Refused),
        Ok(answer) => Err(ProbeError::Failed(format!("it answered {}", answer.status))),
        Err(Failure::Credential) => Err(ProbeError::Refused),
        Err(Failure::Slow(_)) => Err(ProbeError::Slow),
        Err(failure) => Err(ProbeError::Failed(failure.to_string())),
    }
}

/// What a request came to when it came to no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Address(String),
    #[error("the stored credential has characters that no header takes")]
    Credential,
    #[error("{0}")]
    Trust(String),
    #[error("cannot reach {host}: {why}")]
    Unreachable { host: String, why: String },
    #[error("timed out after {}ms", .0.as_millis())]
    Slow(Duration),
    #[error("{host} broke off: {why}")]
    Broken { host: String, why: String },
}

impl Failure {
    fn envelope(&self, surface: &str, request: &ApiCall, api: &Api) -> Envelope {
        let code = match self {
            Failure::Credential => exit::NOT_LOGGED_IN,
            Failure::Slow(_) => exit::TIMED_OUT,
            _ => exit::FAILURE,
        };
        let mut line = format!("{surface}: {self}.");
        if matches!(self, Failure::Credential) {
            line.push_str(&format!(" Ask the person to set it again: {}.", api.login_hint));
        }
        let sent = matches!(self, Failure::Slow(_) | Failure::Broken { .. });
        if sent && request.method != HttpMethod::Get {
            line.push_str(" It may have been done all the same: look before you try again.");
        }
        Envelope::fail(code, line)
    }
}

/// What a service answered, cut to size.
#[derive(Debug)]
struct Answer {
    status: u16,
    is_json: bool,
    /// Seconds to wait, of a service that was asked too often.
    wait: Option<u64>,
    body: Vec<u8>,
    cut: bool,
}

impl Answer {
    /// Without the credential, before anything is cut out of it: half a token would not be found.
    fn masked(mut self, values: &[secrets::Value]) -> Self {
        let all: Vec<&secrets::Value> = values.iter().collect();
        self.body = secrets::redact_values(&String::from_utf8_lossy(&self.body), &all).into_bytes();
        if self.cut {
            let longest = values.iter().map(|v| v.expose().len()).max().unwrap_or_default();
            self.body.truncate(self.body.len().saturating_sub(longest));
        }
        self
    }

    fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn envelope(self, surface: &str, api: &Api) -> Envelope {
        if self.is_good() {
            return self.output(surface);
        }
        let said = self.said();
        let line = match self.status {
            300..=399 => {
                let text = "it answered with a redirect, and those are not followed. Ask the person \
                            to check the service's address in the settings.";
                return Envelope::fail(exit::FAILURE, format!("{surface}: {text}"));
            }
            401 | 403 => {
                let hint = api.login_hint;
                let text = format!("{surface}: not authorised ({said}). On the host: {hint}.");
                return Envelope::fail(exit::NOT_LOGGED_IN, text);
            }
            429 => match self.wait {
                Some(seconds) => format!("{surface}: asked too often; wait {seconds} s ({said})."),
                None => format!("{surface}: asked too often; wait a minute ({said})."),
            },
            _ => format!("{surface}: {said}"),
        };
        Envelope::fail(exit::FAILURE, line)
    }

    /// The answer itself, as it came.
    fn output(self, surface: &str) -> Envelope {
        if !self.is_json && !self.body.is_empty() {
            let text = format!("{surface}: it answered with something that is not JSON.");
            return Envelope::fail(exit::FAILURE, text);
        }
        let mut stdout = String::from_utf8_lossy(&self.body).into_owned();
        if !stdout.is_empty() && !stdout.ends_with('\n') {
            stdout.push('\n');
        }
        if !self.cut {
            return Envelope { stdout, ..Envelope::default() };
        }
        let stderr = format!("relay: output cut after {MAX_STREAM} bytes\n");
        Envelope { exit_code: exit::FAILURE, stdout, stderr, pushed: None }
    }

    /// What it says went wrong, in one line.
    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let fields = serde_json::from_str::<Json>(&text).unwrap_or_default();
        let field = |name: &str| fields.get(name).and_then(Json::as_str);
        let said = ["message", "err", "error"].into_iter().find_map(field).unwrap_or(&text).trim();
        let page = said.starts_with('<');
        if said.is_empty() || page {
            return format!("it answered {}", self.status);
        }
        format!("it answered {}: {}", self.status, shortened(said, MAX_SAID))
    }
}

/// What calls share: whom to trust, once that is known.
#[derive(Default)]
pub(crate) struct Client(Mutex<Option<Arc<ClientConfig>>>);

type Env = [(OsString, OsString)];

/// A connection, of whichever kind.
trait Stream: hyper::rt::Read + hyper::rt::Write + Send + Unpin {}
impl<S: hyper::rt::Read + hyper::rt::Write + Send + Unpin> Stream for S {}

impl Client {
    async fn send(
        &self,
        env: &Env,
        api: &Api,
        base: &str,
        request: &ApiCall,
        values: &[secrets::Value],
        limits: Limits,
    ) -> Result<Answer, Failure> {
        let address = Address::of(base, request).map_err(Failure::Address)?;
        let message = message(&address, api, request, values)?;
        let work = async {
            let connecting = tokio::time::timeout(limits.connect, self.connect(env, &address));
            let stream = connecting.await.map_err(|_| Failure::Slow(limits.connect))??;
            let broke =
                |e: hyper::Error| Failure::Broken { host: address.host.clone(), why: told(&e) };
            exchange(stream, message).await.map_err(broke)
        };
        tokio::time::timeout(limits.total, work).await.map_err(|_| Failure::Slow(limits.total))?
    }

    async fn connect(&self, env: &Env, address: &Address) -> Result<Box<dyn Stream>, Failure> {
        let uri = address.uri.clone();
        let unreachable = |why: String| Failure::Unreachable { host: address.host.clone(), why };
        if address.is_plain {
            return open(tcp(), uri).await.map_err(unreachable);
        }
        let config = self.config(env).await?;
        let proxy = if address.is_here { None } else { proxy(env, &uri) };
        let opened = match proxy {
            None => open(over_tls(config, tcp()), uri).await,
            Some(proxy) => {
                let tunnel = tunnel(&proxy, over_tls(config.clone(), tcp()))?;
                open(over_tls(config, tunnel), uri).await
            }
        };
        opened.map_err(|mut why| {
            if why.contains("certificate") {
                // The person may be about to trust another authority.
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
                why.push_str(
                    " (if this network inspects connections, add its authority to the computer's \
                     certificates or name it in SSL_CERT_FILE)",
                );
            }
            unreachable(why)
        })
    }

    /// Whom to trust: read at the first call.
    async fn config(&self, env: &Env) -> Result<Arc<ClientConfig>, Failure> {
        if let Some(known) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(known.clone());
        }
        let (file, dir) = (find(env, &["SSL_CERT_FILE"]), find(env, &["SSL_CERT_DIR"]));
        let read = tokio::task::spawn_blocking(move || trust(file.as_deref(), dir.as_deref()));
        let broke = |e: tokio::task::JoinError| Failure::Trust(e.to_string());
        let config = Arc::new(read.await.map_err(broke)?.map_err(Failure::Trust)?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(config.clone());
        Ok(config)
    }
}

/// Where a request goes. Nothing but the settings decides about anything before the path.
struct Address {
    uri: Uri,
    host: String,
    /// This computer.
    is_here: bool,
    is_plain: bool,
}

impl Address {
    fn of(base: &str, request: &ApiCall) -> Result<Self, String> {
        let address = Self::whole(base)?;
        let bad = |why: &str| {
            format!("the address {} cannot be used: {why}", shortened(&secrets::redact(base), 200))
        };
        if !is_path(&request.path) {
            return Err(bad("the path below it is malformed"));
        }
        let mut whole = format!("{}{}", base.trim_end_matches('/'), request.path);
        if !request.query.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&request.query);
            whole = format!("{whole}?{}", query.finish());
        }
        let uri: Uri = whole.parse().map_err(|_| bad("the request is too long for an address"))?;
        Ok(Self { uri, ..address })
    }

    /// An address of the settings, as it stands there.
    fn whole(base: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            format!("the address {} cannot be used: {why}", shortened(&secrets::redact(base), 200))
        };
        let parsed: Uri = base.parse().map_err(|_| bad("it is no URL"))?;
        let (Some(authority), None) = (parsed.authority(), parsed.query()) else {
            return Err(bad("it must be a scheme, a host and a path"));
        };
        if authority.as_str().contains('@') {
            return Err(bad("it holds a name or password"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let is_plain = match parsed.scheme_str() {
            Some("https") => false,
            Some("http") if is_here => true,
            _ => return Err(bad("only https is used, or http on this computer")),
        };
        let host = authority.as_str().to_owned();
        Ok(Self { uri: parsed, host, is_here, is_plain })
    }
}

/// Words between single slashes, none of which means anything to a server.
fn is_path(path: &str) -> bool {
    let word = |part: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        !part.is_empty() && part.bytes().all(plain)
    };
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(word))
}

fn message(
    address: &Address,
    api: &Api,
    request: &ApiCall,
    values: &[secrets::Value],
) -> Result<Request<Full<Bytes>>, Failure> {
    let exposed: Vec<&str> = values.iter().map(secrets::Value::expose).collect();
    let (name, value) = (api.authorize)(&exposed);
    let mut credential = HeaderValue::from_str(&value).map_err(|_| Failure::Credential)?;
    credential.set_sensitive(true);
    let target = address.uri.path_and_query().map_or("/", |p| p.as_str());
    let mut builder = Request::builder()
        .method(request.method.as_str())
        .uri(target)
        .header(HOST, &address.host)
        .header(USER_AGENT, concat!("agentbox/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json")
        .header(name, credential);
    let body = match &request.body {
        Some(body) => {
            builder = builder.header(CONTENT_TYPE, "application/json");
            Bytes::from(body.to_string())
        }
        None => Bytes::new(),
    };
    builder.body(Full::new(body)).map_err(|e| Failure::Address(e.to_string()))
}

async fn exchange(
    stream: Box<dyn Stream>,
    message: Request<Full<Bytes>>,
) -> Result<Answer, hyper::Error> {
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(MAX_HEAD).handshake(stream).await?;
    let mut connection = pin!(connection);
    let mut work = pin!(async { take(sender.send_request(message).await?).await });
    tokio::select! {
        answer = &mut work => answer,
        // It may end before the last of the answer was looked at.
        _ = &mut connection => work.await,
    }
}

async fn take(response: Response<Incoming>) -> Result<Answer, hyper::Error> {
    let headers = response.headers();
    let text =
        |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).unwrap_or_default();
    let is_encoded = !matches!(text(CONTENT_ENCODING), "" | "identity");
    let is_json = text(CONTENT_TYPE).to_ascii_lowercase().contains("json") && !is_encoded;
    let (status, wait) = (response.status().as_u16(), wait(headers));
    let mut answer = Answer { status, is_json, wait, body: Vec::new(), cut: false };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = MAX_STREAM - answer.body.len();
        answer.body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            answer.cut = true;
            break;
        }
    }
    Ok(answer)
}

/// How long a service wants to be left alone: as a number of seconds, or as the second it ends.
fn wait(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let seconds = number(RETRY_AFTER.as_str()).or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(number("x-ratelimit-reset")?.saturating_sub(now))
    })?;
    (seconds <= 86_400).then_some(seconds)
}

/// Opens a connection by a connector.
async fn open<C>(mut connector: C, uri: Uri) -> Result<Box<dyn Stream>, String>
where
    C: Service<Uri, Error: Into<Box<dyn StdError + Send + Sync>>>,
    C::Response: Stream + 'static,
{
    let told = |e: C::Error| told(&*e.into());
    std::future::poll_fn(|cx| connector.poll_ready(cx)).await.map_err(told)?;
    let stream = connector.call(uri).await.map_err(told)?;
    Ok(Box::new(stream))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp
}

fn over_tls<C>(config: Arc<ClientConfig>, below: C) -> HttpsConnector<C> {
    let builder = HttpsConnectorBuilder::new().with_tls_config((*config).clone());
    builder.https_or_http().enable_http1().wrap_connector(below)
}

/// The way the person's environment wants connections to go.
fn proxy(env: &Env, uri: &Uri) -> Option<Intercept> {
    let text =
        |names: &[&str]| find(env, names).and_then(|v| v.into_string().ok()).unwrap_or_default();
    let matcher = Matcher::builder()
        .https(text(&["https_proxy", "HTTPS_PROXY"]))
        .all(text(&["all_proxy", "ALL_PROXY"]))
        .no(text(&["no_proxy", "NO_PROXY"]));
    matcher.build().intercept(uri)
}

/// A proxy sees where the connection goes, never what is said: that is encrypted end to end.
fn tunnel<C>(proxy: &Intercept, below: C) -> Result<Tunnel<C>, Failure> {
    if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
        let why = "the proxy in HTTPS_PROXY or ALL_PROXY is not an http or https one".to_owned();
        return Err(Failure::Address(why));
    }
    let tunnel = Tunnel::new(proxy.uri().clone(), below);
    Ok(match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    })
}

/// The first of these variables that is set to something.
fn find(env: &Env, names: &[&str]) -> Option<OsString> {
    let set = |name: &&str| {
        // As for a program: of two, the later one holds.
        let (_, value) = env.iter().rev().find(|(key, _)| key == OsStr::new(name))?;
        (!value.is_empty()).then(|| value.clone())
    };
    names.iter().find_map(set)
}

fn trust(file: Option<&OsStr>, dir: Option<&OsStr>) -> Result<ClientConfig, String> {
    let found = match (file, dir) {
        (None, None) => rustls_native_certs::load_native_certs(),
        (file, dir) => {
            rustls_native_certs::load_certs_from_paths(file.map(Path::new), dir.map(Path::new))
        }
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map(|e| format!(": {e}")).unwrap_or_default();
        let hint = "Install the package ca-certificates, or set SSL_CERT_FILE";
        return Err(format!("this computer has no certificates to trust{why}. {hint}"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// An error with its causes, in one line.
fn told(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    shortened(&text, MAX_SAID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::net::TcpListener;

    const API: Api = Api {
        base_url: "https://api.example.com/1",
        probe: "/me",
        authorize: |values| ("authorization", values.concat()),
        login_hint: "log in",
    };

    fn get(path: &str) -> ApiCall {
        ApiCall { method: HttpMethod::Get, path: path.into(), query: Vec::new(), body: None }
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_request_is_shown_whole() {
        let request = ApiCall {
            method: HttpMethod::Post,
            path: "/cards".into(),
            query: vec![pair("a", "x y")],
            body: Some(json!({"name": "Fix", "due": null, "n": [1]})),
        };
        let words = ["POST", "https://h/1/cards", "a=x y", "due=null", "n=[1]", "name=Fix"];
        assert_eq!(shown("https://h/1/", &request), words);
        assert_eq!(shown("https://h", &get("/me")), ["GET", "https://h/me"]);
    }

    #[test]
    fn an_address_is_the_base_and_a_plain_path() {
        let request =
            ApiCall { query: vec![pair("q[]", "a&b=c #%/../é")], ..get("/boards/1/cards") };
        let address = Address::of("https://api.example.com/1", &request).unwrap();
        assert_eq!(
            address.uri.to_string(),
            "https://api.example.com/1/boards/1/cards?q%5B%5D=a%26b%3Dc+%23%25%2F..%2F%C3%A9"
        );
        assert!(!address.is_here && !address.is_plain);
        for base in
            ["http://127.0.0.1:80/1", "http://[::1]:80", "http://localhost/", "http://127.9.9.9"]
        {
            let address = Address::of(base, &get("/me")).unwrap();
            assert!(address.is_here && address.is_plain, "{base}");
        }
        assert_eq!(Address::of("http://localhost/", &get("/me")).unwrap().uri.path(), "/me");
    }

    #[test]
    fn other_addresses_are_refused() {
        for base in [
            "http://api.example.com/1",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "https://user:pass@api.example.com",
            "https://127.0.0.1@evil.example",
            "https://api.example.com/1?x=y",
            "api.example.com",
            "/1",
            "unix:///run/x.sock",
            "https://",
            "",
        ] {
            assert!(Address::of(base, &get("/me")).is_err(), "{base}");
        }
        for path in [
            "",
            "me",
            "//evil.example/x",
            "/..",
            "/a/../b",
            "/a//b",
            "/a?b",
            "/a#b",
            "/a%2e",
            "/a b",
            "/é",
            "/a/",
        ] {
            assert!(Address::of("https://h/1", &get(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn how_long_to_wait_is_a_number_or_nothing() {
        let headers = |pairs: &[(&'static str, String)]| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).parse().unwrap(), v.parse().unwrap()))
                .collect::<HeaderMap>()
        };
        assert_eq!(wait(&headers(&[("retry-after", "17".into())])), Some(17));
        assert_eq!(wait(&headers(&[("retry-after", "evil; rm -rf".into())])), None);
        assert_eq!(wait(&headers(&[("retry-after", "99999999".into())])), None);
        let then = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 30;
        let waits = wait(&headers(&[("x-ratelimit-reset", then.to_string())])).unwrap();
        assert!((28..=30).contains(&waits), "{waits}");
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, is_json: true, wait: None, body: body.into(), cut: false }
    }

    #[test]
    fn failures_say_what_the_service_said() {
        for (status, body, code, line) in [
            (404, "invalid id", 1, "x: it answered 404: invalid id\n"),
            (
                400,
                r#"{"err":"Task name invalid","ECODE":"INPUT_005"}"#,
                1,
                "x: it answered 400: Task name invalid\n",
            ),
            (400, r#"{"message":"a\u001b[2Jb"}"#, 1, "x: it answered 400: a\\x1b[2Jb\n"),
            (500, "<html>oops</html>", 1, "x: it answered 500\n"),
            (
                403,
                r#"{"err":"no"}"#,
                4,
                "x: not authorised (it answered 403: no). On the host: log in.\n",
            ),
            (401, "", 4, "x: not authorised (it answered 401). On the host: log in.\n"),
        ] {
            let envelope = answer(status, body).envelope("x", &API);
            assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (code, line));
            assert_eq!(envelope.stdout, "");
        }
        let long = answer(400, &"x".repeat(5000)).envelope("x", &API).stderr;
        assert!(long.len() < 700 && long.contains("4500 more characters"), "{long}");
    }

    #[test]
    fn relay_a14_no_part_of_a_credential_is_left_where_the_output_ends() {
        let value = secrets::Value::new("tok-1234567890".into());
        let whole = answer(200, r#"{"a":"tok-1234567890"}"#).masked(std::slice::from_ref(&value));
        assert_eq!(whole.body, br#"{"a":"[redacted]"}"#);
        for kept in 1..14 {
            let text = format!("{}{}", "x".repeat(40), &value.expose()[..kept]);
            let cut =
                Answer { cut: true, ..answer(200, &text) }.masked(std::slice::from_ref(&value));
            assert!(cut.body.iter().all(|b| *b == b'x'), "{kept}");
            assert_eq!(cut.envelope("x", &API).exit_code, 1);
        }
        // What is said about a failure is shortened after that.
        let text = format!("{}tok-1234567890", "x".repeat(MAX_SAID - 4));
        let said = answer(400, &text).masked(&[value]).envelope("x", &API).stderr;
        assert!(!said.contains("tok-"), "{said}");
    }

    async fn listening() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        (listener, base)
    }

    const SHORT: Limits =
        Limits { connect: Duration::from_millis(200), total: Duration::from_millis(300) };

    async fn send(base: &str, request: &ApiCall) -> Envelope {
        let client = Client::default();
        match client.send(&[], &API, base, request, &[], SHORT).await {
            Ok(answer) => answer.envelope("x", &API),
            Err(failure) => failure.envelope("x", request, &API),
        }
    }

    #[tokio::test]
    async fn a_service_that_does_not_answer_is_given_up() {
        let (_listener, base) = listening().await;
        let envelope = send(&base, &get("/me")).await;
        assert_eq!(
            (envelope.exit_code, envelope.stderr.as_str()),
            (124, "x: timed out after 300ms.\n")
        );
        let post = ApiCall { method: HttpMethod::Post, body: Some(json!({})), ..get("/me") };
        let envelope = send(&base, &post).await;
        assert_eq!(envelope.exit_code, 124);
        assert!(envelope.stderr.contains("It may have been done all the same"));
    }

    #[tokio::test]
    async fn a_service_that_never_ends_is_given_up_too() {
        let (listener, base) = listening().await;
        let slowly = async {
            let (stream, _) = listener.accept().await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n";
            // An answer that comes before its question would be another fault.
            let mut asked = [0; 4096];
            while stream.try_read(&mut asked).is_err() {
                stream.readable().await.unwrap();
            }
            stream.writable().await.unwrap();
            stream.try_write(head).unwrap();
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = stream.try_write(b"x");
            }
        };
        let request = get("/me");
        let envelope = tokio::select! {
            envelope = send(&base, &request) => envelope,
            () = slowly => unreachable!(),
        };
        assert_eq!((envelope.exit_code, envelope.stdout.as_str()), (124, ""));
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_said() {
        let (listener, base) = listening().await;
        drop(listener);
        let envelope = send(&base, &get("/me")).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("cannot reach 127.0.0.1"), "{}", envelope.stderr);
        assert!(envelope.stderr.contains("refused"), "{}", envelope.stderr);
    }

    #[tokio::test]
    async fn a_credential_no_header_takes_is_no_login() {
        let (_listener, base) = listening().await;
        let values = [secrets::Value::new("a\r\nx-evil: 1".into())];
        let client = Client::default();
        let sent = client.send(&[], &API, &base, &get("/me"), &values, SHORT).await;
        assert!(matches!(sent, Err(Failure::Credential)));
    }

    #[test]
    fn proxies_are_taken_from_the_environment() {
        let env = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect()
        };
        let uri = "https://api.example.com/1".parse().unwrap();
        let through = |pairs: &[(&str, &str)]| {
            proxy(&env(pairs), &uri).and_then(|p| p.uri().host().map(str::to_owned))
        };
        assert_eq!(through(&[("HTTPS_PROXY", "http://p:3128")]).as_deref(), Some("p"));
        assert_eq!(
            through(&[("https_proxy", "http://q:1"), ("HTTPS_PROXY", "http://p:1")]).as_deref(),
            Some("q")
        );
        assert_eq!(through(&[("ALL_PROXY", "http://p:1")]).as_deref(), Some("p"));
        assert_eq!(through(&[("HTTP_PROXY", "http://p:1")]), None);
        assert_eq!(through(&[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", ".example.com")]), None);
        let socks = proxy(&env(&[("ALL_PROXY", "socks5://p:1")]), &uri).unwrap();
        assert!(matches!(tunnel(&socks, ()), Err(Failure::Address(_))));
    }
}
