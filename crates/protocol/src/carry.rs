//! Files from this computer that a project's `agentbox.yaml` wants in its boxes.

use serde::{Deserialize, Serialize};

/// What would be copied, for a person to look at. Every string has been made visible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CarryPlan {
    pub files: Vec<CarryLine>,
    /// Binds a yes to this list, as it is on disk now.
    pub digest: String,
    /// What a person should know of the file.
    pub warnings: Vec<String>,
    /// The rule that says yes to this list, as its sentence.
    #[serde(default)]
    pub remembered: Option<String>,
    /// How the list differs from one a rule says yes to: “1 new, 2 as they were”.
    #[serde(default)]
    pub changes: Option<String>,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CarryLine {
    /// As it is written.
    pub src: String,
    /// Where it goes in the box.
    pub dest: String,
    pub kind: CarryKind,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Octal; none for a folder whose files keep their own.
    pub mode: Option<String>,
    /// Whose it is in the box, when not the box user's.
    pub user: Option<u32>,
    /// What else holds: `optional`, `rendered`.
    pub notes: Vec<String>,
    /// What a person should look at twice.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryKind {
    #[default]
    File,
    Folder,
    /// It need not be there, and is not.
    Missing,
}

/// What a person decided beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryChoice {
    /// Copy. With a digest only the list that was shown.
    #[serde(rename_all = "camelCase")]
    Copy {
        digest: Option<String>,
        by: CarryBy,
        /// And the same list again in every new box of the project. Only with a digest.
        #[serde(default)]
        remember: bool,
    },
    /// A box without these files.
    Skip,
    /// Ask, also when a rule would say yes.
    Ask,
}

/// How a yes was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryBy {
    /// At a terminal, after the list.
    Prompt,
    Flag,
    Env,
    /// As a question of the host's.
    Question,
    /// Once for this list, at one of those.
    Rule,
}

/// What was copied. Contents are never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Carried {
    /// Where it was on this computer, links followed.
    pub src: String,
    pub dest: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Of what was read here, before anything was replaced in it.
    pub hash: String,
    pub by: CarryBy,
    #[serde(default)]
    pub kind: CarryKind,
    /// Octal, when the list says one.
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub user: Option<u32>,
    /// Of everything else that was agreed to: rules, what is left out. None in a record from before
    /// there was one, which nothing is copied again by.
    #[serde(default)]
    pub terms: Option<String>,
    /// What the person was told to look at twice, and agreed to.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// First line of `agentbox-ctl carry`'s standard input. A tar stream follows, whose names begin with
/// the number of an entry: `0` is a file, `1/…` what is in a folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarryIn {
    pub entries: Vec<CarryInto>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarryInto {
    /// Absolute; a folder for a file to go into when it ends with `/`.
    pub dest: String,
    /// What a file is called there.
    pub name: String,
    pub folder: bool,
    /// The box user's when absent.
    pub user: Option<u32>,
}
