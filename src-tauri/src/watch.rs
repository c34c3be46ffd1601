//! Follows the host's events: keeps the tray's picture up to date, tells what a person would like to
//! hear of, and opens the window when the host says so.

use crate::live::Live;
use crate::menu::{self, TrayView};
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use host::Api;
use protocol::BoxId;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{HostEvent, Target};
use protocol::looking::BoxDetails;
use protocol::sessions::{Agent, AgentState, AgentView};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// The tray as it should look; only changes are announced, and only the newest is kept.
pub fn start(api: Api, window: WindowChild, notifier: Notifier) -> watch::Receiver<TrayView> {
    let (views, receiver) = watch::channel(menu::view(&Live::default()));
    tokio::spawn(follow(api, window, notifier, views));
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
                if !live.is_quiet() && !api.is_in_front(&view.id) {
                    tell_of_agents(&notifier, &live, &view, &mut told);
                    if has_gone_down(&live, &view) {
                        tokio::spawn(tell_of_end(api.clone(), notifier.clone(), view.clone()));
                    }
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

/// What is taken down on purpose is gone, or up again, by then.
const SETTLED: Duration = Duration::from_secs(2);

fn has_gone_down(live: &Live, view: &BoxView) -> bool {
    let before = live.boxes.iter().find(|b| b.id == view.id).map(|b| b.state);
    let up = matches!(before, Some(BoxState::Running | BoxState::Paused));
    up && view.state == BoxState::Stopped && view.muted_until.is_none()
}

/// One notification when a box has ended by itself.
async fn tell_of_end(api: Api, notifier: Notifier, view: BoxView) {
    tokio::time::sleep(SETTLED).await;
    let Ok(details) = api.details(Target::id(&view.id)).await else { return };
    if let Some(why) = end_by_itself(&details) {
        let title = format!("{} stopped: {why}", view.name);
        notifier.tell_of_box(&view.id, &title, &format!("A box of {}", view.project));
    }
}

/// Why, in words. The engine does not say who stopped a box, but how its first process ended: one
/// that was told to stop ends in order.
fn end_by_itself(details: &BoxDetails) -> Option<String> {
    const IN_ORDER: [i64; 3] = [0, 130, 143];
    const KILLED: i64 = 137;
    match details.exit_code {
        _ if details.view.state != BoxState::Stopped => None,
        Some(code) if IN_ORDER.contains(&code) => None,
        Some(_) if details.out_of_memory => Some("it ran out of memory".into()),
        Some(KILLED) => Some("it was killed".into()),
        Some(code) => Some(format!("it ended with code {code}")),
        None => None,
    }
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
    use BoxState::{Creating, Missing, Paused, Running, Stopped, Unknown};
    use protocol::boxes::Endpoints;
    use protocol::looking::BoxLimits;

    #[test]
    fn a_box_that_ends_by_itself_says_why_and_one_that_was_stopped_says_nothing() {
        let of = |exit_code, out_of_memory, state| {
            let view = a_box(1, "fix-login", "shop", state);
            end_by_itself(&details(view, exit_code, out_of_memory))
        };
        for stopped in [0, 130, 143] {
            assert_eq!(of(Some(stopped), false, Stopped), None);
        }
        assert_eq!(of(None, false, Stopped), None);
        assert_eq!(of(Some(1), false, Running), None, "it is up again");
        assert_eq!(of(Some(1), false, Stopped).as_deref(), Some("it ended with code 1"));
        assert_eq!(of(Some(137), false, Stopped).as_deref(), Some("it was killed"));
        assert_eq!(of(Some(137), true, Stopped).as_deref(), Some("it ran out of memory"));
    }

    #[test]
    fn only_a_box_that_was_up_has_gone_down() {
        let of = |before: Option<BoxState>, after: BoxState| {
            let boxes = before.map(|state| a_box(1, "fix-login", "shop", state));
            let live = Live { boxes: boxes.into_iter().collect(), ..Live::default() };
            has_gone_down(&live, &a_box(1, "fix-login", "shop", after))
        };
        assert!(of(Some(Running), Stopped));
        assert!(of(Some(Paused), Stopped));
        for (before, after) in [
            (Some(Stopped), Stopped),
            (Some(Unknown), Stopped),
            (Some(Creating), Stopped),
            (Some(Running), Paused),
            (Some(Running), Missing),
            (None, Stopped),
        ] {
            assert!(!of(before, after), "{before:?} {after:?}");
        }
    }

    fn details(view: BoxView, exit_code: Option<i64>, out_of_memory: bool) -> BoxDetails {
        BoxDetails {
            view,
            ready: false,
            workspace: String::new(),
            base: None,
            container: String::new(),
            started_at: None,
            ended_at: None,
            exit_code,
            out_of_memory,
            limits: BoxLimits::default(),
            usage: None,
            processes: None,
            mounts: Vec::new(),
            carried: Vec::new(),
            units: None,
            endpoints: Endpoints::default(),
            sessions: None,
        }
    }

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
