//! Why a request was refused, as the box reads it.

use protocol::exit;

/// One line without its end: the surface, the offending word made visible, what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub exit_code: i32,
    pub text: String,
}

impl Refusal {
    /// A rule forbids it.
    pub fn rule(surface: &str, why: impl AsRef<str>) -> Self {
        Self { exit_code: exit::REFUSED, text: format!("{surface}: {}", why.as_ref()) }
    }

    /// It has no readable shape.
    pub fn shape(surface: &str, why: impl AsRef<str>) -> Self {
        Self { exit_code: exit::UNADDRESSABLE, text: format!("{surface}: {}", why.as_ref()) }
    }
}
