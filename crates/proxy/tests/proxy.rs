//! The proxy with real sockets on both sides: a browser's, and a program's in a “box”.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_proxy::{BoxFuture, Boxes, Listening, Proxy, Wire};
use protocol::boxes::BoxState;
use protocol::{BoxId, BoxName};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
struct Fleet {
    boxes: Mutex<HashMap<BoxName, (BoxId, BoxState)>>,
    ports: Mutex<HashMap<(BoxId, u16), u16>>,
    ticket: Mutex<Option<(BoxId, String)>>,
    woken: AtomicUsize,
    made: AtomicUsize,
}

impl Boxes for Fleet {
    fn find(&self, name: &BoxName) -> Option<(BoxId, BoxState)> {
        self.boxes.lock().unwrap().get(name).cloned()
    }

    fn wake<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.woken.fetch_add(1, Ordering::SeqCst);
            for (other, state) in self.boxes.lock().unwrap().values_mut() {
                if other == id {
                    *state = BoxState::Running;
                }
            }
            Ok(())
        })
    }

    fn redeem(&self, id: &BoxId, ticket: &str) -> Option<String> {
        let wanted = self.ticket.lock().unwrap().take_if(|(of, text)| of == id && text == ticket);
        wanted.map(|_| "/vnc.html#password=x".to_owned())
    }

    fn connect<'a>(&'a self, id: &'a BoxId, port: u16) -> BoxFuture<'a, io::Result<Wire>> {
        Box::pin(async move {
            self.made.fetch_add(1, Ordering::SeqCst);
            let port = self.ports.lock().unwrap().get(&(id.clone(), port)).copied();
            let port = port.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(Wire::new(TcpStream::connect(("127.0.0.1", port)).await?))
        })
    }
}

struct Desk {
    fleet: Arc<Fleet>,
    port: u16,
    proxy: Proxy,
    stop: CancellationToken,
}

impl Desk {
    /// Waits until a box has so many open requests.
    async fn holds(&self, id: &BoxId, count: usize) {
        let reached = async {
            while self.proxy.open(id) != count {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), reached).await;
        assert!(waited.is_ok(), "{} open, not {count}", self.proxy.open(id));
    }

    async fn new() -> Self {
        let (fleet, stop) = (Arc::new(Fleet::default()), CancellationToken::new());
        let listening = Listening::bind(0).await.unwrap();
        let port = listening.port();
        let proxy = Proxy::new(fleet.clone(), stop.clone());
        let serving = proxy.clone();
        tokio::spawn(async move { serving.serve(listening).await });
        Self { fleet, port, proxy, stop }
    }

    fn add(&self, name: &str, state: BoxState) -> BoxId {
        let count = self.fleet.boxes.lock().unwrap().len();
        let id: BoxId = format!("b{count:08x}").parse().unwrap();
        self.fleet.boxes.lock().unwrap().insert(name.parse().unwrap(), (id.clone(), state));
        id
    }

    /// A program on a port of a box, made if it is not there.
    async fn program<F>(&self, name: &str, port: u16, program: fn(TcpStream) -> F) -> BoxId
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let known = self.fleet.boxes.lock().unwrap().get(&name.parse().unwrap()).cloned();
        let id = known.map_or_else(|| self.add(name, BoxState::Running), |(id, _)| id);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let real = listener.local_addr().unwrap().port();
        self.fleet.ports.lock().unwrap().insert((id.clone(), port), real);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(program(stream));
            }
        });
        id
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// One request on a connection of its own; everything that came back.
    async fn say(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        let read = stream.read_to_end(&mut all);
        tokio::time::timeout(Duration::from_secs(10), read).await.expect("an end").unwrap();
        String::from_utf8_lossy(&all).into_owned()
    }

    async fn get(&self, host: &str, more: &str) -> String {
        self.say(&format!("GET /x?y=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"))
            .await
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A request's head.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut all = Vec::new();
    while !all.ends_with(b"\r\n\r\n") {
        all.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(all).unwrap())
}

/// Answers with the head it got, for as long as it is asked.
async fn echo(mut stream: TcpStream) {
    while let Some(head) = head(&mut stream).await {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn names_lead_to_the_ports_of_their_boxes() {
    let desk = Desk::new().await;
    desk.program("fix", 80, echo).await;
    desk.program("fix", 6080, |mut s: TcpStream| async move {
        head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nscreen").await;
    })
    .await;
    desk.program("fix", 3000, |mut s: TcpStream| async move {
        head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.0 201 Made\r\n\r\nby port").await;
    })
    .await;
    let web = desk.get("fix.localhost:1355", "X-Forwarded-Proto: gopher\r\nUpgrade: h2c\r\n").await;
    assert!(web.starts_with("HTTP/1.1 200 OK\r\n"), "{web}");
    assert!(web.contains("GET /x?y=1 HTTP/1.1\r\n"), "{web}");
    let web = web.to_lowercase();
    for there in
        ["host: fix.localhost:1355", "x-forwarded-proto: http", "x-forwarded-for: 127.0.0.1"]
    {
        assert!(web.contains(&format!("\r\n{there}\r\n")), "{there}: {web}");
    }
    assert!(!web.contains("h2c") && web.contains("\r\nforwarded: for=127.0.0.1;host="), "{web}");
    for name in ["fix.vnc.localhost", "vnc-fix.localhost:1355"] {
        assert!(desk.get(name, "").await.ends_with("screen"));
    }
    let other = desk.get("3000-fix.localhost:1355", "").await;
    assert!(other.starts_with("HTTP/1.1 201") && other.contains("by port"), "{other}");
    assert!(desk.get("9999-fix.localhost", "").await.starts_with("HTTP/1.1 502"));
}

#[tokio::test]
async fn only_names_of_boxes_are_answered_for() {
    let desk = Desk::new().await;
    desk.program("fix", 80, echo).await;
    for foreign in ["localhost:1355", "127.0.0.1:1355", "evil.com", "fix.localhost.evil.com"] {
        let answer = desk.get(foreign, "").await;
        assert!(answer.starts_with("HTTP/1.1 421"), "{foreign}: {answer}");
        assert!(!answer.contains("fix."), "{answer}");
    }
    let unknown = desk.get("other.localhost:1355", "Accept: text/html\r\n").await;
    assert!(
        unknown.starts_with("HTTP/1.1 404") && unknown.contains("<!doctype html>"),
        "{unknown}"
    );
    assert!(!unknown.contains("fix"), "{unknown}");
    for bad in [
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: fix.localhost\r\nHost: fix.localhost\r\nConnection: close\r\n\r\n",
        "GET http://evil.com/ HTTP/1.1\r\nHost: fix.localhost\r\nConnection: close\r\n\r\n",
    ] {
        let answer = desk.say(bad).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{bad}: {answer}");
    }
    let tunnel = desk.say("CONNECT fix.localhost:22 HTTP/1.1\r\nHost: fix.localhost:22\r\nConnection: close\r\n\r\n").await;
    assert!(tunnel.starts_with("HTTP/1.1 405"), "{tunnel}");
}

#[tokio::test]
async fn a_page_of_one_box_cannot_reach_another_through_the_browser() {
    let desk = Desk::new().await;
    desk.program("fix", 80, echo).await;
    desk.program("fix", 3000, echo).await;
    desk.program("evil", 80, echo).await;
    desk.program("3000-fix2", 80, echo).await;
    desk.program("fix2", 80, echo).await;
    let from = async |host: &str, origin: &str| {
        let answer = desk.get(host, &format!("Origin: {origin}\r\n")).await;
        answer[9..12].to_owned()
    };
    assert_eq!(from("fix.localhost:1355", "http://evil.localhost:1355").await, "403");
    assert_eq!(from("fix.localhost:1355", "https://example.com").await, "403");
    assert_eq!(from("fix.localhost:1355", "http://3000-fix.localhost:1355").await, "200");
    // Another box's own port answers to any box's name.
    assert_eq!(from("fix.localhost:1355", "http://fix.localhost:32768").await, "403");
    assert_eq!(
        from("fix2.localhost", "http://3000-fix2.localhost").await,
        "403",
        "a box of that name"
    );
    assert_eq!(from("nobody.localhost", "http://evil.localhost:1355").await, "403");
    let script = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
    assert!(desk.get("fix.localhost", script).await.starts_with("HTTP/1.1 403"));
    let visit = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert!(desk.get("fix.localhost", visit).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn screens_share_no_cookies_and_web_apps_keep_their_own() {
    let desk = Desk::new().await;
    for port in [80, 6080] {
        desk.program("fix", port, |mut s: TcpStream| async move {
            let asked = head(&mut s).await.unwrap_or_default();
            let cookie = asked.to_lowercase().contains("cookie: a=1");
            let answer =
                "HTTP/1.1 200 OK\r\nSet-Cookie: b=2; Domain=vnc.localhost\r\nContent-Length: 4";
            let body = if cookie { "some" } else { "none" };
            let _ = s.write_all(format!("{answer}\r\n\r\n{body}").as_bytes()).await;
        })
        .await;
    }
    let web = desk.get("fix.localhost:1355", "Cookie: a=1\r\n").await;
    assert!(web.ends_with("some") && web.to_lowercase().contains("set-cookie: b=2\r\n"), "{web}");
    for name in ["fix.vnc.localhost:1355", "vnc-fix.localhost", "6080-fix.localhost"] {
        let screen = desk.get(name, "Cookie: a=1\r\n").await;
        assert!(screen.ends_with("none"), "{screen}");
        assert!(!screen.to_lowercase().contains("set-cookie"), "{screen}");
    }
}

#[tokio::test]
async fn a_browser_forgets_what_a_box_that_is_gone_left_there() {
    let desk = Desk::new().await;
    desk.add("fix", BoxState::Stopped);
    let forgets = async |name: &str, more: &str| {
        let answer = desk.get(name, more).await.to_lowercase();
        answer.contains("\r\nclear-site-data: \"*\"\r\n")
    };
    assert!(forgets("gone.localhost:1355", "").await);
    assert!(forgets("gone.vnc.localhost:1355", "").await);
    // Nothing of a box that is there, and nothing at the wish of another page.
    assert!(!forgets("fix.localhost:1355", "").await);
    assert!(!forgets("gone.localhost:1355", "Origin: https://example.com\r\n").await);
    assert!(!forgets("localhost:1355", "").await);
}

#[tokio::test]
async fn frozen_boxes_are_woken_and_stopped_ones_say_so() {
    let desk = Desk::new().await;
    desk.program("fix", 80, echo).await;
    desk.fleet.boxes.lock().unwrap().values_mut().for_each(|b| b.1 = BoxState::Paused);
    assert!(desk.get("fix.localhost", "").await.starts_with("HTTP/1.1 200"));
    assert_eq!(desk.fleet.woken.load(Ordering::SeqCst), 1);
    desk.fleet.boxes.lock().unwrap().values_mut().for_each(|b| b.1 = BoxState::Stopped);
    let stopped = desk.get("fix.localhost", "Accept: text/html,*/*\r\n").await;
    assert!(stopped.starts_with("HTTP/1.1 503"), "{stopped}");
    assert!(stopped.contains("<pre>agentbox start fix</pre>"), "{stopped}");
    assert_eq!(desk.fleet.woken.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let desk = Desk::new().await;
    desk.program("fix", 80, echo).await;
    let mut stream = desk.connect().await;
    for _ in 0..20 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: fix.localhost\r\n\r\n").await.unwrap();
        let answer = head(&mut stream).await.unwrap().to_lowercase();
        let length = answer.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
    }
    assert_eq!(desk.fleet.made.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_websocket_carries_bytes_both_ways() {
    let desk = Desk::new().await;
    let id = desk
        .program("fix", 80, |mut s: TcpStream| async move {
            let head = head(&mut s).await.unwrap().to_lowercase();
            assert!(head.contains("connection: upgrade") && head.contains("upgrade: websocket"));
            let yes = b"HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
            s.write_all(yes).await.unwrap();
            let (mut from, mut to) = s.split();
            let _ = tokio::io::copy(&mut from, &mut to).await;
        })
        .await;
    let mut stream = desk.connect().await;
    let asked = "GET / HTTP/1.1\r\nHost: fix.localhost:1355\r\nOrigin: http://fix.localhost:1355\r\n\
                 Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(asked.as_bytes()).await.unwrap();
    let answer = head(&mut stream).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    let mut five = [0; 5];
    stream.read_exact(&mut five).await.unwrap();
    assert_eq!(&five, b"hello");
    let sent = vec![7; 300_000];
    let (mut from, mut to) = stream.split();
    let (wrote, read) = tokio::join!(to.write_all(&sent), async {
        let mut back = vec![0; sent.len()];
        from.read_exact(&mut back).await.map(|_| back)
    });
    wrote.unwrap();
    assert_eq!(read.unwrap(), sent);
    assert_eq!(desk.proxy.open(&id), 1);
    drop(stream);
    desk.holds(&id, 0).await;
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions_without_being_kept() {
    const SIZE: usize = 64 << 20;
    let desk = Desk::new().await;
    desk.program("fix", 80, |mut s: TcpStream| async move {
        head(&mut s).await.unwrap();
        let mut sum: u64 = 0;
        let mut left = SIZE;
        let mut chunk = vec![0; 1 << 16];
        while left > 0 {
            let n = s.read(&mut chunk).await.unwrap();
            sum += chunk[..n].iter().map(|b| u64::from(*b)).sum::<u64>();
            left -= n;
        }
        let head = format!("HTTP/1.1 200 OK\r\nX-Sum: {sum}\r\nContent-Length: {SIZE}\r\n\r\n");
        s.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..SIZE >> 16 {
            s.write_all(&vec![1; 1 << 16]).await.unwrap();
        }
    })
    .await;
    let mut stream = desk.connect().await;
    let head_of =
        format!("PUT /f HTTP/1.1\r\nHost: fix.localhost\r\nContent-Length: {SIZE}\r\n\r\n");
    stream.write_all(head_of.as_bytes()).await.unwrap();
    for _ in 0..SIZE >> 16 {
        stream.write_all(&vec![2; 1 << 16]).await.unwrap();
    }
    let answer = head(&mut stream).await.unwrap().to_lowercase();
    assert!(answer.contains(&format!("x-sum: {}\r\n", 2 * SIZE)), "{answer}");
    let (mut got, mut chunk) = (0, vec![0; 1 << 16]);
    while got < SIZE {
        got += stream.read(&mut chunk).await.unwrap();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 60_000, "peak {peak} kB");
}

#[tokio::test]
async fn a_hostile_answer_is_cut_down_to_size() {
    let desk = Desk::new().await;
    desk.program("cookie", 80, |mut s: TcpStream| async move {
        head(&mut s).await;
        let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Domain=localhost; Path=/\r\n\
                      Strict-Transport-Security: max-age=1\r\nConnection: X-Drop\r\nX-Drop: 1\r\n\
                      Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nX-Second: 1\r\n\r\n";
        let _ = s.write_all(answer.as_bytes()).await;
    })
    .await;
    let answer = desk.get("cookie.localhost", "").await.to_lowercase();
    assert!(answer.contains("set-cookie: a=1; path=/\r\n"), "{answer}");
    for gone in ["strict-transport", "x-drop", "x-second", "domain"] {
        assert!(!answer.contains(gone), "{gone}: {answer}");
    }
    desk.program("endless", 80, |mut s: TcpStream| async move {
        head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\nX-Big: ").await;
        while s.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    assert!(desk.get("endless.localhost", "").await.starts_with("HTTP/1.1 502"));
    desk.program("garbage", 80, |mut s: TcpStream| async move {
        head(&mut s).await;
        let _ = s.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").await;
    })
    .await;
    assert!(desk.get("garbage.localhost", "").await.starts_with("HTTP/1.1 502"));
    desk.program("unasked", 80, |mut s: TcpStream| async move {
        head(&mut s).await;
        let _ = s
            .write_all(b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            .await;
    })
    .await;
    assert!(desk.get("unasked.localhost", "").await.starts_with("HTTP/1.1 502"));
}

#[tokio::test]
async fn too_large_a_head_and_too_many_connections_are_refused() {
    let desk = Desk::new().await;
    let id = desk
        .program("slow", 80, |s: TcpStream| async move {
            let _ = s.readable().await;
            std::future::pending::<()>().await;
        })
        .await;
    let big = format!("X-Big: {}\r\n", "x".repeat(70_000));
    assert!(desk.get("slow.localhost", &big).await.starts_with("HTTP/1.1 431"));
    let mut kept = Vec::new();
    for _ in 0..128 {
        let mut stream = desk.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: slow.localhost\r\n\r\n").await.unwrap();
        kept.push(stream);
    }
    desk.holds(&id, 128).await;
    assert!(desk.get("slow.localhost", "").await.contains("too many connections"));
    desk.program("other", 80, echo).await;
    assert!(
        desk.get("other.localhost", "").await.starts_with("HTTP/1.1 200"),
        "others are not affected"
    );
    drop(kept);
    desk.holds(&id, 0).await;
}

#[tokio::test]
async fn a_busy_port_is_said_to_be_busy() {
    let first = Listening::bind(0).await.unwrap();
    let second = Listening::bind(first.port()).await.err().expect("an error");
    assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_ticket_leads_to_a_screen_once() {
    let desk = Desk::new().await;
    let id = desk.program("fix", 6080, echo).await;
    desk.program("fix", 80, echo).await;
    *desk.fleet.ticket.lock().unwrap() = Some((id, "abc".into()));
    let ask = async |host: &str, ticket: &str| {
        let line = format!("GET /.agentbox/screen/{ticket} HTTP/1.1\r\nHost: {host}");
        desk.say(&format!("{line}\r\nConnection: close\r\n\r\n")).await
    };
    assert!(ask("fix.vnc.localhost", "abd").await.starts_with("HTTP/1.1 410"));
    assert!(ask("fix.localhost", "abc").await.contains("GET /.agentbox"), "no path of a web app");
    let there = ask("vnc-fix.localhost", "abc").await;
    assert!(there.starts_with("HTTP/1.1 303"), "{there}");
    assert!(there.contains("location: /vnc.html#password=x\r\n"), "{there}");
    assert!(ask("fix.vnc.localhost", "abc").await.starts_with("HTTP/1.1 410"));
}
