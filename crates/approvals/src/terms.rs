//! Kinds of questions that are limited in another way than the rest.

use crate::WhenNobody;
use protocol::question::{Breadth, Outcome, Reach};
use std::time::Duration;

/// On what terms a question is asked.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// What is counted together: open questions, and questions of late. A flood of one family leaves room
    /// for the others.
    pub family: &'static str,
    /// Open questions a box may have of the family, when it is not the usual number.
    pub open: Option<usize>,
    /// What three denials of are enough for a while; none is the method.
    pub denied_as: Option<String>,
    /// When it is not what holds for all.
    pub when_nobody: Option<WhenNobody>,
    /// A rule a person makes at it is for the caller to keep, and is not looked for either.
    pub keeps_rules: bool,
}

/// How a question ended, with the rule a person asked for where its caller keeps rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub outcome: Outcome,
    pub rule: Option<Rule>,
}

/// What a remembered yes is to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub reach: Reach,
    pub breadth: Breadth,
    pub time: Duration,
}
