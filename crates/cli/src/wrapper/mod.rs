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
/// Nobody types for so long before a question is asked, and nobody types longer than that.
const SETTLED: Duration = Duration::from_millis(300);
const UNSETTLED: Duration = Duration::from_secs(5);
/// Keys that wait for a box that does not read.
const QUEUE: usize = 256;
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
    /// Another one: the first may wait for a box that does not read.
    pub hang_up: Arc<Writer>,
    pub leaving: Leaving,
}

/// On its way to the box.
enum Going {
    Keys(Vec<u8>),
    Size(u16, u16),
    End,
}

impl Wrapper {
    /// Takes over the keys; its threads end with the process.
    pub fn start(self) {
        let (tell, told) = sync_channel(1);
        let (queue, next) = sync_channel(QUEUE);
        let writer = self.writer.clone();
        std::thread::spawn(move || read_keys(&tell));
        std::thread::spawn(move || carry_keys(&writer, &next));
        std::thread::spawn(move || Session::new(self, queue).live(&told));
    }
}

/// A box that does not read holds up this thread, and not the menu.
fn carry_keys(writer: &Mutex<Writer>, next: &Receiver<Going>) {
    for going in next {
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A box that is gone is noticed by whoever reads its output.
        let _ = match going {
            Going::Keys(bytes) => writer.stdin(&bytes),
            Going::Size(columns, rows) => writer.resize(columns, rows),
            Going::End => writer.stdin(b""),
        };
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
    queue: SyncSender<Going>,
    decoder: Decoder,
    menu: Menu,
    /// What is said above a question, or instead of one.
    facts: String,
    until: Instant,
    /// The question was there before its answer could be typed.
    settled: bool,
    drawn_for: (u16, u16),
}

impl Session {
    fn new(around: Wrapper, queue: SyncSender<Going>) -> Self {
        let menu = Menu::new(around.view.name.as_str());
        let (facts, until) = (String::new(), Instant::now());
        let (decoder, settled) = (Decoder::new(), false);
        Self { around, queue, decoder, menu, facts, until, settled, drawn_for: (0, 0) }
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
                    self.send(std::mem::take(&mut typed));
                    self.perform(one);
                }
                if !self.settled && self.menu.question().is_some() {
                    // What came along was typed, or pasted, before anybody could read the question.
                    self.ask(keys);
                    break;
                }
            }
            self.send(typed);
            self.look();
        }
        self.around.gate.open();
        let _ = self.queue.try_send(Going::End);
    }

    fn send(&self, bytes: Vec<u8>) {
        // A box that reads nothing loses keys, and not the person their menu.
        if !bytes.is_empty() {
            let _ = self.queue.try_send(Going::Keys(bytes));
        }
    }

    /// A question with what there is to know, once nobody types any more: a box can put text where a
    /// person's next paste comes from.
    fn ask(&mut self, keys: &Receiver<Vec<u8>>) {
        if self.menu.question() == Some(Question::Destroy) {
            self.facts = self.loss();
        }
        if self.settles(keys) {
            self.settled = true;
            self.draw();
        } else {
            for one in self.menu.close() {
                self.perform(one);
            }
        }
    }

    fn settles(&mut self, keys: &Receiver<Vec<u8>>) -> bool {
        let end = Instant::now() + UNSETTLED;
        while Instant::now() < end {
            match keys.recv_timeout(SETTLED) {
                Ok(bytes) if bytes.is_empty() => return false,
                Ok(bytes) => drop(self.decoder.feed(&bytes)),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {
                    drop(self.decoder.quiet(true));
                    return true;
                }
            }
        }
        false
    }

    fn perform(&mut self, one: Do) {
        match one {
            Do::Send(bytes) => self.send(bytes),
            Do::Draw => {
                if self.menu.mode == Mode::Keys {
                    self.facts = String::new();
                    self.settled = false;
                }
                self.draw();
            }
            Do::Close => {
                self.settled = false;
                self.go_on();
            }
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
            Ok(None) => return self.send(typed),
            Ok(Some(image)) => {
                let (target, from) = (Target::id(&self.around.view.id), image.from.clone());
                images::copy(&self.around.client, &target, image).map(|path| (path, from))
            }
            Err(why) => Err(why),
        };
        match copied {
            Ok((path, from)) => {
                self.send(bracketed(path.as_bytes()));
                // What was pasted may be the box's own word, put on the clipboard.
                self.tell(&format!("{from} was copied into the box"));
            }
            Err(why) => {
                self.send(typed);
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
        let name = self.around.view.name.as_str();
        let lines = if self.menu.question().is_some() && !self.settled {
            vec![format!("One moment: {name} …")]
        } else {
            bar::lines(&self.menu.mode, name, &self.facts)
        };
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
        let other = if rows > 2 { rows - 1 } else { rows + 1 };
        for rows in [other, rows] {
            let _ = self.queue.try_send(Going::Size(columns, rows));
        }
    }

    /// Without another size first: tmux fails when it hears of one while it leaves.
    fn leave(&mut self, why: Left) {
        self.menu.mode = Mode::Closed;
        self.around.gate.open();
        *self.around.leaving.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        let hang_up = self.around.hang_up.clone();
        std::thread::spawn(move || {
            std::thread::sleep(LEAVING);
            hang_up.hang_up();
        });
        self.send(LEAVE.to_vec());
    }
}

fn lost(loss: &Loss) -> String {
    let counted = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    // The worst first: a narrow terminal cuts the end.
    let mut gone = Vec::new();
    match &loss.stranded {
        None => gone.push("commits on other branches (not known)".to_owned()),
        Some(commits) if commits.is_empty() => {}
        Some(commits) => {
            gone.push(format!("{} on other branches", counted(commits.len(), "commit")));
        }
    }
    if loss.view.branch.is_none() {
        gone.push("files outside a repository".to_owned());
    }
    match &loss.uncommitted {
        None => gone.push("uncommitted changes (not known)".to_owned()),
        Some(files) if files.is_empty() => {}
        Some(files) => gone.push(counted(files.len(), "uncommitted change")),
    }
    let changes = if gone.is_empty() {
        "Nothing uncommitted would be lost".to_owned()
    } else {
        format!("Lost: {}", gone.join(", "))
    };
    let commits = match loss.unpushed_count {
        _ if loss.view.branch.is_none() => String::new(),
        Some(0) => String::new(),
        Some(n) => {
            format!("; {} not pushed, kept in your repository", counted(n as usize, "commit"))
        }
        None => "; whether its commits are pushed is not known".to_owned(),
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
        let (mut out, mut err) = (Vec::new(), Vec::new());
        if let (Some(stdout), Some(stderr)) = streams {
            let _ = stdout.take(SAID).read_to_end(&mut out);
            let _ = stderr.take(SAID).read_to_end(&mut err);
        }
        let _ = tell.send((out, err));
    });
    let Ok((out, err)) = told.recv_timeout(ASIDE) else {
        let _ = child.kill();
        let _ = child.wait();
        return format!("agentbox {} takes too long", words[0]);
    };
    let well = child.wait().is_ok_and(|status| status.success());
    let said = if well { [out, err].concat() } else { [err, out].concat() };
    let said = String::from_utf8_lossy(&said);
    said.lines().next().unwrap_or(if well { "done" } else { "it failed" }).to_owned()
}
