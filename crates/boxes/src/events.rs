//! What happens to our boxes on the engine, as it happens.
//!
//! The stream never ends by itself: when the engine goes away it says [`EngineEvent::Lost`], tries
//! again ever more slowly, and says [`EngineEvent::Connected`] when it is back. Whatever happened
//! meanwhile is unknown, so `Connected` (the first one too) means: list the boxes again.

use crate::engine::limited;
use crate::{Boxes, Error, labels};
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::{Stream, StreamExt, stream};
use protocol::BoxId;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Events of the last moments are asked for again, so that none falls between connecting and
/// listening. Receivers are told when it happened, and that it may be the past.
const OVERLAP: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    Connected,
    Lost(String),
    /// A container of a box, by the engine's id of it. A box may have a second one for a while. The moment
    /// is the engine's, by its clock; what it told before may be told again.
    Changed(BoxId, String, Change, Option<SystemTime>),
    /// Any container was put on a network, by its id.
    Attached(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Started,
    /// Its first process ended, with this code if the engine says one.
    Died {
        code: Option<i64>,
    },
    /// Somebody sent its first process a signal through the engine.
    Signalled {
        signal: i64,
    },
    Paused,
    Unpaused,
    Destroyed,
    /// It had used up its memory, and something in it was ended for that.
    OutOfMemory,
}

impl Boxes {
    /// Watches until the stream is dropped.
    pub fn events(&self) -> impl Stream<Item = EngineEvent> + Send + Unpin + use<> {
        let (sender, receiver) = mpsc::channel(64);
        let boxes = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = boxes.watch(&sender) => {}
                () = sender.closed() => {}
            }
        });
        Box::pin(stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|event| (event, receiver))
        }))
    }

    async fn watch(&self, sender: &mpsc::Sender<EngineEvent>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let lost = match self.engine.ping().await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    self.listen(sender).await
                }
                Err(error) => error.to_string(),
            };
            if sender.send(EngineEvent::Lost(lost)).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Passes events on until the connection ends; answers why it did.
    async fn listen(&self, sender: &mpsc::Sender<EngineEvent>) -> String {
        let mut boxes = self.ours();
        let words =
            ["start", "die", "kill", "pause", "unpause", "destroy", "oom"].map(str::to_owned);
        boxes.insert("type".to_owned(), vec!["container".to_owned()]);
        boxes.insert("event".to_owned(), words.to_vec());
        // Whose network it is does not matter, so these cannot be asked for by our labels.
        let one = |key: &str, value: &str| (key.to_owned(), vec![value.to_owned()]);
        let networks = HashMap::from([one("type", "network"), one("event", "connect")]);
        let since = SystemTime::now().checked_sub(OVERLAP).unwrap_or(SystemTime::UNIX_EPOCH);
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let follow = |filters: &HashMap<String, Vec<String>>| {
            let options = EventsOptionsBuilder::default().since(&since.to_string());
            self.engine.docker().events(Some(options.filters(filters).build()))
        };
        // When one ends, so does the other: both are the engine's.
        let boxes = follow(&boxes).map(Some).chain(stream::iter([None]));
        let networks = follow(&networks).map(Some).chain(stream::iter([None]));
        let mut events = Box::pin(stream::select(boxes, networks));
        if sender.send(EngineEvent::Connected).await.is_err() {
            return String::new();
        }
        while let Some(Some(event)) = events.next().await {
            match event.map_err(|error| Error::engine("watch the boxes", error)) {
                Ok(message) => {
                    if let Some(event) = translate(message) {
                        // A receiver that is stuck must not hold the connection for ever.
                        let sent = limited("deliver", LONGEST_PAUSE, sender.send(event)).await;
                        if !matches!(sent, Ok(Ok(()))) {
                            return "events were not taken".to_owned();
                        }
                    }
                }
                Err(error) => return error.to_string(),
            }
        }
        "the engine closed the connection".to_owned()
    }
}

/// What `kill` sends when it does not say.
const SIGKILL: i64 = 9;

fn translate(message: EventMessage) -> Option<EngineEvent> {
    let at = message.time_nano.and_then(|nanos| u64::try_from(nanos).ok());
    let at = at.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
    let actor = message.actor?;
    let mut attributes = actor.attributes?;
    if message.action.as_deref()? == "connect" {
        return Some(EngineEvent::Attached(attributes.remove("container")?));
    }
    let mut number = |name: &str| attributes.remove(name)?.parse().ok();
    let change = match message.action.as_deref()? {
        "start" => Change::Started,
        // The second name is Podman's.
        "die" => Change::Died { code: number("exitCode").or_else(|| number("containerExitCode")) },
        "kill" => Change::Signalled { signal: number("signal").unwrap_or(SIGKILL) },
        "pause" => Change::Paused,
        "unpause" => Change::Unpaused,
        "destroy" => Change::Destroyed,
        "oom" => Change::OutOfMemory,
        _ => return None,
    };
    let id = attributes.remove(labels::BOX)?;
    Some(EngineEvent::Changed(id.parse().ok()?, actor.id?, change, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::EventActor;
    use std::collections::HashMap;

    fn told(action: &str, more: &[(&str, &str)]) -> Option<Change> {
        let id = [(labels::BOX, "b00000001")];
        let attributes: HashMap<String, String> =
            id.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let actor = EventActor { attributes: Some(attributes), id: Some("c1".into()) };
        let message = EventMessage {
            action: Some(action.to_owned()),
            actor: Some(actor),
            ..EventMessage::default()
        };
        match translate(message) {
            Some(EngineEvent::Changed(_, _, change, _)) => Some(change),
            _ => None,
        }
    }

    #[test]
    fn how_a_box_ended_and_what_was_sent_to_it_is_heard() {
        assert_eq!(told("die", &[("exitCode", "143")]), Some(Change::Died { code: Some(143) }));
        let podman = [("containerExitCode", "1")];
        assert_eq!(told("die", &podman), Some(Change::Died { code: Some(1) }));
        assert_eq!(told("die", &[("exitCode", "?")]), Some(Change::Died { code: None }));
        assert_eq!(told("kill", &[("signal", "15")]), Some(Change::Signalled { signal: 15 }));
        assert_eq!(told("kill", &[]), Some(Change::Signalled { signal: 9 }));
        assert_eq!(told("oom", &[]), Some(Change::OutOfMemory));
        assert_eq!(told("exec_die", &[("exitCode", "1")]), None);
    }
}
