//! `forward` and `front` with real sockets.

use crate::support::{LIMIT, TestBox};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Instant;

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that says everything back in capitals, until the other side has said everything.
fn shouting(address: &str) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(read) = stream.read(&mut chunk)
                    && read > 0
                    && stream.write_all(&chunk[..read].to_ascii_uppercase()).is_ok()
                {
                }
            });
        }
    });
    port
}

#[test]
fn forward_carries_one_connection_by_pipes() {
    let at = TestBox::new();
    for address in ["127.0.0.1", "::1"] {
        let port = shouting(address);
        let mut command = at.ctl(&["forward", &port.to_string()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let (mut input, mut output) =
            (running.0.stdin.take().unwrap(), running.0.stdout.take().unwrap());
        let mut said = [0; 1];
        output.read_exact(&mut said).unwrap();
        assert_eq!(said, *b"+");
        for word in ["hello", "again"] {
            input.write_all(word.as_bytes()).unwrap();
            let mut back = vec![0; word.len()];
            output.read_exact(&mut back).unwrap();
            assert_eq!(back, word.to_uppercase().into_bytes());
        }
        drop(input);
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        assert!(running.0.wait().unwrap().success());
    }
}

#[test]
fn forward_says_when_nobody_listens() {
    let at = TestBox::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = at.ctl(&["forward", &free.to_string()]).output().unwrap();
    assert_eq!((output.status.success(), output.stdout), (false, vec![]));
    assert_eq!(at.ctl(&["forward", "0"]).output().unwrap().status.code(), Some(64));
}

#[test]
fn front_answers_for_the_box_it_is_in() {
    let at = TestBox::new();
    let inside = shouting("127.0.0.1");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = at.path("front");
    std::fs::write(&file, port.to_string()).unwrap();
    let mut command = at.ctl(&["front", "fix"]);
    let mut running = Running(command.env("AGENTBOX_FRONT_FILE", &file).spawn().unwrap());
    let ask = |host: &str| {
        let end = Instant::now() + LIMIT;
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(e) => assert!(Instant::now() < end, "{e}"),
            }
        };
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET /a HTTP/1.1\r\nHost: {host}\r\n\r\nmore").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let host = format!("{inside}-fix.localhost:{port}");
    assert_eq!(ask(&host), format!("GET /A HTTP/1.1\r\nHOST: {}\r\n\r\nMORE", host.to_uppercase()));
    for foreign in ["localhost", "evil.com", &format!("{inside}-other.localhost")] {
        assert!(ask(foreign).starts_with("HTTP/1.1 421"), "{foreign}");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(ask(&format!("{free}-fix.localhost")).starts_with("HTTP/1.1 502"));

    // The same port told again changes nothing; another one ends it, and PID 1 starts it anew.
    let tell = |port: u16| {
        std::fs::write(at.path("front.new"), port.to_string()).unwrap();
        std::fs::rename(at.path("front.new"), &file).unwrap();
    };
    tell(port);
    assert!(ask("localhost").starts_with("HTTP/1.1 421"));
    assert!(running.0.try_wait().unwrap().is_none());
    tell(free);
    let end = Instant::now() + LIMIT;
    while running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it goes on with the old port");
        std::thread::yield_now();
    }
}
