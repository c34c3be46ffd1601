//! Where a box is reached by people: its web app, its screen, its files in an editor.

use crate::BoxName;
use serde::{Deserialize, Serialize};

/// What of a box is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum LinkTo {
    /// What the box serves on port 80.
    Web,
    Screen,
    /// What it serves on another port.
    Port {
        port: u16,
    },
}

/// What an engine is taken for: only some give boxes names of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum EngineKind {
    /// What it says of itself.
    #[default]
    Auto,
    #[serde(rename = "orbstack")]
    OrbStack,
    DockerDesktop,
    Other,
}

/// An address that works now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Link {
    /// The whole address. A screen's ends with its password.
    pub url: String,
    /// The same for people to see, without a password.
    pub shown: String,
    /// What a program that opens addresses may be given as an argument, which others on this
    /// computer can read. None where only the whole address would do.
    pub open: Option<String>,
}

/// A box's workspace in an editor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EditorLink {
    /// What VS Code and Cursor take as `--folder-uri`.
    pub uri: String,
    pub container: String,
}

/// The part of an ssh configuration that knows the boxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SshConfig {
    /// The file, kept up to date by the host.
    pub path: String,
    pub text: String,
}

/// What became of the editor's list of terminals in a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum TasksFile {
    /// It is there, one terminal for each service.
    Written,
    /// Somebody else's is there, and was left alone.
    Kept,
    /// The project has no services.
    NoServices,
}

/// How `ssh` and its like reach a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SshHost {
    /// The configuration that knows it.
    pub config: String,
    /// The name it has there.
    pub host: String,
    /// The box.
    pub name: BoxName,
}
