//! `agentbox-ctl bridge [relay|egress]` (root, run by the host through the engine): one of the host's
//! sockets in a box that it cannot be mounted into.
//!
//! Listens where the mounted socket would be and carries each connection as one yamux stream over
//! standard input and output; [`protocol::bridge`] says how. It ends with its input and leaves its
//! socket behind, so that whoever calls then is refused at once. The next bridge takes its place by
//! rename, and that is how an older one, whose host went without a word, learns that it is over.
//!
//! This is the only command with an async runtime. What it carries means nothing to it.

use crate::error::{Doing, Error, Result};
use crate::passwd::Account;
use crate::{input, places};
use futures_util::StreamExt;
use inotify::{Inotify, WatchMask};
use protocol::bridge::{READY, Service};
use protocol::ctl::BOX_USER;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy};
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, Mode};

/// How long a caller may go on after the host has said everything. The host may have left.
const LINGER: Duration = Duration::from_millis(300);
/// After a connection could not be taken, for want of something.
const PAUSE: Duration = Duration::from_millis(100);

pub fn run(args: &[OsString]) -> Result<i32> {
    let service = match args {
        [] => Some(Service::Relay),
        [name] => name.to_str().and_then(Service::named),
        _ => None,
    };
    let service =
        service.ok_or_else(|| Error::Usage("bridge carries either relay or egress.".into()))?;
    let (input, output) = pipes()?;
    input::wait_until_ready()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.doing(|| "start the bridge")?.block_on(serve(service, input, output))?;
    Ok(protocol::exit::OK)
}

type Pipe = std::os::fd::OwnedFd;

/// Standard input and output, which only the host gives us as pipes.
fn pipes() -> Result<(Pipe, Pipe)> {
    let pipe = |fd: std::os::fd::BorrowedFd<'_>| {
        let file = fs::File::from(fd.try_clone_to_owned().doing(|| "copy a pipe")?);
        let kind = file.metadata().doing(|| "look at a pipe")?.mode() & nix::libc::S_IFMT;
        if kind == nix::libc::S_IFIFO {
            return Ok(file.into());
        }
        Err(Error::Usage("bridge is run by the host, through the container engine.".into()))
    };
    Ok((pipe(io::stdin().as_fd())?, pipe(io::stdout().as_fd())?))
}

async fn serve(service: Service, input: Pipe, output: Pipe) -> Result<()> {
    let input = pipe::Receiver::from_owned_fd(input).doing(|| "use standard input")?;
    let mut output = pipe::Sender::from_owned_fd(output).doing(|| "use standard output")?;
    // First the watch, then the socket: whoever takes its place is seen.
    let mut news = news()?;
    let door = Door::open(service)?;
    output.write_all(READY).await.doing(|| "greet the host")?;
    let mut config = Config::default();
    // Counted below. yamux needs a moment to forget a stream, and ends everything at its limit.
    config.set_max_num_streams(4 * service.max_streams());
    let host = tokio::io::join(input, output).compat();
    let mut host = Connection::new(host, config, Mode::Server);
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            next = poll_fn(|cx| host.poll_next_inbound(cx)) => match next {
                // The host opens none.
                Some(Ok(stream)) => drop(stream),
                _ => return Ok(()),
            },
            caller = door.listener.accept(), if carried.len() < service.max_streams() => match caller {
                Ok((caller, _)) => {
                    let opened = poll_fn(|cx| host.poll_new_outbound(cx)).await;
                    let Ok(stream) = opened else { return Ok(()) };
                    carried.spawn(carry(service, caller, HostEnd::new(stream)));
                }
                Err(error) => {
                    crate::complain(&format!("agentbox bridge: cannot take a connection: {error}"));
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = carried.join_next() => {}
            () = replaced(&mut news, &door) => return Ok(()),
        }
    }
}

/// One listening socket.
struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the socket's file.
    file: (u64, u64),
}

impl Door {
    fn open(service: Service) -> Result<Self> {
        let path = places::socket(service);
        let doing = || format!("listen at {}", path.display());
        let fresh = path.with_file_name(format!(".{}.{}", service.socket(), std::process::id()));
        let _ = fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh).doing(doing)?;
        own(&fresh).doing(doing)?;
        let file = file(&fresh).doing(doing)?;
        fs::rename(&fresh, &path).doing(doing)?;
        Ok(Self { listener, path, file })
    }

    fn is_lost(&self) -> bool {
        file(&self.path).ok() != Some(self.file)
    }
}

/// For the box user alone. Where there is no such user, for root alone.
fn own(socket: &Path) -> io::Result<()> {
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    match Account::of_system(BOX_USER) {
        Ok(user) => chown(socket, Some(user.uid), Some(user.gid)),
        Err(_) => Ok(()),
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()))
}

/// What happens in the sockets' folder.
type News = inotify::EventStream<[u8; 1024]>;

fn news() -> Result<News> {
    let folder = places::relay_socket().parent().unwrap_or(Path::new("/")).to_owned();
    let doing = || format!("watch {}", folder.display());
    fs::create_dir_all(&folder).doing(doing)?;
    let inotify = Inotify::init().doing(doing)?;
    inotify.watches().add(&folder, WatchMask::MOVED_TO | WatchMask::DELETE).doing(doing)?;
    inotify.into_event_stream([0; 1024]).doing(doing)
}

/// Resolves when the socket is no longer ours.
async fn replaced(news: &mut News, door: &Door) {
    while news.next().await.is_some() {
        if door.is_lost() {
            return;
        }
    }
}

/// Carries one connection until both ends have said everything, or one of them is gone.
async fn carry(service: Service, mut caller: UnixStream, mut host: HostEnd) -> io::Result<()> {
    host.write_all(&[service.tag()]).await?;
    let (mut from_caller, mut to_caller) = caller.split();
    let (mut from_host, mut to_host) = tokio::io::split(&mut host);
    let up = async {
        copy(&mut from_caller, &mut to_host).await?;
        to_host.shutdown().await
    };
    let down = async {
        copy(&mut from_host, &mut to_caller).await?;
        to_caller.shutdown().await
    };
    tokio::pin!(up, down);
    tokio::select! {
        sent = &mut up => {
            sent?;
            down.await
        }
        answered = &mut down => {
            answered?;
            tokio::time::timeout(LINGER, up).await?
        }
    }
}

/// The host's end of a connection, where a reset is an error and not an end.
struct HostEnd {
    stream: Compat<yamux::Stream>,
    /// Everything was sent.
    done: bool,
}

impl HostEnd {
    fn new(stream: yamux::Stream) -> Self {
        Self { stream: stream.compat(), done: false }
    }
}

impl AsyncRead for HostEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        let ended = buffer.filled().len() == before;
        if ended && !this.done && this.stream.get_ref().is_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HostEnd {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        this.done = true;
        Poll::Ready(Ok(()))
    }
}
