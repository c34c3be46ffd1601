//! A chunked body, byte by byte, in the one form that everybody reads alike.

use super::{Fault, bad, check_field};

/// Digits of a chunk's size; more than anybody sends.
const MOST_DIGITS: u8 = 15;
const MOST_TRAILER: usize = 16 * 1024;

#[derive(Default)]
pub(super) struct Chunks {
    at: At,
    size: u64,
    digits: u8,
    /// The line of a trailer that is being read.
    line: Vec<u8>,
    trailer: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    Trailer,
    TrailerEnd,
    Over,
}

impl Chunks {
    /// How many of these bytes belong to the body and are as they should be.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && self.at != At::Over {
            if self.at == At::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += left;
                self.size -= left as u64;
                if self.size == 0 {
                    self.at = At::DataReturn;
                }
                continue;
            }
            self.step(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    pub fn is_over(&self) -> bool {
        self.at == At::Over
    }

    fn step(&mut self, byte: u8) -> Result<(), Fault> {
        self.at = match (self.at, byte) {
            (At::Size, b'\r') if self.digits > 0 => At::SizeEnd,
            (At::Size, _) => {
                let digit = char::from(byte).to_digit(16);
                let digit = digit.ok_or(bad("the size of a chunk is not just a number"))?;
                self.digits += 1;
                if self.digits > MOST_DIGITS {
                    return Err(bad("a chunk is too large"));
                }
                self.size = self.size << 4 | u64::from(digit);
                At::Size
            }
            (At::SizeEnd, b'\n') if self.size == 0 => At::Trailer,
            (At::SizeEnd, b'\n') => At::Data,
            (At::DataReturn, b'\r') => At::DataEnd,
            (At::DataEnd, b'\n') => {
                self.digits = 0;
                At::Size
            }
            (At::Trailer, b'\r') => At::TrailerEnd,
            (At::Trailer, _) => {
                self.trailer += 1;
                if self.trailer > MOST_TRAILER {
                    return Err(bad("the trailer is too large"));
                }
                self.line.push(byte);
                At::Trailer
            }
            (At::TrailerEnd, b'\n') if self.line.is_empty() => At::Over,
            (At::TrailerEnd, b'\n') => {
                check_field(&self.line)?;
                self.line.clear();
                At::Trailer
            }
            _ => return Err(bad("a chunk does not end where it says")),
        };
        Ok(())
    }
}
