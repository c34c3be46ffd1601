//! Every failure as the person sees it: what went wrong, and separately what to do next.
//!
//! A kind is an exit code and nothing else; `docs/reference.md` lists them.

use host::client::ClientError;
use protocol::control::{ControlError, ErrorCode};
use protocol::text::visible;
use std::io;

/// The exit code of a command that did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    pub const OK: Exit = Exit(0);
    pub const FAILED: Exit = Exit(1);
}

pub type Outcome = Result<Exit, CommandError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tried and failed.
    Failed,
    /// The command line is wrong, or names no box or more than one.
    Usage,
    /// The image every box is built on is not there and cannot be had.
    NoBaseImage,
    /// The person pressed Ctrl-C.
    Interrupted,
    /// Whoever read our output has seen enough.
    ReaderLeft,
    /// The person wanted none of it; nothing was done.
    Declined,
}

impl Kind {
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::ReaderLeft | Kind::Declined => 0,
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NoBaseImage => 3,
            Kind::Interrupted => 130,
        }
    }
}

#[derive(Debug, Clone)]
pub struct CommandError {
    pub kind: Kind,
    pub error: String,
    pub hints: Vec<String>,
}

impl CommandError {
    pub fn new(kind: Kind, error: impl Into<String>) -> Self {
        Self { kind, error: error.into(), hints: Vec::new() }
    }

    pub fn failed(error: impl Into<String>) -> Self {
        Self::new(Kind::Failed, error)
    }

    pub fn usage(error: impl Into<String>) -> Self {
        Self::new(Kind::Usage, error)
    }

    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Host(e) => e.into(),
            e @ ClientError::NotRunning(_) => Self::failed(e.to_string())
                .hint("start one with `agentbox serve`, or open AgentBox"),
            e @ ClientError::Broken(_) => Self::failed(visible(&e.to_string()))
                .hint("`agentbox status` says whether the host still runs"),
        }
    }
}

impl From<ControlError> for CommandError {
    fn from(error: ControlError) -> Self {
        let kind = if error.code == ErrorCode::Usage { Kind::Usage } else { Kind::Failed };
        // An indented hint is a line of a list, such as the boxes to choose from: no advice.
        let (list, hints): (Vec<_>, Vec<_>) =
            error.hints.iter().map(|h| visible(h)).partition(|h| h.starts_with("  "));
        let error = error.message.lines().map(visible).chain(list).collect::<Vec<_>>().join("\n");
        Self { kind, error, hints }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Kind::ReaderLeft, error.to_string()),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<boxes::Error> for CommandError {
    fn from(error: boxes::Error) -> Self {
        let kind = match error {
            boxes::Error::NoBaseImage { .. } => Kind::NoBaseImage,
            boxes::Error::BadAddress { .. } => Kind::Usage,
            _ => Kind::Failed,
        };
        let text = error.to_string();
        // A failed build ends with the output of the failed step, line by line.
        let shown = text.lines().map(visible).collect::<Vec<_>>().join("\n");
        Self { kind, error: shown, hints: error.hint().into_iter().collect() }
    }
}
