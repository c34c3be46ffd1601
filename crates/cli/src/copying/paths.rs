//! What was typed: whose path is whose, and what is copied where.
//!
//! `<box>:<path>` is a path in a box when no slash comes before the first colon. In a box a
//! relative path starts in the workspace and `~` is the box user's home.

use crate::error::CommandError;
use protocol::ctl::{BOX_USER, paths::WORKSPACE};
use protocol::text::visible;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    ToBox {
        sources: Vec<PathBuf>,
        which: String,
        dest: String,
    },
    /// No destination is the folder the person is in.
    FromBox {
        which: String,
        sources: Vec<String>,
        dest: Option<PathBuf>,
    },
}

enum Side<'a> {
    Here(&'a Path),
    Box(&'a str, &'a str),
}

fn side(word: &OsStr) -> Side<'_> {
    match word.to_str().and_then(|text| text.split_once(':')) {
        Some((which, path)) if !which.is_empty() && !which.contains('/') => Side::Box(which, path),
        _ => Side::Here(Path::new(word)),
    }
}

pub fn parse<S: AsRef<OsStr>>(words: &[S]) -> Result<Copy, CommandError> {
    let sides: Vec<Side<'_>> = words.iter().map(|word| side(word.as_ref())).collect();
    let (dest, sources) = match &sides[..] {
        [] => return Err(CommandError::failed("nothing to copy")),
        [Side::Here(path)] => {
            let text = format!("where should {} go?", visible(&path.to_string_lossy()));
            return Err(
                CommandError::failed(text).hint("name a box: agentbox cp <path> <box>:<path>")
            );
        }
        [one] => (None, std::slice::from_ref(one)),
        [sources @ .., dest] => (Some(dest), sources),
    };
    let here = sources.iter().filter(|s| matches!(s, Side::Here(_))).count();
    if here != 0 && here != sources.len() {
        return Err(CommandError::failed(
            "sources are on both sides; copy them one after the other",
        ));
    }
    match (here == 0, dest) {
        (false, Some(Side::Box(which, path))) => Ok(Copy::ToBox {
            sources: sources.iter().filter_map(local).collect(),
            which: (*which).to_owned(),
            dest: in_box(path),
        }),
        (false, _) => Err(CommandError::failed("neither side is a box")
            .hint("a path in a box is <box>:<path>, such as fix-login:/workspace/out")),
        (true, Some(Side::Box(..))) => Err(CommandError::failed(
            "a copy goes between a box and this computer, not between boxes",
        )
        .hint("copy it here first, then into the other box")),
        (true, dest) => from_box(sources, dest.and_then(local)),
    }
}

fn local(side: &Side<'_>) -> Option<PathBuf> {
    match side {
        Side::Here(path) => Some((*path).to_owned()),
        Side::Box(..) => None,
    }
}

fn from_box(sources: &[Side<'_>], dest: Option<PathBuf>) -> Result<Copy, CommandError> {
    let pairs = sources.iter().filter_map(|side| match side {
        Side::Box(which, path) => Some((*which, *path)),
        Side::Here(_) => None,
    });
    let (boxes, paths): (Vec<&str>, Vec<&str>) = pairs.unzip();
    let which = boxes.first().copied().unwrap_or_default();
    if boxes.iter().any(|other| *other != which) {
        return Err(CommandError::failed("sources are in several boxes; copy from one at a time"));
    }
    let sources: Vec<String> =
        paths.iter().map(|path| in_box(path).trim_end_matches('/').to_owned()).collect();
    if sources.iter().any(String::is_empty) {
        return Err(CommandError::failed("/ is the whole box; name a file or folder in it"));
    }
    Ok(Copy::FromBox { which: which.to_owned(), sources, dest })
}

/// A full path in the box, without `.` and `..`. A slash at its end stays: it makes a folder of it.
fn in_box(path: &str) -> String {
    let home = format!("/home/{BOX_USER}");
    let from = match path.strip_prefix('~') {
        Some("") => home,
        Some(rest) if rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.to_owned(),
    };
    let mut full = PathBuf::new();
    for part in Path::new(WORKSPACE).join(&from).components() {
        match part {
            Component::ParentDir => drop(full.pop()),
            Component::CurDir => {}
            part => full.push(part),
        }
    }
    let folder = from.is_empty() || from.ends_with('/') || from == "." || from.ends_with("/.");
    let end = if folder && full != Path::new("/") { "/" } else { "" };
    format!("{}{end}", full.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let error = parse(words).unwrap_err();
        assert_eq!(error.kind.exit_code(), 1, "{words:?}");
        error.error
    }

    #[test]
    fn whose_path_is_whose() {
        assert_eq!(
            parse(&["a", "./b:c", "fix:/workspace/"]).unwrap(),
            Copy::ToBox {
                sources: vec!["a".into(), "./b:c".into()],
                which: "fix".into(),
                dest: "/workspace/".into()
            }
        );
        assert_eq!(
            parse(&["fix:out/../x/", "here"]).unwrap(),
            Copy::FromBox {
                which: "fix".into(),
                sources: vec!["/workspace/x".into()],
                dest: Some("here".into())
            }
        );
        let one =
            Copy::FromBox { which: "2".into(), sources: vec!["/etc/hosts".into()], dest: None };
        assert_eq!(parse(&["2:/etc/hosts"]).unwrap(), one);
    }

    #[test]
    fn boxes_16_40_mixed_sides_are_refused() {
        assert!(refused(&["a", "fix:b", "fix:/c"]).contains("both sides"));
        assert!(refused(&["fix:a", "b", "c"]).contains("both sides"));
        assert!(refused(&["one:a", "two:b"]).contains("between boxes"));
        assert!(refused(&["one:a", "two:b", "here"]).contains("several boxes"));
        assert!(refused(&["a", "b"]).contains("neither"));
        assert!(refused(&["a"]).contains("where"));
        assert!(refused(&["fix:/", "here"]).contains("whole box"));
    }

    #[test]
    fn paths_of_a_box_are_full() {
        for (typed, full) in [
            ("a", "/workspace/a"),
            ("", "/workspace/"),
            (".", "/workspace/"),
            ("~", "/home/vscode"),
            ("~/x/", "/home/vscode/x/"),
            ("/tmp/../x", "/x"),
            ("../../..", "/"),
        ] {
            assert_eq!(in_box(typed), full, "{typed}");
        }
    }
}
