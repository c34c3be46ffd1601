//! Credentials: a store of one item per credential, and text from which they are masked.
//!
//! A secret's value never enters a box, an argv, a log line, an error or the database. Nothing here
//! is opened before a credential is asked for, no call takes longer than [`LIMIT`], and none makes
//! the desktop ask for a password: a locked keychain is an error, not a wait.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod error;
mod folder;
mod keychain;
mod lately;
mod redact;
mod scope;
mod value;
mod vault;

pub use error::Error;
pub use keychain::{KeychainState, keychain_state};
pub use lately::{FRESH, PAUSE};
pub use redact::{redact, redact_values};
pub use scope::{BadProjectKey, ProjectKey, Scope};
pub use value::Value;
pub use vault::{Backend, LIMIT, Vault};
