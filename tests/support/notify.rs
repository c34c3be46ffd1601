//! Notifications on the real dunst: what is on the screen, and pressing its buttons. And a stand-in
//! for daemons that can less, or want not to disturb, or go away in the middle: [`Server`].
//!
//! dunst draws no buttons and does not list what it displays. It runs a script of the session for every
//! notification it puts up, and remembers what it took down: the difference is on the screen. Actions
//! are offered to a menu program, which the session answers with the line this module asked for.

#![allow(clippy::used_underscore_binding)] // arguments of bus methods that the stand-in does not need

use crate::session::Session;
use crate::wait::{eventually, eventually_or};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zbus::blocking::Connection;
use zbus::zvariant::OwnedValue;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const DUNST: &str = "org.dunstproject.cmd0";
/// How long dunst may take from being asked for a menu until our menu program has noted it.
const MENU: Duration = Duration::from_secs(2);

pub struct Notifications {
    bus: Connection,
    folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub id: u32,
    pub app: String,
    pub summary: String,
    pub body: String,
    /// `LOW`, `NORMAL` or `CRITICAL`.
    pub urgency: String,
}

impl Notifications {
    pub fn new(session: &Session) -> Self {
        Self { bus: session.bus(), folder: session.dir().join("dunst") }
    }

    /// What is on the screen now, oldest first.
    pub fn shown(&self) -> Vec<Shown> {
        // Read before asking what is gone: one that closes in between is then rightly left out.
        let ever = self.ever_shown();
        let gone = self.taken_down();
        ever.into_iter().filter(|shown| !gone.contains(&shown.id)).collect()
    }

    /// Everything that was ever on the screen, oldest first.
    pub fn ever_shown(&self) -> Vec<Shown> {
        let files = std::fs::read_dir(self.folder.join("shown")).into_iter().flatten().flatten();
        let mut all: Vec<Shown> = files.filter_map(|file| read(&file.path())).collect();
        all.sort_by_key(|shown| shown.id);
        all
    }

    /// A notification whose summary contains this text, as soon as it is on the screen.
    #[track_caller]
    pub fn wait_for(&self, summary: &str, deadline: Duration) -> Shown {
        eventually_or(deadline, &format!("a notification “{summary}”"), || {
            let shown = self.shown();
            let found = shown.iter().find(|one| one.summary.contains(summary)).cloned();
            found.ok_or_else(|| format!("{shown:?}"))
        })
    }

    /// The labels of the buttons of a notification.
    #[track_caller]
    pub fn actions(&self, id: u32) -> Vec<String> {
        self.offered().iter().filter_map(|line| label(line, id)).collect()
    }

    /// Presses a button of a notification on the screen. It stays until the app takes it down.
    #[track_caller]
    pub fn press(&self, id: u32, action: &str, deadline: Duration) {
        let pick = self.folder.join("pick");
        std::fs::write(&pick, format!("{id}\n{action}\n")).expect("a writable session folder");
        eventually_or(deadline, &format!("pressing “{action}” on notification {id}"), || {
            let offered = self.offered();
            // The menu program removes the request when it answers, and notes the menu after that.
            if pick.exists() { Err(format!("offered: {offered:?}")) } else { Ok(()) }
        });
    }

    /// Waits until a notification is off the screen.
    #[track_caller]
    pub fn gone(&self, id: u32, deadline: Duration) {
        eventually(deadline, &format!("notification {id} going away"), || {
            self.taken_down().contains(&id).then_some(())
        });
    }

    /// As if a person clicked it away, without answering.
    #[track_caller]
    pub fn dismiss_last(&self) {
        self.dunst("NotificationCloseLast").expect("dunst");
    }

    /// The lines dunst offers in its menu: `#Allow (summary) [2,allow]`.
    fn offered(&self) -> Vec<String> {
        let file = self.folder.join("offered");
        let _ = std::fs::remove_file(&file);
        let end = Instant::now() + MENU;
        // dunst ignores the call while an earlier menu is still open, and has no menu without actions.
        self.dunst("ContextMenuCall").expect("dunst");
        while !file.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn taken_down(&self) -> BTreeSet<u32> {
        let history: Vec<HashMap<String, OwnedValue>> = self
            .dunst("NotificationListHistory")
            .and_then(|reply| reply.body().deserialize())
            .expect("dunst, version 1.9 or newer");
        history.into_iter().filter_map(|mut one| number(one.remove("id")?)).collect()
    }

    fn dunst(&self, method: &str) -> zbus::Result<zbus::Message> {
        self.bus.call_method(Some(NAME), PATH, Some(DUNST), method, &())
    }
}

fn read(file: &std::path::Path) -> Option<Shown> {
    let id = file.file_name()?.to_str()?.parse().ok()?;
    let text = std::fs::read_to_string(file).ok()?;
    let mut parts = text.split('\0').map(str::to_owned);
    Some(Shown {
        id,
        app: parts.next()?,
        summary: parts.next()?,
        body: parts.next()?,
        urgency: parts.next()?,
    })
}

/// The label in a menu line, if the line belongs to that notification.
fn label(line: &str, id: u32) -> Option<String> {
    let (front, _) = line.strip_prefix('#')?.rsplit_once(&format!(" [{id},"))?;
    front.split_once(" (").map(|(label, _)| label.to_owned())
}

fn number(value: OwnedValue) -> Option<u32> {
    let signed = i32::try_from(&value).ok().and_then(|n| u32::try_from(n).ok());
    signed.or_else(|| u32::try_from(&value).ok())
}

/// What a [`Server`] is like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manners {
    /// It offers buttons.
    pub actions: bool,
    /// The person told it that they do not want to be disturbed.
    pub inhibited: bool,
}

/// A notification daemon on a desktop without one, for as long as this lives.
pub struct Server {
    bus: Option<Connection>,
    state: Arc<Mutex<Served>>,
}

#[derive(Default)]
struct Served {
    manners: Manners,
    last: u32,
    up: Vec<Toast>,
}

/// A notification that a [`Server`] shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toast {
    pub id: u32,
    pub summary: String,
    pub body: String,
    /// Key and label in turn.
    pub actions: Vec<String>,
}

struct Side(Arc<Mutex<Served>>);

impl Server {
    #[track_caller]
    pub fn start(session: &Session, manners: Manners) -> Self {
        let state = Arc::new(Mutex::new(Served { manners, ..Served::default() }));
        let bus = session.bus();
        bus.object_server().at(PATH, Side(state.clone())).expect("a free path");
        bus.request_name(NAME).expect("a desktop without a notification daemon");
        Self { bus: Some(bus), state }
    }

    pub fn set(&self, manners: Manners) {
        served(&self.state).manners = manners;
    }

    /// What is up now, oldest first.
    pub fn up(&self) -> Vec<Toast> {
        served(&self.state).up.clone()
    }

    #[track_caller]
    pub fn wait_for(&self, summary: &str, deadline: Duration) -> Toast {
        eventually_or(deadline, &format!("a notification “{summary}”"), || {
            let up = self.up();
            let found = up.iter().find(|one| one.summary.contains(summary)).cloned();
            found.ok_or_else(|| format!("{up:?}"))
        })
    }

    /// A press on a button, by its key.
    #[track_caller]
    pub fn press(&self, id: u32, key: &str) {
        let bus = self.bus.as_ref().expect("a daemon that lives");
        bus.emit_signal(None::<&str>, PATH, NAME, "ActionInvoked", &(id, key)).expect("the bus");
    }

    /// Ends as if it was killed: its name and its screen are gone at once.
    pub fn kill(mut self) {
        if let Some(bus) = self.bus.take() {
            let _ = bus.close();
        }
    }
}

fn served(state: &Mutex<Served>) -> MutexGuard<'_, Served> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::too_many_arguments, clippy::unused_self)] // as the bus has it
#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Side {
    fn get_capabilities(&self) -> Vec<&'static str> {
        let actions = served(&self.0).manners.actions.then_some("actions");
        ["body"].into_iter().chain(actions).collect()
    }

    fn get_server_information(&self) -> (&str, &str, &str, &str) {
        ("stand-in", "tests", "1", "1.2")
    }

    fn notify(
        &self,
        _app: &str,
        _replaces: u32,
        _icon: &str,
        summary: String,
        body: String,
        actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let mut state = served(&self.0);
        state.last += 1;
        let id = state.last;
        state.up.push(Toast { id, summary, body, actions });
        id
    }

    fn close_notification(&self, id: u32) {
        served(&self.0).up.retain(|one| one.id != id);
    }

    #[zbus(property)]
    fn inhibited(&self) -> bool {
        served(&self.0).manners.inhibited
    }
}
