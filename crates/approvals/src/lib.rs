//! The broker between a box that wants something and the person who may allow it.
//!
//! A caller [`Broker::ask`]s and waits. The broker shows the question on every [`Sink`] at once,
//! takes the first answer and withdraws the question everywhere else. Everything but a person's
//! yes (or a rule that a person made) is a no: the clock, a caller that went away, a host that
//! stops, a journal that cannot be written.
//!
//! Logic only: a dialog, a notification or a terminal is a [`Sink`] that lives at the edge, and
//! what must survive a crash goes through [`Journal`]. The surprising thing: an answer is decided
//! under one lock and seen by all sinks before the caller's future runs again, so two surfaces can
//! never both win.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod broker;
mod draft;
mod history;
mod sink;
mod terms;
mod together;

pub use broker::{AnswerError, AskError, Broker, Limits, WhenNobody};
pub use draft::{Asker, Draft, Rememberable, Scope};
pub use sink::{BoxFuture, Journal, JournalError, Sink, Wanted};
pub use terms::{Rule, Said, Terms};
pub use together::{Times, Together};
