//! Files between this computer and a box, for a person who asked for it.
//!
//! The person's own files are read and written here, with the person's own rights; what is in the
//! box is packed and laid out by `agentbox-ctl` there. Between the two flows one tar stream, never
//! whole in memory. What comes out of a box is read as an enemy's.

pub mod changes;
pub mod gate;
pub mod paths;
pub mod stream;
pub mod up;
pub mod walk;

use protocol::text::visible;
use std::path::Path;

/// Names one line lists.
const NAMED: usize = 10;

/// A path for people.
pub fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// “a, b and 3 more”.
pub fn named<S: AsRef<str>>(names: &[S]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let rest = names.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}
