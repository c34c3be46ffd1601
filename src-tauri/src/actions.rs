//! Does what a person chose in the tray. Decides nothing: the host checks every answer.

use crate::menu::Action;
use crate::notifications::Notifier;
use crate::page::{Page, Tab};
use crate::place::{self, Place};
use crate::terminal;
use host::Api;
use protocol::boxes::BoxState;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::question::{Surface, Verdict};
use protocol::{BoxId, QuestionId};

/// In seconds.
const HOUR: u64 = 3600;

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
            Action::Quit => self.api.request_stop(),
        }
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
            if let Err(e) = this.api.stop_box(Target::id(&id)).await {
                this.failed(&format!("{} could not be stopped", this.name(&id).await), &e);
            }
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
