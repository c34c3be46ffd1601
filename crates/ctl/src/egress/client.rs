//! One request to the proxy itself: what it says under `egress.agentbox.internal`, asked the way any
//! program in the box asks for a page.

use crate::places;
use protocol::egress::inside::HOST;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const QUICK: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1024 * 1024;
const MAX_FIELDS: usize = 64;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// `X-AgentBox-Reason`.
    pub reason: Option<String>,
    pub body: Vec<u8>,
}

/// Something the proxy knows at once.
pub fn get(path: &str) -> io::Result<Answer> {
    exchange(&request("GET", path, b""), Some(QUICK), Kind::Page)
}

/// Something a person may have to decide: the answer takes as long as it takes.
pub fn post(path: &str, body: &[u8]) -> io::Result<Answer> {
    exchange(&request("POST", path, body), None, Kind::Page)
}

/// As part of a query. Everything but letters and digits is written as numbers.
pub fn quoted(text: &str) -> String {
    let one = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(one).collect()
}

/// Asks for a tunnel, and hangs up.
pub fn connect(authority: &str) -> io::Result<Answer> {
    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    exchange(head.as_bytes(), Some(QUICK), Kind::Tunnel)
}

fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} http://{HOST}{path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: application/json\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// What is asked for. A tunnel that is open has no body; what follows is its.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Tunnel,
}

fn exchange(request: &[u8], limit: Option<Duration>, kind: Kind) -> io::Result<Answer> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, places::proxy_port()));
    let mut stream = TcpStream::connect_timeout(&at, CONNECT)?;
    stream.set_read_timeout(limit)?;
    stream.write_all(request)?;
    let (mut got, mut chunk) = (Vec::new(), [0; 8192]);
    loop {
        let read = stream.read(&mut chunk)?;
        got.extend_from_slice(&chunk[..read]);
        if let Some(answer) = parse(&got, read == 0, kind)? {
            return Ok(answer);
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if got.len() > MAX_ANSWER {
            return Err(io::Error::other("the answer is too long"));
        }
    }
}

/// The answer, once it is complete.
fn parse(got: &[u8], ended: bool, kind: Kind) -> io::Result<Option<Answer>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let head = match response.parse(got).map_err(io::Error::other)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let field = |name: &str| {
        let found = response.headers.iter().find(|f| f.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let status = response.code.unwrap_or_default();
    let reason = field("x-agentbox-reason").map(protocol::text::visible);
    let body = &got[head..];
    let body = if kind == Kind::Tunnel && status == 200 {
        Some(Vec::new())
    } else if field("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        unchunked(body)?
    } else if let Some(length) = field("content-length") {
        let length: usize = length.parse().map_err(io::Error::other)?;
        body.get(..length).map(<[u8]>::to_vec)
    } else {
        ended.then(|| body.to_vec())
    };
    Ok(body.map(|body| Answer { status, reason, body }))
}

/// The chunks together; none while some are missing.
fn unchunked(mut rest: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let line = std::str::from_utf8(&rest[..end]).map_err(io::Error::other)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(Some(body));
        }
        if size > MAX_ANSWER {
            return Err(io::Error::other("the answer is too long"));
        }
        let Some(chunk) = rest.get(..size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(after) = rest.get(size + 2..) else { return Ok(None) };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(wire: &[u8]) -> Answer {
        for cut in 0..wire.len() {
            assert!(parse(&wire[..cut], false, Kind::Page).unwrap().is_none(), "complete at {cut}");
        }
        parse(wire, true, Kind::Page).unwrap().unwrap()
    }

    #[test]
    fn an_answer_is_complete_or_nothing() {
        let fixed = b"HTTP/1.1 403 Forbidden\r\nX-AgentBox-Reason: host_not_allowed\r\n\
            content-length: 4\r\n\r\nbody";
        let answer = whole(fixed);
        assert_eq!((answer.status, answer.body.as_slice()), (403, &b"body"[..]));
        assert_eq!(answer.reason.as_deref(), Some("host_not_allowed"));
        let chunked =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n";
        assert_eq!(whole(chunked).body, b"abcd");
        let closed = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\nlater";
        assert_eq!(parse(closed, true, Kind::Page).unwrap().unwrap().body, b"later");
        assert!(parse(closed, false, Kind::Page).unwrap().is_none());
    }

    #[test]
    fn nothing_in_a_query_can_end_it() {
        assert_eq!(quoted("a b&c=d#\r\n/é"), "a%20b%26c%3Dd%23%0D%0A%2F%C3%A9");
    }

    #[test]
    fn a_tunnel_is_an_answer_without_a_body() {
        let open = b"HTTP/1.1 200 Connection established\r\n\r\n";
        assert_eq!(parse(open, false, Kind::Tunnel).unwrap().unwrap().status, 200);
        assert!(parse(open, false, Kind::Page).unwrap().is_none());
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(parse(b"SSH-2.0-x\r\n\r\n", true, Kind::Page).is_err());
        assert!(
            parse(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", true, Kind::Page).is_err()
        );
        let endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffff\r\n";
        assert!(parse(endless, false, Kind::Page).is_err());
    }
}
