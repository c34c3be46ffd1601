//! `forward` with real sockets.

use crate::support::TestBox;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

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
