//! The way out of a box without a network, run as PID 1 runs it, with a stand-in for the host.

use crate::support::{LIMIT, Running, TestBox, said};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// A box's proxy, and the port it is at.
struct Proxy {
    at: TestBox,
    port: u16,
    _running: Running,
}

impl Proxy {
    fn start() -> Self {
        let at = TestBox::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = at.ctl(&["egress", "serve"]);
        let running =
            Running(command.env("AGENTBOX_PROXY_PORT", port.to_string()).spawn().unwrap());
        let end = Instant::now() + LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "nobody listens");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { at, port, _running: running }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// What a program is told that asks for something.
    fn asks(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Serves the host's socket.
    fn host(&self, serve: impl Fn(UnixStream) + Send + Sync + 'static) {
        let listener = UnixListener::bind(self.at.path("host/egress.sock")).unwrap();
        let serve = std::sync::Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
    }
}

fn is_refusal(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 503 ")
        && answer.contains("\r\nX-AgentBox-Reason: policy_unavailable\r\n")
        && answer.contains("\r\nRetry-After: 5\r\n")
}

#[test]
fn egress_12_50_without_the_host_every_request_gets_an_answer_with_the_reason() {
    let proxy = Proxy::start();
    for request in [
        &b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"[..],
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    ] {
        let answer = proxy.asks(request);
        assert!(is_refusal(&answer), "{answer}");
    }
    // A body that is still on its way does not lose the answer.
    let mut long =
        b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 999999\r\n\r\n"
            .to_vec();
    long.extend(vec![b'x'; 500_000]);
    let mut stream = proxy.connect();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || drop(writer.write_all(&long)));
    let mut answer = vec![0; 64];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 503 "));
    drop(stream);
    writing.join().unwrap();
}

#[test]
fn a_host_that_takes_a_connection_and_says_nothing_is_no_host() {
    let proxy = Proxy::start();
    proxy.host(drop);
    let answer = proxy.asks(b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert!(is_refusal(&answer), "{answer}");
}

#[test]
fn bytes_travel_both_ways_as_they_are_and_much_of_them() {
    let proxy = Proxy::start();
    proxy.host(|mut stream| {
        let mut back = stream.try_clone().unwrap();
        std::io::copy(&mut stream, &mut back).unwrap();
        back.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let bytes: Vec<u8> =
        (0..8_000_000_u32).map(|n| n.to_be_bytes()[2] ^ n.to_be_bytes()[3]).collect();
    let mut stream = proxy.connect();
    let mut writer = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    assert!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
}

#[test]
fn a_host_that_comes_back_is_used_again() {
    let proxy = Proxy::start();
    assert!(is_refusal(&proxy.asks(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n")));
    proxy.host(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    });
    let answer = proxy.asks(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.ends_with("hi"), "{answer}");
}

#[test]
fn connections_beyond_the_limit_are_told_so_and_room_comes_back() {
    let proxy = Proxy::start();
    proxy.host(|mut stream| {
        let _ = stream.write_all(b"!");
        let _ = stream.read(&mut [0; 1]);
    });
    let mut open = Vec::new();
    let full = loop {
        let mut stream = proxy.connect();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        if first == *b"!" {
            open.push(stream);
            assert!(open.len() <= 200, "there is no limit");
            continue;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        break answer;
    };
    assert!(full.starts_with("TTP/1.1 429 ") && full.contains("too_many_connections"), "{full}");
    assert!(open.len() > 150, "{}", open.len());
    drop(open);
    let end = Instant::now() + LIMIT;
    loop {
        let mut first = [0];
        let _ = proxy.connect().read(&mut first);
        if first == *b"!" {
            break;
        }
        assert!(Instant::now() < end, "nobody makes room");
    }
}

#[test]
fn a_test_says_what_it_found_in_one_line_of_json() {
    let at = TestBox::new();
    // This computer has a network, so something is found; what exactly is its own affair.
    let mut command = at.ctl(&["egress", "selftest"]);
    let wanted = br#"{"addresses":["127.0.0.1"],"proxy":false}"#;
    let (said, _) = crate::support::run(&mut command, wanted);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let tested: protocol::ctl::Tested = serde_json::from_str(&said.stdout).unwrap();
    assert!(tested.open.iter().any(|line| line.contains("127.0.0.1:22")), "{tested:?}");
    assert!(tested.missing.is_empty());
}

#[test]
fn what_nobody_knows_is_refused() {
    let at = TestBox::new();
    assert_eq!(said(&mut at.ctl(&["egress", "nosuch"])).code, 64);
    assert_eq!(said(&mut at.ctl(&["bridge", "nosuch"])).code, 64);
}
