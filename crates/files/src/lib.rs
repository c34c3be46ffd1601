//! Files that came out of a box, and folders of the host by handle.
//!
//! A box is an enemy: what it sends is read by [`rules`], whole and staged ([`archive`]) where a
//! person is shown it first, or entry by entry ([`stream`]) where they asked for it themselves. What
//! is written goes through [`folder::Folder`]: relative to an open folder and through no link.
//! Nothing here asks anybody or knows a box.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod archive;
pub mod folder;
pub mod landing;
pub mod place;
pub mod rules;
pub mod stream;
