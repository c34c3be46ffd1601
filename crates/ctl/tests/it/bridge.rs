//! The bridge, run as the host runs it: over pipes, with yamux on this end.

use crate::support::{LIMIT, Running, TestBox, said};
use protocol::bridge::{MAX_STREAMS, READY};
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, Mode};

/// Somebody who hung up is noticed this soon.
const PROMPT: Duration = Duration::from_secs(1);

/// The host's end of a stream, after its tag.
type Stream = Compat<yamux::Stream>;

struct Host {
    child: Running,
    streams: UnboundedReceiver<yamux::Stream>,
    /// Aborted, the pipes are closed.
    task: JoinHandle<()>,
}

impl Host {
    async fn attach(at: &TestBox) -> Self {
        let mut command = at.ctl(&["bridge"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = OwnedFd::from(child.stdin.take().unwrap());
        let output = OwnedFd::from(child.stdout.take().unwrap());
        let input = pipe::Sender::from_owned_fd(input).unwrap();
        let mut output = pipe::Receiver::from_owned_fd(output).unwrap();
        let mut greeting = [0; READY.len()];
        timeout(LIMIT, output.read_exact(&mut greeting)).await.unwrap().unwrap();
        assert_eq!(greeting, READY);
        let io = tokio::io::join(output, input).compat();
        let mut connection = Connection::new(io, Config::default(), Mode::Client);
        let (sender, streams) = unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(Ok(stream)) = poll_fn(|cx| connection.poll_next_inbound(cx)).await {
                let _ = sender.send(stream);
            }
        });
        Self { child: Running(child), streams, task }
    }

    async fn stream(&mut self) -> Stream {
        let stream = timeout(LIMIT, self.streams.recv()).await.unwrap().unwrap();
        let mut stream = stream.compat();
        assert_eq!(stream.read_u8().await.unwrap(), b'r');
        stream
    }

    async fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the bridge goes on");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn caller(at: &TestBox) -> UnixStream {
    UnixStream::connect(at.socket()).await.unwrap()
}

/// Answers like a relay, once.
async fn answer(mut stream: Stream) -> String {
    let mut got = Vec::new();
    while !got.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut got).await.unwrap(), 0);
    }
    let body = r#"{"exitCode":3,"stdout":"from the host","stderr":""}"#;
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(reply.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    String::from_utf8(got).unwrap()
}

#[tokio::test]
async fn a_call_gets_to_the_host_and_back() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let mut command = at.ctl(&["rpc", "some.thing", r#"{"a":1}"#]);
    let call = spawn_blocking(move || said(&mut command));
    let asked = answer(host.stream().await).await;
    let said = call.await.unwrap();
    assert_eq!((said.code, said.stdout.as_str()), (3, "from the host"));
    assert!(asked.starts_with("POST /rpc HTTP/1.1\r\n") && asked.contains("some.thing"), "{asked}");
}

#[tokio::test]
async fn the_socket_is_for_the_box_user_alone() {
    let at = TestBox::new();
    let _host = Host::attach(&at).await;
    let mode = std::fs::metadata(at.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(at.path("host")).unwrap().count(), 1);
}

#[tokio::test]
async fn sixty_four_at_once_and_the_next_one_waits() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let (mut callers, mut streams) = (Vec::new(), Vec::new());
    for n in 0..MAX_STREAMS {
        let mut caller = caller(&at).await;
        caller.write_all(format!("{n:04}").as_bytes()).await.unwrap();
        callers.push(caller);
    }
    for _ in 0..MAX_STREAMS {
        streams.push(host.stream().await);
    }
    let mut late = caller(&at).await;
    late.write_all(b"late").await.unwrap();
    assert!(timeout(Duration::from_millis(200), host.streams.recv()).await.is_err());
    for mut stream in streams {
        let mut words = [0; 4];
        stream.read_exact(&mut words).await.unwrap();
        stream.write_all(&words).await.unwrap();
        stream.shutdown().await.unwrap();
    }
    for (n, mut caller) in callers.into_iter().enumerate() {
        let mut words = String::new();
        caller.read_to_string(&mut words).await.unwrap();
        assert_eq!(words, format!("{n:04}"));
    }
    let mut words = [0; 4];
    host.stream().await.read_exact(&mut words).await.unwrap();
    assert_eq!(&words, b"late");
}

#[tokio::test]
async fn megabytes_travel_both_ways() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let bytes: Vec<u8> = (0..4_000_000_u32).map(|n| n.to_be_bytes()[3]).collect();
    let caller = caller(&at).await;
    let echo = async {
        let (mut read, mut write) = tokio::io::split(host.stream().await);
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let call = async {
        let (mut read, mut write) = caller.into_split();
        let mut got = Vec::new();
        let send = async {
            write.write_all(&bytes).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let (read, ()) = tokio::join!(read.read_to_end(&mut got), send);
        read.unwrap();
        got
    };
    let (got, ()) = timeout(LIMIT, async { tokio::join!(call, echo) }).await.unwrap();
    assert!(got == bytes);
}

#[tokio::test]
async fn half_close_is_kept_in_both_directions() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let mut words = String::new();

    let mut first = caller(&at).await;
    first.write_all(b"all").await.unwrap();
    first.shutdown().await.unwrap();
    let mut stream = host.stream().await;
    stream.read_to_string(&mut words).await.unwrap();
    stream.write_all(b"of it").await.unwrap();
    stream.shutdown().await.unwrap();
    first.read_to_string(&mut words).await.unwrap();
    assert_eq!(words, "allof it");

    let mut second = caller(&at).await;
    let mut stream = host.stream().await;
    stream.shutdown().await.unwrap();
    assert_eq!(second.read(&mut [0; 1]).await.unwrap(), 0);
    second.write_all(b"and yet").await.unwrap();
    second.shutdown().await.unwrap();
    words.clear();
    stream.read_to_string(&mut words).await.unwrap();
    assert_eq!(words, "and yet");
}

#[tokio::test]
async fn a_killed_caller_ends_its_stream_at_once() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let child = at.ctl(&["rpc", "git.push"]).stdin(Stdio::null()).spawn().unwrap();
    let mut child = Running(child);
    let mut stream = host.stream().await;
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        stream.read_buf(&mut asked).await.unwrap();
    }
    child.0.kill().unwrap();
    let ended = timeout(PROMPT, stream.read(&mut [0; 1])).await;
    assert_eq!(ended.expect("it took too long").unwrap(), 0);
}

#[tokio::test]
async fn a_stream_the_host_resets_closes_the_callers_socket() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let mut caller = caller(&at).await;
    drop(host.stream().await);
    let closed = timeout(PROMPT, caller.read(&mut [0; 1])).await.expect("it took too long");
    assert!(matches!(closed, Ok(0) | Err(_)));
    // Both directions: nobody would read it.
    let end = Instant::now() + PROMPT;
    while caller.write_all(b"x").await.is_ok() {
        assert!(Instant::now() < end, "the socket is still open");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn without_its_host_the_bridge_ends_and_callers_are_refused() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let mut caller = caller(&at).await;
    let _stream = host.stream().await;
    host.task.abort();
    let closed = timeout(PROMPT, caller.read(&mut [0; 1])).await.expect("it took too long");
    assert!(matches!(closed, Ok(0) | Err(_)));
    assert!(host.ended().await.success());
    let refused = UnixStream::connect(at.socket()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let mut command = at.ctl(&["rpc", "x"]);
    assert_eq!(spawn_blocking(move || said(&mut command)).await.unwrap().code, 126);

    let mut again = Host::attach(&at).await;
    let mut command = at.ctl(&["rpc", "x"]);
    let call = spawn_blocking(move || said(&mut command));
    answer(again.stream().await).await;
    assert_eq!(call.await.unwrap().code, 3);
}

#[tokio::test]
async fn a_newer_bridge_takes_over_from_one_whose_host_is_silent() {
    let at = TestBox::new();
    let mut old = Host::attach(&at).await;
    let _waiting = caller(&at).await;
    let _stream = old.stream().await;
    let mut new = Host::attach(&at).await;
    assert!(old.ended().await.success());
    let mut caller = caller(&at).await;
    caller.write_all(b"hello").await.unwrap();
    let mut words = [0; 5];
    new.stream().await.read_exact(&mut words).await.unwrap();
    assert_eq!(&words, b"hello");
    assert!(new.child.0.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn garbage_from_the_host_ends_it() {
    let at = TestBox::new();
    let mut command = at.ctl(&["bridge"]);
    let mut child = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut input = child.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &[0xff; 64]).unwrap();
    let ended = spawn_blocking(move || child.0.wait().unwrap());
    assert!(timeout(LIMIT, ended).await.unwrap().unwrap().success());
}

#[tokio::test]
async fn the_watcher_comes_back_with_the_bridge() {
    let at = TestBox::new().with_commit();
    let _watch = Running(at.ctl(&["watch"]).stdin(Stdio::null()).spawn().unwrap());
    let mut first = Host::attach(&at).await;
    assert!(answer(first.stream().await).await.starts_with("POST /events "));
    first.task.abort();
    first.ended().await;
    at.commit(&at.workspace(), "a", "while the host was away");
    sleep(Duration::from_millis(1500)).await;
    let mut second = Host::attach(&at).await;
    let began = Instant::now();
    assert!(answer(second.stream().await).await.starts_with("POST /events "));
    assert!(began.elapsed() < PROMPT, "after {:?}", began.elapsed());
}

#[test]
fn it_is_not_for_people() {
    let at = TestBox::new();
    let mut command = at.ctl(&["bridge"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    assert!(!at.socket().exists());
}

#[tokio::test]
async fn an_idle_bridge_sleeps() {
    let at = TestBox::new();
    let mut host = Host::attach(&at).await;
    let mut command = at.ctl(&["rpc", "x"]);
    let call = spawn_blocking(move || said(&mut command));
    answer(host.stream().await).await;
    assert_eq!(call.await.unwrap().code, 3);
    let status = format!("/proc/{}/status", host.child.0.id());
    let switches = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let line = text.lines().find(|l| l.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    sleep(Duration::from_millis(300)).await;
    let before = switches();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(switches(), before);
}
