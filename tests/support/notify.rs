//! Notifications on the real dunst: what is on the screen, and pressing its buttons.
//!
//! dunst draws no buttons and does not list what it displays. It runs a script of the session for every
//! notification it puts up, and remembers what it took down: the difference is on the screen. Actions
//! are offered to a menu program, which the session answers with the line this module asked for.

use crate::session::Session;
use crate::wait::{eventually, eventually_or};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
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
