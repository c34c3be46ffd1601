//! A GitHub server on this computer, as much of it as `gh` and git need: the REST and GraphQL API
//! under the paths of an enterprise server, and the repository itself over HTTPS.
//!
//! It keeps state as the real one does. A pull request's head is wherever its branch is in the bare
//! repository now, a merge moves the base branch there and is refused when the head is not the
//! expected one, and whoever comes without a known token is turned away.
//!
//! The answers were written after what `gh` 2.23 and 2.102 ask for; a query it does not know ends in
//! an error that names it, so that another `gh` fails loudly here.

mod git;
mod graphql;
mod rest;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

pub struct GitHub {
    pub port: u16,
    /// A file with the certificate to be trusted.
    pub certificate: PathBuf,
    pub state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub struct State {
    /// The bare repository behind `o/r`.
    pub repo: PathBuf,
    pub host: String,
    pub tokens: Vec<String>,
    pub pulls: Vec<Pull>,
    pub comments: Vec<(u64, String)>,
    pub reviews: Vec<(u64, String, String)>,
    /// Review comments, as they were posted.
    pub review_comments: Vec<Value>,
    pub reruns: Vec<String>,
    pub merge_queue: bool,
    /// Everything that was asked: method, path, and the name of a GraphQL operation.
    pub asked: Vec<String>,
    /// Authorization headers of API calls.
    pub credentials: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Pull {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub base: String,
    pub head: String,
    /// Owner of the fork it comes from.
    pub fork: Option<String>,
    pub state: &'static str,
    pub draft: bool,
    pub labels: Vec<String>,
    /// Name and conclusion of its checks.
    pub checks: Vec<(&'static str, &'static str)>,
    /// Where its head was when it was closed or merged.
    pub at: Option<String>,
}

impl Pull {
    pub fn open(number: u64, title: &str, head: &str) -> Self {
        Self {
            number,
            title: title.into(),
            body: String::new(),
            base: "main".into(),
            head: head.into(),
            fork: None,
            state: "OPEN",
            draft: false,
            labels: vec![],
            checks: vec![],
            at: None,
        }
    }
}

impl GitHub {
    /// Listens; serves no repository before [`GitHub::serve`].
    pub async fn start(dir: &Path) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let file = dir.join("github.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            host: format!("127.0.0.1:{port}"),
            tokens: vec![TOKEN.to_owned()],
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), state.clone()));
        Self { port, certificate: file, state }
    }

    /// The bare repository that is `o/r`.
    pub fn serve(&self, repo: &Path) {
        git::allow_pushes(repo);
        repo.clone_into(&mut self.state.lock().unwrap().repo);
    }

    /// `127.0.0.1:port`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("https://{}/o/r.git", self.host())
    }

    pub fn add(&self, pull: Pull) {
        self.state.lock().unwrap().pulls.push(pull);
    }

    pub fn pull(&self, number: u64) -> Pull {
        self.state.lock().unwrap().pull(number).unwrap().clone()
    }

    /// Whether anything was asked whose line contains this.
    pub fn was_asked(&self, what: &str) -> bool {
        self.state.lock().unwrap().asked.iter().any(|line| line.contains(what))
    }
}

impl State {
    pub fn pull(&self, number: u64) -> Option<&Pull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    fn pull_mut(&mut self, id: &Value) -> Option<&mut Pull> {
        let number: u64 = id.as_str()?.strip_prefix("PR_")?.parse().ok()?;
        self.pulls.iter_mut().find(|pull| pull.number == number)
    }

    /// Where a branch is now.
    pub fn tip(&self, branch: &str) -> Option<String> {
        git::output(&self.repo, &["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")])
    }

    fn head_of(&self, pull: &Pull) -> String {
        let now = pull.at.clone().or_else(|| self.tip(&pull.head));
        now.unwrap_or_else(|| "0".repeat(40))
    }

    fn url_of(&self, number: u64) -> String {
        format!("https://{}/o/r/pull/{number}", self.host)
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = hyper::service::service_fn(move |request| {
                let state = state.clone();
                async move { Ok::<_, Infallible>(answer(&state, request).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Reply = Response<Full<Bytes>>;

fn reply(status: u16, body: &Value) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body.to_string())));
    *reply.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
    let headers = reply.headers_mut();
    headers.insert("content-type", "application/json; charset=utf-8".parse().unwrap());
    headers.insert("x-oauth-scopes", "repo, read:org, workflow".parse().unwrap());
    reply
}

async fn answer(state: &Arc<Mutex<State>>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let header = |name: &str| {
        parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
    };
    let path = parts.uri.path().to_owned();
    if path.starts_with("/o/r.git/") {
        let repo = state.lock().unwrap().repo.clone();
        git::mirror_pulls(&state.lock().unwrap());
        return git::serve(&repo, &parts, &body);
    }
    let given = header("authorization");
    let token = given.split_once(' ').map(|(_, token)| token.to_owned()).unwrap_or_default();
    let mut state = state.lock().unwrap();
    state.credentials.push(given);
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let operation = json["query"].as_str().map(graphql::operation).unwrap_or_default();
    state.asked.push(format!("{} {} {operation}", parts.method, parts.uri).trim_end().to_owned());
    if !state.tokens.contains(&token) {
        return reply(401, &json!({ "message": "Bad credentials" }));
    }
    match path.strip_prefix("/api/v3/") {
        _ if path == "/api/graphql" => graphql::answer(&mut state, &operation, &json),
        Some(path) => {
            rest::answer(&mut state, parts.method.as_str(), path, &header("accept"), &json)
        }
        None => reply(404, &json!({ "message": "Not Found" })),
    }
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args);
    command
}
