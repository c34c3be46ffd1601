//! Which box a person means. Pure.

use protocol::control::{ControlError, ErrorCode, Target};
use protocol::{BoxId, BoxName};
use std::path::{Path, PathBuf};

/// As much of a box as choosing needs.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: BoxId,
    pub name: BoxName,
    pub index: u32,
    pub project_root: PathBuf,
    pub workspace: PathBuf,
}

/// The shortest id prefix that is looked up.
const MIN_PREFIX: usize = 3;

/// An index (in the folder's project), an exact name, an id, or a unique id prefix; without any,
/// the only box of the folder's project.
pub fn resolve(boxes: &[Candidate], target: &Target) -> Result<BoxId, ControlError> {
    let cwd = target.cwd.as_deref().map(Path::new);
    let here: Vec<&Candidate> = boxes.iter().filter(|b| cwd.is_some_and(|c| b.holds(c))).collect();
    let Some(query) = target.query.as_deref() else {
        return only(&here, "this folder's project");
    };
    if query.bytes().all(|b| b.is_ascii_digit()) && !query.starts_with('0') && !query.is_empty() {
        let found: Vec<_> = here.iter().filter(|b| b.index.to_string() == query).copied().collect();
        return if found.is_empty() {
            Err(no_match(boxes, query))
        } else {
            only(&found, "that index")
        };
    }
    if let Some(exact) = boxes.iter().find(|b| b.name.as_str() == query || b.id.as_str() == query) {
        return Ok(exact.id.clone());
    }
    let prefixed: Vec<&Candidate> = boxes
        .iter()
        .filter(|b| query.len() >= MIN_PREFIX && b.id.as_str().starts_with(query))
        .collect();
    if prefixed.is_empty() {
        Err(no_match(boxes, query))
    } else {
        only(&prefixed, "that id prefix")
    }
}

impl Candidate {
    fn holds(&self, cwd: &Path) -> bool {
        cwd.starts_with(&self.project_root) || cwd.starts_with(&self.workspace)
    }
}

fn only(found: &[&Candidate], of: &str) -> Result<BoxId, ControlError> {
    match found {
        [one] => Ok(one.id.clone()),
        [] => Err(ControlError::new(ErrorCode::Usage, format!("{of} has no box"))
            .hint("agentbox create makes one, agentbox list --global shows all.")),
        many => {
            let text = format!("{of} has {} boxes; say which one", many.len());
            let lines = many.iter().map(|b| format!("  {}) {}   (id {})", b.index, b.name, b.id));
            Err(lines.fold(ControlError::new(ErrorCode::Usage, text), ControlError::hint))
        }
    }
}

fn no_match(boxes: &[Candidate], query: &str) -> ControlError {
    let text = format!("no box matches \"{}\"", protocol::text::visible(query));
    let error = ControlError::new(ErrorCode::Usage, text);
    let near = boxes.iter().map(|b| (distance(b.name.as_str(), query), b)).min_by_key(|(d, _)| *d);
    match near {
        Some((d, b)) if d <= 3 => error.hint(format!("did you mean {}?", b.name)),
        _ => error.hint("agentbox list --global shows all boxes."),
    }
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, name: &str, index: u32, root: &str) -> Candidate {
        Candidate {
            id: id.parse().unwrap(),
            name: name.parse().unwrap(),
            index,
            project_root: root.into(),
            workspace: root.into(),
        }
    }

    fn boxes() -> Vec<Candidate> {
        vec![
            candidate("b12300000", "fix", 1, "/p"),
            candidate("b12345678", "b123", 2, "/p"),
            candidate("bffffffff", "docs", 2, "/q"),
        ]
    }

    fn find(query: Option<&str>, cwd: &str) -> Result<String, ControlError> {
        let target = Target { query: query.map(Into::into), cwd: Some(cwd.into()) };
        resolve(&boxes(), &target).map(|id| id.to_string())
    }

    #[test]
    fn boxes_16_27_references() {
        assert_eq!(find(Some("2"), "/p/sub").unwrap(), "b12345678");
        assert_eq!(find(Some("2"), "/q").unwrap(), "bffffffff");
        assert_eq!(find(Some("bfff"), "/").unwrap(), "bffffffff");
        assert_eq!(find(Some("b123"), "/").unwrap(), "b12345678", "an exact name beats a prefix");
        let miss = find(Some("zz"), "/").unwrap_err();
        assert_eq!(miss.message, "no box matches \"zz\"");
        assert!(find(Some("bf"), "/").is_err(), "two characters are no prefix");
        assert_eq!(find(Some("dosc"), "/").unwrap_err().hints, ["did you mean docs?"]);
    }

    #[test]
    fn boxes_16_28_several_boxes_are_listed() {
        let many = find(None, "/p").unwrap_err();
        assert_eq!(many.hints, ["  1) fix   (id b12300000)", "  2) b123   (id b12345678)"]);
        assert_eq!(find(None, "/q/deep").unwrap(), "bffffffff");
        assert!(find(None, "/elsewhere").is_err());
        assert!(find(None, "/pq").is_err(), "a folder that only begins alike is another one");
    }
}
