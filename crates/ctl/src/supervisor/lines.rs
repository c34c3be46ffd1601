//! Bytes of a program become lines.
//!
//! A line ends with a line feed. A carriage return alone goes back to the line's begin, as progress
//! bars do, so what stood there is overwritten. Lines that never end are cut into pieces. Bytes are
//! put together first and read as text then, so a character may come in parts.

/// The longest line; what is longer becomes several.
pub const LONGEST: usize = 64 * 1024;

#[derive(Debug)]
pub struct Lines {
    begun: Vec<u8>,
    /// The last byte was a carriage return: what comes next says what it meant.
    returned: bool,
    longest: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self { begun: Vec::new(), returned: false, longest: LONGEST }
    }
}

impl Lines {
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(String)) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    self.returned = false;
                    line(self.take());
                }
                b'\r' => self.returned = true,
                byte => {
                    if std::mem::take(&mut self.returned) {
                        self.begun.clear();
                    }
                    if self.begun.len() >= self.longest {
                        line(self.cut());
                    }
                    self.begun.push(*byte);
                }
            }
        }
    }

    /// What has begun and not ended.
    pub fn unfinished(&self) -> Option<String> {
        (!self.begun.is_empty()).then(|| String::from_utf8_lossy(&self.begun).into_owned())
    }

    /// No more bytes come.
    pub fn end(&mut self) -> Option<String> {
        (!self.begun.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        let bytes = std::mem::take(&mut self.begun);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A full piece; a character that is not complete yet stays for the next one.
    fn cut(&mut self) -> String {
        let whole = match std::str::from_utf8(&self.begun) {
            Err(e) if e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let piece = self.take();
        self.begun = rest;
        piece
    }
}

/// Without colours and other commands to a terminal.
pub fn without_ansi(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {},
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\x07' {
                        break;
                    }
                    if c == '\x1b' {
                        chars.next_if_eq(&'\\');
                        break;
                    }
                }
            }
            Some('(' | ')' | '#' | '%') => {
                chars.next();
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(parts: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for part in parts {
            lines.push(part, |line| found.push(line));
        }
        found.extend(lines.end());
        found
    }

    #[test]
    fn blank_lines_stay_and_returns_overwrite() {
        assert_eq!(all(&[b"a\n\nb\r\nc"]), ["a", "", "b", "c"]);
        assert_eq!(all(&[b"10%\r50%\r100%\n"]), ["100%"]);
        assert_eq!(all(&[b"10%\r"]), ["10%"]);
        assert_eq!(all(&[b"x\r", b"\ny"]), ["x", "y"]);
    }

    #[test]
    fn a_character_may_come_in_parts() {
        assert_eq!(all(&[b"gr\xc3", b"\xbcn\n"]), ["gr\u{fc}n"]);
        assert_eq!(all(&[b"\xff\n"]), ["\u{fffd}"]);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = vec![b'x'; LONGEST + 5];
        let found = all(&[&long]);
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [LONGEST, 5]);
        let mut lines = Lines { longest: 4, ..Lines::default() };
        let mut found = Vec::new();
        lines.push("abc\u{20ac}d".as_bytes(), |line| found.push(line));
        found.extend(lines.end());
        assert_eq!(found.concat(), "abc\u{20ac}d");
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_ansi("\x1b[32mre\x1b[0;1mady\x1b[0m"), "ready");
        assert_eq!(without_ansi("\x1b]0;title\x07x\x1b]8;;u\x1b\\y"), "xy");
        assert_eq!(without_ansi("\x1b(Bz\x1b"), "z");
    }

    proptest! {
        #[test]
        fn how_bytes_arrive_does_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            at in 0usize..200,
        ) {
            let at = at.min(bytes.len());
            prop_assert_eq!(all(&[&bytes]), all(&[&bytes[..at], &bytes[at..]]));
        }

        #[test]
        fn taking_off_colours_never_panics(text in "(\x1b|\\[|\\]|[a-z0-9;]|.){0,40}") {
            without_ansi(&text);
        }
    }
}
