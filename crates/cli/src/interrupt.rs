//! Ctrl-C during something long: the call is hung up, so the host undoes it, and we end with 130.
//!
//! The first signal is polite, so that a command can clean up after itself; a second one ends the
//! process where it stands.

use crate::error::{CommandError, Kind};
use host::client::{Client, ClientError, Incoming, Writer};
use protocol::control::Request;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    seen: bool,
    running: Option<Writer>,
}

impl Interrupt {
    /// Takes SIGINT, SIGTERM and SIGHUP for the rest of the process.
    pub fn install() -> Result<Self, CommandError> {
        let interrupt = Self { state: Arc::default() };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let own = interrupt.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if own.signalled() {
                    std::process::exit(i32::from(Kind::Interrupted.exit_code()));
                }
            }
        });
        Ok(interrupt)
    }

    pub fn check(&self) -> Result<(), CommandError> {
        if self.lock().seen { Err(CommandError::interrupted()) } else { Ok(()) }
    }

    /// A call that a signal ends.
    pub fn call<T: DeserializeOwned>(
        &self,
        client: &Client,
        request: &Request,
        incoming: impl FnMut(Incoming),
    ) -> Result<T, CommandError> {
        self.check()?;
        let conversation = client.open(request)?;
        let writer = conversation.writer()?;
        {
            let mut state = self.lock();
            if state.seen {
                return Err(CommandError::interrupted());
            }
            state.running = Some(writer);
        }
        let result: Result<T, ClientError> = conversation.finish(incoming);
        self.lock().running = None;
        match result {
            Ok(value) => Ok(value),
            Err(error) => self.check().and(Err(error.into())),
        }
    }

    /// Ends the call that is under way, without a signal.
    pub fn hang_up(&self) {
        if let Some(writer) = &self.lock().running {
            writer.hang_up();
        }
    }

    /// Whether it was not the first signal.
    fn signalled(&self) -> bool {
        let mut state = self.lock();
        if let Some(writer) = &state.running {
            writer.hang_up();
        }
        std::mem::replace(&mut state.seen, true)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
