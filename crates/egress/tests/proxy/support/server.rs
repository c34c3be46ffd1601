//! Servers of the test: real TLS, HTTP/1.1 and HTTP/2, and a record of all that arrives.

use super::World;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub type Reply = Response<UnsyncBoxBody<Bytes, hyper::Error>>;
type BoxedReply = std::pin::Pin<Box<dyn Future<Output = Reply> + Send>>;
type Handler = dyn Fn(Request<Incoming>) -> BoxedReply + Send + Sync;

/// Who vouches for the servers of the test.
pub struct Authorities {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authorities {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, "Authority of the test");
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::self_signed(params, key).unwrap() }
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    pub fn config(&self, name: &str, alpn: &[&str]) -> (ServerConfig, CertificateDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], der)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
        (config, leaf.der().clone())
    }
}

/// One request as a server saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub uri: String,
    pub version: Version,
    pub headers: HeaderMap,
}

impl Seen {
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect()
    }
}

pub struct Server {
    pub certificate: Option<CertificateDer<'static>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    /// Bytes that arrived on its sockets.
    pub bytes: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn text(text: impl Into<Bytes>) -> Reply {
    Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed_unsync())
}

/// How a server is set up.
pub struct Setup<'a> {
    pub name: &'a str,
    pub port: u16,
    pub alpn: &'a [&'a str],
    /// The name in its certificate; none speaks no TLS.
    pub certificate: Option<&'a str>,
}

impl Server {
    /// `https://name` that says hello.
    pub async fn hello(world: &World, name: &str) -> Self {
        Self::https(world, name, |_| Box::pin(async { text("hello") })).await
    }

    pub async fn https<F>(world: &World, name: &str, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxedReply + Send + Sync + 'static,
    {
        let setup = Setup { name, port: 443, alpn: &["h2", "http/1.1"], certificate: Some(name) };
        Self::start(world, setup, handler).await
    }

    pub async fn https_1<F>(world: &World, name: &str, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxedReply + Send + Sync + 'static,
    {
        let setup = Setup { name, port: 443, alpn: &["http/1.1"], certificate: Some(name) };
        Self::start(world, setup, handler).await
    }

    pub async fn http<F>(world: &World, name: &str, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxedReply + Send + Sync + 'static,
    {
        let setup = Setup { name, port: 80, alpn: &[], certificate: None };
        Self::start(world, setup, handler).await
    }

    pub async fn start<F>(world: &World, setup: Setup<'_>, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxedReply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        world.net.route(setup.name, setup.port, address);
        let tls = setup.certificate.map(|name| world.authorities.config(name, setup.alpn));
        let (tls, certificate) = match tls {
            Some((config, certificate)) => (Some(Arc::new(config)), Some(certificate)),
            None => (None, None),
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (connections, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let accepting = accept(
            listener,
            tls,
            Arc::new(handler),
            seen.clone(),
            connections.clone(),
            bytes.clone(),
        );
        let task = tokio::spawn(accepting);
        Self { certificate, seen, connections, bytes, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    handler: Arc<Handler>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        connections.fetch_add(1, Ordering::Relaxed);
        let (handler, seen, tls) = (handler.clone(), seen.clone(), tls.clone());
        let stream = tokio_util::io::InspectReader::new(stream, {
            let bytes = bytes.clone();
            move |read: &[u8]| {
                bytes.fetch_add(read.len(), Ordering::Relaxed);
            }
        });
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                seen.lock().unwrap().push(Seen {
                    uri: request.uri().to_string(),
                    version: request.version(),
                    headers: request.headers().clone(),
                });
                let reply = handler(request);
                async move { Ok::<_, Infallible>(reply.await) }
            });
            let Some(tls) = tls else {
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades()
                    .await;
                return;
            };
            let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            } else {
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades()
                    .await;
            }
        });
    }
}

/// A server that gives the same bytes to whoever sends it the head of a request, whatever HTTP says about
/// them, and the heads as they came.
pub async fn canned(world: &World, name: &str, answer: impl Into<Bytes>) -> Canned {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.net.route(name, 443, listener.local_addr().unwrap());
    let (config, _) = world.authorities.config(name, &["http/1.1"]);
    let (acceptor, answer) = (TlsAcceptor::from(Arc::new(config)), answer.into());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = heads.clone();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer, heads) = (acceptor.clone(), answer.clone(), kept.clone());
            tokio::spawn(async move {
                let mut tls = acceptor.accept(stream).await.unwrap();
                loop {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = tls.read_u8().await else { return };
                        head.push(byte);
                    }
                    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                    tls.write_all(&answer).await.unwrap();
                    tls.flush().await.unwrap();
                }
            });
        }
    });
    Canned { heads, task }
}

pub struct Canned {
    heads: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Canned {
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.task.abort();
    }
}
