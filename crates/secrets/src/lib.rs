//! Credentials: whether the OS keychain can be used, and text from which they are masked.
//!
//! A secret's value never enters a box, an argv, a log line, an error or the database.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod keychain;
mod redact;

pub use keychain::{KeychainState, keychain_state};
pub use redact::redact;
