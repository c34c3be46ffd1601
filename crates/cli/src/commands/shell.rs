//! `agentbox shell`: a shell or a command in a box.
//!
//! The command's exit code is ours. With a terminal at both ends the box gets one too, and every
//! key goes there; otherwise bytes flow as through a pipe. The surprising thing: a word that names
//! no box is taken as the command when the folder's project has exactly one box, so that
//! `agentbox shell ls` does what it says.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::terminal::{self, Raw};
use crate::ui::Ui;
use host::client::{Client, ClientError, Conversation, Incoming, Writer};
use protocol::boxes::BoxView;
use protocol::control::{ErrorCode, Exec, Exited, Request, Target};
use protocol::text::visible;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const CHUNK: usize = 16 * 1024;
/// How shells and engines say that a program is not there.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Run a shell or a command in a box
///
/// Without a command it is a login shell. A command's words are passed on as they are; a single
/// word with spaces in it goes through `sh -c`. The exit code is the command's.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox shell                        a shell in the project's only box
  agentbox shell fix-login -- npm test  a command in a box
  agentbox shell -- 'cd api && ls'      through sh -c
  agentbox shell -- git apply < fix.patch")]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The command and its arguments [default: bash -l]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let code = match args.which {
        Some(word) if args.command.is_empty() && !names_a_box(&client, &word)? => {
            as_command(&ctx.ui, &client, word)?
        }
        which => exec(&client, target(which), argv(&args.command))?,
    };
    Ok(Exit(u8::try_from(code).unwrap_or(1)))
}

/// Looked up beforehand: once a command was tried, it has eaten the input of the next one.
fn names_a_box(client: &Client, word: &str) -> Result<bool, ClientError> {
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let is_index = word.bytes().all(|b| b.is_ascii_digit());
    let is_id = |b: &BoxView| word.len() >= 3 && b.id.as_str().starts_with(word);
    let is_one = |b: &BoxView| b.name.as_str() == word || is_id(b);
    Ok(is_index || boxes.iter().any(is_one))
}

/// The word named no box: it may be a command for the only one there is.
fn as_command(ui: &Ui, client: &Client, word: String) -> Result<i32, CommandError> {
    let code = match exec(client, target(None), argv(std::slice::from_ref(&word))) {
        // No single box to take it: the host says what is wrong with the word as a box.
        Err(Ended::Host(e)) if e.code() == Some(ErrorCode::Usage) => {
            exec(client, target(Some(word.clone())), argv(&[]))?
        }
        other => other?,
    };
    if NO_PROGRAM.contains(&code) {
        ui.hint(&format!("{} is neither a box nor a program in it", visible(&word)));
    }
    Ok(code)
}

fn argv(command: &[String]) -> Vec<String> {
    let words: &[&str] = match command {
        [] => &["bash", "-l"],
        [line] if line.contains(char::is_whitespace) => &["sh", "-c", line],
        words => return words.to_vec(),
    };
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// Why a command has no exit code.
enum Ended {
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

fn exec(client: &Client, target: Target, argv: Vec<String>) -> Result<i32, Ended> {
    let tty = terminal::both_ends();
    let (cols, rows) = if tty { terminal::size() } else { (0, 0) };
    let conversation = client.open(&Request::Exec(Exec { target, argv, tty, cols, rows }))?;
    let writer = Arc::new(Mutex::new(conversation.writer()?));
    let interrupted = listen(&writer, conversation.writer()?, tty)?;
    // Dropped before anything is said about how it ended.
    let raw = tty.then(Raw::enter).transpose()?;
    forward_input(writer);
    let result = pump(conversation);
    drop(raw);
    match result {
        Err(_) if interrupted.load(Ordering::SeqCst) => {
            Err(Ended::Here(CommandError::interrupted()))
        }
        other => other,
    }
}

/// Output to where it belongs, until the command ends.
fn pump(conversation: Conversation) -> Result<i32, Ended> {
    let hang_up = conversation.writer()?;
    let mut unwritable = None;
    let ended = conversation.finish::<Exited>(|incoming| {
        let written = match incoming {
            Incoming::Stdout(bytes) => write(io::stdout().lock(), &bytes),
            Incoming::Stderr(bytes) => write(io::stderr().lock(), &bytes),
            Incoming::Event(_) => Ok(()),
        };
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
fn listen(writer: &Arc<Mutex<Writer>>, hang_up: Writer, tty: bool) -> io::Result<Arc<AtomicBool>> {
    let mut signals = Signals::new([SIGWINCH, SIGINT, SIGTERM, SIGHUP])?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (writer, seen) = (writer.clone(), interrupted.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGWINCH {
                let (cols, rows) = terminal::size();
                if tty && lock(&writer).resize(cols, rows).is_err() {
                    return;
                }
            } else {
                seen.store(true, Ordering::SeqCst);
                hang_up.hang_up();
            }
        }
    });
    Ok(interrupted)
}

fn lock(writer: &Mutex<Writer>) -> std::sync::MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_33_words_stay_words() {
        let given =
            |words: &[&str]| argv(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(given(&[]), ["bash", "-l"]);
        assert_eq!(given(&["ls"]), ["ls"]);
        assert_eq!(given(&["printf", "%s|", "a b", "c"]), ["printf", "%s|", "a b", "c"]);
        assert_eq!(given(&["echo $HOME"]), ["sh", "-c", "echo $HOME"]);
    }
}
