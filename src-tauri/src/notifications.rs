//! Questions as desktop notifications with buttons, and plain notices.
//!
//! A sink only writes down what should be up and wakes one task, which makes the daemon's screen
//! agree: nothing is lost in a queue, and a daemon that comes back gets what is still open. The
//! surprising thing: closing a notification is no answer; the question stays open elsewhere.

mod daemon;

use crate::page::Page;
use approvals::Sink;
use daemon::{Action, Bus, Daemon, Heard, Lost, Toast};
use host::Api;
use host::quiet::{Hushed, Manner};
use protocol::control::{ErrorCode, Notice, Target};
use protocol::question::{Outcome, Question, Surface, Verdict};
use protocol::{BoxId, BoxName, QuestionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use zbus::names::OwnedUniqueName;

const PART: &str = "notifications";
const NO_BUS_AGAIN: Duration = Duration::from_secs(5);
const HUNG_AGAIN: Duration = Duration::from_secs(10);
/// More unsaid news than this is old news.
const MOST_NEWS: usize = 16;
/// More questions than this on screen help nobody; the next comes when one of them goes.
const MOST_QUESTIONS: usize = 12;
const EMPTYING: Duration = Duration::from_secs(1);
const MUTE_SECONDS: u64 = 3600;

/// Cheap to clone; all clones speak through one task.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<Shared>,
}

struct Shared {
    wanted: Mutex<Wanted>,
    changed: Notify,
    /// How many questions are on the daemon's screen.
    up: watch::Sender<usize>,
}

/// What should be on screen.
#[derive(Default)]
struct Wanted {
    questions: Vec<Question>,
    news: VecDeque<News>,
}

/// Something to say, and the box it lets a person mute or look at.
struct News {
    toast: Toast,
    mute: Option<BoxName>,
    look: Option<BoxId>,
}

impl News {
    /// A box's doing can wait; what became of a person's own wish is told at once.
    fn can_be_missed(&self) -> bool {
        self.mute.is_some() || self.look.is_some()
    }
}

impl Notifier {
    /// Starts the task and shows the host's questions from now on.
    pub fn start(api: &Api) -> Self {
        let shared = Arc::new(Shared {
            wanted: Mutex::default(),
            changed: Notify::new(),
            up: watch::channel(0).0,
        });
        let notifier = Self { shared };
        tokio::spawn(run(notifier.shared.clone(), api.clone()));
        let hushed = Hushed::new(notifier.clone(), Manner::Speaks, api.quietness());
        api.broker().add_sink(hushed.clone());
        tokio::spawn(hushed.follow());
        notifier
    }

    /// Says something that needs no answer.
    pub fn tell(&self, title: &str, body: &str) {
        self.say(News { toast: Toast::news(title, body), mute: None, look: None });
    }

    /// Says something about a box; a click shows it.
    pub fn tell_of_box(&self, id: &BoxId, title: &str, body: &str) {
        let toast = Toast::of_box(title, body);
        self.say(News { toast, mute: None, look: Some(id.clone()) });
    }

    fn say(&self, news: News) {
        let mut wanted = self.shared.lock();
        if wanted.news.len() == MOST_NEWS {
            wanted.news.pop_front();
        }
        wanted.news.push_back(news);
        drop(wanted);
        self.shared.changed.notify_one();
    }

    /// Waits, for a moment at most, until no question is on screen.
    pub async fn emptied(&self) {
        let mut up = self.shared.up.subscribe();
        let _ = tokio::time::timeout(EMPTYING, up.wait_for(|n| *n == 0)).await;
    }
}

impl Sink for Notifier {
    fn show(&self, question: &Question) {
        self.shared.lock().questions.push(question.clone());
        self.shared.changed.notify_one();
    }

    fn withdraw(&self, question: &Question, _: &Outcome) {
        self.shared.lock().questions.retain(|q| q.id != question.id);
        self.shared.changed.notify_one();
    }

    fn note(&self, box_name: &BoxName, text: &str) {
        let toast = Toast::keeps_asking(box_name, text);
        self.say(News { toast, mute: Some(box_name.clone()), look: None });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the life of the app: find the bus, find the daemon, serve it, say what is missing.
async fn run(shared: Arc<Shared>, api: Api) {
    loop {
        match Bus::connect().await {
            Ok(bus) => with_bus(bus, &shared, &api).await,
            Err(lost) => complain(&api, &lost),
        }
        tokio::time::sleep(NO_BUS_AGAIN).await;
    }
}

/// Ends when the bus is gone.
async fn with_bus(mut bus: Bus, shared: &Shared, api: &Api) {
    let mut up = Up::default();
    loop {
        let lost = match bus.daemon().await {
            Ok(daemon) => {
                api.clear_notice(PART);
                up.belongs_to(&daemon);
                let Up { toasts, mutable, seen, .. } = &mut up;
                let mut screen = Screen { daemon, up: toasts, mutable, seen, shared, api };
                let Err(lost) = screen.serve(&mut bus).await;
                shared.up.send_replace(0);
                lost
            }
            Err(lost) => lost,
        };
        complain(api, &lost);
        let again = if matches!(lost, Lost::Hung) { HUNG_AGAIN } else { Duration::MAX };
        tokio::select! {
            alive = bus.daemon_appears() => if !alive { return },
            // A call may start a daemon that is installed, so a new question is worth a try.
            () = shared.changed.notified() => {}
            () = tokio::time::sleep(again) => {}
        }
    }
}

fn complain(api: &Api, lost: &Lost) {
    tracing::warn!("no notifications: {lost}");
    api.set_notice(Notice {
        part: PART.into(),
        message: format!("Questions cannot be shown as notifications: {lost}."),
        hint: Some(
            "Start a notification daemon such as dunst or your desktop's own. \
             Questions still appear as dialogs, in the tray and in the window."
                .into(),
        ),
    });
}

/// What is on a daemon's screen. Kept while it hangs: it may come back with all of it.
#[derive(Default)]
struct Up {
    daemon: Option<OwnedUniqueName>,
    toasts: Toasts,
    mutable: Mutable,
    seen: Seen,
}

/// The box each notification lets a person mute.
type Mutable = HashMap<u32, BoxName>;

/// The box each notification is about.
type Seen = HashMap<u32, BoxId>;

/// The notification of each question; none after a person closed it.
type Toasts = HashMap<QuestionId, Option<u32>>;

impl Up {
    /// Another daemon starts with an empty screen.
    fn belongs_to(&mut self, daemon: &Daemon) {
        if self.daemon.as_ref() != Some(daemon.name()) {
            *self = Self { daemon: Some(daemon.name().clone()), ..Self::default() };
        }
    }
}

/// One daemon's screen.
struct Screen<'a> {
    daemon: Daemon,
    up: &'a mut Toasts,
    mutable: &'a mut Mutable,
    seen: &'a mut Seen,
    shared: &'a Shared,
    api: &'a Api,
}

impl Screen<'_> {
    /// Ends when the daemon does.
    async fn serve(&mut self, bus: &mut Bus) -> Result<std::convert::Infallible, Lost> {
        loop {
            self.agree().await?;
            tokio::select! {
                () = self.shared.changed.notified() => {}
                heard = self.daemon.hears() => self.heard(heard?).await?,
                lost = bus.daemon_leaves() => return Err(lost),
            }
        }
    }

    /// Makes the screen show what is wanted.
    async fn agree(&mut self) -> Result<(), Lost> {
        let (questions, news) = {
            let mut wanted = self.shared.lock();
            (wanted.questions.clone(), std::mem::take(&mut wanted.news))
        };
        let over: Vec<_> =
            self.up.keys().filter(|id| questions.iter().all(|q| q.id != **id)).cloned().collect();
        for id in over {
            if let Some(Some(toast)) = self.up.remove(&id) {
                self.daemon.close(toast).await?;
            }
        }
        for question in &questions {
            if self.on_screen() >= MOST_QUESTIONS {
                break;
            }
            if !self.up.contains_key(&question.id) {
                let toast = self.daemon.notify(&Toast::question(question)).await?;
                self.up.insert(question.id.clone(), Some(toast));
            }
        }
        let undisturbed =
            news.iter().any(News::can_be_missed) && self.daemon.is_not_to_disturb().await;
        for news in news {
            if undisturbed && news.can_be_missed() {
                continue;
            }
            let News { toast, mute, look } = news;
            let shown = self.daemon.notify(&toast).await?;
            self.mutable.extend(mute.map(|name| (shown, name)));
            self.seen.extend(look.map(|id| (shown, id)));
        }
        self.shared.up.send_replace(self.on_screen());
        Ok(())
    }

    fn on_screen(&self) -> usize {
        self.up.values().flatten().count()
    }

    async fn heard(&mut self, heard: Heard) -> Result<(), Lost> {
        match heard {
            Heard::Pressed { toast, action } => self.pressed(toast, action).await,
            Heard::Closed { toast } => {
                self.mutable.remove(&toast);
                self.seen.remove(&toast);
                if let Some(up) = self.up.values_mut().find(|up| **up == Some(toast)) {
                    *up = None;
                }
                Ok(())
            }
            Heard::Other => Ok(()),
        }
    }

    async fn pressed(&mut self, toast: u32, action: Action) -> Result<(), Lost> {
        if action == Action::Mute {
            self.mute(toast).await;
            return Ok(());
        }
        if let Some(id) = self.seen.remove(&toast) {
            if let Err(e) = self.api.show_window(&Page::Box(id, None).to_string()) {
                tracing::warn!("the box was not shown: {e}");
            }
            return Ok(());
        }
        let Some(question) = self.question_of(toast) else { return Ok(()) };
        let done = match action {
            Action::Allow => self.answer(&question, Verdict::AllowOnce),
            Action::Deny => self.answer(&question, Verdict::Deny),
            Action::Show | Action::Mute => {
                self.api.show_window(&Page::Question(question.id.clone()).to_string())
            }
        };
        if let Err(e) = done {
            tracing::warn!("the answer to a notification was not taken: {e}");
            // The daemon closes what was pressed, but the question is still open: show it again.
            if matches!(e.code, ErrorCode::TooSoon | ErrorCode::Locked) {
                self.up.remove(&question.id);
                self.daemon.close(toast).await?;
            }
        }
        Ok(())
    }

    async fn mute(&mut self, toast: u32) {
        let Some(name) = self.mutable.remove(&toast) else { return };
        let target = Target { query: Some(name.to_string()), cwd: None };
        if let Err(e) = self.api.mute(target, Some(MUTE_SECONDS)).await {
            tracing::warn!("{name} was not muted: {e}");
        }
    }

    fn answer(
        &self,
        question: &Question,
        verdict: Verdict,
    ) -> Result<(), protocol::control::ControlError> {
        self.api.answer(&question.id, &question.digest, verdict, Surface::Notification)
    }

    fn question_of(&self, toast: u32) -> Option<Question> {
        let (id, _) = self.up.iter().find(|(_, up)| **up == Some(toast))?;
        self.shared.lock().questions.iter().find(|q| q.id == *id).cloned()
    }
}
