//! One line of the audit trail.

use crate::{BoxId, Millis};
use serde::{Deserialize, Serialize};

/// What happened, chained to what happened before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AuditRecord {
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub seq: u64,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub at: Millis,
    pub box_id: Option<BoxId>,
    /// `refused`, `asked`, `answered`, `executed`, `box-created`, …
    pub kind: String,
    /// One sentence for people.
    pub summary: String,
    /// The facts, as JSON.
    #[cfg_attr(feature = "bindings", ts(type = "unknown"))]
    pub data: serde_json::Value,
    /// SHA-256 over the previous record's hash and this record, in hex.
    pub hash: String,
}

/// The result of walking the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AuditVerdict {
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub records: u64,
    /// The first record that does not fit, if any, and why.
    pub broken: Option<String>,
}
