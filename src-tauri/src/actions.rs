//! Does what a person chose in the tray. Decides nothing: the host checks every answer. What would end
//! an agent's work or an open question asks first, as the window and the command line do.

#[cfg(not(target_os = "linux"))]
use crate::confirm::{self, Confirm};
#[cfg(target_os = "linux")]
use crate::dialog::confirm::{self, Confirm};
use crate::menu::Action;
use crate::notifications::Notifier;
use crate::page::{Page, Tab};
use crate::place::{self, Place};
use crate::terminal;
use host::Api;
use protocol::boxes::{BoxState, BoxView};
use protocol::busy;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::question::{Question, Surface, Verdict};
use protocol::{BoxId, QuestionId};

/// In seconds.
const HOUR: u64 = 3600;
/// Questions that are named before a quit; the others are counted.
const NAMED: usize = 5;

#[derive(Clone)]
pub struct Actions {
    api: Api,
    notifier: Notifier,
}

impl Actions {
    pub fn new(api: Api, notifier: Notifier) -> Self {
        Self { api, notifier }
    }

    /// Never blocks: what takes time goes on by itself and reports a failure as a notification.
    pub fn perform(&self, action: Action) {
        match action {
            Action::ShowQuestions => self.open(&Page::Inbox),
            Action::ShowQuestion(id) => self.open(&Page::Question(id)),
            Action::AllowOnce { id, digest } => self.answer(&id, &digest, Verdict::AllowOnce),
            Action::Deny { id, digest } => self.answer(&id, &digest, Verdict::Deny),
            Action::OpenBox(id) => self.open(&Page::Box(id, None)),
            Action::StartBox(id) => self.start_box(id),
            Action::StopBox(id) => self.stop_box(id),
            Action::PauseBox(id) => self.pause_box(id),
            Action::ResumeBox(id) => self.resume_box(id),
            Action::MuteBox(id) => self.mute(id, Some(HOUR)),
            Action::HearBox(id) => self.mute(id, None),
            Action::OpenWeb(id) => self.open_place(id, Place::Web),
            Action::OpenScreen(id) => self.open_place(id, Place::Screen),
            Action::OpenShell(id) => self.open_shell(id),
            Action::OpenLogs(id) => self.open(&Page::Box(id, Some(Tab::Logs))),
            Action::NewBox => self.open(&Page::NewBox),
            Action::ShowBoxes => self.open(&Page::Boxes),
            Action::PauseAll => self.each(BoxState::Running, Self::pause_box),
            Action::ResumeAll => self.each(BoxState::Paused, Self::resume_box),
            Action::Quiet => drop(self.api.quiet(Some(HOUR))),
            Action::EndQuiet => drop(self.api.quiet(None)),
            Action::OpenWindow => self.open_front(),
            Action::OpenSettings => self.open(&Page::Settings),
            Action::OpenCheckUp => self.open(&Page::CheckUp),
            Action::Quit => self.quit(),
        }
    }

    /// A yes to what had only just come to where it was clicked.
    pub fn too_soon(&self) {
        tracing::info!("a yes in the tray came too soon");
        let reason = "The question had just come to that place in the menu. Look at it once more.";
        self.notifier.tell("The answer was not taken", reason);
    }

    /// The window where there is something to do.
    pub fn open_front(&self) {
        let asked = !self.api.questions().is_empty();
        self.open(if asked { &Page::Inbox } else { &Page::Boxes });
    }

    fn open(&self, page: &Page) {
        if let Err(e) = self.api.show_window(&page.to_string()) {
            self.failed("The AgentBox window could not be opened", &e);
        }
    }

    fn answer(&self, id: &QuestionId, digest: &str, verdict: Verdict) {
        match self.api.answer(id, digest, verdict, Surface::Tray) {
            Ok(()) => {}
            // Answered elsewhere while the menu was open: nothing is left to say.
            Err(e) if e.code == ErrorCode::NotPending => tracing::info!("{e}"),
            Err(e) => self.failed("The answer was not taken", &e),
        }
    }

    fn start_box(&self, id: BoxId) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(e) = this.api.start_box(Target::id(&id)).await {
                this.failed(&format!("{} could not be started", this.name(&id).await), &e);
            }
        });
    }

    fn stop_box(&self, id: BoxId) {
        let this = self.clone();
        tokio::spawn(async move {
            let boxes = this.api.boxes().await;
            let asks = boxes.iter().find(|view| view.id == id).and_then(before_stop);
            if let Some(asks) = asks
                && !confirm::ask(asks).await
            {
                return;
            }
            if let Err(e) = this.api.stop_box(Target::id(&id)).await {
                this.failed(&format!("{} could not be stopped", this.name(&id).await), &e);
            }
        });
    }

    fn quit(&self) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Some(asks) = before_quit(&this.api.questions())
                && !confirm::ask(asks).await
            {
                return;
            }
            this.api.request_stop();
        });
    }

    fn pause_box(&self, id: BoxId) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(e) = this.api.pause_box(Target::id(&id)).await {
                this.failed(&format!("{} could not be paused", this.name(&id).await), &e);
            }
        });
    }

    fn resume_box(&self, id: BoxId) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(e) = this.api.unpause_box(Target::id(&id)).await {
                this.failed(&format!("{} could not be resumed", this.name(&id).await), &e);
            }
        });
    }

    /// Does it with every box that is in this state now.
    fn each(&self, state: BoxState, act: fn(&Self, BoxId)) {
        let this = self.clone();
        tokio::spawn(async move {
            let boxes = this.api.boxes().await;
            for view in boxes.into_iter().filter(|view| view.state == state) {
                act(&this, view.id);
            }
        });
    }

    /// In a terminal window; a box that rests is brought up by the command in it.
    fn open_shell(&self, id: BoxId) {
        let this = self.clone();
        tokio::spawn(async move {
            let boxes = this.api.boxes().await;
            let projects: Vec<_> = boxes.iter().map(|view| (&view.project_root).into()).collect();
            if let Err(e) = terminal::shell(&id, &projects).await {
                this.failed(
                    &format!("A shell in {} could not be opened", this.name(&id).await),
                    &e,
                );
            }
        });
    }

    fn mute(&self, id: BoxId, seconds: Option<u64>) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(e) = this.api.mute(Target::id(&id), seconds).await {
                this.failed(&format!("{} could not be muted", this.name(&id).await), &e);
            }
        });
    }

    /// In the person's browser; the box is brought up first.
    fn open_place(&self, id: BoxId, place: Place) {
        let this = self.clone();
        tokio::spawn(async move {
            let opened = match this.api.link(Target::id(&id), place.link(), false, None).await {
                Ok(link) => tokio::task::spawn_blocking(move || place::open(&link)).await,
                Err(e) => Ok(Err(e)),
            };
            if let Ok(Err(e)) = opened {
                let what = match place {
                    Place::Web => "web app",
                    Place::Screen => "screen",
                };
                let name = this.name(&id).await;
                this.failed(&format!("The {what} of {name} could not be opened"), &e);
            }
        });
    }

    async fn name(&self, id: &BoxId) -> String {
        let boxes = self.api.boxes().await;
        boxes.iter().find(|b| b.id == *id).map_or_else(|| id.to_string(), |b| b.name.to_string())
    }

    fn failed(&self, what: &str, error: &ControlError) {
        tracing::warn!("{what}: {error}");
        let mut reason = error.message.clone();
        for hint in &error.hints {
            reason.push('\n');
            reason.push_str(hint);
        }
        self.notifier.tell(what, &reason);
    }
}

/// What is asked before a box is stopped; none when nothing goes on in it.
fn before_stop(view: &BoxView) -> Option<Confirm> {
    let mut lines = busy::reasons(std::slice::from_ref(view));
    if lines.is_empty() {
        return None;
    }
    lines.push("Stopping ends every program in the box; its files and commits stay.".into());
    Some(Confirm { title: format!("Stop {}?", view.name), lines, verb: "Stop" })
}

/// What is asked before the app ends; none when no question is open.
fn before_quit(open: &[Question]) -> Option<Confirm> {
    let first = match open.len() {
        0 => return None,
        1 => "1 open question would be denied:".to_owned(),
        many => format!("{many} open questions would be denied:"),
    };
    let named = open.iter().take(NAMED).map(|q| format!("{} asks: {}", q.box_name, q.title));
    let more = open.len().checked_sub(NAMED).filter(|more| *more > 0);
    let lines = std::iter::once(first)
        .chain(named)
        .chain(more.map(|more| format!("and {more} more")))
        .chain(["Boxes go on.".to_owned()]);
    Some(Confirm { title: "Quit AgentBox?".into(), lines: lines.collect(), verb: "Quit" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::{a_box, question};
    use protocol::sessions::{Agent, AgentState, AgentView};

    #[test]
    fn a_box_is_stopped_without_a_question_unless_something_goes_on_in_it() {
        let mut view = a_box(1, "fix-login", "shop", BoxState::Running);
        let agent = |state| AgentView { agent: Agent::Claude, state, since: 0, has_login: false };
        for state in [AgentState::Ready, AgentState::Done, AgentState::Error] {
            view.agents = vec![agent(state)];
            assert_eq!(before_stop(&view), None, "{state:?}");
        }
        view.agents = vec![agent(AgentState::Working)];
        view.questions = 1;
        let asks = before_stop(&view).unwrap();
        assert_eq!((asks.title.as_str(), asks.verb), ("Stop fix-login?", "Stop"));
        assert_eq!(asks.lines[0], "Claude works in fix-login.");
        assert_eq!(asks.lines[1], "fix-login asks a question; it would be denied.");
    }

    #[test]
    fn quitting_says_which_questions_it_denies() {
        assert_eq!(before_quit(&[]), None);
        let one = before_quit(&[question(1, "fix-login", "Push 3 commits")]).unwrap();
        assert_eq!((one.title.as_str(), one.verb), ("Quit AgentBox?", "Quit"));
        assert_eq!(
            one.lines,
            ["1 open question would be denied:", "fix-login asks: Push 3 commits", "Boxes go on.",]
        );
        let many: Vec<_> = (1..=7).map(|n| question(n, "fix-login", "Push")).collect();
        let many = before_quit(&many).unwrap();
        assert_eq!(many.lines[0], "7 open questions would be denied:");
        assert_eq!(many.lines[6..], ["and 2 more", "Boxes go on."]);
    }
}
