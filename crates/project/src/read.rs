//! From the tree to the model, with everything that is wrong on the way.

mod carry;
mod fields;
mod graph;
mod image;
mod once;
mod ready;
mod restart;
mod rules;
mod units;

use crate::problem::Problems;
use crate::shape::TOP;
use crate::{Parsed, Project, Setting};
use fields::{At, Fields};
pub(crate) use fields::{entries, list, scalar};
pub(crate) use image::is_image;
pub(crate) use units::is_variable;
use yaml::{Kind, Node};

/// A key nobody knows.
const UNKNOWN: &str = "W001";
/// A key that has no meaning where it stands.
const MEANINGLESS: &str = "W002";

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Always as new as the file; whatever it does not know of a carry item or a rule is an error.
    Host,
    /// Perhaps older than the file, and with no part in carry.
    Box,
}

impl Project {
    /// Reads a file on the host.
    pub fn parse(text: &str) -> Parsed {
        parse(text, Reader::Host)
    }

    /// Reads a file in a box: `carry` is left out, and a replacement rule with a key that is not known
    /// makes its set useless instead of the whole file.
    pub fn parse_in_box(text: &str) -> Parsed {
        parse(text, Reader::Box)
    }
}

fn parse(text: &str, reader: Reader) -> Parsed {
    let mut problems = Problems::default();
    let root = problems.tree(text);
    let project = match &root {
        Some(root) if !root.is_null() => project(root, reader, &mut problems),
        _ => Project::default(),
    };
    let (errors, warnings) = problems.sorted();
    Parsed { project: errors.is_empty().then_some(project), errors, warnings }
}

fn project(root: &Node, reader: Reader, problems: &mut Problems) -> Project {
    let mut project = Project::default();
    let at = At::root();
    let Kind::Map(_) = &root.kind else {
        let message = format!("the file is {}, not a mapping", root.what());
        problems.error("Y002", root.place, "", &message);
        return project;
    };
    let fields = Fields::new(root, at, TOP);
    fields.warn_unknown(problems);
    let mut seen = Vec::new();
    for (key, node) in section(&fields, "services", problems) {
        if let Some(service) = units::service(key, node, &mut seen, problems) {
            project.services.push(service);
        }
    }
    for (key, node) in section(&fields, "tasks", problems) {
        if let Some(task) = units::task(key, node, &mut seen, problems) {
            project.tasks.push(task);
        }
    }
    graph::check(&project, &seen, problems);
    for (key, node) in section(&fields, "replacements", problems) {
        if let Some(set) = rules::set(key, node, reader, problems) {
            project.replacements.push(set);
        }
    }
    if reader == Reader::Host
        && let Some((node, at)) = fields.get("carry")
    {
        project.carry = carry::items(node, &at, problems);
    }
    for (key, node) in section(&fields, "defaults", problems) {
        leaves(&key.text, node, &mut project.defaults, problems);
    }
    for (key, node) in section(&fields, "ide", problems) {
        if let ("auto_open_terminals", Kind::Scalar(scalar)) = (key.text.as_str(), &node.kind) {
            project.auto_open_terminals = scalar.bool();
        }
    }
    project
}

/// The entries of a mapping at the top; nothing there is as good as none.
fn section<'a>(
    fields: &Fields<'a>,
    name: &str,
    problems: &mut Problems,
) -> &'a [(yaml::Key, Node)] {
    let Some((node, at)) = fields.get(name).filter(|(node, _)| !node.is_null()) else { return &[] };
    entries(node).unwrap_or_else(|| {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error("Y003", node.place, at.path(), &message);
        &[]
    })
}

/// More settings than there are, and a longer name than any has. Each leaf holds its whole name, and each
/// is looked at for itself.
const MOST_SETTINGS: usize = 200;
const LONGEST_SETTING: usize = 200;

/// Dotted keys and the letters of their values.
fn leaves(key: &str, node: &Node, into: &mut Vec<Setting>, problems: &mut Problems) {
    let too_much = if into.len() >= MOST_SETTINGS {
        format!("has more than {MOST_SETTINGS} values")
    } else if key.len() > LONGEST_SETTING {
        "has a name that is too long for a setting".to_owned()
    } else {
        String::new()
    };
    if !too_much.is_empty() {
        if !problems.errors.iter().any(|known| known.code == "Y071") {
            problems.error("Y071", node.place, "defaults", &too_much);
        }
        return;
    }
    let name = |below: &str| {
        let room = LONGEST_SETTING + 1;
        format!("{key}{}", below.chars().take(room).collect::<String>())
    };
    match &node.kind {
        Kind::Scalar(scalar) => {
            let (place, value) = (node.place, scalar.text.clone());
            into.push(Setting { place, key: key.to_owned(), value });
        }
        Kind::List(all) => {
            for (at, one) in all.iter().enumerate() {
                leaves(&name(&format!("[{at}]")), one, into, problems);
            }
        }
        Kind::Map(pairs) => {
            for (below, node) in pairs {
                leaves(&name(&format!(".{}", below.text)), node, into, problems);
            }
        }
    }
}
