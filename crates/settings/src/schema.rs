//! JSON Schemas (draft 2020-12) of the settings files and of `defaults:`, made from the table.

use crate::registry::{KEYS, Key, Workspace};
use serde_json::{Value, json};

/// Of `config.yaml`.
pub fn schema() -> Value {
    let mut schema = nested(|_| true);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("AgentBox settings");
    schema["properties"]["schema"] =
        json!({ "type": ["integer", "null"], "description": "The shape of this file; 1 so far." });
    schema
}

/// Of `defaults:` in an `agentbox.yaml`: what a repository may say at all.
pub fn defaults_schema() -> Value {
    nested(|key| key.workspace != Workspace::Never)
}

fn nested(wanted: impl Fn(&Key) -> bool) -> Value {
    let mut root = section();
    for key in KEYS.iter().filter(|key| wanted(key)) {
        let mut at = &mut root;
        let mut words = key.name.split('.').peekable();
        while let Some(word) = words.next() {
            let below = match word {
                "*" => &mut at["additionalProperties"],
                word => &mut at["properties"][word],
            };
            if words.peek().is_none() {
                *below = leaf(key);
            } else if !below.is_object() {
                *below = section();
            }
            at = below;
        }
    }
    root
}

fn section() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": false, "properties": {} })
}

fn leaf(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    schema["description"] = json!(key.about);
    if !key.default.is_empty() {
        // As the file would have it: a number is none in quotes.
        schema["default"] =
            serde_norway::from_str(key.default).unwrap_or_else(|_| json!(key.default));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(schema: &Value, text: &str) -> bool {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("settings.json", schema.clone()).unwrap();
        let index = compiler.compile("settings.json", &mut schemas).unwrap();
        let value: Value = serde_norway::from_str(text).unwrap();
        schemas.validate(&value, index).is_ok()
    }

    #[test]
    fn the_schema_and_the_reader_agree() {
        for text in [
            "",
            "box: {memory: 4g, cpus: 1.5, pidsLimit: 100, extraCas: [/etc], image: , docker: on}",
            "engine: {host: 'unix:///x', channel: exec, kind: orbstack}\nproxy: {port: 0}",
            "approvals: {quiet: '22:00-07:00', promptCommand: [dmenu, -i], timeoutSeconds: 1}",
            "integrations: {notion: {enabled: true, baseUrl: 'https://n.example/v1'}, linear: }",
            "claude: {sessionName: a}\nqueue: {maxConcurrent: 1}\ncheckpoint:\n",
        ] {
            assert!(crate::layers::parse(text).is_ok() && fits(&schema(), text), "{text}");
        }
        for text in [
            "- a",
            "box: {memroy: 4g}",
            "box: {memory: lots}",
            "box: {vnc: maybe}",
            "box: {cpMaxBytes: 0}",
            "proxy: {port: 70000}",
            "approvals: {quiet: always}",
            "approvals: {promptCommand: dmenu}",
            "integrations: {notion: {enable: true}}",
            "checkpoint: {maxLayers: 0}",
        ] {
            assert!(crate::layers::parse(text).is_err() && !fits(&schema(), text), "{text}");
        }
    }

    #[test]
    fn defaults_hold_no_policy() {
        let schema = defaults_schema();
        assert!(fits(&schema, "box: {vnc: false, memory: 2g}\nclaude: {login: false}"));
        for text in ["approvals: {mode: safe}", "box: {image: x}", "integrations: {}"] {
            assert!(!fits(&schema, text), "{text}");
        }
    }
}
