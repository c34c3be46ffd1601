//! One file per command a box's agent may call: what a familiar command line becomes.
//!
//! A shim only plans, it does nothing: `agentbox-ctl` carries the plan out. Nothing here is a
//! boundary; the relay checks everything again. The point is a quick and clear answer in the place
//! where the command was typed.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod clickup;
pub mod gh;
pub mod git;
pub mod linear;
pub mod ntn;
pub mod open;
pub mod plan;
pub mod rest;
pub mod trello;
