//! What the window's page may have besides requests: streams of bytes, a box's files, and settings to
//! look at.
//!
//! A stream says what is wanted, never a command line: that is written on this side of the page.

use crate::{BoxId, Millis};
use serde::{Deserialize, Serialize};

/// Bytes of a box, as they come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Stream {
    /// What the box's first process said and says.
    Log { id: BoxId, tail: u32 },
    /// The log of a task or service.
    UnitLog { id: BoxId, unit: String, tail: u32 },
    /// A session's terminal: takes keys and sizes.
    Terminal { id: BoxId, session: String, cols: u16, rows: u16 },
    /// The screen, in the words of the Remote Framebuffer Protocol.
    Screen { id: BoxId },
    /// Does something with a task or service, and says what came of it.
    Unit { id: BoxId, unit: String, verb: UnitVerb },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum UnitVerb {
    Start,
    Stop,
    Restart,
    /// A task, whether or not it has run before.
    Run,
}

/// A folder of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxFolder {
    /// Folders first, each by name.
    pub entries: Vec<BoxFile>,
    /// There are more than are listed.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxFile {
    pub name: String,
    pub kind: FileKind,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub size: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub modified: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum FileKind {
    Folder,
    File,
    Link,
    Other,
}

/// Every setting as it is for a project, or for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SettingsView {
    /// The project; none when these are everybody's.
    pub project: Option<String>,
    pub settings: Vec<SettingView>,
    /// What is in the files and has no effect, and why.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SettingView {
    pub key: String,
    pub about: String,
    pub takes: SettingKind,
    /// As it is typed; none when there is none.
    pub default: Option<String>,
    /// What holds; none when nobody says anything and there is no default.
    pub value: Option<String>,
    pub from: SettingFrom,
    /// Only in the global file: it is how the host itself works.
    pub only_global: bool,
    /// Holds when AgentBox starts the next time.
    pub after_restart: bool,
    /// Few people ever need it.
    pub advanced: bool,
    /// Names programs, files or addresses of this computer: it is set at a terminal alone.
    pub at_terminal: bool,
}

/// Who decided a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum SettingFrom {
    Default,
    Global,
    Project,
    /// The repository's agentbox.yaml.
    Workspace,
}

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum SettingKind {
    Bool,
    Whole {
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        least: u64,
        /// None is no limit.
        #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
        most: Option<u64>,
    },
    /// `512m`, `4g`.
    Size,
    /// `2`, `1.5`.
    Cpus,
    Text,
    OneOf {
        words: Vec<String>,
    },
    Words,
    /// `22:00-07:00`.
    Hours,
    Address,
}
