//! The client of the relay: one HTTP/1.1 request over the box's Unix socket.
//!
//! No time limit while a question is open on the host: a person may think. Closing the connection
//! withdraws the question, so ending this process is how a command is taken back. The surprising
//! thing: an answer that breaks off is never guessed at; the caller is told nothing was decided.

use crate::error::{Error, Result};
use crate::places;
use protocol::rpc::{Call, Envelope, EventPost, HttpError};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Two output streams of 8 MiB, and some.
const MAX_ANSWER: usize = 20 * 1024 * 1024;
const MAX_HEADERS: usize = 32;
const NOTICE_AFTER: Duration = Duration::from_secs(2);
const EVENT_LIMIT: Duration = Duration::from_secs(2);

pub struct Relay {
    socket: PathBuf,
    token: String,
}

/// How long to wait for an answer.
#[derive(Clone, Copy, PartialEq)]
enum Patience {
    /// As long as it takes, with this line after a while.
    Person(&'static str),
    /// Not longer than an event is worth.
    Event,
}

impl Relay {
    pub fn open() -> Result<Self> {
        let path = places::token();
        let token = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(e) => return Err(Error::NoToken(path, e.to_string())),
        };
        if !is_token(&token) {
            return Err(Error::NoToken(path, "it is not 64 hex digits".into()));
        }
        Ok(Self { socket: places::relay_socket(), token })
    }

    pub fn call(&self, method: &str, params: serde_json::Value) -> Result<Envelope> {
        let call = Call { method: method.to_owned(), params };
        let body = serde_json::to_vec(&call).map_err(|e| Error::Failed(e.to_string()))?;
        let (status, body) =
            self.post("/rpc", &body, Patience::Person(crate::shim::notice(method)))?;
        envelope(status, &body)
    }

    pub fn event(&self, event: &EventPost) -> Result<()> {
        let body = serde_json::to_vec(event).map_err(|e| Error::Failed(e.to_string()))?;
        let (status, body) = self.post("/events", &body, Patience::Event)?;
        if (200..300).contains(&status) { Ok(()) } else { Err(refusal(status, &body)) }
    }

    fn post(&self, path: &str, body: &[u8], patience: Patience) -> Result<(u16, Vec<u8>)> {
        let unreachable = |e| Error::Unreachable(self.socket.clone(), e);
        let mut stream = UnixStream::connect(&self.socket).map_err(unreachable)?;
        let limit = if patience == Patience::Event { EVENT_LIMIT } else { NOTICE_AFTER };
        stream.set_read_timeout(Some(limit)).map_err(unreachable)?;
        if patience == Patience::Event {
            stream.set_write_timeout(Some(limit)).map_err(unreachable)?;
        }
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: agentbox\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.token,
            body.len()
        );
        // A host that refuses early may close before it has read all; its answer still counts.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        read_answer(&mut stream, patience)
    }
}

/// 32 random bytes in lower-case hex.
pub fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn read_answer(stream: &mut UnixStream, patience: Patience) -> Result<(u16, Vec<u8>)> {
    let mut got = Vec::new();
    loop {
        let ended = match read_some(stream, &mut got) {
            Ok(count) => count == 0,
            Err(e) if is_timeout(&e) && patience != Patience::Event => {
                if let Patience::Person(line) = patience {
                    crate::complain(line);
                }
                stream.set_read_timeout(None).map_err(|_| Error::HostGone)?;
                continue;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(Error::HostGone),
        };
        if let Some(answer) = parse(&got, ended)? {
            return Ok(answer);
        }
        if ended {
            return Err(Error::HostGone);
        }
        if got.len() > MAX_ANSWER {
            return Err(Error::BadAnswer(format!("it is larger than {MAX_ANSWER} bytes")));
        }
    }
}

fn read_some(stream: &mut UnixStream, got: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 16 * 1024];
    let count = stream.read(&mut chunk)?;
    got.extend_from_slice(&chunk[..count]);
    Ok(count)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Status and body once they are complete.
fn parse(got: &[u8], ended: bool) -> Result<Option<(u16, Vec<u8>)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let unreadable = |e: String| Error::BadAnswer(e);
    let head = match response.parse(got).map_err(|e| unreadable(e.to_string()))? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let status = response.code.unwrap_or_default();
    let header = |name: &str| {
        response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value)
    };
    if header("transfer-encoding").is_some() {
        return Err(unreadable("it comes in chunks".into()));
    }
    let body = &got[head..];
    let Some(length) = header("content-length") else {
        return Ok(ended.then(|| (status, body.to_vec())));
    };
    let length = std::str::from_utf8(length).ok().and_then(|t| t.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| unreadable("its length is no number".into()))?;
    Ok(body.get(..length).map(|body| (status, body.to_vec())))
}

fn envelope(status: u16, body: &[u8]) -> Result<Envelope> {
    let good = (200..300).contains(&status);
    if good && body.is_empty() {
        return Ok(Envelope::default());
    }
    match serde_json::from_slice(body) {
        Ok(envelope) => Ok(envelope),
        Err(e) if good => Err(Error::BadAnswer(e.to_string())),
        Err(_) => Err(refusal(status, body)),
    }
}

fn refusal(status: u16, body: &[u8]) -> Error {
    let error = match serde_json::from_slice::<HttpError>(body) {
        Ok(said) => said.error,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    Error::Relay { status, error: protocol::text::visible(error.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_or_nothing() {
        let wire = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
        for cut in 0..wire.len() {
            assert!(parse(&wire[..cut], false).unwrap().is_none(), "complete at {cut}");
        }
        assert_eq!(parse(wire, false).unwrap(), Some((200, b"body".to_vec())));
        assert!(parse(&wire[..wire.len() - 1], true).unwrap().is_none());
        let unbounded = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(parse(unbounded, true).unwrap(), Some((204, Vec::new())));
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(parse(b"hello\r\n\r\n", false).is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", false).is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", false).is_err());
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(40));
        assert!(parse(many.as_bytes(), false).is_err());
    }

    #[test]
    fn the_body_decides_not_the_status() {
        let denied = br#"{"exitCode":10,"stdout":"","stderr":"denied by user\n"}"#;
        assert_eq!(envelope(500, denied).unwrap().exit_code, 10);
        assert_eq!(envelope(202, b"").unwrap(), Envelope::default());
        assert!(matches!(envelope(200, b"{}"), Err(Error::BadAnswer(_))));
        let error = envelope(401, br#"{"error":"unknown box token"}"#).unwrap_err();
        assert_eq!(error.to_string(), "relay returned 401: unknown box token");
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn tokens_have_one_form() {
        assert!(is_token(&"0a".repeat(32)));
        assert!(!is_token(&"0A".repeat(32)));
        assert!(!is_token(&"0a".repeat(31)));
        assert!(!is_token(""));
    }
}
