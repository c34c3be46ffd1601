//! A blocking client of the control socket, for the CLI and the window.
//!
//! One connection per call: nothing to multiplex, nothing to reconnect, and a client that goes
//! away takes exactly its own call with it.

use protocol::control::{ControlError, ErrorCode, HostEvent, Request};
use protocol::frame::{self, Kind};
use serde::de::DeserializeOwned;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Room for several pieces of a command's output.
const READ_AHEAD: usize = 128 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing listens: no host runs for this home.
    #[error("no AgentBox host is running for {}", .0.display())]
    NotRunning(PathBuf),
    /// The host answered with a failure.
    #[error(transparent)]
    Host(#[from] ControlError),
    /// The host went away in the middle, or speaks another version.
    #[error("the AgentBox host ended the conversation: {0}")]
    Broken(String),
}

impl From<io::Error> for ClientError {
    fn from(e: io::Error) -> Self {
        ClientError::Broken(e.to_string())
    }
}

/// What arrives while a call runs.
#[derive(Debug)]
pub enum Incoming {
    Event(Box<HostEvent>),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

/// One thing that arrived, or the answer.
#[derive(Debug)]
pub enum Next<T> {
    Incoming(Incoming),
    Result(T),
}

/// Knows where the socket is; connects for each call.
#[derive(Debug, Clone)]
pub struct Client {
    home: PathBuf,
}

impl Client {
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// One call without anything on the way.
    pub fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ClientError> {
        self.open(request)?.finish(|_| {})
    }

    /// Opens a call; the caller reads what arrives, and may write input frames meanwhile.
    pub fn open(&self, request: &Request) -> Result<Conversation, ClientError> {
        let path = crate::home::control_socket(&self.home);
        let mut stream =
            UnixStream::connect(&path).map_err(|_| ClientError::NotRunning(self.home.clone()))?;
        let body = serde_json::to_vec(request).map_err(io::Error::from)?;
        frame::write(&mut stream, Kind::Request, &body)?;
        Ok(Conversation { stream: BufReader::with_capacity(READ_AHEAD, stream) })
    }
}

/// A call under way.
pub struct Conversation {
    stream: BufReader<UnixStream>,
}

impl Conversation {
    /// A second handle on the connection: to send input frames from another thread, or to shut the
    /// call down.
    pub fn writer(&self) -> io::Result<Writer> {
        Ok(Writer { stream: self.stream.get_ref().try_clone()? })
    }

    /// Reads to the end; everything on the way goes to `incoming`.
    pub fn finish<T: DeserializeOwned>(
        mut self,
        mut incoming: impl FnMut(Incoming),
    ) -> Result<T, ClientError> {
        loop {
            match self.receive()? {
                Next::Incoming(one) => incoming(one),
                Next::Result(reply) => return Ok(reply),
            }
        }
    }

    /// What comes next, for whoever has to work on it before the rest may come.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Next<T>, ClientError> {
        let Some((kind, payload)) = frame::read(&mut self.stream)? else {
            return Err(ClientError::Broken("it stopped before it answered".into()));
        };
        Ok(match kind {
            Kind::Event => Next::Incoming(Incoming::Event(Box::new(parse(&payload)?))),
            Kind::Stdout => Next::Incoming(Incoming::Stdout(payload)),
            Kind::Stderr => Next::Incoming(Incoming::Stderr(payload)),
            Kind::Result => Next::Result(parse(&payload)?),
            Kind::Error => return Err(parse::<ControlError>(&payload)?.into()),
            Kind::Request | Kind::Stdin | Kind::Resize | Kind::CallOff => {
                return Err(ClientError::Broken("it sent a frame only clients send".into()));
            }
        })
    }
}

/// The sending half of a [`Conversation`].
pub struct Writer {
    stream: UnixStream,
}

impl Writer {
    /// Input for the command; empty means end of input.
    pub fn stdin(&mut self, bytes: &[u8]) -> io::Result<()> {
        frame::write(&mut self.stream, Kind::Stdin, bytes)
    }

    pub fn resize(&mut self, cols: u16, rows: u16) -> io::Result<()> {
        let [[a, b], [c, d]] = [cols.to_be_bytes(), rows.to_be_bytes()];
        frame::write(&mut self.stream, Kind::Resize, &[a, b, c, d])
    }

    /// Another handle of the same.
    pub fn another(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()? })
    }

    /// Ends the conversation from this side, and what was asked for with it, also where that would go
    /// on without anybody.
    pub fn call_off(&mut self) {
        let _ = frame::write(&mut self.stream, Kind::CallOff, &[]);
        self.hang_up();
    }

    /// Ends the conversation from this side: the reader sees it closed.
    pub fn hang_up(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl ClientError {
    /// The stable code, when the host gave one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Host(e) => Some(e.code),
            _ => None,
        }
    }
}

fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(payload).map_err(|e| ClientError::Broken(format!("bad frame: {e}")))
}
