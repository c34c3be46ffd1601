//! A document's words. What stands outside strings is a known word or mark, a space, a tab, a
//! line's end, a comma or a comment up to a line's end; anything else ends the reading.

use super::Fault;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// One of `! $ & ( ) : = @ [ ] { | }`.
    Mark(char),
    /// `...`
    Spread,
    Name(String),
    /// As written.
    Number(String),
    /// What a string or block string means.
    Text(String),
}

impl Token {
    pub fn shown(&self) -> String {
        match self {
            Token::Mark(c) => c.to_string(),
            Token::Spread => "...".to_owned(),
            Token::Name(text) | Token::Number(text) => text.clone(),
            Token::Text(text) => format!("\"{text}\""),
        }
    }
}

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { rest: source.chars().peekable(), line: 1, column: 1 };
    let mut all = Vec::new();
    while let Some(c) = lexer.peek() {
        match c {
            '\t' | ' ' | '\n' | '\r' | ',' => {
                lexer.next();
            }
            // A carriage return ends a comment, too: what follows it is part of the document.
            '#' => while lexer.next_if(|c| !matches!(c, '\n' | '\r')).is_some() {},
            '!' | '$' | '&' | '(' | ')' | ':' | '=' | '@' | '[' | ']' | '{' | '|' | '}' => {
                lexer.next();
                all.push(Token::Mark(c));
            }
            '.' => all.push(lexer.spread()?),
            '"' => all.push(Token::Text(lexer.text()?)),
            '_' | 'a'..='z' | 'A'..='Z' => {
                all.push(Token::Name(lexer.run(|c| c == '_' || c.is_ascii_alphanumeric())));
            }
            '-' | '0'..='9' => all.push(Token::Number(lexer.number()?)),
            c => return Err(lexer.fault(format!("the character U+{:04X}", u32::from(c)))),
        }
    }
    Ok(all)
}

struct Lexer<'s> {
    rest: Peekable<Chars<'s>>,
    line: usize,
    column: usize,
}

impl Lexer<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn next_if(&mut self, fits: impl Fn(char) -> bool) -> Option<char> {
        if self.peek().is_some_and(fits) { self.next() } else { None }
    }

    fn run(&mut self, fits: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.next_if(&fits)).collect()
    }

    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::Lexical(what.into(), self.line, self.column)
    }

    fn spread(&mut self) -> Result<Token, Fault> {
        let dots = self.run(|c| c == '.');
        if dots.len() == 3 { Ok(Token::Spread) } else { Err(self.fault("a stray '.'")) }
    }

    fn number(&mut self) -> Result<String, Fault> {
        let mut text: String = self.next_if(|c| c == '-').into_iter().collect();
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(self.fault("a number with a leading zero"));
        }
        text.push_str(&whole);
        if self.peek() == Some('.') {
            text.extend(self.next());
            text.push_str(&self.digits()?);
        }
        if let Some(e) = self.next_if(|c| matches!(c, 'e' | 'E')) {
            text.push(e);
            text.extend(self.next_if(|c| matches!(c, '+' | '-')));
            text.push_str(&self.digits()?);
        }
        // `0x1`, `1.2.3` and `1a` are one thing to some readers and two to others.
        if self.peek().is_some_and(|c| c == '.' || c == '_' || c.is_ascii_alphanumeric()) {
            return Err(self.fault("a number that runs into a word"));
        }
        Ok(text)
    }

    fn digits(&mut self) -> Result<String, Fault> {
        let digits = self.run(|c| c.is_ascii_digit());
        if digits.is_empty() { Err(self.fault("a number without digits")) } else { Ok(digits) }
    }

    fn text(&mut self) -> Result<String, Fault> {
        self.next();
        if self.next_if(|c| c == '"').is_none() {
            return self.plain_text();
        }
        if self.next_if(|c| c == '"').is_none() { Ok(String::new()) } else { self.block_text() }
    }

    fn plain_text(&mut self) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(c) if c == '\t' || !c.is_control() => text.push(c),
                _ => return Err(self.fault("a string without its end")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, Fault> {
        Ok(match self.next() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => self.unicode()?,
            _ => return Err(self.fault("an unknown escape")),
        })
    }

    fn unicode(&mut self) -> Result<char, Fault> {
        let code = if self.next_if(|c| c == '{').is_some() {
            let digits = self.run(|c| c.is_ascii_hexdigit());
            if self.next() != Some('}') || digits.len() > 6 {
                return Err(self.fault("a malformed escape"));
            }
            u32::from_str_radix(&digits, 16).map_err(|_| self.fault("a malformed escape"))?
        } else {
            self.unit_or_pair()?
        };
        char::from_u32(code).ok_or_else(|| self.fault("an escape that means no character"))
    }

    /// `\u` and four digits; two of them for what needs a surrogate pair.
    fn unit_or_pair(&mut self) -> Result<u32, Fault> {
        let high = self.unit()?;
        if !(0xd800..0xdc00).contains(&high) {
            return Ok(high);
        }
        if self.next() != Some('\\') || self.next() != Some('u') {
            return Err(self.fault("half a surrogate pair"));
        }
        let low = self.unit()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(self.fault("half a surrogate pair"));
        }
        Ok(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn unit(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.next().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.fault("a malformed escape"))?;
        }
        Ok(code)
    }

    fn block_text(&mut self) -> Result<String, Fault> {
        let mut raw = String::new();
        loop {
            match self.next() {
                Some('"') if raw.ends_with("\"\"") => {
                    raw.truncate(raw.len() - 2);
                    return Ok(unindented(&raw.replace('\u{0}', "\"\"\"")));
                }
                // The escaped end. NUL stands for it while reading, because no document may hold
                // one.
                Some('\\') if self.rest.clone().take(3).eq(['"'; 3]) => {
                    for _ in 0..3 {
                        self.next();
                    }
                    raw.push('\u{0}');
                }
                Some(c) if matches!(c, '\t' | '\n' | '\r') || !c.is_control() => raw.push(c),
                _ => return Err(self.fault("a block string without its end")),
            }
        }
    }
}

/// A block string's meaning: without the indentation its lines share, and without the empty lines
/// around it.
fn unindented(raw: &str) -> String {
    let raw = raw.replace("\r\n", "\n").replace('\r', "\n");
    let blank = |line: &str| line.chars().all(|c| matches!(c, ' ' | '\t'));
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines: Vec<&str> = raw.split('\n').collect();
    let shared = lines.iter().skip(1).filter(|l| !blank(l)).map(|l| indent(l)).min().unwrap_or(0);
    let mut lines: Vec<&str> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| if at == 0 { line } else { line.get(shared..).unwrap_or("") })
        .collect();
    while lines.last().is_some_and(|l| blank(l)) {
        lines.pop();
    }
    let first = lines.iter().position(|l| !blank(l)).unwrap_or(0);
    lines.get(first..).unwrap_or_default().join("\n")
}
