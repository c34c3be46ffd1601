//! The OS keychain, and whether it can be used.
//!
//! A locked keychain answers only after a person typed a password, and a hung one never. So nothing
//! here ever asks for unlocking, and every question is bounded.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::Keychain;
#[cfg(target_os = "macos")]
pub(crate) use macos::Keychain;

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
    use crate::Error;
    let asked = tokio::time::timeout(crate::LIMIT, linux::Keychain::usable());
    match asked.await {
        Ok(Ok(())) => KeychainState::Ready,
        Ok(Err(Error::Locked)) => KeychainState::Locked,
        Ok(Err(Error::Missing(why) | Error::Failed(why))) => KeychainState::Missing(why),
        Ok(Err(e)) => KeychainState::Missing(e.to_string()),
        Err(_) => KeychainState::Missing("the Secret Service did not answer within 3 s".into()),
    }
}

/// macOS always has the login keychain; it is unlocked with the session.
#[cfg(target_os = "macos")]
pub async fn keychain_state() -> KeychainState {
    KeychainState::Ready
}
