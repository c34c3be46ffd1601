//! `agentbox-ctl front <name>` (box user, kept alive by PID 1): the addresses a person knows, inside the
//! box.
//!
//! `http://<box>.localhost:1355` leads a browser on the host to this box's port 80. Browsers take any
//! name below localhost for the computer they run on, so here the same address leads to this program,
//! which passes it on to the same port. An app has one origin then, wherever it is looked at, and the
//! box needs no way to the host for that.
//!
//! It looks at the first head of a connection and carries bytes from then on. It knows the one box it
//! is in. The port is the host's, told in a file on tmpfs; when the host comes back with another one,
//! this program ends, and PID 1 starts it anew.

use crate::error::{Doing, Error, Result};
use crate::forward::{carry, connect};
use crate::places;
use inotify::{Inotify, WatchMask};
use protocol::BoxName;
use protocol::web::Host;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MAX_HEAD: usize = 64 * 1024;
const MAX_CONNECTIONS: usize = 128;
const HEAD: Duration = Duration::from_secs(30);
/// After a connection could not be taken, for want of something.
const PAUSE: Duration = Duration::from_millis(100);
/// A thread here only carries bytes.
const STACK: usize = 64 * 1024;

/// Whom this program answers for.
struct Front {
    name: BoxName,
    port: u16,
    open: AtomicUsize,
}

pub fn run(args: &[OsString]) -> Result<i32> {
    let name = match args {
        [name] => name.to_str().and_then(|name| name.parse().ok()),
        _ => None,
    };
    let name = name.ok_or_else(|| Error::Usage("front takes the box's name.".into()))?;
    let file = places::front();
    // Before the file is read: what comes meanwhile is news.
    let news = watch(&file)?;
    let port =
        told(&file).ok_or_else(|| Error::Failed(format!("no port in {}", file.display())))?;
    std::thread::spawn(move || end_with_the_port(news, &file, port));
    let front = Arc::new(Front { name, port, open: AtomicUsize::new(0) });
    let listen = |address: IpAddr| TcpListener::bind(SocketAddr::from((address, port)));
    let first = listen(Ipv4Addr::LOCALHOST.into()).doing(|| format!("listen on port {port}"))?;
    if let Ok(second) = listen(Ipv6Addr::LOCALHOST.into()) {
        let front = front.clone();
        std::thread::spawn(move || serve(&front, &second));
    }
    serve(&front, &first);
    Ok(protocol::exit::OK)
}

/// The port in the file the host has left.
fn told(file: &Path) -> Option<u16> {
    let text = std::fs::read_to_string(file).ok()?;
    text.trim().parse().ok().filter(|port| *port != 0)
}

fn watch(file: &Path) -> Result<Inotify> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let doing = || format!("watch {}", folder.display());
    let inotify = Inotify::init().doing(doing)?;
    inotify.watches().add(folder, WatchMask::MOVED_TO).doing(doing)?;
    Ok(inotify)
}

fn end_with_the_port(mut news: Inotify, file: &Path, port: u16) {
    let mut buffer = [0; 1024];
    while news.read_events_blocking(&mut buffer).is_ok() {
        if told(file) != Some(port) {
            std::process::exit(protocol::exit::OK);
        }
    }
}

fn serve(front: &Arc<Front>, socket: &TcpListener) {
    loop {
        let Ok((stream, _)) = socket.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if front.open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            front.open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let here = front.clone();
        let carried = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let _ = pass(&here, stream);
            here.open.fetch_sub(1, Ordering::AcqRel);
        });
        if carried.is_err() {
            front.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn pass(front: &Front, mut browser: TcpStream) -> io::Result<()> {
    browser.set_read_timeout(Some(HEAD))?;
    let head = read_head(&mut browser)?;
    browser.set_read_timeout(None)?;
    let Some(port) = front.port_of(&head) else {
        return browser.write_all(&answer("421 Misdirected Request", "no address of this box"));
    };
    let Ok(mut inside) = connect(port) else {
        let text = format!("nothing listens on port {port}");
        return browser.write_all(&answer("502 Bad Gateway", &text));
    };
    inside.write_all(&head)?;
    let (mut from, mut to) = (inside.try_clone()?, browser.try_clone()?);
    std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let _ = carry(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    })?;
    let _ = carry(&mut browser, &mut inside);
    inside.shutdown(Shutdown::Write)
}

impl Front {
    /// The port a request is for, by its Host header.
    fn port_of(&self, head: &[u8]) -> Option<u16> {
        let mut fields = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(head).ok()?;
        let mut hosts = request.headers.iter().filter(|f| f.name.eq_ignore_ascii_case("host"));
        let host = std::str::from_utf8(hosts.next()?.value).ok()?;
        let Host::Ours(meanings) = Host::read(host) else { return None };
        let ours = meanings.into_iter().find(|what| what.name == self.name)?;
        // A request to itself would come back here for ever.
        (hosts.next().is_none() && ours.port != self.port).then_some(ours.port)
    }
}

/// Everything up to the end of the head, and whatever came along with it.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut chunk)?;
        if read == 0 || head.len() + read > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    Ok(head)
}

fn answer(status: &str, text: &str) -> Vec<u8> {
    let length = text.len() + 1;
    let head = "Content-Type: text/plain\r\nConnection: close";
    format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_boxs_own_names_lead_anywhere() {
        let front = Front { name: "fix".parse().unwrap(), port: 1355, open: AtomicUsize::new(0) };
        let port = |hosts: &[&str]| {
            let hosts: String = hosts.iter().map(|h| format!("Host: {h}\r\n")).collect();
            front.port_of(format!("GET / HTTP/1.1\r\n{hosts}\r\n").as_bytes())
        };
        assert_eq!(port(&["fix.localhost:1355"]), Some(80));
        assert_eq!(port(&["3000-fix.localhost:1355"]), Some(3000));
        assert_eq!(port(&["fix.vnc.localhost"]), Some(6080));
        for no in ["other.localhost", "localhost:1355", "evil.com", "1355-fix.localhost"] {
            assert_eq!(port(&[no]), None, "{no}");
        }
        assert_eq!(port(&[]), None);
        assert_eq!(port(&["fix.localhost", "fix.localhost"]), None);
        assert_eq!(front.port_of(b"\x16\x03\x01\r\n\r\n"), None);
    }
}
