//! The proxy as a box meets it: over its socket, with real TLS, against real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Policies are written as their fields are, and tests may be as large as they like.
#![allow(clippy::unnecessary_wraps, clippy::large_futures)]

mod attacks;
mod credentials;
mod decisions;
mod git;
mod streams;
mod support;
mod trailers;
