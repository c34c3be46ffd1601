//! What a person can set, typed: built-in defaults below `$AGENTBOX_HOME/config.yaml`, below the
//! host's own file for a project.
//!
//! A file in a work tree can only tighten ([`workspace`]): a box can write it ([`ignored_policy_keys`]
//! finds policy somebody put there in vain). A key nobody knows is kept and told about, because another
//! version may know it; but one that looks like a known one, or stands among what decides about boxes, is
//! an error that names it, so that a misspelt safety setting is noticed. A key without a value counts as
//! not there.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod edit;
mod kind;
mod layers;
mod model;
pub mod registry;
mod repository;
mod schema;
pub mod workspace;

use std::path::PathBuf;

pub use kind::Kind;
pub use layers::{Layer, Layers, Source};
pub use model::{
    AgentSettings, ApprovalMode, Approvals, Attach, Boxes, Channel, Checkpoint, Code, Desktop,
    Engine, Gh, Ide, InnerDocker, Integration, OpenIn, Proxy, Queue, QuietHours, Relay, Secrets,
    SecretsBackend, Settings, Shell, Stage, Update, WhenNobody, WorkspaceFile,
};
pub use repository::ignored_policy_keys;
pub use schema::{defaults_schema, schema};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The file is written in a way that cannot be changed without a risk for the rest of it.
    #[error("cannot change {key} without touching other lines; edit it by hand: {}", path.display())]
    ByHand { path: PathBuf, key: String },
    /// Somebody else wrote to it since it was read.
    #[error("{} was changed meanwhile", .0.display())]
    Changed(PathBuf),
    /// Another process keeps the file for itself.
    #[error("another program is changing {} and does not get done", .0.display())]
    Busy(PathBuf),
}
