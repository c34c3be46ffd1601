//! Bytes of the person's terminal as key presses, pastes and what the terminal answers by itself.
//!
//! Nothing is lost: what every token stands for can be passed on byte by byte. A sequence that comes in
//! parts is waited for a moment; then it is what it looks like. The surprising thing: what a terminal
//! answers to a question of the box comes the same way as keys do, so it has to be told apart from them.

use std::time::Duration;

const ESC: u8 = 0x1b;
/// The longest sequence a key has.
const LONGEST: usize = 64;
/// The longest paste that can be the name of a file.
pub const SHORT_PASTE: usize = 4096;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Escape,
    Backspace,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A key; plain when it did not come as an escape sequence.
    Press { key: Key, plain: bool, bytes: Vec<u8> },
    /// What no person typed: answers of the terminal, the mouse, keys let go.
    Report(Vec<u8>),
    /// A whole paste that is short, without its brackets.
    Paste(Vec<u8>),
    /// A part of any other, with them.
    PastePart(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    /// After `ESC [`; too long for a key when true.
    Control(bool),
    /// After `ESC O`.
    Shift,
    /// Bytes of an old mouse report that are still to come.
    Mouse(u8),
    /// A text the terminal answers; true after an `ESC` in it.
    Text(bool),
    /// In brackets; true when its beginning is out already.
    Paste(bool),
}

#[derive(Debug)]
pub struct Decoder {
    state: State,
    held: Vec<u8>,
}

/// The brackets around a paste.
pub fn bracketed(text: &[u8]) -> Vec<u8> {
    [PASTE_BEGIN, text, PASTE_END].concat()
}

impl Decoder {
    pub fn new() -> Self {
        Self { state: State::Ground, held: Vec::new() }
    }

    /// How long the next bytes may belong to what came before.
    pub fn patience(&self) -> Option<Duration> {
        match self.state {
            State::Ground => None,
            State::Paste(true) if self.loose() == 0 => None,
            State::Paste(_) | State::Text(_) => Some(Duration::from_millis(500)),
            _ => Some(Duration::from_millis(50)),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Token> {
        let mut tokens = Vec::new();
        for byte in bytes {
            self.take(*byte, &mut tokens);
        }
        if matches!(self.state, State::Text(_)) && !self.held.is_empty() {
            tokens.push(Token::Report(std::mem::take(&mut self.held)));
        }
        tokens
    }

    /// Nothing came for a moment. When `strict`, only a lone escape is taken for complete: the rest of an
    /// answer that is slow must not pass for keys.
    pub fn quiet(&mut self, strict: bool) -> Vec<Token> {
        match self.state {
            State::Escape => vec![press(Key::Escape, true, self.end())],
            State::Text(true) if strict => vec![press(Key::Escape, true, self.end())],
            _ if strict => Vec::new(),
            State::Ground => Vec::new(),
            State::Paste(begun) => vec![self.part(begun)],
            _ => match self.end() {
                held if held.is_empty() => Vec::new(),
                held => vec![press(Key::Other, false, held)],
            },
        }
    }

    /// How much of a paste is no beginning of its end.
    fn loose(&self) -> usize {
        let tail = (0..PASTE_END.len()).rev().find(|n| self.held.ends_with(&PASTE_END[..*n]));
        self.held.len() - tail.unwrap_or(0)
    }

    /// What there is of a paste; the rest follows as it comes.
    fn part(&mut self, begun: bool) -> Token {
        let rest = self.held.split_off(self.loose());
        let part = std::mem::replace(&mut self.held, rest);
        self.state = State::Paste(true);
        let begin = if begun { &b""[..] } else { PASTE_BEGIN };
        Token::PastePart([begin, &part].concat())
    }

    fn take(&mut self, byte: u8, tokens: &mut Vec<Token>) {
        match self.state {
            State::Ground if byte == ESC => self.go(State::Escape, byte),
            State::Ground => tokens.push(press(plain(byte), true, vec![byte])),
            State::Escape => self.escaped(byte, tokens),
            State::Control(long) => self.control(byte, long, tokens),
            State::Shift => {
                self.held.push(byte);
                let bytes = self.end();
                tokens.push(press(Key::Other, false, bytes));
            }
            State::Mouse(left) => {
                self.held.push(byte);
                if left > 1 {
                    self.state = State::Mouse(left - 1);
                } else {
                    tokens.push(Token::Report(self.end()));
                }
            }
            State::Text(escaped) => {
                self.held.push(byte);
                // Anything but the end after an escape begins something else: the text was none.
                if byte == 0x07 || escaped {
                    tokens.push(Token::Report(self.end()));
                } else {
                    self.state = State::Text(byte == ESC);
                }
            }
            State::Paste(begun) => self.pasted(byte, begun, tokens),
        }
    }

    fn go(&mut self, state: State, byte: u8) {
        self.state = state;
        self.held.push(byte);
    }

    fn end(&mut self) -> Vec<u8> {
        self.state = State::Ground;
        std::mem::take(&mut self.held)
    }

    fn escaped(&mut self, byte: u8, tokens: &mut Vec<Token>) {
        match byte {
            b'[' => self.go(State::Control(false), byte),
            b'O' => self.go(State::Shift, byte),
            b']' | b'P' | b'_' | b'^' | b'X' => self.go(State::Text(false), byte),
            ESC => tokens.push(press(Key::Escape, true, vec![ESC])),
            _ => {
                self.held.push(byte);
                let bytes = self.end();
                tokens.push(press(Key::Other, false, bytes));
            }
        }
    }

    fn control(&mut self, byte: u8, long: bool, tokens: &mut Vec<Token>) {
        if !(0x20..=0x7e).contains(&byte) {
            tokens.push(Token::Report(self.end()));
            return self.take(byte, tokens);
        }
        self.held.push(byte);
        if byte == b'M' && self.held.len() == 3 {
            self.state = State::Mouse(3);
        } else if byte >= 0x40 && self.held == PASTE_BEGIN {
            self.held.clear();
            self.state = State::Paste(false);
        } else if byte >= 0x40 {
            let bytes = self.end();
            tokens.push(if long { Token::Report(bytes) } else { sequence(bytes) });
        } else if self.held.len() >= LONGEST {
            self.state = State::Control(true);
            tokens.push(Token::Report(std::mem::take(&mut self.held)));
        }
    }

    fn pasted(&mut self, byte: u8, begun: bool, tokens: &mut Vec<Token>) {
        self.held.push(byte);
        if self.held.ends_with(PASTE_END) {
            let mut text = self.end();
            if begun {
                tokens.push(Token::PastePart(text));
            } else {
                text.truncate(text.len() - PASTE_END.len());
                tokens.push(Token::Paste(text));
            }
        } else if self.held.len() > SHORT_PASTE {
            tokens.push(self.part(begun));
        }
    }
}

fn press(key: Key, plain: bool, bytes: Vec<u8>) -> Token {
    Token::Press { key, plain, bytes }
}

fn plain(byte: u8) -> Key {
    match byte {
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Backspace,
        0x01..=0x1a => Key::Ctrl(char::from(byte | 0x60)),
        0x20..=0x7e => Key::Char(char::from(byte)),
        _ => Key::Other,
    }
}

/// A whole `ESC [ … x`.
fn sequence(bytes: Vec<u8>) -> Token {
    match key_of(&bytes) {
        Some(key) => press(key, false, bytes),
        None => Token::Report(bytes),
    }
}

/// None when no key was pressed.
fn key_of(bytes: &[u8]) -> Option<Key> {
    let (end, parameters) = bytes.get(2..)?.split_last()?;
    let parameters = std::str::from_utf8(parameters).ok()?;
    if parameters.starts_with(['<', '=', '>', '?']) || parameters.contains([' ', '$', '!']) {
        return None;
    }
    let fields: Vec<Vec<u32>> = parameters
        .split(';')
        .map(|field| field.split(':').map(|n| n.parse().unwrap_or(0)).collect())
        .collect();
    let at = |field: usize, part: usize| -> u32 {
        fields.get(field).and_then(|f| f.get(part)).copied().unwrap_or(0)
    };
    if at(1, 1) == 3 {
        return None;
    }
    match end {
        // Three ways to write a key: as it is, shifted, and where it lies on a Latin keyboard.
        b'u' => coded(at(0, 0), at(0, 2), at(1, 0)),
        b'~' if at(0, 0) == 27 && fields.len() == 3 => coded(at(2, 0), 0, at(1, 0)),
        b'~' if at(0, 0) == 201 => None,
        b'~' | b'A'..=b'H' | b'P' | b'Q' | b'S' | b'Z' => Some(Key::Other),
        _ => None,
    }
}

fn coded(code: u32, base: u32, modifiers: u32) -> Option<Key> {
    const SHIFT: u32 = 1;
    const CTRL: u32 = 4;
    // The locks are no part of a key.
    let held = modifiers.saturating_sub(1) & 0b11_1111;
    let letter = |code: u32| char::from_u32(code).filter(char::is_ascii_lowercase);
    let key = match (code, held & !SHIFT) {
        // A key such as Ctrl alone, with nothing else yet.
        (57_344.., _) => return None,
        (_, CTRL) => letter(code | 0x20).or(letter(base)).map(Key::Ctrl),
        (13, 0) => Some(Key::Enter),
        (27, 0) => Some(Key::Escape),
        (127, 0) => Some(Key::Backspace),
        (32..=126, 0) => char::from_u32(code)
            .map(|c| Key::Char(if held == SHIFT { c.to_ascii_uppercase() } else { c })),
        _ => None,
    };
    Some(key.unwrap_or(Key::Other))
}

#[cfg(test)]
mod tests;
