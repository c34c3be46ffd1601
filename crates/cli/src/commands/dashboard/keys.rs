//! Bytes of a terminal as keys, and what a key is for.

use protocol::control::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Enter,
    Leave,
    Char(char),
}

/// What a key leads to.
#[derive(Debug)]
pub enum Act {
    Leave,
    /// A command of ours that needs the terminal.
    Run(Vec<String>),
    /// One that needs none.
    Aside(Vec<String>),
    /// A request to the host, and what to say meanwhile.
    Ask(Box<Request>, String),
}

/// Escape sequences that are no arrow mean nothing; a lone escape leaves.
pub fn read(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            0x1b => match sequence(after) {
                Some((end, after)) => {
                    rest = after;
                    keys.extend(match end {
                        b'A' => Some(Key::Up),
                        b'B' => Some(Key::Down),
                        _ => None,
                    });
                }
                None => keys.push(Key::Leave),
            },
            b'\r' | b'\n' => keys.push(Key::Enter),
            // Ctrl-C and Ctrl-D.
            0x03 | 0x04 => keys.push(Key::Leave),
            0x20..=0x7e => keys.push(Key::Char(char::from(*first))),
            _ => {}
        }
    }
    keys
}

/// The last byte of a sequence such as `[1;2A` or `OA`, and what follows it.
fn sequence(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let inner = bytes.strip_prefix(b"[").or_else(|| bytes.strip_prefix(b"O"))?;
    let end = inner.iter().position(|b| (0x40..=0x7e).contains(b));
    Some(end.map_or((0, &[][..]), |at| (inner[at], &inner[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_letters_and_escape_are_told_apart() {
        assert_eq!(read(b"j\x1b[A\x1bOBk"), [Key::Char('j'), Key::Up, Key::Down, Key::Char('k')]);
        assert_eq!(read(b"\x1b"), [Key::Leave]);
        assert_eq!(read(b"\x1b[1;5C\x1b[200~x\r"), [Key::Char('x'), Key::Enter]);
        assert_eq!(read(b"\x1b["), []);
        assert_eq!(read("é\x03".as_bytes()), [Key::Leave]);
    }
}
