//! What boxes may reach on the network, and the proxy that sees to it.
//!
//! A controlled box has no network at all. Its programs speak to a proxy on the box's loopback, which
//! carries the bytes to this one over the box's own socket. Here every request is taken apart, compared
//! with the policy, put together anew and sent on; a credential is added on the way, never in the box.
//!
//! Two halves that meet in few types: [`policy`] is pure (text of policies in, decisions out, no I/O), and
//! the proxy does and decides nothing. What a person must be asked, which credentials there are and where
//! lines of traffic go come in through [`ports`].
//!
//! The surprising thing: what is forwarded is the canonical form that was decided on, never what the box
//! sent. Where the two could be read differently by a server, the request is refused.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// Policies of tests are written as their fields are.
#![cfg_attr(test, allow(clippy::unnecessary_wraps, clippy::items_after_statements))]

pub mod authority;
pub mod check;
pub mod dial;
pub mod explain;
pub mod gate;
pub mod host_name;
mod inject;
mod line;
pub mod new_rule;
pub mod policy;
pub mod ports;
pub mod proxy;
mod redact;
pub mod request;
pub mod suggest;
pub mod widen;
mod written;

/// What the fuzz targets throw noise at and nobody else has to reach.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::proxy::fuzzing::{Passed, pass};
}

pub use line::new_line_id;
