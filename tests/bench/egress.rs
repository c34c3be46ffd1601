//! The way out of a box: one server reached directly, by our proxy and by mitmproxy, in one run.
//!
//! Server and clients are in this process, and everything shares the machine's processors: the figures
//! are for each other, not for the world. Both proxies end TLS, decide about each request and stream
//! bodies; ours also writes down every request. mitmproxy comes from `AGENTBOX_MITMPROXY`.

use crate::measure::measured;
use crate::relay::Seen;
use crate::world::World;
use agentbox_e2e::wait::eventually;
use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::net::TcpListener as Port;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// What policies call this computer, and what mitmproxy does.
const HERE: &str = "host.agentbox.internal";
const LOCAL: &str = "localhost";
const SPAN: Duration = Duration::from_secs(5);
const BULK: usize = 512 << 20;
const IDLE: usize = 1000;
/// As many as a box may have open.
const PER_BOX: usize = 200;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub fn run() {
    let runtime = Runtime::new().unwrap();
    let mut world = World::bare();
    let server = Server::start(&runtime, &mut world);
    world.configure("egress: {mode: locked}\n");
    std::fs::write(
        world.home().join("egress.yaml"),
        format!(
            "domains: [{{host: {HERE}, rules: [{{path: {{prefix: /v1/}}, ports: [{}]}}]}}]\n",
            server.port
        ),
    )
    .unwrap();
    world.start_serve();
    let boxes: Vec<String> = (0..IDLE / PER_BOX).map(|n| format!("way-{n}")).collect();
    let sockets: Vec<PathBuf> = boxes.iter().map(|name| socket(&world, name)).collect();
    let theirs = Theirs::start(&world, &server);
    let pem = world.json(&["egress", "ca"])["ca"]["pem"].as_str().unwrap().to_owned();
    let direct = Route::new("directly", &server.pem, &server, Way::Direct);
    let ours = Route::new("by AgentBox", &pem, &server, Way::Ours(sockets));
    let others = Route::new("by mitmproxy", &theirs.pem, &server, Way::Theirs(theirs.port));
    let pids = [world.host_pid().as_raw(), i32::try_from(theirs.child.id()).unwrap()];
    let fresh = pids.map(measured);

    println!();
    println!(
        "{:<22} {:>5} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "requests", "conns", "per s", "p50", "p99", "p50 more", "p99 more", "p50"
    );
    for (what, connections, anew) in
        [("kept open", 1, false), ("kept open", 16, false), ("a new one each", 1, true)]
    {
        println!("connections {what}");
        let floor = runtime.block_on(load(&direct, connections, anew));
        line(&direct, connections, &floor, &floor);
        for route in [&ours, &others] {
            line(route, connections, &runtime.block_on(load(route, connections, anew)), &floor);
        }
    }
    bulk(&runtime, &world, [&direct, &ours, &others]);
    let busy = pids.map(measured);
    println!();
    println!("{:<46} {:>12} {:>12}", "memory, resident", "AgentBox", "mitmproxy");
    let row = |what: &str, [ours, theirs]: &[[String; 2]; 2]| {
        println!("{what:<46} {:>12} {:>12}", ours[0], theirs[0]);
    };
    row("before", &fresh);
    row("after all of the above", &busy);
    let held = runtime.block_on(async {
        let mut held = Vec::new();
        for route in [&ours, &others] {
            for n in 0..IDLE {
                let mut stream = route.open(n).await;
                get(route, &mut stream, "/v1/small").await;
                held.push(stream);
            }
        }
        held
    });
    row(&format!("with {IDLE} idle connections"), &pids.map(measured));
    drop(held);
}

/// A box, and the door of its way out.
fn socket(world: &World, name: &str) -> PathBuf {
    let id = world.create(name)["id"].as_str().unwrap().to_owned();
    world.home().join("run/boxes").join(id).join("egress.sock")
}

fn line(route: &Route, connections: usize, seen: &Seen, floor: &Seen) {
    let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1000.0);
    let more = |at| ms(seen.at(at).saturating_sub(floor.at(at)));
    println!(
        "  {:<20} {connections:>5} {:>10.0} {:>9} {:>9} {:>9} {:>9} {:>6.1}×",
        route.name,
        seen.per_second,
        ms(seen.at(50)),
        ms(seen.at(99)),
        more(50),
        more(99),
        seen.at(50).as_secs_f64() / floor.at(50).as_secs_f64()
    );
}

fn bulk(runtime: &Runtime, world: &World, routes: [&Route; 3]) {
    println!();
    println!("{:<22} {:>12} {:>12}", "MB/s, one connection", "down", "up");
    let megabytes = f64::from(u32::try_from(BULK).unwrap()) / 1e6;
    let speed = |took: Duration| format!("{:.0}", megabytes / took.as_secs_f64());
    for route in routes {
        let (down, up) = runtime.block_on(async {
            let mut stream = route.open(0).await;
            let begun = Instant::now();
            get(route, &mut stream, &format!("/v1/big/{BULK}")).await;
            let down = begun.elapsed();
            let begun = Instant::now();
            put(route, &mut stream).await;
            (down, begun.elapsed())
        });
        println!("  {:<20} {:>12} {:>12}", route.name, speed(down), speed(up));
    }
    let port = routes[0].port;
    let said = world.box_ok(
        "way-0",
        &format!("curl -sS -o /dev/null -w '%{{time_total}}' https://{HERE}:{port}/v1/big/{BULK}"),
    );
    let took = Duration::from_secs_f64(said.trim().parse().unwrap());
    println!("  {:<20} {:>12}", "curl in a box", speed(took));
}

// ---- the server

struct Server {
    port: u16,
    pem: String,
    file: PathBuf,
}

impl Server {
    /// The host is told to trust it.
    fn start(runtime: &Runtime, world: &mut World) -> Self {
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        root.distinguished_name.push(DnType::CommonName, "bench");
        let issuer = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec![HERE.to_owned(), LOCAL.to_owned()];
        let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let file = world.dir().join("bench-ca.crt");
        std::fs::write(&file, issuer.pem()).unwrap();
        world.set("SSL_CERT_FILE", file.to_str().unwrap());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(BufReader::new(stream)).await;
                    }
                });
            }
        });
        Self { port, pem: issuer.pem(), file }
    }
}

/// Answers until the other side leaves: `/v1/big/N` with so many bytes, everything else with a few.
async fn serve(mut stream: impl Stream) {
    let block = vec![b'x'; 64 << 10];
    while let Some(head) = head(&mut stream).await {
        if drain(&mut stream, &head).await.is_none() {
            return;
        }
        let path = head.split(' ').nth(1).unwrap_or_default();
        let mut left = path.strip_prefix("/v1/big/").map_or(256, |n| n.parse().unwrap_or(0));
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {left}\r\n\r\n"
        );
        let mut answer = answer.into_bytes();
        // With the head in one piece, as servers do.
        let first = left.min(block.len());
        answer.extend_from_slice(&block[..first]);
        left -= first;
        if stream.write_all(&answer).await.is_err() {
            return;
        }
        while left > 0 {
            let next = left.min(block.len());
            if stream.write_all(&block[..next]).await.is_err() {
                return;
            }
            left -= next;
        }
        if stream.flush().await.is_err() {
            return;
        }
    }
}

/// The lines before a body, in lower case but for the first.
async fn head(stream: &mut impl Stream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

fn length(head: &str) -> Option<usize> {
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    head.lines().find_map(field)
}

/// Reads a body to its end; a proxy may have put it into chunks.
async fn drain(stream: &mut impl Stream, head: &str) -> Option<()> {
    let mut buffer = vec![0; 64 << 10];
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        loop {
            let mut size = Vec::new();
            while !size.ends_with(b"\r\n") {
                size.push(stream.read_u8().await.ok()?);
            }
            let size = usize::from_str_radix(std::str::from_utf8(&size).ok()?.trim(), 16).ok()?;
            take(stream, &mut buffer, size + 2).await?;
            if size == 0 {
                return Some(());
            }
        }
    }
    take(stream, &mut buffer, length(head).unwrap_or(0)).await
}

async fn take(stream: &mut impl Stream, buffer: &mut [u8], mut left: usize) -> Option<()> {
    while left > 0 {
        let most = left.min(buffer.len());
        match stream.read(&mut buffer[..most]).await {
            Ok(read @ 1..) => left -= read,
            _ => return None,
        }
    }
    Some(())
}

// ---- the ways there

enum Way {
    Direct,
    /// The doors of several boxes.
    Ours(Vec<PathBuf>),
    Theirs(u16),
}

struct Route {
    name: &'static str,
    way: Way,
    port: u16,
    tls: TlsConnector,
}

type Open = BufReader<Box<dyn Stream>>;

impl Route {
    fn new(name: &'static str, pem: &str, server: &Server, way: Way) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let mut config =
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        // A new connection is a whole one, for everybody.
        config.resumption = tokio_rustls::rustls::client::Resumption::disabled();
        Self { name, way, port: server.port, tls: TlsConnector::from(Arc::new(config)) }
    }

    fn host(&self) -> &'static str {
        if matches!(self.way, Way::Theirs(_)) { LOCAL } else { HERE }
    }

    async fn open(&self, n: usize) -> Open {
        let stream: Box<dyn Stream> = match &self.way {
            Way::Direct => Box::new(tcp(self.port).await),
            Way::Ours(sockets) => {
                let socket = &sockets[n / PER_BOX % sockets.len()];
                let stream = Box::new(UnixStream::connect(socket).await.unwrap());
                tunnel(stream, HERE, self.port).await
            }
            Way::Theirs(port) => tunnel(Box::new(tcp(*port).await), LOCAL, self.port).await,
        };
        let name = ServerName::try_from(self.host()).unwrap();
        BufReader::new(Box::new(self.tls.connect(name, stream).await.unwrap()))
    }
}

async fn tcp(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn tunnel(mut stream: Box<dyn Stream>, host: &str, port: u16) -> Box<dyn Stream> {
    let ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let answer = head(&mut stream).await.unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
    stream
}

async fn get(route: &Route, stream: &mut Open, path: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}:{}\r\n\r\n", route.host(), route.port);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    answered(stream).await;
}

async fn answered(stream: &mut Open) {
    let answer = head(stream).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drain(stream, &answer).await.unwrap();
}

async fn put(route: &Route, stream: &mut Open) {
    let block = vec![b'x'; 64 << 10];
    let head = format!(
        "PUT /v1/up HTTP/1.1\r\nhost: {}:{}\r\ncontent-length: {BULK}\r\n\r\n",
        route.host(),
        route.port
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..BULK / block.len() {
        stream.write_all(&block).await.unwrap();
    }
    stream.flush().await.unwrap();
    answered(stream).await;
}

/// One request after the other on each connection, or a connection for each.
async fn load(route: &Route, connections: usize, anew: bool) -> Seen {
    let begun = Instant::now();
    // One thread is the client, whatever the number of connections: the rest of the machine is for the proxy.
    let all = futures_util::future::join_all((0..connections).map(|_| async {
        let mut stream = route.open(0).await;
        let mut times = Vec::new();
        while begun.elapsed() < SPAN {
            let at = Instant::now();
            if anew {
                stream = route.open(0).await;
            }
            get(route, &mut stream, "/v1/small").await;
            times.push(at.elapsed());
        }
        times
    }));
    let times = all.await.into_iter().flatten().collect();
    Seen::new(times, begun.elapsed())
}

// ---- what people use otherwise

struct Theirs {
    child: Child,
    port: u16,
    pem: String,
}

impl Theirs {
    fn start(world: &World, server: &Server) -> Self {
        let program = std::env::var("AGENTBOX_MITMPROXY").expect("AGENTBOX_MITMPROXY");
        let dir = world.dir().join("mitmproxy");
        let port = Port::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let set = |name: &str, value: &str| ["--set".to_owned(), format!("{name}={value}")];
        let child = world
            .command(program)
            .args(["-q", "--listen-host", "127.0.0.1", "-p", &port.to_string()])
            .args(set("confdir", dir.to_str().unwrap()))
            .args(set("ssl_verify_upstream_trusted_ca", server.file.to_str().unwrap()))
            .args(set("stream_large_bodies", "1m"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let file = dir.join("mitmproxy-ca-cert.pem");
        let pem = eventually(Duration::from_secs(30), "mitmproxy", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
            std::fs::read_to_string(&file).ok()
        });
        Self { child, port, pem }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
