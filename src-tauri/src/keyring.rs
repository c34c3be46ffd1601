//! Says in the status when credentials could not be kept. Asks for a state, never for a value.

use host::Api;
use protocol::control::Notice;
use secrets::KeychainState;
use std::time::Duration;

const PART: &str = "keyring";
/// A keyring that is missing or locked at login often comes a moment later.
const AGAIN: Duration = Duration::from_secs(60);

/// Until the keyring can be used.
pub async fn watch(api: Api) {
    loop {
        let Some(notice) = notice(&secrets::keychain_state().await) else {
            return api.clear_notice(PART);
        };
        api.set_notice(notice);
        tokio::time::sleep(AGAIN).await;
    }
}

fn notice(state: &KeychainState) -> Option<Notice> {
    let (message, hint) = match state {
        KeychainState::Ready => return None,
        KeychainState::Locked => (
            "The keyring is locked: credentials cannot be stored until it is unlocked.".into(),
            "Unlock the login keyring; agentbox secrets shows what is kept in it.",
        ),
        KeychainState::Missing(why) => (
            format!("No keyring can be used, so credentials cannot be stored: {why}."),
            "Start a Secret Service such as GNOME Keyring or KWallet, or set secrets.backend: file in config.yaml.",
        ),
    };
    Some(Notice { part: PART.into(), message, hint: Some(hint.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_usable_keyring_is_silent() {
        assert_eq!(notice(&KeychainState::Ready), None);
        assert!(notice(&KeychainState::Locked).unwrap().message.contains("locked"));
        let missing = notice(&KeychainState::Missing("nobody answers".into())).unwrap();
        assert!(missing.message.ends_with("stored: nobody answers."), "{}", missing.message);
    }
}
