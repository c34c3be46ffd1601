//! The two things the broker needs from the outside.

use crate::{Asker, Draft};
use protocol::question::{Grant, Outcome, Question};
use protocol::{BoxName, QuestionId};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A place where questions are shown: a dialog, a notification, the window, a terminal.
///
/// No method may block or call the broker: its lock is held. A sink that cannot show just does
/// nothing, the others go on. Answers come back through [`crate::Broker::answer`].
pub trait Sink: Send + Sync + 'static {
    /// Called once for each question at most: a box's next one waits until its first is over.
    fn show(&self, question: &Question);

    /// A question that was shown was asked for once more; it says how often by now.
    fn again(&self, _question: &Question) {}

    /// The question is over, however it ended. Called once for each question that was open, also
    /// for one whose turn to be shown never came.
    fn withdraw(&self, question: &Question, outcome: &Outcome);

    /// Whether somebody could answer here now.
    fn is_attached(&self) -> bool {
        true
    }

    /// Something about a box that needs no answer, such as that it is not heard for a while.
    fn note(&self, _box_name: &BoxName, _text: &str) {}
}

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The record could not be written. The broker then says no.
#[derive(Debug, thiserror::Error)]
#[error("the approval could not be recorded: {0}")]
pub struct JournalError(pub String);

/// What a rule is looked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub asker: &'a Asker,
    pub method: &'a str,
    /// A rule with any of these keys covers it.
    pub keys: &'a [String],
}

/// What must be on disk before it counts.
pub trait Journal: Send + Sync + 'static {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>>;
    fn resolved<'a>(
        &'a self,
        id: &'a QuestionId,
        outcome: &'a Outcome,
        open_for: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
    /// Said no at once, without a question.
    fn refused<'a>(
        &'a self,
        draft: &'a Draft,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
    /// A rule that covers this and has not expired.
    fn grant_for<'a>(
        &'a self,
        wanted: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>>;
    fn remember<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>>;
}
