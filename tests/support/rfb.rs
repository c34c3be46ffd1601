//! A viewer for a box's screen, as far as the greeting: WebSocket, then the protocol of the screen.

use base64::Engine as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The screen's size, when the password was the right one; else what the server said.
pub fn greet(port: u16, password: &str) -> Result<(u16, u16), String> {
    let mut screen = WebSocket::open(port)?;
    let version = screen.read(12)?;
    if version != b"RFB 003.008\n" {
        return Err(format!("no screen: {version:?}"));
    }
    screen.write(&version)?;
    let count = screen.read(1)?[0];
    let kinds = screen.read(count.into())?;
    if kinds != [2] {
        return Err(format!("it asks for {kinds:?} instead of a password"));
    }
    screen.write(&[2])?;
    let challenge = screen.read(16)?;
    screen.write(&des(reversed(password), &challenge, &[]))?;
    if screen.read(4)? != [0; 4] {
        return Err("refused".to_owned());
    }
    // Others may watch, too.
    screen.write(&[1])?;
    let size = screen.read(4)?;
    Ok((u16::from_be_bytes([size[0], size[1]]), u16::from_be_bytes([size[2], size[3]])))
}

/// The password in a file as the screen's server keeps it.
pub fn unscrambled(file: &[u8]) -> String {
    // Part of the format: it hides the password from a glance, not from anybody who wants it.
    let key = [0xe8, 0x4a, 0xd6, 0x60, 0xc4, 0x72, 0x1a, 0xe0];
    String::from_utf8(des(key, file, &["-d"])).unwrap().trim_end_matches('\0').to_owned()
}

/// The protocol counts the bits of its keys from the other end.
fn reversed(password: &str) -> [u8; 8] {
    let mut key = [0; 8];
    for (byte, letter) in key.iter_mut().zip(password.bytes()) {
        *byte = letter.reverse_bits();
    }
    key
}

fn des(key: [u8; 8], data: &[u8], more: &[&str]) -> Vec<u8> {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new("openssl");
    command.args(["enc", "-des-ecb", "-nopad", "-provider", "legacy", "-provider", "default"]);
    command.args(["-K", &key]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("openssl");
    child.stdin.take().unwrap().write_all(data).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

struct WebSocket {
    stream: TcpStream,
    /// What has come and was not asked for yet.
    rest: Vec<u8>,
}

impl WebSocket {
    fn open(port: u16) -> Result<Self, String> {
        let failed = |e: std::io::Error| e.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(failed)?;
        let key = base64::engine::general_purpose::STANDARD.encode([7; 16]);
        let request = format!(
            "GET /websockify HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: binary\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).map_err(failed)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        if !head.starts_with("HTTP/1.1 101 ") {
            return Err(head);
        }
        Ok(Self { stream, rest: Vec::new() })
    }

    fn read(&mut self, count: usize) -> Result<Vec<u8>, String> {
        while self.rest.len() < count {
            let frame = self.frame().map_err(|e| e.to_string())?;
            self.rest.extend(frame);
        }
        Ok(self.rest.drain(..count).collect())
    }

    fn frame(&mut self) -> std::io::Result<Vec<u8>> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        if head[0] & 0x0f == 8 {
            return Err(std::io::Error::other("it hung up"));
        }
        let length = match head[1] & 0x7f {
            126 => {
                let mut more = [0; 2];
                self.stream.read_exact(&mut more)?;
                usize::from(u16::from_be_bytes(more))
            }
            127 => return Err(std::io::Error::other("a frame that is far too large")),
            short => usize::from(short),
        };
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }

    /// Short frames only; a mask of zeros is a mask.
    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let length = u8::try_from(bytes.len()).unwrap();
        assert!(length < 126);
        let frame = [&[0x82, 0x80 | length, 0, 0, 0, 0], bytes].concat();
        self.stream.write_all(&frame).map_err(|e| e.to_string())
    }
}
