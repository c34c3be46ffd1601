//! The notification daemon, over D-Bus directly.
//!
//! Every hole a notification can fall through is closed here: signals are subscribed before the
//! first notification is sent, so a quick press is heard; every call has a limit, so a daemon that
//! hangs is noticed; a daemon that dies is noticed at once. Calls go to the daemon's unique name:
//! only this very daemon is heard and spoken to, and closing a notification cannot start another.

use futures_util::StreamExt;
use protocol::BoxName;
use protocol::question::Question;
use std::collections::HashMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use zbus::fdo::{DBusProxy, NameOwnerChangedStream};
use zbus::message::Type;
use zbus::names::{MemberName, OwnedUniqueName};
use zbus::zvariant::{DynamicType, OwnedValue, Value};
use zbus::{Connection, MatchRule, Message, MessageStream};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const LIMIT: Duration = Duration::from_secs(3);
const APP: &str = "AgentBox";

/// Why there is nobody to show a notification.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("there is no D-Bus session")]
    NoBus,
    #[error("no notification daemon runs")]
    NoDaemon,
    #[error("the notification daemon does not answer")]
    Hung,
    #[error("the notification daemon went away")]
    Gone,
    #[error("the notification daemon failed: {0}")]
    Failed(String),
}

impl From<zbus::Error> for Lost {
    fn from(error: zbus::Error) -> Self {
        match &error {
            zbus::Error::MethodError(name, _, _)
                if name.ends_with(".ServiceUnknown") || name.ends_with(".NameHasNoOwner") =>
            {
                Lost::NoDaemon
            }
            zbus::Error::Address(_) | zbus::Error::InputOutput(_) => Lost::NoBus,
            _ => Lost::Failed(error.to_string()),
        }
    }
}

impl From<zbus::fdo::Error> for Lost {
    fn from(error: zbus::fdo::Error) -> Self {
        match error {
            zbus::fdo::Error::NameHasNoOwner(_) | zbus::fdo::Error::ServiceUnknown(_) => {
                Lost::NoDaemon
            }
            zbus::fdo::Error::ZBus(e) => e.into(),
            other => Lost::Failed(other.to_string()),
        }
    }
}

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toast {
    title: String,
    body: String,
    /// Key and label in turn; `default` is a click on the notification itself.
    actions: Vec<String>,
    /// Somebody waits for an answer: it stays until there is one.
    urgent: bool,
}

const LOOK: [&str; 4] = ["default", "Show", "show", "Show"];
const MUTE: [&str; 2] = ["mute", "Mute for an hour"];
/// The longest sentence a daemon can be trusted to show whole.
const LONGEST: usize = 100;

impl Toast {
    pub fn question(question: &Question) -> Self {
        let title = format!("{} asks", question.box_name);
        let mut lines = vec![escaped(&question.title)];
        lines.extend(question.warnings.iter().map(|w| format!("⚠ {}", escaped(w))));
        Self { title, body: lines.join("\n"), actions: answers(question), urgent: true }
    }

    /// A box is not heard for a while; it can be silenced for longer.
    pub fn keeps_asking(box_name: &BoxName, text: &str) -> Self {
        let title = format!("{box_name} keeps asking");
        Self { title, body: escaped(text), actions: owned(&MUTE), urgent: false }
    }

    /// Something about a box that can be looked at.
    pub fn of_box(title: &str, body: &str) -> Self {
        Self { title: title.into(), body: escaped(body), actions: owned(&LOOK), urgent: false }
    }

    pub fn news(title: &str, body: &str) -> Self {
        Self { title: title.into(), body: escaped(body), actions: Vec::new(), urgent: false }
    }
}

/// In the question's own words. What is more than a line, carries a warning or matters to others is read before
/// it is allowed.
fn answers(question: &Question) -> Vec<String> {
    let (yes, no) = (question.answers.yes.as_str(), question.answers.no.as_str());
    let fits = question.title.chars().count() <= LONGEST;
    if fits && question.is_plain() {
        owned(&["default", "Show", "allow", yes, "show", "Show", "deny", no])
    } else {
        owned(&["default", "Show", "show", "Show", "deny", no])
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Daemons read the body as markup; what a box wrote must stay text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What came from the daemon.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Pressed { toast: u32, action: Action },
    Closed { toast: u32 },
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Allow,
    Show,
    Deny,
    Mute,
}

/// The session bus, and who owns the daemon's name on it.
pub struct Bus {
    connection: Connection,
    dbus: DBusProxy<'static>,
    owners: NameOwnerChangedStream,
}

impl Bus {
    pub async fn connect() -> Result<Self, Lost> {
        limited(async {
            let connection = Connection::session().await.map_err(|_| Lost::NoBus)?;
            let dbus = DBusProxy::new(&connection).await?;
            let owners = dbus.receive_name_owner_changed_with_args(&[(0, NAME)]).await?;
            Ok(Self { connection, dbus, owners })
        })
        .await
    }

    /// The daemon, started by the bus when it is installed and not running.
    pub async fn daemon(&self) -> Result<Daemon, Lost> {
        let can: Vec<String> = limited(async {
            let call =
                self.connection.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &());
            Ok(call.await?.body().deserialize()?)
        })
        .await?;
        limited(async {
            let owner =
                self.dbus.get_name_owner(NAME.try_into().map_err(zbus::Error::from)?).await?;
            let rule = MatchRule::builder()
                .msg_type(Type::Signal)
                .sender(owner.as_str())?
                .path(PATH)?
                .interface(NAME)?
                .build();
            let signals = MessageStream::for_match_rule(rule, &self.connection, Some(64)).await?;
            let buttons = can.iter().any(|c| c == "actions");
            let line = Line { connection: self.connection.clone(), owner };
            Ok(Daemon { line, signals, buttons })
        })
        .await
    }

    /// False when the bus is gone.
    pub async fn daemon_appears(&mut self) -> bool {
        while let Some(change) = self.owners.next().await {
            if change.args().is_ok_and(|a| a.new_owner().is_some()) {
                return true;
            }
        }
        false
    }

    /// The name's owner changed: whoever we spoke to has it no longer.
    pub async fn daemon_leaves(&mut self) -> Lost {
        while let Some(change) = self.owners.next().await {
            // A daemon that the bus just started for us *appears* here, too.
            if change.args().is_ok_and(|a| a.old_owner().is_some()) {
                return Lost::Gone;
            }
        }
        Lost::NoBus
    }
}

/// A living daemon, already listened to.
pub struct Daemon {
    line: Line,
    signals: MessageStream,
    /// Without them a notification can only inform.
    buttons: bool,
}

impl Daemon {
    /// On the bus, used by no other daemon before or after.
    pub fn name(&self) -> &OwnedUniqueName {
        &self.line.owner
    }

    /// Shows it and gives its number.
    pub async fn notify(&self, toast: &Toast) -> Result<u32, Lost> {
        let (line, toast, buttons) = (self.line.clone(), toast.clone(), self.buttons);
        let mut call = tokio::spawn(async move { line.notify(&toast, buttons).await });
        match tokio::time::timeout(LIMIT, &mut call).await {
            Ok(Ok(shown)) => Ok(shown?),
            Ok(Err(e)) => Err(Lost::Failed(e.to_string())),
            Err(_) => {
                self.take_down_late(call);
                Err(Lost::Hung)
            }
        }
    }

    /// A daemon that wakes up draws what it was sent: nobody else would take that down.
    fn take_down_late(&self, call: JoinHandle<zbus::Result<u32>>) {
        let line = self.line.clone();
        tokio::spawn(async move {
            if let Ok(Ok(toast)) = call.await {
                let _ = line.close(toast).await;
            }
        });
    }

    pub async fn close(&self, toast: u32) -> Result<(), Lost> {
        limited(async {
            match self.line.close(toast).await {
                // Daemons may answer with an error when it was closed already.
                Ok(()) | Err(zbus::Error::MethodError(..)) => Ok(()),
                Err(e) => Err(e.into()),
            }
        })
        .await
    }

    /// The person told the desktop that they do not want to be disturbed. A daemon that knows
    /// nothing of that says no.
    pub async fn is_not_to_disturb(&self) -> bool {
        limited(async { Ok(self.line.inhibited().await?) }).await.unwrap_or(false)
    }

    /// The next thing the daemon says.
    pub async fn hears(&mut self) -> Result<Heard, Lost> {
        let message = self.signals.next().await.ok_or(Lost::NoBus)??;
        Ok(understood(&message))
    }
}

/// Calls to one daemon, without a limit.
#[derive(Clone)]
struct Line {
    connection: Connection,
    owner: OwnedUniqueName,
}

impl Line {
    async fn notify(&self, toast: &Toast, buttons: bool) -> zbus::Result<u32> {
        let actions: &[String] = if buttons { &toast.actions } else { &[] };
        let urgency: u8 = if toast.urgent { 2 } else { 1 };
        // A question stays until it is answered; news goes when the daemon thinks fit.
        let timeout: i32 = if toast.urgent { 0 } else { -1 };
        let hints = HashMap::from([("urgency", Value::from(urgency))]);
        let (title, text) = (toast.title.as_str(), toast.body.as_str());
        let body = (APP, 0u32, "", title, text, actions, hints, timeout);
        self.call("Notify", &body).await?.body().deserialize()
    }

    async fn close(&self, toast: u32) -> zbus::Result<()> {
        self.call("CloseNotification", &(toast,)).await.map(drop)
    }

    /// As KDE's daemon has it.
    async fn inhibited(&self) -> zbus::Result<bool> {
        let (to, interface) = (self.owner.as_str(), "org.freedesktop.DBus.Properties");
        let body = (NAME, "Inhibited");
        let reply =
            self.connection.call_method(Some(to), PATH, Some(interface), "Get", &body).await?;
        let value: OwnedValue = reply.body().deserialize()?;
        Ok(bool::try_from(value)?)
    }

    async fn call<B>(&self, method: &str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + DynamicType,
    {
        let to = self.owner.as_str();
        self.connection.call_method(Some(to), PATH, Some(NAME), method, body).await
    }
}

fn understood(message: &Message) -> Heard {
    let header = message.header();
    match header.member().map(MemberName::as_str) {
        Some("ActionInvoked") => match message.body().deserialize::<(u32, String)>() {
            Ok((toast, key)) => pressed(toast, &key),
            Err(_) => Heard::Other,
        },
        Some("NotificationClosed") => match message.body().deserialize::<(u32, u32)>() {
            Ok((toast, _)) => Heard::Closed { toast },
            Err(_) => Heard::Other,
        },
        _ => Heard::Other,
    }
}

fn pressed(toast: u32, key: &str) -> Heard {
    let action = match key {
        "allow" => Action::Allow,
        "deny" => Action::Deny,
        "mute" => Action::Mute,
        "show" | "default" => Action::Show,
        _ => return Heard::Other,
    };
    Heard::Pressed { toast, action }
}

async fn limited<T>(work: impl Future<Output = Result<T, Lost>>) -> Result<T, Lost> {
    tokio::time::timeout(LIMIT, work).await.unwrap_or(Err(Lost::Hung))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::question;
    use protocol::question::Tier;

    #[test]
    fn what_a_box_wrote_is_no_markup() {
        let toast = Toast::question(&question(1, "a", "Push <b>&amp;</b> to x"));
        assert_eq!(toast.title, "a asks");
        assert_eq!(toast.body, "Push &lt;b&gt;&amp;amp;&lt;/b&gt; to x");
    }

    #[test]
    fn only_known_buttons_do_something() {
        for (key, action) in [
            ("allow", Action::Allow),
            ("deny", Action::Deny),
            ("mute", Action::Mute),
            ("show", Action::Show),
            ("default", Action::Show),
        ] {
            assert_eq!(pressed(7, key), Heard::Pressed { toast: 7, action });
        }
        assert_eq!(pressed(7, "Allow"), Heard::Other);
    }

    #[test]
    fn only_a_plain_question_that_fits_can_be_allowed_here() {
        let actions = |q: &Question| Toast::question(q).actions;
        let plain = question(1, "a", "Push");
        let all = ["default", "Show", "allow", "Allow once", "show", "Show", "deny", "Deny"];
        assert_eq!(actions(&plain), all);
        for change in [
            (|q: &mut Question| q.tier = Tier::Sensitive) as fn(&mut Question),
            |q| q.tier = Tier::Irreversible,
            |q| q.warnings = vec!["rewrites history".into()],
            |q| q.title = format!("Push to {}", "x".repeat(200)),
        ] {
            let mut other = plain.clone();
            change(&mut other);
            let look_first = ["default", "Show", "show", "Show", "deny", "Deny"];
            assert_eq!(actions(&other), look_first, "{}", other.title);
        }
    }

    #[test]
    fn buttons_bear_the_questions_own_words() {
        let mut asked = question(1, "a", "Copy 2 files into the new box a");
        (asked.answers.yes, asked.answers.no) = ("Copy".into(), "Cancel".into());
        let all = ["default", "Show", "allow", "Copy", "show", "Show", "deny", "Cancel"];
        assert_eq!(Toast::question(&asked).actions, all);
        asked.answers.without = Some("Without these files".into());
        let look_first = ["default", "Show", "show", "Show", "deny", "Cancel"];
        assert_eq!(Toast::question(&asked).actions, look_first);
    }

    #[test]
    fn a_box_that_keeps_asking_can_be_muted_and_is_not_urgent() {
        let toast = Toast::keeps_asking(&"a".parse().unwrap(), "a was denied <x> three times.");
        assert_eq!((toast.title.as_str(), toast.urgent), ("a keeps asking", false));
        assert_eq!(toast.actions, MUTE);
        assert!(toast.body.contains("&lt;x&gt;"));
    }

    #[test]
    fn news_offers_no_answer() {
        assert!(Toast::news("Done", "").actions.is_empty());
    }
}
