//! Is there a panel that shows tray icons?
//!
//! Building the icon waits for the panel on the main thread without a limit, so a panel that hangs
//! would freeze every dialog. It is asked here first, off the main thread and for at most 3 s.

use std::time::Duration;

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const PATH: &str = "/StatusNotifierWatcher";
const LIMIT: Duration = Duration::from_secs(3);

/// Keeps its connection between questions.
#[derive(Default)]
pub struct TrayHost {
    bus: Option<zbus::Connection>,
}

impl TrayHost {
    /// Fails with the reason in words.
    pub async fn answers(&mut self) -> Result<(), String> {
        match tokio::time::timeout(LIMIT, self.ask()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("no panel shows tray icons".into()),
            Ok(Err(e)) => {
                self.bus = None;
                Err(reason(&e))
            }
            Err(_) => Err(format!("the panel did not answer within {} s", LIMIT.as_secs())),
        }
    }

    async fn ask(&mut self) -> zbus::Result<bool> {
        let bus = match self.bus.take() {
            Some(bus) => bus,
            None => zbus::Connection::session().await?,
        };
        let watcher: zbus::Proxy<'_> = zbus::proxy::Builder::new(&bus)
            .destination(WATCHER)?
            .path(PATH)?
            .interface(WATCHER)?
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .await?;
        let ready = watcher.get_property("IsStatusNotifierHostRegistered").await;
        self.bus = Some(bus.clone());
        ready
    }
}

fn reason(error: &zbus::Error) -> String {
    match error {
        zbus::Error::MethodError(name, _, _) if name.ends_with(".ServiceUnknown") => {
            "no panel shows tray icons".into()
        }
        zbus::Error::Address(_) | zbus::Error::InputOutput(_) => {
            "there is no D-Bus session to reach a panel through".into()
        }
        other => other.to_string(),
    }
}
