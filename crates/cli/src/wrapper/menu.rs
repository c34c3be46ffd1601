//! The menu a person opens over a session: which token means what, and when.
//!
//! It never sees a byte the box printed. While it asks, only keys that came as plain bytes count: no
//! answer of the terminal to something the box asked it can be a yes.

use super::keys::{Key, Token};

/// More is no name of a box.
const LONGEST_ANSWER: usize = 80;
/// What is kept for the box while the menu is open.
const KEPT: usize = 64 * 1024;
const PREFIX: u8 = 0x01;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Code,
    Destroy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Code,
    Screen,
    Url,
    Shell,
    Destroy,
    Detach,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Closed,
    Keys,
    Asking(Question, String),
    /// Something was said; it goes with the next key or by itself.
    Told,
}

/// What has to be done, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum Do {
    /// Output waits, and what the mode says is drawn.
    Draw,
    /// Output goes on, on a screen as the box wants it.
    Close,
    Send(Vec<u8>),
    /// A short paste, which may name an image.
    Pasted(Vec<u8>),
    /// Ctrl-v as it came: there may be an image to paste.
    Fetch(Vec<u8>),
    Act(Action),
}

#[derive(Debug)]
pub struct Menu {
    pub mode: Mode,
    /// The box's name, which is a yes as well.
    name: String,
    kept: Vec<u8>,
}

impl Menu {
    pub fn new(name: &str) -> Self {
        Self { mode: Mode::Closed, name: name.to_owned(), kept: Vec::new() }
    }

    pub fn is_open(&self) -> bool {
        self.mode != Mode::Closed
    }

    /// What is asked.
    pub fn question(&self) -> Option<Question> {
        match self.mode {
            Mode::Asking(question, _) => Some(question),
            _ => None,
        }
    }

    pub fn on(&mut self, token: Token) -> Vec<Do> {
        match &mut self.mode {
            Mode::Closed => match token {
                Token::Press { key: Key::Ctrl('a'), .. } => self.show(Mode::Keys),
                Token::Press { key: Key::Ctrl('v'), bytes, .. } => vec![Do::Fetch(bytes)],
                other => passed_on(other),
            },
            Mode::Keys => self.chosen(token),
            Mode::Asking(..) => self.answered(token),
            Mode::Told => match token {
                Token::Press { key: Key::Ctrl('a'), .. } => self.show(Mode::Keys),
                Token::Report(bytes) => self.keep(bytes),
                other => self.close_and(passed_on(other)),
            },
        }
    }

    /// The menu is left, with what the box has to get from it.
    pub fn close(&mut self) -> Vec<Do> {
        self.close_and(Vec::new())
    }

    fn show(&mut self, mode: Mode) -> Vec<Do> {
        self.mode = mode;
        vec![Do::Draw]
    }

    fn close_and(&mut self, more: Vec<Do>) -> Vec<Do> {
        self.mode = Mode::Closed;
        let kept = std::mem::take(&mut self.kept);
        let kept = (!kept.is_empty()).then_some(Do::Send(kept));
        [Do::Close].into_iter().chain(kept).chain(more).collect()
    }

    /// The program that asked may still want its answer.
    fn keep(&mut self, bytes: Vec<u8>) -> Vec<Do> {
        if self.kept.len() + bytes.len() <= KEPT {
            self.kept.extend(bytes);
        }
        Vec::new()
    }

    fn chosen(&mut self, token: Token) -> Vec<Do> {
        let (key, bytes) = match token {
            Token::Report(bytes) => return self.keep(bytes),
            Token::Press { key, bytes, .. } => (key, bytes),
            paste => return self.close_and(passed_on(paste)),
        };
        match key {
            Key::Char('c') => self.show(Mode::Asking(Question::Code, String::new())),
            Key::Char('k') => self.show(Mode::Asking(Question::Destroy, String::new())),
            Key::Char('s') => vec![Do::Act(Action::Screen)],
            Key::Char('u') => vec![Do::Act(Action::Url)],
            Key::Char('t') => vec![Do::Act(Action::Shell)],
            Key::Char('d') => vec![Do::Act(Action::Detach)],
            Key::Escape => self.close(),
            Key::Ctrl('a') => self.close_and(vec![Do::Send(vec![PREFIX, PREFIX])]),
            _ => self.close_and(vec![Do::Send([&[PREFIX][..], &bytes].concat())]),
        }
    }

    fn answered(&mut self, token: Token) -> Vec<Do> {
        let Mode::Asking(question, typed) = &mut self.mode else { return Vec::new() };
        let (key, plain) = match token {
            Token::Report(bytes) => return self.keep(bytes),
            Token::Press { key, plain, .. } => (key, plain),
            Token::Paste(_) | Token::PastePart(_) => return Vec::new(),
        };
        match key {
            // A no may come in any form.
            Key::Escape => self.close(),
            _ if !plain => Vec::new(),
            Key::Ctrl('c' | 'd') => self.close(),
            Key::Char(c) if typed.len() < LONGEST_ANSWER => {
                typed.push(c);
                vec![Do::Draw]
            }
            Key::Backspace => typed.pop().map(|_| Do::Draw).into_iter().collect(),
            Key::Enter => {
                let yes = matches!(typed.as_str(), "y" | "Y" | "yes")
                    || (*question == Question::Destroy && *typed == self.name);
                let action = match question {
                    Question::Code => Action::Code,
                    Question::Destroy => Action::Destroy,
                };
                if yes { vec![Do::Act(action)] } else { self.close() }
            }
            _ => Vec::new(),
        }
    }
}

fn passed_on(token: Token) -> Vec<Do> {
    match token {
        Token::Press { bytes, .. } | Token::Report(bytes) | Token::PastePart(bytes) => {
            vec![Do::Send(bytes)]
        }
        Token::Paste(text) => vec![Do::Pasted(text)],
    }
}

#[cfg(test)]
mod tests;
