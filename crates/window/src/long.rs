//! Calls of the page that take a while: what happens on the way goes to the page, and the page can end
//! them. The host then takes back what such a call has made so far. When the window is closed in the
//! middle, a box that is being made is made to its end.

use crate::permitted::{parsed, refused};
use crate::{Window, failed, to_control};
use host::client::Incoming;
use protocol::carry::CarryChoice;
use protocol::control::{ControlError, HostEvent, Request};
use serde_json::Value;

impl Window {
    /// Sends a request and gives its reply; events on the way go to `tell`. The page numbers its calls,
    /// each once.
    pub fn begin(
        &self,
        number: u32,
        request: Value,
        mut tell: impl FnMut(HostEvent),
    ) -> Result<Value, ControlError> {
        let request = permitted(request)?;
        self.asked_outside(&request)?;
        let conversation = self.client.open(&request).map_err(to_control)?;
        let writer = conversation.writer().map_err(|e| failed(e.to_string()))?;
        self.running.begun(number, writer, None)?;
        let reply = conversation.finish::<Value>(|incoming| {
            if let Incoming::Event(event) = incoming {
                tell(*event);
            }
        });
        self.running.ended(number);
        reply.map_err(to_control)
    }
}

fn permitted(request: Value) -> Result<Request, ControlError> {
    let request = parsed(request)?;
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
    use protocol::control::ErrorCode;
    use serde_json::json;

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
        let front = json!({"method": "inFront", "params": {"id": "b00000001"}});
        for request in [json!({"method": "subscribe"}), front, json!({"method": "stop"}), json!(7)]
        {
            assert_eq!(permitted(request).unwrap_err().code, ErrorCode::Usage);
        }
    }
}
