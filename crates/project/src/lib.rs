//! `agentbox.yaml`: what a project says about its boxes.
//!
//! The same text is read by the host before anything is made and by the supervisor in a box, so this
//! is pure: text in, a [`Project`] or problems with their places out. A box can write the file, so it
//! is bounded in size, depth and what its aliases unfold to, and what of it is shown is made visible.
//! Everything wrong is found at once; keys nobody knows are warnings, because the reader in an older
//! image must not fail over a newer file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod carry;
pub mod draft;
mod model;
mod name;
mod pattern;
mod problem;
mod read;
pub mod render;
pub mod schema;
mod shape;

pub use model::{
    Backoff, CarryItem, Command, Env, Expose, Image, OnTimeout, Place, PortMapping, Probe, Project,
    ReadyWhen, Replaced, Restart, Rule, RuleSet, Run, RunOnce, Service, Setting, Task,
};
pub use name::{BadName, UnitName};
pub use pattern::{BadPattern, Pattern};
pub use problem::{FILE_NAME, Parsed, Problem};
pub use url::Url;
