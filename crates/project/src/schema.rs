//! The JSON Schema (draft 2020-12) of `agentbox.yaml`, for editors.
//!
//! Made from the same table the reader goes by. It is stricter in one thing: a key nobody knows is a
//! mistake, because whoever writes a file wants to hear of it. What only the whole file can tell, such
//! as names that are needed but not there, only the reader finds.

use crate::name::{LONGEST, RESERVED};
use crate::shape::{self, CARRY, IMAGE, Key, PROBES, READY_WHEN, RULE, Shape, TASK, Table, Unit};
use serde_json::{Map, Value, json};

/// The schema, with this one for what stands under `defaults:`.
pub fn schema(defaults: &Value) -> Value {
    let mut schema = mapping(shape::TOP, defaults);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("agentbox.yaml");
    schema["description"] = json!("What a project says about its boxes.");
    // An empty file is in order.
    schema["type"] = json!(["object", "null"]);
    schema["$defs"] = json!({
        "name": { "type": "string", "pattern": name_pattern() },
        "unit": { "type": "string", "pattern": name_pattern(), "not": { "enum": RESERVED } },
        "service": service(defaults),
        "task": required(mapping(TASK, defaults), &["command"]),
        "rule": required(mapping(RULE, defaults), &["from", "to"]),
        "carry": required(mapping(CARRY, defaults), &["src"]),
    });
    schema["$defs"]["rule"]["properties"]["from"]["minLength"] = json!(1);
    schema
}

fn name_pattern() -> String {
    format!("^[A-Za-z0-9_-]{{1,{LONGEST}}}$")
}

fn service(defaults: &Value) -> Value {
    let mut schema = mapping(shape::SERVICE, defaults);
    schema["oneOf"] = json!([
        { "required": ["command"] },
        { "required": ["image"], "properties": { "env": false } },
    ]);
    schema
}

fn ready_when(defaults: &Value) -> Value {
    let mut schema = mapping(READY_WHEN, defaults);
    let kinds = PROBES.iter().map(|(kind, foreign)| {
        let none: Map<String, Value> =
            foreign.iter().map(|key| ((*key).to_owned(), json!(false))).collect();
        json!({ "required": [kind], "properties": none })
    });
    schema["oneOf"] = kinds.collect();
    schema
}

fn mapping(table: Table, defaults: &Value) -> Value {
    let properties: Map<String, Value> =
        table.iter().map(|key| (key.name.to_owned(), property(key, defaults))).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn required(mut schema: Value, keys: &[&str]) -> Value {
    schema["required"] = json!(keys);
    schema
}

fn property(key: &Key, defaults: &Value) -> Value {
    let mut schema = of(key.shape, defaults);
    schema["description"] = json!(key.about);
    schema
}

fn of(shape: Shape, defaults: &Value) -> Value {
    let strings = || json!({ "type": "array", "items": { "type": "string" } });
    match shape {
        Shape::Bool { otherwise } => json!({ "type": "boolean", "default": otherwise }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Int { least, most, otherwise } => int(least, most, otherwise),
        Shape::Factor => json!({ "type": "number", "minimum": 1 }),
        Shape::OneOf(words) => json!({ "enum": words }),
        Shape::Mapping(table) => {
            let schema = mapping(table, defaults);
            if shape::find(table, "port").is_some() { required(schema, &["port"]) } else { schema }
        }
        Shape::Free(table) => {
            let mut schema = mapping(table, defaults);
            schema["additionalProperties"] = json!(true);
            schema["type"] = json!(["object", "null"]);
            schema
        }
        Shape::Units(unit) => {
            let what = if unit == Unit::Service { "service" } else { "task" };
            json!({
                "type": ["object", "null"],
                "propertyNames": { "$ref": "#/$defs/unit" },
                "additionalProperties": { "$ref": format!("#/$defs/{what}") },
            })
        }
        Shape::Sets => json!({
            "type": ["object", "null"],
            "propertyNames": { "$ref": "#/$defs/name" },
            "additionalProperties": of(Shape::Rules, defaults),
        }),
        Shape::Rules => json!({ "type": "array", "items": { "$ref": "#/$defs/rule" } }),
        Shape::CarryList => json!({
            "type": ["array", "null"],
            "items": { "anyOf": [
                { "type": "string", "pattern": "^(/|~/)[^=]*$|^(/|~/|\\./)[^=]*=(/|~/)" },
                { "$ref": "#/$defs/carry" },
            ] },
        }),
        Shape::Command => json!({ "anyOf": [
            { "type": "string", "pattern": "\\S" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ] }),
        Shape::Env => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        // A name may look like a number.
        Shape::Needs => json!({ "type": "array", "items": {
            "anyOf": [{ "$ref": "#/$defs/unit" }, { "type": ["integer", "boolean"] }],
        } }),
        Shape::Image => json!({ "anyOf": [
            { "type": "string", "pattern": IMAGE_NAME },
            required(mapping(IMAGE, defaults), &["name"]),
        ] }),
        Shape::Ports => json!({ "type": "array", "items": { "anyOf": [
            { "type": "string", "pattern": "^[0-9]+(:[0-9]+)?$" },
            int(1, 65535, None),
        ] } }),
        Shape::Args => json!({ "anyOf": [{ "type": "string" }, strings()] }),
        Shape::ContainerName => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$" })
        }
        Shape::ReadyWhen => ready_when(defaults),
        Shape::Pattern => json!({ "type": ["string", "number", "boolean"], "minLength": 1 }),
        Shape::HttpAddress => json!({ "type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?:" }),
        Shape::RunOnce => run_once(),
        Shape::Source => json!({ "type": "string", "pattern": "^(/|~/|\\./)" }),
        Shape::Destination => json!({ "type": "string", "pattern": "^(/|~/)" }),
        // The letters of an unquoted number are not seen here: the reader looks at them.
        Shape::Mode => json!({ "anyOf": [
            { "type": "string", "pattern": "^(0o)?[0-7]{1,5}$" },
            int(0, 7777, None),
        ] }),
        Shape::User => json!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9]{1,5}$" },
            int(0, 65535, None),
        ] }),
        Shape::Words => {
            json!({ "type": "array", "items": { "type": "string", "pattern": "\\S" } })
        }
        Shape::SetNames => json!({ "type": "array", "items": { "$ref": "#/$defs/name" } }),
        Shape::Settings => defaults.clone(),
    }
}

/// Nothing that could be taken for an option.
const IMAGE_NAME: &str = "^\\s*[!-,.-~][!-~]*\\s*$";

fn int(least: i64, most: i64, otherwise: Option<i64>) -> Value {
    let mut schema = json!({ "type": "integer", "minimum": least });
    if most < shape::HIGHEST {
        schema["maximum"] = json!(most);
    }
    if let Some(otherwise) = otherwise {
        schema["default"] = json!(otherwise);
    }
    schema
}

fn run_once() -> Value {
    let one = |key: &str, value: Value| {
        let properties: Map<String, Value> = [(key.to_owned(), value)].into_iter().collect();
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": [key],
            "properties": properties,
        })
    };
    json!({ "anyOf": [
        { "type": ["boolean", "null"] },
        one("check", json!({
            "type": "string",
            "pattern": "\\S",
            "description": "When this command ends well the task need not run.",
        })),
        one("inputs", json!({
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
            "description": "It runs again when one of these files changes; globs from its folder.",
        })),
    ] })
}

#[cfg(test)]
mod tests;
