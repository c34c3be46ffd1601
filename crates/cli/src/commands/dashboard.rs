//! `agentbox dashboard`: all boxes on one page that lives, and a key for what one does with them.
//!
//! The page is fed by the host's events; nothing is asked again and again. What needs the whole
//! terminal (an agent, a shell, answering) runs as the command a person would type, with the page out
//! of the way meanwhile. So nothing here can do what a command cannot.

mod keys;
mod page;

use crate::context::{Context, current_dir};
use crate::error::{CommandError, Exit, Outcome};
use crate::follow::{self, Then};
use crate::terminal::{self, Raw};
use keys::{Act, Key};
use page::Page;
use protocol::control::{HostEvent, Request, Target};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Watch boxes and work with them
///
/// A page of your boxes, what their agents do and what they ask, as it changes. Enter goes to the
/// agent or the shell of the box that is marked, and Ctrl-a d comes back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Keys:
  j k or arrows   mark another box       Enter   its agent, or a shell
  s   a shell in it                      a       answer questions
  p   pause it, or let it go on          x       stop or start it
  u   its web app                        v       its screen
  l   its log                            d       destroy it, after a question
  n   a new box for this folder          q       leave

Examples:
  agentbox dashboard      boxes of the project in this folder
  agentbox dashboard -g   all boxes")]
pub struct Args {
    /// Boxes of all projects
    #[arg(short, long)]
    global: bool,
}

/// What wakes the page.
enum News {
    Host(Box<HostEvent>),
    Keys(Vec<Key>),
    /// Something to say below the table.
    Note(String),
    Resized,
    /// The host ended, or somebody wants us to.
    Over(Result<(), CommandError>),
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if !terminal::both_ends() {
        return Err(CommandError::usage("a dashboard needs a terminal")
            .hint("agentbox list -w prints every change, agentbox list --json is for programs"));
    }
    let project = if args.global { None } else { current_dir() };
    let mut board = Board::open(ctx, Page::new(ctx.ui.out, project))?;
    let end = board.live();
    board.show(false)?;
    end.map(|()| Exit::OK)
}

struct Board<'a> {
    ctx: &'a Context,
    page: Page,
    news: Receiver<News>,
    teller: Sender<News>,
    /// Keys are read once for each of these: while another command has the terminal, they are its own.
    read: Sender<()>,
    raw: Option<Raw>,
    drawn: String,
}

impl<'a> Board<'a> {
    fn open(ctx: &'a Context, page: Page) -> Result<Self, CommandError> {
        let (teller, news) = channel();
        let (read, reads) = channel();
        let (client, host) = (ctx.client()?, teller.clone());
        std::thread::spawn(move || {
            let ended = follow::events(&client, &Request::Subscribe, |event| {
                let _ = host.send(News::Host(Box::new(event)));
                Ok(Then::GoOn)
            });
            let _ = host.send(News::Over(ended));
        });
        listen(teller.clone())?;
        let keys = teller.clone();
        std::thread::spawn(move || read_keys(&reads, &keys));
        let drawn = String::new();
        let mut board = Self { ctx, page, news, teller, read, raw: None, drawn };
        board.show(true)?;
        Ok(board)
    }

    /// Takes the terminal, or gives it back as it was.
    fn show(&mut self, on: bool) -> Result<(), CommandError> {
        self.drawn.clear();
        if on {
            self.raw = Some(Raw::enter()?);
            let _ = self.read.send(());
            return self.ctx.ui.out("\x1b[?1049h\x1b[?25l");
        }
        self.raw = None;
        self.ctx.ui.out("\x1b[?25h\x1b[?1049l")
    }

    /// Until the person leaves, or the host does.
    fn live(&mut self) -> Result<(), CommandError> {
        loop {
            self.draw()?;
            let Ok(news) = self.news.recv() else { return Ok(()) };
            match news {
                News::Host(event) => self.page.apply(*event),
                News::Note(note) => self.page.note = note,
                News::Resized => {}
                News::Over(end) => return end,
                News::Keys(keys) => {
                    if self.press(keys)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether the person leaves.
    fn press(&mut self, keys: Vec<Key>) -> Result<bool, CommandError> {
        let mut handed_over = false;
        for key in keys {
            match self.page.press(key) {
                Some(Act::Leave) => return Ok(true),
                // Keys typed ahead were meant for the page as it was.
                Some(Act::Run(words)) => {
                    self.hand_over(&words)?;
                    handed_over = true;
                    break;
                }
                Some(Act::Aside(words)) => self.aside(words),
                Some(Act::Ask(request, doing)) => self.ask(*request, doing),
                None => {}
            }
        }
        if !handed_over {
            let _ = self.read.send(());
        }
        Ok(false)
    }

    fn draw(&mut self) -> Result<(), CommandError> {
        let (columns, rows) = terminal::size();
        let text = self.page.render(usize::from(columns), usize::from(rows));
        if text == self.drawn {
            return Ok(());
        }
        let lines = text.replace('\n', "\x1b[K\r\n");
        self.drawn = text;
        self.ctx.ui.out(&format!("\x1b[H{lines}\x1b[J"))
    }

    fn ask(&mut self, request: Request, doing: String) {
        self.page.note = doing;
        let (client, teller) = (self.ctx.client_if_running(), self.teller.clone());
        std::thread::spawn(move || {
            let done = client.call::<serde_json::Value>(&request);
            let failed = |error: host::client::ClientError| {
                format!("error: {}", protocol::text::visible(&error.to_string()))
            };
            let note = done.map_or_else(failed, |_| String::new());
            let _ = teller.send(News::Note(note));
        });
    }

    /// Gives the terminal to a command of ours until it ends.
    fn hand_over(&mut self, words: &[String]) -> Result<(), CommandError> {
        self.show(false)?;
        let ended = self.command(words)?.status()?;
        if !ended.success() {
            self.ctx.ui.say("Press Enter to go back.");
            let _ = io::stdin().read_line(&mut String::new());
        }
        self.show(true)
    }

    /// Runs a command of ours that needs no terminal, and tells how it ended.
    fn aside(&mut self, words: Vec<String>) {
        self.page.note = format!("agentbox {} …", words.join(" "));
        let (command, teller) = (self.command(&words), self.teller.clone());
        std::thread::spawn(move || {
            let output = command.and_then(|mut c| Ok(c.stdin(Stdio::null()).output()?));
            let note = match output {
                Ok(output) => {
                    let said = [output.stdout, output.stderr].concat();
                    let said = String::from_utf8_lossy(&said);
                    protocol::text::visible(said.lines().next().unwrap_or_default())
                }
                Err(error) => format!("error: {}", error.error),
            };
            let _ = teller.send(News::Note(note));
        });
    }

    fn command(&self, words: &[String]) -> Result<std::process::Command, CommandError> {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.arg("--home").arg(&self.ctx.home).args(words);
        Ok(command)
    }
}

fn read_keys(reads: &Receiver<()>, teller: &Sender<News>) {
    let mut bytes = [0; 256];
    while reads.recv().is_ok() {
        // Past the buffer of the standard library, which would keep keys from the next command.
        let read = loop {
            match nix::unistd::read(io::stdin(), &mut bytes) {
                Err(nix::errno::Errno::EINTR) => {}
                other => break other.unwrap_or(0),
            }
        };
        let keys = if read == 0 { vec![Key::Leave] } else { keys::read(&bytes[..read]) };
        if teller.send(News::Keys(keys)).is_err() {
            return;
        }
    }
}

/// SIGINT is for the command that has the terminal; ours is a key.
fn listen(teller: Sender<News>) -> Result<(), CommandError> {
    let mut signals = Signals::new([SIGWINCH, SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let news = match signal {
                SIGWINCH => News::Resized,
                SIGINT => continue,
                _ => News::Over(Ok(())),
            };
            if teller.send(news).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// A box by its id, whatever folder we are in.
fn exactly(id: &str) -> Target {
    Target { query: Some(id.to_owned()), cwd: None }
}
