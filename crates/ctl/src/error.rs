//! Everything that can go wrong in the box, and the exit code it ends with.

use protocol::exit;
use std::path::PathBuf;
use std::{fmt, io};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("agentbox-ctl: {0}")]
    Usage(String),
    #[error("agentbox: no token for the host at {path}: {why}. Restart the box from the host.", path = .0.display(), why = .1)]
    NoToken(PathBuf, String),
    #[error("agentbox: cannot reach the host at {path}: {why}. Start AgentBox on the host.", path = .0.display(), why = .1)]
    Unreachable(PathBuf, io::Error),
    #[error(
        "agentbox: {0}. This box may have a network of its own; see 'agentbox-ctl help egress'."
    )]
    NoWayOut(String),
    #[error(
        "agentbox: the host went away before it answered; nothing was decided. Run the command again."
    )]
    HostGone,
    #[error("relay returned {status}: {error}")]
    Relay { status: u16, error: String },
    #[error("agentbox: the relay's answer cannot be read: {0}")]
    BadAnswer(String),
    #[error("agentbox: cannot run {0}: {1}")]
    Program(&'static str, io::Error),
    #[error("agentbox: {what} failed: {said}")]
    Git { what: String, said: String },
    #[error("agentbox: the host sent {0}")]
    BadInput(String),
    #[error("agentbox: {0}: {why}", why = cause(.1))]
    Io(String, io::Error),
    #[error("agentbox: {0}")]
    Failed(String),
}

impl Error {
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Usage(_) | Error::BadInput(_) => exit::UNADDRESSABLE,
            Error::NoToken(..) => exit::REFUSED,
            Error::Unreachable(..) | Error::NoWayOut(_) | Error::HostGone | Error::Program(..) => {
                exit::UNREACHABLE
            }
            _ => exit::FAILURE,
        }
    }
}

/// The archive reader wraps what the kernel said into words that leave it out.
fn cause(error: &io::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(next) = at.source() {
        at = next;
    }
    at.to_string()
}

/// Says what was being done when an I/O error came up.
pub trait Doing<T> {
    fn doing<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|e| Error::Io(what().to_string(), e.into()))
    }
}
