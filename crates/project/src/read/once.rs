//! When a task need not run.

use super::fields::{Fields, list, string};
use super::units::{is_passable, strings};
use crate::RunOnce;
use crate::problem::Problems;
use yaml::Kind;

pub(super) fn run_once(fields: &Fields<'_>, problems: &mut Problems) -> Option<RunOnce> {
    let (node, at) = fields.get("run_once")?;
    let bad = |problems: &mut Problems| {
        let message = "must be true, false, {check: command} or {inputs: [file, …]}";
        problems.error("Y040", node.place, at.path(), message);
        None
    };
    let pairs = match &node.kind {
        Kind::Scalar(scalar) if scalar.is_null() => return None,
        Kind::Scalar(scalar) => match scalar.bool() {
            Some(once) => return once.then_some(RunOnce::Marker),
            None => return bad(problems),
        },
        Kind::Map(pairs) if pairs.len() == 1 => pairs,
        _ => return bad(problems),
    };
    let (key, value) = pairs.first()?;
    let at = at.key(&key.text);
    match key.text.as_str() {
        "check" => match string(value) {
            Some(text) if !text.trim().is_empty() && is_passable(text) => {
                if text.contains("{{AGENTBOX_") {
                    let hint = "use $AGENTBOX_BOX_NAME and the like";
                    let message = "placeholders are not expanded in a check";
                    problems.warning("W003", value.place, at.path(), message, Some(hint));
                }
                Some(RunOnce::Check(text.to_owned()))
            }
            _ => {
                problems.error("Y040", value.place, at.path(), "must be a command");
                None
            }
        },
        "inputs" => match list(value) {
            Some(all) if !all.is_empty() => {
                let before = problems.errors.len();
                let inputs = strings(all, &at, "Y040", problems);
                (problems.errors.len() == before).then_some(RunOnce::Inputs(inputs))
            }
            _ => {
                problems.error("Y040", value.place, at.path(), "must be a list of files");
                None
            }
        },
        _ => bad(problems),
    }
}
