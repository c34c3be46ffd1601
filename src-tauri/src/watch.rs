//! Follows the host's events: keeps the tray's picture up to date and opens the window when the
//! host says so.

use crate::live::Live;
use crate::menu::{self, TrayView};
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use host::Api;
use protocol::BoxId;
use protocol::boxes::BoxView;
use protocol::control::HostEvent;
use protocol::sessions::{Agent, AgentState, AgentView};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// The tray as it should look; only changes are announced, and only the newest is kept.
pub fn start(api: Api, window: WindowChild, notifier: Notifier) -> watch::Receiver<TrayView> {
    let (views, receiver) = watch::channel(menu::view(&Live::default()));
    tauri::async_runtime::spawn(follow(api, window, notifier, views));
    receiver
}

async fn follow(api: Api, window: WindowChild, notifier: Notifier, views: watch::Sender<TrayView>) {
    // Subscribed first: what happens while the snapshot is made comes after it.
    let mut events = api.subscribe();
    let mut live = Live::default();
    live.apply(api.snapshot().await);
    let mut told = Told::default();
    loop {
        publish(&views, menu::view(&live));
        match events.recv().await {
            Ok(HostEvent::ShowWindow { page }) => {
                if let Err(why) = window.show(&page) {
                    tracing::warn!("{why}");
                    notifier.tell("The AgentBox window could not be opened", &why);
                }
            }
            Ok(HostEvent::BoxChanged { view }) => {
                if !live.is_quiet() {
                    tell_of_agents(&notifier, &live, &view, &mut told);
                }
                live.apply(HostEvent::BoxChanged { view });
            }
            Ok(event) => live.apply(event),
            Err(RecvError::Lagged(_)) => live.apply(api.snapshot().await),
            Err(RecvError::Closed) => return,
        }
    }
}

/// When each agent was told of last: what it says is its box's word, and a box may say a lot.
#[derive(Default)]
struct Told(HashMap<(BoxId, Agent), Instant>);

impl Told {
    const PAUSE: Duration = Duration::from_secs(20);

    fn may(&mut self, id: &BoxId, agent: Agent, now: Instant) -> bool {
        self.0.retain(|_, last| now.duration_since(*last) < Self::PAUSE);
        let key = (id.clone(), agent);
        !self.0.contains_key(&key) && self.0.insert(key, now).is_none()
    }
}

/// One notification when an agent has come to need somebody.
fn tell_of_agents(notifier: &Notifier, live: &Live, view: &BoxView, told: &mut Told) {
    let Some(before) = live.boxes.iter().find(|b| b.id == view.id) else { return };
    for (agent, state) in news(before, view) {
        if view.muted_until.is_some() || !told.may(&view.id, agent, Instant::now()) {
            continue;
        }
        let title = format!("{} {}", view.name, state.in_words());
        notifier.tell_of_box(&view.id, &title, &format!("{} in {}", agent.title(), view.project));
    }
}

/// Agents that waited for nobody and now do, or have finished their work, or given it up.
fn news(before: &BoxView, after: &BoxView) -> Vec<(Agent, AgentState)> {
    let was = |agent| before.agents.iter().find(|a| a.agent == agent).map(|a| a.state);
    let tells = |now: &&AgentView| match now.state {
        AgentState::Waiting | AgentState::EndPlan | AgentState::Question | AgentState::Error => {
            was(now.agent) != Some(now.state)
        }
        AgentState::Done => was(now.agent).is_some_and(AgentState::is_at_work),
        AgentState::Ready | AgentState::Working | AgentState::Compacting => false,
    };
    after.agents.iter().filter(tells).map(|now| (now.agent, now.state)).collect()
}

fn publish(views: &watch::Sender<TrayView>, view: TrayView) {
    views.send_if_modified(|shown| {
        let changed = *shown != view;
        *shown = view;
        changed
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::a_box;
    use AgentState::{Compacting, Done, EndPlan, Error, Question, Ready, Waiting, Working};
    use protocol::boxes::BoxState;

    #[test]
    fn a_box_that_goes_to_and_fro_is_told_of_now_and_then() {
        let (mut told, start) = (Told::default(), Instant::now());
        let view = a_box(1, "fix-login", "shop", BoxState::Running);
        assert!(told.may(&view.id, Agent::Claude, start));
        assert!(!told.may(&view.id, Agent::Claude, start + Duration::from_secs(1)));
        assert!(told.may(&view.id, Agent::Codex, start + Duration::from_secs(1)));
        assert!(told.may(&view.id, Agent::Claude, start + Told::PAUSE));
    }

    #[test]
    fn each_transition_is_told_once() {
        let with = |state: Option<AgentState>| {
            let mut view = a_box(1, "fix-login", "shop", BoxState::Running);
            let agent =
                |state| AgentView { agent: Agent::Claude, state, since: 0, has_login: false };
            view.agents = state.map(agent).into_iter().collect();
            view
        };
        for (before, after, told) in [
            (None, Some(Ready), false),
            (Some(Ready), Some(Working), false),
            (Some(Working), Some(Waiting), true),
            (Some(Waiting), Some(Waiting), false),
            (Some(Working), Some(Done), true),
            (Some(Done), Some(Done), false),
            // It was asked something and went home: nobody waits for anything.
            (Some(Waiting), Some(Done), false),
            (Some(Done), Some(Waiting), true),
            (Some(Working), None, false),
            (Some(Working), Some(EndPlan), true),
            (Some(EndPlan), Some(EndPlan), false),
            (Some(EndPlan), Some(Question), true),
            (Some(Question), Some(Working), false),
            (Some(Working), Some(Error), true),
            (Some(Error), Some(Error), false),
            (Some(Working), Some(Compacting), false),
            (Some(Compacting), Some(Done), true),
        ] {
            let news = news(&with(before), &with(after));
            assert_eq!(!news.is_empty(), told, "{before:?} {after:?}");
        }
    }
}
