//! The host's end of a bridge, against honest and hostile peers.

use super::*;
use crate::bridge::gate::tests::{data, flags, frame, window};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};

type Opened = Compat<yamux::Stream>;

/// An honest box: drives its end of the connection and opens streams.
struct Peer {
    open: mpsc::Sender<oneshot::Sender<yamux::Stream>>,
    task: JoinHandle<()>,
}

impl Peer {
    async fn greet(mut io: DuplexStream) -> Self {
        io.write_all(READY).await.unwrap();
        let (open, mut wanted) = mpsc::channel::<oneshot::Sender<yamux::Stream>>(1);
        let mut connection = Connection::new(io.compat(), Config::default(), Mode::Server);
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(reply) = wanted.recv() => {
                        let Ok(stream) = poll_fn(|cx| connection.poll_new_outbound(cx)).await else {
                            return;
                        };
                        let _ = reply.send(stream);
                    }
                    next = poll_fn(|cx| connection.poll_next_inbound(cx)) => match next {
                        Some(Ok(_)) => panic!("the host opens no streams"),
                        _ => return,
                    },
                }
            }
        });
        Self { open, task }
    }

    async fn stream(&self) -> Opened {
        let (reply, stream) = oneshot::channel();
        self.open.send(reply).await.unwrap();
        stream.await.unwrap().compat()
    }

    async fn relay(&self) -> Opened {
        self.named(Service::Relay).await
    }

    async fn named(&self, service: Service) -> Opened {
        let mut stream = self.stream().await;
        stream.write_all(&[service.tag()]).await.unwrap();
        stream
    }
}

/// The host's end, and the streams it was given.
struct Here {
    run: JoinHandle<io::Result<()>>,
    streams: mpsc::UnboundedReceiver<BridgeStream>,
    closed: CancellationToken,
}

fn here() -> (Here, DuplexStream) {
    here_over(64 * 1024)
}

fn here_over(pipe: usize) -> (Here, DuplexStream) {
    here_for(Service::Relay, pipe)
}

fn here_for(service: Service, pipe: usize) -> (Here, DuplexStream) {
    let (near, far) = duplex(pipe);
    let (sender, streams) = mpsc::unbounded_channel();
    let closed = CancellationToken::new();
    let serve = move |stream| {
        let _ = sender.send(stream);
    };
    let run = tokio::spawn(run(service, near, serve, closed.clone()));
    (Here { run, streams, closed }, far)
}

impl Here {
    async fn stream(&mut self) -> BridgeStream {
        self.streams.recv().await.unwrap()
    }

    async fn failure(self) -> io::ErrorKind {
        self.run.await.unwrap().unwrap_err().kind()
    }

    async fn complaint(self) -> String {
        self.run.await.unwrap().unwrap_err().to_string()
    }
}

#[tokio::test]
async fn bytes_travel_both_ways_and_half_close_is_kept() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let mut theirs = peer.relay().await;
    theirs.write_all(b"question").await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut ours = here.stream().await;
    let mut asked = Vec::new();
    ours.read_to_end(&mut asked).await.unwrap();
    assert_eq!(asked, b"question");
    ours.write_all(b"answer").await.unwrap();
    ours.shutdown().await.unwrap();
    let mut answered = Vec::new();
    theirs.read_to_end(&mut answered).await.unwrap();
    assert_eq!(answered, b"answer");
}

#[tokio::test]
async fn much_more_than_a_window_gets_through_each_way() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let theirs = peer.relay().await;
    let ours = here.stream().await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_be_bytes()[3]).collect();
    let (there, here) = tokio::join!(exchange(theirs, &bytes), exchange(ours, &bytes));
    assert!(there == bytes && here == bytes);
}

/// Sends and receives at the same time.
async fn exchange(stream: impl AsyncRead + AsyncWrite, bytes: &[u8]) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(stream);
    let mut got = Vec::new();
    let send = async {
        write.write_all(bytes).await?;
        write.shutdown().await
    };
    let (sent, received) = tokio::join!(send, read.read_to_end(&mut got));
    sent.unwrap();
    received.unwrap();
    got
}

#[tokio::test]
async fn hanging_up_is_noticed_although_nobody_reads() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    for abrupt in [false, true] {
        let mut theirs = peer.relay().await;
        theirs.write_all(&vec![7; 100_000]).await.unwrap();
        let (ours, hung_up) = watched(here.stream().await);
        assert!(!hung_up.is_cancelled());
        if abrupt {
            drop(theirs);
        } else {
            theirs.shutdown().await.unwrap();
        }
        hung_up.cancelled().await;
        drop(ours);
    }
}

#[tokio::test]
async fn everybody_is_told_when_the_box_goes_or_the_bridge_is_dropped() {
    let (mut gone, far) = here();
    let peer = Peer::greet(far).await;
    let _theirs = peer.relay().await;
    let (_ours, hung_up) = watched(gone.stream().await);
    peer.task.abort();
    hung_up.cancelled().await;
    let _ = gone.run.await.unwrap();

    let (mut dropped, far) = here();
    let peer = Peer::greet(far).await;
    let _theirs = peer.relay().await;
    let (_ours, hung_up) = watched(dropped.stream().await);
    dropped.run.abort();
    hung_up.cancelled().await;
}

#[tokio::test]
async fn a_stream_the_host_drops_is_reset_and_the_others_go_on() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let (mut one, mut two) = (peer.relay().await, peer.relay().await);
    drop(here.stream().await);
    let mut ours = here.stream().await;
    let mut nothing = Vec::new();
    one.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty() && one.get_ref().is_closed());
    // What still comes for the dropped one is thrown away.
    for _ in 0..4 {
        let _ = one.write_all(&vec![1; 50_000]).await;
    }
    two.write_all(b"still here").await.unwrap();
    let mut got = [0; 10];
    ours.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"still here");
}

#[tokio::test]
async fn closing_the_box_lets_answers_out_and_ends_the_bridge() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let mut theirs = peer.relay().await;
    let mut ours = here.stream().await;
    here.closed.cancel();
    // Refused from now on.
    let mut late = peer.relay().await;
    assert_eq!(late.read(&mut [0; 1]).await.unwrap(), 0);
    ours.write_all(b"last words").await.unwrap();
    ours.shutdown().await.unwrap();
    drop(ours);
    let mut heard = Vec::new();
    theirs.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"last words");
    here.run.await.unwrap().unwrap();
    peer.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_box_that_does_not_greet_is_left() {
    let (silent, _far) = here();
    assert_eq!(silent.failure().await, io::ErrorKind::TimedOut);

    let (rude, mut far) = here();
    far.write_all(b"bash: profile says hello, and more\n").await.unwrap();
    assert_eq!(rude.failure().await, io::ErrorKind::InvalidData);

    let (short, mut far) = here();
    far.write_all(&READY[..5]).await.unwrap();
    drop(far);
    assert_eq!(short.failure().await, io::ErrorKind::UnexpectedEof);
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_a_strange_name_is_refused() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let mut strange = peer.stream().await;
    strange.write_all(b"?").await.unwrap();
    assert_eq!(strange.read(&mut [0; 1]).await.unwrap(), 0);
    let mut good = peer.relay().await;
    good.write_all(b"x").await.unwrap();
    assert_eq!(here.stream().await.read_u8().await.unwrap(), b'x');
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_say_what_it_is_for_is_reset() {
    let (_here, mut far) = here();
    far.write_all(READY).await.unwrap();
    far.write_all(&window(flags::SYN, 2, 0)).await.unwrap();
    let mut got = vec![0; 12];
    while got != data(flags::RST, 2, b"") {
        far.read_exact(&mut got).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_the_connection() {
    let long = frame(0, 0, 2, 1 << 20);
    let odd = data(flags::SYN, 3, b"r");
    let zero = data(flags::SYN, 0, b"r");
    let again = [data(flags::SYN, 2, b"r"), data(flags::SYN, 2, b"r")].concat();
    let back = [data(flags::SYN, 4, b"r"), data(flags::SYN, 2, b"r")].concat();
    let half = data(flags::SYN, 2, b"rrrr")[..14].to_vec();
    for garbage in [vec![0xff; 40], vec![b'\n'; 500], long, odd, zero, again, back, half] {
        let (here, mut far) = here();
        far.write_all(READY).await.unwrap();
        far.write_all(&garbage).await.unwrap();
        far.shutdown().await.unwrap();
        let error = here.complaint().await;
        assert!(error.contains("the box sent") || error.contains("end of file"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_beyond_the_limit_are_reset() {
    let (mut here, far) = here();
    let peer = Peer::greet(far).await;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..Limits::of(Service::Relay).open() {
        theirs.push(peer.relay().await);
        ours.push(here.stream().await);
    }
    let mut refused = peer.relay().await;
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(refused.get_ref().is_closed());
    // Letting one go makes room.
    ours.pop();
    let _more = peer.relay().await;
    here.stream().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_streams_end_the_connection_that_opened_them() {
    let (mut here, mut far) = here_over(256);
    far.write_all(READY).await.unwrap();
    // Nobody reads the resets, so those beyond the limit cannot be let go of.
    for n in 1..=1000 {
        if far.write_all(&data(flags::SYN, 2 * n, b"r")).await.is_err() {
            break;
        }
    }
    let mut served = Vec::new();
    while let Some(stream) = here.streams.recv().await {
        served.push(stream);
    }
    let most = Limits::of(Service::Relay).open();
    assert!(served.len() <= most, "{} streams were served", served.len());
    assert!(served.iter().all(|stream| stream.hung_up.is_cancelled()));
}

#[tokio::test(start_paused = true)]
async fn a_box_that_never_reads_is_dropped() {
    let (mut here, far) = here();
    let (_read, mut write) = tokio::io::split(far);
    write.write_all(READY).await.unwrap();
    write.write_all(&data(flags::SYN, 2, b"r")).await.unwrap();
    write.write_all(&window(0, 2, 1 << 30)).await.unwrap();
    let mut ours = here.stream().await;
    let began = tokio::time::Instant::now();
    let mut sent = 0;
    while ours.write_all(&[0; 1024]).await.is_ok() {
        sent += 1024;
        assert!(sent < 512 * 1024, "the host keeps what the box does not take");
    }
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert!(here.complaint().await.contains("does not read"));
}

#[tokio::test(start_paused = true)]
async fn bytes_nobody_reads_are_few_however_they_are_cut() {
    for size in [1, 16 * 1024] {
        let (mut here, mut far) = here();
        far.write_all(READY).await.unwrap();
        let mut ours = Vec::new();
        for n in 1..=30 {
            far.write_all(&data(flags::SYN, 2 * n, b"r")).await.unwrap();
            ours.push(here.stream().await);
        }
        let body = vec![0; size];
        let mut taken = 0;
        'full: for round in 0.. {
            for n in 1..=30 {
                if (round + 1) * size > 200_000 {
                    break 'full;
                }
                if far.write_all(&data(0, 2 * n, &body)).await.is_err() {
                    break 'full;
                }
                taken += size + 96;
            }
        }
        // What is in the pipe counts too.
        assert!(taken < 6 << 20, "{taken} bytes of memory for frames of {size}");
        assert!(here.complaint().await.contains("nobody reads"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_empty_frames_comes_in_slowly() {
    let (here, mut far) = here();
    far.write_all(READY).await.unwrap();
    let flood: Vec<u8> = (0..1000).flat_map(|_| window(0, 8, 1)).collect();
    let began = tokio::time::Instant::now();
    for _ in 0..200 {
        far.write_all(&flood).await.unwrap();
    }
    let (took, frames) = (began.elapsed(), 200_000);
    assert!(took >= Duration::from_secs(4), "{frames} frames were taken in {took:?}");
    drop(far);
    here.run.await.unwrap().unwrap();
}

#[tokio::test]
async fn random_bytes_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..300 {
        let (mut here, mut far) = here();
        far.write_all(READY).await.unwrap();
        let mut bytes = Vec::new();
        for _ in 0..60 {
            let [kind, flag, id, length, ..] = next().to_be_bytes();
            let id = 2 * u32::from(id % 8);
            match kind % 4 {
                0 => bytes.extend(data(u16::from(flag % 16), id, &vec![b'r'; length.into()])),
                1 => bytes.extend(window(u16::from(flag % 16), id, u32::from(length) << 24)),
                2 => bytes.extend(frame(2, u16::from(flag % 4), 0, length.into())),
                _ => bytes.extend(data(flags::SYN, id, b"r")),
            }
        }
        let reader = tokio::spawn(async move {
            let _ = far.write_all(&bytes).await;
            let _ = far.shutdown().await;
            let _ = far.read_to_end(&mut Vec::new()).await;
        });
        while let Some(mut stream) = here.streams.recv().await {
            let _ = stream.write_all(b"answer").await;
            tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
        }
        let _ = here.run.await.unwrap();
        reader.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn each_service_has_a_bridge_of_its_own() {
    let (mut here, far) = here_for(Service::Egress, 64 * 1024);
    let peer = Peer::greet(far).await;
    let mut call = peer.relay().await;
    assert_eq!(call.read(&mut [0; 1]).await.unwrap(), 0);
    let mut out = peer.named(Service::Egress).await;
    out.write_all(b"x").await.unwrap();
    assert_eq!(here.stream().await.read_u8().await.unwrap(), b'x');
}

#[tokio::test(start_paused = true)]
async fn uploads_that_wait_for_somebody_are_kept_and_bounded() {
    let (mut here, mut far) = here_for(Service::Egress, 64 * 1024);
    far.write_all(READY).await.unwrap();
    let mut ours = Vec::new();
    for n in 1..=100 {
        far.write_all(&data(flags::SYN, 2 * n, b"e")).await.unwrap();
        ours.push(here.stream().await);
    }
    let (read, write) = tokio::io::split(far);
    let heard = tokio::spawn(sink(read));
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = sent.clone();
    let sending = tokio::spawn(async move {
        let (mut write, body) = (write, vec![0; 16 * 1024]);
        for _ in 0..15 {
            for n in 1..=100 {
                write.write_all(&data(0, 2 * n, &body)).await.unwrap();
                count.fetch_add(body.len(), std::sync::atomic::Ordering::AcqRel);
            }
        }
        write
    });
    // A person may take their time.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let held = sent.load(std::sync::atomic::Ordering::Acquire);
    assert!(held < 18 << 20 && !sending.is_finished() && !here.run.is_finished(), "{held}");
    for stream in ours {
        tokio::spawn(sink(stream));
    }
    let write = sending.await.unwrap();
    drop(write);
    heard.abort();
}

async fn sink(mut from: impl AsyncRead + Unpin) {
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
}
