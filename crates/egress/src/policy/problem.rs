//! What is wrong with a policy's layers, and where.

use super::Layer;
use protocol::egress::PolicyProblem;
use protocol::text::{shortened, visible};
use std::fmt;
use yaml::Place;

/// Enough to work on; a hostile file could have a million.
const MOST: usize = 100;
const LONGEST: usize = 800;

/// Why there is no policy. Every mistake of every layer, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<PolicyProblem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A file of a layer while it is read: where mistakes in it are noted.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    pub layer: Layer,
    pub file: &'a str,
    pub errors: Vec<PolicyProblem>,
    pub warnings: Vec<PolicyProblem>,
}

impl<'a> Notes<'a> {
    pub fn new(layer: Layer, file: &'a str) -> Self {
        Self { layer, file, errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn error(&mut self, place: Place, at: &At, message: impl AsRef<str>) {
        let problem = self.problem("", place, at, message.as_ref());
        if self.errors.len() < MOST {
            self.errors.push(problem);
        }
    }

    pub fn warning(&mut self, code: &str, place: Place, at: &At, message: impl AsRef<str>) {
        let problem = self.problem(code, place, at, message.as_ref());
        if self.warnings.len() < MOST {
            self.warnings.push(problem);
        }
    }

    fn problem(&self, code: &str, place: Place, at: &At, message: &str) -> PolicyProblem {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        PolicyProblem {
            code: code.to_owned(),
            layer: self.layer.word().to_owned(),
            file: visible(self.file),
            path: at.0.clone(),
            line: number(place.line),
            column: number(place.column),
            message: shortened(message, LONGEST),
        }
    }
}

/// A place in a file by its path, such as `domains[2].rules[0]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct At(String);

impl At {
    pub fn key(&self, key: &str) -> Self {
        let key = shortened(key, 60);
        Self(if self.0.is_empty() { key } else { format!("{}.{key}", self.0) })
    }

    pub fn item(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0))
    }
}
