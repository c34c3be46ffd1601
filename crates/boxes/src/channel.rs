//! How a box reaches the host: a mounted socket, or streams through the engine.
//!
//! A socket can be mounted where the engine runs on the host's own kernel. Everywhere else the host
//! runs `agentbox-ctl bridge` in the box; [`Boxes::bridge`] gives that program's input and output as
//! one stream of bytes. What travels on it is not known here.

use crate::engine::{QUICK, ReadHalf, WriteHalf, limited};
use crate::exec::ExecSpec;
use crate::{Boxes, Error, Record};
use bytes::{Buf, Bytes};
use protocol::bridge::Service;
use protocol::ctl::{FORWARD_READY, paths};
use serde::{Deserialize, Serialize};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How much of what the bridge complains about is written down.
const STDERR: usize = 4 * 1024;

/// Chosen when a box is made, for as long as it lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// The host's folder of sockets is mounted into the box.
    #[default]
    Socket,
    /// `agentbox-ctl bridge` serves the sockets in the box.
    Exec,
}

impl Channel {
    pub fn as_str(self) -> &'static str {
        match self {
            Channel::Socket => "socket",
            Channel::Exec => "exec",
        }
    }
}

impl Boxes {
    /// Starts a bridge for a service in a running box. One that is there already gives way to it.
    /// Dropping it ends the program in the box.
    pub async fn bridge(&self, record: &Record, service: Service) -> Result<Bridge, Error> {
        // Boxes of before know one service, and no name for it.
        let name = (service != Service::Relay).then(|| service.name().to_owned());
        let argv = [paths::CTL.to_owned(), "bridge".to_owned()];
        let spec = ExecSpec {
            argv: argv.into_iter().chain(name).collect(),
            user: Some("0".to_owned()),
            cwd: Some("/".to_owned()),
            ..ExecSpec::default()
        };
        self.carried(record, spec).await
    }

    /// A connection to a port on the box's loopback; an error when nobody listens there. Dropping it
    /// ends the connection.
    pub async fn forward(&self, record: &Record, port: u16) -> Result<Bridge, Error> {
        let spec = ExecSpec {
            argv: vec![paths::CTL.to_owned(), "forward".to_owned(), port.to_string()],
            cwd: Some("/".to_owned()),
            ..ExecSpec::default()
        };
        let what = format!("reach port {port} of the box");
        let connected = async {
            let mut stream = self.carried(record, spec).await?;
            let first = stream.read_u8().await;
            if first.is_ok_and(|byte| byte == FORWARD_READY) {
                Ok(stream)
            } else {
                Err(Error::NotListening(port))
            }
        };
        limited(&what, QUICK, connected).await?
    }

    async fn carried(&self, record: &Record, spec: ExecSpec) -> Result<Bridge, Error> {
        let exec = Box::pin(self.exec_in(&record.container, spec)).await?;
        let complaints = Complaints { of: record.name.to_string(), left: STDERR };
        Ok(Bridge { input: exec.input, output: exec.output.0, rest: Bytes::new(), complaints })
    }
}

/// The standard input and output of a bridge, or of a forwarded port.
pub struct Bridge {
    input: WriteHalf,
    output: ReadHalf,
    rest: Bytes,
    complaints: Complaints,
}

impl AsyncRead for Bridge {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            match ready!(this.output.poll_next(cx))? {
                Some((false, bytes)) => this.rest = bytes,
                Some((true, bytes)) => this.complaints.take(&bytes),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = buffer.remaining().min(this.rest.len());
        buffer.put_slice(&this.rest[..count]);
        this.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bridge {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().input.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().input.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().input.as_mut().poll_shutdown(cx)
    }
}

/// What the bridge prints on standard error. The box decides what and how much.
struct Complaints {
    of: String,
    left: usize,
}

impl Complaints {
    fn take(&mut self, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(self.left)];
        self.left -= kept.len();
        for line in String::from_utf8_lossy(kept).lines().filter(|line| !line.is_empty()) {
            tracing::debug!("agentbox-ctl in {}: {}", self.of, protocol::text::visible(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_before_have_sockets() {
        assert_eq!(serde_json::from_str::<Channel>("\"exec\"").unwrap(), Channel::Exec);
        assert_eq!(serde_json::to_string(&Channel::Socket).unwrap(), "\"socket\"");
        assert_eq!(Channel::default(), Channel::Socket);
    }

    #[test]
    fn complaints_end() {
        let mut complaints = Complaints { of: "b".into(), left: 10 };
        complaints.take(b"123456\n\xff\xfe");
        complaints.take(&vec![b'x'; 100_000]);
        complaints.take(b"more");
        assert_eq!(complaints.left, 0);
    }
}
