//! What may be in an archive of a box, entry by entry.
//!
//! Names are bytes here. A name is relative and plain, lies below what was asked for and not too
//! deep; a link leads up at its beginning only and never out of what is copied.

use protocol::text::shortened;
use std::io::{self, Read};
use std::{error, fmt};

/// How long a whole name, or where a link leads, may be.
pub const MAX_NAME: usize = 4096;
/// How deep folders may lie in each other. Every part is looked at for every entry.
pub const MAX_DEPTH: usize = 64;
/// How long one part of a name may be.
const MAX_PART: usize = 255;
/// How much of a name is repeated.
const SHOWN: usize = 200;

/// What a box sent that is not taken, in words that follow “the box sent”. One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(String);

impl Refused {
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Refused {}

/// What may be in an archive.
#[derive(Debug, Clone, Copy)]
pub enum Tops<'a> {
    /// Only these, and what is below them; a link stays below its own.
    Only(&'a [String]),
    /// Anything: the archive is one folder's content.
    Any,
}

/// A name as people may see it.
pub fn said(name: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(name), SHOWN)
}

pub fn broken(error: &io::Error) -> Refused {
    let why = shortened(&error.to_string(), SHOWN);
    Refused(format!("an archive that cannot be read ({why})"))
}

/// The parts of a name that stays below where it starts; none for the start itself.
pub fn parts<'n>(name: &'n [u8], tops: Tops<'_>) -> Result<Vec<&'n [u8]>, Refused> {
    let refuse = |why: &str| Err(Refused(format!("'{}', {why}", said(name))));
    if name.first() == Some(&b'/') {
        return refuse("which is no relative path");
    }
    if has_control(name) {
        return refuse("a name with a control character");
    }
    // One more than may be: the rest need not be looked at.
    let parts = name.split(|b| *b == b'/').filter(|p| !p.is_empty() && *p != b".");
    let parts: Vec<&[u8]> = parts.take(MAX_DEPTH + 1).collect();
    if parts.contains(&&b".."[..]) {
        return refuse("which leads out of the destination");
    }
    if name.len() > MAX_NAME || parts.iter().any(|p| p.len() > MAX_PART) {
        return refuse("a name that is too long");
    }
    if parts.len() > MAX_DEPTH {
        return refuse("which lies too deep");
    }
    if let (Tops::Only(tops), Some(top)) = (tops, parts.first())
        && !tops.iter().any(|name| name.as_bytes() == *top)
    {
        return refuse("which was not asked for");
    }
    Ok(parts)
}

/// A link may lead up at its beginning only, and never out of what is copied. A link that goes
/// down and up again could, by way of another link, lead anywhere.
pub fn check_link(path: &[&[u8]], target: &[u8], tops: Tops<'_>) -> Result<(), Refused> {
    let odd = target.is_empty() || target.len() > MAX_NAME || target[0] == b'/';
    let parts: Vec<&[u8]> =
        target.split(|b| *b == b'/').filter(|p| !p.is_empty() && *p != b".").collect();
    let up = parts.iter().take_while(|p| **p == b"..").count();
    // How far up the top of what is copied is from where the link lies.
    let allowed = match tops {
        Tops::Only(_) => path.len().checked_sub(2),
        Tops::Any => path.len().checked_sub(1),
    };
    let within = allowed.is_some_and(|allowed| up <= allowed);
    if odd || has_control(target) || !within || parts[up..].contains(&&b".."[..]) {
        let (path, target) = (said(&path.join(&b'/')), said(target));
        return Err(Refused(format!("'{path}' → '{target}', a link that leaves what is copied")));
    }
    Ok(())
}

fn has_control(name: &[u8]) -> bool {
    match std::str::from_utf8(name) {
        Ok(text) => text.chars().any(char::is_control),
        Err(_) => name.iter().any(u8::is_ascii_control),
    }
}

/// A name that did not fit into its header.
pub(crate) fn long_name(entry: &mut impl Read) -> Result<Vec<u8>, Refused> {
    let mut name = Vec::new();
    entry.take(MAX_NAME as u64 + 2).read_to_end(&mut name).map_err(|e| broken(&e))?;
    if name.len() > MAX_NAME + 1 {
        return Err(Refused::new("a name longer than 4096 bytes"));
    }
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}
