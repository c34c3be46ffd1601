//! The bridges of boxes without a mounted socket, kept up.
//!
//! For every such box that runs, one task opens a bridge through the engine, hands it to the relay
//! and begins again when it ends: soon at first, ever later while it fails. The box is never
//! restarted for it. The task ends with the host, or when the box does not run any more; whoever
//! starts the box asks for it again. A box without a network has a second one, for what it sends out.

use crate::core::{Core, State};
use boxes::Channel;
use protocol::BoxId;
use protocol::boxes::BoxState;
use protocol::bridge::Service;
use relay::BridgeStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A bridge that has held this long was a good one.
const STEADY: Duration = Duration::from_secs(10);

/// How a new box is to reach the host; none leaves it to the engine.
pub fn wanted_channel(setting: settings::Channel) -> Option<Channel> {
    match setting {
        settings::Channel::Auto => None,
        settings::Channel::Socket => Some(Channel::Socket),
        settings::Channel::Exec => Some(Channel::Exec),
    }
}

impl State {
    fn wants_bridge(&self, id: &BoxId, service: Service) -> bool {
        self.boxes.get(id).is_some_and(|known| {
            // A frozen box cannot open one, and keeps the one it has.
            let gone =
                matches!(known.state, BoxState::Stopped | BoxState::Missing | BoxState::Paused);
            let served = service == Service::Relay || known.record.egress.is_controlled();
            served && known.record.channel == Channel::Exec && (known.starting || !gone)
        })
    }
}

impl Core {
    /// Makes sure that a running box has its bridges. Does nothing for a box with a socket; one whose
    /// bridge is being waited for is tried at once.
    pub fn keep_bridge(self: &Arc<Self>, id: &BoxId) {
        for service in Service::ALL {
            self.keep_bridge_of(id, service);
        }
    }

    fn keep_bridge_of(self: &Arc<Self>, id: &BoxId, service: Service) {
        let nudge = {
            let mut state = self.state();
            if !state.wants_bridge(id, service) {
                return;
            }
            if let Some(nudge) = state.bridges.get(&(id.clone(), service)) {
                return nudge.notify_one();
            }
            let nudge = Arc::new(Notify::new());
            state.bridges.insert((id.clone(), service), nudge.clone());
            nudge
        };
        let held = self.clone().hold_bridge(id.clone(), service, nudge);
        self.tasks.spawn_on(held, &self.runtime);
    }

    async fn hold_bridge(self: Arc<Self>, id: BoxId, service: Service, nudge: Arc<Notify>) {
        let mut pause = Pause::default();
        while !self.stop.is_cancelled() {
            let began = Instant::now();
            let ended = self.clone().bridge_once(&id, service).await;
            let wait = pause.next(began.elapsed());
            match ended {
                Ok(()) => tracing::debug!("the bridge of box {id} ended"),
                Err(why) if wait == LONGEST_PAUSE => {
                    tracing::warn!(
                        "box {id} cannot reach the {} of this host: {why}",
                        service.name()
                    );
                }
                Err(why) => tracing::debug!("the bridge of box {id} failed: {why}"),
            }
            {
                let mut state = self.state();
                if !state.wants_bridge(&id, service) {
                    state.bridges.remove(&(id, service));
                    return;
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = nudge.notified() => pause = Pause::default(),
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.state().bridges.remove(&(id, service));
    }

    /// Opens a bridge and serves it until it ends.
    async fn bridge_once(self: Arc<Self>, id: &BoxId, service: Service) -> Result<(), String> {
        let open = async {
            let (boxes, record) = self.reach(id).await.map_err(|e| e.message)?;
            boxes.bridge(&record, service).await.map_err(|e| e.to_string())
        };
        let bridge = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            bridge = open => bridge?,
        };
        // In a task of its own: whatever the box sends, this one goes on. The relay ends it in order
        // when the box or the host is closed.
        let (core, id) = (self.clone(), id.clone());
        let served = self.tasks.spawn(async move {
            match service {
                Service::Relay => core.relay.attach(&id, bridge).await,
                Service::Egress => {
                    let out = |stream| core.carry_out(&id, stream);
                    core.relay.attach_egress(&id, bridge, out).await
                }
            }
        });
        served.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
    }

    /// One connection of a box to the network. Where nobody decides about it, it goes nowhere.
    fn carry_out(&self, id: &BoxId, stream: BridgeStream) {
        let served = self.egress.running().map(|running| running.proxy.serve(id, stream));
        if !matches!(served, Some(Ok(()))) {
            tracing::debug!("box {id} wants to go out, and nobody is there to decide");
        }
    }
}

/// The time to the next try.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pause {
    /// After a bridge that held this long.
    fn next(&mut self, held: Duration) -> Duration {
        if held >= STEADY {
            *self = Self::default();
        }
        let wait = self.0;
        self.0 = (wait * 2).min(LONGEST_PAUSE);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_that_fails_is_tried_ever_more_slowly() {
        let mut pause = Pause::default();
        for ms in [200, 400, 800, 1600, 3200, 5000, 5000] {
            assert_eq!(pause.next(Duration::ZERO).as_millis(), ms);
        }
        assert_eq!(pause.next(STEADY), FIRST_PAUSE);
    }

    #[test]
    fn the_setting_decides_and_auto_leaves_it_to_the_engine() {
        assert_eq!(wanted_channel(settings::Channel::Auto), None);
        assert_eq!(wanted_channel(settings::Channel::Exec), Some(Channel::Exec));
        assert_eq!(wanted_channel(settings::Channel::Socket), Some(Channel::Socket));
    }
}
