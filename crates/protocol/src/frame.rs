//! Frames of the control socket: a kind byte, a big-endian length, a payload.
//!
//! A client sends one [`Kind::Request`]; the host answers with any number of [`Kind::Event`] (and,
//! for a command in a box, output) frames and ends with one [`Kind::Result`] or [`Kind::Error`].

use std::io::{self, Read, Write};

/// Larger frames are an error: the open questions of fifty boxes that ask all they may fit in one.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;
/// Kind byte and length.
pub const HEADER: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Request = 1,
    Event = 2,
    Result = 3,
    Error = 4,
    /// Bytes for the command's input; empty means end of input.
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
    /// Two big-endian `u16`: columns, rows.
    Resize = 8,
    /// From a client: what it asked for is not wanted any more. Empty.
    CallOff = 9,
}

impl Kind {
    fn from_byte(byte: u8) -> io::Result<Self> {
        Ok(match byte {
            1 => Kind::Request,
            2 => Kind::Event,
            3 => Kind::Result,
            4 => Kind::Error,
            5 => Kind::Stdin,
            6 => Kind::Stdout,
            7 => Kind::Stderr,
            8 => Kind::Resize,
            9 => Kind::CallOff,
            other => return Err(bad(format!("unknown frame kind {other}"))),
        })
    }
}

fn bad(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The header of a frame with so many payload bytes.
pub fn header(kind: Kind, len: usize) -> io::Result<[u8; HEADER]> {
    let len = u32::try_from(len).ok().filter(|n| *n as usize <= MAX_PAYLOAD);
    let len = len.ok_or_else(|| bad("frame too large".into()))?.to_be_bytes();
    Ok([kind as u8, len[0], len[1], len[2], len[3]])
}

/// The kind and payload length a header announces.
pub fn parse_header(header: [u8; HEADER]) -> io::Result<(Kind, usize)> {
    let len = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if len > MAX_PAYLOAD {
        return Err(bad(format!("frame of {len} bytes is too large")));
    }
    Ok((Kind::from_byte(header[0])?, len))
}

pub fn write(to: &mut impl Write, kind: Kind, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&header(kind, payload.len())?);
    frame.extend_from_slice(payload);
    to.write_all(&frame)
}

/// The next frame; `None` when the other side closed between frames.
pub fn read(from: &mut impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; HEADER];
    match from.read_exact(&mut head) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let (kind, len) = parse_header(head)?;
    let mut payload = vec![0; len];
    from.read_exact(&mut payload)?;
    Ok(Some((kind, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_way() {
        let mut wire = Vec::new();
        write(&mut wire, Kind::Event, b"one").unwrap();
        write(&mut wire, Kind::Stdin, b"").unwrap();
        let mut from = wire.as_slice();
        assert_eq!(read(&mut from).unwrap(), Some((Kind::Event, b"one".to_vec())));
        assert_eq!(read(&mut from).unwrap(), Some((Kind::Stdin, Vec::new())));
        assert_eq!(read(&mut from).unwrap(), None);
    }

    #[test]
    fn a_hostile_length_is_an_error_not_an_allocation() {
        assert!(read(&mut [2u8, 0xff, 0xff, 0xff, 0xff].as_slice()).is_err());
        assert!(read(&mut [99u8, 0, 0, 0, 0].as_slice()).is_err());
    }
}
