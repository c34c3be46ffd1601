//! The two things the broker needs from the outside.

use protocol::question::{Grant, Outcome, Question};
use protocol::{BoxId, QuestionId};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A place where questions are shown: a dialog, a notification, the window, a terminal.
///
/// Neither method may block; a sink that cannot show just does nothing, the others go on. Answers
/// come back through [`crate::Broker::answer`].
pub trait Sink: Send + Sync + 'static {
    fn show(&self, question: &Question);
    /// The question is over, however it ended. Called once for each question that was shown.
    fn withdraw(&self, question: &Question, outcome: &Outcome);
}

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The record could not be written. The broker then says no.
#[derive(Debug, thiserror::Error)]
#[error("the approval could not be recorded: {0}")]
pub struct JournalError(pub String);

/// What must be on disk before it counts.
pub trait Journal: Send + Sync + 'static {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>>;
    fn resolved<'a>(
        &'a self,
        id: &'a QuestionId,
        outcome: &'a Outcome,
        open_for: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>>;
    /// A rule of this box that covers the scope and has not expired.
    fn grant_for<'a>(
        &'a self,
        box_id: &'a BoxId,
        method: &'a str,
        scope: &'a str,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>>;
    fn remember<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>>;
}
