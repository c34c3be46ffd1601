//! What is wrong with a file, and where.

use crate::{Place, Project};
use protocol::text::{shortened, visible};
use serde::Serialize;

pub const FILE_NAME: &str = "agentbox.yaml";
/// YAML that cannot be read.
const SYNTAX: &str = "Y001";
/// Enough to work on; a hostile file could have a million.
const MOST: usize = 100;
/// More regular expressions than anybody writes.
const MOST_PATTERNS: usize = 200;
const LONGEST: usize = 400;

/// One mistake, or something to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(flatten)]
    pub place: Place,
    /// Such as `services.web.needs[1]`; empty is the whole file.
    pub path: String,
    /// Such as `Y011`; see the guide.
    pub code: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// One line, such as `agentbox.yaml:3:5: services.web: needs command or image (Y011)`.
    pub fn line(&self, file: &str) -> String {
        let Self { place, path, code, message, hint } = self;
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{file}:{}:{}: {path}{message} ({code}){hint}", place.line, place.column)
    }
}

/// What came of reading a file. There is a project exactly when there is no error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    pub project: Option<Project>,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

/// Collects problems while reading.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
    patterns: usize,
}

impl Problems {
    /// Whether one more regular expression may be made: each takes time and memory.
    pub fn room_for_pattern(&mut self) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > MOST_PATTERNS {
            return Err(format!("one of more than {MOST_PATTERNS} in this file"));
        }
        Ok(())
    }

    /// The tree of a text; what of it cannot be read is noted.
    pub fn tree(&mut self, text: &str) -> Option<yaml::Node> {
        let yaml::Parsed { root, faults } = yaml::parse(text, yaml::Aliases::Unfolded);
        for fault in faults {
            self.error(SYNTAX, fault.place, "", &fault.message);
        }
        root
    }

    pub fn error(&mut self, code: &'static str, place: Place, path: &str, message: &str) {
        note(&mut self.errors, code, place, path, message, None);
    }

    pub fn error_hint(
        &mut self,
        code: &'static str,
        place: Place,
        path: &str,
        message: &str,
        hint: &str,
    ) {
        note(&mut self.errors, code, place, path, message, Some(hint));
    }

    pub fn warning(
        &mut self,
        code: &'static str,
        place: Place,
        path: &str,
        message: &str,
        hint: Option<&str>,
    ) {
        note(&mut self.warnings, code, place, path, message, hint);
    }

    /// In the order of the file.
    pub fn sorted(mut self) -> (Vec<Problem>, Vec<Problem>) {
        self.errors.sort_by_key(|problem| problem.place);
        self.warnings.sort_by_key(|problem| problem.place);
        (self.errors, self.warnings)
    }
}

fn note(
    all: &mut Vec<Problem>,
    code: &'static str,
    place: Place,
    path: &str,
    message: &str,
    hint: Option<&str>,
) {
    if all.len() < MOST {
        let (path, message) = (visible(path), shortened(message, LONGEST));
        all.push(Problem { place, path, code, message, hint: hint.map(visible) });
    }
}
