//! Conversations with agents: which there are on this computer, and how a session in a box begins.

use crate::Millis;
use crate::control::Target;
use crate::integrations::SecretText;
use crate::resync::Resynced;
use crate::sessions::Agent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The most conversations one answer tells about.
pub const MOST_SHOWN: usize = 20;
/// The most a conversation may weigh that goes to a box.
pub const MOST_BYTES: u64 = 512 * 1024 * 1024;
/// The most a plan may weigh.
pub const MOST_PLAN: usize = 1024 * 1024;

/// What agents call a conversation: a UUID in its usual spelling, so it is never an option, a path or a
/// pattern to whoever is given it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(type = "string"))]
pub struct ConversationId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a conversation's id looks like 0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11")]
pub struct BadConversationId;

impl ConversationId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConversationId {
    type Err = BadConversationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dashes = [8, 13, 18, 23];
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fits = |(at, byte): (usize, u8)| {
            if dashes.contains(&at) { byte == b'-' } else { is_hex(byte) }
        };
        if text.len() == 36 && text.bytes().enumerate().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(BadConversationId)
    }
}

impl TryFrom<String> for ConversationId {
    type Error = BadConversationId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ConversationId> for String {
    fn from(id: ConversationId) -> Self {
        id.0
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which conversations are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct FindConversations {
    /// None: of every agent whose conversations can be moved.
    pub agent: Option<Agent>,
    /// The folder they were held in, absolute. With an id they are found wherever they were held.
    pub folder: String,
    /// An id, or how it begins.
    pub id: Option<String>,
}

/// A conversation on this computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct ConversationView {
    pub agent: Agent,
    pub id: ConversationId,
    pub folder: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub changed_at: Millis,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// How it began, when the agent wrote that down where it is quickly found.
    pub title: Option<String>,
}

/// What an agent's session begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "with", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Begin {
    #[default]
    Nothing,
    /// A conversation of this computer, which is copied to the box first.
    Conversation {
        id: ConversationId,
        folder: String,
        /// A plan to go on with.
        plan: Option<String>,
    },
    /// A plan, which is copied to the box. Claude only.
    Plan { text: String },
    /// What the box says the agent was at when the box went down; nothing when it says nothing.
    Last,
}

/// Starts the agents again that ran when a box went down.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct RelaunchAgents {
    pub target: Target,
    /// Variables of the person's environment, for each agent its own.
    pub env: BTreeMap<Agent, BTreeMap<String, SecretText>>,
    pub cols: u16,
    pub rows: u16,
    /// The box takes over what is new on the host first.
    pub resync: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Relaunch {
    pub resynced: Resynced,
    pub agents: Vec<Relaunched>,
}

/// One that was started again, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Relaunched {
    pub agent: Agent,
    /// Of the session.
    pub name: String,
    /// Why not.
    pub failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_and_nothing_else() {
        let id: ConversationId = "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11".parse().unwrap();
        assert_eq!(id.as_str().len(), 36);
        for bad in [
            "",
            "--last",
            "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a1",
            "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11 ",
            "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a1\n",
            "0F3C1A52-7B1E-4C55-9D0E-2F6F1F0E8A11",
            "../../../../../../../../etc/passwd-x",
            "0f3c1a5207b1e04c5509d0e02f6f1f0e8a11",
        ] {
            assert!(bad.parse::<ConversationId>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<ConversationId>("\"--help\"").is_err());
    }
}
