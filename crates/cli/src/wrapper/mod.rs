//! Around a session on the person's terminal: a menu on Ctrl-a, and images that are pasted.
//!
//! It stands on this computer, between the keys and the box. What the box prints goes to the terminal
//! without being looked at and never to the decoder of keys, so that nothing a box prints can open the
//! menu, answer it or change its words. The surprising thing: while the menu is open the box's output is
//! not read at all, and afterwards the box is told another size for a moment, which makes tmux draw anew.

mod bar;
mod clipboard;
mod gate;
mod images;
mod keys;
mod menu;

pub use bar::RESTORED;
pub use gate::Gate;

use crate::commands::cp;
use crate::place::Elsewhere;
use crate::terminal;
use host::client::{Client, Writer};
use keys::{Decoder, bracketed};
use menu::{Action, Do, Menu, Mode, Question};
use protocol::boxes::BoxView;
use protocol::control::{Loss, Request, Target};
use protocol::text::visible;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const CHUNK: usize = 16 * 1024;
/// How often an open menu looks at the terminal's size.
const LOOK: Duration = Duration::from_millis(200);
/// How long something that was said stays.
const TOLD: Duration = Duration::from_secs(3);
/// A command beside the session.
const ASIDE: Duration = Duration::from_secs(30);
/// tmux leaves at once; what is no tmux any more is hung up on.
const LEAVING: Duration = Duration::from_secs(3);
/// What tmux takes for: leave.
const LEAVE: &[u8] = b"\x01d";
const SAID: u64 = 16 * 1024;
/// How large an image may be where the settings cannot be read.
const UNTOLD: u64 = 10 * 1024 * 1024;

/// Why a person left by the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Detached,
    ToDestroy,
}

/// What the person did, for whoever waits for the session's end.
pub type Leaving = Arc<Mutex<Option<Left>>>;

pub struct Wrapper {
    pub home: PathBuf,
    pub client: Client,
    pub view: BoxView,
    pub gate: Gate,
    pub writer: Arc<Mutex<Writer>>,
    pub leaving: Leaving,
}

impl Wrapper {
    /// Takes over the keys; its threads end with the process.
    pub fn start(self) {
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || read_keys(&tell));
        std::thread::spawn(move || Session::new(self).live(&told));
    }
}

/// Past the buffer of the standard library, which would keep keys from whoever comes after.
fn read_keys(tell: &SyncSender<Vec<u8>>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match nix::unistd::read(io::stdin(), &mut chunk) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other.unwrap_or(0),
        };
        if tell.send(chunk[..read].to_vec()).is_err() || read == 0 {
            return;
        }
    }
}

struct Session {
    around: Wrapper,
    decoder: Decoder,
    menu: Menu,
    /// What is said above a question, or instead of one.
    facts: String,
    until: Instant,
    drawn_for: (u16, u16),
}

impl Session {
    fn new(around: Wrapper) -> Self {
        let menu = Menu::new(around.view.name.as_str());
        let (facts, until) = (String::new(), Instant::now());
        Self { around, decoder: Decoder::new(), menu, facts, until, drawn_for: (0, 0) }
    }

    fn live(mut self, keys: &Receiver<Vec<u8>>) {
        loop {
            let open = self.menu.is_open();
            let wait = self.decoder.patience().or(open.then_some(LOOK));
            let read = match wait {
                Some(wait) => keys.recv_timeout(wait),
                None => keys.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let tokens = match read {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => self.decoder.feed(&bytes),
                Err(RecvTimeoutError::Timeout) => self.decoder.quiet(open),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut typed = Vec::new();
            for token in tokens {
                for one in self.menu.on(token) {
                    if let Do::Send(bytes) = one {
                        typed.extend(bytes);
                        continue;
                    }
                    self.send(&std::mem::take(&mut typed));
                    self.perform(one);
                }
            }
            self.send(&typed);
            self.look();
        }
        self.around.gate.open();
        let _ = self.writer().stdin(b"");
    }

    fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.around.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A box that is gone is noticed by whoever reads its output.
    fn send(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let _ = self.writer().stdin(bytes);
        }
    }

    fn perform(&mut self, one: Do) {
        match one {
            Do::Send(bytes) => self.send(&bytes),
            Do::Draw => {
                if self.menu.mode == Mode::Keys {
                    self.facts = String::new();
                }
                self.draw();
                if self.menu.mode == Mode::Asking(Question::Destroy, String::new()) {
                    self.facts = self.loss();
                    self.draw();
                }
            }
            Do::Close => self.go_on(),
            Do::Pasted(text) => {
                let found = images::named(&text, || self.limit());
                self.paste(found, bracketed(&text));
            }
            Do::Fetch(key) => {
                let found = images::of_clipboard(self.limit());
                self.paste(found, key);
            }
            Do::Act(action) => self.act(action),
        }
    }

    fn limit(&self) -> u64 {
        cp::limit(&self.around.home, &self.around.view).unwrap_or(UNTOLD)
    }

    /// The path of an image in the box, or what was typed when there is none.
    fn paste(&mut self, found: Result<Option<images::Image>, String>, typed: Vec<u8>) {
        let copied = match found {
            Ok(None) => return self.send(&typed),
            Ok(Some(image)) => {
                let target = Target::id(&self.around.view.id);
                images::copy(&self.around.client, &target, image)
            }
            Err(why) => Err(why),
        };
        match copied {
            Ok(path) => self.send(&bracketed(path.as_bytes())),
            Err(why) => {
                self.send(&typed);
                self.tell(&format!("Image not copied: {why}"));
            }
        }
    }

    fn act(&mut self, action: Action) {
        let id = self.around.view.id.to_string();
        match action {
            Action::Url => self.aside(&["url", &id]),
            Action::Screen => self.aside(&["screen", &id]),
            Action::Code => self.aside(&["code", &id, "--yes", "--no-wait"]),
            Action::Shell => self.shell(&id),
            Action::Detach => self.leave(Left::Detached),
            Action::Destroy => self.leave(Left::ToDestroy),
        }
    }

    fn shell(&mut self, id: &str) {
        let words = ["shell", id, "--new"];
        let opened = Elsewhere::tab().map(|place| place.open(&self.around.home, &words));
        match opened {
            Some(Ok(Some(place))) => self.tell(&format!("A shell {place}.")),
            Some(Err(error)) => self.tell(&error.error),
            Some(Ok(None)) | None => {
                let name = &self.around.view.name;
                let text = format!(
                    "There is no tab for it. In another terminal: agentbox shell {name} --new"
                );
                self.tell(&text);
            }
        }
    }

    /// A command of ours that needs no terminal; the first line of what it says.
    fn aside(&mut self, words: &[&str]) {
        self.tell(&format!("agentbox {} …", words[0]));
        let said = said_by(&self.around.home, words);
        self.tell(&said);
    }

    fn loss(&self) -> String {
        let target = Target::id(&self.around.view.id);
        match self.around.client.call::<Loss>(&Request::WhatIfDestroyed { target }) {
            Ok(loss) => lost(&loss),
            Err(_) => "What would be lost is not known.".to_owned(),
        }
    }

    /// Says something for a moment, on top of the box.
    fn tell(&mut self, text: &str) {
        self.facts = visible(text);
        self.until = Instant::now() + TOLD;
        self.menu.mode = Mode::Told;
        self.draw();
    }

    fn draw(&mut self) {
        self.around.gate.shut();
        self.drawn_for = terminal::size();
        let lines = bar::lines(&self.menu.mode, self.around.view.name.as_str(), &self.facts);
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(bar::drawn(&lines, self.drawn_for).as_bytes());
        let _ = stdout.flush();
    }

    /// What time does to an open menu.
    fn look(&mut self) {
        if self.menu.mode == Mode::Told && Instant::now() >= self.until {
            for one in self.menu.close() {
                self.perform(one);
            }
        } else if self.menu.is_open() && terminal::size() != self.drawn_for {
            self.draw();
        }
    }

    /// The box's own picture again.
    fn go_on(&self) {
        self.around.gate.open();
        let (columns, rows) = terminal::size();
        let mut writer = self.writer();
        let other = if rows > 2 { rows - 1 } else { rows + 1 };
        let _ = writer.resize(columns, other);
        let _ = writer.resize(columns, rows);
    }

    /// Without another size first: tmux fails when it hears of one while it leaves.
    fn leave(&mut self, why: Left) {
        self.menu.mode = Mode::Closed;
        self.around.gate.open();
        *self.around.leaving.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.send(LEAVE);
        let writer = self.around.writer.clone();
        std::thread::spawn(move || {
            std::thread::sleep(LEAVING);
            writer.lock().unwrap_or_else(PoisonError::into_inner).hang_up();
        });
    }
}

fn lost(loss: &Loss) -> String {
    let counted = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let changes = match &loss.uncommitted {
        None => "Its uncommitted changes, not known, will be lost".to_owned(),
        Some(files) if files.is_empty() => "No uncommitted changes".to_owned(),
        Some(files) => format!("{} will be lost", counted(files.len(), "uncommitted change")),
    };
    let commits = match loss.unpushed_count {
        Some(n) if n > 0 && loss.view.branch.is_some() => {
            format!("; {} not pushed, kept in your repository", counted(n as usize, "commit"))
        }
        _ => String::new(),
    };
    format!("{changes}{commits}.")
}

fn said_by(home: &std::path::Path, words: &[&str]) -> String {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(e) => return e.to_string(),
    };
    let mut command = Command::new(program);
    command.arg("--home").arg(home).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => return e.to_string(),
    };
    let (tell, told) = sync_channel(1);
    let streams = (child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let (Some(out), Some(err)) = streams {
            let _ = err.take(SAID).read_to_end(&mut said);
            let mut first = Vec::new();
            let _ = out.take(SAID).read_to_end(&mut first);
            said.splice(0..0, first);
        }
        let _ = tell.send(said);
    });
    let Ok(said) = told.recv_timeout(ASIDE) else {
        let _ = child.kill();
        let _ = child.wait();
        return format!("agentbox {} takes too long", words[0]);
    };
    let _ = child.wait();
    let said = String::from_utf8_lossy(&said);
    said.lines().next().unwrap_or("done").to_owned()
}
