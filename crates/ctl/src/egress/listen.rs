//! `agentbox-ctl egress serve` (box user, kept alive by PID 1): the proxy that programs in a box without
//! a network are told about.
//!
//! It carries each connection to the host's socket and looks at nothing. When the host is not there, it
//! says so itself, in the words the host would use: a program then gets an answer and not silence, and
//! no other way out appears.

use crate::error::{Doing, Result};
use crate::forward::carry;
use crate::places;
use protocol::bridge::Service;
use protocol::egress::Reason;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MAX_CONNECTIONS: usize = 200;
const MAX_HEAD: usize = 64 * 1024;
/// For whoever gets no more than a refusal: to say what it wants, and to hear why not.
const REFUSAL: Duration = Duration::from_secs(5);
/// How long a program may be silent after the host has said everything.
const LINGER: Duration = Duration::from_secs(30);
/// After a connection could not be taken, for want of something.
const PAUSE: Duration = Duration::from_millis(100);
/// A thread here only carries bytes.
const STACK: usize = 64 * 1024;

struct Door {
    host: PathBuf,
    open: AtomicUsize,
}

pub fn run() -> Result<i32> {
    let port = places::proxy_port();
    let listen = |address: IpAddr| TcpListener::bind(SocketAddr::from((address, port)));
    let first = listen(Ipv4Addr::LOCALHOST.into()).doing(|| format!("listen on port {port}"))?;
    let door = Arc::new(Door { host: places::socket(Service::Egress), open: AtomicUsize::new(0) });
    // Kernels without the newer protocol have no such address.
    if let Ok(second) = listen(Ipv6Addr::LOCALHOST.into()) {
        let door = door.clone();
        std::thread::spawn(move || serve(&door, &second));
    }
    serve(&door, &first);
    Ok(protocol::exit::OK)
}

fn serve(door: &Arc<Door>, socket: &TcpListener) {
    loop {
        let Ok((stream, _)) = socket.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if door.open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            door.open.fetch_sub(1, Ordering::AcqRel);
            let _ = (&stream).write_all(&refusal(Reason::TooManyConnections));
            continue;
        }
        let here = door.clone();
        let carried = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let _ = pass(&here.host, stream);
            here.open.fetch_sub(1, Ordering::AcqRel);
        });
        if carried.is_err() {
            door.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn pass(host: &Path, mut program: TcpStream) -> io::Result<()> {
    let _ = program.set_nodelay(true);
    let Ok(mut out) = UnixStream::connect(host) else { return refuse(program) };
    let (mut from, mut to) = (program.try_clone()?, out.try_clone()?);
    let up = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let _ = carry(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    })?;
    // A host that goes away between accepting and answering says nothing at all.
    let mut first = [0; 4096];
    let answered = out.read(&mut first).unwrap_or(0);
    if answered == 0 {
        let _ = out.shutdown(Shutdown::Both);
        let _ = program.write_all(&refusal(Reason::PolicyUnavailable));
        return farewell(&mut program);
    }
    program.write_all(&first[..answered])?;
    let down = carry(&mut out, &mut program);
    if down.is_ok() {
        program.shutdown(Shutdown::Write)?;
        // What it still says is of interest as long as the host takes it, and it says something.
        program.set_read_timeout(Some(LINGER))?;
        let _ = up.join();
    }
    let _ = program.shutdown(Shutdown::Both);
    let _ = out.shutdown(Shutdown::Both);
    Ok(())
}

/// Nobody is there who could decide, so the answer is no, with the reason.
fn refuse(mut program: TcpStream) -> io::Result<()> {
    read_head(&mut program)?;
    program.write_all(&refusal(Reason::PolicyUnavailable))?;
    farewell(&mut program)
}

/// Whatever is still coming is taken, for a while: closing over it would lose the answer on its way.
fn farewell(program: &mut TcpStream) -> io::Result<()> {
    program.shutdown(Shutdown::Write)?;
    program.set_read_timeout(Some(REFUSAL))?;
    let end = Instant::now() + REFUSAL;
    let mut nowhere = [0; 4096];
    while Instant::now() < end && program.read(&mut nowhere)? > 0 {}
    Ok(())
}

fn read_head(program: &mut TcpStream) -> io::Result<()> {
    program.set_read_timeout(Some(REFUSAL))?;
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let read = program.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    Ok(())
}

fn refusal(reason: Reason) -> Vec<u8> {
    let (status, said, more) = match reason {
        Reason::TooManyConnections => {
            ("429 Too Many Requests", "this box has too many connections open", "")
        }
        _ => (
            "503 Service Unavailable",
            "AgentBox on the host does not answer, so nothing may go out",
            "Retry-After: 5\r\n",
        ),
    };
    let code = reason.code();
    let text = format!(
        "Blocked by AgentBox egress policy: {said}\nreason: {code}\n\
         hint: it is not this program's fault; try again in a moment\n"
    );
    format!(
        "HTTP/1.1 {status}\r\nX-AgentBox-Egress: blocked\r\nX-AgentBox-Reason: {code}\r\n{more}\
         Cache-Control: no-store\r\nContent-Type: text/plain\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_answer_with_a_reason() {
        for (reason, status, again) in
            [(Reason::PolicyUnavailable, 503, Some("5")), (Reason::TooManyConnections, 429, None)]
        {
            let bytes = refusal(reason);
            let mut fields = [httparse::EMPTY_HEADER; 16];
            let mut answer = httparse::Response::new(&mut fields);
            let head = answer.parse(&bytes).unwrap().unwrap();
            assert_eq!(answer.code, Some(status));
            let of = |name: &str| {
                let field = answer.headers.iter().find(|f| f.name.eq_ignore_ascii_case(name));
                field.map(|f| std::str::from_utf8(f.value).unwrap())
            };
            assert_eq!(of("X-AgentBox-Reason"), Some(reason.code()));
            assert_eq!(of("Retry-After"), again);
            assert_eq!(of("Content-Length"), Some((bytes.len() - head).to_string().as_str()));
        }
    }
}
