//! The control socket: one line of JSON in, one out; some answers go on.

use super::engine::{Change, Event};
use super::log::{Logs, is_name};
use super::requests::{Reply, bad, good};
use crate::error::{Doing, Result};
use protocol::supervisor::{Ask, LogEvent, code};
use serde::Serialize;
use serde_json::json;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::Duration;

const MAX_REQUEST: u64 = 1024 * 1024;
const REQUEST_TIME: Duration = Duration::from_secs(5);
const MOST: usize = 100;
const USUAL_TAIL: usize = 200;
/// How often a stream without news looks whether anybody is there.
const STILL_THERE: Duration = Duration::from_secs(30);

/// There is a socket from here on; requests wait until they are served.
pub fn bind(path: &Path) -> Result<UnixListener> {
    let doing = || format!("listen on {}", path.display());
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh).doing(doing)?;
    // Some file systems refuse that for a socket.
    let _ = fs::set_permissions(&fresh, fs::Permissions::from_mode(0o660));
    fs::rename(&fresh, path).doing(doing)?;
    Ok(listener)
}

pub fn serve(listener: UnixListener, logs: Arc<Logs>, tell: Sender<Event>) -> io::Result<()> {
    super::thread("server", move || {
        let open = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming().flatten() {
            if open.load(Ordering::Relaxed) >= MOST {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (logs, tell, counted) = (logs.clone(), tell.clone(), open.clone());
            let started = super::thread("client", move || {
                let _ = answer(stream, &logs, &tell);
                counted.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })
}

fn answer(mut stream: UnixStream, logs: &Logs, tell: &Sender<Event>) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIME))?;
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    let mut line = Vec::new();
    BufReader::new(&stream).take(MAX_REQUEST).read_until(b'\n', &mut line)?;
    let ask: Ask = match serde_json::from_slice(&line) {
        Ok(ask) => ask,
        Err(e) => return write(&mut stream, &bad(code::BAD_REQUEST, format!("no request: {e}"))),
    };
    match ask {
        Ask::Logs { ref service, tail, follow } => {
            let (name, count) = (service.clone(), tail.unwrap_or(USUAL_TAIL));
            if !is_name(&name) {
                return write(&mut stream, &bad(code::UNKNOWN_UNIT, "that is no name of a unit"));
            }
            let reply = request(ask, tell);
            if !reply.ok {
                return write(&mut stream, &reply);
            }
            let (events, more) = logs.of(&name).tail(count, follow);
            write(&mut stream, &good(&json!({ "events": events, "follow": follow })))?;
            match more {
                Some(more) => pass(&mut stream, &more, |event: LogEvent| json!({ "event": event })),
                None => Ok(()),
            }
        }
        Ask::Subscribe => {
            let (to, changes) = sync_channel(1000);
            let _ = tell.send(Event::Subscribe(to));
            pass(&mut stream, &changes, |change: Change| {
                serde_json::to_value(change).unwrap_or_default()
            })
        }
        ask => write(&mut stream, &request(ask, tell)),
    }
}

fn request(ask: Ask, tell: &Sender<Event>) -> Reply {
    let (to, reply) = channel();
    let sent = tell.send(Event::Request(ask, to));
    let reply = sent.ok().and_then(|()| reply.recv().ok());
    reply.unwrap_or_else(|| bad(code::STOPPING, "the supervisor is stopping"))
}

fn write(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn pass<T>(
    stream: &mut UnixStream,
    from: &Receiver<T>,
    shape: impl Fn(T) -> serde_json::Value,
) -> io::Result<()> {
    loop {
        match from.recv_timeout(STILL_THERE) {
            Ok(item) => write(stream, &shape(item))?,
            Err(RecvTimeoutError::Timeout) => {
                stream.set_read_timeout(Some(Duration::from_millis(1)))?;
                match stream.read(&mut [0; 64]) {
                    Ok(0) => return Ok(()),
                    _ => stream.set_read_timeout(Some(REQUEST_TIME))?,
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
