//! `--json`: one object on one stream, with the version of its shape.

use crate::error::CommandError;
use crate::ui::Ui;
use protocol::text::visible_json;
use serde::Serialize;
use serde_json::{Map, Value};

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
pub const SCHEMA: u32 = 1;

/// `{"schema":1,"<key>":<value>}`.
pub fn envelope(key: &str, value: &impl Serialize) -> serde_json::Result<String> {
    let mut object = Map::new();
    object.insert("schema".into(), SCHEMA.into());
    object.insert(key.into(), serde_json::to_value(value)?);
    let mut text = visible_json(&serde_json::to_string_pretty(&Value::Object(object))?);
    text.push('\n');
    Ok(text)
}

/// One value on one line, for streams.
pub fn line(value: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string(value).map_err(|e| CommandError::failed(e.to_string()))?;
    Ok(visible_json(&text) + "\n")
}

pub fn print(ui: &Ui, key: &str, value: &impl Serialize) -> Result<(), CommandError> {
    let text = envelope(key, value).map_err(|e| CommandError::failed(e.to_string()))?;
    ui.out(&text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_envelope_names_its_schema() {
        let text = super::envelope("boxes", &[1, 2]).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::json!({"schema": 1, "boxes": [1, 2]}));
    }
}
