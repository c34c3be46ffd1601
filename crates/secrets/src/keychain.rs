//! Can credentials be kept in the OS keychain?
//!
//! A locked keychain answers only after a person typed a password, and a hung one never, so the
//! question is bounded and asks for a property, never for a value.

/// What the keychain said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeychainState {
    Ready,
    /// It is there and wants its password.
    Locked,
    /// It is not there, or has no default collection; the text says which.
    Missing(String),
}

#[cfg(target_os = "linux")]
pub async fn keychain_state() -> KeychainState {
    let limit = std::time::Duration::from_secs(3);
    match tokio::time::timeout(limit, linux::state()).await {
        Ok(Ok(state)) => state,
        Ok(Err(e)) => KeychainState::Missing(linux::reason(&e)),
        Err(_) => KeychainState::Missing("the Secret Service did not answer within 3 s".into()),
    }
}

/// macOS always has the login keychain; it is unlocked with the session.
#[cfg(target_os = "macos")]
pub async fn keychain_state() -> KeychainState {
    KeychainState::Ready
}

#[cfg(target_os = "linux")]
mod linux {
    use super::KeychainState;
    use zbus::zvariant::OwnedObjectPath;

    const SERVICE: &str = "org.freedesktop.secrets";
    const PATH: &str = "/org/freedesktop/secrets";

    pub async fn state() -> zbus::Result<KeychainState> {
        let bus = zbus::Connection::session().await?;
        let service =
            zbus::Proxy::new(&bus, SERVICE, PATH, "org.freedesktop.Secret.Service").await?;
        let collection: OwnedObjectPath = service.call("ReadAlias", &("default",)).await?;
        if collection.as_str() == "/" {
            return Ok(KeychainState::Missing("it has no default keyring".into()));
        }
        let interface = "org.freedesktop.Secret.Collection";
        let collection = zbus::Proxy::new(&bus, SERVICE, collection, interface).await?;
        let locked: bool = collection.get_property("Locked").await?;
        Ok(if locked { KeychainState::Locked } else { KeychainState::Ready })
    }

    pub fn reason(error: &zbus::Error) -> String {
        match error {
            zbus::Error::MethodError(name, _, _) if name.ends_with(".ServiceUnknown") => {
                "no Secret Service (GNOME Keyring, KWallet) runs in this session".into()
            }
            zbus::Error::MethodError(..) | zbus::Error::FDO(_) => error.to_string(),
            _ => "there is no D-Bus session to ask".into(),
        }
    }
}
