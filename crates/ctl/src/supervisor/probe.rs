//! Looks again and again whether a service is ready, until it is or nobody wants to know any more.
//!
//! What counts as too late is decided elsewhere; here somebody only looks, more slowly once it was.
//! A redirect is an answer like any other. The surprising thing: a port that answers may be held by
//! a process that was left over, so it counts only when the unit's own processes listen on it.

use super::engine::{Event, Run};
use super::listeners::{self, Whose};
use super::log::UnitLog;
use super::unit::Pace;
use nix::unistd::Pid;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::time::Duration;

const HTTP_LIMIT: Duration = Duration::from_secs(2);
/// The least time between two looks at an unhealthy service.
const SLOW: Duration = Duration::from_secs(2);
/// An answer's first line and headers.
const MAX_HEAD: usize = 64 * 1024;

/// Ends the looking when dropped.
pub struct Looking {
    _end: Sender<()>,
    slow: Arc<AtomicBool>,
}

impl Looking {
    /// It is too late already; take your time.
    pub fn slow_down(&self) {
        self.slow.store(true, Ordering::Relaxed);
    }
}

/// What is looked at.
#[derive(Debug, Clone)]
pub enum Target {
    Port { host: Option<String>, port: u16 },
    Http { url: Url, expect: Option<u16> },
}

pub struct Look {
    pub run: Run,
    pub group: Pid,
    pub target: Target,
    pub pace: Pace,
    /// Sockets that were there before the unit.
    pub before: Vec<u64>,
    pub log: Arc<UnitLog>,
    /// Somebody else listens for it: a container's ports are its engine's.
    pub by_engine: bool,
    pub tell: Sender<Event>,
}

/// Starts looking, in a thread of its own.
pub fn start(look: Look) -> io::Result<Looking> {
    let (end, ended) = channel();
    let slow = Arc::new(AtomicBool::new(false));
    let looking = Looking { _end: end, slow: slow.clone() };
    super::thread("probe", move || look.go_on(&ended, &slow))?;
    Ok(looking)
}

impl Look {
    fn go_on(self, ended: &Receiver<()>, slow: &AtomicBool) {
        let wait = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        let mut said = false;
        if !wait(self.pace.delay) {
            return;
        }
        loop {
            if self.answers() && self.is_ours(&mut said) {
                let _ = self.tell.send(Event::ProbeSucceeded(self.run.clone()));
                return;
            }
            let least = if slow.load(Ordering::Relaxed) { SLOW } else { Duration::ZERO };
            if !wait(self.pace.interval.max(least)) {
                return;
            }
        }
    }

    fn answers(&self) -> bool {
        match &self.target {
            Target::Port { host, port } => {
                let limit = (self.pace.interval * 2)
                    .clamp(Duration::from_millis(500), Duration::from_secs(5));
                connect(host.as_deref(), *port, limit).is_ok()
            }
            Target::Http { url, expect } => {
                let status = if url.secure { self.ask_curl(url) } else { get(url).ok() };
                match (status, expect) {
                    (Some(status), Some(expected)) => status == *expected,
                    (Some(status), None) => (200..300).contains(&status),
                    (None, _) => false,
                }
            }
        }
    }

    fn is_ours(&self, said: &mut bool) -> bool {
        if self.by_engine {
            return true;
        }
        let (host, port) = match &self.target {
            Target::Port { host, port } => (host.as_deref(), *port),
            Target::Http { url, .. } => (Some(url.host.as_str()), url.port),
        };
        if !matches!(host, None | Some("127.0.0.1" | "localhost" | "::1" | "[::1]" | "0.0.0.0")) {
            return true;
        }
        let by = match listeners::whose(port, &self.run.unit, self.group, &self.before) {
            Whose::Ours => return true,
            Whose::Other(pid) => format!("pid {pid}"),
            Whose::Before => "another process".to_owned(),
        };
        if !std::mem::replace(said, true) {
            self.log.note(&format!("port {port} already in use by {by}"));
        }
        false
    }

    /// Encrypted pages are asked for by the box's own curl. Nobody but the main thread waits for
    /// children, so it is the one to start it.
    fn ask_curl(&self, url: &Url) -> Option<u16> {
        let (mut output, input) = io::pipe().ok()?;
        let mut command = Command::new("curl");
        command.args(["-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "2"]);
        command.args(["--noproxy", "*", "--", &url.text]);
        command.stdin(Stdio::null()).stdout(input).stderr(Stdio::null());
        self.tell.send(Event::Helper(Box::new(command))).ok()?;
        let mut text = String::new();
        output.by_ref().take(100).read_to_string(&mut text).ok()?;
        text.trim().parse().ok().filter(|status| *status > 0)
    }
}

/// The parts of an address that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub text: String,
    pub secure: bool,
    pub host: String,
    pub port: u16,
    pub path: String,
}

impl Url {
    pub fn parse(text: &str) -> Option<Self> {
        let (secure, rest) = match text.split_once("://")? {
            ("http", rest) => (false, rest),
            ("https", rest) => (true, rest),
            _ => return None,
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let usual = if secure { 443 } else { 80 };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (place, usual),
        };
        let plain = |c: char| !c.is_control() && c != ' ';
        let good = !host.is_empty() && (path.clone() + host).chars().all(plain);
        good.then(|| Self { text: text.to_owned(), secure, host: host.to_owned(), port, path })
    }
}

/// On the box's own loopback, in both its forms, when no host is given.
pub fn connect(host: Option<&str>, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let hosts: &[&str] = match &host {
        None | Some("localhost") => &["127.0.0.1", "::1"],
        Some(host) => &[host.trim_start_matches('[').trim_end_matches(']')],
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for host in hosts {
        let found: Vec<SocketAddr> = match (*host, port).to_socket_addrs() {
            Ok(found) => found.collect(),
            Err(e) => {
                last = e;
                continue;
            }
        };
        for address in found {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
    }
    Err(last)
}

/// The status of an answer.
fn get(url: &Url) -> io::Result<u16> {
    let mut stream = connect(Some(&url.host), url.port, HTTP_LIMIT)?;
    stream.set_read_timeout(Some(HTTP_LIMIT))?;
    stream.set_write_timeout(Some(HTTP_LIMIT))?;
    let host = if url.port == 80 { url.host.clone() } else { format!("{}:{}", url.host, url.port) };
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: agentbox\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        url.path
    );
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    let end = std::time::Instant::now() + HTTP_LIMIT;
    while head.len() < MAX_HEAD && std::time::Instant::now() < end {
        let read = stream.read(&mut buffer)?;
        head.extend_from_slice(&buffer[..read]);
        if let Some(status) = status(&head) {
            return Ok(status);
        }
        if read == 0 {
            break;
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Of the first line, once that is complete.
fn status(head: &[u8]) -> Option<u16> {
    let end = head.iter().position(|b| *b == b'\n')?;
    let line = std::str::from_utf8(&head[..end]).ok()?;
    let mut words = line.split_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/"))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn addresses_are_taken_apart() {
        let parts =
            |text: &str| Url::parse(text).map(|url| (url.secure, url.host, url.port, url.path));
        let local = |port, path: &str| Some((false, "127.0.0.1".to_owned(), port, path.to_owned()));
        assert_eq!(parts("http://127.0.0.1:3000/health?x=1#y"), local(3000, "/health?x=1"));
        assert_eq!(parts("http://127.0.0.1"), local(80, "/"));
        assert_eq!(parts("http://u:p@127.0.0.1?q"), local(80, "/?q"));
        assert_eq!(parts("https://[::1]:8443/"), Some((true, "[::1]".into(), 8443, "/".into())));
        assert_eq!(parts("http://[::1]/"), Some((false, "[::1]".into(), 80, "/".into())));
        for bad in ["", "ftp://x", "http://", "http://a b/", "http://x:99999/"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn yaml_13_30_both_loopbacks_are_tried() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
        let port = listener.local_addr().unwrap().port();
        assert!(connect(None, port, HTTP_LIMIT).is_ok());
        assert!(connect(Some("127.0.0.1"), port, HTTP_LIMIT).is_err());
    }

    #[test]
    fn yaml_13_31_a_redirect_is_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n").unwrap();
        });
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        assert_eq!(get(&url).unwrap(), 302);
        server.join().unwrap();
    }
}
