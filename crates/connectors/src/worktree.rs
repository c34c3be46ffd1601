//! Which of a box's repositories a path in the box belongs to.
//!
//! Pure string logic: the path is a selector a box chose, it is never joined to a host path. The
//! surprising thing: a path outside every worktree is no error, it means `/workspace`, because
//! commands are also run from the home folder.

use protocol::ctl::paths::WORKSPACE;
use protocol::exit;
use protocol::rpc::MAX_PATH_BYTES;
use protocol::text::visible;

/// An absolute path in a box without `.`, `..`, empty segments or control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoxPath(String);

impl BoxPath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A path meant from this one, or an absolute one.
    pub fn join(&self, text: &str) -> Result<Self, BadPath> {
        if text.starts_with('/') {
            normalise(text)
        } else {
            normalise(&format!("{}/{text}", self.0))
        }
    }
}

impl Default for BoxPath {
    /// What an absent path means.
    fn default() -> Self {
        Self(WORKSPACE.to_owned())
    }
}

/// Why a path selects nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("path '{}' is not absolute; send the full path in the box.", visible(.0))]
    Relative(String),
    #[error("path of {0} bytes is too long; at most {MAX_PATH_BYTES} are taken.")]
    TooLong(usize),
    #[error("path '{}' holds a control character.", visible(.0))]
    Control(String),
    #[error("path '{}' holds '..'; send the path it leads to.", visible(.0))]
    Parent(String),
}

impl BadPath {
    pub fn exit_code(&self) -> i32 {
        exit::UNADDRESSABLE
    }
}

/// Collapses `.` and `//`; refuses what could mean two things.
pub fn normalise(path: &str) -> Result<BoxPath, BadPath> {
    if path.len() > MAX_PATH_BYTES {
        return Err(BadPath::TooLong(path.len()));
    }
    if path.chars().any(char::is_control) {
        return Err(BadPath::Control(path.to_owned()));
    }
    let Some(rest) = path.strip_prefix('/') else {
        return Err(BadPath::Relative(path.to_owned()));
    };
    let segments: Vec<&str> = rest.split('/').filter(|s| !s.is_empty() && *s != ".").collect();
    if segments.contains(&"..") {
        return Err(BadPath::Parent(path.to_owned()));
    }
    Ok(BoxPath(format!("/{}", segments.join("/"))))
}

/// The index of the worktree a path belongs to: the longest of `worktrees` that is the path or a
/// whole-segment prefix of it, else `/workspace`, else none.
pub fn resolve<S: AsRef<str>>(worktrees: &[S], path: &BoxPath) -> Option<usize> {
    let found = worktrees.iter().enumerate().filter(|(_, w)| holds(w.as_ref(), path.as_str()));
    let longest = found.max_by_key(|(_, w)| w.as_ref().len());
    longest.map(|(i, _)| i).or_else(|| worktrees.iter().position(|w| w.as_ref() == WORKSPACE))
}

fn holds(worktree: &str, path: &str) -> bool {
    let rest = path.strip_prefix(worktree);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(worktrees: &[&str], path: &str) -> Option<usize> {
        resolve(worktrees, &normalise(path).unwrap())
    }

    #[test]
    fn relay_19_09_whole_segments_select() {
        let both = ["/workspace", "/workspace/app"];
        assert_eq!(find(&both, "/workspace/app"), Some(1));
        assert_eq!(find(&both, "/workspace/app/x"), Some(1));
        assert_eq!(find(&both, "/workspace/application"), Some(0));
        assert_eq!(find(&both, "/home/vscode"), Some(0));
        assert_eq!(find(&both, "//workspace/./app//"), Some(1));
        assert_eq!(find(&["/workspace/app"], "/home/vscode"), None);
        assert_eq!(find(&[], "/workspace"), None);
        assert_eq!(BoxPath::default().as_str(), "/workspace");
    }

    #[test]
    fn relay_19_09_parents_are_refused() {
        for bad in ["/workspace/app/../..", "/workspace/../x", "/..", "/a/.."] {
            let error = normalise(bad).unwrap_err();
            assert_eq!(error, BadPath::Parent(bad.into()));
            assert_eq!(error.exit_code(), 64);
        }
        assert_eq!(normalise("/a/..b").unwrap().as_str(), "/a/..b");
    }

    #[test]
    fn paths_are_joined_without_leaving() {
        let from = BoxPath::default();
        assert_eq!(from.join("lib").unwrap().as_str(), "/workspace/lib");
        assert_eq!(from.join("./a//b/").unwrap().as_str(), "/workspace/a/b");
        assert_eq!(from.join("/tmp/x").unwrap().as_str(), "/tmp/x");
        for bad in ["../x", "a/../b", "a\nb", "/a/../b"] {
            assert!(from.join(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn relay_a16_hostile_paths_are_refused() {
        assert!(matches!(normalise("/a\0b"), Err(BadPath::Control(_))));
        assert!(matches!(normalise("/a\nb"), Err(BadPath::Control(_))));
        assert!(matches!(normalise(""), Err(BadPath::Relative(_))));
        assert!(matches!(normalise("workspace"), Err(BadPath::Relative(_))));
        let long = format!("/{}", "x".repeat(1_000_000));
        let error = normalise(&long).unwrap_err();
        assert_eq!(error, BadPath::TooLong(1_000_001));
        assert!(error.to_string().len() < 200);
    }

    proptest::proptest! {
        #[test]
        fn normalising_twice_is_normalising_once(path in "(/|\\.|a|\\.\\.|bc|\n){0,12}|.{0,20}") {
            if let Ok(once) = normalise(&path) {
                proptest::prop_assert_eq!(&normalise(once.as_str()).unwrap(), &once);
                proptest::prop_assert!(once.as_str().starts_with('/'));
                proptest::prop_assert!(!once.as_str().contains("//"));
            }
        }

        #[test]
        fn a_selected_worktree_is_a_prefix_or_the_workspace(path in "(/|a|b){1,8}") {
            let worktrees = ["/workspace", "/a", "/a/b", "/ab"];
            if let Ok(path) = normalise(&path) {
                let chosen = worktrees[resolve(&worktrees, &path).unwrap()];
                proptest::prop_assert!(chosen == "/workspace" || path.as_str().starts_with(chosen));
            }
        }
    }
}
