//! TLS of a box's program: whom it wants to speak to, and the proxy in that name.

use super::Shared;
use super::answer::Refusal;
use super::replay::Replay;
use crate::dial::Stream;
use crate::host_name::HostName;
use protocol::egress::Reason;
use rustls::server::Acceptor;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::io::AsyncWriteExt;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// `unrecognized_name`, fatal, as it is said before anything is secret.
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70];

/// The first message of a handshake, from a program that wants the host of its tunnel.
pub(super) struct Hello<S>(StartHandshake<Replay<S>>);

impl<S> Hello<S> {
    /// The stream from its first byte on, as if nothing had been read.
    pub fn rewound(self) -> Replay<S> {
        let mut stream = self.0.io;
        stream.rewind();
        stream
    }
}

pub(super) async fn hello<S: Stream>(
    shared: &Arc<Shared>,
    mut stream: Replay<S>,
    host: &HostName,
    must_name: bool,
) -> Result<Hello<S>, Refusal> {
    stream.record();
    let broken = |detail: String| Refusal::with(Reason::NotHttp, detail);
    let reading = LazyConfigAcceptor::new(Acceptor::default(), stream);
    let start = match tokio::time::timeout(shared.deps.limits.greeting, reading).await {
        Ok(Ok(start)) => start,
        Ok(Err(e)) => return Err(broken(format!("the handshake cannot be read: {e}"))),
        Err(_) => return Err(broken("the handshake did not come in time".into())),
    };
    let named = start.client_hello().server_name().map(str::to_owned);
    let fits = match &named {
        Some(name) => HostName::parse(name).is_ok_and(|name| name == *host),
        // An address is never named, and old programs name nothing.
        None => !must_name,
    };
    if fits {
        return Ok(Hello(start));
    }
    let mut stream = start.io;
    let alert = async {
        stream.write_all(&UNRECOGNIZED_NAME).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(shared.deps.limits.greeting, alert).await;
    let detail = match named {
        Some(name) => format!("TLS asks for {name} in a tunnel to {host}"),
        None => format!("TLS names no host in a tunnel to {host}"),
    };
    Err(Refusal::with(Reason::SniMismatch, detail))
}

/// Speaks TLS in the host's name. Whether the program wants HTTP/2 comes with it.
pub(super) async fn accept<S: Stream>(
    shared: &Arc<Shared>,
    hello: Hello<S>,
    host: &HostName,
) -> Result<(TlsStream<Replay<S>>, bool), String> {
    let mut start = hello.0;
    start.io.forget();
    let leaf = shared.deps.authority.leaf(host, SystemTime::now()).map_err(|e| {
        tracing::error!("egress: no certificate for {host}: {e}");
        "there is no certificate for the host".to_owned()
    })?;
    let shaking = start.into_stream(leaf);
    match tokio::time::timeout(shared.deps.limits.greeting, shaking).await {
        Ok(Ok(stream)) => {
            let many = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok((stream, many))
        }
        Ok(Err(e)) => Err(format!("the program broke off the handshake: {e}")),
        Err(_) => Err("the program did not finish the handshake in time".to_owned()),
    }
}
