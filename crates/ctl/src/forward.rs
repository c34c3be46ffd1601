//! `agentbox-ctl forward <port>` (run by the host through the engine): one connection to a port on
//! the box's loopback, carried by standard input and output.
//!
//! It says [`READY`] when it is connected, so that the host can tell a port nobody listens on from a
//! program that says nothing. It ends with the program's side, or soon after the host's.

use crate::error::{Doing, Error, Result};
use protocol::ctl::FORWARD_READY as READY;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
/// How long the program may be silent after the host has said everything.
const LINGER: Duration = Duration::from_secs(5);
const CHUNK: usize = 32 * 1024;

pub fn run(args: &[OsString]) -> Result<i32> {
    let port = match args {
        [port] => port.to_str().and_then(|p| p.parse().ok()).filter(|p| *p != 0),
        _ => None,
    };
    let port = port.ok_or_else(|| Error::Usage("forward takes one port.".into()))?;
    let stream = connect(port).doing(|| format!("connect to port {port}"))?;
    let mut out = io::stdout();
    out.write_all(&[READY]).and_then(|()| out.flush()).doing(|| "greet the host")?;
    let _ = stream.set_nodelay(true);
    let mut towards = stream.try_clone().doing(|| "copy a connection")?;
    std::thread::spawn(move || {
        let _ = carry(&mut io::stdin().lock(), &mut towards);
        let _ = towards.set_read_timeout(Some(LINGER));
        let _ = towards.shutdown(Shutdown::Write);
    });
    // However it ends, the host sees the end of our output.
    let _ = carry(&mut &stream, &mut out.lock());
    Ok(protocol::exit::OK)
}

/// Programs listen on one of the two loopback addresses, or on both.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    let to =
        |address: IpAddr| TcpStream::connect_timeout(&SocketAddr::from((address, port)), CONNECT);
    to(Ipv4Addr::LOCALHOST.into()).or_else(|_| to(Ipv6Addr::LOCALHOST.into()))
}

/// Each piece as it comes: a frame of a WebSocket must not wait for the next one.
pub fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read == 0 {
            return Ok(());
        }
        to.write_all(&chunk[..read])?;
        to.flush()?;
    }
}
