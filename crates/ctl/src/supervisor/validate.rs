//! `agentbox-ctl validate [path]`: whether the project's file is without mistakes.

use super::client::INVALID;
use super::config;
use crate::places;
use project::{FILE_NAME, Problem, Project};
use protocol::exit;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;

pub fn run(args: &[OsString]) -> i32 {
    let (mut strict, mut json, mut path) = (false, false, None);
    for word in args {
        match word.to_str() {
            Some("--strict") => strict = true,
            Some("-j" | "--json") => json = true,
            _ if path.is_none() && !word.as_encoded_bytes().starts_with(b"-") => {
                path = Some(PathBuf::from(word));
            }
            _ => {
                crate::complain(
                    "agentbox-ctl: use 'agentbox-ctl validate [path] [--strict] [--json]'.",
                );
                return INVALID;
            }
        }
    }
    let path = path.unwrap_or_else(|| places::workspace().join(FILE_NAME));
    let text = match config::read(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return refuse(json, &format!("{} not found", path.display())),
        Err(why) => return refuse(json, &why),
    };
    let parsed = Project::parse_in_box(&text);
    let lines = |all: &[Problem]| all.iter().map(|p| p.line(FILE_NAME)).collect::<Vec<_>>();
    let errors = lines(&parsed.errors);
    let warnings = lines(&parsed.warnings);
    let good = errors.is_empty() && (warnings.is_empty() || !strict);
    let project = parsed.project.unwrap_or_default();
    let (services, tasks) = (project.services.len(), project.tasks.len());
    if json {
        let answer = json!({
            "ok": good, "services": services, "tasks": tasks, "errors": errors, "warnings": warnings,
        });
        crate::say(&format!("{answer}\n"));
    } else {
        for line in errors.iter().chain(&warnings) {
            crate::complain(line);
        }
        if good {
            crate::say(&format!("OK: {services} service(s), {tasks} task(s)\n"));
        }
    }
    if good { exit::OK } else { INVALID }
}

fn refuse(json: bool, why: &str) -> i32 {
    if json {
        crate::say(&format!("{}\n", json!({ "ok": false, "errors": [why], "warnings": [] })));
    } else {
        crate::complain(&format!("agentbox-ctl: {}", protocol::text::visible(why)));
    }
    INVALID
}
