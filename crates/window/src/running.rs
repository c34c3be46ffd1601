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
    /// Locked by itself: a host that does not read holds up those who write to this call, and nobody else.
    writer: Arc<Mutex<Writer>>,
    /// Ends the call, also while somebody writes to it.
    end: Writer,
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
        let end = writer.another().map_err(|e| failed(e.to_string()))?;
        let mut calls = self.lock();
        if calls.called_off.remove(&number) {
            return Err(failed("It was called off."));
        }
        if calls.running.len() >= MOST || calls.running.contains_key(&number) {
            return Err(failed("Too much is under way already."));
        }
        let writer = Arc::new(Mutex::new(writer));
        calls.running.insert(number, Call { writer, end, flow });
        Ok(())
    }

    pub fn ended(&self, number: u32) {
        self.lock().running.remove(&number);
    }

    pub fn hang_up(&self, number: u32) {
        let mut calls = self.lock();
        match calls.running.remove(&number) {
            Some(call) => {
                drop(calls);
                if let Some(flow) = call.flow {
                    flow.close();
                }
                match call.writer.try_lock() {
                    Ok(mut writer) => writer.call_off(),
                    // Somebody waits for the host to read: then the end of the line has to say it.
                    Err(_) => call.end.hang_up(),
                }
            }
            None if calls.called_off.len() < MOST => drop(calls.called_off.insert(number)),
            None => {}
        }
    }

    /// Does something with a call's writer, if it is under way. It may wait for the host; nothing else does.
    pub fn write(&self, number: u32, with: impl FnOnce(&mut Writer) -> std::io::Result<()>) {
        let writer = self.lock().running.get(&number).map(|call| call.writer.clone());
        if let Some(writer) = writer {
            let _ = with(&mut writer.lock().unwrap_or_else(PoisonError::into_inner));
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

    /// A box that does not read what is typed must not hold up the page, nor its way out.
    #[test]
    fn a_host_that_does_not_read_holds_up_its_own_call_alone() {
        let home = tempfile::tempdir().unwrap();
        let calls = Arc::new(Running::default());
        let (writer, _far) = call(home.path());
        let flow = Arc::new(Flow::default());
        calls.begun(1, writer, Some(flow)).unwrap();
        let there = calls.clone();
        let stuck = std::thread::spawn(move || {
            let bytes = vec![b'x'; 64 * 1024];
            for _ in 0..64 {
                there.write(1, |writer| writer.stdin(&bytes));
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!stuck.is_finished(), "nobody reads");
        calls.taken(1, 5);
        calls.hang_up(1);
        stuck.join().unwrap();
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
