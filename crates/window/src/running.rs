//! What is under way for a page: long calls and streams, by the page's own numbers.

use crate::failed;
use crate::flow::Flow;
use host::client::Writer;
use protocol::control::ControlError;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A page has a handful under way; more are a mistake.
const MOST: usize = 32;

#[derive(Default)]
pub struct Running(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    running: HashMap<u32, Call>,
    /// Ended by the page before they had begun.
    called_off: HashSet<u32>,
}

struct Call {
    writer: Writer,
    /// How much of a stream the page has taken.
    flow: Option<Arc<Flow>>,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call goes on. A number counts once.
    pub fn begun(
        &self,
        number: u32,
        writer: Writer,
        flow: Option<Arc<Flow>>,
    ) -> Result<(), ControlError> {
        let mut calls = self.lock();
        if calls.called_off.remove(&number) {
            return Err(failed("It was called off."));
        }
        if calls.running.len() >= MOST || calls.running.contains_key(&number) {
            return Err(failed("Too much is under way already."));
        }
        calls.running.insert(number, Call { writer, flow });
        Ok(())
    }

    pub fn ended(&self, number: u32) {
        self.lock().running.remove(&number);
    }

    pub fn hang_up(&self, number: u32) {
        let mut calls = self.lock();
        match calls.running.remove(&number) {
            Some(mut call) => {
                if let Some(flow) = call.flow {
                    flow.close();
                }
                call.writer.call_off();
            }
            None if calls.called_off.len() < MOST => drop(calls.called_off.insert(number)),
            None => {}
        }
    }

    /// Does something with a call's writer, if it is under way. A host that does not read holds only
    /// this page up.
    pub fn write(&self, number: u32, with: impl FnOnce(&mut Writer) -> std::io::Result<()>) {
        let mut calls = self.lock();
        if let Some(call) = calls.running.get_mut(&number) {
            let _ = with(&mut call.writer);
        }
    }

    /// The page has taken so many bytes of a stream.
    pub fn taken(&self, number: u32, bytes: usize) {
        if let Some(flow) = self.lock().running.get(&number).and_then(|call| call.flow.as_ref()) {
            flow.taken(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::client::Client;
    use protocol::control::Request;
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};

    /// A call to a host that never answers, and the host's end of it.
    fn call(home: &std::path::Path) -> (Writer, UnixStream) {
        let socket = host::home::control_socket(home);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(socket).unwrap();
        let conversation = Client::new(home).open(&Request::Status).unwrap();
        (conversation.writer().unwrap(), listener.accept().unwrap().0)
    }

    #[test]
    fn a_call_can_be_ended_before_and_after_it_has_begun() {
        let home = tempfile::tempdir().unwrap();
        let (calls, home) = (Running::default(), home.path());
        let (writer, mut far) = call(home);
        calls.begun(1, writer, None).unwrap();
        calls.hang_up(1);
        // What was asked for, and then the end.
        far.read_to_end(&mut Vec::new()).unwrap();
        calls.hang_up(2);
        assert!(calls.begun(2, call(home).0, None).is_err());
        assert!(calls.begun(2, call(home).0, None).is_ok());
        assert!(calls.begun(2, call(home).0, None).is_err(), "a number counts once");
    }

    #[test]
    fn a_page_has_no_end_of_calls() {
        let home = tempfile::tempdir().unwrap();
        let calls = Running::default();
        let mut far = Vec::new();
        for number in 0..MOST {
            let (writer, end) = call(home.path());
            far.push(end);
            calls.begun(u32::try_from(number).unwrap(), writer, None).unwrap();
        }
        assert!(calls.begun(99, call(home.path()).0, None).is_err());
        calls.ended(3);
        assert!(calls.begun(99, call(home.path()).0, None).is_ok());
    }
}
