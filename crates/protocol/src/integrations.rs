//! Services a box may use through the host, and the credentials for them, as people see them.

use crate::control::Level;
use crate::{BoxId, Millis, SecretId};
use serde::{Deserialize, Serialize};

/// One service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct IntegrationView {
    /// `notion`.
    pub service: String,
    /// “Notion”.
    pub title: String,
    /// What a person gets by enabling it.
    pub about: String,
    pub enabled: bool,
    /// Which settings decided that: `default`, `global` or `project`.
    pub decided_by: String,
    /// The host program it needs, and where that was found. None for a service that is called
    /// directly.
    pub program: Option<ProgramView>,
    /// Credentials it can use.
    pub credentials: Vec<SecretId>,
    pub ops: Vec<OpView>,
    pub install_hint: Option<String>,
    pub login_hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct ProgramView {
    pub name: String,
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct OpView {
    /// `page.create`.
    pub name: String,
    pub write: bool,
    pub summary: String,
}

/// What came of trying a service or a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Tried {
    pub level: Level,
    pub detail: String,
    pub hint: Option<String>,
}

/// A credential, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SecretView {
    pub id: SecretId,
    pub stored: bool,
    /// “GitHub”, …: what uses it; empty for one nothing here uses.
    pub used_by: Vec<String>,
    /// “A personal access token with the repo scope”.
    pub about: String,
    /// `keychain` or `file`.
    pub kept_in: String,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub set_at: Option<Millis>,
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub last_used: Option<Millis>,
    /// Whose it is.
    #[serde(default)]
    pub scope: SecretScope,
    /// The only hosts it may be put into requests to; empty is any that a policy names.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Whose a credential is. Looked for from the narrowest to the widest; the first that is there counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum SecretScope {
    #[default]
    Everybody,
    /// Every box of the project at this folder.
    Project { root: String },
    /// One box.
    Box { id: BoxId },
}

/// A value on its way to the keychain. Never printed, never sent back.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(type = "string"))]
pub struct SecretText(pub String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// Which settings file a change goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Layer {
    Global,
    /// The project of the folder the person is in; the file is the host's own, not the project's.
    Project,
}
