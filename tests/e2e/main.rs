//! End-to-end tests, named after the promises they keep. Real engine, real desktop, real git.
//!
//! `scripts/test` runs them as an unprivileged user; see there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod boxes;
mod carriers;
mod crash;
mod desktop;
mod desktop_parts;
mod faults;
mod hostile;
mod people;
mod remember;
mod services;
mod transfers;
mod two_boxes;
mod world;
