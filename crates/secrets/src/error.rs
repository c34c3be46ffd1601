//! What can go wrong with a stored credential. No variant can hold its value.

/// Why a credential could not be read, kept or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the keychain is locked")]
    Locked,
    /// There is no keychain to ask; the text says what is missing.
    #[error("the keychain cannot be used: {0}")]
    Missing(String),
    /// It was asked and did not answer in time, now or a moment ago.
    #[error("{0}")]
    Silent(&'static str),
    #[error("{0}")]
    Failed(String),
    #[error("a credential can have 64 KiB at most")]
    TooLarge,
    #[error("the credential is empty")]
    Empty,
    /// It is there, and is nothing a program or a header takes.
    #[error("{0}")]
    Malformed(&'static str),
}

impl Error {
    /// What to do next, where the error itself does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked => Some("unlock the login keyring in your desktop, then try again"),
            Self::Missing(_) => Some(
                "start a keyring such as GNOME Keyring or KWallet, or set secrets.backend: file in config.yaml",
            ),
            Self::Empty => Some("give the value again"),
            Self::Silent(_) => {
                Some("look whether your desktop waits for the keyring's password, then try again")
            }
            Self::Failed(_) | Self::TooLarge | Self::Malformed(_) => None,
        }
    }
}
