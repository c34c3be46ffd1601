//! The proxy as a box meets it: over its socket, with real TLS, against real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decisions;
mod support;
