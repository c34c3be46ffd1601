//! Is the screen locked? Then nothing is allowed from it, whoever sits there.
//!
//! Two kinds of sources tell: the session's screen saver, under one of the names desktops use, and
//! logind. Any of them is enough. Without them nothing is known, and the lock screen itself, which
//! keeps hands off dialogs, is the only guard. A screen saver that dies while it holds the lock no
//! longer holds it.

use futures_util::StreamExt;
use host::Api;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zbus::fdo::{DBusProxy, PropertiesProxy};
use zbus::message::Type;
use zbus::names::{BusName, InterfaceName};
use zbus::zvariant::OwnedObjectPath;
use zbus::{Connection, MatchRule, MessageStream};

/// They all have the signal `ActiveChanged(bool)`.
const SCREEN_SAVERS: [&str; 4] = [
    "org.freedesktop.ScreenSaver",
    "org.gnome.ScreenSaver",
    "org.cinnamon.ScreenSaver",
    "org.mate.ScreenSaver",
];
const LOGIND: &str = "org.freedesktop.login1";
const MANAGER_PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
/// The caller's own session; signals come from its real path.
const OWN_SESSION: &str = "/org/freedesktop/login1/session/auto";
const SESSION: &str = "org.freedesktop.login1.Session";
const AGAIN: Duration = Duration::from_secs(60);

/// For the life of the app.
pub async fn watch(api: Api) {
    let any = Arc::new(Any { api, sources: Default::default() });
    for (at, name) in SCREEN_SAVERS.into_iter().enumerate() {
        let source = Source { any: any.clone(), at };
        tokio::spawn(async move {
            loop {
                let ended = screen_saver(name, &source).await;
                source.again(name, ended).await;
            }
        });
    }
    let source = Source { any, at: SCREEN_SAVERS.len() };
    loop {
        let ended = logind(&source).await;
        source.again(LOGIND, ended).await;
    }
}

/// What each source says.
struct Any {
    api: Api,
    sources: [AtomicBool; SCREEN_SAVERS.len() + 1],
}

struct Source {
    any: Arc<Any>,
    at: usize,
}

impl Source {
    fn says(&self, locked: bool) {
        let Any { api, sources } = &*self.any;
        if sources[self.at].swap(locked, Ordering::SeqCst) == locked {
            return;
        }
        let locked = sources.iter().any(|source| source.load(Ordering::SeqCst));
        tracing::info!("the screen is {}", if locked { "locked" } else { "unlocked" });
        api.broker().set_locked(locked);
    }

    /// A source that went away says nothing; it may come back.
    async fn again(&self, name: &str, ended: zbus::Result<()>) {
        if let Err(e) = ended {
            tracing::debug!("{name}: {e}");
        }
        self.says(false);
        tokio::time::sleep(AGAIN).await;
    }
}

/// Ends when the bus does.
async fn screen_saver(interface: &'static str, source: &Source) -> zbus::Result<()> {
    let bus = Connection::session().await?;
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .interface(interface)?
        .member("ActiveChanged")?
        .build();
    let mut signals = MessageStream::for_match_rule(rule, &bus, Some(8)).await?;
    let dbus = DBusProxy::new(&bus).await?;
    while let Some(signal) = signals.next().await {
        let signal = signal?;
        let Ok(locked) = signal.body().deserialize::<bool>() else { continue };
        source.says(locked);
        if locked && let Some(sender) = signal.header().sender() {
            until_unlocked(&dbus, sender.as_str(), &mut signals).await?;
            source.says(false);
        }
    }
    Ok(())
}

/// Until the screen saver says so, or is gone.
async fn until_unlocked(
    dbus: &DBusProxy<'_>,
    sender: &str,
    signals: &mut MessageStream,
) -> zbus::Result<()> {
    let mut owners = dbus.receive_name_owner_changed_with_args(&[(0, sender)]).await?;
    if !dbus.name_has_owner(BusName::try_from(sender)?).await? {
        return Ok(());
    }
    loop {
        tokio::select! {
            _ = owners.next() => return Ok(()),
            signal = signals.next() => {
                let Some(signal) = signal else { return Ok(()) };
                if let Ok(false) = signal?.body().deserialize::<bool>() {
                    return Ok(());
                }
            }
        }
    }
}

/// Ends when logind or the bus does.
async fn logind(source: &Source) -> zbus::Result<()> {
    let bus = Connection::system().await?;
    let interface = InterfaceName::try_from(SESSION)?;
    let own = properties(&bus, OwnedObjectPath::try_from(OWN_SESSION)?).await?;
    let id = String::try_from(own.get(interface.clone(), "Id").await?)?;
    let found = bus.call_method(Some(LOGIND), MANAGER_PATH, Some(MANAGER), "GetSession", &id);
    let session = properties(&bus, found.await?.body().deserialize()?).await?;
    let mut changes = session.receive_properties_changed().await?;
    loop {
        let hint = session.get(interface.clone(), "LockedHint").await?;
        source.says(bool::try_from(hint).unwrap_or(false));
        if changes.next().await.is_none() {
            return Ok(());
        }
    }
}

async fn properties(
    bus: &Connection,
    path: OwnedObjectPath,
) -> zbus::Result<PropertiesProxy<'static>> {
    PropertiesProxy::builder(bus).destination(LOGIND)?.path(path)?.build().await
}
