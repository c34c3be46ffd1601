//! Follows the host's events: keeps the tray's picture up to date, tells what a person would like to
//! hear of, and opens the window when the host says so.

use crate::live::Live;
use crate::menu::{self, TrayView};
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use host::Api;
use protocol::BoxId;
use protocol::boxes::{BoxState, BoxView, Down, WhyDown};
use protocol::control::HostEvent;
use protocol::sessions::{Agent, AgentState, AgentView};
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
                        tokio::spawn(tell_of_end(api.clone(), notifier.clone(), view.id.clone()));
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

/// What was told lately: what an agent says is its box's word, and a box may say a lot. The same of one agent
/// is told once in a while, and so much of one box at most.
#[derive(Default)]
struct Told(Vec<(BoxId, Agent, AgentState, Instant)>);

impl Told {
    const PAUSE: Duration = Duration::from_secs(20);
    const MOST_OF_A_BOX: usize = 6;

    fn may(&mut self, id: &BoxId, agent: Agent, state: AgentState, now: Instant) -> bool {
        self.0.retain(|(.., at)| now.duration_since(*at) < Self::PAUSE);
        let of_box = || self.0.iter().filter(|(of, ..)| of == id);
        let same = of_box().any(|(_, who, what, _)| (*who, *what) == (agent, state));
        let may = !same && of_box().count() < Self::MOST_OF_A_BOX;
        if may {
            self.0.push((id.clone(), agent, state, now));
        }
        may
    }
}

/// One notification when an agent has come to need somebody.
fn tell_of_agents(notifier: &Notifier, live: &Live, view: &BoxView, told: &mut Told) {
    let Some(before) = live.boxes.iter().find(|b| b.id == view.id) else { return };
    for (agent, state) in news(before, view) {
        if view.muted_until.is_some() || !told.may(&view.id, agent, state, Instant::now()) {
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

/// A box that is restarted is up again by then, and the reason is the last one.
const SETTLED: Duration = Duration::from_secs(2);
/// Boxes that went with their engine are found down so close together.
const TOGETHER: u64 = 10_000;

/// It was up and is down, and nobody meant it to be.
fn has_gone_down(live: &Live, view: &BoxView) -> bool {
    let before = live.boxes.iter().find(|b| b.id == view.id).map(|b| b.state);
    let up = matches!(before, Some(BoxState::Running | BoxState::Paused));
    // While its engine was away nobody knew.
    let unseen = before == Some(BoxState::Unknown)
        && matches!(view.down, Some(Down { why: WhyDown::EngineGone | WhyDown::Removed, .. }));
    (up || unseen) && reason(view).is_some() && view.muted_until.is_none()
}

/// Why a box is down that nobody meant to be.
fn reason(view: &BoxView) -> Option<String> {
    let down = matches!(view.state, BoxState::Stopped | BoxState::Missing);
    view.down.filter(|_| down)?.why.in_words()
}

/// One notification when a box has gone down by itself.
async fn tell_of_end(api: Api, notifier: Notifier, id: BoxId) {
    tokio::time::sleep(SETTLED).await;
    let mut boxes = api.boxes().await;
    boxes.retain(|view| view.muted_until.is_none() && !api.is_in_front(&view.id));
    if let Some((title, body)) = end_of(&boxes, &id) {
        notifier.tell_of_box(&id, &title, &body);
    }
}

/// What is said of a box that went down. Those that went with their engine are told of together, at the
/// first of them.
fn end_of(boxes: &[BoxView], id: &BoxId) -> Option<(String, String)> {
    let view = boxes.iter().find(|view| view.id == *id)?;
    let (why, down) = (reason(view)?, view.down?);
    let with_it = |other: &&BoxView| {
        let same = |d: Down| d.why == WhyDown::EngineGone && d.at.abs_diff(down.at) < TOGETHER;
        reason(other).is_some() && other.down.is_some_and(same)
    };
    let gone: Vec<&BoxView> = boxes.iter().filter(with_it).collect();
    if down.why != WhyDown::EngineGone || gone.len() < 2 {
        return Some((
            format!("{} stopped: {why}", view.name),
            format!("A box of {}", view.project),
        ));
    }
    let names: Vec<&str> = gone.iter().map(|view| view.name.as_str()).collect();
    let first = gone.first().is_some_and(|view| view.id == *id);
    first.then(|| (format!("{} boxes stopped: {why}", gone.len()), names.join(", ")))
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

    fn down(id: u8, name: &str, why: WhyDown, at: u64) -> BoxView {
        BoxView { down: Some(Down { why, at }), ..a_box(id, name, "shop", Stopped) }
    }

    #[test]
    fn a_box_that_ends_by_itself_says_why_and_one_that_was_stopped_says_nothing() {
        let of = |why| {
            let view = down(1, "fix-login", why, 7);
            end_of(std::slice::from_ref(&view), &view.id).map(|(title, _)| title)
        };
        assert_eq!((of(WhyDown::Person), of(WhyDown::Rest)), (None, None));
        for (why, said) in [
            (WhyDown::Ended { code: 0 }, "it ended by itself"),
            (WhyDown::Ended { code: 3 }, "it ended by itself with code 3"),
            (WhyDown::OutOfMemory, "it ran out of memory"),
            (WhyDown::Killed, "it was killed from outside"),
            (WhyDown::StoppedOutside, "it was stopped outside AgentBox"),
            (WhyDown::Removed, "its container was removed outside AgentBox"),
            (WhyDown::EngineGone, "the container engine went away"),
        ] {
            assert_eq!(of(why).unwrap(), format!("fix-login stopped: {said}"));
        }
        let up = BoxView { state: Running, ..down(1, "fix-login", WhyDown::Killed, 7) };
        assert_eq!(end_of(std::slice::from_ref(&up), &up.id), None, "it is up again");
        assert_eq!(end_of(&[], &up.id), None, "it is gone");
    }

    #[test]
    fn boxes_that_went_with_their_engine_are_told_of_once() {
        let boxes = [
            down(1, "a", WhyDown::EngineGone, 7),
            down(2, "b", WhyDown::EngineGone, 1_000_000),
            down(3, "c", WhyDown::Killed, 1_000_001),
            down(4, "d", WhyDown::EngineGone, 1_000_002),
        ];
        let of = |at: usize| end_of(&boxes, &boxes[at].id);
        assert_eq!(of(0).unwrap().0, "a stopped: the container engine went away", "long ago");
        let (title, body) = of(1).unwrap();
        assert_eq!(title, "2 boxes stopped: the container engine went away");
        assert_eq!(body, "b, d");
        assert_eq!(of(2).unwrap().0, "c stopped: it was killed from outside");
        assert_eq!(of(3), None, "told already");
    }

    #[test]
    fn only_a_box_that_was_up_has_gone_down() {
        let of = |before: Option<BoxState>, after: BoxState, why: Option<WhyDown>| {
            let boxes = before.map(|state| a_box(1, "fix-login", "shop", state));
            let live = Live { boxes: boxes.into_iter().collect(), ..Live::default() };
            let down = why.map(|why| Down { why, at: 7 });
            has_gone_down(&live, &BoxView { down, ..a_box(1, "fix-login", "shop", after) })
        };
        let killed = Some(WhyDown::Killed);
        assert!(of(Some(Running), Stopped, killed));
        assert!(of(Some(Paused), Stopped, killed));
        assert!(of(Some(Running), Missing, Some(WhyDown::Removed)));
        assert!(of(Some(Unknown), Stopped, Some(WhyDown::EngineGone)));
        for (before, after, why) in [
            (Some(Running), Stopped, Some(WhyDown::Person)),
            (Some(Running), Stopped, Some(WhyDown::Rest)),
            (Some(Running), Stopped, None),
            (Some(Stopped), Stopped, killed),
            (Some(Unknown), Stopped, killed),
            (Some(Unknown), Stopped, None),
            (Some(Creating), Stopped, killed),
            (Some(Running), Paused, None),
            (None, Stopped, killed),
        ] {
            assert!(!of(before, after, why), "{before:?} {after:?} {why:?}");
        }
    }

    #[test]
    fn a_box_that_goes_to_and_fro_is_told_of_now_and_then() {
        let (mut told, start) = (Told::default(), Instant::now());
        let view = a_box(1, "fix-login", "shop", BoxState::Running);
        let second = start + Duration::from_secs(1);
        assert!(told.may(&view.id, Agent::Claude, Waiting, start));
        assert!(!told.may(&view.id, Agent::Claude, Waiting, second));
        assert!(told.may(&view.id, Agent::Codex, Waiting, second));
        assert!(told.may(&view.id, Agent::Claude, Waiting, start + Told::PAUSE));
    }

    #[test]
    fn what_is_new_is_told_however_soon_it_comes() {
        let (mut told, start) = (Told::default(), Instant::now());
        let id = a_box(1, "fix-login", "shop", BoxState::Running).id;
        for (after, state) in [(0, Waiting), (3, Done), (4, Error)] {
            let at = start + Duration::from_secs(after);
            assert!(told.may(&id, Agent::Claude, state, at), "{state:?}");
        }
        assert!(!told.may(&id, Agent::Claude, Done, start + Duration::from_secs(5)));
    }

    #[test]
    fn one_box_cannot_flood_the_screen_and_takes_nothing_from_another() {
        let (mut told, now) = (Told::default(), Instant::now());
        let of = |id| a_box(id, "a", "shop", BoxState::Running).id;
        let all = [Agent::Claude, Agent::Codex, Agent::Opencode].into_iter().flat_map(|agent| {
            [Waiting, EndPlan, Question, Done, Error].map(|state| (agent, state))
        });
        let heard = all.filter(|(agent, state)| told.may(&of(1), *agent, *state, now)).count();
        assert_eq!(heard, Told::MOST_OF_A_BOX);
        assert!(told.may(&of(2), Agent::Claude, Waiting, now));
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
