//! What the window's page may do, without a word about webviews: calls to the host, long calls, streams
//! of bytes and a box's files.
//!
//! Everything goes on to the host over the control socket. Nothing is decided here, and what a page has
//! no business with is refused before it gets there: whoever tricks a page into asking gets no further
//! than a person at it could. The desktop app joins it to the page by Tauri's calls; tests join the same
//! page to it in a browser.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod files;
mod flow;
mod front;
mod long;
mod loosening;
mod permitted;
mod running;
mod stream;
mod way_out;

pub use loosening::{Loosening, Person};

use front::Front;
use host::client::{Client, ClientError};
use protocol::control::{ControlError, ErrorCode};
use running::Running;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// One page's way to the host.
#[derive(Clone)]
pub struct Window {
    client: Client,
    running: Arc<Running>,
    front: Arc<Front>,
    /// Who is asked about what lets boxes do more; without anybody it is refused.
    person: Option<Arc<dyn Person>>,
    /// How often in a row they said no. Held while they are asked: one question at a time.
    noes: Arc<Mutex<u32>>,
}

impl Window {
    pub fn new(home: &Path) -> Self {
        let client = Client::new(home);
        let (running, front) = (Arc::default(), Arc::default());
        Self { client, running, front, person: None, noes: Arc::default() }
    }

    /// The same, with somebody who can be asked outside of the page.
    pub fn in_front_of(home: &Path, person: Arc<dyn Person>) -> Self {
        Self { person: Some(person), ..Self::new(home) }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one request to the host and gives its reply.
    pub fn call(&self, request: Value) -> Result<Value, ControlError> {
        let request = permitted::now(request)?;
        self.asked_outside(&request)?;
        self.client.call(&request).map_err(to_control)
    }

    /// Ends a long call or a stream.
    pub fn hang_up(&self, number: u32) {
        self.running.hang_up(number);
    }
}

pub fn to_control(error: ClientError) -> ControlError {
    match error {
        ClientError::Host(e) => e,
        ClientError::NotRunning(_) => {
            failed(error.to_string()).hint("Start it with: agentbox-desktop")
        }
        ClientError::Broken(_) => failed(format!("{error}.")),
    }
}

fn failed(text: impl Into<String>) -> ControlError {
    ControlError::new(ErrorCode::Failed, text)
}

fn usage(text: impl Into<String>) -> ControlError {
    ControlError::new(ErrorCode::Usage, text)
}
