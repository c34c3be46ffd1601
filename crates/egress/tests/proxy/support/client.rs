//! A program in a box: HTTP through the proxy, as curl would do it, or byte by byte.

use super::{World, within};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An answer, whole.
#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The word for why it was refused.
    pub fn reason(&self) -> &str {
        self.headers.get("x-agentbox-reason").map_or("", |v| v.to_str().unwrap())
    }

    pub fn refused(&self) -> (u16, &str) {
        (self.status.as_u16(), self.reason())
    }
}

pub struct Client<'a> {
    pub world: &'a World,
    pub h2: bool,
    /// The name TLS asks for, if it is not the host's.
    pub sni: Option<&'a str>,
}

impl<'a> Client<'a> {
    pub fn new(world: &'a World) -> Self {
        Self { world, h2: false, sni: None }
    }

    pub fn h2(world: &'a World) -> Self {
        Self { h2: true, ..Self::new(world) }
    }

    pub async fn get(&self, url: &str) -> Got {
        self.send(Request::get(url).body(Bytes::new()).unwrap()).await
    }

    /// One request on a connection of its own.
    pub async fn send(&self, request: Request<Bytes>) -> Got {
        let uri = request.uri().clone();
        if uri.scheme_str() == Some("http") {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(self.world.dial().await))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let (mut parts, body) = request.into_parts();
            let host = uri.authority().unwrap().to_string();
            parts.headers.entry("host").or_insert(host.parse().unwrap());
            let request = Request::from_parts(parts, Full::new(body));
            return got(within("an answer", sender.send_request(request)).await.unwrap()).await;
        }
        let (host, port) = (uri.host().unwrap(), uri.port_u16().unwrap_or(443));
        let tls = match self.tunnel(host, port).await {
            Ok(tls) => tls,
            Err(refused) => return refused,
        };
        let mut sender = self.over(tls).await;
        sender.send(request).await
    }

    /// TLS with the host, through the proxy; or the proxy's refusal.
    pub async fn tunnel(&self, host: &str, port: u16) -> Result<TlsStream<UnixStream>, Got> {
        let mut stream = self.world.dial().await;
        let answer = connect(&mut stream, host, port).await;
        if answer.status != StatusCode::OK {
            return Err(answer);
        }
        Ok(self.shake(stream, host).await.unwrap())
    }

    pub async fn shake<S>(&self, stream: S, host: &str) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = trusting(self.world, if self.h2 { &["h2"] } else { &["http/1.1"] });
        let name = ServerName::try_from(self.sni.unwrap_or(host).to_owned()).unwrap();
        within("a handshake", TlsConnector::from(config).connect(name, stream)).await
    }

    pub async fn over(&self, tls: TlsStream<UnixStream>) -> Sender {
        if self.h2 {
            let (sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            return Sender::Many(sender);
        }
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.unwrap();
        tokio::spawn(connection);
        Sender::One(sender)
    }
}

/// A connection on which requests are sent.
pub enum Sender {
    One(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Many(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    pub async fn get(&mut self, url: &str) -> Got {
        self.send(Request::get(url).body(Bytes::new()).unwrap()).await
    }

    pub async fn send(&mut self, request: Request<Bytes>) -> Got {
        let (mut parts, body) = request.into_parts();
        let body = Full::new(body);
        let answer = match self {
            Self::Many(sender) => {
                within("an answer", sender.send_request(Request::from_parts(parts, body))).await
            }
            Self::One(sender) => {
                let authority = parts.uri.authority().cloned();
                if let Some(authority) = authority {
                    parts.headers.entry("host").or_insert(authority.as_str().parse().unwrap());
                    let target = parts.uri.path_and_query().unwrap().clone();
                    parts.uri = target.as_str().parse().unwrap();
                }
                sender.ready().await.unwrap();
                within("an answer", sender.send_request(Request::from_parts(parts, body))).await
            }
        };
        got(answer.unwrap()).await
    }
}

pub async fn got(answer: hyper::Response<hyper::body::Incoming>) -> Got {
    let (parts, body) = answer.into_parts();
    let body = within("a body", body.collect()).await.unwrap().to_bytes();
    Got { status: parts.status, headers: parts.headers, body }
}

pub fn trusting(world: &World, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for pem in world.authority.certificates(SystemTime::now()) {
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Asks for a tunnel and reads the answer, without a byte of what follows.
pub async fn connect<S>(stream: &mut S, host: &str, port: u16) -> Got
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    read_answer(stream).await
}

/// The head of an answer, and its body if it has a length.
pub async fn read_answer<S: AsyncRead + Unpin>(stream: &mut S) -> Got {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = within("an answer", stream.read_u8()).await;
        head.push(byte.unwrap_or_else(|e| panic!("{e} after {}", String::from_utf8_lossy(&head))));
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.append(
            hyper::header::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    let length = headers.get("content-length").map_or(0, |n| n.to_str().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    within("a body", stream.read_exact(&mut body)).await.unwrap();
    Got { status, headers, body: body.into() }
}

/// Sends bytes as they are and reads one answer.
pub async fn raw<S>(stream: &mut S, bytes: impl AsRef<[u8]>) -> Got
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(bytes.as_ref()).await.unwrap();
    read_answer(stream).await
}
