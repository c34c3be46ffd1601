//! What boxes told the host.

use crate::{BoxId, Millis};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One event of a box, as it is kept. All strings and the payload are the box's own words, made
/// visible before they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct BoxEvent {
    /// Counts up over all boxes; never given twice, restarts included.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub id: u64,
    pub box_id: BoxId,
    pub kind: String,
    /// By the host's clock.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub received_at: Millis,
    /// By the box's clock.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub ts: Option<Millis>,
    #[cfg_attr(feature = "bindings", ts(type = "unknown"))]
    pub payload: Option<JsonText>,
}

/// JSON that is kept as it was written: taken apart it can weigh a hundred times as much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl JsonText {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// None when it is no JSON.
    pub fn parse(text: String) -> Option<Self> {
        let raw = RawValue::from_string(text).ok()?;
        Some(raw.into())
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.get().into())
    }
}

impl Serialize for JsonText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// By way of a value, because an event within a tagged enum cannot be read otherwise. Only clients
/// of the host do this.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(value.to_string().into()))
    }
}
