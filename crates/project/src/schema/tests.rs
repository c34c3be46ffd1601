//! The corpus in `tests/fixtures`, through the reader and through the schema.
//!
//! `good` passes both. `shape` fails both. `meaning` fails the reader alone, because only the whole file
//! or its letters tell. `lenient` fails the schema alone: the reader only warns. The first line of a file
//! in the last three is what the reader says of it: a comment with the code and path of each problem.

use crate::problem::{Problem, Problems};
use crate::{Parsed, Project};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use yaml::{Kind, Node};

fn corpus(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut all: Vec<_> =
        files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

/// What an editor sees of a file.
fn json_of(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(scalar) if scalar.is_null() => Value::Null,
        Kind::Scalar(scalar) => match (scalar.bool(), scalar.int(), scalar.number()) {
            (Some(yes), ..) => json!(yes),
            (_, Some(whole), _) => json!(whole),
            (_, _, Some(number)) => json!(number),
            _ => json!(scalar.text),
        },
        Kind::List(all) => all.iter().map(json_of).collect(),
        Kind::Map(pairs) => {
            Value::Object(pairs.iter().map(|(key, n)| (key.text.clone(), json_of(n))).collect())
        }
    }
}

struct Schema(boon::Schemas, boon::SchemaIndex);

impl Schema {
    fn new() -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        let schema = super::schema(&json!({ "type": ["object", "null"] }));
        compiler.add_resource("agentbox.json", schema).unwrap();
        let index = compiler.compile("agentbox.json", &mut schemas).unwrap();
        Self(schemas, index)
    }

    /// Why a text does not fit, if so. What is no YAML has no shape to look at.
    fn refuses(&self, text: &str) -> Option<String> {
        let root = Problems::default().tree(text);
        let value = root.map_or(Value::Null, |root| json_of(&root));
        self.0.validate(&value, self.1).err().map(|why| why.to_string())
    }
}

/// As the first line of a file says it.
fn said(problems: &[Problem]) -> String {
    let each = problems.iter().map(|p| format!("{} {}", p.code, p.path).trim_end().to_owned());
    format!("# {}", each.collect::<Vec<_>>().join(", "))
}

#[track_caller]
fn assert_says(path: &Path, text: &str, problems: &[Problem]) {
    assert_eq!(text.lines().next(), Some(said(problems).as_str()), "{}", path.display());
}

#[test]
fn good_files_pass_both() {
    let schema = Schema::new();
    for (path, text) in corpus("good") {
        let Parsed { project, errors, warnings } = Project::parse(&text);
        assert!(project.is_some() && warnings.is_empty(), "{path:?}: {errors:?} {warnings:?}");
        assert_eq!(schema.refuses(&text), None, "{path:?}");
    }
}

#[test]
fn files_of_a_bad_shape_fail_both() {
    let schema = Schema::new();
    for (path, text) in corpus("shape") {
        assert_says(&path, &text, &Project::parse(&text).errors);
        assert!(schema.refuses(&text).is_some(), "{path:?} fits the schema");
    }
}

#[test]
fn what_only_the_reader_finds() {
    let schema = Schema::new();
    for (path, text) in corpus("meaning") {
        assert_says(&path, &text, &Project::parse(&text).errors);
        assert_eq!(schema.refuses(&text), None, "{path:?}");
    }
}

#[test]
fn what_the_reader_only_warns_of() {
    let schema = Schema::new();
    for (path, text) in corpus("lenient") {
        let parsed = Project::parse(&text);
        assert_eq!(parsed.errors, [], "{path:?}");
        assert_says(&path, &text, &parsed.warnings);
        assert!(schema.refuses(&text).is_some(), "{path:?} fits the schema");
    }
}

#[test]
fn every_key_says_what_it_is_for() {
    fn check(at: &str, schema: &Value) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if property.is_object() {
                let about = property["description"].as_str().unwrap_or_default();
                assert!(about.ends_with('.'), "{at}.{name}: {about:?}");
                check(&format!("{at}.{name}"), property);
            }
        }
    }
    let schema = super::schema(&json!({}));
    check("", &schema);
    for (name, def) in schema["$defs"].as_object().unwrap() {
        check(name, def);
    }
}

/// Defaults stand in the table for times, and in the model for whoever makes one without a file.
#[test]
fn defaults_are_the_same_everywhere() {
    let text = "services: {a: {command: x, backoff: {}, ready_when: {port: 1}}}";
    let service = Project::parse(text).project.unwrap().services.remove(0);
    assert_eq!(service.backoff, crate::Backoff::default());
    let ready = service.ready_when.unwrap();
    assert_eq!((ready.timeout.as_millis(), service.stop_grace.as_millis()), (60_000, 5000));
}
