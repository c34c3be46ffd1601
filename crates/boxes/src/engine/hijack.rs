//! The byte stream of an exec, taken over from the engine's HTTP connection.
//!
//! The engine client's own decoder guesses from the first byte whether a chunk is framed. A
//! program on a terminal can print that byte, and then decides how much the host buffers before
//! it shows anything. Here framing follows from what was asked for (`tty` or not), and no frame is
//! ever held in memory as a whole: a hostile box can neither confuse nor fill the host.

use super::address::{Address, Stream};
use crate::Error;
use bytes::{Buf, Bytes, BytesMut};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::io::poll_read_buf;

const HEAD_LIMIT: usize = 16 * 1024;
const CHUNK: usize = 32 * 1024;

pub(crate) struct Hijacked {
    pub read: ReadHalf,
    pub write: WriteHalf,
}

/// The program's standard input. `shutdown` is its end of input.
pub(crate) type WriteHalf = Pin<Box<dyn AsyncWrite + Send>>;

/// What the program prints.
pub(crate) struct ReadHalf {
    source: Pin<Box<dyn AsyncRead + Send>>,
    buffer: BytesMut,
    framing: Framing,
}

enum Framing {
    /// A terminal: one stream, no frames.
    Raw,
    Header,
    Payload {
        stderr: bool,
        left: usize,
    },
}

pub(super) async fn start_exec(
    address: &Address,
    api: &str,
    id: &str,
    tty: bool,
) -> Result<Hijacked, Error> {
    let what = "start a command in the box";
    let gone = |error: std::io::Error| Error::Unreachable {
        what: what.to_owned(),
        why: error.to_string(),
    };
    let (mut source, mut write) = halves(address.open().await.map_err(gone)?);
    let body = format!(r#"{{"Detach":false,"Tty":{tty}}}"#);
    let head = format!(
        "POST /v{api}/exec/{id}/start HTTP/1.1\r\nHost: agentbox\r\nContent-Type: application/json\r\n\
         Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    write.write_all(head.as_bytes()).await.map_err(gone)?;

    let mut buffer = BytesMut::with_capacity(CHUNK);
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        let n = source.read_buf(&mut buffer).await.map_err(gone)?;
        if n == 0 || buffer.len() > HEAD_LIMIT {
            let why = "it closed the connection".to_owned();
            return Err(Error::Unreachable { what: what.to_owned(), why });
        }
    };
    let head = String::from_utf8_lossy(&buffer.split_to(end)).into_owned();
    let status: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    if status != 101 && status != 200 {
        // The connection is kept open by the engine, so the body is only what came along.
        let mut rest = vec![0; 4096];
        let more =
            tokio::time::timeout(std::time::Duration::from_millis(200), source.read(&mut rest));
        if let Ok(Ok(n)) = more.await {
            buffer.extend_from_slice(&rest[..n]);
        }
        return Err(Error::Engine {
            what: what.to_owned(),
            status: Some(status),
            why: message(&buffer),
        });
    }
    let framing = if tty { Framing::Raw } else { Framing::Header };
    Ok(Hijacked { read: ReadHalf { source, buffer, framing }, write })
}

fn halves(stream: Stream) -> (Pin<Box<dyn AsyncRead + Send>>, WriteHalf) {
    match stream {
        Stream::Unix(stream) => {
            let (read, write) = stream.into_split();
            (Box::pin(read), Box::pin(write))
        }
        Stream::Tcp(stream) => {
            let (read, write) = stream.into_split();
            (Box::pin(read), Box::pin(write))
        }
    }
}

fn message(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = json.as_ref().and_then(|value| value.get("message")?.as_str());
    text.map_or_else(|| String::from_utf8_lossy(body).trim().to_owned(), str::to_owned)
}

impl ReadHalf {
    /// The next piece: whether it is standard error, and its bytes. None at the end.
    pub async fn next(&mut self) -> std::io::Result<Option<(bool, Bytes)>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<Option<(bool, Bytes)>>> {
        loop {
            if let Some(piece) = self.take() {
                return Poll::Ready(Ok(Some(piece)));
            }
            self.buffer.reserve(CHUNK);
            let read = poll_read_buf(self.source.as_mut(), cx, &mut self.buffer);
            if ready!(read)? == 0 {
                return Poll::Ready(Ok(None));
            }
        }
    }

    fn take(&mut self) -> Option<(bool, Bytes)> {
        loop {
            match self.framing {
                Framing::Raw => {
                    let all = self.buffer.split().freeze();
                    return (!all.is_empty()).then_some((false, all));
                }
                Framing::Header => {
                    if self.buffer.len() < 8 {
                        return None;
                    }
                    let stderr = self.buffer[0] == 2;
                    self.buffer.advance(4);
                    let left = self.buffer.get_u32() as usize;
                    self.framing = Framing::Payload { stderr, left };
                }
                Framing::Payload { left: 0, .. } => self.framing = Framing::Header,
                Framing::Payload { .. } if self.buffer.is_empty() => return None,
                Framing::Payload { stderr, left } => {
                    let piece = self.buffer.split_to(left.min(self.buffer.len())).freeze();
                    self.framing = Framing::Payload { stderr, left: left - piece.len() };
                    return Some((stderr, piece));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &'static [u8], framing: Framing) -> ReadHalf {
        ReadHalf { source: Box::pin(bytes), buffer: BytesMut::new(), framing }
    }

    async fn all(mut read: ReadHalf) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some((stderr, bytes)) = read.next().await.unwrap() {
            if stderr { err.extend(bytes) } else { out.extend(bytes) }
        }
        (out, err)
    }

    #[tokio::test]
    async fn frames_are_told_apart() {
        let bytes =
            b"\x01\0\0\0\0\0\0\x02hi\x02\0\0\0\0\0\0\x01e\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01!";
        assert_eq!(all(reader(bytes, Framing::Header)).await, (b"hi!".to_vec(), b"e".to_vec()));
    }

    #[tokio::test]
    async fn a_terminal_that_prints_a_frame_header_is_taken_literally() {
        let bytes = b"\x01\0\0\0\xff\xff\xff\xffrest";
        assert_eq!(all(reader(bytes, Framing::Raw)).await.0, bytes.to_vec());
    }

    #[tokio::test]
    async fn a_frame_is_passed_on_before_it_is_complete() {
        let mut read = reader(b"\x01\0\0\0\x7f\xff\xff\xffstart", Framing::Header);
        assert_eq!(read.next().await.unwrap(), Some((false, Bytes::from_static(b"start"))));
    }

    #[test]
    fn the_engines_message_is_taken_from_its_json() {
        assert_eq!(message(br#"{"message":"no such exec"}"#), "no such exec");
        assert_eq!(message(b"plain\n"), "plain");
    }
}
