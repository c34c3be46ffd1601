//! Which box a person means. Pure.

use protocol::control::{ControlError, ErrorCode, Target};
use protocol::text::visible;
use protocol::{BoxId, BoxName};
use std::path::{Path, PathBuf};

/// As much of a box as choosing needs.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: BoxId,
    pub name: BoxName,
    /// What a person calls it.
    pub display_name: Option<String>,
    pub index: u32,
    /// The folder name of the project root.
    pub project: String,
    pub project_root: PathBuf,
    pub workspace: PathBuf,
}

/// The shortest id prefix that is looked up.
const MIN_PREFIX: usize = 3;

/// An index (in the folder's project), an exact name, an id, a container's name, what a person calls
/// it, or a unique id prefix; `project/name`; `@project` for a project's only box; without any, the only box of the
/// folder's project.
pub fn resolve(boxes: &[Candidate], target: &Target) -> Result<BoxId, ControlError> {
    let all: Vec<&Candidate> = boxes.iter().collect();
    let here = around(&all, target.cwd.as_deref().map(Path::new));
    let Some(query) = target.query.as_deref() else {
        return only(&here, "this folder's project");
    };
    if let Some(project) = query.strip_prefix('@') {
        let found = of_project(&all, project);
        return match found.as_slice() {
            [] => Err(no_project(&all, project)),
            _ => only(&found, &format!("project {}", visible(project))),
        };
    }
    if let Some((project, name)) = query.split_once('/') {
        let found = of_project(&all, project);
        return match found.as_slice() {
            [] => Err(no_project(&all, project)),
            _ => among(&found, &found, name),
        };
    }
    among(&all, &here, query)
}

/// One of these boxes; an index counts in those that are here.
fn among(boxes: &[&Candidate], here: &[&Candidate], query: &str) -> Result<BoxId, ControlError> {
    let none = || Err(no_match(boxes, query));
    if query.bytes().all(|b| b.is_ascii_digit()) && !query.starts_with('0') && !query.is_empty() {
        let found: Vec<_> = here.iter().filter(|b| b.index.to_string() == query).copied().collect();
        return if found.is_empty() { none() } else { only(&found, "that index") };
    }
    if let Some(exact) = boxes.iter().find(|b| b.is_called(query)) {
        return Ok(exact.id.clone());
    }
    let shown: Vec<&Candidate> =
        boxes.iter().filter(|b| b.display_name.as_deref() == Some(query)).copied().collect();
    if !shown.is_empty() {
        return only(&shown, &format!("\"{}\"", visible(query)));
    }
    let prefix = |b: &&&Candidate| query.len() >= MIN_PREFIX && b.id.as_str().starts_with(query);
    let found: Vec<&Candidate> = boxes.iter().filter(prefix).copied().collect();
    if found.is_empty() { none() } else { only(&found, "that id prefix") }
}

/// The boxes of the innermost project around a folder.
fn around<'a>(boxes: &[&'a Candidate], cwd: Option<&Path>) -> Vec<&'a Candidate> {
    let Some(cwd) = cwd else { return Vec::new() };
    let depths = boxes.iter().map(|b| (b.depth(cwd), *b));
    let innermost = depths.clone().filter_map(|(depth, _)| depth).max();
    depths.filter(|(depth, _)| depth.is_some() && *depth == innermost).map(|(_, b)| b).collect()
}

fn of_project<'a>(boxes: &[&'a Candidate], project: &str) -> Vec<&'a Candidate> {
    boxes.iter().filter(|b| b.project == project).copied().collect()
}

impl Candidate {
    /// How deep the folder lies that is this box's and holds `cwd`.
    fn depth(&self, cwd: &Path) -> Option<usize> {
        let folders = [&self.project_root, &self.workspace].into_iter();
        folders.filter(|f| cwd.starts_with(f)).map(|f| f.components().count()).max()
    }

    fn is_called(&self, query: &str) -> bool {
        let container = query.strip_prefix("agentbox-");
        let name = self.name.as_str();
        name == query || self.id.as_str() == query || container == Some(name)
    }
}

fn only(found: &[&Candidate], of: &str) -> Result<BoxId, ControlError> {
    match found {
        [one] => Ok(one.id.clone()),
        [] => Err(ControlError::new(ErrorCode::Usage, format!("{of} has no box"))
            .hint("agentbox create makes one, agentbox list --global shows all.")),
        many => {
            let text = format!("{of} has {} boxes; say which one", many.len());
            // An index says nothing across projects.
            let one = many.iter().all(|b| b.project_root == many[0].project_root);
            let line = |b: &&Candidate| {
                if one {
                    return format!("  {}) {}   (id {})", b.index, b.name, b.id);
                }
                let root = visible(&b.project_root.display().to_string());
                format!("  {}   (id {}, {root})", b.name, b.id)
            };
            let lines = many.iter().map(line);
            Err(lines.fold(ControlError::new(ErrorCode::Usage, text), ControlError::hint))
        }
    }
}

fn no_match(boxes: &[&Candidate], query: &str) -> ControlError {
    let text = format!("no box matches \"{}\"", visible(query));
    let error = ControlError::new(ErrorCode::Usage, text);
    match nearest(boxes.iter().map(|b| b.name.as_str()), query) {
        Some(name) => error.hint(format!("did you mean {name}?")),
        None => error.hint("agentbox list --global shows all boxes."),
    }
}

fn no_project(boxes: &[&Candidate], project: &str) -> ControlError {
    let text = format!("no project with boxes is called \"{}\"", visible(project));
    let error = ControlError::new(ErrorCode::Usage, text);
    match nearest(boxes.iter().map(|b| b.project.as_str()), project) {
        Some(name) => error.hint(format!("did you mean {}?", visible(name))),
        None => error.hint("agentbox list --global shows all boxes and their projects."),
    }
}

/// The word that is almost the one that was typed.
fn nearest<'a>(words: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    let near = words.map(|word| (distance(word, typed), word)).min_by_key(|(d, _)| *d);
    near.filter(|(d, _)| *d <= 3).map(|(_, word)| word)
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
            display_name: None,
            index,
            project: root.rsplit('/').next().unwrap().into(),
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
        assert_eq!(find(Some("agentbox-docs"), "/").unwrap(), "bffffffff");
    }

    #[test]
    fn boxes_16_27_a_project_can_be_named() {
        assert_eq!(find(Some("q/docs"), "/").unwrap(), "bffffffff");
        assert_eq!(find(Some("p/2"), "/q").unwrap(), "b12345678");
        assert_eq!(find(Some("@q"), "/p").unwrap(), "bffffffff");
        assert!(find(Some("p/docs"), "/").is_err(), "a box of another project");
        let many = find(Some("@p"), "/").unwrap_err();
        assert_eq!(many.hints, ["  1) fix   (id b12300000)", "  2) b123   (id b12345678)"]);
        let miss = find(Some("@zzzz"), "/").unwrap_err();
        assert_eq!(miss.message, "no project with boxes is called \"zzzz\"");
        assert!(find(Some("zzzz/docs"), "/").is_err());
    }

    #[test]
    fn what_a_person_calls_a_box_finds_it_unless_it_is_a_name() {
        let mut all = boxes();
        all[0].display_name = Some("The login".into());
        all[1].display_name = Some("docs".into());
        let find = |query: &str| {
            let target = Target { query: Some(query.into()), cwd: Some("/p".into()) };
            resolve(&all, &target).map(|id| id.to_string())
        };
        assert_eq!(find("The login").unwrap(), "b12300000");
        assert_eq!(find("p/The login").unwrap(), "b12300000");
        assert_eq!(find("docs").unwrap(), "bffffffff", "names come first");
        all[1].display_name = Some("The login".into());
        let target = Target { query: Some("The login".into()), cwd: None };
        let many = resolve(&all, &target).unwrap_err();
        assert_eq!(many.message, "\"The login\" has 2 boxes; say which one");
    }

    #[test]
    fn a_project_in_a_project_comes_first() {
        let mut all = boxes();
        all.push(candidate("b77777777", "inner", 1, "/p/inner"));
        let target = |cwd: &str| Target { query: None, cwd: Some(cwd.into()) };
        assert_eq!(resolve(&all, &target("/p/inner/src")).unwrap().as_str(), "b77777777");
        assert!(resolve(&all, &target("/p/other")).is_err());
        // Two projects of one name: their folders tell them apart.
        all.push(candidate("b88888888", "twin", 1, "/elsewhere/inner"));
        let twins = Target { query: Some("@inner".into()), cwd: None };
        let lines = resolve(&all, &twins).unwrap_err().hints;
        assert_eq!(lines[0], "  inner   (id b77777777, /p/inner)");
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
