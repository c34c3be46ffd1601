//! The box's web address: port 80 leads to the one service that is exposed.
//!
//! Bytes pass as they are, so whatever is spoken over them works. While nobody answers, a browser
//! gets a small page that tries again. Nothing listens when nothing is exposed, so a project may use
//! the port itself.

use super::probe;
use super::status::Exposed;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::supervisor::WebProxy;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seconds between attempts to get the port; then the last one again and again.
const RETRIES: [u16; 4] = [1, 2, 5, 10];
const CONNECT: Duration = Duration::from_secs(5);
/// How long a browser may take for the first line.
const FIRST_LINE: Duration = Duration::from_secs(2);
const MOST: usize = 256;

pub struct Web {
    listen: u16,
    shared: Arc<Mutex<Shared>>,
    /// Closes the listener when dropped.
    running: Option<PipeWriter>,
}

#[derive(Default)]
struct Shared {
    exposed: Option<Exposed>,
    status: Option<WebProxy>,
}

impl Web {
    pub fn new(listen: u16) -> Self {
        Self { listen, shared: Arc::default(), running: None }
    }

    pub fn usual_port() -> u16 {
        let given = std::env::var("AGENTBOX_WEB_PROXY_PORT").ok().and_then(|p| p.parse().ok());
        given.unwrap_or(protocol::ctl::ports::WEB)
    }

    /// How the exposed service is now. Where it listens decides whether anything is done.
    pub fn say(&mut self, exposed: Option<Exposed>) {
        let before = lock(&self.shared).exposed.as_ref().map(|e| e.port);
        let target = exposed.as_ref().map(|e| e.port);
        lock(&self.shared).exposed = exposed;
        if before == target {
            return;
        }
        match target.filter(|target| *target != self.listen) {
            None => {
                self.running = None;
                lock(&self.shared).status = None;
            }
            Some(target) => {
                if let Some(status) = &mut lock(&self.shared).status {
                    status.target = target;
                }
                if self.running.is_none() {
                    self.start(target);
                }
            }
        }
    }

    pub fn status(&self) -> Option<WebProxy> {
        lock(&self.shared).status.clone()
    }

    pub fn close(&mut self) {
        self.say(None);
    }

    fn start(&mut self, target: u16) {
        let Ok((stop, running)) = io::pipe() else { return };
        let (listen, shared) = (self.listen, self.shared.clone());
        let state = "retrying".to_owned();
        lock(&shared).status = Some(WebProxy { listen, target, state, error: None });
        if super::thread("web", move || serve(listen, &shared, &stop)).is_ok() {
            self.running = Some(running);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(listen: u16, shared: &Arc<Mutex<Shared>>, stop: &PipeReader) {
    let mut tries = RETRIES.iter().chain(RETRIES.last().into_iter().cycle());
    let listener = loop {
        match TcpListener::bind((Ipv4Addr::UNSPECIFIED, listen)) {
            Ok(listener) => break listener,
            Err(e) => {
                say(shared, "retrying", Some(format!("cannot listen on port {listen}: {e}")));
                let pause = tries.next().copied().unwrap_or(10) * 1000;
                if stopped(stop, None, PollTimeout::from(pause)) {
                    return;
                }
            }
        }
    };
    say(shared, "listening", None);
    let open = Arc::new(AtomicUsize::new(0));
    while !stopped(stop, Some(&listener), PollTimeout::NONE) {
        let Ok((stream, _)) = listener.accept() else { continue };
        if open.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let exposed = lock(shared).exposed.clone();
        let counted = open.clone();
        let started = super::thread("web", move || {
            if let Some(exposed) = exposed {
                let _ = lead(stream, &exposed);
            }
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn say(shared: &Mutex<Shared>, state: &str, error: Option<String>) {
    if let Some(status) = &mut lock(shared).status {
        state.clone_into(&mut status.state);
        status.error = error;
    }
}

/// Waits for a connection or the end; whether it is the end.
fn stopped(stop: &PipeReader, listener: Option<&TcpListener>, limit: PollTimeout) -> bool {
    let mut fds = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
    fds.extend(listener.map(|l| PollFd::new(l.as_fd(), PollFlags::POLLIN)));
    let _ = poll(&mut fds, limit);
    fds.first().and_then(PollFd::any).unwrap_or(false)
}

fn lead(mut stream: TcpStream, to: &Exposed) -> io::Result<()> {
    let Ok(mut target) = probe::connect(None, to.port, CONNECT) else {
        return refuse(&mut stream, to);
    };
    let (mut from, mut into) = (target.try_clone()?, stream.try_clone()?);
    super::thread("web", move || {
        let _ = io::copy(&mut from, &mut into);
        // The other half may still be wanted.
        let _ = into.shutdown(Shutdown::Write);
    })?;
    let copied = io::copy(&mut stream, &mut target);
    let _ = target.shutdown(Shutdown::Write);
    copied.map(|_| ())
}

/// A browser gets a page; whoever speaks something else is left alone.
fn refuse(stream: &mut TcpStream, exposed: &Exposed) -> io::Result<()> {
    stream.set_read_timeout(Some(FIRST_LINE))?;
    stream.set_write_timeout(Some(FIRST_LINE))?;
    let mut got = Vec::new();
    let mut buffer = [0; 2048];
    while got.len() < 16 * 1024 && !got.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => break,
            read => got.extend_from_slice(&buffer[..read]),
        }
    }
    if is_http(&got) {
        stream.write_all(page(exposed).as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
    }
    Ok(())
}

fn is_http(begin: &[u8]) -> bool {
    let line = begin.split(|b| *b == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words.as_slice(), [method, _, version]
        if method.bytes().all(|b| b.is_ascii_uppercase()) && version.starts_with("HTTP/1."))
}

/// Names of services are letters, digits and dashes, so nothing needs escaping.
fn page(exposed: &Exposed) -> String {
    let (name, state, port) = (&exposed.service, exposed.state.as_str(), exposed.port);
    let body = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=1>\
         <title>{name}: {state}</title><style>body{{font:16px system-ui;margin:15vh auto;\
         max-width:32em;padding:0 1em;color-scheme:light dark}}</style>\
         <h1>{name} is {state}</h1><p>Nothing answers on port {port} of this box yet. This page \
         tries again by itself.</p><p><code>agentbox-ctl logs {name}</code> shows what it says.</p>\n"
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html; charset=utf-8\r\n\
         Content-Length: {}\r\nRetry-After: 1\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::supervisor::UnitState;
    use std::time::Instant;

    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    fn exposed(port: u16, state: UnitState) -> Exposed {
        Exposed { service: "web".into(), port, state }
    }

    fn ask(port: u16) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(e) => assert!(Instant::now() < end, "{e}"),
            }
        };
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn yaml_13_37_a_page_until_somebody_answers() {
        let (listen, target) = (free_port(), free_port());
        let mut web = Web::new(listen);
        web.say(Some(exposed(target, UnitState::Starting)));
        let answer = ask(listen);
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1\r\n"));
        assert!(answer.contains("web is starting"), "{answer}");
        assert_eq!(web.status().unwrap().state, "listening");
        let server = TcpListener::bind(("127.0.0.1", target)).unwrap();
        web.say(Some(exposed(target, UnitState::Ready)));
        let served = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            // The browser ends its half first.
            let mut got = String::new();
            stream.read_to_string(&mut got).unwrap();
            stream.write_all(b"all of it").unwrap();
            got
        });
        let mut stream = TcpStream::connect(("127.0.0.1", listen)).unwrap();
        stream.write_all(b"anything").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!((served.join().unwrap().as_str(), text.as_str()), ("anything", "all of it"));
        web.say(None);
        let end = Instant::now() + Duration::from_secs(20);
        while TcpListener::bind(("0.0.0.0", listen)).is_err() {
            assert!(Instant::now() < end, "the port is still held");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(web.status(), None);
    }

    #[test]
    fn a_port_that_is_taken_is_tried_again() {
        let held = TcpListener::bind("0.0.0.0:0").unwrap();
        let listen = held.local_addr().unwrap().port();
        let mut web = Web::new(listen);
        web.say(Some(exposed(free_port(), UnitState::Ready)));
        let end = Instant::now() + Duration::from_secs(20);
        while web.status().unwrap().error.is_none() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(held);
        while web.status().unwrap().state != "listening" {
            assert!(Instant::now() < end, "{:?}", web.status());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn only_http_gets_a_page() {
        assert!(is_http(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
        for bad in [&b""[..], b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n", b"get / HTTP/1.1"] {
            assert!(!is_http(bad));
        }
    }
}
