//! What a box may ask of each service, as pure grammar.
//!
//! A request arrives as strings a box chose. Here they become typed values, or an error that names
//! the offending word; what the host later runs is serialised from the value, never passed through.
//! No I/O, no policy, nothing that asks a person. The same tables serve the relay, which enforces
//! them, and the shims, which only answer earlier.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod checkpoint;
pub mod clickup;
pub mod clone;
pub mod connector;
pub mod files;
pub mod gh;
pub mod git;
pub mod grammar;
pub mod graphql;
pub mod linear;
pub mod link;
pub mod names;
pub mod notion;
pub mod refusal;
pub mod registry;
pub mod rest;
pub mod trello;
pub mod worktree;

pub use refusal::Refusal;
