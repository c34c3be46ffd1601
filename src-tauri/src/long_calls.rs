//! Calls of the page that take a while: what happens on the way goes to the page, and the page can
//! end them. The host then takes back what such a call has made so far. When the window is closed in
//! the middle, a box that is being made is made to its end.

use crate::commands::{refused, to_control};
use host::client::{Client, Incoming, Writer};
use protocol::carry::CarryChoice;
use protocol::control::{ControlError, ErrorCode, HostEvent, Request};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tauri::State;
use tauri::ipc::Channel;

/// A page has one or two under way; more are a mistake.
const MOST: usize = 16;

#[derive(Clone, Default)]
pub struct LongCalls(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    running: HashMap<u32, Writer>,
    /// Ended by the page before they had begun.
    called_off: HashSet<u32>,
}

impl LongCalls {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call goes on.
    fn begun(&self, number: u32, writer: Writer) -> Result<(), ControlError> {
        let mut calls = self.lock();
        if calls.called_off.remove(&number) {
            return Err(ControlError::new(ErrorCode::Failed, "It was called off."));
        }
        if calls.running.len() >= MOST || calls.running.contains_key(&number) {
            return Err(ControlError::new(ErrorCode::Failed, "Too much is under way already."));
        }
        calls.running.insert(number, writer);
        Ok(())
    }

    fn ended(&self, number: u32) {
        self.lock().running.remove(&number);
    }

    fn hang_up(&self, number: u32) {
        let mut calls = self.lock();
        match calls.running.remove(&number) {
            Some(mut writer) => writer.call_off(),
            None if calls.called_off.len() < MOST => drop(calls.called_off.insert(number)),
            None => {}
        }
    }
}

/// Sends a request and gives its reply; events on the way go to the channel. The page numbers its
/// calls, each once.
#[tauri::command]
pub async fn begin(
    client: State<'_, Client>,
    calls: State<'_, LongCalls>,
    number: u32,
    request: Value,
    on_event: Channel<HostEvent>,
) -> Result<Value, ControlError> {
    let request = permitted(request)?;
    let (client, calls) = (client.inner().clone(), calls.inner().clone());
    let reply = tauri::async_runtime::spawn_blocking(move || {
        let conversation = client.open(&request).map_err(to_control)?;
        let writer = conversation.writer().map_err(|e| to_control(e.into()))?;
        calls.begun(number, writer)?;
        let reply = conversation.finish::<Value>(|incoming| {
            if let Incoming::Event(event) = incoming {
                let _ = on_event.send(*event);
            }
        });
        calls.ended(number);
        reply.map_err(to_control)
    });
    match reply.await {
        Ok(reply) => reply,
        Err(e) => Err(ControlError::new(ErrorCode::Failed, format!("The call ended early: {e}."))),
    }
}

/// Ends a call.
#[tauri::command]
pub fn hang_up(calls: State<'_, LongCalls>, number: u32) {
    calls.hang_up(number);
}

fn permitted(request: Value) -> Result<Request, ControlError> {
    let request = crate::commands::parsed(request)?;
    match request {
        // Files of this computer are asked about by the host itself: no page can say yes to them.
        Request::CreateBox(mut create) => {
            create.carry = create.carry.filter(|choice| *choice == CarryChoice::Skip);
            // The page has no field for these: an image or an engine of its own is nearly root here, and
            // that is said at a terminal or in the settings.
            create.image = None;
            create.docker = create.docker.filter(|on| !on);
            create.keep_on_failure = false;
            // A window that is closed, or crashes, is no reason to throw a box away.
            create.goes_on = true;
            Ok(Request::CreateBox(create))
        }
        Request::FollowUsage { .. } => Ok(request),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn only_what_takes_long_is_begun() {
        let create = json!({"method": "createBox", "params":
            {"workspace": "/p", "name": null, "image": null, "snapshot": null}});
        assert!(permitted(create.clone()).is_ok());
        let mut copying = create;
        copying["params"]["carry"] = json!({"kind": "copy", "digest": null, "by": "flag"});
        let Ok(Request::CreateBox(asked)) = permitted(copying) else { panic!() };
        assert_eq!(asked.carry, None, "the host asks");
        let mut strong = json!({"method": "createBox", "params":
            {"workspace": "/p", "name": null, "image": "evil/x", "snapshot": null, "docker": true}});
        strong["params"]["keepOnFailure"] = json!(true);
        let Ok(Request::CreateBox(asked)) = permitted(strong) else { panic!() };
        assert_eq!((asked.image, asked.docker, asked.keep_on_failure), (None, None, false));
        assert!(asked.goes_on, "whatever becomes of the window");
        assert!(
            permitted(json!({"method": "followUsage", "params":
            {"target": null, "everyMs": 2000}}))
            .is_ok()
        );
        for request in [json!({"method": "subscribe"}), json!({"method": "stop"}), json!(7)] {
            assert_eq!(permitted(request).unwrap_err().code, ErrorCode::Usage);
        }
    }

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
        let home = std::env::temp_dir().join(format!("agentbox-long-{}", std::process::id()));
        let calls = LongCalls::default();
        let (writer, mut far) = call(&home);
        calls.begun(1, writer).unwrap();
        calls.hang_up(1);
        // What was asked for, and then the end.
        far.read_to_end(&mut Vec::new()).unwrap();
        calls.hang_up(2);
        assert!(calls.begun(2, call(&home).0).is_err());
        assert!(calls.begun(2, call(&home).0).is_ok());
        assert!(calls.begun(2, call(&home).0).is_err(), "a number counts once");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
