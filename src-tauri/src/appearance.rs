//! Light or dark, as the desktop wants it: its portal says so, and GTK does not listen to that by itself.
//!
//! A desktop without a portal, or one that has no opinion, is left as it is.

use crate::main_thread::MainThread;
use futures_util::StreamExt;
use gtk::prelude::*;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::zvariant::{OwnedValue, Value};
use zbus::{Connection, Proxy};

const PORTAL: &str = "org.freedesktop.portal.Desktop";
const PATH: &str = "/org/freedesktop/portal/desktop";
const SETTINGS: &str = "org.freedesktop.portal.Settings";
const NAMESPACE: &str = "org.freedesktop.appearance";
const KEY: &str = "color-scheme";
const DARK: u32 = 1;

/// For the life of the app.
pub async fn follow(main: MainThread) {
    if let Err(e) = listen(&main).await {
        tracing::debug!("the desktop's colours are not known: {e}");
    }
}

async fn listen(main: &MainThread) -> zbus::Result<()> {
    let bus = Connection::session().await?;
    let portal: Proxy<'_> = zbus::proxy::Builder::new(&bus)
        .destination(PORTAL)?
        .path(PATH)?
        .interface(SETTINGS)?
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    // Before the question, so that no change falls in between.
    let mut changes = portal.receive_signal("SettingChanged").await?;
    let now: zbus::Result<Option<OwnedValue>> =
        portal.call_with_flags("Read", MethodFlags::NoAutoStart.into(), &(NAMESPACE, KEY)).await;
    if let Ok(Some(value)) = now
        && scheme(&value) == Some(DARK)
    {
        prefer(main, true);
    }
    while let Some(change) = changes.next().await {
        let body = change.body();
        let Ok((namespace, key, value)) = body.deserialize::<(&str, &str, Value<'_>)>() else {
            continue;
        };
        if let Some(scheme) = scheme(&value).filter(|_| (namespace, key) == (NAMESPACE, KEY)) {
            prefer(main, scheme == DARK);
        }
    }
    Ok(())
}

/// The old way of asking wraps it twice.
fn scheme(value: &Value<'_>) -> Option<u32> {
    match value {
        Value::U32(scheme) => Some(*scheme),
        Value::Value(inner) => scheme(inner),
        _ => None,
    }
}

fn prefer(main: &MainThread, dark: bool) {
    main.post(move || {
        if let Some(settings) = gtk::Settings::default() {
            settings.set_gtk_application_prefer_dark_theme(dark);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_a_number_however_it_is_wrapped() {
        assert_eq!(scheme(&Value::U32(1)), Some(DARK));
        assert_eq!(scheme(&Value::Value(Box::new(Value::U32(2)))), Some(2));
        assert_eq!(scheme(&Value::from("dark")), None);
    }
}
