//! A command in a box, with this process as its terminal or its pipes.

use crate::error::CommandError;
use crate::terminal::{self, Raw};
use crate::wrapper::{self, Gate, Leaving, Left, Wrapper};
use host::client::{Client, ClientError, Conversation, Incoming, Writer};
use protocol::boxes::BoxView;
use protocol::control::{Exec, Exited, Request, Target};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const CHUNK: usize = 16 * 1024;

/// Why a command has no exit code.
pub enum Ended {
    Host(ClientError),
    Here(CommandError),
}

impl From<ClientError> for Ended {
    fn from(error: ClientError) -> Self {
        Ended::Host(error)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Here(error.into())
    }
}

impl From<Ended> for CommandError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Host(error) => error.into(),
            Ended::Here(error) => error,
        }
    }
}

/// Runs a command in a box to its end. With `tty` it has a terminal there; the person's own, when they
/// sit at one, is handed to it.
pub fn run(client: &Client, target: Target, argv: Vec<String>, tty: bool) -> Result<i32, Ended> {
    run_as(client, target, argv, tty, None)
}

/// The same as somebody of the box.
pub fn run_as(
    client: &Client,
    target: Target,
    argv: Vec<String>,
    tty: bool,
    user: Option<String>,
) -> Result<i32, Ended> {
    let here = tty && terminal::both_ends();
    let (cols, rows) = if tty { terminal::size() } else { (0, 0) };
    let conversation = client.open(&Request::Exec(Exec { target, argv, tty, cols, rows, user }))?;
    let writer = Arc::new(Mutex::new(conversation.writer()?));
    let gate = Gate::default();
    let interrupted = listen(&writer, conversation.writer()?, &gate, here)?;
    // Dropped before anything is said about how it ended.
    let raw = here.then(Raw::enter).transpose()?;
    forward_input(writer);
    let result = pump(conversation, &gate);
    drop(raw);
    match result {
        Err(_) if interrupted.load(Ordering::SeqCst) => {
            Err(Ended::Here(CommandError::interrupted()))
        }
        other => other,
    }
}

/// Shows a session on the person's own terminal, with the menu around it, to its end or until they leave.
pub fn run_wrapped(
    home: &Path,
    client: &Client,
    view: &BoxView,
    argv: Vec<String>,
) -> Result<(i32, Option<Left>), Ended> {
    let (cols, rows) = terminal::size();
    let target = Target::id(&view.id);
    let exec = Exec { target, argv, tty: true, cols, rows, user: None };
    let conversation = client.open(&Request::Exec(exec))?;
    let writer = Arc::new(Mutex::new(conversation.writer()?));
    let (gate, leaving) = (Gate::default(), Leaving::default());
    let interrupted = listen(&writer, conversation.writer()?, &gate, true)?;
    let raw = Raw::enter()?;
    let around = Wrapper {
        home: home.to_owned(),
        client: client.clone(),
        view: view.clone(),
        gate: gate.clone(),
        writer,
        hang_up: Arc::new(conversation.writer()?),
        leaving: leaving.clone(),
    };
    around.start();
    let result = pump(conversation, &gate);
    let left = leaving.lock().unwrap_or_else(PoisonError::into_inner).take();
    if result.is_err() {
        let _ = write(io::stdout().lock(), wrapper::RESTORED.as_bytes());
    }
    drop(raw);
    let interrupted = interrupted.load(Ordering::SeqCst);
    match result {
        // Nothing is begun for somebody who is gone.
        _ if interrupted && left == Some(Left::ToDestroy) => {
            Err(Ended::Here(CommandError::interrupted()))
        }
        // Whoever leaves has left, however tmux ended.
        _ if left.is_some() => Ok((0, left)),
        Ok(code) => Ok((code, None)),
        Err(_) if interrupted => Err(Ended::Here(CommandError::interrupted())),
        Err(error) => Err(error),
    }
}

/// Output to where it belongs, until the command ends.
fn pump(conversation: Conversation, gate: &Gate) -> Result<i32, Ended> {
    let hang_up = conversation.writer()?;
    let mut unwritable = None;
    let ended = conversation.finish::<Exited>(|incoming| {
        let written = gate.pass(|| match incoming {
            Incoming::Stdout(bytes) => write(io::stdout().lock(), &bytes),
            Incoming::Stderr(bytes) => write(io::stderr().lock(), &bytes),
            Incoming::Event(_) => Ok(()),
        });
        if let Err(error) = written {
            unwritable.get_or_insert(error);
            hang_up.hang_up();
        }
    });
    match unwritable {
        Some(error) => Err(error.into()),
        None => Ok(ended?.exit_code),
    }
}

fn write(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// Reads until the end of input; the thread ends with the process.
fn forward_input(writer: Arc<Mutex<Writer>>) {
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match io::stdin().lock().read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other.unwrap_or(0),
            };
            let sent = lock(&writer).stdin(&chunk[..read]);
            if read == 0 || sent.is_err() {
                return;
            }
        }
    });
}

/// Window size to the box; signals that mean the end hang up, so that the terminal is put back.
fn listen(
    writer: &Arc<Mutex<Writer>>,
    hang_up: Writer,
    gate: &Gate,
    tty: bool,
) -> io::Result<Arc<AtomicBool>> {
    let mut signals = Signals::new([SIGWINCH, SIGINT, SIGTERM, SIGHUP])?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (writer, gate, seen) = (writer.clone(), gate.clone(), interrupted.clone());
    let resizing = Arc::new(AtomicBool::new(false));
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGWINCH {
                // Beside this thread: a box that does not read must not keep signals from being heard.
                if tty && !resizing.swap(true, Ordering::SeqCst) {
                    let (writer, resizing) = (writer.clone(), resizing.clone());
                    std::thread::spawn(move || {
                        let mut writer = lock(&writer);
                        resizing.store(false, Ordering::SeqCst);
                        let (cols, rows) = terminal::size();
                        let _ = writer.resize(cols, rows);
                    });
                }
            } else {
                seen.store(true, Ordering::SeqCst);
                hang_up.hang_up();
                gate.open();
            }
        }
    });
    Ok(interrupted)
}

fn lock(writer: &Mutex<Writer>) -> std::sync::MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}
